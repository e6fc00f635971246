/* Tests of settings: texts that a limiter accepts, and texts that are refused with which words. */
#include "core/values/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void assert_same(const struct settings *a, const struct settings *b)
{
	char text_a[CONFIG_TEXT], text_b[CONFIG_TEXT];

	settings_print(a, text_a, sizeof(text_a));
	settings_print(b, text_b, sizeof(text_b));
	assert_string_equal(text_a, text_b);
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_true(setting_equal((enum setting_id)id, a, b));
}

static void assert_says(const char *error, const char *words)
{
	if (!strstr(error, words))
		fail_msg("the refusal says \"%s\", nothing of \"%s\"", error, words);
}

static void set(struct settings *settings, enum setting_id id, const char *text)
{
	char error[ERROR_TEXT];

	if (setting_parse(id, text, settings, error))
		fail_msg("%s '%s' is refused: %s", setting_name(id), text, error);
}

static struct settings settings_of(const char *config)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	if (settings_parse(config, &settings, error))
		fail_msg("'%s' is refused: %s", config, error);
	return settings;
}

static void assert_reads_back(enum setting_id id, const char *text, const char *expected)
{
	struct settings settings = SETTINGS_DEFAULT, again;
	char printed[SETTING_TEXT];

	set(&settings, id, text);
	setting_print(id, &settings, printed);
	assert_string_equal(printed, expected);
	again = SETTINGS_DEFAULT;
	set(&again, id, printed);
	assert_same(&settings, &again);
}

static void assert_setting_refused(enum setting_id id, const char *text, int err, const char *words)
{
	struct settings settings =
		settings_of("rate=10/s:20 50000/h\nburst=3\npartitions.reserve=1/s hosts=2\n");
	const struct settings before = settings;
	char error[ERROR_TEXT] = "";
	int got = setting_parse(id, text, &settings, error);

	if (got != err)
		fail_msg("%s '%s' gives %d, not %d", setting_name(id), text, got, err);
	assert_says(error, words);
	assert_same(&settings, &before);
}

static void assert_config_refused(const char *config, int err, const char *words)
{
	struct settings settings = settings_of("rate=10/s\nburst=3\n");
	const struct settings before = settings;
	char error[ERROR_TEXT] = "";
	int got = settings_parse(config, &settings, error);

	if (got != err)
		fail_msg("'%s' gives %d, not %d", config, got, err);
	assert_says(error, words);
	assert_same(&settings, &before);
}

static void test_a_new_limiter_gates_nothing(void **state)
{
	char config[CONFIG_TEXT];

	(void)state;
	settings_print(&SETTINGS_DEFAULT, config, sizeof(config));
	assert_string_equal(config, "rate=max\n"
				    "burst=1\n"
				    "release_interval=0s\n"
				    "enforcement=enforce\n"
				    "partitions.count=auto\n"
				    "partitions.lease=15s\n"
				    "partitions.reserve=none\n"
				    "offline=block\n"
				    "adapt=none\n"
				    "backoff=none\n"
				    "concurrency=max\n"
				    "key_rate=max\n"
				    "key_burst=1\n"
				    "keys_max=1000000\n"
				    "key_share=proportional\n"
				    "weight=100\n"
				    "min=none\n"
				    "priority=0\n"
				    "queue_max=max\n"
				    "wait_max=max\n"
				    "key_concurrency=max\n");
}

static void test_concurrency_refuses_other_texts(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_CONCURRENCY, "0", -ERANGE, "max or 1 to 1000000");
	assert_setting_refused(SETTING_CONCURRENCY, "1000001", -ERANGE, "max or 1 to 1000000");
	assert_setting_refused(SETTING_CONCURRENCY, "many", -EINVAL, "not understood");
	assert_setting_refused(SETTING_CONCURRENCY, "automatic", -EINVAL, "not understood");
	assert_setting_refused(SETTING_CONCURRENCY, "auto 5", -EINVAL, "min max decrease");
	assert_setting_refused(SETTING_CONCURRENCY, "auto min=0", -ERANGE, "1 to 1000000");
	assert_setting_refused(SETTING_CONCURRENCY, "auto min=9 max=8", -ERANGE, "above max");
	assert_setting_refused(SETTING_CONCURRENCY, "auto min=201", -ERANGE, "above max");
	assert_setting_refused(SETTING_CONCURRENCY, "auto decrease=1", -ERANGE, "0.1 to 0.99");
	assert_setting_refused(SETTING_CONCURRENCY, "auto max=3 max=3", -EINVAL, "twice");
}

