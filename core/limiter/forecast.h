/*
 * forecast - when waiters have their tokens, as things stand: for `eta`, `waiters`, `within`,
 * `wait_max` and `why`.
 *
 * Each limiter on the way up tells how many tokens it grants until the waiter has its own, see
 * order_ahead(), and when it has them. The latest of these times is the forecast. As long as no
 * other reader comes:
 *
 * - It is exact where no sibling has waiters, here and above.
 * - It is a bound where siblings that have waiters have tokens of their own.
 * - It is an estimate where siblings lack tokens of their own, several limits are on the way,
 *   tokens are released at intervals, or takes are of A to B tokens, of several units or larger
 *   than a burst.
 *
 * All limiters on the way have been refilled at the time @now_ns. NEVER_NS: never.
 */
#ifndef RATEFS_CORE_FORECAST_H
#define RATEFS_CORE_FORECAST_H

#include "core/limiter/shape.h"

/*
 * Returns when a waiter for @tokens, and @amounts (or NULL), has them that comes to @limiter now,
 * if it has to wait.
 */
uint64_t forecast_newcomer(const struct limiter *limiter, uint64_t tokens,
			   const struct amounts *amounts, uint64_t now_ns);

/*
 * Returns when a waiter for @tokens in the queue of @limiter has them. @asked are these and those
 * of the waiters before it in that queue, and so are @amounts (or NULL).
 */
uint64_t forecast_waiter(const struct limiter *limiter, uint64_t asked, uint64_t tokens,
			 const struct amounts *amounts, uint64_t now_ns);

/*
 * Tells in @needs how many tokens @limiter and each one above it has to have, so that a waiter for
 * @tokens that comes to @limiter now has them there: its own, and those of waiters that come before
 * it, if they lack nothing below. At most @most limiters are told of; returns their number.
 */
size_t forecast_needs(const struct limiter *limiter, uint64_t tokens, uint64_t needs[], size_t most,
		      uint64_t now_ns);

/* As forecast_newcomer(), as if this host had all of each limiter of which it holds nothing. */
uint64_t forecast_leased(const struct limiter *limiter, uint64_t tokens,
			 const struct amounts *amounts, uint64_t now_ns);

#endif
