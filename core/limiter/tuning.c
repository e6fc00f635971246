/* tuning - the settings that keys of a limiter have had, see tuning.h. */
#include "core/limiter/tuning.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4 };

static struct tuning tuning_of(const struct rate *rate, uint64_t burst, bool full, uint64_t now_ns)
{
	struct tuning tuning = {.rate = *rate, .burst = burst, .full = full};

	tuning.limited = !rate_is_unlimited(rate);
	if (tuning.limited)
		bucket_init(&tuning.bucket, rate, burst, 0, now_ns);
	else
		tuning.bucket.filled_ns = now_ns;
	return tuning;
}

int tunings_init(struct tunings *tunings, const struct rate *rate, uint64_t burst, uint64_t now_ns)
{
	*tunings = (struct tunings){.list = calloc(FIRST_ROOM, sizeof(*tunings->list))};
	if (!tunings->list)
		return -ENOMEM;
	tunings->room = FIRST_ROOM;
	tunings->list[tunings->count++] = tuning_of(rate, burst, false, now_ns);
	return 0;
}

static void drop_first(struct tunings *tunings)
{
	tunings->first++;
	tunings->count--;
	memmove(tunings->list, tunings->list + 1, tunings->count * sizeof(*tunings->list));
}

/* Drops the first; the second has the lesser rate and burst of both. */
static void fold_oldest(struct tunings *tunings)
{
	const struct tuning *a = &tunings->list[0];
	struct tuning *b = &tunings->list[1];
	const struct rate *rate = rate_compare(&a->rate, &b->rate) < 0 ? &a->rate : &b->rate;
	uint64_t burst = a->burst < b->burst ? a->burst : b->burst;

	*b = tuning_of(rate, burst, false, b->bucket.filled_ns);
	drop_first(tunings);
}

static bool grow_list(struct tunings *tunings)
{
	struct tuning *list;

	if (tunings->room == TUNINGS_MAX)
		return false;
	list = realloc(tunings->list, tunings->room * 2 * sizeof(*list));
	if (!list)
		return false;
	tunings->list = list;
	tunings->room *= 2;
	return true;
}

void tunings_add(struct tunings *tunings, const struct rate *rate, uint64_t burst, bool full,
		 uint32_t needed, uint64_t now_ns)
{
	while (tunings->count > 1 && tunings->first < needed)
		drop_first(tunings);
	if (tunings->count == tunings->room && !grow_list(tunings))
		fold_oldest(tunings);
	tunings->list[tunings->count++] = tuning_of(rate, burst, full, now_ns);
}

const struct tuning *tunings_now(const struct tunings *tunings)
{
	return &tunings->list[tunings->count - 1];
}

uint32_t tunings_number(const struct tunings *tunings)
{
	return tunings->first + tunings->count - 1;
}

static void fill_bucket(struct bucket *bucket, const struct key_level *level, bool folded)
{
	bucket->level = level->level;
	bucket->part = level->part;
	bucket->filled_ns = level->filled_ns;
	/* A part of a token was counted in units of a rate that is not remembered. */
	if (folded)
		bucket->part = 0;
	bucket_leave(bucket, bucket->burst);
}

/*
 * Tells whether the tuning @at is the first share that a host of a fleet ever had: until then it
 * had none.
 */
static bool is_first_share(const struct tunings *tunings, uint32_t at)
{
	return at == 1 && !tunings->first && !tunings->list[0].rate.amount;
}

bool tunings_are_new(const struct tunings *tunings)
{
	return tunings->count == 1 && is_first_share(tunings, 1);
}

bool tunings_bucket(const struct tunings *tunings, const struct key_level *level, uint64_t now_ns,
		    struct bucket *bucket)
{
	bool folded = level->tuning < tunings->first;
	uint32_t at = folded ? 0 : level->tuning - tunings->first;
	const struct tuning *tuning = &tunings->list[at];
	bool limited = tuning->limited;

	*bucket = tuning->bucket;
	if (limited)
		fill_bucket(bucket, level, folded);
	while (++at < tunings->count) {
		tuning = &tunings->list[at];
		if (tuning->limited && limited && !(tuning->full && is_first_share(tunings, at))) {
			bucket_retune(bucket, &tuning->rate, tuning->burst, 0,
				      tuning->bucket.filled_ns);
		} else {
			*bucket = tuning->bucket;
			if (tuning->limited && tuning->full)
				bucket_fill(bucket);
		}
		limited = tuning->limited;
	}
	if (limited)
		bucket_refill(bucket, now_ns);
	return limited;
}

void tunings_rest(const struct tunings *tunings, const struct bucket *bucket, uint64_t now_ns,
		  struct key_level *level)
{
	level->level = bucket ? bucket->level : 0;
	level->part = bucket ? bucket->part : 0;
	level->filled_ns = now_ns;
	level->tuning = tunings_number(tunings);
	assert(level->level >= 0);
}

void tunings_free(struct tunings *tunings)
{
	free(tunings->list);
}
