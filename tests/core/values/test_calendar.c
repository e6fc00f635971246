/* Tests of windows of the calendar: texts, and when windows begin. */
#include "core/values/calendar.h"
#include "core/values/settings.h"
#include "core/values/zone.h"
#include "tests/sim/base/zones.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rate rate_of(const char *text)
{
	char why[ERROR_TEXT];
	struct rate rate;

	if (calendar_parse(text, &rate, why))
		fail_msg("'%s' is refused: %s", text, why);
	return rate;
}

/* Returns the time that `YYYY-MM-DD HH:MM:SS` is in UTC. */
static int64_t utc(const char *text)
{
	struct tm tm = {0};

	assert_non_null(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
	return timegm(&tm);
}

static void assert_time(int64_t at_s, const char *expected)
{
	char text[32];
	time_t time = (time_t)at_s;
	struct tm tm;

	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", gmtime_r(&time, &tm));
	assert_string_equal(text, expected);
}

/* The window of @rate that @at (UTC) is in begins at @begin and ends at @end. */
static void assert_window(const char *rate_text, const char *at, const char *begin, const char *end)
{
	struct rate rate = rate_of(rate_text);

	assert_time(calendar_begin_s(&rate, utc(at)), begin);
	assert_time(calendar_end_s(&rate, utc(at)), end);
	assert_time(calendar_begin_s(&rate, utc(begin)), begin);
	assert_time(calendar_end_s(&rate, utc(begin)), end);
	assert_time(calendar_end_s(&rate, utc(end) - 1), end);
	assert_time(calendar_begin_s(&rate, utc(end)), end);
}

/*
 * Published boundaries: gubernator's TestGregorianExpiration* (github.com/mailgun/gubernator,
 * interval_test.go). Theirs are the last millisecond of an interval; a window ends one later.
 */
static void test_windows_end_where_gubernator_says_that_gregorian_intervals_do(void **state)
{
	static const struct {
		const char *rate, *now;
		int64_t last_ms;
	} rows[] = {
		{"1/min@:00", "2019-11-11 00:00:30", 1573430459999},
		{"1/h@:00", "2019-11-11 00:20:01", 1573433999999},
		{"1/day@00:00", "2019-11-11 12:10:09", 1573516799999},
		{"1/month@1", "2019-11-11 22:02:23", 1575158399999},
		{"1/month@1", "2019-01-01 00:00:00", 1548979199999},
		{"1/year@jan-1", "2019-03-01 20:30:31", 1577836799999},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rate rate = rate_of(rows[i].rate);

		assert_int_equal(calendar_end_s(&rate, utc(rows[i].now)) * 1000,
				 rows[i].last_ms + 1);
	}
}

static void test_minutes_and_hours_begin_at_a_part_of_them(void **state)
{
	(void)state;
	assert_window("1/min@:15", "2024-02-29 23:59:14", "2024-02-29 23:58:15",
		      "2024-02-29 23:59:15");
	assert_window("1/h@:30", "2024-02-29 23:31:00", "2024-02-29 23:30:00",
		      "2024-03-01 00:30:00");
}

static void test_a_week_begins_on_its_day(void **state)
{
	(void)state;
	assert_window("1/week@mon", "2026-11-23 12:00:00", "2026-11-23 00:00:00",
		      "2026-11-30 00:00:00");
	assert_window("1/week@sun", "2026-11-23 12:00:00", "2026-11-22 00:00:00",
		      "2026-11-29 00:00:00");
	assert_window("1/week@tue", "2026-11-23 12:00:00", "2026-11-17 00:00:00",
		      "2026-11-24 00:00:00");
	assert_window("1/week@thu", "1970-01-01 00:00:00", "1970-01-01 00:00:00",
		      "1970-01-08 00:00:00");
}

static void test_a_month_without_the_day_begins_on_its_last(void **state)
{
	(void)state;
	assert_window("1/month@31", "2023-02-15 12:00:00", "2023-01-31 00:00:00",
		      "2023-02-28 00:00:00");
	assert_window("1/month@31", "2023-03-01 12:00:00", "2023-02-28 00:00:00",
		      "2023-03-31 00:00:00");
	assert_window("1/month@31", "2023-04-01 12:00:00", "2023-03-31 00:00:00",
		      "2023-04-30 00:00:00");
	assert_window("1/month@30", "2024-02-29 12:00:00", "2024-02-29 00:00:00",
		      "2024-03-30 00:00:00");
	assert_window("1/month@29", "2100-02-28 12:00:00", "2100-02-28 00:00:00",
		      "2100-03-29 00:00:00");
	assert_window("1/month@15", "2024-12-31 12:00:00", "2024-12-15 00:00:00",
		      "2025-01-15 00:00:00");
}

static void test_leap_days_are_days_of_their_years(void **state)
{
	(void)state;
	assert_window("1/day@00:00", "2024-02-29 12:00:00", "2024-02-29 00:00:00",
		      "2024-03-01 00:00:00");
	assert_window("1/year@feb-29", "2024-06-01 12:00:00", "2024-02-29 00:00:00",
		      "2025-02-28 00:00:00");
	assert_window("1/year@feb-29", "2028-02-28 12:00:00", "2027-02-28 00:00:00",
		      "2028-02-29 00:00:00");
	assert_window("1/year@mar-1", "2024-02-29 12:00:00", "2023-03-01 00:00:00",
		      "2024-03-01 00:00:00");
	assert_window("1/month@1", "2000-02-29 12:00:00", "2000-02-01 00:00:00",
		      "2000-03-01 00:00:00");
}

static void test_days_of_a_zone_have_23_or_25_hours_where_clocks_are_changed(void **state)
{
	(void)state;
	/* Clocks are put forward on 29 March 2026, 02:00, and back on 25 October, 03:00. */
	assert_window("1/day@00:00,Europe/Paris", "2026-03-29 12:00:00", "2026-03-28 23:00:00",
		      "2026-03-29 22:00:00");
	assert_window("1/day@00:00,Europe/Paris", "2026-10-25 12:00:00", "2026-10-24 22:00:00",
		      "2026-10-25 23:00:00");
	assert_window("1/day@00:00,Europe/Paris", "2026-11-23 12:00:00", "2026-11-22 23:00:00",
		      "2026-11-23 23:00:00");
}

static void test_a_time_that_is_skipped_is_when_the_clocks_are_put_forward(void **state)
{
	(void)state;
	assert_window("1/day@02:30,Europe/Paris", "2026-03-28 12:00:00", "2026-03-28 01:30:00",
		      "2026-03-29 01:00:00");
	assert_window("1/day@02:30,Europe/Paris", "2026-03-29 12:00:00", "2026-03-29 01:00:00",
		      "2026-03-30 00:30:00");
}

static void test_of_a_time_that_comes_twice_the_first_counts(void **state)
{
	(void)state;
	assert_window("1/day@02:30,Europe/Paris", "2026-10-24 12:00:00", "2026-10-24 00:30:00",
		      "2026-10-25 00:30:00");
	assert_window("1/day@02:30,Europe/Paris", "2026-10-25 01:30:00", "2026-10-25 00:30:00",
		      "2026-10-26 01:30:00");
}

static void test_weeks_months_and_years_begin_in_their_zone(void **state)
{
	(void)state;
	assert_window("1/week@mon,America/New_York", "2026-03-08 12:00:00", "2026-03-02 05:00:00",
		      "2026-03-09 04:00:00");
	assert_window("1/month@1,America/Los_Angeles", "2026-11-01 06:30:00", "2026-10-01 07:00:00",
		      "2026-11-01 07:00:00");
	assert_window("1/year@jan-1,Pacific/Kiritimati", "2025-12-31 09:59:59",
		      "2024-12-31 10:00:00", "2025-12-31 10:00:00");
}

/* Samoa had no 30 December 2011: its clocks went from the 29th, 24:00, to the 31st, 00:00. */
static void test_a_day_that_a_zone_has_skipped_is_no_window(void **state)
{
	(void)state;
	assert_window("1/day@00:00,Pacific/Apia", "2011-12-30 09:00:00", "2011-12-29 10:00:00",
		      "2011-12-30 10:00:00");
	assert_window("1/day@00:00,Pacific/Apia", "2011-12-30 12:00:00", "2011-12-30 10:00:00",
		      "2011-12-31 10:00:00");
}

/* A window that is looked at anywhere in it is the same, and no two have a time in common. */
static void test_windows_follow_one_another(void **state)
{
	static const char *const rates[] = {
		"1/min@:07",
		"1/h@:59",
		"1/day@02:30,Europe/Paris",
		"1/week@sat",
		"1/month@31,America/Sao_Paulo",
		"1/month@30",
		"1/day@00:00,Australia/Lord_Howe",
		"1/year@feb-29",
		"1/day@23:59,Asia/Kathmandu",
	};

	(void)state;
	srand48(1);
	for (size_t i = 0; i < COUNT(rates); i++) {
		struct rate rate = rate_of(rates[i]);
		int64_t begin_s = calendar_begin_s(&rate, utc("2019-01-01 00:00:00"));

		for (int j = 0; j < 500; j++) {
			int64_t end_s = calendar_end_s(&rate, begin_s);
			int64_t at_s = begin_s + (int64_t)(drand48() * (double)(end_s - begin_s));

			assert_true(end_s > begin_s);
			assert_int_equal(calendar_begin_s(&rate, at_s), begin_s);
			assert_int_equal(calendar_end_s(&rate, at_s), end_s);
			begin_s = end_s;
		}
	}
}

static void assert_reads_back(const char *text, const char *expected)
{
	struct rate rate = rate_of(text), again;
	char printed[CALENDAR_TEXT];

	calendar_print(&rate, printed);
	assert_string_equal(printed, expected);
	again = rate_of(printed);
	assert_memory_equal(&rate, &again, sizeof(rate));
}

static void test_windows_are_printed_as_they_are_read(void **state)
{
	(void)state;
	assert_reads_back("10000/day@00:00", "10000/day@00:00");
	assert_reads_back("10000/d@23:59,Europe/Paris", "10000/day@23:59,Europe/Paris");
	assert_reads_back("5000/hour@:05", "5000/h@:05");
	assert_reads_back("5/minute@:00", "5/min@:00");
	assert_reads_back("1.5M/month@1", "1.5M/month@1");
	assert_reads_back("50k/week@mon,UTC", "50k/week@mon");
	assert_reads_back("2GiB/year@feb-29", "2Gi/year@feb-29");
	assert_reads_back("10T/year@dec-31,America/Argentina/Buenos_Aires",
			  "10T/year@dec-31,America/Argentina/Buenos_Aires");
}

static void test_other_texts_are_refused_with_what_is_allowed(void **state)
{
	static const struct {
		const char *text, *words;
		int err;
	} rows[] = {
		{"1@00:00", "not a window", -EINVAL},
		{"1/fortnight@mon", "/week@mon", -EINVAL},
		{"x/day@00:00", "NUMBER", -EINVAL},
		{"/day@00:00", "not a window", -EINVAL},
		{"0/day@00:00", "1 to 1e13", -ERANGE},
		{"1.5/day@00:00", "whole number", -ERANGE},
		{"11T/day@00:00", "1 to 1e13", -ERANGE},
		{"1/day@", "@00:00 to @23:59", -EINVAL},
		{"1/day@24:00", "@00:00 to @23:59", -EINVAL},
		{"1/day@7:00", "@00:00 to @23:59", -EINVAL},
		{"1/day@07:60", "@00:00 to @23:59", -EINVAL},
		{"1/day@07:00:20", "@00:00 to @23:59", -EINVAL},
		{"1/day@00:00 ", "@00:00 to @23:59", -EINVAL},
		{"1/min@:60", "@:00 to @:59", -EINVAL},
		{"1/h@00", "@:00 to @:59", -EINVAL},
		{"1/week@monday", "@mon, @tue", -EINVAL},
		{"1/month@0", "@1 to @31", -EINVAL},
		{"1/month@32", "its last", -EINVAL},
		{"1/month@01", "@1 to @31", -EINVAL},
		{"1/year@1", "@jan-1 to @dec-31", -EINVAL},
		{"1/year@apr-31", "a day that the month has", -EINVAL},
		{"1/year@feb-30", "a day that the month has", -EINVAL},
		{"1/day@00:00,", "no time zone", -EINVAL},
		{"1/day@00:00,Europe/Pariss", "'Europe/Pariss' is no time zone", -EINVAL},
		{"1/day@00:00,../zoneinfo/UTC", "no time zone", -EINVAL},
		{"1/h@:00,Europe/Paris", "a day and longer", -EINVAL},
	};
	char why[ERROR_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct rate rate = {.amount = 7}, before = rate;

		assert_int_equal(calendar_parse(rows[i].text, &rate, why), rows[i].err);
		assert_memory_equal(&rate, &before, sizeof(rate));
		if (!strstr(why, rows[i].words))
			fail_msg("'%s': \"%s\" has nothing of \"%s\"", rows[i].text, why,
				 rows[i].words);
	}
}

static void test_a_limiter_has_windows_beside_other_limits(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT], text[SETTING_TEXT];

	(void)state;
	assert_int_equal(setting_parse(SETTING_RATE, "50/day@00:00  1/min:5 1M/month@31,Asia/Tokyo",
				       &settings, error),
			 0);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "50/day@00:00 1/min:5 1M/month@31,Asia/Tokyo");
	assert_true(settings_have_windows(&settings));
	assert_int_equal(settings_burst(&settings, 0), 50);
	assert_int_equal(settings_burst(&settings, 1), 5);
	assert_int_equal(settings_burst(&settings, 2), 1000000);
	assert_int_equal(settings_check(&settings, error), 0);
	assert_int_equal(setting_parse(SETTING_RATE, "1/min 50/day@7", &settings, error), -EINVAL);
	assert_non_null(strstr(error, "'50/day@7'"));
}

