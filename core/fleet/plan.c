/* plan - which tiles a host takes, splits, merges and gives back, see plan.h. */
#include "core/fleet/plan.h"

#include <errno.h>
#include <string.h>

enum {
	ROOMY_PARTS = 4, /* a run so many times as long as what is wanted has a middle */
	EDGES = 5, /* changes of a take beside the tiles in it: two rests, two of its host's, it */
};

/* Splitmix64, as for all choices that need not be secret. */
static uint64_t draw(struct plan *plan)
{
	uint64_t z = (plan->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

int plan_begin(struct plan *plan, const struct plan_rules *rules, const struct tiles *tiles)
{
	*plan = (struct plan){.rules = *rules, .random = rules->seed};
	if (!tiles_copy(&plan->before, tiles))
		return -ENOMEM;
	if (tiles_copy(&plan->after, tiles))
		return 0;
	tiles_free(&plan->before);
	return -ENOMEM;
}

void plan_end(struct plan *plan)
{
	tiles_free(&plan->before);
	tiles_free(&plan->after);
}

static bool is_own(const struct plan *plan, const struct tile *tile)
{
	return tile_is_of(tile, plan->rules.hid);
}

static bool is_free(const struct tile *tile, bool unclean)
{
	return tile_is_clean(tile) ? tile->epoch || unclean : tile->gone && unclean;
}

/* A run of free tiles, and whether it touches tiles of this host that can grow. */
struct run {
	uint32_t first, last; /* leaves */
	uint32_t tiles;
	bool after_own, before_own;
};

static uint32_t run_size(const struct run *run)
{
	return run->last - run->first + 1;
}

static bool can_grow(const struct plan *plan, uint32_t at)
{
	const struct tile *tile = &plan->after.list[at];

	return at < plan->after.count && is_own(plan, tile) && !tile->fixed && !plan->rules.single;
}

/* Finds the next run from tile *@at on, and moves *@at behind it. False: there is none. */
static bool next_run(const struct plan *plan, uint32_t *at, bool unclean, struct run *run)
{
	const struct tiles *tiles = &plan->after;

	while (*at < tiles->count && !is_free(&tiles->list[*at], unclean))
		++*at;
	if (*at == tiles->count)
		return false;
	*run = (struct run){.first = tiles->list[*at].first};
	run->after_own = *at && can_grow(plan, *at - 1) &&
			 tiles->list[*at - 1].last + 1 == run->first;
	do {
		run->last = tiles->list[(*at)++].last;
		run->tiles++;
	} while (*at < tiles->count && is_free(&tiles->list[*at], unclean) &&
		 tiles->list[*at].first == run->last + 1);
	run->before_own = can_grow(plan, *at) && tiles->list[*at].first == run->last + 1;
	return true;
}

/* Compares two runs for @wanted leaves: more than 0 if @a is better. */
static int compare(const struct run *a, const struct run *b, uint32_t wanted)
{
	int touches = (a->after_own || a->before_own) - (b->after_own || b->before_own);
	uint32_t fits = run_size(a) < wanted ? run_size(a) : wanted;
	uint32_t other = run_size(b) < wanted ? run_size(b) : wanted;

	return touches ? touches : fits > other ? 1 : fits < other ? -1 : 0;
}

/* Chooses the run to take from; with @touching one that makes no other tile. False: none. */
static bool choose_run(struct plan *plan, uint32_t wanted, bool unclean, bool touching,
		       struct run *best)
{
	uint64_t equals = 0, weight;
	uint32_t at = 0;
	struct run run;

	while (next_run(plan, &at, unclean, &run)) {
		int better = equals ? compare(&run, best, wanted) : 1;

		if ((touching && !run.after_own && !run.before_own) || better < 0)
			continue;
		weight = plan->rules.single ? run_size(&run) : 1;
		equals = better ? weight : equals + weight;
		if (draw(plan) % equals < weight)
			*best = run;
	}
	return equals;
}

/* Chooses which @size leaves of @run are taken; returns the first. */
static uint32_t choose_place(struct plan *plan, const struct run *run, uint32_t size)
{
	uint32_t spare = run_size(run) - size;

	if (run->after_own)
		return run->first;
	if (run->before_own)
		return run->last - size + 1;
	if (plan->rules.single)
		return run->first + (uint32_t)(draw(plan) % (spare + 1));
	if (run_size(run) / ROOMY_PARTS >= size)
		return run->first + size + (uint32_t)(draw(plan) % (spare - 2 * size + 1));
	return draw(plan) % 2 ? run->first : run->last - size + 1;
}

/* Merges the tile at @at, of this host, with those beside it. */
static void merge_own(struct plan *plan, uint32_t at)
{
	while (at && !plan->rules.single && tiles_can_merge(&plan->after, at - 1))
		at--;
	while (!plan->rules.single && tiles_can_merge(&plan->after, at))
		tiles_merge(&plan->after, at, &plan->rules.full);
}

/* Makes the free leaves from @first to @last this host's. */
static int own(struct plan *plan, uint32_t first, uint32_t last)
{
	struct tiles *after = &plan->after;

	if (!tiles_cut(after, first) || !tiles_cut(after, last + 1))
		return -ENOMEM;
	for (uint32_t i = tiles_find(after, first); i < after->count && after->list[i].last <= last;
	     i++) {
		struct tile *tile = &after->list[i];

		plan->gains[plan->gain_count++] = *tile;
		*tile = (struct tile){.first = tile->first, .last = tile->last};
		memcpy(tile->hid, plan->rules.hid, HID_TEXT);
	}
	merge_own(plan, tiles_find(after, first));
	return 0;
}

static uint32_t count_own(const struct plan *plan)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < plan->after.count; i++)
		count += is_own(plan, &plan->after.list[i]);
	return count;
}

