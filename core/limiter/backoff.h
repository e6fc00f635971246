/*
 * backoff - responsive exponential back-off: the pause after throttling.
 *
 * The first throttling makes a delay of `initial`, each further one multiplies it `up` (linear:
 * adds `step`), up to `max`; `after` successes in a row multiply it `down` (linear: take a step
 * off), and under `initial` it is gone. Every throttling is followed by a pause of the delay, and
 * so is every success that is reported outside a pause while there is a delay: one job after
 * another is then spaced by it, and many at a time are let go in short bursts, one a delay. The
 * pause is as long as the service says (Retry-After) if that is longer, up to `retry-max`.
 *
 * A delay after the first is drawn from +-`jitter` of itself (at most `jitter-max`), so that hosts
 * which were throttled together do not come back together. The delay from which the next one is
 * made has no jitter.
 *
 * Times are doubles where they are multiplied, and whole nanoseconds where they are compared.
 */
#ifndef RATEFS_CORE_BACKOFF_H
#define RATEFS_CORE_BACKOFF_H

#include "core/values/backoff_setting.h"

/* A delay, or none: all zero. */
struct backoff_state {
	double base_ns;	   /* the delay without jitter; 0: none */
	uint64_t delay_ns; /* the delay now */
	uint64_t until_ns; /* no token before: the end of the pause, the later of two: */
	uint64_t delayed_ns, asked_ns; /* that of the delay, and that the service named */
	uint64_t streak;	       /* successes since the delay last changed */
	uint64_t random;
	uint64_t ups, downs; /* times that the delay went up and down */
	uint64_t pauses;
	uint64_t paused_ns; /* in all; overlapping pauses count once */
};

/*
 * @count pieces of work (at least 1) were throttled, and the service named @least_ns as least
 * pause, or 0.
 */
void backoff_throttled(struct backoff_state *state, const struct backoff *backoff, uint64_t count,
		       uint64_t least_ns, uint64_t now_ns);

/* @count pieces of work (at least 1) went through. */
void backoff_succeeded(struct backoff_state *state, const struct backoff *backoff, uint64_t count,
		       uint64_t now_ns);

/*
 * Other settings count from now on: the delay and the pause are kept as far as they are within
 * them.
 */
void backoff_retune(struct backoff_state *state, const struct backoff *backoff, uint64_t now_ns);

#endif
