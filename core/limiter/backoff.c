/* backoff - responsive exponential back-off, see backoff.h. */
#include "core/limiter/backoff.h"
#include "core/values/words.h"

#include <math.h>

/*
 * Evenly from -1 to 1. xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators".
 */
static double random_sign(struct backoff_state *state)
{
	state->random ^= state->random >> 12;
	state->random ^= state->random << 25;
	state->random ^= state->random >> 27;
	return (double)(state->random * UINT64_C(2685821657736338717) >> 11) /
		       (double)(1ULL << 52) -
	       1;
}

/* The delay is @base_ns from now on, with jitter if @spread. */
static void set_delay(struct backoff_state *state, const struct backoff *backoff, double base_ns,
		      bool spread)
{
	double width_ns = base_ns * (double)backoff->jitter / (double)DECIMAL_ONE;

	if (base_ns < (double)backoff->initial_ns) {
		state->base_ns = 0;
		state->delay_ns = 0;
		return;
	}
	state->base_ns = base_ns;
	if (spread && width_ns > 0) {
		width_ns = fmin(width_ns, (double)backoff->jitter_max_ns);
		base_ns += width_ns * random_sign(state);
	}
	base_ns = fmin(base_ns, (double)backoff->max_ns);
	state->delay_ns = base_ns < 1 ? 1 : (uint64_t)llround(base_ns);
}

static uint64_t later(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns > other_ns ? one_ns : other_ns;
}

static uint64_t earlier(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

/* A pause of the delay, and of @asked_ns if that is longer. */
static void make_pause(struct backoff_state *state, uint64_t asked_ns, uint64_t now_ns)
{
	uint64_t begin_ns = later(state->until_ns, now_ns);

	state->pauses++;
	state->delayed_ns = later(state->delayed_ns, now_ns + state->delay_ns);
	state->asked_ns = later(state->asked_ns, now_ns + asked_ns);
	state->until_ns = later(state->delayed_ns, state->asked_ns);
	state->paused_ns += state->until_ns - begin_ns;
}

/* Up to @count steps up, until it is as long as it gets; how many were made. */
static uint64_t climb(double *base_ns, const struct backoff *backoff, uint64_t count)
{
	double max_ns = (double)backoff->max_ns, step_ns = (double)backoff->step_ns;
	uint64_t steps = 0;

	if (*base_ns <= 0) {
		*base_ns = (double)backoff->initial_ns;
		steps = 1;
	}
	if (backoff->kind == BACKOFF_LINEAR) {
		double most = ceil((max_ns - *base_ns) / step_ns);
		double more = fmin((double)(count - steps), most);

		*base_ns = fmin(*base_ns + more * step_ns, max_ns);
		return steps + (uint64_t)more;
	}
	/* A step is at least a hundredth, so there are not many. */
	for (; steps < count && *base_ns < max_ns; steps++)
		*base_ns = fmin(*base_ns * (double)backoff->up / (double)DECIMAL_ONE, max_ns);
	return steps;
}

/* Likewise down, until it is under `initial`. */
static uint64_t descend(double *base_ns, const struct backoff *backoff, uint64_t count)
{
	double initial_ns = (double)backoff->initial_ns, step_ns = (double)backoff->step_ns;
	uint64_t steps = 0;

	if (backoff->kind == BACKOFF_LINEAR) {
		double most = floor((*base_ns - initial_ns) / step_ns) + 1;
		double less = fmin((double)count, most);

		*base_ns -= less * step_ns;
		return (uint64_t)less;
	}
	for (; steps < count && *base_ns >= initial_ns; steps++)
		*base_ns *= (double)backoff->down / (double)DECIMAL_ONE;
	return steps;
}

void backoff_throttled(struct backoff_state *state, const struct backoff *backoff, uint64_t count,
		       uint64_t least_ns, uint64_t now_ns)
{
	bool first = state->base_ns <= 0;
	double base_ns = state->base_ns;
	uint64_t steps = climb(&base_ns, backoff, count);

	state->ups += steps;
	state->streak = 0;
	set_delay(state, backoff, base_ns, !(first && steps == 1));
	make_pause(state, earlier(least_ns, backoff->retry_max_ns), now_ns);
}

void backoff_succeeded(struct backoff_state *state, const struct backoff *backoff, uint64_t count,
		       uint64_t now_ns)
{
	double base_ns = state->base_ns;
	uint64_t rounds, steps;

	if (base_ns <= 0)
		return;
	rounds = (state->streak + count) / backoff->after;
	state->streak = (state->streak + count) % backoff->after;
	steps = descend(&base_ns, backoff, rounds);
	state->downs += steps;
	if (steps)
		set_delay(state, backoff, base_ns, true);
	if (state->until_ns <= now_ns)
		make_pause(state, 0, now_ns);
}

void backoff_retune(struct backoff_state *state, const struct backoff *backoff, uint64_t now_ns)
{
	uint64_t until_ns;

	if (backoff->kind == BACKOFF_NONE) {
		state->base_ns = 0;
		state->delay_ns = 0;
	} else if (state->base_ns > 0) {
		double base_ns = fmin(state->base_ns, (double)backoff->max_ns);

		/* A delay within the bounds stays as it was drawn. */
		if (base_ns < (double)backoff->initial_ns || state->delay_ns > backoff->max_ns)
			set_delay(state, backoff, base_ns, true);
		else
			state->base_ns = base_ns;
	}
	/* Without a back-off both end now. */
	state->delayed_ns = earlier(state->delayed_ns, now_ns + backoff->max_ns);
	state->asked_ns = earlier(state->asked_ns, now_ns + backoff->retry_max_ns);
	until_ns = later(state->delayed_ns, state->asked_ns);
	if (state->until_ns > until_ns) {
		state->paused_ns -= state->until_ns - until_ns;
		state->until_ns = until_ns;
	}
}
