/* rate_setting - the values of `rate` and `key_rate`, see rate_setting.h. */
#include "core/values/rate_setting.h"
#include "core/values/calendar.h"
#include "core/values/rate_guess.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char TOGETHER_WHY[] =
	"more than 8 limits: rate, and the units and windows of key_rate";

/*
 * Says in @why why @text is no rate, of which rate_parse_limit() said @err. In @word it stands from
 * @begin on.
 */
static void explain_no_rate(int err, const char *text, const char *word, size_t begin,
			    char why[ERROR_TEXT])
{
	char guess[QUANTITY_TEXT];

	if (err != -EINVAL)
		snprintf(why, ERROR_TEXT, "%s",
			 strchr(text, ',')
				 ? "out of bounds: a strict window has a whole number of tokens, 1 "
				   "to 1e13, such as 10/60s,strict"
				 : "out of bounds, or too fine: a rate is 0, max, or 1/26d to "
				   "1000000000000/s");
	else if (rate_guess(text, guess))
		snprintf(why, ERROR_TEXT, RATE_WHY "; did you mean %.*s%s%s?", (int)begin, word,
			 guess, word + begin + strlen(text));
	else
		snprintf(why, ERROR_TEXT, RATE_WHY);
}

const char *rate_setting_burst_why(int err)
{
	return err == -EINVAL ? "not a burst: a whole number such as 20"
			      : "out of bounds: a burst is a whole number, 1 to 1e13";
}

/* Refuses @text, and names the @part of it that is wrong. */
static int refuse_part(int err, char error[ERROR_TEXT], const char *text, const char *part,
		       const char *why)
{
	char sentence[ERROR_TEXT];

	if (!strcmp(text, part))
		return text_refuse(err, error, text, why);
	snprintf(sentence, sizeof(sentence), "'%.80s' is %.240s", part, why);
	return text_refuse(err, error, text, sentence);
}

/* Parses @word of the list @text: a window of the calendar, which begins at @number. */
static int parse_window(const char *text, const char *word, const char *number, struct limit *limit,
			char error[ERROR_TEXT])
{
	char why[ERROR_TEXT];
	int err = calendar_parse(number, &limit->rate, why);

	if (!err) {
		limit->burst = rate_window_tokens(&limit->rate);
		return 0;
	}
	if (strcmp(text, word) != 0)
		snprintf(error, ERROR_TEXT, "'%.100s': '%.60s': %.300s", text, word, why);
	else
		snprintf(error, ERROR_TEXT, "'%.150s': %.300s", text, why);
	return err;
}

/*
 * Parses @word of the list @text: the name of a unit and `=`, if it has one, a rate and, after a
 * colon, a burst of its own. A setting is no unit: after `rate=5/s` a token would have no limit.
 */
static int parse_limit(const char *text, const char *word, struct limit *limit,
		       char error[ERROR_TEXT])
{
	const char *equals = *word != '=' ? strchr(word, '=') : NULL;
	const char *number = equals ? equals + 1 : word;
	const char *colon = strchr(number, ':');
	char rate[SETTING_TEXT], why[ERROR_TEXT];
	int err;

	*limit = (struct limit){0};
	if (equals && !amount_read_unit(word, (size_t)(equals - word), limit->unit))
		return refuse_part(-EINVAL, error, text, word, UNIT_WHY);
	if (equals && setting_find(word, (size_t)(equals - word)) != SETTING_COUNT)
		return refuse_part(-EINVAL, error, text, word,
				   "not a unit but a setting: a rate stands alone, such as "
				   "500/s, and its burst after a colon, such as 10/s:20");
	if (calendar_is_meant(number))
		return parse_window(text, word, number, limit, error);
	snprintf(rate, sizeof(rate), "%.*s", colon ? (int)(colon - number) : SETTING_TEXT - 1,
		 number);
	err = rate_parse_limit(rate, &limit->rate);
	if (err) {
		explain_no_rate(err, rate, word, (size_t)(number - word), why);
		return refuse_part(err, error, text, word, why);
	}
	if (equals && rate_is_unlimited(&limit->rate))
		return text_refuse(-EINVAL, error, text, "max has no unit");
	if (!colon)
		return 0;
	if (rate_is_strict(&limit->rate) || strchr(colon, ','))
		return refuse_part(-EINVAL, error, text, word,
				   "a strict window and a burst: it has none");
	if (rate_is_unlimited(&limit->rate))
		return text_refuse(-EINVAL, error, text, "max has no burst");
	err = tokens_parse(colon + 1, &limit->burst);
	if (!err && !limit->burst)
		err = -ERANGE;
	if (err)
		return refuse_part(err, error, text, colon + 1, rate_setting_burst_why(err));
	return 0;
}

