/*
 * dues_check - what the siblings of a limiter are granted together, whatever hosts they wait
 * on: minima, classes and weights over a fleet.
 *
 * While demand, settings and hosts stand still, the siblings of a limiter are due in a window of w:
 *
 * 1. their minima: min * w each, or what a sibling wants if that is less;
 * 2. the highest class is due the rest, and the next one all that the higher ones do not want;
 * 3. within a class there is a level L, the same for all. A sibling of weight r is due r * L, or
 *    its minimum if that is more, or what it wants if that is less.
 *
 * That is weighted max-min fairness with minima and classes. It is computed here by bisection, of
 * what was granted to all of them together: whether the rate is used is judged by calm_check.h. A
 * sibling that has less than it is due is found; one that has more takes that from another.
 *
 * A sibling may have less by these:
 *   - a piece for each host, which is not divided;
 *   - a token on its way on each host, and a take of its own and of each sibling;
 *   - what hosts see late of demand that comes and goes: DUE_LEAST;
 *   - a host whose readers come by themselves holds more than these take, and other readers there
 *     are granted the rest. It is LIGHT_AGAIN times as much again: measured, and no promise.
 *
 * The hosts on which readers of one limiter wait are judged likewise: they have their weights, and
 * neither minima nor classes.
 */
#ifndef RATEFS_SIM_DUES_CHECK_H
#define RATEFS_SIM_DUES_CHECK_H

#include "tests/sim/invariants/order_check.h"

/* A sibling in a window. Amounts are tokens. */
struct due {
	struct order_terms terms;
	const char *name; /* borrowed */
	double wanted;	  /* INFINITY: more than there is */
	double granted;
	uint64_t largest; /* take */
	double due;	  /* filled in */
};

struct dues {
	struct due *parts; /* borrowed */
	uint32_t count;
	uint32_t hosts; /* in which they wait */
	double light;	/* granted to readers that did not wait all the time */
	double span_s;
	double piece; /* tokens that a piece brings in it */
};

/* Fills in the dues of all that was granted. False: the minima are more than that. */
bool dues_check_compute(struct dues *dues);

/* Tells whether each was granted its due; @why, if one has too little. */
bool dues_check(struct dues *dues, char why[WHY_TEXT]);

/* Tells whether all of @rate that was wanted was granted; @why, if not. */
bool dues_check_use(const struct dues *dues, double rate, char why[WHY_TEXT]);

#endif
