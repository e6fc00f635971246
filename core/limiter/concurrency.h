/*
 * concurrency - how many slots a service can use: adaptive request concurrency.
 *
 * The time that a slot is held is the round trip. Below the knee of a service, more in flight means
 * more work in the same time; above it, the same work in longer time. So the number is one too many
 * when its round trips are longer than those with fewer in flight.
 *
 * Time is cut into rounds. A round waits for as many of the slots opened since it began as decide.
 * The mean m of their n round trips is then held against the expectation e, with deviation d:
 *
 *	m > e + max(GROWTH * e, Z * d * sqrt(1.5 / n))	growth: number *= decrease, or one less
 *	m < e - max(...)				a change of another kind: the number stays
 *	else, if all slots were in use			number += 1
 *
 * e is an exponentially weighted mean, and d the exponentially weighted deviation of single round
 * trips, as in Jacobson, "Congestion avoidance and control" (1988), and Vector's Adaptive Request
 * Concurrency (2020), whose additive increase and multiplicative decrease these are.
 *
 * An expectation that follows every round trip would follow slow growth too, a slot at a time. So e
 * is fed only by rounds with fewer in flight than could be: `looks`, for which the number is cut
 * short to three quarters for a round, as BBR does to see the path without its own queue (Cardwell
 * et al. 2016); rounds in which not all slots were used; and rounds at the least number. A look
 * comes after every 16 rounds of full use, and as soon as two rounds in a row are not as expected.
 * Since it compares rounds a few apart, and nothing else, a service that becomes slower or faster
 * by itself changes the expectation and not the number.
 *
 * A throttling that was reported multiplies the number by `decrease` too, once per expected round
 * trip, and the round is thrown away: refusals are quick and tell nothing.
 *
 * A round is at least as long as a round trip, and has at least as many as there are slots. If it
 * were shorter, it would see the quick ones and miss the slow ones.
 */
#ifndef RATEFS_CORE_CONCURRENCY_H
#define RATEFS_CORE_CONCURRENCY_H

#include "core/values/settings.h"

struct concurrency {
	uint32_t min, max;
	double decrease;

	uint32_t number; /* min to max */
	uint32_t limit;	 /* slots that may be open now: the number, or fewer while looking */
	bool looking;
	bool settled; /* growth was seen before */

	double expected_ns; /* 0: not known */
	double variance;    /* of single round trips, relative to their mean, squared */
	uint32_t strange;   /* rounds in a row that were not as expected */
	uint32_t rounds;    /* since the last look */

	/* The round: of slots that were opened since @began_ns. */
	uint64_t began_ns; /* NEVER_NS: when no more than @limit are in use */
	uint32_t count;
	double sum_ns, sum_squares;
	bool full;     /* all slots were in use */
	uint32_t most; /* in use */

	uint64_t decreased_ns; /* when a throttling last did that */
};

/* Begins at min of @setting, which is of kind SLOTS_AUTO. */
void concurrency_init(struct concurrency *concurrency, const struct slot_limit *setting,
		      uint64_t now_ns);

/* Sets other bounds from now on; the expectation stays. */
void concurrency_tune(struct concurrency *concurrency, const struct slot_limit *setting,
		      uint64_t now_ns);

/* Notes that a slot was opened; @used are open with it. */
void concurrency_opened(struct concurrency *concurrency, uint32_t used, uint64_t now_ns);

/* Notes that a slot, opened at @opened_ns, was closed; @used are left. */
void concurrency_closed(struct concurrency *concurrency, uint64_t opened_ns, uint32_t used,
			uint64_t now_ns);

/* Notes that the service throttled. */
void concurrency_throttled(struct concurrency *concurrency, uint64_t now_ns);

#endif
