/* backoff - responsive exponential back-off, see backoff.h. */
#include "core/values/backoff.h"
#include "core/values/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DELAY_MAX_NS (UINT64_C(24) * 3600 * NSEC_PER_SEC)
#define AFTER_MAX    UINT64_C(1000000000)
#define UP_LEAST     (DECIMAL_ONE + DECIMAL_ONE / 100)
#define UP_MOST	     (1000 * DECIMAL_ONE)
#define DOWN_MOST    (DECIMAL_ONE - DECIMAL_ONE / 100)

static const struct backoff EXPONENTIAL = {
	.kind = BACKOFF_EXPONENTIAL,
	.initial_ns = NSEC_PER_SEC / 2,
	.max_ns = 900 * NSEC_PER_SEC,
	.up = DECIMAL_ONE * 3 / 2,
	.down = DECIMAL_ONE * 9 / 10,
	.after = 10,
	.jitter = DECIMAL_ONE * 3 / 10,
	.jitter_max_ns = 120 * NSEC_PER_SEC,
};

static const struct backoff LINEAR = {
	.kind = BACKOFF_LINEAR,
	.initial_ns = NSEC_PER_SEC,
	.max_ns = 900 * NSEC_PER_SEC,
	.step_ns = NSEC_PER_SEC,
	.after = 10,
};

enum { WORDS_MAX = 7 };

/* The parameters of @backoff's kind. Returns their number. */
static size_t words_of(struct backoff *backoff, struct word words[WORDS_MAX])
{
	/* clang-format off */
	const struct word exponential[] = {
		{.name = "initial", .type = WORD_DURATION, .value = &backoff->initial_ns, .least = 1, .most = DELAY_MAX_NS},
		{.name = "max", .type = WORD_DURATION, .value = &backoff->max_ns, .least = 1, .most = DELAY_MAX_NS},
		{.name = "up", .type = WORD_DECIMAL, .value = &backoff->up, .least = UP_LEAST, .most = UP_MOST},
		{.name = "down", .type = WORD_DECIMAL, .value = &backoff->down, .least = 0, .most = DOWN_MOST},
		{.name = "after", .type = WORD_COUNT, .value = &backoff->after, .least = 1, .most = AFTER_MAX},
		{.name = "jitter", .type = WORD_DECIMAL, .value = &backoff->jitter, .least = 0, .most = DECIMAL_ONE},
		{.name = "jitter-max", .type = WORD_DURATION, .value = &backoff->jitter_max_ns, .least = 0, .most = DELAY_MAX_NS},
	};
	const struct word linear[] = {
		{.name = "initial", .type = WORD_DURATION, .value = &backoff->initial_ns, .least = 1, .most = DELAY_MAX_NS},
		{.name = "step", .type = WORD_DURATION, .value = &backoff->step_ns, .least = 1, .most = DELAY_MAX_NS},
		{.name = "max", .type = WORD_DURATION, .value = &backoff->max_ns, .least = 1, .most = DELAY_MAX_NS},
		{.name = "after", .type = WORD_COUNT, .value = &backoff->after, .least = 1, .most = AFTER_MAX},
	};
	/* clang-format on */

	if (backoff->kind == BACKOFF_LINEAR) {
		memcpy(words, linear, sizeof(linear));
		return sizeof(linear) / sizeof(linear[0]);
	}
	memcpy(words, exponential, sizeof(exponential));
	return sizeof(exponential) / sizeof(exponential[0]);
}

int backoff_parse(const char *text, struct backoff *backoff, char *error)
{
	struct word words[WORDS_MAX];
	struct backoff next;
	int err;

	if (!strcmp(text, "none")) {
		*backoff = (struct backoff){.kind = BACKOFF_NONE};
		return 0;
	}
	if (words_are(text, "exponential"))
		next = EXPONENTIAL;
	else if (words_are(text, "linear"))
		next = LINEAR;
	else
		return setting_refuse(
			-EINVAL, error, text,
			"not a backoff: none, exponential or linear, and name=value ...");
	err = words_parse(text, words, words_of(&next, words), error);
	if (err)
		return err;
	if (next.initial_ns > next.max_ns)
		return setting_refuse(-ERANGE, error, text, "initial is above max");
	*backoff = next;
	return 0;
}

void backoff_print(const struct backoff *backoff, char *text)
{
	struct word words[WORDS_MAX];
	struct backoff copy = *backoff;

	if (backoff->kind == BACKOFF_NONE)
		snprintf(text, SETTING_TEXT, "none");
	else
		words_print(backoff->kind == BACKOFF_LINEAR ? "linear" : "exponential", words,
			    words_of(&copy, words), text);
}

/* Evenly from -1 to 1. xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
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

static void pause_for(struct backoff_state *state, uint64_t pause_ns, uint64_t now_ns)
{
	uint64_t begin_ns = state->until_ns > now_ns ? state->until_ns : now_ns;

	state->pauses++;
	if (now_ns + pause_ns <= begin_ns)
		return;
	state->until_ns = now_ns + pause_ns;
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
	if (least_ns > backoff->max_ns)
		least_ns = backoff->max_ns;
	pause_for(state, least_ns > state->delay_ns ? least_ns : state->delay_ns, now_ns);
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
		pause_for(state, state->delay_ns, now_ns);
}

void backoff_retune(struct backoff_state *state, const struct backoff *backoff, uint64_t now_ns)
{
	uint64_t end_ns = now_ns;

	if (backoff->kind == BACKOFF_NONE) {
		state->base_ns = 0;
		state->delay_ns = 0;
	} else {
		end_ns += backoff->max_ns;
		/* What is within them stays as it was drawn. */
		if (state->base_ns > 0 && (state->base_ns < (double)backoff->initial_ns ||
					   state->delay_ns > backoff->max_ns))
			set_delay(state, backoff, fmin(state->base_ns, (double)backoff->max_ns),
				  true);
	}
	if (state->until_ns > end_ns) {
		state->paused_ns -= state->until_ns - end_ns;
		state->until_ns = end_ns;
	}
}
