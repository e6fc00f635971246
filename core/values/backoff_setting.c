/* backoff_setting - the setting `backoff`, from and to text, see backoff_setting.h. */
#include "core/values/backoff_setting.h"
#include "core/values/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AFTER_MAX UINT64_C(1000000000)
#define UP_LEAST  (DECIMAL_ONE + DECIMAL_ONE / 100)
#define UP_MOST	  (1000 * DECIMAL_ONE)
#define DOWN_MOST (DECIMAL_ONE - DECIMAL_ONE / 100)

static const struct backoff EXPONENTIAL = {
	.kind = BACKOFF_EXPONENTIAL,
	.initial_ns = NSEC_PER_SEC / 2,
	.max_ns = 900 * NSEC_PER_SEC,
	.up = DECIMAL_ONE * 3 / 2,
	.down = DECIMAL_ONE * 9 / 10,
	.after = 10,
	.jitter = DECIMAL_ONE * 3 / 10,
	.jitter_max_ns = 120 * NSEC_PER_SEC,
	.retry_max_ns = BACKOFF_TIME_MAX_NS,
};

static const struct backoff LINEAR = {
	.kind = BACKOFF_LINEAR,
	.initial_ns = NSEC_PER_SEC,
	.max_ns = 900 * NSEC_PER_SEC,
	.step_ns = NSEC_PER_SEC,
	.after = 10,
	.retry_max_ns = BACKOFF_TIME_MAX_NS,
};

enum { WORDS_MAX = 8 };

/* The parameters of @backoff's kind. Returns their number. */
static size_t words_of(struct backoff *backoff, struct word words[WORDS_MAX])
{
	/* clang-format off */
	const struct word exponential[] = {
		{.name = "initial", .type = WORD_DURATION, .value = &backoff->initial_ns,
		 .least = 1, .most = BACKOFF_TIME_MAX_NS},
		{.name = "max", .type = WORD_DURATION, .value = &backoff->max_ns,
		 .least = 1, .most = BACKOFF_TIME_MAX_NS},
		{.name = "up", .type = WORD_DECIMAL, .value = &backoff->up,
		 .least = UP_LEAST, .most = UP_MOST},
		{.name = "down", .type = WORD_DECIMAL, .value = &backoff->down,
		 .least = 0, .most = DOWN_MOST},
		{.name = "after", .type = WORD_COUNT, .value = &backoff->after,
		 .least = 1, .most = AFTER_MAX},
		{.name = "jitter", .type = WORD_DECIMAL, .value = &backoff->jitter,
		 .least = 0, .most = DECIMAL_ONE},
		{.name = "jitter-max", .type = WORD_DURATION, .value = &backoff->jitter_max_ns,
		 .least = 0, .most = BACKOFF_TIME_MAX_NS},
		{.name = "retry-max", .type = WORD_DURATION, .value = &backoff->retry_max_ns,
		 .least = 0, .most = BACKOFF_TIME_MAX_NS},
	};
	const struct word linear[] = {
		{.name = "initial", .type = WORD_DURATION, .value = &backoff->initial_ns,
		 .least = 1, .most = BACKOFF_TIME_MAX_NS},
		{.name = "step", .type = WORD_DURATION, .value = &backoff->step_ns,
		 .least = 1, .most = BACKOFF_TIME_MAX_NS},
		{.name = "max", .type = WORD_DURATION, .value = &backoff->max_ns,
		 .least = 1, .most = BACKOFF_TIME_MAX_NS},
		{.name = "after", .type = WORD_COUNT, .value = &backoff->after,
		 .least = 1, .most = AFTER_MAX},
		{.name = "retry-max", .type = WORD_DURATION, .value = &backoff->retry_max_ns,
		 .least = 0, .most = BACKOFF_TIME_MAX_NS},
	};
	/* clang-format on */

	if (backoff->kind == BACKOFF_LINEAR) {
		memcpy(words, linear, sizeof(linear));
		return sizeof(linear) / sizeof(linear[0]);
	}
	memcpy(words, exponential, sizeof(exponential));
	return sizeof(exponential) / sizeof(exponential[0]);
}

int backoff_setting_parse(const char *text, struct backoff *backoff, char *error)
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
		return text_refuse(
			-EINVAL, error, text,
			"not a backoff: none, exponential or linear, and name=value ...");
	err = words_parse(text, words, words_of(&next, words), error);
	if (err)
		return err;
	if (next.initial_ns > next.max_ns)
		return text_refuse(-ERANGE, error, text, "initial is above max");
	*backoff = next;
	return 0;
}

void backoff_setting_print(const struct backoff *backoff, char *text)
{
	struct word words[WORDS_MAX];
	struct backoff copy = *backoff;

	if (backoff->kind == BACKOFF_NONE)
		snprintf(text, SETTING_TEXT, "none");
	else
		words_print(backoff->kind == BACKOFF_LINEAR ? "linear" : "exponential", words,
			    words_of(&copy, words), text);
}
