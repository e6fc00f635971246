/*
 * units - the limits of a limiter that have a unit by name: `rate` is `60/min tpm=90000/min`.
 *
 * A take has amounts of several units, waiter->amounts, beside waiter->tokens, which is of the unit
 * without a name. It is granted when each limiter of its path has all of them at one instant, and
 * then all are taken together. A take neither needs nor takes what it does not name; an amount of 0
 * waits for a debt, as a take of 0 does. A limiter of the path that has no such unit is not charged
 * for it. The order among siblings and `adapt` know the unit without a name alone; a take without
 * any of that has its turns by the first amount that it names.
 *
 * Limits with units are behind the others, from limiter->plain_count to limiter->bucket_count, so
 * takes without amounts do not meet them. The counts of a limit are in units_counts(limiter), at
 * its index; of several limits of one unit, at each of them.
 */
#ifndef RATEFS_CORE_UNITS_H
#define RATEFS_CORE_UNITS_H

#include "core/limiter/bucket.h"
#include "core/limiter/shape.h"
#include "core/values/amounts.h"

/* Of a limit with a unit. */
struct unit_count {
	uint64_t granted, charged, returned; /* as the counters of those names */
	uint64_t wanted;		     /* by waiters here and below */
	uint64_t polled;		     /* kept for pollers here and below */
	uint64_t kept;			     /* for the saver, see saving.h */
};

struct units {
	struct unit_count of[LIMITS_MAX];
};

/* The memory of the buckets of a limiter that has units. */
struct unit_buckets {
	struct bucket buckets[LIMITS_MAX]; /* first */
	struct units units;
};

/* Returns the counts of @limiter, which are behind its buckets; NULL: no limit has a unit. */
static inline struct units *units_counts(const struct limiter *limiter)
{
	return limiter->plain_count < limiter->bucket_count
		       ? &((struct unit_buckets *)limiter->buckets)->units
		       : NULL;
}

/* Returns what @waiter counts for in the order among siblings; of a grant, @tokens of it. */
static inline uint64_t units_size(const struct waiter *waiter, uint64_t tokens)
{
	return tokens || !waiter->amounts ? tokens : waiter->amounts->of[0].tokens;
}

/* Tells whether a limit of @settings has a unit. */
bool units_are_in(const struct settings *settings);

/* Returns the bytes that the buckets of @settings take, with what is counted of units. */
size_t units_bytes(const struct settings *settings);

/*
 * Returns which of the @count limits of @old limit @i of @settings was before: the first limit of a
 * unit was the first one of it, and so on; those of windows of the calendar by themselves. @count:
 * it is new.
 */
uint32_t units_before(const struct settings *old, uint32_t count, const struct settings *settings,
		      uint32_t i);

/* Counts the amounts that waiters of @limiter and below it want anew: it has units it had not. */
void units_recount(struct limiter *limiter);

/* Tells whether a limiter of the path of @limiter has @unit; with @of_key, or its keys have it. */
bool units_know(const struct limiter *limiter, bool of_key, const char unit[UNIT_TEXT]);

/*
 * Tells whether @limiter itself has @amounts beside what is kept for its saver, if that comes
 * before (@is_behind). It is refilled.
 */
bool units_have(const struct limiter *limiter, const struct amounts *amounts, bool is_behind);

/* Returns when it has; NEVER_NS. */
uint64_t units_when(const struct limiter *limiter, const struct amounts *amounts, bool is_behind,
		    uint64_t now_ns);

/* Tells whether it and those above it can save up @amounts, see limiter_can_hold(). */
bool units_can_hold(const struct limiter *limiter, const struct amounts *amounts);

/* Take @amounts from, or put them back into, the buckets of @limiter itself. */
void units_take(const struct schedule *schedule, struct limiter *limiter,
		const struct amounts *amounts);
void units_put(struct limiter *limiter, const struct amounts *amounts, bool beside_polled);

/* The counts of a unit. */
enum unit_sum { UNIT_GRANTED, UNIT_CHARGED, UNIT_RETURNED, UNIT_WANTED, UNIT_POLLED };

/* Adds @amounts to a count of @limiter itself, or subtracts them. */
void units_count(struct limiter *limiter, enum unit_sum sum, const struct amounts *amounts,
		 bool less);

/* Tells whether so much was taken, here and all the way up, and has not come back. */
bool units_owe(const struct limiter *limiter, const struct amounts *amounts);

/* The part of saving.h that is about units; @keep as there. */
void units_turn(struct limiter *limiter, const struct waiter *current, bool keep);
void units_keep(struct limiter *limiter, bool begins, const struct waiter *saver);
void units_move_aside(struct limiter *limiter, const struct waiter *current, bool back);

/*
 * Returns when @limiter itself has what is asked of it until a reader that comes now has @amounts
 * (or NULL): with what waiters want, if they come first (@is_contested).
 */
uint64_t units_forecast(const struct limiter *limiter, const struct amounts *amounts,
			bool is_contested, bool is_behind, uint64_t now_ns);

#endif
