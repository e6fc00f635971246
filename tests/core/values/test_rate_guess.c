/* The rate that a text is taken to mean, which is none. */
#include "core/values/rate_guess.h"
#include "core/values/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Each is refused as a setting, and the sentence asks for what is meant. */
static const struct {
	const char *written, *meant;
} GUESSES[] = {
	{"5K/s", "5k/s"},
	{"5kiB/s", "5KiB/s"},
	{"5mB/S", "5MB/s"},
	{"500/seconds", "500/s"},
	{"500/m", "500/min"},
	{"500/Hours", "500/h"},
	{"2/30secs", "2/30s"},
	{"2/1.5hrs", "2/1.5h"},
	{"7/week", "7/7d"},
	{"7/weeks", "7/7d"},
	{"1,000/s", "1000/s"},
	{"1,000,000/day", "1000000/d"},
	{"1_000k/min", "1000k/min"},
	{"10'000/s", "10000/s"},
	{"1e3/s", "1k/s"},
	{"1.5e6/s", "1.5M/s"},
	{"1E4/s", "10k/s"},
	{"unlimited", "max"},
	{"Infinity", "max"},
	{"MAX", "max"},
	{"500rps", "500/s"},
	{"1,500rpm", "1500/min"},
	{"5K", "5k"},
	{"1,000", "1000"},
	{"10K/60S,strict", "10k/60s,strict"},
};

static void test_a_wrong_rate_is_asked_about(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(GUESSES) / sizeof(GUESSES[0]); i++) {
		struct settings settings = SETTINGS_DEFAULT;
		char guess[QUANTITY_TEXT], error[ERROR_TEXT], question[ERROR_TEXT];

		assert_true(rate_guess(GUESSES[i].written, guess));
		assert_string_equal(guess, GUESSES[i].meant);
		snprintf(question, sizeof(question), "; did you mean %s?", guess);
		assert_int_equal(setting_parse(SETTING_RATE, GUESSES[i].written, &settings, error),
				 -EINVAL);
		assert_non_null(strstr(error, question));
		assert_int_equal(
			setting_parse(SETTING_KEY_RATE, GUESSES[i].written, &settings, error),
			-EINVAL);
		assert_non_null(strstr(error, question));
		assert_int_equal(setting_parse(SETTING_RATE, guess, &settings, error), 0);
	}
}

static void test_a_question_has_unit_and_burst_as_they_were_written(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(setting_parse(SETTING_RATE, "5/s tpm=5K/s:20", &settings, error), -EINVAL);
	assert_non_null(strstr(error, "; did you mean tpm=5k/s:20?"));
}

static void test_nothing_is_asked_where_it_is_not_clear(void **state)
{
	static const char *const UNCLEAR[] = {
		"",
		"none",
		"/s",
		"fast",
		"10/s,20/s",
		"1,00/s",
		"1,0000/s",
		"1.5e4/s",
		"2/3week",
		"0,500/s",
		"1.234,567/s",
		"1234,567/s",
		"100Mb/s",
		"5kbps",
		"5/month",
		"-5/s",
		"5//s",
		"5x/s",
		"5/s/s",
		"rps",
		"1e99/s",
		"\033[2J/s",
		"10/60s,stricter",
		"10/60s,strict,strict",
		"max,strict",
		"1e13,000,000,000/s",
		"1111111111111111111111111111111111111111111111111111111111111111K/s",
		"11111111111111111111111111111111111111111111111111111111111K/seconds",
	};
	char guess[QUANTITY_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(UNCLEAR) / sizeof(UNCLEAR[0]); i++) {
		if (rate_guess(UNCLEAR[i], guess))
			fail_msg("'%s' is taken for '%s'", UNCLEAR[i], guess);
	}
}

static void test_a_refusal_names_suffixes_periods_and_the_question_beside_a_long_text(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char text[SETTING_TEXT], error[ERROR_TEXT];

	(void)state;
	snprintf(text, sizeof(text), "%-300s %40s", "10/s", "1e3/seconds");
	assert_int_equal(setting_parse(SETTING_RATE, text, &settings, error), -EINVAL);
	assert_non_null(strstr(error, "k M G T Ki Mi Gi Ti"));
	assert_non_null(strstr(error, "ns us ms s min h d"));
	assert_non_null(strstr(error, "; did you mean 1k/s?"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_rate_is_asked_about),
		cmocka_unit_test(test_a_question_has_unit_and_burst_as_they_were_written),
		cmocka_unit_test(test_nothing_is_asked_where_it_is_not_clear),
		cmocka_unit_test(
			test_a_refusal_names_suffixes_periods_and_the_question_beside_a_long_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
