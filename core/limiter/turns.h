/*
 * turns - whose turn it is: waiters for tokens, and openers for slots.
 *
 * - A waiter waits in the queue of the limiter it asked; within a queue the order of arrival holds.
 * - The waiter whose turn it is in a limiter is chosen among the first in its own queue and the
 *   waiters that its children put forward: by their order as siblings, see order.h. A limiter that
 *   has no children, keys or partitions has no order, and its first waiter has the turn.
 * - A limiter that has what that waiter wants puts it forward to its parent, where it takes its
 *   turn among the siblings. Nothing is taken yet.
 * - The waiter that a limiter would put forward to the root, which limits nothing, is granted: its
 *   tokens, or its slot, are taken all along its path at one instant.
 * - A reader that has not waited is granted at once if at each limiter of its path either no
 *   waiter has the turn, or the order would choose it now before that waiter; and there is what it
 *   wants. In its own queue it overtakes no waiter. So it gets what it would get by waiting.
 *
 * So a limiter that has nothing never holds up its siblings, small takes that came later never
 * starve a large one in its queue, and giving up costs nothing anywhere. While a limiter has
 * nothing its siblings get what flows into the parent; the tokens that the parent had saved up for
 * its waiter are kept, see saving.h.
 */
#ifndef RATEFS_CORE_TURNS_H
#define RATEFS_CORE_TURNS_H

#include "core/limiter/order.h"
#include "core/limiter/queue.h"

struct limiter;
struct schedule;

/* The waiters of one limiter and below it, of one kind. */
struct turns {
	struct queue queue;
	struct order *order; /* owned: of the siblings here; NULL: there never was a child */
	struct sibling
		*sibling;	/* its place in the parent's order; NULL below the root; borrowed */
	struct waiter *current; /* whose turn it is, or NULL */
	uint64_t wanted;	/* tokens that waiters here and below wait for */
	/*
	 * Waiters here and below that want no tokens: openers, and takes of 0, which wait for a
	 * debt.
	 */
	uint32_t wanting_none;
	uint32_t waiting; /* all waiters here and below */
};

/* The rules by which tokens, or slots, are given. */
struct turn_rules {
	bool of_slots; /* not of tokens */
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
	 * Plans when @limiter is to be settled again, unless it is @ready: then it has put its
	 * waiter forward, or schedule->gathers or is frozen. NULL: time changes nothing.
	 */
	void (*plan)(struct schedule *schedule, struct limiter *limiter, bool ready);
};

/* Returns the demand here and below: tokens, and one for each waiter that wants none. */
static inline uint64_t turns_demand(const struct turns *turns)
{
	return turns->wanted + turns->wanting_none;
}

/* Gets the memory for an order of siblings. 0 or -ENOMEM. */
int turns_prepare(struct turns *turns);

/* Gives @turns, which are new, the memory of their place among siblings, for @settings. */
void turns_place(struct turns *turns, struct sibling *sibling, const struct settings *settings);

/* Frees what @turns owns; no waiter is left. */
void turns_free(struct turns *turns);

/*
 * Tells whether a reader that came now would come before the waiter whose turn it is in @turns, if
 * there is one. It asks there (@below is NULL), or below the child that has @below.
 */
bool turns_may_pass(const struct turns *turns, const struct turns *below, uint64_t now_ns);

/*
 * Notes that a reader of @limiter that did not wait was granted @tokens, which have been taken, of
 * the unit that counts in the order; of a slot 1.
 */
void turns_passed(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		  const struct turn_rules *rules);

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
