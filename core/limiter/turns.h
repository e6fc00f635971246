/*
 * turns - whose turn it is: waiters for tokens, and openers for slots, in the order of arrival.
 *
 * - A waiter waits in the queue of the limiter it asked.
 * - The waiter whose turn it is in a limiter is the earliest of the first in its own queue and the
 *   waiters that its children put forward.
 * - A limiter that has what that waiter wants puts it forward to its parent, where it takes its
 *   turn by its ticket, the order of arrival. Nothing is taken yet.
 * - The waiter whose turn it is at the root is granted: its tokens, or its slot, are taken all
 *   along its path at one instant.
 *
 * So a limiter that has nothing never holds up its siblings, small takes that came later never
 * starve a large one, and giving up costs nothing anywhere.
 */
#ifndef RATEFS_CORE_TURNS_H
#define RATEFS_CORE_TURNS_H

#include "core/limiter/queue.h"

struct limiter;
struct schedule;

/* The rules by which tokens, or slots, are given. */
struct turn_rules {
	/* Returns the turns of @limiter; NULL: no waiter ever came here. */
	struct turns *(*turns_of)(struct limiter *limiter);
	/*
	 * Notes that it is the turn of @current in @limiter (NULL: no waiter's). Returns whether
	 * @limiter has now what @current wants.
	 */
	bool (*offer)(const struct schedule *schedule, struct limiter *limiter,
		      const struct waiter *current);
	/* Takes what @waiter wants all along its path. */
	void (*take)(const struct schedule *schedule, struct waiter *waiter);
	/* Answers @waiter, which has left its queue: turns_answer(), or what comes before that. */
	void (*conclude)(struct schedule *schedule, struct waiter *waiter, int outcome);
	/*
	 * Plans when @limiter is to be settled again, unless it is @ready; NULL: time changes
	 * nothing.
	 */
	void (*plan)(struct schedule *schedule, struct limiter *limiter, bool ready);
};

/* Returns the demand here and below: tokens, and one for each waiter that wants none. */
static inline uint64_t turns_demand(const struct turns *turns)
{
	return turns->wanted + turns->wanting_none;
}

/*
 * Puts @waiter into the queue of its limiter: at its place if it has taken one again, at the end
 * otherwise. It may be granted at once; then it comes back through schedule->done.
 */
void turns_join(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules);

/* Takes @waiter out of its queue. Then the limiter is to be settled. */
void turns_leave(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules);

/*
 * Puts @waiter, which has left its queue and is no poller, on schedule->done. Its place, if it has
 * one, is free.
 */
void turns_answer(struct schedule *schedule, struct waiter *waiter, int outcome);

/* Ends the waiting of @waiter, and counts it as cancelled. */
void turns_cancel(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules);

/* Answers all waiters in the queue of @limiter, which is about to go, with -ENODEV. */
void turns_evict(struct schedule *schedule, struct limiter *limiter,
		 const struct turn_rules *rules);

/* Grants what can be granted now, in @limiter and above it. */
void turns_settle(struct schedule *schedule, struct limiter *limiter,
		  const struct turn_rules *rules);

#endif
