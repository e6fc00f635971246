/* share - who should have how many partitions, see share.h. */
#include "core/fleet/share.h"

#include <stdlib.h>

/* Divides @capacity with this host's claim at @sequence in the line, and returns its share. */
static uint32_t own_share(const struct claim_line *line, uint32_t capacity, uint64_t sequence)
{
	struct claim *own = line->claims;

	while (own->sequence != line->own)
		own++;
	own->sequence = sequence;
	division_make(line->claims, line->count, capacity);
	own = line->claims;
	while (own->sequence != sequence)
		own++;
	own->sequence = line->own;
	return own->gets;
}

/* Tells whether @claim has less than its share, so that it matters: of a small one all does. */
static bool is_lacking(const struct claim *claim)
{
	uint32_t lack = claim->gets > claim->held ? claim->gets - claim->held : 0;

	return !claim->is_due && lack > claim->gets / SHARE_NEAR_PARTS;
}

struct share share_weigh(const struct claim_line *line, uint32_t wanted, uint32_t capacity)
{
	struct share share = {.target = UINT32_MAX};
	uint64_t sum = 0;

	for (uint32_t i = 0; i < line->count; i++)
		sum += line->claims[i].wanted;
	if (line->own == UINT64_MAX) {
		/* A host that holds what others claim joins the claimants. */
		share.contended = line->count && sum + wanted > capacity;
		return share;
	}
	share.contended = line->count > 1 && sum > capacity;
	if (!share.contended)
		return share;
	share.target_behind = own_share(line, capacity, UINT64_MAX);
	share.target = own_share(line, capacity, line->own);
	for (uint32_t i = 0; i < line->count; i++) {
		const struct claim *claim = &line->claims[i];

		share.starving |= claim->starves;
		share.lacking |= claim->sequence != line->own && is_lacking(claim);
	}
	return share;
}

static int newest_first(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->sequence < y->sequence ? 1 : x->sequence > y->sequence ? -1 : 0;
}

/*
 * Divides @capacity with this host's claim at the beginning or the end of the line, and puts the
 * claims of other hosts into @others, the newest first. Returns how many they are.
 */
static uint32_t divide_among_others(const struct claim_line *line, uint32_t capacity, bool own_last,
				    struct claim *others)
{
	uint64_t own = own_last ? UINT64_MAX : 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < line->count; i++) {
		bool is_own = line->claims[i].sequence == line->own;

		others[i] = line->claims[i];
		others[i].sequence = is_own ? own : others[i].sequence + 1;
	}
	division_make(others, line->count, capacity);
	for (uint32_t i = 0; i < line->count; i++) {
		if (others[i].sequence != own)
			others[count++] = others[i];
	}
	qsort(others, count, sizeof(*others), newest_first);
	return count;
}

/*
 * First come the hosts whose share is larger when this host goes to the end of the line, as it does
 * when its turn is over; then the others that have a share. The newest come first: earlier
 * claimants have more of their shares by now.
 */
uint32_t share_give_way(const struct claim_line *line, uint32_t capacity, struct claim *others)
{
	struct claim *before = calloc(line->count + 1, sizeof(*before));
	struct claim *after = calloc(line->count + 1, sizeof(*after));
	uint32_t count = 0, ordered = 0;

	if (before && after) {
		count = divide_among_others(line, capacity, false, before);
		(void)divide_among_others(line, capacity, true, after);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (after[i].gets > before[i].gets)
			others[ordered++] = after[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		if (after[i].gets && after[i].gets <= before[i].gets)
			others[ordered++] = after[i];
	}
	free(before);
	free(after);
	return ordered;
}

uint32_t share_count_behind(const struct claim_line *line)
{
	uint32_t behind = 0;

	for (uint32_t i = 0; i < line->count && line->own != UINT64_MAX; i++)
		behind += line->claims[i].sequence > line->own;
	return behind;
}
