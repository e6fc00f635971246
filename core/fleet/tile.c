/* tile - a run of a limiter's leaves, as a node whose name is its state, see tile.h. */
#include "core/fleet/tile.h"
#include "core/fleet/znode.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(TILE_TEXT + 48 < ZNODE_TEXT, "a path has room for /t/, LID-CUT and any name");

enum { TILES_ROOM = 8 }; /* at first; doubled each time */

uint32_t tile_size(const struct tile *tile)
{
	return tile->last - tile->first + 1;
}

bool tile_is_clean(const struct tile *tile)
{
	return !*tile->hid;
}

bool tile_is_of(const struct tile *tile, const char *hid)
{
	return !strcmp(tile->hid, hid);
}

void tile_print(const struct tile *tile, char name[TILE_TEXT])
{
	int used = snprintf(name, TILE_TEXT, "%" PRIu32, tile->first);

	if (tile->last > tile->first)
		used += snprintf(name + used, (size_t)(TILE_TEXT - used), "-%" PRIu32, tile->last);
	if (!tile_is_clean(tile)) {
		snprintf(name + used, (size_t)(TILE_TEXT - used), ".%s", tile->hid);
		return;
	}
	used += snprintf(name + used, (size_t)(TILE_TEXT - used), "+%" PRIu32 "+", tile->epoch);
	rest_print(&tile->rest, name + used);
}

/* Reads a number as it is printed: without zeros before it. */
static bool parse_number(const char **text, uint64_t most, uint32_t *number)
{
	uint64_t value;

	if (**text == '0' && (*text)[1] >= '0' && (*text)[1] <= '9')
		return false;
	if (!record_parse_digits(text, most, &value))
		return false;
	*number = (uint32_t)value;
	return true;
}

bool tile_parse(const char *name, struct tile *tile)
{
	*tile = (struct tile){0};
	if (!parse_number(&name, TILE_LEAVES_MAX - 1, &tile->first))
		return false;
	tile->last = tile->first;
	if (*name == '-') {
		name++;
		if (!parse_number(&name, TILE_LEAVES_MAX - 1, &tile->last) ||
		    tile->last <= tile->first)
			return false;
	}
	if (*name == '.') {
		if (!znode_is_hid(name + 1))
			return false;
		memcpy(tile->hid, name + 1, HID_TEXT);
		return true;
	}
	return *name++ == '+' && parse_number(&name, UINT32_MAX, &tile->epoch) && *name++ == '+' &&
	       rest_parse(name, &tile->rest);
}

/* The larger of two that overlap comes first, so that it does not matter how they were listed. */
static int by_leaves(const void *a, const void *b)
{
	const struct tile *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->last > y->last ? -1 : x->last < y->last;
}

bool tiles_read(struct tiles *tiles, char *const *names, uint32_t name_count, uint32_t leaves)
{
	uint32_t listed = 0, next = 0;

	assert(leaves && leaves <= TILE_LEAVES_MAX);
	*tiles = (struct tiles){.leaves = leaves, .room = name_count + TILES_ROOM, .whole = true};
	tiles->list = calloc(tiles->room, sizeof(*tiles->list));
	if (!tiles->list)
		return false;
	for (uint32_t i = 0; i < name_count; i++) {
		struct tile *tile = &tiles->list[listed];

		listed += tile_parse(names[i], tile) && tile->last < leaves;
	}
	qsort(tiles->list, listed, sizeof(*tiles->list), by_leaves);
	for (uint32_t i = 0; i < listed; i++) {
		tiles->whole = tiles->whole && tiles->list[i].first == next;
		if (tiles->list[i].first < next)
			continue;
		next = tiles->list[i].last + 1;
		tiles->list[tiles->count++] = tiles->list[i];
	}
	tiles->whole = tiles->whole && next == leaves;
	return true;
}

bool tiles_copy(struct tiles *tiles, const struct tiles *from)
{
	*tiles = *from;
	tiles->list = calloc(from->room, sizeof(*tiles->list));
	if (!tiles->list)
		return false;
	memcpy(tiles->list, from->list, from->count * sizeof(*tiles->list));
	return true;
}

void tiles_free(struct tiles *tiles)
{
	free(tiles->list);
	*tiles = (struct tiles){0};
}

uint32_t tiles_hole(const struct tiles *tiles)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < tiles->count && tiles->list[i].first == next; i++)
		next = tiles->list[i].last + 1;
	return next;
}