static void test_every_setting_reads_back_what_can_be_written_back(void **state)
{
	(void)state;
	assert_reads_back(SETTING_RATE, "max", "max");
	assert_reads_back(SETTING_KEY_RATE, "600/min", "600/min");
	assert_reads_back(SETTING_KEY_RATE, " max\n", "max");
	assert_reads_back(SETTING_KEY_RATE, "x=90k/min:300 600/min", "600/min x=90k/min:300");
	assert_reads_back(SETTING_KEY_RATE, "y=1/s x=3/9s,strict", "y=1/s x=3/9s,strict");
	assert_reads_back(SETTING_KEY_BURST, "2k", "2000");
	assert_reads_back(SETTING_KEYS_MAX, "10000000", "10000000");
	assert_reads_back(SETTING_RATE, "0", "0");
	assert_reads_back(SETTING_CONCURRENCY, "max", "max");
	assert_reads_back(SETTING_CONCURRENCY, "020", "20");
	assert_reads_back(SETTING_CONCURRENCY, "1000000", "1000000");
	assert_reads_back(SETTING_CONCURRENCY, "auto", "auto min=1 max=200 decrease=0.9");
	assert_reads_back(SETTING_CONCURRENCY, "auto\tdecrease=0.50  max=7 min=7",
			  "auto min=7 max=7 decrease=0.5");
	assert_reads_back(SETTING_RATE, "500", "500/s");
	assert_reads_back(SETTING_RATE, "2GiB/min", "2Gi/min");
	assert_reads_back(SETTING_BURST, "1", "1");
	assert_reads_back(SETTING_BURST, "4Ki", "4096");
	assert_reads_back(SETTING_RELEASE_INTERVAL, "0s", "0s");
	assert_reads_back(SETTING_RELEASE_INTERVAL, "0.2s", "200ms");
	assert_reads_back(SETTING_RELEASE_INTERVAL, "1000us", "1ms");
	assert_reads_back(SETTING_RELEASE_INTERVAL, "0.2", "200ms");
	assert_reads_back(SETTING_RELEASE_INTERVAL, "0", "0s");
	assert_reads_back(SETTING_ENFORCEMENT, "enforce", "enforce");
	assert_reads_back(SETTING_ENFORCEMENT, "shadow", "shadow");
	assert_reads_back(SETTING_ENFORCEMENT, "open", "open");
	assert_reads_back(SETTING_ENFORCEMENT, "closed", "closed");
	assert_reads_back(SETTING_KEY_SHARE, "proportional", "proportional");
	assert_reads_back(SETTING_KEY_SHARE, "leased", "leased");
	assert_reads_back(SETTING_PARTITIONS_COUNT, "auto", "auto");
	assert_reads_back(SETTING_PARTITIONS_COUNT, "1", "1");
	assert_reads_back(SETTING_PARTITIONS_COUNT, "4096", "4096");
	assert_reads_back(SETTING_PARTITIONS_LEASE, "15s", "15s");
	assert_reads_back(SETTING_PARTITIONS_LEASE, "60s", "1min");
	assert_reads_back(SETTING_PARTITIONS_LEASE, "1000ms", "1s");
	assert_reads_back(SETTING_PARTITIONS_LEASE, "20", "20s");
	assert_reads_back(SETTING_ADAPT, "aimd period=2",
			  "aimd min=1/s decrease=0.5 increase=1% period=2s scope=fleet");
	assert_reads_back(SETTING_BACKOFF, "linear initial=2 step=0.5 max=60",
			  "linear initial=2s step=500ms max=1min after=10 retry-max=1d");
	assert_reads_back(SETTING_PARTITIONS_RESERVE, "none", "none");
	assert_reads_back(SETTING_PARTITIONS_RESERVE, "10/s hosts=8", "10/s hosts=8");
	assert_reads_back(SETTING_PARTITIONS_RESERVE, "10 \t hosts=08", "10/s hosts=8");
	assert_reads_back(SETTING_PARTITIONS_RESERVE, "1/h hosts=4096", "1/h hosts=4096");
}

static void test_several_limits_can_hold_together(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;

	(void)state;
	assert_reads_back(SETTING_RATE, "10/s 5000/h", "10/s 5000/h");
	assert_reads_back(SETTING_RATE, "10/s:20 5000/h:100", "10/s:20 5000/h:100");
	assert_reads_back(SETTING_RATE, "10/s\t  5000/60min:1k", "10/s 5000/h:1000");
	assert_reads_back(SETTING_RATE, "500:20", "500/s:20");
	assert_reads_back(SETTING_RATE, "1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s",
			  "1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s");

	set(&settings, SETTING_RATE, "10/s:20 5000/h");
	assert_int_equal(settings.limit_count, 2);
	assert_int_equal(settings.limits[0].burst, 20);
	assert_int_equal(settings.limits[1].burst, 0);
	set(&settings, SETTING_RATE, "max");
	assert_int_equal(settings.limit_count, 0);
}

static void test_the_longest_limits_that_can_be_said_can_be_read_back(void **state)
{
	static const char limit[] = "99999999999999999/99999999999999999ns:1000000000000";
	char text[SETTING_TEXT] = "";

	(void)state;
	for (int i = 0; i < LIMITS_MAX; i++) {
		strcat(text, i ? " " : "");
		strcat(text, limit);
	}
	assert_reads_back(SETTING_RATE, text, text);
}

static void test_white_space_at_either_end_is_ignored(void **state)
{
	(void)state;
	assert_reads_back(SETTING_RATE, "500/s\n", "500/s");
	assert_reads_back(SETTING_RATE, " \t500/s \r\n\n", "500/s");
	assert_reads_back(SETTING_ENFORCEMENT, "\nshadow\n", "shadow");
	assert_reads_back(SETTING_PARTITIONS_RESERVE, " none ", "none");
}

static void test_an_empty_write_is_refused_for_every_setting(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		assert_setting_refused((enum setting_id)id, "", -EINVAL, "no value");
		assert_setting_refused((enum setting_id)id, " \n\t ", -EINVAL, "no value");
	}
}

static void test_nonsense_is_refused_for_every_setting_and_named(void **state)
{
	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		assert_setting_refused((enum setting_id)id, "bogus", -EINVAL, "bogus");
		assert_setting_refused((enum setting_id)id, "-1", -EINVAL, "-1");
	}
}

static void test_a_text_that_is_too_long_is_refused_for_every_setting(void **state)
{
	char text[4 * SETTING_TEXT] = "";

	(void)state;
	for (size_t length = SETTING_TEXT; length < sizeof(text); length *= 2) {
		memset(text, '0', length);
		for (int id = 0; id < SETTING_COUNT; id++)
			assert_setting_refused((enum setting_id)id, text, -EINVAL, "too long");
	}
}

