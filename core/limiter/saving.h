/*
 * saving - what a limiter saves up for the waiters whose turn it is, or was.
 *
 * A bucket has room for the take of the waiter whose turn it is, and saves tokens up for it. While
 * another waiter has the turn the room stays that of the largest take that had it and still waits.
 * So saved tokens do not overflow, and what is granted stays within the bound of bucket.h.
 *
 * A waiter loses the turn in two ways. Another one comes that is to be served before it, by the
 * order of siblings: that one takes what it wants of the saved tokens. Or a limiter below lacks
 * tokens of its own: then siblings that come later have the turn meanwhile. They get what flows in,
 * and the saved tokens are kept for the saver. The saver is the waiter that comes first, of all
 * those for which the limiter has begun to save up and which still wait.
 *
 * So a limiter saves up for a take by and by, however often the turn is lost: the kept tokens
 * become fewer only by grants to waiters that come first. A waiter that comes later is granted n
 * tokens as soon as the limiter has n beside the kept ones, or n and all that the saver wants; so
 * it waits for the saver no longer than until the tokens for that are there.
 *
 * The saver comes before another waiter if it would in the limiter in which their paths meet, had
 * its limiter there, which is not put forward, the tokens that it lacks.
 */
#ifndef RATEFS_CORE_SAVING_H
#define RATEFS_CORE_SAVING_H

#include <stdbool.h>
#include <stdint.h>

struct limiter;
struct schedule;
struct waiter;

/* Of a limiter that has an order of siblings. Begins as zeros. */
struct saving {
	const struct waiter *largest; /* waits, had its turn, has the most room; NULL */
	const struct waiter *saver;   /* borrowed; NULL: none waits */
	uint64_t kept;		      /* tokens, for the saver; 0 unless @keeps */
	bool keeps; /* a waiter that comes after the saver, or none, has the turn */
};

/*
 * Makes room for the tokens of @current, which is to have the turn in @limiter (NULL: no waiter
 * is), and keeps or takes back those that others leave. The limiter has a bucket, and is refilled.
 */
void saving_turn(const struct schedule *schedule, struct limiter *limiter,
		 const struct waiter *current);

/* Notes that @limiter begins to save up for @current, which has the turn and lacks tokens. */
void saving_begin(struct limiter *limiter, const struct waiter *current);

/* Notes that @waiter, if the limiter had room for it or was saving up, has left. */
void saving_end(struct saving *saving, const struct waiter *waiter);

/* Returns the tokens that @limiter needs to grant @tokens to the waiter that has the turn. */
uint64_t saving_needed(const struct limiter *limiter, uint64_t tokens);

/* Returns likewise those for a reader that comes now, to @asked: @limiter, or one below it. */
uint64_t saving_needed_by(const struct limiter *limiter, const struct limiter *asked,
			  uint64_t tokens, uint64_t now_ns);

/*
 * Tell whether tokens of @limiter are kept from the waiter that has the turn; and from a reader
 * that comes now, to @asked: @limiter, or one below it.
 */
bool saving_holds(const struct limiter *limiter);
bool saving_holds_from(const struct limiter *limiter, const struct limiter *asked, uint64_t now_ns);

/* Returns the tokens needed to grant @tokens beside @kept ones, for a saver that wants @all. */
uint64_t saving_beside(uint64_t tokens, uint64_t kept, uint64_t all);

/* Returns the tokens that are kept in @limiter. */
uint64_t saving_kept(const struct limiter *limiter);

#endif
