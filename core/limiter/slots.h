/*
 * slots - permissions to work on something, held while a file is open: `slot` and `concurrency`.
 *
 * A slot of a limiter is also a slot of each of its ancestors: an opener holds the whole path, or
 * waits and holds nothing. Openers have their turns as readers have, see turns.h.
 *
 * A slot that is asked for its number has the smallest that no other open slot has, in the nearest
 * limiter, from its own upward, that has a number of slots (or its own). While there are N slots at
 * most, numbers are below N. Slots that were not asked have none, and are in nobody's way. In a
 * fleet a number is one of the leaves that this host leases, which it does not give back meanwhile.
 *
 * A slot is lost when another host may open it: its holder is told when it asks for the number.
 *
 * Nothing here depends on time; concurrency.h adapts the number of slots.
 */
#ifndef RATEFS_CORE_SLOTS_H
#define RATEFS_CORE_SLOTS_H

#include "core/limiter/concurrency.h"
#include "core/limiter/numbers.h"
#include "core/limiter/shape.h"
#include "core/limiter/turns.h"

#include "core/values/settings.h"

/* A slot that is open. The memory is the caller's; so is a hold on the limiter while it is open. */
struct slot {
	struct limiter *limiter; /* NULL: it is not open */
	uint64_t opened_ns;
	struct limiter *numbered; /* where it has @number; NULL: it was not asked for one */
	uint32_t number;
	bool lost; /* for good: another host may have opened it since; set by who is told so */
};

/* The slots of a limiter that has ever had one, or a setting for them. */
struct slots {
	struct limiter *limiter;
	struct concurrency concurrency; /* of SLOTS_AUTO */
	uint32_t used;			/* here and below */
	uint64_t opened;		/* likewise, ever */
	uint64_t refused;		/* openers that would not wait any longer */
	uint64_t shadowed;		/* openers that would have waited if enforced */
	struct numbers numbers;		/* of open slots */

	struct turns turns;
	struct sibling sibling; /* of the turns */
};

extern const struct turn_rules SLOTS_TURNS; /* of openers */

/* Gets the memory that @settings need for slots. 0 or -ENOMEM. */
int slots_prepare(struct limiter *limiter, const struct settings *settings);

void slots_free(struct limiter *limiter);

/* Follows the settings of @limiter, of which `concurrency` was @old; wakes waiters that are due. */
void slots_configure(struct schedule *schedule, struct limiter *limiter,
		     const struct slot_limit *old);

/*
 * Asks for a slot of waiter->limiter, for waiter->slot; waiter->is_opener is set. 0: it is open.
 * -EINPROGRESS: it waits and comes back through schedule->done; if it has an expiry, it is to be
 * refused at @expiry_ns. -ENOMEM.
 */
int slots_open(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns);

/* Opens @slot now (0), or not: -EAGAIN, counted as refused; -ENOMEM. */
int slots_try(struct schedule *schedule, struct limiter *limiter, struct slot *slot);

/* Takes @waiter, whose time is up, out of its queue, and counts it as refused. */
void slots_refuse(struct schedule *schedule, struct waiter *waiter);

/* Opens @slot as one that was open since @opened_ns, whatever the limits are. 0 or -ENOMEM. */
int slots_restore(struct schedule *schedule, struct limiter *limiter, struct slot *slot,
		  uint64_t opened_ns);

/* Tells whether @slot, which is open, or its number may be another host's. */
bool slots_is_lost(const struct slot *slot);

/* Gives the number of @slot, which is open and keeps it. 0; -ENODEV: it is lost; -ENOMEM. */
int slots_number(struct slot *slot, uint32_t *number);

/* Tells whether no other host can open the slots that are open in @limiter, as far as is known. */
bool slots_are_ours(const struct limiter *limiter);

/* Returns how many limiters above its own @slot has its number in. */
uint32_t slots_numbered_above(const struct slot *slot);

/*
 * Gives @slot, restored, @number of the limiter so far @above its own again. 0 or -ENOMEM; no
 * number, and 0, if there is no such limiter, or another slot has it.
 */
int slots_restore_number(struct slot *slot, uint32_t above, uint32_t number);

/*
 * Closes a slot that is open. @used: a program worked with it, so the time tells something.
 */
void slots_close(struct schedule *schedule, struct slot *slot, bool used);

/*
 * Lowers the number of slots, where it adapts: the service behind @limiter throttled. Not for
 * limiters whose rate answers that.
 */
void slots_throttled(struct schedule *schedule, struct limiter *limiter);

/* Returns how many may be open now; UINT32_MAX: any number. */
uint32_t slots_limit(const struct limiter *limiter);

uint32_t slots_used(const struct limiter *limiter);
uint32_t slots_waiting(const struct limiter *limiter);

#endif
