/*
 * usage - what a limiter remembers of its readers: how long they waited, when one did, and which
 * of them had how much.
 *
 * The first two are made when a reader first waits in the limiter or below it, or when a key, a
 * partition or a slot of it is used. Readers of keys and partitions count as the limiter's own.
 * Without memory nothing is remembered.
 */
#ifndef RATEFS_CORE_USAGE_H
#define RATEFS_CORE_USAGE_H

#include "core/limiter/pressure.h"
#include "core/limiter/shape.h"
#include "core/limiter/tally.h"
#include "core/limiter/histogram.h"

/* The waits of a limiter; a successor goes on with them. */
struct waited {
	struct histogram tokens; /* its at_once has readers of keys and partitions alone */
	struct histogram slots;
	uint64_t own_waited; /* of those in @tokens, readers of the limiter itself */
	struct pressure pressure;
	bool is_new; /* more than at_once of @tokens has changed since the caller cleared this */
};

struct usage {
	struct waited *waited; /* owned; NULL: none did */
	struct tally tally;    /* of files that were closed */
};

/* Notes that @waiter is granted its tokens, or its slot, now; or that one is that did not wait. */
void usage_granted(const struct schedule *schedule, const struct waiter *waiter);
void usage_slot_at_once(const struct schedule *schedule, struct limiter *limiter);

/* Likewise of tokens of @member, a key or a partition. */
void usage_member_at_once(const struct schedule *schedule, const struct limiter *member);

/* Notes that readers wait in @limiter or below it, or that none does, as its turns have it. */
void usage_stalled(const struct schedule *schedule, struct limiter *limiter);

/* Return how long readers of @limiter waited for tokens, and openers for slots. */
struct histogram usage_of_tokens(const struct limiter *limiter);
struct histogram usage_of_slots(const struct limiter *limiter);

/* Returns the pressure on @limiter at @now_ns. */
struct pressure usage_pressure(const struct limiter *limiter, uint64_t now_ns);

/* Goes on with @waited, of a predecessor, where no reader waits yet. */
void usage_restore(const struct schedule *schedule, struct limiter *limiter,
		   const struct waited *waited);

/* Counts @line for @limiter. */
void usage_tally(struct limiter *limiter, const struct tally_line *line);

/* Returns what is remembered of waits; NULL: nothing. */
static inline struct waited *usage_waited(const struct limiter *limiter)
{
	return limiter->usage ? limiter->usage->waited : NULL;
}

/* Frees what @limiter remembers. */
void usage_free(struct limiter *limiter);

#endif
