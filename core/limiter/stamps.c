/* stamps - when the tokens of a strict window were taken, see stamps.h. */
#include "core/limiter/stamps.h"
#include "core/values/quantity.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_ROOM = 4 };

struct stamps STAMPS_NONE;

void stamps_free(struct stamps **stamps)
{
	if (*stamps != &STAMPS_NONE) {
		free((*stamps)->ring);
		free(*stamps);
	}
	*stamps = &STAMPS_NONE;
}

uint64_t stamps_round(uint64_t at_ns, uint64_t window_ns, uint64_t most)
{
	uint64_t grain_ns = most > STAMPS_MAX ? window_ns / STAMPS_PARTS : 0, late_ns;

	if (grain_ns < 2)
		return at_ns;
	late_ns = at_ns % grain_ns;
	return late_ns ? at_ns - late_ns + grain_ns : at_ns;
}

static struct stamp *stamp_at(const struct stamps *stamps, uint32_t i)
{
	return &stamps->ring[(stamps->first + i) & (stamps->room - 1)];
}

/* Makes room for a stamp more in *@stamps, which may be none yet. */
static bool make_room(struct stamps **stamps)
{
	struct stamps *old = *stamps, *larger = old;
	uint32_t room = old->room ? 2 * old->room : FIRST_ROOM;
	struct stamp *ring;

	if (old->count < old->room)
		return true;
	if (room > STAMPS_MAX)
		return false;
	ring = malloc(room * sizeof(*ring));
	if (ring && old == &STAMPS_NONE)
		larger = calloc(1, sizeof(*larger));
	if (!ring || !larger) {
		free(ring);
		return false;
	}
	for (uint32_t i = 0; i < old->count; i++)
		ring[i] = *stamp_at(old, i);
	free(larger->ring);
	larger->ring = ring;
	larger->room = room;
	larger->first = 0;
	*stamps = larger;
	return true;
}

bool stamps_add(struct stamps **stamps, uint64_t at_ns, uint64_t tokens)
{
	struct stamp *newest = (*stamps)->count ? stamp_at(*stamps, (*stamps)->count - 1) : NULL;

	if (newest && newest->at_ns >= at_ns) {
		newest->tokens += tokens;
	} else {
		if (!make_room(stamps))
			return false;
		*stamp_at(*stamps, (*stamps)->count++) = (struct stamp){at_ns, tokens};
	}
	(*stamps)->tokens += tokens;
	return true;
}

const struct stamp *stamps_oldest(const struct stamps *stamps)
{
	return stamps->count ? stamp_at(stamps, 0) : NULL;
}

uint64_t stamps_drop_oldest(struct stamps *stamps, uint64_t tokens)
{
	uint64_t left = tokens;

	while (left && stamps->count) {
		struct stamp *stamp = stamp_at(stamps, 0);
		uint64_t some = stamp->tokens < left ? stamp->tokens : left;

		stamp->tokens -= some;
		stamps->tokens -= some;
		left -= some;
		if (stamp->tokens)
			break;
		stamps->first = (stamps->first + 1) & (stamps->room - 1);
		stamps->count--;
	}
	return tokens - left;
}

uint64_t stamps_drop_newest(struct stamps *stamps, uint64_t tokens)
{
	uint64_t left = tokens;

	while (left && stamps->count) {
		struct stamp *stamp = stamp_at(stamps, stamps->count - 1);
		uint64_t some = stamp->tokens < left ? stamp->tokens : left;

		stamp->tokens -= some;
		stamps->tokens -= some;
		left -= some;
		if (!stamp->tokens)
			stamps->count--;
	}
	return tokens - left;
}

uint64_t stamps_time(const struct stamps *stamps, uint64_t number)
{
	uint64_t before = 0;
	uint32_t i = 0;

	assert(number && number <= stamps->tokens);
	if (stamps->tokens - number < stamp_at(stamps, stamps->count - 1)->tokens)
		return stamp_at(stamps, stamps->count - 1)->at_ns;
	while (before + stamp_at(stamps, i)->tokens < number)
		before += stamp_at(stamps, i++)->tokens;
	return stamp_at(stamps, i)->at_ns;
}
