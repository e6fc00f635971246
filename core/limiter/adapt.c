/* adapt - the rate that a service really gives, see adapt.h. */
#include "core/limiter/adapt.h"
#include "core/values/words.h"

#include <math.h>

#define CUBIC_LOOK_NS  (NSEC_PER_SEC / 10) /* the curve is followed in steps of this */
#define SHARED_LOOK_NS NSEC_PER_SEC
#define WINDOW_NS      (NSEC_PER_SEC / 2)
#define WINDOW_MOST_NS (10 * NSEC_PER_SEC)

enum { WINDOW_WORK = 10 }; /* pieces, or the window is longer */

static const double SMOOTHING = 0.8;
static const double GROWTH_MOST = 2;
static const double APPROACH = 7.0 / 8;
static const double FELT = 0.1;
static const double TOO_HIGH = 0.98;
static const double NEAR = 0.99;    /* of the ceiling: at it */
static const double AT_LIMIT = 0.8; /* of the rate: work is done at the limit */

double adapt_cubic(double ceiling, double seconds, double scale, double decrease)
{
	double zero = cbrt(ceiling * (1 - decrease) / scale);

	return scale * pow(seconds - zero, 3) + ceiling;
}

void adapt_init(struct adapt_state *state, const struct adapt_work *work, uint64_t now_ns)
{
	*state = (struct adapt_state){
		.rate = (double)INFINITY,
		.ceiling = (double)INFINITY,
		.looked_ns = now_ns,
		.then = *work,
		.looked = *work,
		.then_ns = now_ns,
		.work = -1,
		.through = 1,
	};
}

static double fraction(uint64_t billionths)
{
	return (double)billionths / (double)DECIMAL_ONE;
}

