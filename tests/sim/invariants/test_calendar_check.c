/* Tests that more than its limit in a window of the calendar is found. */
#include "tests/sim/base/zones.h"
#include "tests/sim/invariants/rate_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MINUTE_NS (60 * NSEC_PER_SEC)
#define NOON_S	  INT64_C(1795521600) /* 2026-11-24 12:00:00 UTC */

static char why[WHY_TEXT];
static int64_t ahead_ns;

/* A check of limits @text at noon, which is its time 0. */
static struct rate_check begin(const char *text)
{
	struct rate_check check = {.calendar.ahead_ns = &ahead_ns};
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	ahead_ns = NOON_S * (int64_t)NSEC_PER_SEC;
	zone_use(&LIBRARY_ZONES);
	assert_int_equal(settings_parse(text, &settings, error), 0);
	rate_check_tune(&check, &settings, 0);
	return check;
}

static bool grant(struct rate_check *check, uint64_t tokens, uint64_t now_ns)
{
	return rate_check_grant(check, tokens, tokens, now_ns, why);
}

/* Sets the wall clock to @ns after noon. */
static void set_clock(struct rate_check *check, int64_t ns, uint64_t now_ns)
{
	calendar_check_look(&check->calendar, now_ns);
	ahead_ns = NOON_S * (int64_t)NSEC_PER_SEC + ns - (int64_t)now_ns;
}

static void test_a_window_has_its_tokens_and_no_more(void **state)
{
	struct rate_check check = begin("rate=7/min@:00");

	(void)state;
	assert_true(grant(&check, 7, 0));
	assert_true(grant(&check, 7, MINUTE_NS));
	assert_false(grant(&check, 1, 2 * MINUTE_NS - 1));
	rate_check_free(&check);
}

static void test_a_window_whose_clock_is_put_back_has_no_more(void **state)
{
	struct rate_check check = begin("rate=7/min@:00");

	(void)state;
	assert_true(grant(&check, 4, MINUTE_NS));
	set_clock(&check, 0, MINUTE_NS + 1);
	assert_true(grant(&check, 3, MINUTE_NS + 2));
	assert_false(grant(&check, 1, 2 * MINUTE_NS + 2));
	rate_check_free(&check);
}

static void test_a_window_that_was_shown_and_not_used_may_be_full(void **state)
{
	struct rate_check check = begin("rate=7/min@:00");

	(void)state;
	assert_true(grant(&check, 7, 0));
	set_clock(&check, 0, MINUTE_NS);
	assert_true(grant(&check, 7, MINUTE_NS));
	assert_false(grant(&check, 1, 2 * MINUTE_NS - 1));
	rate_check_free(&check);
}

static void test_tokens_that_come_back_count_but_in_the_first_second(void **state)
{
	struct rate_check check = begin("rate=7/min@:00");

	(void)state;
	assert_true(grant(&check, 7, 0));
	rate_check_return(&check, 2, 2 * NSEC_PER_SEC);
	assert_true(grant(&check, 2, 3 * NSEC_PER_SEC));
	assert_true(grant(&check, 7, MINUTE_NS));
	rate_check_return(&check, 2, MINUTE_NS + NSEC_PER_SEC / 2);
	assert_false(grant(&check, 2, MINUTE_NS + 3 * NSEC_PER_SEC));
	rate_check_free(&check);
}

static void test_a_day_of_a_zone_begins_there(void **state)
{
	struct rate_check check = begin("rate=7/day@00:00,Europe/Paris");

	(void)state;
	assert_true(grant(&check, 7, 0));
	assert_false(grant(&check, 1, 11 * 60 * MINUTE_NS - 1));
	check.calendar.limits[0].granted = 7;
	assert_true(grant(&check, 7, 11 * 60 * MINUTE_NS));
	rate_check_free(&check);
}

static void test_another_number_keeps_the_use_of_the_window(void **state)
{
	struct rate_check check = begin("rate=7/min@:00");
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	(void)state;
	assert_true(grant(&check, 7, 0));
	assert_int_equal(settings_parse("rate=1/s 9/min@:00", &settings, error), 0);
	rate_check_tune(&check, &settings, NSEC_PER_SEC);
	assert_true(grant(&check, 1, NSEC_PER_SEC));
	assert_true(grant(&check, 1, 2 * NSEC_PER_SEC));
	assert_false(grant(&check, 1, 3 * NSEC_PER_SEC));
	rate_check_free(&check);
}

static void test_a_limit_that_flows_goes_on_beside_windows(void **state)
{
	struct rate_check check = begin("rate=20/s:20 60/min:40");
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	(void)state;
	assert_true(grant(&check, 20, 0));
	assert_true(grant(&check, 20, NSEC_PER_SEC));
	assert_int_equal(settings_parse("rate=100/min@:30 1/s:20", &settings, error), 0);
	rate_check_tune(&check, &settings, 2 * NSEC_PER_SEC);
	assert_true(grant(&check, 20, 2 * NSEC_PER_SEC));
	assert_false(grant(&check, 1, 2 * NSEC_PER_SEC));
	rate_check_free(&check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_has_its_tokens_and_no_more),
		cmocka_unit_test(test_a_window_whose_clock_is_put_back_has_no_more),
		cmocka_unit_test(test_a_window_that_was_shown_and_not_used_may_be_full),
		cmocka_unit_test(test_tokens_that_come_back_count_but_in_the_first_second),
		cmocka_unit_test(test_a_day_of_a_zone_begins_there),
		cmocka_unit_test(test_another_number_keeps_the_use_of_the_window),
		cmocka_unit_test(test_a_limit_that_flows_goes_on_beside_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
