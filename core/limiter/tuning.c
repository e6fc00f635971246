/* tuning - the settings that keys of a limiter have had, see tuning.h. */
#include "core/limiter/tuning.h"
#include "core/limiter/stamps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 4 };

#define TUNING_MASK ((UINT32_C(1) << 31) - 1)

static struct tuning tuning_of(const struct rate *rate, uint64_t burst, struct key_part part,
			       bool full, uint64_t now_ns)
{
	struct tuning tuning = {.rate = *rate, .burst = burst, .part = part, .full = full};

	tuning.limited = !rate_is_unlimited(rate);
	if (tuning.limited)
		bucket_init(&tuning.bucket, rate, burst, 0, now_ns);
	else
		tuning.bucket.filled_ns = now_ns;
	return tuning;
}

int tunings_init(struct tunings *tunings, const struct rate *rate, uint64_t burst,
		 struct key_part part, uint64_t now_ns)
{
	*tunings = (struct tunings){.list = calloc(FIRST_ROOM, sizeof(*tunings->list))};
	if (!tunings->list)
		return -ENOMEM;
	tunings->room = FIRST_ROOM;
	tunings->list[tunings->count++] = tuning_of(rate, burst, part, false, now_ns);
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
	bool is_less = (uint64_t)a->part.parts * b->part.of < (uint64_t)b->part.parts * a->part.of;

	*b = tuning_of(rate, burst, is_less ? a->part : b->part, false, b->bucket.filled_ns);
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

void tunings_add(struct tunings *tunings, const struct rate *rate, uint64_t burst,
		 struct key_part part, bool full, uint32_t needed, uint64_t now_ns)
{
	while (tunings->count > 1 && tunings->first < needed)
		drop_first(tunings);
	if (tunings->count == tunings->room && !grow_list(tunings))
		fold_oldest(tunings);
	tunings->list[tunings->count++] = tuning_of(rate, burst, part, full, now_ns);
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
	/* Of a log it is not known any more in which window it was. */
	if (folded && (level->is_strict || bucket_is_strict(bucket)))
		return;
	bucket->level = level->level;
	bucket->filled_ns = level->filled_ns;
	if (bucket_is_strict(bucket)) {
		bucket->released = level->level;
		bucket->grid_ns = level->filled_ns;
		bucket->stamps = level->stamps;
		return;
	}
	bucket->part = level->part;
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
	return at == 1 && !tunings->first &&
	       (!tunings->list[0].rate.amount || !tunings->list[0].part.parts);
}

bool tunings_are_new(const struct tunings *tunings)
{
	return tunings->count == 1 && is_first_share(tunings, 1);
}

/* Gives an empty bucket as of the beginning of @tuning. False: there is no limit. */
static bool begin_bucket(const struct tuning *tuning, const struct override *override,
			 struct bucket *bucket)
{
	struct rate rate = tuning->rate;
	uint64_t burst = tuning->burst;

	*bucket = tuning->bucket;
	if (!override)
		return tuning->limited;
	settings_override(override, &tuning->part, &rate, &burst);
	if (rate_is_unlimited(&rate))
		return false;
	bucket_init(bucket, &rate, burst, 0, tuning->bucket.filled_ns);
	return true;
}

/* Changes @bucket to what counts of @tuning from @at_ns on. */
static void retune(const struct tuning *tuning, const struct override *override, uint64_t at_ns,
		   struct bucket *bucket)
{
	struct rate rate = tuning->rate;
	uint64_t burst = tuning->burst;

	if (override)
		settings_override(override, &tuning->part, &rate, &burst);
	bucket_retune(bucket, &rate, burst, 0, at_ns);
}

bool tunings_bucket(const struct tunings *tunings, const struct key_level *level,
		    const struct override *override, uint64_t now_ns, struct bucket *bucket)
{
	bool folded = level->tuning < tunings->first;
	uint32_t at = folded ? 0 : level->tuning - tunings->first;
	bool limited = begin_bucket(&tunings->list[at], override, bucket);

	if (limited)
		fill_bucket(bucket, level, folded);
	while (++at < tunings->count) {
		const struct tuning *tuning = &tunings->list[at];
		bool was_limited = limited;
		struct bucket next;

		limited = begin_bucket(tuning, override, &next);
		if (limited && was_limited && !(tuning->full && is_first_share(tunings, at))) {
			if (bucket_is_strict(bucket) || bucket_is_strict(&next))
				*bucket = next;
			else
				retune(tuning, override, tuning->bucket.filled_ns, bucket);
			continue;
		}
		*bucket = next;
		if (limited && tuning->full)
			bucket_fill(bucket);
	}
	if (limited)
		bucket_refill(bucket, now_ns);
	return limited;
}

/* Has @bucket, which is empty, be so as of @at_ns. */
static void begin_at(struct bucket *bucket, uint64_t at_ns)
{
	bucket->filled_ns = at_ns;
	if (bucket_is_strict(bucket))
		bucket->grid_ns = stamps_round(at_ns, bucket->interval_ns, bucket->burst);
}

bool tunings_override(const struct tunings *tunings, const struct key_level *level,
		      const struct override *old, const struct override *new, bool full,
		      uint64_t now_ns, struct bucket *bucket)
{
	bool was_limited = tunings_bucket(tunings, level, old, now_ns, bucket);
	struct bucket next;

	if (!begin_bucket(tunings_now(tunings), new, &next))
		return false;
	if (was_limited && !bucket_is_strict(bucket) && !bucket_is_strict(&next)) {
		retune(tunings_now(tunings), new, now_ns, bucket);
		return true;
	}
	*bucket = next;
	begin_at(bucket, now_ns);
	if (full && !was_limited)
		bucket_fill(bucket);
	return true;
}

bool tunings_begin(const struct tunings *tunings, const struct override *override,
		   uint64_t since_ns, struct bucket *bucket)
{
	bool limited = begin_bucket(tunings_now(tunings), override, bucket);

	begin_at(bucket, since_ns);
	return limited;
}

void tunings_rest(const struct tunings *tunings, const struct bucket *bucket, uint64_t now_ns,
		  struct key_level *level)
{
	level->level = bucket ? bucket->level : 0;
	level->filled_ns = now_ns;
	level->tuning = tunings_number(tunings) & TUNING_MASK;
	level->is_strict = bucket && bucket_is_strict(bucket);
	if (level->is_strict) {
		level->stamps = bucket->stamps;
		level->filled_ns = bucket->grid_ns;
		return;
	}
	level->part = bucket ? bucket->part : 0;
}

void tunings_rest_joined(const struct tunings *tunings, const struct bucket *bucket,
			 uint64_t now_ns, struct key_level *level)
{
	tunings_rest(tunings, bucket, now_ns, level);
	if (!level->is_strict)
		return;
	level->stamps = &STAMPS_NONE;
	level->filled_ns = stamps_round(now_ns, bucket->interval_ns, bucket->burst);
}

void tunings_end_level(struct key_level *level, const struct bucket *bucket)
{
	if (level->is_strict &&
	    !(bucket && bucket_is_strict(bucket) && bucket->stamps == level->stamps))
		stamps_free(&level->stamps);
	level->is_strict = false;
}

void tunings_free(struct tunings *tunings)
{
	free(tunings->list);
}