static double seconds_of(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

/* Tokens a second over the whole limiter, and which part went through, from @then on. */
static double rate_since(const struct adapt_state *state, const struct adapt_work *work,
			 double share, uint64_t span_ns, double *through)
{
	uint64_t outcomes = work->outcomes - state->then.outcomes;
	uint64_t served = work->served - state->then.served;
	uint64_t throttled = work->throttled - state->then.throttled;
	uint64_t pieces = outcomes > served ? outcomes : served;

	*through = pieces ? 1 - (double)throttled / (double)pieces : state->through;
	return (double)(int64_t)(work->tokens - state->then.tokens) / seconds_of(span_ns) / share;
}

bool adapt_measures(const struct adapt_state *state, uint64_t now_ns)
{
	return now_ns - state->then_ns >= WINDOW_NS;
}

void adapt_measure(struct adapt_state *state, const struct adapt_work *work, double share,
		   uint64_t now_ns)
{
	uint64_t span_ns = now_ns - state->then_ns;
	uint64_t served = work->served - state->then.served;
	uint64_t outcomes = work->outcomes - state->then.outcomes;
	double rate, through;

	if (!adapt_measures(state, now_ns))
		return;
	/* A window begins with work: how long nobody wanted any says nothing of the rate. */
	if (!outcomes && work->tokens == state->then.tokens) {
		state->then = *work;
		state->then_ns = now_ns;
		return;
	}
	/* Work of children is known by its outcomes alone. */
	if (served < WINDOW_WORK && outcomes < WINDOW_WORK && span_ns < WINDOW_MOST_NS)
		return;
	rate = rate_since(state, work, share, span_ns, &through);
	rate = fmax(rate, 0);
	if (state->work >= 0) {
		rate = SMOOTHING * rate + (1 - SMOOTHING) * state->work;
		through = SMOOTHING * through + (1 - SMOOTHING) * state->through;
	}
	state->work = rate;
	state->through = through;
	state->then = *work;
	state->then_ns = now_ns;
}

/*
 * The rate to come back to, and how long to stay there: where it is known well a long time, where
 * it is a guess only until the next period.
 */
static double next_ceiling(struct adapt_state *state, double was, double done)
{
	double before = state->ceiling, felt = was - before;
	unsigned int held = state->held, hold = state->hold;

	state->held = 0;
	state->hold = 1;
	if (held > hold) {
		/*
		 * Each step up doubles what was felt: half of it went well, a quarter surely did.
		 */
		if (felt < FELT * before)
			state->hold = ADAPT_HOLD;
		return before + fmin(fmax(done - before, felt / 4), felt / 2);
	}
	/* One that did not hold was measured while the service had something saved up. */
	if (held && done > NEAR * before) {
		state->hold = ADAPT_HOLD;
		return before * TOO_HIGH;
	}
	return fmin(was, done);
}

bool adapt_throttled(struct adapt_state *state, const struct adapt *adapt, double full, bool shared,
		     uint64_t now_ns)
{
	double was = fmin(state->rate, full), done = (double)INFINITY;
	double decrease = fraction(adapt->decrease), least = rate_per_second(&adapt->min);

	state->throttled_ns = now_ns;
	if (state->counted_ns && now_ns - state->counted_ns < adapt->period_ns)
		return false;
	/*
	 * Work without a limit says nothing of an idle limiter, and work of a host that leaves most
	 * of its share unused says nothing of the others.
	 */
	if (state->work > 0 &&
	    (!shared || isinf(state->rate) || state->work >= AT_LIMIT * state->rate))
		done = state->work * state->through;
	if (isinf(was) && isinf(done))
		return false;
	state->counted_ns = now_ns;
	state->looked_ns = now_ns;
	state->ceiling = fmax(next_ceiling(state, was, done), least);
	state->grown_s = 0;
	if (adapt->kind == ADAPT_CUBIC)
		state->rate = decrease * state->ceiling;
	else
		state->rate = decrease * fmin(was, GROWTH_MOST * done);
	state->rate = fmin(fmax(state->rate, least), full);
	return true;
}

bool adapt_told(struct adapt_state *state, const struct adapt *adapt, double told, double full,
		const struct adapt_work *work, uint64_t now_ns)
{
	double rate = fmax(told, rate_per_second(&adapt->min));

	if (rate >= fmin(state->rate, full))
		return false;
	state->rate = rate;
	state->ceiling = rate;
	state->held = 0;
	state->hold = ADAPT_HOLD;
	state->grown_s = 0;
	state->looked = *work;
	state->looked_ns = now_ns;
	return true;
}

/* Returns the part that a period without throttling adds. */
static double additional(struct adapt_state *state, const struct adapt *adapt, double full)
{
	/* A part of no limit is none: then the ceiling and what is felt bound it alone. */
	double step = adapt->increase.is_share ? fraction(adapt->increase.share) * full
					       : rate_per_second(&adapt->increase.rate);

	if (state->rate < NEAR * state->ceiling)
		return fmin(step, APPROACH * (state->ceiling - state->rate));
	if (++state->held <= state->hold)
		return 0;
	return fmin(step, ADAPT_FEEL * state->ceiling * pow(2, state->held - state->hold - 1));
}

uint64_t adapt_next_ns(const struct adapt_state *state, const struct adapt *adapt, bool shared)
{
	uint64_t every_ns = adapt->period_ns;

	if (isinf(state->rate))
		return NEVER_NS;
	if (adapt->kind == ADAPT_CUBIC && every_ns > CUBIC_LOOK_NS)
		every_ns = CUBIC_LOOK_NS;
	if (shared && every_ns < SHARED_LOOK_NS)
		every_ns = SHARED_LOOK_NS;
	return state->looked_ns + every_ns;
}

void adapt_adopt(struct adapt_state *state, const struct adapt_state *other,
		 const struct adapt_work *work, uint64_t now_ns)
{
	/* One overshoot counts once, whoever heard of it. */
	if (other->rate < state->rate)
		state->counted_ns = now_ns;
	state->rate = other->rate;
	state->ceiling = other->ceiling;
	state->held = other->held;
	state->hold = other->hold;
	state->grown_s = other->grown_s;
	state->looked = *work;
	state->looked_ns = now_ns;
}

bool adapt_grow(struct adapt_state *state, const struct adapt *adapt, const struct adapt_work *work,
		double share, double full, bool starved, uint64_t now_ns)
{
	double span_s = seconds_of(now_ns - state->looked_ns);
	double done = (double)(int64_t)(work->tokens - state->looked.tokens) / share;
	bool quiet = now_ns - state->throttled_ns >= adapt->period_ns / 2;
	bool at_limit = starved || done >= AT_LIMIT * state->rate * span_s;
	double next = state->rate;

	state->looked = *work;
	state->looked_ns = now_ns;
	if (!at_limit)
		return false;
	if (adapt->kind == ADAPT_CUBIC) {
		state->grown_s += span_s;
		next = adapt_cubic(state->ceiling, state->grown_s, fraction(adapt->scale),
				   fraction(adapt->decrease));
	} else if (quiet) {
		next += additional(state, adapt, full);
	}
	if (state->work >= 0)
		next = fmin(next, GROWTH_MOST * state->work);
	if (next <= state->rate)
		return false;
	state->rate = next < full ? next : (double)INFINITY;
	return true;
}