static void test_of_several_rates_each_has_a_period(void **state)
{
	static const char *const texts[] = {"500/s 20", "20 500/s",   "5 0/s",	  "10 per s",
					    "1 2",	"10/s 5:100", "10/s 1k/", "10 / s"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_setting_refused(SETTING_RATE, texts[i], -EINVAL, texts[i]);
	assert_setting_refused(
		SETTING_RATE, "500/s 20", -EINVAL,
		"'500/s 20': '20' has no /PERIOD: a blank separates rates, and each has its own, "
		"such as 10/s 5000/h; a burst comes after a colon, such as 10/s:20");
	assert_setting_refused(SETTING_RATE, "5 0/s", -EINVAL, "'5' has no /PERIOD");
	assert_setting_refused(SETTING_RATE, "10/s 5:100", -EINVAL, "'5:100' has no /PERIOD");
}

static void test_a_strict_window_is_a_limit(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT], text[SETTING_TEXT];

	(void)state;
	assert_int_equal(
		setting_parse(SETTING_RATE, "5/s:3 10/60s,strict 2Ki/7d,strict", &settings, error),
		0);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "5/s:3 10/min,strict 2Ki/7d,strict");
	assert_int_equal(settings_burst(&settings, 1), 10);
	assert_int_equal(settings_burst(&settings, 2), 2048);
	assert_int_equal(settings.limits[1].rate.period_ns, 60 * NSEC_PER_SEC);
	assert_setting_refused(SETTING_RATE, "1.5/s,strict", -ERANGE, "whole number of tokens");
	assert_setting_refused(SETTING_RATE, "0/s,strict", -ERANGE, "whole number of tokens");
	assert_setting_refused(SETTING_RATE, "20T/9d,strict", -ERANGE, "1 to 1e13");
	assert_setting_refused(SETTING_RATE, "max,strict", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "10/60s,stricter", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "10/60s,", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "10/60s,strict,strict", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "10/60s,strict:5", -EINVAL,
			       "a strict window and a burst");
	assert_setting_refused(SETTING_RATE, "10/60s:5,strict", -EINVAL,
			       "a strict window and a burst");
	assert_setting_refused(SETTING_MIN, "10/60s,strict", -EINVAL, "not a min");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/60s,strict hosts=2", -EINVAL,
			       "hosts");
}

static void test_a_strict_window_stands_beside_some_settings_only(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(
		settings_parse("rate=10/60s,strict\npartitions.count=11", &settings, error),
		-ERANGE);
	assert_non_null(strstr(error, "there are 11 partitions: more than tokens in "
				      "'10/min,strict'"));
	assert_int_equal(settings_parse("rate=10/60s,strict\npartitions.reserve=1/s hosts=1",
					&settings, error),
			 -ERANGE);
	assert_non_null(strstr(error, "a strict window has no reserve"));
	assert_int_equal(settings_parse("rate=10/60s,strict\nadapt=aimd", &settings, error),
			 -ERANGE);
	assert_non_null(strstr(error, "adapt learns a rate that flows"));
	assert_int_equal(settings_parse("rate=10/60s,strict\nbackoff=linear\nrelease_interval=1s\n"
					"partitions.count=10",
					&settings, error),
			 0);
}

/* Rounded down: the parts together are never more than the whole. */
static void test_parts_of_a_strict_window_have_whole_tokens(void **state)
{
	struct settings settings = SETTINGS_DEFAULT, share;
	char error[ERROR_TEXT];

	(void)state;
	assert_int_equal(settings_parse("rate=10/60s,strict\npartitions.count=3\noffline=share:4",
					&settings, error),
			 0);
	for (uint32_t i = 0; i < 3; i++) {
		share = settings_of_partition(&settings, i);
		assert_true(rate_is_strict(&share.limits[0].rate));
		assert_int_equal(rate_window(&share.limits[0].rate), 3);
		assert_int_equal(share.limits[0].rate.period_ns, 60 * NSEC_PER_SEC);
	}
	settings_of_host(&settings, 2, false, &share);
	assert_int_equal(rate_window(&share.limits[0].rate), 6);
	settings_of_host(&settings, 3, false, &share);
	assert_int_equal(rate_window(&share.limits[0].rate), 10);
	settings_of_host(&settings, 0, false, &share);
	assert_int_equal(share.limits[0].rate.amount, 0);
	assert_false(rate_is_strict(&share.limits[0].rate));
	settings_apply_offline(&settings);
	assert_int_equal(rate_window(&settings.limits[0].rate), 2);
	assert_int_equal(settings_parse("partitions.count=auto", &settings, error), 0);
	assert_int_equal(settings_leaf_count(&settings), 2);
	assert_int_equal(settings_parse("rate=10/60s,strict 5000/h,strict", &settings, error), 0);
	assert_int_equal(settings_leaf_count(&settings), 10);
	assert_int_equal(settings_least_leaves(&settings), 1);
	assert_int_equal(settings_partition_count(&settings), 10);
	assert_int_equal(settings_parse("rate=5000/h,strict", &settings, error), 0);
	assert_int_equal(settings_leaf_count(&settings), LEAVES_MOST);
	assert_int_equal(settings_partition_count(&settings), PARTITIONS_AUTO);
}

static void test_a_rate_of_0_and_max_stand_alone(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RATE, "0 10/s", -EINVAL, "0 stands alone");
	assert_setting_refused(SETTING_RATE, "10/s 0/s", -EINVAL, "0 stands alone");
	assert_setting_refused(SETTING_RATE, "10/s 0/min:5", -EINVAL, "0 stands alone");
	assert_setting_refused(SETTING_RATE, "max 10/s", -EINVAL, "max stands alone");
	assert_setting_refused(SETTING_RATE, "10/s max", -EINVAL, "max stands alone");
	assert_setting_refused(SETTING_RATE, "max max", -EINVAL, "max stands alone");
}

static void test_refusal_of_a_rate_or_a_duration_names_every_period(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RATE, "500/m", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_RATE, "10/s 500/m", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_KEY_RATE, "500/month", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "5/m hosts=3", -EINVAL,
			       "ns us ms s min h d");
	assert_setting_refused(SETTING_ADAPT, "aimd min=5/m", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_ADAPT, "aimd increase=5/m", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "5m", -EINVAL, "ns us ms s min h d");
	assert_setting_refused(SETTING_BACKOFF, "linear step=5m", -EINVAL, "ns us ms s min h d");
}