/*
 * Checks that @word, which is @rate, may be one of several rates in @text. A word without a period
 * is more likely a burst, or half of a rate with a blank in it.
 */
static int check_among_others(const char *text, const char *word, const struct rate *rate,
			      char error[ERROR_TEXT])
{
	char why[ERROR_TEXT / 2];

	if (rate_is_unlimited(rate))
		return text_refuse(-EINVAL, error, text, "max stands alone");
	if (!rate->amount)
		return text_refuse(-EINVAL, error, text, "0 stands alone: nothing would pass");
	if (strchr(word, '/'))
		return 0;
	snprintf(why, sizeof(why),
		 "'%.80s' has no /PERIOD: a blank separates rates, and each has its own, such as "
		 "10/s 5000/h; a burst comes after a colon, such as 10/s:20",
		 word);
	return text_refuse(-EINVAL, error, text, why);
}

/* Cuts @text into @words and returns their number; LIMITS_MAX + 1 says that there are more. */
static uint32_t split(char *text, char *words[LIMITS_MAX])
{
	uint32_t count = 0;

	while (*(text += strspn(text, TEXT_SPACE))) {
		if (count == LIMITS_MAX)
			return LIMITS_MAX + 1;
		words[count++] = text;
		text += strcspn(text, TEXT_SPACE);
		if (*text)
			*text++ = '\0';
	}
	return count;
}

/* Puts limits without a unit before those with one, each in the order in which it was written. */
static void sort_limits(struct limit *limits, uint32_t count)
{
	struct limit sorted[LIMITS_MAX];
	uint32_t next = 0;

	for (int with_unit = 0; with_unit < 2; with_unit++) {
		for (uint32_t i = 0; i < count; i++) {
			if ((*limits[i].unit != '\0') == with_unit)
				sorted[next++] = limits[i];
		}
	}
	memcpy(limits, sorted, count * sizeof(*limits));
}

int rate_setting_parse(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	char copy[SETTING_TEXT], *words[LIMITS_MAX];
	struct limit limits[LIMITS_MAX];
	uint32_t count;
	int err;

	if (strlen(text) >= sizeof(copy))
		return text_refuse(-EINVAL, error, text, "too long for a rate");
	memcpy(copy, text, strlen(text) + 1);
	count = split(copy, words);
	if (count > LIMITS_MAX)
		return text_refuse(-ERANGE, error, text, "more than 8 limits");
	for (uint32_t i = 0; i < count; i++) {
		err = parse_limit(text, words[i], &limits[i], error);
		if (!err && count > 1)
			err = check_among_others(text, words[i], &limits[i].rate, error);
		if (err)
			return err;
	}
	if (count == 1 && rate_is_unlimited(&limits[0].rate))
		count = 0;
	if (count + settings->key_unit_count > LIMITS_MAX)
		return text_refuse(-ERANGE, error, text, TOGETHER_WHY);
	sort_limits(limits, count);
	memcpy(settings->limits, limits, count * sizeof(*limits));
	settings->limit_count = count;
	return 0;
}

