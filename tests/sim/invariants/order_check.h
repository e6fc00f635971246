/*
 * order_check - the order of siblings: minima, classes, weights.
 *
 * The siblings of a limiter are its child limiters, its keys and partitions, and its own readers,
 * which count as one more child. Three bounds hold of them, over every window. A sibling takes part
 * in a window as long as it is ready: a reader waits in it, and everything in it and below it has
 * the tokens for whatever reader comes first there. So only the limiter itself, and those above,
 * keep that sibling waiting.
 *
 * Weights. Of two siblings of one class that are both ready all the time, f and g get W tokens by
 * weights r with takes of at most l:
 *
 *	|W(f) / r(f) - W(g) / r(g)|  <=  l(f) / r(f) + l(g) / r(g)
 *
 * the bound of start-time fair queueing (Goyal, Vin, Cheng, "Start-time Fair Queueing", 1996,
 * theorem 1). A take counts among those of a window, too, if it was the last one before it: a
 * sibling pays for it within the window. So does one at the same instant as the last: a take that
 * is granted while no other waits may be left out, and the one before is paid for instead.
 *
 * A sibling with a minimum may be beyond that bound by what it gets as its minimum, see below. When
 * it is not any more it may begin behind, by a second of the minimum, in whole tokens, and two of
 * the largest takes it had, and no more: so it gets the greater of its minimum and its part, not
 * both. Where that is less than the bound of above it may be beyond that by the difference.
 *
 * Classes. While a sibling of a higher class is ready no lower one is granted anything, but for its
 * minimum: at most minimum * w, what it has saved up of that, a second's tokens and a take of each
 * sibling with a minimum, and the rest of a take.
 *
 * Minima. A sibling that is ready gets at least minimum * w in every window w, less a take of its
 * own, one of each sibling with a minimum and one of another, and less what it got in advance: the
 * rest of a take before the window. That holds if the minima of all of them together are below a
 * rate that the limiter is sure of.
 *
 * Fed with a log of what happened, in steps: in one, time stands still. A sibling that is ready at
 * the end of a step had the tokens from its beginning on, unless some came back.
 */
#ifndef RATEFS_SIM_ORDER_CHECK_H
#define RATEFS_SIM_ORDER_CHECK_H

#include "tests/sim/invariants/rate_check.h"

enum {
	ORDER_SIBLINGS_MAX = 64, /* of one limiter, that are looked at at a time */
	ORDER_CLASSES = 10,
	ORDER_OWN_WEIGHT = 100, /* of own readers, keys and partitions */
};

/* The settings of a sibling. */
struct order_terms {
	uint64_t weight;
	struct fraction min; /* num 0: none */
	uint32_t class;
};

struct order_check;

/* A sibling. Begins as zeros, with order_check_tune(). */
struct sibling_check {
	struct order_check *check; /* borrowed; NULL: no reader waits in it, or too many do */
	unsigned int slot;	   /* there */
	struct order_terms terms;
	bool ready;	    /* at the end of the last step, and without a break since */
	bool now_ready;	    /* at the end of this one, */
	uint64_t since;	    /* by readers that have waited since this event */
	uint64_t served;    /* tokens, ever */
	uint64_t last;	    /* its last take, */
	uint64_t recent;    /* and its largest at the instant of that, */
	uint64_t recent_ns; /* which is this */
	uint64_t most;	    /* its largest take in this step, */
	uint64_t ever;	    /* and since it was tuned */
	bool altered;	    /* in this step: it was granted tokens, or lost its ready readers */
	uint64_t got;	    /* tokens, in this step */
	uint64_t largest;   /* take that waits in it, or more; kept by the caller */
	i128 owed;	 /* of its minimum, in 1/den tokens: the most over all windows until now */
	uint64_t slack;	 /* tokens that may be owed, */
	i128 paid;	 /* and, likewise, that it had got in advance when that began */
	i128 ahead;	 /* of its takes, got in advance */
	i128 saved;	 /* of its minimum, in 1/den tokens */
	bool has_min;	 /* the last take in this step may be for its minimum */
	uint64_t beyond; /* tokens that were, since it was to get none otherwise */
	uint64_t paid_now; /* of those in this step that are off @saved */
	uint64_t at_ns;	   /* @owed, @saved and @ahead are as of this time */
};

/* Of two siblings that are ready. */
struct sibling_pair {
	bool is_open;
	uint64_t served[2];  /* when both were ready for the first time */
	uint64_t most[2];    /* largest takes since, and of the last instant before */
	uint64_t excused[2]; /* tokens since then that were for a minimum, beyond its part */
	i128 least[2];	     /* by how much each was ahead: its tokens * weight of the other, less
				the converse */
};

enum { ORDER_PAIRS = ORDER_SIBLINGS_MAX * (ORDER_SIBLINGS_MAX - 1) / 2 };

/* The siblings of one limiter. Begins as zeros. */
struct order_check {
	struct sibling_check *siblings[ORDER_SIBLINGS_MAX]; /* borrowed; NULL: free */
	unsigned int slots;		 /* so many of them at most are not: the rest is free */
	struct sibling_pair *pairs;	 /* owned, ORDER_PAIRS; NULL until there are two */
	uint64_t granted[ORDER_CLASSES]; /* event of the last grant to each class */
	uint64_t step;			 /* the last event of the step before */
	bool changed;			 /* something was granted, or became ready */
	bool is_sure;			 /* since the end of that step its minima are */
	double late;	  /* tokens that were due before, at most; then they are not */
	uint64_t rest_ns; /* the end of that step */
};

/* The end of a step, in a limiter. */
struct order_rest {
	uint64_t now_ns;
	uint64_t event;	      /* the last one */
	struct fraction sure; /* the rate that the limiter is sure of; num 0: none */
	bool returned;	      /* tokens came back in this step */
};

/* @sibling has these terms from @now_ns on. */
void order_check_tune(struct sibling_check *sibling, const struct order_terms *terms,
		      uint64_t now_ns);

/*
 * The first reader waits in @sibling; the last one has left. One that was granted a take at @now_ns
 * has waited all the time, and keeps what it has saved up.
 */
void order_check_join(struct order_check *check, struct sibling_check *sibling, uint64_t now_ns);
void order_check_leave(struct sibling_check *sibling);

/*
 * A reader has left @sibling or one below it. If none of its own siblings, @below, stays ready it
 * puts no reader forward, so in the rest of this step others may be granted whatever there is.
 */
void order_check_lose(const struct order_check *below, struct sibling_check *sibling);

/* Ends all windows of @sibling. */
void order_check_interrupt(struct sibling_check *sibling);

/* Event @number: @tokens are granted to a reader that has waited since event @since. */
struct order_grant {
	uint64_t tokens;
	uint64_t since;
	uint64_t number;
	uint64_t now_ns;
	bool returned; /* tokens came back in this step, before */
};

/* Called before the reader leaves. False, and @why, if it must not be. */
bool order_check_grant(struct order_check *check, struct sibling_check *sibling,
		       const struct order_grant *grant, char why[WHY_TEXT]);

/* At the end of a step: @sibling is ready, by readers that have waited since event @since. */
void order_check_ready(struct sibling_check *sibling, uint64_t since);

/* Tokens were charged: no minimum is owed for the time before. */
void order_check_charge(struct order_check *check);

/* A step ends, and all that are ready are known. False, and @why, if a bound does not hold. */
bool order_check_rest(struct order_check *check, const struct order_rest *rest, char why[WHY_TEXT]);

void order_check_free(struct order_check *check);

#endif