/* Tells whether a transaction has room for taking tiles of @run, too. */
static bool has_room(const struct plan *plan, const struct run *run)
{
	return plan_change_count(plan) + run->tiles + EDGES <= PLAN_CHANGES_MAX &&
	       plan->gain_count + run->tiles <= PLAN_CHANGES_MAX;
}

/* A run of more tiles than there is room for begins with as many as there is. */
static void shorten(const struct plan *plan, struct run *run)
{
	uint32_t used = plan_change_count(plan) + EDGES;
	uint32_t room = used < PLAN_CHANGES_MAX ? PLAN_CHANGES_MAX - used : 0;
	uint32_t at = tiles_find(&plan->after, run->first);

	if (run->tiles <= room || !room)
		return;
	if (run->before_own && !run->after_own) {
		at += run->tiles - room;
		run->first = plan->after.list[at].first;
	} else {
		run->last = plan->after.list[at + room - 1].last;
		run->before_own = false;
	}
	run->tiles = room;
}

int plan_take(struct plan *plan, uint32_t wanted, bool unclean)
{
	bool single = plan->rules.single;
	uint32_t taken = 0;

	while (taken < wanted) {
		uint32_t more = single ? 1 : wanted - taken, first, size;
		bool touching = !single && count_own(plan) >= PLAN_OWN_MAX;
		struct run run = {.tiles = 0};
		int err;

		if (!choose_run(plan, more, unclean, touching, &run))
			break;
		shorten(plan, &run);
		if (!has_room(plan, &run))
			break;
		size = run_size(&run) < more ? run_size(&run) : more;
		first = choose_place(plan, &run, size);
		err = own(plan, first, first + size - 1);
		if (err)
			return err;
		taken += size;
	}
	return (int)taken;
}

int plan_take_leaf(struct plan *plan, uint32_t leaf, bool unclean)
{
	uint32_t at = tiles_find(&plan->after, leaf);
	struct run run = {.first = leaf, .last = leaf, .tiles = 1};
	int err;

	if (at == plan->after.count || plan->after.list[at].first > leaf ||
	    !is_free(&plan->after.list[at], unclean) || !has_room(plan, &run))
		return 0;
	err = own(plan, leaf, leaf);
	return err ? err : 1;
}