static void test_refusal_of_one_of_several_words_quotes_them_all(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RATE, "10/s 500/m", -EINVAL,
			       "'10/s 500/m': '500/m' is not a rate: ");
	assert_setting_refused(SETTING_RATE, "10/s 2T/s", -ERANGE,
			       "'10/s 2T/s': '2T/s' is out of bounds, or too fine");
	assert_setting_refused(SETTING_RATE, "10/s 5/s:x", -EINVAL,
			       "'10/s 5/s:x': 'x' is not a burst: ");
	assert_setting_refused(
		SETTING_RATE, "10/s 5/s:0", -ERANGE,
		"'10/s 5/s:0': '0' is out of bounds: a burst is a whole number, 1 to 1e13");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "5/m hosts=3", -EINVAL,
			       "'5/m hosts=3': not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "5/s hosts=0", -ERANGE,
			       "'5/s hosts=0': out of bounds");
}

static void test_wrong_rates_are_refused(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RATE, "500/m", -EINVAL, "'500/m': not a rate: ");
	assert_setting_refused(SETTING_RATE, "10/s,20/s", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "none", -EINVAL, "not a rate");
	assert_setting_refused(SETTING_RATE, "10/s :20", -EINVAL, "':20' is not a rate");
	assert_setting_refused(SETTING_RATE, "2T/s", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_RATE, "1/3650d", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_RATE, "max:5", -EINVAL, "max has no burst");
	assert_setting_refused(SETTING_RATE, "1 2 3 4 5 6 7 8 9", -ERANGE, "8 limits");
}

static void test_the_bounds_that_a_refusal_names_are_the_bounds(void **state)
{
	char slowest[] = "1/26d", fastest[] = "1000000000000/s";

	(void)state;
	assert_reads_back(SETTING_RATE, slowest, slowest);
	assert_reads_back(SETTING_RATE, fastest, fastest);
	assert_setting_refused(SETTING_RATE, "1/27d", -ERANGE, slowest);
	assert_setting_refused(SETTING_RATE, "1000000000001/s", -ERANGE, fastest);
}

static void test_a_setting_is_no_unit(void **state)
{
	char text[SETTING_TEXT];

	(void)state;
	for (int id = 0; id < SETTING_COUNT; id++) {
		snprintf(text, sizeof(text), "%s=1/s", setting_name((enum setting_id)id));
		assert_setting_refused(SETTING_RATE, text, -EINVAL, "not a unit");
		assert_setting_refused(SETTING_KEY_RATE, text, -EINVAL, "not a unit");
	}
	assert_setting_refused(SETTING_RATE, "10/s burst=5", -EINVAL, "after a colon");
	assert_setting_refused(SETTING_RATE, "rate=100/day@00:00", -EINVAL, "but a setting");
}

static void test_wrong_bursts_are_refused(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RATE, "10/s:", -EINVAL, "burst");
	assert_setting_refused(SETTING_RATE, "10/s:x", -EINVAL, "'x'");
	assert_setting_refused(SETTING_RATE, "10/s:20:30", -EINVAL, "'20:30'");
	assert_setting_refused(SETTING_RATE, "10/s:max", -EINVAL, "burst");
	assert_setting_refused(SETTING_RATE, "10/s:0", -ERANGE, "burst");
	assert_setting_refused(SETTING_RATE, "10/s:10000T", -ERANGE, "burst");
	assert_setting_refused(SETTING_KEY_RATE, "1/s 2/s", -EINVAL, "a key has one rate");
	assert_setting_refused(SETTING_KEY_RATE, "10/day@00:00 9/day@12:00", -EINVAL,
			       "a key has one window of each length and unit");
	assert_setting_refused(SETTING_KEY_RATE, "1/s:2", -EINVAL, "its burst is key_burst");
	assert_setting_refused(SETTING_KEY_RATE, "1/s:2 x=1/s", -EINVAL, "its burst is key_burst");
	assert_setting_refused(SETTING_KEY_RATE, "x=1/s 1/s 2/s", -EINVAL, "one rate without");
	assert_setting_refused(SETTING_KEY_RATE, "x=1/s x=9/h", -EINVAL, "one rate of each unit");
	assert_setting_refused(SETTING_KEY_RATE, "x=9/day@0", -EINVAL, "a day begins");
	assert_setting_refused(SETTING_KEY_RATE, "max x=1/s", -EINVAL, "max stands alone");
	assert_setting_refused(SETTING_KEY_RATE, "1/27d", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_KEY_BURST, "0", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_KEY_BURST, "max", -EINVAL, "not a burst");
	assert_setting_refused(SETTING_KEYS_MAX, "0", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_KEYS_MAX, "10000001", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_KEYS_MAX, "max", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_KEYS_MAX, "1.5", -EINVAL, "not a count");
	assert_setting_refused(SETTING_PRIORITY, "high", -EINVAL,
			       "not a count: a whole number, 0 to 9");
	assert_setting_refused(SETTING_BURST, "0", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_BURST, "10000T", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_BURST, "max", -EINVAL, "not a burst");
	assert_setting_refused(SETTING_BURST, "5 6", -EINVAL, "not a burst");
	assert_setting_refused(SETTING_BURST, "10/s", -EINVAL, "not a burst");
}

static void test_wrong_durations_are_refused(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "200m", -EINVAL, "not a duration");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "3601", -ERANGE, "0s or 1ms to 1h");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "1ns", -ERANGE, "1ms");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "999us", -ERANGE, "1ms");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "3650d", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_RELEASE_INTERVAL, "9999999d", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_PARTITIONS_LEASE, "0s", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_PARTITIONS_LEASE, "3650d", -ERANGE, "out of bounds");
	assert_setting_refused(SETTING_PARTITIONS_LEASE, "15m", -EINVAL, "not a duration");
}

