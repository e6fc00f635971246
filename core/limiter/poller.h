/*
 * poller - a program that waits for tokens by poll(2), and has its turn as a blocked reader has.
 *
 * - A poller that finds no tokens takes a place at the end of the queue of its limiter: it wants
 *   its tokens, and other waiters stand behind it. It has one place however often it polls.
 * - When its turn comes, the poller is granted its tokens as a reader is, and is called: the caller
 *   tells the program. So beside N blocked readers a poller gets one token in N + 1.
 * - The tokens of a called poller are kept for it for POLLER_NS: a read in that time has them,
 *   whatever was granted to others meanwhile. No other waiter is held up by that. They count as
 *   granted when the poller is called.
 * - A poller that does not read in that time has no place any more. Its tokens go back as a charge
 *   of so many fewer, as far as the burst has room for them beside the tokens that are kept for
 *   others: they are the next waiter's, a second late. So a poller that is absent costs others no
 *   more than a reader does that takes them, and no token where the burst has room.
 * - Tokens that go back make room for no more than the burst. So over any window of length w no
 *   more than rate * (w + POLLER_NS) + burst tokens are read, however many pollers come late.
 * - No tokens are saved up for a poller that wants more than limiter_can_hold(): it has no place,
 *   and is told at once that a read is answered now, with a refusal.
 * - A poller with an expiry waits no longer than a reader would. Then it is told: the read that
 *   comes of it is refused, unless there are tokens for it now.
 * - A poller is told, too, when it cannot be called any more: its limiter goes, or a change makes
 *   its tokens more than limiter_can_hold().
 *
 * A place needs no memory but the poller's own, so there is room for each.
 */
#ifndef RATEFS_CORE_POLLER_H
#define RATEFS_CORE_POLLER_H

#include "core/values/quantity.h"
#include "core/limiter/queue.h"

struct limiter;
struct schedule;

#define POLLER_NS NSEC_PER_SEC

enum poller_state {
	POLLER_AWAY,   /* has no place */
	POLLER_WAITS,  /* in the queue of its limiter */
	POLLER_CALLED, /* its tokens are kept for it */
};

/* A poller. The memory is the caller's: from poller_init() until limiter_unpoll(). */
struct poller {
	struct waiter waiter; /* its limiter is borrowed, and held as long as the poller is there */
	struct list_link called; /* called: in schedule->called */
	uint64_t until_ns;	 /* called: so long its tokens are kept */
	uint64_t within_ns;	 /* so long it waits at most, if it has an expiry */
	uint8_t state;		 /* enum poller_state */
	bool answered;		 /* in schedule->done, to be collected */
	bool late;		 /* it waited @within_ns in vain: the next read is refused */
};

/* Returns the poller of @waiter, which is one (waiter->is_poller). */
static inline struct poller *poller_of(struct waiter *waiter)
{
	return container_of(waiter, struct poller, waiter);
}

/*
 * Makes a poller of @tokens to @most (up to TOKENS_MAX) of @limiter, and of @amounts (borrowed; or
 * NULL), without a place.
 */
void poller_init(struct poller *poller, struct limiter *limiter, uint64_t tokens, uint64_t most,
		 const struct amounts *amounts);

/*
 * Has @poller, which is away, wait for @within_ns at most. @expiry is the caller's memory for that.
 */
void poller_limit(struct poller *poller, struct expiry *expiry, uint64_t within_ns);

/* Notes that @poller, which is away, waits from now on. The caller puts it into the queue. */
void poller_join(struct poller *poller);

/*
 * Notes that @poller, which the caller has taken out of the queue if it was there, waits no longer;
 * an answer to it is withdrawn. Tokens that are kept for it stay so.
 */
void poller_part(struct schedule *schedule, struct poller *poller);

/* No longer counts the tokens that are kept for pollers of @limiter, which is about to go. */
void poller_forget(struct limiter *limiter);

/* Tells whether @poller is called: then the tokens granted are the caller's, and it is away. */
bool poller_fetch(struct schedule *schedule, struct poller *poller);

/*
 * Puts @poller, which has left its queue, on schedule->done: called if @outcome is 0, away if it is
 * -errno.
 */
void poller_answer(struct schedule *schedule, struct poller *poller, int outcome);

/* Puts @poller on schedule->done with @outcome. */
void poller_tell(struct schedule *schedule, struct poller *poller, int outcome);

#endif