void rate_setting_print(const struct settings *settings, char text[SETTING_TEXT])
{
	size_t used = 0;
	char rate[CALENDAR_TEXT];

	if (!settings->limit_count) {
		rate_print(&RATE_UNLIMITED, text);
		return;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		bool is_window = rate_is_window(&limit->rate);

		if (is_window)
			calendar_print(&limit->rate, rate);
		else
			rate_print(&limit->rate, rate);
		used += (size_t)snprintf(text + used, SETTING_TEXT - used, "%s%s%s%s", i ? " " : "",
					 limit->unit, *limit->unit ? "=" : "", rate);
		if (limit->burst && !is_window)
			used += (size_t)snprintf(text + used, SETTING_TEXT - used, ":%llu",
						 (unsigned long long)limit->burst);
	}
}

/* Parses @text, a key_rate without a unit and without windows of the calendar. */
static int parse_plain_key_rate(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	int err = rate_parse_limit(text, &settings->key_rate);
	char why[ERROR_TEXT];

	if (!err) {
		settings->key_unit_count = 0;
		return 0;
	}
	if (err == -EINVAL && strpbrk(text, ": \t\n"))
		return text_refuse(err, error, text,
				   "a key has one rate, such as 10/s; its burst is key_burst");
	explain_no_rate(err, text, text, 0, why);
	return text_refuse(err, error, text, why);
}

/* Checks that limit @i of @limits may be one of a key. */
static int check_key_limit(const char *text, const struct limit *limits, uint32_t i,
			   char error[ERROR_TEXT])
{
	bool is_window = rate_is_window(&limits[i].rate), is_plain = !*limits[i].unit;
	uint32_t j = 0;

	while (j < i &&
	       !key_limit_is(&limits[j], limits[i].unit, rate_window_kind(&limits[i].rate)))
		j++;
	if (is_plain && !is_window && (j < i || limits[i].burst))
		return text_refuse(-EINVAL, error, text,
				   "a key has one rate without a unit; its burst is key_burst");
	if (j == i)
		return 0;
	return text_refuse(-EINVAL, error, text,
			   is_window ? "a key has one window of each length and unit"
				     : "a key has one rate of each unit");
}

/* Moves the limit without a unit that is no window to the beginning. Tells whether there is one. */
static bool find_key_rate(struct settings *its)
{
	for (uint32_t i = 0; i < its->limit_count; i++) {
		const struct limit limit = its->limits[i];

		if (*limit.unit || rate_is_window(&limit.rate))
			continue;
		memmove(&its->limits[1], its->limits, i * sizeof(limit));
		its->limits[0] = limit;
		return true;
	}
	return false;
}

int rate_setting_parse_key(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	struct settings its = {.limit_count = 0};
	bool is_plain;
	uint32_t count;
	int err;

	if (!strchr(text, '=') && !calendar_is_meant(text))
		return parse_plain_key_rate(text, settings, error);
	err = rate_setting_parse(text, &its, error);
	for (uint32_t i = 0; !err && i < its.limit_count; i++)
		err = check_key_limit(text, its.limits, i, error);
	if (err)
		return err;
	is_plain = find_key_rate(&its);
	count = its.limit_count - is_plain;
	if (count + settings->limit_count > LIMITS_MAX)
		return text_refuse(-ERANGE, error, text, TOGETHER_WHY);
	settings->key_rate = is_plain ? its.limits[0].rate : RATE_UNLIMITED;
	settings->key_unit_count = (uint8_t)count;
	memcpy(&settings->limits[LIMITS_MAX - count], &its.limits[is_plain],
	       count * sizeof(*its.limits));
	return 0;
}

void rate_setting_print_key(const struct settings *settings, char text[SETTING_TEXT])
{
	const bool is_plain = !rate_is_unlimited(&settings->key_rate);
	struct settings its = {.limit_count = is_plain + settings->key_unit_count};

	its.limits[0].rate = settings->key_rate;
	memcpy(&its.limits[is_plain], settings_key_units(settings),
	       settings->key_unit_count * sizeof(*its.limits));
	rate_setting_print(&its, text);
}