static void test_wrong_modes_and_counts_are_refused(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_ENFORCEMENT, "Enforce", -EINVAL, "not understood");
	assert_setting_refused(SETTING_ENFORCEMENT, "open closed", -EINVAL, "not understood");
	assert_setting_refused(SETTING_KEY_SHARE, "evenly", -EINVAL, "not understood");
	assert_setting_refused(SETTING_PARTITIONS_COUNT, "0", -ERANGE, "4096");
	assert_setting_refused(SETTING_PARTITIONS_COUNT, "4097", -ERANGE, "4096");
	assert_setting_refused(SETTING_PARTITIONS_COUNT, "max", -ERANGE, "4096");
	assert_setting_refused(SETTING_PARTITIONS_COUNT, "1.5", -EINVAL, "not a count");
}

static void test_wrong_reserves_are_refused(void **state)
{
	(void)state;
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s", -EINVAL, "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "hosts=8", -EINVAL, "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=", -EINVAL, "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=x", -EINVAL,
			       "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=8 hosts=9", -EINVAL,
			       "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "x hosts=8", -EINVAL, "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "none hosts=8", -EINVAL,
			       "not a reserve");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=0", -ERANGE, "hosts=1 ");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=4097", -ERANGE, "4096");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "10/s hosts=max", -ERANGE, "4096");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "max hosts=8", -ERANGE, "finite");
	assert_setting_refused(SETTING_PARTITIONS_RESERVE, "0 hosts=8", -ERANGE, "above 0");
}

static void test_a_config_sets_what_it_names_and_leaves_the_rest(void **state)
{
	struct settings settings = settings_of("rate=10/s\nburst=3\nenforcement=shadow\n");
	char error[ERROR_TEXT], text[SETTING_TEXT];

	(void)state;
	assert_int_equal(settings_parse("burst=7\n", &settings, error), 0);
	assert_int_equal(settings.burst, 7);
	assert_int_equal(settings.enforcement, ENFORCEMENT_SHADOW);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "10/s");
}

static void test_a_config_that_was_read_can_be_written_back(void **state)
{
	struct settings settings = settings_of("rate=100/s:20 5000000/h\n"
					       "burst=7\n"
					       "release_interval=200ms\n"
					       "enforcement=closed\n"
					       "partitions.count=7\n"
					       "partitions.lease=1min\n"
					       "partitions.reserve=0.5/s hosts=3\n");
	struct settings again = SETTINGS_DEFAULT;
	char config[CONFIG_TEXT], error[ERROR_TEXT];

	(void)state;
	settings_print(&settings, config, sizeof(config));
	assert_int_equal(settings_parse(config, &again, error), 0);
	assert_same(&settings, &again);
	assert_int_equal(settings_parse(config, &again, error), 0);
	assert_same(&settings, &again);
}

static void test_comments_blank_lines_and_white_space_in_a_config_are_skipped(void **state)
{
	struct settings settings = settings_of("# all of it\r\n"
					       "\n"
					       "  \t\n"
					       "  rate = 10/s  5/s \r\n"
					       "\t# burst=9\n"
					       "burst=2");
	char text[SETTING_TEXT];

	(void)state;
	assert_int_equal(settings.burst, 2);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "10/s 5/s");
}

static void test_the_last_line_of_a_name_counts(void **state)
{
	struct settings settings = settings_of("burst=2\nburst=5\n");

	(void)state;
	assert_int_equal(settings.burst, 5);
}

static void test_a_config_takes_effect_whole_or_not_at_all(void **state)
{
	(void)state;
	assert_config_refused("burst=7\nrate=bogus\n", -EINVAL, "line 2");
	assert_config_refused("burst=7\nrate=bogus\n", -EINVAL, "'bogus'");
	assert_config_refused("burst=7\nenforcement=open\nburst=0\n", -ERANGE, "line 3");
	assert_config_refused("burst=7\n\n# rate\nrat=5/s\n", -EINVAL, "line 4");
	assert_config_refused("burst=7\nrate\n", -EINVAL, "name=value");
	assert_config_refused("burst=7\n=5\n", -EINVAL, "no such setting");
	assert_config_refused(
		"burst=7\nRATE=5/s\n", -EINVAL,
		"'RATE': no such setting: rate, burst, release_interval, enforcement,");
	assert_config_refused("burst=7\npartitions=5\n", -EINVAL, "no such setting");
	assert_config_refused("burst=7\nrate=\n", -EINVAL, "no value");
	assert_config_refused("burst=7\nrate==5/s\n", -EINVAL, "not a rate");
	assert_config_refused("burst=7\npartitions.reserve=11/s hosts=1\n", -ERANGE,
			      "11/s hosts=1");
}

static void test_a_config_that_says_nothing_is_refused(void **state)
{
	(void)state;
	assert_config_refused("", -EINVAL, "");
	assert_config_refused("\n\n", -EINVAL, "");
	assert_config_refused("# nothing\n", -EINVAL, "");
}

static void test_a_line_that_is_too_long_is_refused(void **state)
{
	static const char start[] = "burst=7\n";
	char config[CONFIG_TEXT] = "burst=7\n";

	(void)state;
	for (size_t length = 2 * SETTING_TEXT; length < sizeof(config) / 2; length *= 2) {
		memset(config + strlen(start), '1', length);
		memcpy(config + strlen(start), "burst=", strlen("burst="));
		assert_config_refused(config, -EINVAL, "line 2");
	}
}

static void test_a_long_config_of_short_lines_is_fine(void **state)
{
	static char config[CONFIG_TEXT];
	struct settings settings;

	(void)state;
	for (size_t i = 0; i + 8 < sizeof(config); i += 8)
		memcpy(config + i, "burst=9\n", 8);
	settings = settings_of(config);
	assert_int_equal(settings.burst, 9);
}

static void test_a_config_that_does_not_fit_is_cut_off_within_its_memory(void **state)
{
	char whole[CONFIG_TEXT], cut[64];
	size_t length = settings_print(&SETTINGS_DEFAULT, whole, sizeof(whole));

	(void)state;
	for (size_t size = 1; size <= sizeof(cut); size++) {
		memset(cut, '#', sizeof(cut));
		assert_int_equal(settings_print(&SETTINGS_DEFAULT, cut, size), size - 1);
		assert_int_equal(strlen(cut), size - 1);
		assert_memory_equal(cut, whole, size - 1);
	}
	assert_true(length > sizeof(cut));
}