static void test_a_key_has_a_window_of_each_length_beside_its_rate(void **state)
{
	static const struct {
		const char *text, *printed;
	} rows[] = {
		{"50/day@00:00", "50/day@00:00"},
		{" 50/day@06:30,Asia/Tokyo\t1/min ", "1/min 50/day@06:30,Asia/Tokyo"},
		{"9/h@:05 50/day@00:00 3/9s,strict", "3/9s,strict 9/h@:05 50/day@00:00"},
		{"t=1M/month@1 t=9/s:3 9/d@00:00", "9/day@00:00 t=1M/month@1 t=9/s:3"},
	};
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT], text[SETTING_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (setting_parse(SETTING_KEY_RATE, rows[i].text, &settings, error))
			fail_msg("%s", error);
		setting_print(SETTING_KEY_RATE, &settings, text);
		assert_string_equal(text, rows[i].printed);
		assert_true(settings_have_key_windows(&settings));
		assert_true(settings_limit(&settings));
		assert_false(settings_have_windows(&settings));
	}
	assert_int_equal(setting_parse(SETTING_KEY_RATE, "1/s 50/day@7", &settings, error),
			 -EINVAL);
	assert_non_null(strstr(error, "'50/day@7'"));
	assert_int_equal(
		setting_parse(SETTING_KEY_RATE, "5/day@00:00 6/day@12:00", &settings, error),
		-EINVAL);
	assert_non_null(strstr(error, "one window of each length"));
	assert_int_equal(setting_parse(SETTING_KEY_RATE, "5/day@00:00 0", &settings, error),
			 -EINVAL);
}

