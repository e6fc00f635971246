/* adapt_setting - the setting `adapt`, from and to text, see adapt_setting.h. */
#include "core/values/adapt_setting.h"
#include "core/values/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PERIOD_LEAST_NS (NSEC_PER_SEC / 100)
#define PERIOD_MOST_NS	(3600 * NSEC_PER_SEC)

static const double MIN_LEAST = 1e-3; /* tokens a second */

static const struct adapt AIMD = {
	.kind = ADAPT_AIMD,
	.min = {.amount = 1, .period_ns = NSEC_PER_SEC},
	.decrease = DECIMAL_ONE / 2,
	.increase = {.share = DECIMAL_ONE / 100, .is_share = true},
	.period_ns = NSEC_PER_SEC,
};

static const struct adapt CUBIC = {
	.kind = ADAPT_CUBIC,
	.min = {.amount = 1, .period_ns = NSEC_PER_SEC},
	.decrease = DECIMAL_ONE * 7 / 10,
	.period_ns = NSEC_PER_SEC,
	.scale = DECIMAL_ONE * 4 / 10,
};

static const char *const SCOPES[] = {[ADAPT_FLEET] = "fleet", [ADAPT_HOST] = "host", NULL};

static const char MIN_WHY[] = "not a least rate: 0.001/s or more, not max (periods: " PERIOD_NAMES
			      ")";
static const char INCREASE_WHY[] = "not an increase: a rate such as 5/s (periods: " PERIOD_NAMES
				   "), or a part such as 1%, above 0";

static int parse_min(const char *text, void *value)
{
	struct rate rate;
	int err = rate_parse(text, &rate);

	if (err)
		return err;
	if (rate_is_unlimited(&rate) || rate_per_second(&rate) < MIN_LEAST)
		return -ERANGE;
	*(struct rate *)value = rate;
	return 0;
}

static void print_min(const void *value, char text[QUANTITY_TEXT])
{
	rate_print(value, text);
}

static int parse_increase(const char *text, void *value)
{
	struct adapt_step step = {.is_share = true};
	size_t length = strlen(text);
	char number[QUANTITY_TEXT];
	int err;

	if (!length || text[length - 1] != '%') {
		step.is_share = false;
		err = rate_parse(text, &step.rate);
		if (!err && (rate_is_unlimited(&step.rate) || !step.rate.amount))
			err = -ERANGE;
	} else {
		if (length > sizeof(number))
			return -ERANGE;
		memcpy(number, text, length - 1);
		number[length - 1] = '\0';
		err = decimal_parse(number, &step.share);
		/* Percents are printed as they were written: two digits less after the point. */
		if (!err && (step.share % 100 || !step.share || step.share > 100 * DECIMAL_ONE))
			err = -ERANGE;
		step.share /= 100;
	}
	if (!err)
		*(struct adapt_step *)value = step;
	return err;
}

static void print_increase(const void *value, char text[QUANTITY_TEXT])
{
	const struct adapt_step *step = value;

	if (!step->is_share) {
		rate_print(&step->rate, text);
		return;
	}
	decimal_print(step->share * 100, text);
	strcat(text, "%");
}

enum { WORDS_MAX = 5 };

/* The parameters of @adapt's kind. Returns their number. */
static size_t words_of(struct adapt *adapt, struct word words[WORDS_MAX])
{
	const struct word min = {.name = "min",
				 .type = WORD_OTHER,
				 .value = &adapt->min,
				 .parse = parse_min,
				 .print = print_min,
				 .why = MIN_WHY};
	const struct word decrease = {.name = "decrease",
				      .type = WORD_DECIMAL,
				      .value = &adapt->decrease,
				      .least = DECIMAL_ONE / 100,
				      .most = DECIMAL_ONE * 99 / 100};
	const struct word increase = {.name = "increase",
				      .type = WORD_OTHER,
				      .value = &adapt->increase,
				      .parse = parse_increase,
				      .print = print_increase,
				      .why = INCREASE_WHY};
	const struct word scale = {.name = "scale",
				   .type = WORD_DECIMAL,
				   .value = &adapt->scale,
				   .least = 1,
				   .most = 1000 * DECIMAL_ONE};
	const struct word period = {.name = "period",
				    .type = WORD_DURATION,
				    .value = &adapt->period_ns,
				    .least = PERIOD_LEAST_NS,
				    .most = PERIOD_MOST_NS};
	const struct word scope = {
		.name = "scope", .type = WORD_CHOICE, .value = &adapt->scope, .choices = SCOPES};

	words[0] = min;
	words[1] = decrease;
	words[2] = adapt->kind == ADAPT_CUBIC ? scale : increase;
	words[3] = period;
	words[4] = scope;
	return WORDS_MAX;
}

int adapt_setting_parse(const char *text, struct adapt *adapt, char *error)
{
	struct word words[WORDS_MAX];
	struct adapt next;
	int err;

	if (!strcmp(text, "none")) {
		*adapt = (struct adapt){.kind = ADAPT_NONE};
		return 0;
	}
	if (words_are(text, "aimd"))
		next = AIMD;
	else if (words_are(text, "cubic"))
		next = CUBIC;
	else
		return text_refuse(-EINVAL, error, text,
				   "not an adapt: none, aimd or cubic, and name=value ...");
	err = words_parse(text, words, words_of(&next, words), error);
	if (!err)
		*adapt = next;
	return err;
}

void adapt_setting_print(const struct adapt *adapt, char *text)
{
	struct word words[WORDS_MAX];
	struct adapt copy = *adapt;

	if (adapt->kind == ADAPT_NONE)
		snprintf(text, SETTING_TEXT, "none");
	else
		words_print(adapt->kind == ADAPT_CUBIC ? "cubic" : "aimd", words,
			    words_of(&copy, words), text);
}