static void test_the_reserves_of_all_hosts_must_fit_in_every_limit(void **state)
{
	(void)state;
	settings_of("rate=10/s\npartitions.reserve=1/s hosts=10\n");
	settings_of("rate=10/s 100000/h\npartitions.reserve=1/s hosts=10\n");
	settings_of("rate=max\npartitions.reserve=1/s hosts=10\n");
	assert_config_refused("rate=10/s\npartitions.reserve=1/s hosts=11\n", -ERANGE, "reserve");
	assert_config_refused("rate=10/s\npartitions.reserve=1.000001/s hosts=10\n", -ERANGE,
			      "reserve");
	assert_config_refused("rate=10/s 30000/h\npartitions.reserve=1/s hosts=10\n", -ERANGE,
			      "reserve");
	assert_config_refused("rate=0\npartitions.reserve=1/s hosts=1\n", -ERANGE, "reserve");
}

static void test_an_interval_must_not_release_more_than_can_be_counted(void **state)
{
	(void)state;
	settings_of("rate=1000000000000/s\nrelease_interval=1s\n");
	assert_config_refused("rate=1000000000000/s\nrelease_interval=1h\n", -ERANGE, "interval");
	assert_config_refused("rate=1/s 1000000000000/s\nrelease_interval=1h\n", -ERANGE,
			      "interval");
}

static void test_slots_of_all_partitions_are_the_slots_that_are_set(void **state)
{
	(void)state;
	for (uint32_t count = 1; count < 50; count++) {
		struct settings settings = SETTINGS_DEFAULT;
		uint32_t sum = 0;

		settings.slots = (struct slot_limit){.kind = SLOTS_COUNT, .count = count};
		for (uint32_t i = 0; i < settings_partition_count(&settings); i++) {
			assert_true(settings_slots_of_partition(&settings, i) >= 1);
			sum += settings_slots_of_partition(&settings, i);
		}
		assert_int_equal(sum, count);
	}
}