static void test_the_kind_of_a_window_is_told_by_its_word(void **state)
{
	static const struct {
		const char *word;
		uint8_t kind;
	} rows[] = {{"5/min@:00", RATE_MINUTE},
		    {"5/h@:00", RATE_HOUR},
		    {"5/day@00:00", RATE_DAY},
		    {"5/week@mon", RATE_WEEK},
		    {"5/month@1,UTC", RATE_MONTH},
		    {"5/year@jan-1", RATE_YEAR},
		    {"5/s", RATE_FLOW},
		    {"5", RATE_FLOW},
		    {"@/day", RATE_FLOW},
		    {"5/days@00:00", RATE_FLOW},
		    {"5/60s,strict", RATE_FLOW},
		    {"", RATE_FLOW}};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(calendar_kind(rows[i].word, strlen(rows[i].word)), rows[i].kind);
	assert_int_equal(calendar_kind("5/s 5/day@00:00", 3), RATE_FLOW);
}

static void test_the_longest_windows_can_be_read_back(void **state)
{
	struct settings settings = SETTINGS_DEFAULT, again = SETTINGS_DEFAULT;
	char error[ERROR_TEXT], printed[SETTING_TEXT];

	(void)state;
	if (setting_parse(SETTING_RATE,
			  "9999999999999/year@feb-29,America/Argentina/ComodRivadavia", &settings,
			  error))
		fail_msg("%s", error);
	for (int i = 1; i < LIMITS_MAX; i++)
		settings.limits[i] = settings.limits[0];
	settings.limit_count = LIMITS_MAX;
	setting_print(SETTING_RATE, &settings, printed);
	assert_int_equal(setting_parse(SETTING_RATE, printed, &again, error), 0);
	assert_true(setting_equal(SETTING_RATE, &settings, &again));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_windows_end_where_gubernator_says_that_gregorian_intervals_do),
		cmocka_unit_test(test_minutes_and_hours_begin_at_a_part_of_them),
		cmocka_unit_test(test_a_week_begins_on_its_day),
		cmocka_unit_test(test_a_month_without_the_day_begins_on_its_last),
		cmocka_unit_test(test_leap_days_are_days_of_their_years),
		cmocka_unit_test(test_days_of_a_zone_have_23_or_25_hours_where_clocks_are_changed),
		cmocka_unit_test(test_a_time_that_is_skipped_is_when_the_clocks_are_put_forward),
		cmocka_unit_test(test_of_a_time_that_comes_twice_the_first_counts),
		cmocka_unit_test(test_weeks_months_and_years_begin_in_their_zone),
		cmocka_unit_test(test_a_day_that_a_zone_has_skipped_is_no_window),
		cmocka_unit_test(test_windows_follow_one_another),
		cmocka_unit_test(test_windows_are_printed_as_they_are_read),
		cmocka_unit_test(test_other_texts_are_refused_with_what_is_allowed),
		cmocka_unit_test(test_a_limiter_has_windows_beside_other_limits),
		cmocka_unit_test(test_a_key_has_a_window_of_each_length_beside_its_rate),
		cmocka_unit_test(test_the_kind_of_a_window_is_told_by_its_word),
		cmocka_unit_test(test_the_longest_windows_can_be_read_back),
	};

	zone_use(&LIBRARY_ZONES);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
