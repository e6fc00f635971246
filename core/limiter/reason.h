/*
 * reason - the causes for which a reader that came to a limiter now would wait, for `why`.
 *
 * A reader of one token is meant, behind the readers that wait there already; and an opener of a
 * slot. Each limiter on the way up is asked by itself: the tokens that it lacks are those that it
 * grants before and with the reader's, if those below had tokens enough. So the longest of these
 * times is at most the `eta` of a token.
 */
#ifndef RATEFS_CORE_REASON_H
#define RATEFS_CORE_REASON_H

#include "core/limiter/order.h"
#include "core/limiter/shape.h"

enum { REASONS_MAX = 64 }; /* that are told: those of the lowest limiters */

enum reason_kind {
	REASON_CLOSED,	   /* `enforcement` is closed */
	REASON_UNLEASED,   /* this host of a fleet holds nothing of the limiter */
	REASON_PAUSE,	   /* a pause of `backoff` */
	REASON_RATE,	   /* a limit lacks tokens */
	REASON_LEARNT,	   /* the learnt rate does */
	REASON_QUOTA,	   /* the service said that it allows fewer */
	REASON_ORDER,	   /* the waiter of a sibling comes first */
	REASON_SLOTS,	   /* as many slots are open as may be */
	REASON_SLOT_ORDER, /* the opener of a sibling comes first */
};

struct reason {
	enum reason_kind kind;
	const struct limiter *limiter;
	unsigned int limit; /* REASON_RATE: its index */
	const char *unit;   /* REASON_QUOTA: of which it is; "": of the one without a name */
	uint64_t reset_ns;  /* REASON_RATE, of windows: until the next begins; else NEVER_NS */
	uint64_t tokens;    /* to come, of REASON_RATE and REASON_LEARNT; left, of REASON_QUOTA */
	uint64_t wait_ns;   /* until they are there, or pause or quota are over; NEVER_NS */
	/* Of the orders: the child, key or partition of @limiter; NULL: its own queue. */
	const struct limiter *first;
	const struct limiter *behind; /* likewise: the one that the reader comes by */
	enum order_cause cause;
};

/*
 * Fills in the reasons in @limiter and those above, the lowest first, and of each limiter those
 * first that keep readers waiting for longest; returns their number. All of these limiters have
 * been refilled at the time of the step.
 */
size_t reason_list(const struct schedule *schedule, const struct limiter *limiter,
		   struct reason reasons[REASONS_MAX]);

#endif
