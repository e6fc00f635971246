/*
 * source - INTERFACE to where settings live: changes go out, answers come in.
 *
 * The engine hands over one change at a time, complete and checked, and goes on with everything
 * else until the answer comes. Where nothing needs to be kept the answer comes at once. Another
 * source is another implementation of this struct in fs/NAME/.
 *
 * The source of a fleet (fleet.h) takes part in every step, too: this host's share of a limiter
 * comes and goes with time.
 */
#ifndef RATEFS_CORE_SOURCE_H
#define RATEFS_CORE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct change;
struct limiter;

struct source {
	/*
	 * Makes @change durable, then calls change_stored() with 0 or -errno: from within this
	 * call, or later under the engine's lock. The change stays in place until then.
	 */
	void (*store)(struct source *source, struct change *change);

	/* Any of the others may be NULL; but for the first they are those of a fleet. */

	/*
	 * Notes that tokens of @limiter, which has windows of the calendar and may be a key, were
	 * taken or came back. The caller of the engine calls it.
	 */
	void (*used)(struct source *source, struct limiter *limiter);

	/*
	 * Begins a step, before a waiter is served: takes away the share that may not be used any
	 * more.
	 */
	void (*before)(struct source *source, uint64_t now_ns);
	/* Goes on when all waiters that were due are served. */
	void (*after)(struct source *source, uint64_t now_ns);
	/* Returns when there must be a step at the latest, or NEVER_NS. */
	uint64_t (*next_ns)(const struct source *source);
	/* Gives @limiter, which is about to be made, a holding. 0 or -ENOMEM. */
	int (*adopt)(struct source *source, struct limiter *limiter);
	/* Notes that tokens or slots of @limiter were asked for. */
	void (*rouse)(struct source *source, struct limiter *limiter);
	/* Notes that the service behind @limiter, which has a holding, told of its quota. */
	void (*told)(struct source *source, struct limiter *limiter);
	/* Notes that the tokens of the open key @limiter did not suffice. */
	void (*miss)(struct source *source, struct limiter *limiter);
	/* Tells whether this host may soon have more of @limiter. */
	bool (*may_come)(struct source *source, const struct limiter *limiter);
	/* Tells whether it may soon have more slots of @limiter, for openers that wait. */
	bool (*slots_may_come)(struct source *source, const struct limiter *limiter);
};

#endif