static void test_leaves_are_partitions_or_slots_or_very_many(void **state)
{
	static const struct {
		const char *config;
		uint32_t leaves, least;
	} cases[] = {
		{"rate=500/s\n", 4096, 1},
		{"rate=1/s\n", 4096, 273},
		{"rate=1/h\n", 4096, 4096},
		{"rate=12/min\n", 4096, 1365},
		{"rate=500/s 4/s\n", 4096, 68},
		{"key_rate=1/s\n", 4096, 1},
		{"key_rate=1/h\n", 4096, 1},
		{"rate=1/h\npartitions.count=20\n", 20, 1},
		{"rate=500/s\nconcurrency=10\n", 10, 1},
		{"rate=1/s\nconcurrency=30\n", 30, 2},
		{"concurrency=5000\n", 4096, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct settings settings = settings_of(cases[i].config);

		assert_int_equal(settings_leaf_count(&settings), cases[i].leaves);
		assert_int_equal(settings_least_leaves(&settings), cases[i].least);
	}
}

static void test_slots_of_all_leaves_are_the_slots_that_are_set(void **state)
{
	static const char *const configs[] = {"concurrency=10\n", "concurrency=5000\n",
					      "concurrency=10\npartitions.count=4\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++) {
		struct settings settings = settings_of(configs[i]);
		uint32_t leaves = settings_leaf_count(&settings), sum = 0;

		for (uint32_t leaf = 0; leaf < leaves; leaf++)
			sum += settings_slots_of_leaves(&settings, leaf, leaf);
		assert_int_equal(sum, settings.slots.count);
		assert_int_equal(settings_slots_of_leaves(&settings, 0, leaves - 1), sum);
		for (uint32_t slot = 0, leaf = 0; slot < sum; slot++) {
			while (slot >= settings_slots_of_leaves(&settings, 0, leaf))
				leaf++;
			assert_int_equal(settings_leaf_of_slot(&settings, slot), leaf);
		}
		assert_int_equal(settings_slots_of_leaves(&settings, 0, 1) +
					 settings_slots_of_leaves(&settings, 2, leaves - 1),
				 sum);
	}
}

static void test_there_are_no_more_partitions_than_slots(void **state)
{
	(void)state;
	settings_of("concurrency=10\npartitions.count=10");
	assert_config_refused("concurrency=10\npartitions.count=11", -ERANGE, "more than slots");
}

static void test_auto_makes_as_many_partitions_as_have_a_token_per_lease(void **state)
{
	static const struct {
		const char *config;
		uint32_t count;
	} cases[] = {
		{"rate=500/s", 20},
		{"rate=max", 20},
		{"rate=0", 1},
		{"rate=1/d", 1},
		{"rate=1/15s", 1},
		{"rate=1/s", 15},
		{"rate=20/15s", 20},
		{"rate=19.999/15s", 19},
		{"rate=500/s 4/min", 1},
		{"rate=500/s 40/min", 10},
		{"rate=500/s\npartitions.count=7", 7},
		{"rate=1/s\npartitions.lease=5s", 5},
		{"rate=1/d\npartitions.count=4096", 4096},
		{"concurrency=7", 7},
		{"concurrency=100", 20},
		{"rate=1/s\nconcurrency=18", 15},
		{"concurrency=auto min=3", 20},
		{"rate=20/15s\npartitions.reserve=1/s hosts=1", 5},
		{"rate=20/15s\npartitions.reserve=4/3s hosts=1", 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings settings = settings_of(cases[i].config);

		assert_int_equal(settings_partition_count(&settings), cases[i].count);
	}
}

/* Shares and reserves together are the rate of every limit, exactly. */
static void assert_partitions_add_up(const char *config)
{
	struct settings settings = settings_of(config);
	uint32_t shares = settings_partition_count(&settings);
	struct settings share = settings_of_partition(&settings, 0);
	struct settings last = settings_of_partition(&settings, shares - 1);

	assert_same(&share, &last);
	assert_int_equal(share.limit_count, settings.limit_count);
	for (uint32_t i = 0; i < settings.limit_count; i++) {
		struct fraction whole = rate_fraction(&settings.limits[i].rate);
		struct fraction part = rate_fraction(&share.limits[i].rate);
		u128 reserved_num = 0, reserved_den = 1;

		if (settings.reserve_hosts) {
			struct settings own = settings_of_partition(&settings, PARTITIONS_MAX);
			struct fraction reserve = rate_fraction(&own.limits[i].rate);

			assert_int_equal(rate_compare(&own.limits[i].rate, &settings.reserve_rate),
					 0);
			reserved_num = (u128)reserve.num * settings.reserve_hosts;
			reserved_den = reserve.den;
		}
		/* whole - reserved == shares * part; small enough here for two products. */
		assert_true(((u128)whole.num * reserved_den - reserved_num * whole.den) *
				    part.den ==
			    (u128)part.num * shares * whole.den * reserved_den);
	}
}

static void test_shares_and_reserves_add_up_to_the_rate(void **state)
{
	(void)state;
	assert_partitions_add_up("rate=500/s");
	assert_partitions_add_up("rate=0");
	assert_partitions_add_up("rate=500/s 1000/90s\npartitions.count=7");
	assert_partitions_add_up("rate=1/d\npartitions.count=4093");
	assert_partitions_add_up("rate=500/s\npartitions.reserve=10/s hosts=8");
	assert_partitions_add_up("rate=500/s\npartitions.count=7\npartitions.reserve=10/s hosts=8");
	assert_partitions_add_up("rate=10/s\npartitions.reserve=1/s hosts=10");
	assert_partitions_add_up("rate=10/s 1000/90s\npartitions.reserve=1/min hosts=3");
}

/* Checks that limit 0 of @share is @expected tokens a second, or less by a part in 2^30. */
static void assert_just_below(const struct settings *share, double expected)
{
	struct fraction rate = rate_fraction(&share->limits[0].rate);
	double a_second = (double)rate.num / (double)rate.den * NSEC_PER_SEC;

	assert_true(a_second <= expected * (1 + 1e-14) && a_second >= expected * (1 - 1e-9));
}

/* Parts of the reserve whose rest is no rate that can be written, too. */
static void test_leaves_bring_what_any_reserve_leaves(void **state)
{
	static const struct {
		const char *config;
		double rest, reserve;
	} cases[] = {
		{"rate=100/min\npartitions.reserve=0.3/s hosts=3", 100.0 / 60 - 0.9, 0.3},
		{"rate=100/min\npartitions.reserve=0.333333/s hosts=3", 100.0 / 60 - 0.999999,
		 0.333333},
		{"rate=7/13s\npartitions.reserve=0.123456/s hosts=4", 7.0 / 13 - 0.493824,
		 0.123456},
		{"rate=1G/s\npartitions.reserve=1/7h hosts=4096", 1e9 - 4096 / 25200.0,
		 1 / 25200.0},
		{"rate=999983/7919ms\npartitions.reserve=1/8803s hosts=5\npartitions.count=4093",
		 999983 / 7.919 - 5 / 8803.0, 1 / 8803.0},
		{"rate=1/s\npartitions.reserve=0.001/s hosts=1000", 0, 0.001},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct settings settings = settings_of(cases[i].config);
		uint32_t count = settings_leaf_count(&settings), parts[] = {0, 1, 1000, count};

		for (size_t j = 0; j < COUNT(parts); j++) {
			double part = cases[i].rest * parts[j] / count;
			struct settings share;

			settings_of_host(&settings, parts[j], false, &share);
			assert_just_below(&share, part);
			settings_of_host(&settings, parts[j], true, &share);
			assert_just_below(&share, part + cases[i].reserve);
		}
	}
}

static void test_partitions_bring_what_any_reserve_leaves(void **state)
{
	struct settings settings, share;

	(void)state;
	settings = settings_of("rate=999983/7919ms\npartitions.reserve=1/8803s hosts=5\n"
			       "partitions.count=4093");
	share = settings_of_partition(&settings, 4092);
	assert_just_below(&share, (999983 / 7.919 - 5 / 8803.0) / 4093);
	settings = settings_of("rate=3/26d\npartitions.reserve=1/2246399999999993ns hosts=2\n"
			       "partitions.count=4096");
	share = settings_of_partition(&settings, 0);
	assert_just_below(&share, (3 / 2246400.0 - 2e9 / 2246399999999993) / 4096);
}

static void test_a_partition_is_a_simple_limiter_with_its_share(void **state)
{
	struct settings settings = settings_of("rate=500/s:40 20000/min\n"
					       "burst=100\n"
					       "release_interval=200ms\n"
					       "enforcement=shadow\n"
					       "partitions.count=20\n"
					       "partitions.reserve=none\n");
	struct settings share = settings_of_partition(&settings, 3);
	char text[SETTING_TEXT];

	(void)state;
	setting_print(SETTING_RATE, &share, text);
	assert_string_equal(text, "25/s:2 1000/min");
	assert_int_equal(share.burst, 5);
	assert_int_equal(share.release_interval_ns, settings.release_interval_ns);
	assert_int_equal(share.enforcement, settings.enforcement);
	assert_int_equal(share.reserve_hosts, 0);
	assert_int_equal(settings_partition_count(&share), 1);
}

static void test_a_partition_has_room_for_at_least_one_token(void **state)
{
	struct settings settings = settings_of("rate=500/s:3 20000/min\nburst=7\n");
	struct settings share = settings_of_partition(&settings, 0);

	(void)state;
	assert_int_equal(share.burst, 1);
	assert_int_equal(share.limits[0].burst, 1);
	assert_int_equal(share.limits[1].burst, 0);
}

static void test_settings_are_equal_when_they_read_the_same(void **state)
{
	struct settings a = SETTINGS_DEFAULT, b = SETTINGS_DEFAULT;

	(void)state;
	set(&a, SETTING_RATE, "500.0/1s");
	set(&b, SETTING_RATE, "500");
	assert_true(setting_equal(SETTING_RATE, &a, &b));
	set(&b, SETTING_RATE, "500/s:1");
	assert_false(setting_equal(SETTING_RATE, &a, &b));
	assert_true(setting_equal(SETTING_BURST, &a, &b));
	/* The rest of an earlier value does not count. */
	set(&a, SETTING_RATE, "1/s 2/s 3/s");
	set(&a, SETTING_RATE, "max");
	set(&b, SETTING_RATE, "max");
	set(&a, SETTING_PARTITIONS_RESERVE, "1/s hosts=3");
	set(&a, SETTING_PARTITIONS_RESERVE, "none");
	assert_same(&a, &b);
}

static void test_a_refusal_quotes_no_more_than_it_has_room_for(void **state)
{
	char text[SETTING_TEXT], error[ERROR_TEXT];
	struct settings settings = SETTINGS_DEFAULT;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	for (int id = 0; id < SETTING_COUNT; id++) {
		memset(error, '#', sizeof(error));
		assert_int_equal(setting_parse((enum setting_id)id, text, &settings, error),
				 -EINVAL);
		assert_non_null(memchr(error, '\0', sizeof(error)));
	}
}

static void assert_copied(const char *text, const char *expected)
{
	char copy[8];

	assert_int_equal(text_copy(text, strlen(text), copy, sizeof(copy)), 0);
	assert_string_equal(copy, expected);
}

static void test_text_is_copied_without_white_space_at_its_ends(void **state)
{
	char copy[4] = "old";

	(void)state;
	assert_copied(" \t a b \r\n", "a b");
	assert_copied("ab", "ab");
	assert_copied(" \n ", "");
	assert_copied("", "");
	assert_copied("          1234567          ", "1234567");
	assert_int_equal(text_copy(" 1234 ", 6, copy, sizeof(copy)), -EINVAL);
	assert_string_equal(copy, "old");
	assert_int_equal(text_copy(" 1234 ", 4, copy, sizeof(copy)), 0);
	assert_string_equal(copy, "123");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_limiter_gates_nothing),
		cmocka_unit_test(test_concurrency_refuses_other_texts),
		cmocka_unit_test(test_every_setting_reads_back_what_can_be_written_back),
		cmocka_unit_test(test_several_limits_can_hold_together),
		cmocka_unit_test(test_the_longest_limits_that_can_be_said_can_be_read_back),
		cmocka_unit_test(test_white_space_at_either_end_is_ignored),
		cmocka_unit_test(test_an_empty_write_is_refused_for_every_setting),
		cmocka_unit_test(test_nonsense_is_refused_for_every_setting_and_named),
		cmocka_unit_test(test_a_text_that_is_too_long_is_refused_for_every_setting),
		cmocka_unit_test(test_of_several_rates_each_has_a_period),
		cmocka_unit_test(test_a_strict_window_is_a_limit),
		cmocka_unit_test(test_a_strict_window_stands_beside_some_settings_only),
		cmocka_unit_test(test_parts_of_a_strict_window_have_whole_tokens),
		cmocka_unit_test(test_a_rate_of_0_and_max_stand_alone),
		cmocka_unit_test(test_refusal_of_a_rate_or_a_duration_names_every_period),
		cmocka_unit_test(test_refusal_of_one_of_several_words_quotes_them_all),
		cmocka_unit_test(test_wrong_rates_are_refused),
		cmocka_unit_test(test_the_bounds_that_a_refusal_names_are_the_bounds),
		cmocka_unit_test(test_a_setting_is_no_unit),
		cmocka_unit_test(test_wrong_bursts_are_refused),
		cmocka_unit_test(test_wrong_durations_are_refused),
		cmocka_unit_test(test_wrong_modes_and_counts_are_refused),
		cmocka_unit_test(test_wrong_reserves_are_refused),
		cmocka_unit_test(test_a_config_sets_what_it_names_and_leaves_the_rest),
		cmocka_unit_test(test_a_config_that_was_read_can_be_written_back),
		cmocka_unit_test(test_comments_blank_lines_and_white_space_in_a_config_are_skipped),
		cmocka_unit_test(test_the_last_line_of_a_name_counts),
		cmocka_unit_test(test_a_config_takes_effect_whole_or_not_at_all),
		cmocka_unit_test(test_a_config_that_says_nothing_is_refused),
		cmocka_unit_test(test_a_line_that_is_too_long_is_refused),
		cmocka_unit_test(test_a_long_config_of_short_lines_is_fine),
		cmocka_unit_test(test_a_config_that_does_not_fit_is_cut_off_within_its_memory),
		cmocka_unit_test(test_the_reserves_of_all_hosts_must_fit_in_every_limit),
		cmocka_unit_test(test_an_interval_must_not_release_more_than_can_be_counted),
		cmocka_unit_test(test_slots_of_all_partitions_are_the_slots_that_are_set),
		cmocka_unit_test(test_leaves_are_partitions_or_slots_or_very_many),
		cmocka_unit_test(test_slots_of_all_leaves_are_the_slots_that_are_set),
		cmocka_unit_test(test_there_are_no_more_partitions_than_slots),
		cmocka_unit_test(test_auto_makes_as_many_partitions_as_have_a_token_per_lease),
		cmocka_unit_test(test_shares_and_reserves_add_up_to_the_rate),
		cmocka_unit_test(test_leaves_bring_what_any_reserve_leaves),
		cmocka_unit_test(test_partitions_bring_what_any_reserve_leaves),
		cmocka_unit_test(test_a_partition_is_a_simple_limiter_with_its_share),
		cmocka_unit_test(test_a_partition_has_room_for_at_least_one_token),
		cmocka_unit_test(test_settings_are_equal_when_they_read_the_same),
		cmocka_unit_test(test_a_refusal_quotes_no_more_than_it_has_room_for),
		cmocka_unit_test(test_text_is_copied_without_white_space_at_its_ends),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