uint32_t tiles_find(const struct tiles *tiles, uint32_t leaf)
{
	uint32_t low = 0, high = tiles->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (tiles->list[middle].last < leaf)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_hid(const void *a, const void *b)
{
	const struct tile_holder *x = a, *y = b;

	return strcmp(x->hid, y->hid);
}

uint32_t tiles_holders(const struct tiles *tiles, struct tile_holder *holders)
{
	uint32_t leased = 0, count = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		if (!tile_is_clean(tile))
			holders[leased++] = (struct tile_holder){tile->hid, tile_size(tile)};
	}
	qsort(holders, leased, sizeof(*holders), by_hid);
	for (uint32_t i = 0; i < leased; i++) {
		if (count && !by_hid(&holders[count - 1], &holders[i]))
			holders[count - 1].leaves += holders[i].leaves;
		else
			holders[count++] = holders[i];
	}
	return count;
}

static bool grow(struct tiles *tiles)
{
	uint32_t room = tiles->room * 2;
	struct tile *list;

	if (tiles->count < tiles->room)
		return true;
	list = realloc(tiles->list, room * sizeof(*list));
	if (!list)
		return false;
	tiles->list = list;
	tiles->room = room;
	return true;
}

bool tiles_cut(struct tiles *tiles, uint32_t leaf)
{
	uint32_t at = tiles_find(tiles, leaf);
	struct tile *tile = &tiles->list[at], *behind;

	if (at == tiles->count || tile->first >= leaf)
		return true;
	if (!grow(tiles))
		return false;
	tile = &tiles->list[at];
	behind = tile + 1;
	memmove(behind, tile, (tiles->count - at) * sizeof(*tile));
	tiles->count++;
	behind->first = leaf;
	behind->rest = rest_take(&tile->rest, tile_size(behind), tile_size(tile));
	tile->last = leaf - 1;
	return true;
}

bool tiles_put(struct tiles *tiles, const struct tile *tile)
{
	uint32_t at = tiles_find(tiles, tile->first), end = at;

	while (end < tiles->count && tiles->list[end].first <= tile->last)
		end++;
	if (!grow(tiles))
		return false;
	if (end != at + 1)
		memmove(&tiles->list[at + 1], &tiles->list[end],
			(tiles->count - end) * sizeof(*tiles->list));
	tiles->list[at] = *tile;
	tiles->count += at + 1 - end;
	return true;
}

void tiles_limit_gone(struct tiles *tiles)
{
	const char *gone[TILES_GONE_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		struct tile *tile = &tiles->list[i];
		uint32_t at = 0;

		while (tile->gone && at < count && strcmp(gone[at], tile->hid) != 0)
			at++;
		tile->gone = tile->gone && at < TILES_GONE_MAX;
		if (tile->gone && at == count)
			gone[count++] = tile->hid;
	}
}

void tiles_doubt(struct tiles *tiles, const char *hid)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		if (tile_is_of(&tiles->list[i], hid))
			tiles->list[i].gone = true;
	}
}

void tiles_remove_doubtful(struct tiles *tiles, const char *hid)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		if (!tiles->list[i].gone || !tile_is_of(&tiles->list[i], hid))
			tiles->list[kept++] = tiles->list[i];
	}
	tiles->count = kept;
}

bool tiles_can_merge(const struct tiles *tiles, uint32_t at)
{
	const struct tile *a = &tiles->list[at], *b = a + 1;

	return at + 1 < tiles->count && a->last + 1 == b->first && !a->fixed && !b->fixed &&
	       tile_is_of(a, b->hid);
}

static bool is_untouched(const struct tile *tile)
{
	return !tile->rest.count;
}

static struct rest rest_of(const struct tiles *tiles, const struct tile *tile,
			   const struct rest *full)
{
	return rest_now(&tile->rest, full, tile->first, tile->last, tiles->leaves);
}

void tiles_merge(struct tiles *tiles, uint32_t at, const struct rest *full)
{
	struct tile *a = &tiles->list[at], *b = a + 1;

	assert(tiles_can_merge(tiles, at));
	if (tile_is_clean(a)) {
		if (!is_untouched(a) || !is_untouched(b) || a->rest.saved != b->rest.saved) {
			struct rest other = rest_of(tiles, b, full);

			a->rest = rest_of(tiles, a, full);
			rest_add(&a->rest, &other);
		}
		a->epoch = a->epoch < b->epoch ? a->epoch : b->epoch;
	}
	a->last = b->last;
	tiles->count--;
	memmove(b, b + 1, (tiles->count - at - 1) * sizeof(*b));
}
