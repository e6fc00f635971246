/* fuzz_feedback - any text as feedback, and what limiters make of it; and as adapt and backoff. */
#include "fuzz.h"

#include "core/limiter/adapt.h"
#include "core/limiter/backoff.h"
#include "core/limiter/feedback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_refusal(int err, const char error[ERROR_TEXT])
{
	FUZZ_CHECK(err == -EINVAL || err == -ERANGE);
	FUZZ_CHECK(error[0] && memchr(error, '\0', ERROR_TEXT));
}

/* Any state of @backoff after any outcome. */
static void check_pause(const struct backoff_state *state, const struct backoff *backoff,
			uint64_t now_ns)
{
	FUZZ_CHECK(state->base_ns >= 0 && state->base_ns <= (double)backoff->max_ns);
	FUZZ_CHECK(state->delay_ns <= backoff->max_ns);
	FUZZ_CHECK((state->base_ns > 0) == (state->delay_ns > 0));
	FUZZ_CHECK(state->delayed_ns <= now_ns + backoff->max_ns);
	FUZZ_CHECK(state->asked_ns <= now_ns + backoff->retry_max_ns);
	FUZZ_CHECK(state->until_ns ==
		   (state->delayed_ns > state->asked_ns ? state->delayed_ns : state->asked_ns));
	FUZZ_CHECK(state->paused_ns <= now_ns || state->paused_ns <= state->until_ns);
	FUZZ_CHECK(state->streak < backoff->after);
}

/* A quota is in its bounds. */
static void check_quota(const struct outcome *outcome)
{
	FUZZ_CHECK(outcome->reset_ns <= DURATION_MAX_NS && outcome->window_ns <= DURATION_MAX_NS);
	FUZZ_CHECK(!outcome->has_remaining || outcome->remaining <= TOKENS_MAX ||
		   outcome->remaining == UINT64_MAX);
	FUZZ_CHECK(!*outcome->unit || memchr(outcome->unit, '\0', UNIT_TEXT));
	FUZZ_CHECK(!outcome->has_limit || (outcome->limit <= TOKENS_MAX && outcome->window_ns));
}

/* Each line as an outcome; the pauses that they make with @backoff. */
static void try_feedback(const char *text, const struct backoff *backoff)
{
	struct backoff_state state = {.random = 1};
	const char *at = text, *end = text + strlen(text);
	struct backoff less = *backoff;
	char error[ERROR_TEXT] = "";
	struct outcome outcome;
	uint64_t now_ns = 1;
	int err;

	for (;;) {
		const char *before = at;

		err = feedback_parse(&at, &outcome, error);
		FUZZ_CHECK(at >= before && at <= end);
		if (err)
			break;
		FUZZ_CHECK(at > before);
		FUZZ_CHECK(outcome.kind < OUTCOME_COUNT);
		FUZZ_CHECK(!outcome.count == (outcome.kind == OUTCOME_NONE));
		FUZZ_CHECK(outcome.count <= OUTCOMES_MAX);
		feedback_at(&outcome, 1700000000);
		FUZZ_CHECK(outcome.retry_after_ns <= DURATION_MAX_NS);
		check_quota(&outcome);
		now_ns += outcome.count;
		if (outcome.kind == OUTCOME_THROTTLED)
			backoff_throttled(&state, backoff, outcome.count, outcome.retry_after_ns,
					  now_ns);
		if (outcome.kind == OUTCOME_OK)
			backoff_succeeded(&state, backoff, outcome.count, now_ns);
		check_pause(&state, backoff, now_ns);
	}
	if (err == -ENOENT)
		FUZZ_CHECK(at == end);
	else
		check_refusal(err, error);
	less.max_ns -= (less.max_ns - less.initial_ns) / 2;
	less.retry_max_ns /= 2;
	backoff_retune(&state, &less, now_ns);
	check_pause(&state, &less, now_ns);
}

/* Whatever a service writes behind a status, it counts. */
static void try_status(const char *status, const char *text)
{
	size_t length = strcspn(text, "\n");
	char error[ERROR_TEXT], *line = malloc(length + sizeof("429 "));
	struct outcome outcome;
	const char *at = line;

	if (!line)
		return;
	snprintf(line, length + sizeof("429 "), "%s %.*s", status, (int)length, text);
	FUZZ_CHECK(!feedback_parse(&at, &outcome, error));
	FUZZ_CHECK(outcome.is_status && outcome.kind == OUTCOME_THROTTLED && outcome.count == 1);
	FUZZ_CHECK(at == line + strlen(line));
	/* Of a line that is not understood no quota counts. */
	FUZZ_CHECK(!*error || !outcome_tells_quota(&outcome));
	feedback_at(&outcome, 1700000000);
	FUZZ_CHECK(outcome.retry_after_ns <= DURATION_MAX_NS);
	check_quota(&outcome);
	free(line);
}

/* A printed text is read as the same. */
static void try_adapt(const char *text)
{
	struct adapt adapt = {.kind = ADAPT_NONE}, again = adapt;
	char error[ERROR_TEXT] = "", printed[SETTING_TEXT], twice[SETTING_TEXT];
	int err = adapt_setting_parse(text, &adapt, error);

	if (err) {
		check_refusal(err, error);
		FUZZ_CHECK(adapt.kind == ADAPT_NONE);
		return;
	}
	adapt_setting_print(&adapt, printed);
	FUZZ_CHECK(adapt_setting_parse(printed, &again, error) == 0);
	adapt_setting_print(&again, twice);
	FUZZ_CHECK(!strcmp(printed, twice));
	FUZZ_CHECK(adapt.decrease == again.decrease && adapt.period_ns == again.period_ns &&
		   adapt.scale == again.scale && adapt.scope == again.scope);
}

static void try_backoff(const char *text)
{
	struct backoff backoff = {.kind = BACKOFF_NONE}, again = backoff;
	char error[ERROR_TEXT] = "", printed[SETTING_TEXT];
	int err = backoff_setting_parse(text, &backoff, error);

	if (err) {
		check_refusal(err, error);
		FUZZ_CHECK(backoff.kind == BACKOFF_NONE);
		return;
	}
	backoff_setting_print(&backoff, printed);
	FUZZ_CHECK(backoff_setting_parse(printed, &again, error) == 0);
	FUZZ_CHECK(!memcmp(&backoff, &again, sizeof(again)));
	if (backoff.kind != BACKOFF_NONE)
		try_feedback("throttled 9\nok 3\n429 retry-after=5\nok 900\nthrottled", &backoff);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct backoff exponential, linear;
	char error[ERROR_TEXT], *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	FUZZ_CHECK(backoff_setting_parse("exponential initial=1ms max=1h after=3", &exponential,
					 error) == 0);
	FUZZ_CHECK(backoff_setting_parse("linear step=7us max=1min after=2", &linear, error) == 0);
	try_feedback(text, &exponential);
	try_feedback(text, &linear);
	try_status("429", text);
	try_status("503", text);
	try_adapt(text);
	try_backoff(text);
	free(text);
	return 0;
}