int plan_give_run(struct plan *plan, uint32_t first, uint32_t last, uint32_t epoch,
		  const struct rest *rest)
{
	struct tiles *after = &plan->after;
	struct tile *tile;

	if (!tiles_cut(after, first) || !tiles_cut(after, last + 1))
		return -ENOMEM;
	tile = &after->list[tiles_find(after, first)];
	*tile = (struct tile){.first = first, .last = last, .epoch = epoch, .rest = *rest};
	return (int)(last - first + 1);
}

/* Finds the smallest tile that can be given: so the number of tiles falls. */
static const struct tile *smallest_own(const struct plan *plan)
{
	const struct tile *best = NULL;

	for (uint32_t i = 0; i < plan->after.count; i++) {
		const struct tile *tile = &plan->after.list[i];

		if (is_own(plan, tile) && !tile->fixed &&
		    (!best || tile_size(tile) < tile_size(best)))
			best = tile;
	}
	return best;
}

static bool is_free_at(const struct plan *plan, uint32_t leaf)
{
	uint32_t at = tiles_find(&plan->after, leaf);

	return at < plan->after.count && plan->after.list[at].first <= leaf &&
	       tile_is_clean(&plan->after.list[at]);
}

int plan_give(struct plan *plan, uint32_t given, uint32_t epoch, const struct rest *rest)
{
	struct rest left = *rest;
	uint32_t done = 0;

	while (done < given && plan_change_count(plan) + 3 <= PLAN_CHANGES_MAX) {
		const struct tile *tile = smallest_own(plan);
		uint32_t size, first;
		struct rest part;
		int err;

		if (!tile)
			break;
		size = tile_size(tile) < given - done ? tile_size(tile) : given - done;
		first = tile->first;
		if (size < tile_size(tile) && (!first || !is_free_at(plan, first - 1)))
			first = tile->last - size + 1;
		part = rest_take(&left, size, given - done);
		err = plan_give_run(plan, first, first + size - 1, epoch, &part);
		if (err < 0)
			return err;
		done += size;
	}
	return (int)done;
}

void plan_tidy(struct plan *plan)
{
	struct tiles *after = &plan->after;

	for (uint32_t i = 0; i < after->count; i++) {
		while (is_own(plan, &after->list[i]) && !plan->rules.single &&
		       tiles_can_merge(after, i) && plan_change_count(plan) + 3 <= PLAN_CHANGES_MAX)
			tiles_merge(after, i, &plan->rules.full);
	}
}

static bool is_same(const struct tile *a, const struct tile *b)
{
	bool same = a->first == b->first && a->last == b->last && tile_is_of(a, b->hid);

	if (!same || !tile_is_clean(a))
		return same;
	return a->epoch == b->epoch && rest_is_equal(&a->rest, &b->rest);
}

/* Calls @change for those of @tiles that are not in @others. */
static void differences(const struct tiles *tiles, const struct tiles *others, bool there,
			void (*change)(void *of, const struct tile *tile, bool there), void *of)
{
	uint32_t other = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		while (other < others->count && others->list[other].first < tile->first)
			other++;
		if (other == others->count || !is_same(tile, &others->list[other]))
			change(of, tile, there);
	}
}

void plan_changes(const struct plan *plan,
		  void (*change)(void *of, const struct tile *tile, bool there), void *of)
{
	differences(&plan->before, &plan->after, true, change, of);
	differences(&plan->after, &plan->before, false, change, of);
}

static void count_change(void *of, const struct tile *tile, bool there)
{
	(void)tile;
	(void)there;
	++*(uint32_t *)of;
}

uint32_t plan_change_count(const struct plan *plan)
{
	uint32_t count = 0;

	plan_changes(plan, count_change, &count);
	return count;
}
