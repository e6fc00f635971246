/*
 * adapt - the rate that a service really gives, found by feeling for it.
 *
 * Until the first throttling there is no limit of its own. Then, at most once a `period`:
 *
 *	aimd	the rate becomes `decrease` times what it was. Every period without throttling, with
 *		work done at the limit, adds `increase`; but below the rate that was throttled last
 *		at most 7/8 of the way to it, there nothing for ADAPT_HOLD periods, and from then on
 *		at first ADAPT_FEEL of it, twice as much each period: halve, come back, feel upward.
 *	cubic	scale * (t - K)^3 + Wmax, K = cbrt(Wmax * (1 - decrease) / scale): back to what it
 *		was (Wmax) quickly, there slowly, then ever faster. t is the time since then in
 *		seconds, as far as work was done at the limit; Wmax in tokens a second. After the
 *		client-side rate limiter of the AWS SDKs ("adaptive" retry mode; RFC 8312 has the
 *		curve).
 *
 * Either way the rate never grows beyond twice the rate of work done, stays above `min`, and when
 * it reaches the limiter's own it is gone. Throttlings within a period of one that counted are of
 * the same overshoot. A limiter that is idle learns nothing and does not drift.
 *
 * The rate of work is measured over windows of half a second, longer if little is done, and
 * smoothed (0.8 of the newest), as the SDKs do; the part of it that went through, likewise. Time
 * without any work, and in pauses (backoff.h), belongs to none.
 *
 * Where the service says what it gives, and that is less than the rate, the rate becomes that.
 *
 * Where several hosts share what they learn (agreed_rate.h) a host lowers the rate for itself at
 * once, but only proposes a higher one, at most once a second, and grows when it is that of all.
 *
 * All rates are in tokens a second over the whole limiter; in a fleet a host sees a share of the
 * work and is told which, and takes it as that of all.
 */
#ifndef RATEFS_CORE_ADAPT_H
#define RATEFS_CORE_ADAPT_H

#include "core/values/adapt_setting.h"

#include <stdbool.h>

enum { ADAPT_HOLD = 12 };
#define ADAPT_FEEL 0.002

/* The counters of a limiter so far. */
struct adapt_work {
	uint64_t tokens;    /* granted and charged */
	uint64_t served;    /* pieces of work begun */
	uint64_t outcomes;  /* that were reported */
	uint64_t throttled; /* of them */
};

struct adapt_state {
	double rate;	       /* INFINITY: no limit of its own */
	double ceiling;	       /* the rate that was throttled last, Wmax; INFINITY: none was */
	uint64_t counted_ns;   /* the last throttling that counted */
	uint64_t throttled_ns; /* the last that was reported */
	uint64_t looked_ns;    /* the last look at whether to grow */
	unsigned int held;     /* aimd: periods at the ceiling */
	unsigned int hold;     /* aimd: how many it stays there */
	double grown_s;	       /* cubic: t */

	/* The measurements. */
	struct adapt_work then; /* counts at @then_ns */
	struct adapt_work looked;
	uint64_t then_ns;
	double work;	/* tokens a second; negative: not known yet */
	double through; /* part of it that was not throttled */
};

/* The curve @seconds after a throttling at @ceiling tokens a second. */
double adapt_cubic(double ceiling, double seconds, double scale, double decrease);

void adapt_init(struct adapt_state *state, const struct adapt_work *work, uint64_t now_ns);

/*
 * Brings what is measured up to @now_ns. @share (above 0, at most 1) is the part of the limiter
 * that @work is of.
 */
void adapt_measure(struct adapt_state *state, const struct adapt_work *work, double share,
		   uint64_t now_ns);

/*
 * Something was throttled. @full: the limiter's own rate, or INFINITY; @shared: other hosts live by
 * it too. True: the rate is another.
 */
bool adapt_throttled(struct adapt_state *state, const struct adapt *adapt, double full, bool shared,
		     uint64_t now_ns);

/*
 * The service said that it gives @told tokens a second. @full as above. True: the rate is another,
 * that or `min`, and grows from there as from a ceiling.
 */
bool adapt_told(struct adapt_state *state, const struct adapt *adapt, double told, double full,
		const struct adapt_work *work, uint64_t now_ns);

/*
 * A look at whether to grow, when adapt_next_ns() says so. @starved: somebody waits for nothing but
 * this rate. True: the rate is another.
 */
bool adapt_grow(struct adapt_state *state, const struct adapt *adapt, const struct adapt_work *work,
		double share, double full, bool starved, uint64_t now_ns);
uint64_t adapt_next_ns(const struct adapt_state *state, const struct adapt *adapt, bool shared);

/* Another host's state counts from now on: its rate and the course of it, not what was measured. */
void adapt_adopt(struct adapt_state *state, const struct adapt_state *other,
		 const struct adapt_work *work, uint64_t now_ns);

/* Whether adapt_measure() may have something to do. */
bool adapt_measures(const struct adapt_state *state, uint64_t now_ns);

#endif
