/*
 * strict - a bucket of a strict window, `10/60s,strict`: never more than 10 tokens in any 60 s.
 *
 * The window at t is (t - w, t]: tokens taken exactly w apart are in no common one. The capacity is
 * the limit, the level is the capacity less the tokens in the window, and it is negative where
 * charges took more. A token comes back when its stamp (stamps.h) leaves the window, so a take
 * above the limit never can be had.
 *
 * Of some tokens it is known only that they were taken by grid_ns: those of before a takeover or a
 * new window, and stamps that were joined for want of memory. There are as many of them as the
 * level says beside the log. They are older than the log, or count as taken later than they were.
 *
 * Tokens that come back unused free the oldest of the window. Whichever of it they were: with each
 * stamp in place of an earlier one, no window has fewer tokens than were used. Where the window is
 * no longer than a poller's tokens are kept (poller.h) they may have left it by then, and free
 * nothing. Nor do they while there are tokens without a stamp, which may stand for more than are
 * counted.
 */
#ifndef RATEFS_CORE_STRICT_H
#define RATEFS_CORE_STRICT_H

#include "core/limiter/bucket.h"

/* Makes a bucket of the window of @rate: all its tokens count as taken at @now_ns. */
void strict_init(struct bucket *bucket, const struct rate *rate, uint64_t now_ns);

/* Empties the log, as if nothing had been taken yet. */
void strict_fill(struct bucket *bucket);

/* Has stamps leave the window that ends at @now_ns. */
void strict_refill(struct bucket *bucket, uint64_t now_ns);

/* Takes @tokens at @at_ns, or as of when it was refilled if that is later. */
void strict_take(struct bucket *bucket, uint64_t tokens, uint64_t at_ns);

/*
 * Frees up to @tokens of the window, the oldest ones of those with a stamp, or the newest ones.
 * Returns how many.
 */
uint64_t strict_free_oldest(struct bucket *bucket, uint64_t tokens);
uint64_t strict_free_newest(struct bucket *bucket, uint64_t tokens);

/* Returns how many of @tokens that come back find tokens to free beside @others, see above. */
uint64_t strict_put(struct bucket *bucket, uint64_t tokens, uint64_t others);

/*
 * Returns when @tokens may be taken, if no other take comes before. More than the limit are those
 * of several takes, each of which is in the window of the next.
 */
uint64_t strict_when(const struct bucket *bucket, uint64_t tokens, uint64_t now_ns);

/*
 * Has @bucket, which is new, take over the tokens of @old, where one of the two at least has a
 * strict window. Those that may have been taken, but are not known, count as taken now; of a
 * shorter window, as taken before the one that ends now began.
 */
void strict_follow(struct bucket *bucket, struct bucket *old, uint64_t now_ns);

/*
 * The bucket is another host's share of the limit now: its level stays as it was, @level. Tokens
 * that came with leaves count as taken now; those that went with them are the newest.
 */
void strict_hold_level(struct bucket *bucket, int64_t level);

#endif
