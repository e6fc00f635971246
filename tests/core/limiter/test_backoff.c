/* Tests of backoff: its texts, and the pauses that follow from failures. */
#include "core/limiter/backoff.h"
#include "core/values/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define US	     UINT64_C(1000)
#define MS	     UINT64_C(1000000)
#define SEC	     UINT64_C(1000000000)

static struct backoff backoff_of(const char *text)
{
	struct backoff backoff = {.kind = BACKOFF_NONE};
	char error[ERROR_TEXT];

	if (backoff_setting_parse(text, &backoff, error))
		fail_msg("'%s' is refused: %s", text, error);
	return backoff;
}

static void assert_reads_back(const char *text, const char *expected)
{
	struct backoff backoff = backoff_of(text);
	char printed[SETTING_TEXT], again[SETTING_TEXT];

	backoff_setting_print(&backoff, printed);
	assert_string_equal(printed, expected);
	backoff = backoff_of(printed);
	backoff_setting_print(&backoff, again);
	assert_string_equal(again, expected);
}

static void assert_refused(const char *text, int err, const char *words)
{
	struct backoff backoff = backoff_of("linear initial=7s"), before = backoff;
	char error[ERROR_TEXT] = "";
	int got = backoff_setting_parse(text, &backoff, error);

	if (got != err)
		fail_msg("'%s' gives %d, not %d", text, got, err);
	if (!strstr(error, words))
		fail_msg("'%s': the refusal says \"%s\", nothing of \"%s\"", text, error, words);
	assert_memory_equal(&backoff, &before, sizeof(before));
}

static void test_value_that_is_not_given_is_the_default(void **state)
{
	(void)state;
	assert_reads_back("none", "none");
	assert_reads_back("exponential", "exponential initial=500ms max=15min up=1.5 down=0.9 "
					 "after=10 jitter=0.3 jitter-max=2min "
					 "retry-max=1d");
	assert_reads_back("linear", "linear initial=1s step=1s max=15min after=10 retry-max=1d");
	assert_reads_back("exponential  jitter=0 \t up=2",
			  "exponential initial=500ms max=15min up=2 down=0.9 after=10 jitter=0 "
			  "jitter-max=2min retry-max=1d");
	assert_reads_back("linear after=1 step=100ms retry-max=90s",
			  "linear initial=1s step=100ms max=15min after=1 retry-max=90s");
}

static void test_every_parameter_has_its_bounds(void **state)
{
	static const char *const fine[] = {
		"exponential initial=1ns",
		"exponential max=24h",
		"exponential max=500ms",
		"exponential up=1.01",
		"exponential up=1000",
		"exponential down=0",
		"exponential down=0.99",
		"exponential after=1",
		"exponential after=1000000000",
		"exponential jitter=0",
		"exponential jitter=1",
		"exponential jitter-max=0s",
		"exponential jitter-max=1d",
		"exponential retry-max=0s",
		"exponential retry-max=24h",
		"linear initial=24h max=24h",
		"linear step=1ns",
		"linear step=24h",
		"linear after=1000000000",
		"linear retry-max=0s",
	};
	static const char *const wrong[] = {
		"exponential initial=0s",
		"exponential initial=25h",
		"exponential max=0s",
		"exponential max=86401s",
		"exponential up=1",
		"exponential up=1.009",
		"exponential up=1001",
		"exponential down=0.991",
		"exponential down=1",
		"exponential after=0",
		"exponential after=1000000001",
		"exponential jitter=1.01",
		"exponential jitter-max=25h",
		"exponential retry-max=25h",
		"exponential up=1.0000000001",
		"linear initial=0s",
		"linear step=0s",
		"linear step=25h",
		"linear max=25h",
		"linear after=0",
		"linear retry-max=86401s",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(fine); i++)
		backoff_of(fine[i]);
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_refused(wrong[i], -ERANGE, "out of bounds");
	assert_refused("exponential initial=10s max=9s", -ERANGE, "initial is above max");
	assert_refused("linear initial=16min", -ERANGE, "initial is above max");
}

static void test_word_that_is_not_understood_is_refused_and_named(void **state)
{
	(void)state;
	assert_refused("", -EINVAL, "none, exponential or linear");
	assert_refused("expo", -EINVAL, "none, exponential or linear");
	assert_refused("Exponential", -EINVAL, "none, exponential or linear");
	assert_refused("none max=1s", -EINVAL, "none, exponential or linear");
	assert_refused("exponential step=1s", -EINVAL,
		       "initial max up down after jitter jitter-max retry-max");
	assert_refused("linear up=2", -EINVAL, "initial step max after retry-max");
	assert_refused("linear up", -EINVAL, "'up'");
	assert_refused("exponential up=2 up=2", -EINVAL, "given twice");
	assert_refused("exponential up=twice", -EINVAL, "not a number");
	assert_refused("exponential up=-2", -EINVAL, "not a number");
	assert_refused("exponential up=", -EINVAL, "not a number");
	assert_refused("exponential after=1.5", -EINVAL, "not a whole number");
	assert_refused("exponential initial=5m", -EINVAL, "not a duration");
	assert_refused("exponential initial = 5s", -EINVAL, "'initial'");
}

static double ms_of(const struct backoff_state *state)
{
	return (double)state->delay_ns / (double)MS;
}

static void assert_near(double got, double expected)
{
	if (got < expected - 5e-4 || got > expected + 5e-4)
		fail_msg("%.9g, not %.9g", got, expected);
}

/* As published for responsive exponential back-off. */
static void test_fifteen_failures_and_every_five_successes_give_the_published_delays(void **state)
{
	static const double downs[] = {175.158, 105.095, 63.057, 37.834};
	struct backoff backoff =
		backoff_of("exponential initial=1ms up=1.5 down=0.6 after=5 jitter=0");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	for (int i = 0; i < 15; i++)
		backoff_throttled(&learnt, &backoff, 1, 0, 0);
	assert_near(ms_of(&learnt), 291.929);
	assert_int_equal(learnt.ups, 15);
	for (size_t i = 0; i < COUNT(downs); i++) {
		for (int k = 0; k < 5; k++)
			backoff_succeeded(&learnt, &backoff, 1, 0);
		assert_near(ms_of(&learnt), downs[i]);
	}
	assert_int_equal(learnt.downs, 4);
}

static void test_5_failures_and_30_successes_make_30_pauses_of_170_us(void **state)
{
	struct backoff backoff =
		backoff_of("exponential initial=1us up=2 down=0.5 after=5 jitter=0");
	struct backoff_state learnt = {.random = 1};
	uint64_t now_ns = SEC;

	(void)state;
	for (int i = 0; i < 5; i++, now_ns += MS)
		backoff_throttled(&learnt, &backoff, 1, 0, now_ns);
	for (int i = 0; i < 30; i++, now_ns += MS)
		backoff_succeeded(&learnt, &backoff, 1, now_ns);
	assert_int_equal(learnt.ups, 5);
	assert_int_equal(learnt.downs, 5);
	assert_int_equal(learnt.pauses, 30);
	assert_int_equal(learnt.paused_ns, 170 * US);
	assert_int_equal(learnt.delay_ns, 0);
}

static void test_the_first_delay_is_not_randomised_and_the_next_is(void **state)
{
	struct backoff backoff = backoff_of("exponential initial=1s up=2 jitter=0.2");
	uint64_t least_ns = UINT64_MAX, most_ns = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct backoff_state learnt = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};

		backoff_throttled(&learnt, &backoff, 1, 0, 0);
		assert_int_equal(learnt.delay_ns, SEC);
		backoff_throttled(&learnt, &backoff, 1, 0, 0);
		assert_in_range(learnt.delay_ns, 1600 * MS, 2400 * MS);
		least_ns = learnt.delay_ns < least_ns ? learnt.delay_ns : least_ns;
		most_ns = learnt.delay_ns > most_ns ? learnt.delay_ns : most_ns;
	}
	/* All of the range is used. */
	assert_true(least_ns < 1610 * MS && most_ns > 2390 * MS);
}

static void test_jitter_is_bounded_and_does_not_add_up(void **state)
{
	struct backoff backoff =
		backoff_of("exponential initial=1s up=2 max=24h jitter=1 jitter-max=100ms");
	struct backoff_state learnt = {.random = 12345};
	uint64_t base_ns = SEC;

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 0, 0);
	for (int i = 0; i < 15; i++) {
		backoff_throttled(&learnt, &backoff, 1, 0, 0);
		base_ns *= 2;
		assert_in_range(learnt.delay_ns, base_ns - 100 * MS, base_ns + 100 * MS);
	}
}

static void test_a_delay_never_passes_max_whatever_its_jitter(void **state)
{
	struct backoff backoff = backoff_of("exponential initial=1s max=10s jitter=1");
	struct backoff_state learnt = {.random = 99};
	bool shorter = false;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		backoff_throttled(&learnt, &backoff, 1, 0, 0);
		assert_in_range(learnt.delay_ns, 1, 10 * SEC);
		shorter = shorter || learnt.delay_ns < 5 * SEC;
	}
	assert_true(shorter);
	/* A delay at the top does not go up any more. */
	assert_true(learnt.ups < 10);
}

static void test_linear_goes_up_and_down_in_steps(void **state)
{
	struct backoff backoff = backoff_of("linear initial=1s step=500ms max=3s after=2");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		backoff_throttled(&learnt, &backoff, 1, 0, 0);
		assert_int_equal(learnt.delay_ns, SEC + i * 500 * MS);
	}
	backoff_throttled(&learnt, &backoff, 1, 0, 0);
	assert_int_equal(learnt.delay_ns, 3 * SEC);
	assert_int_equal(learnt.ups, 5);
	backoff_succeeded(&learnt, &backoff, 4, 0);
	assert_int_equal(learnt.delay_ns, 2 * SEC);
	backoff_succeeded(&learnt, &backoff, 5, 0);
	assert_int_equal(learnt.delay_ns, SEC);
	backoff_succeeded(&learnt, &backoff, 1, 0);
	assert_int_equal(learnt.delay_ns, 0);
	assert_int_equal(learnt.downs, 5);
}

static void test_many_at_once_are_as_many_one_by_one(void **state)
{
	static const char *const kinds[] = {
		"exponential initial=1ms max=1h jitter=0 after=3",
		"linear initial=1ms step=7ms max=1h after=3",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct backoff backoff = backoff_of(kinds[i]);
		struct backoff_state one = {.random = 1}, all = {.random = 1};

		for (int k = 0; k < 20; k++)
			backoff_throttled(&one, &backoff, 1, 0, 0);
		backoff_throttled(&all, &backoff, 20, 0, 0);
		assert_int_equal(one.ups, all.ups);
		assert_int_equal(one.delay_ns, all.delay_ns);
		assert_int_equal(one.until_ns, all.until_ns);
		for (int k = 0; k < 25; k++)
			backoff_succeeded(&one, &backoff, 1, 0);
		backoff_succeeded(&all, &backoff, 25, 0);
		assert_int_equal(one.downs, all.downs);
		assert_int_equal(one.delay_ns, all.delay_ns);
		assert_int_equal(one.streak, all.streak);
	}
}

static void test_a_billion_at_once_take_no_time(void **state)
{
	static const char *const kinds[] = {
		"exponential initial=1ns max=24h up=1.01 down=0.99 after=1",
		"linear initial=1ns step=1ns max=24h after=1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct backoff backoff = backoff_of(kinds[i]);
		struct backoff_state learnt = {.random = 1};

		for (int k = 0; k < 100; k++) {
			backoff_throttled(&learnt, &backoff, UINT64_C(1000000000), 0, 0);
			assert_true(learnt.delay_ns > 0);
			backoff_succeeded(&learnt, &backoff, UINT64_C(1000000000), 0);
			assert_int_equal(learnt.delay_ns, 0);
		}
	}
}

static void test_a_throttling_ends_a_row_of_successes(void **state)
{
	struct backoff backoff = backoff_of("exponential after=3 jitter=0");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 0, 0);
	backoff_succeeded(&learnt, &backoff, 2, 0);
	backoff_throttled(&learnt, &backoff, 1, 0, 0);
	backoff_succeeded(&learnt, &backoff, 2, 0);
	assert_int_equal(learnt.downs, 0);
	backoff_succeeded(&learnt, &backoff, 1, 0);
	assert_int_equal(learnt.downs, 1);
}

static void test_retry_after_is_the_least_pause_and_has_a_bound_of_its_own(void **state)
{
	struct backoff backoff =
		backoff_of("exponential initial=1s max=5s jitter=0 retry-max=1min");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 20 * SEC, SEC);
	assert_int_equal(learnt.until_ns, 21 * SEC);
	assert_int_equal(learnt.delay_ns, SEC);
	/* A shorter one does not shorten it. */
	backoff_throttled(&learnt, &backoff, 1, 2 * SEC, 2 * SEC);
	assert_int_equal(learnt.until_ns, 21 * SEC);
	assert_int_equal(learnt.paused_ns, 20 * SEC);
	/* Ten years are a minute here. */
	backoff_throttled(&learnt, &backoff, 1, UINT64_C(315360000) * SEC, 22 * SEC);
	assert_int_equal(learnt.until_ns, 82 * SEC);
	assert_int_equal(learnt.paused_ns, 80 * SEC);
	/* The delay is as it would be without. */
	assert_int_equal(learnt.delay_ns, 2250 * MS);
	/* A service that may ask for nothing has the delay alone. */
	backoff = backoff_of("exponential initial=1s max=5s jitter=0 retry-max=0s");
	learnt = (struct backoff_state){.random = 1};
	backoff_throttled(&learnt, &backoff, 1, 20 * SEC, SEC);
	assert_int_equal(learnt.until_ns, 2 * SEC);
}

static void test_without_a_bound_given_retry_after_is_up_to_a_day(void **state)
{
	struct backoff backoff = backoff_of("exponential initial=500ms max=1min jitter=0");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 120 * SEC, SEC);
	assert_int_equal(learnt.until_ns, 121 * SEC);
	backoff_throttled(&learnt, &backoff, 1, UINT64_C(315360000) * SEC, SEC);
	assert_int_equal(learnt.until_ns, 86401 * SEC);
}

static void test_successes_within_a_pause_add_none(void **state)
{
	struct backoff backoff = backoff_of("exponential initial=1s jitter=0");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 0, 0);
	backoff_succeeded(&learnt, &backoff, 1, SEC / 2);
	assert_int_equal(learnt.until_ns, SEC);
	assert_int_equal(learnt.pauses, 1);
	backoff_succeeded(&learnt, &backoff, 1, SEC);
	assert_int_equal(learnt.until_ns, 2 * SEC);
	assert_int_equal(learnt.pauses, 2);
}

static void retune(struct backoff_state *learnt, const char *text, uint64_t now_ns)
{
	struct backoff backoff = backoff_of(text);

	backoff_retune(learnt, &backoff, now_ns);
}

static void test_other_settings_bound_what_there_is(void **state)
{
	struct backoff backoff = backoff_of("exponential initial=100s max=1h jitter=0");
	struct backoff_state learnt = {.random = 1};

	(void)state;
	backoff_throttled(&learnt, &backoff, 1, 1000 * SEC, 0);
	assert_int_equal(learnt.until_ns, 1000 * SEC);
	assert_int_equal(learnt.delay_ns, 100 * SEC);
	/* The time that the service asked for is bounded by retry-max, the delay's by max. */
	retune(&learnt, "exponential initial=1s max=10s jitter=0", 4 * SEC);
	assert_int_equal(learnt.delay_ns, 10 * SEC);
	assert_int_equal(learnt.until_ns, 1000 * SEC);
	retune(&learnt, "exponential initial=1s max=10s jitter=0 retry-max=100s", 4 * SEC);
	assert_int_equal(learnt.until_ns, 104 * SEC);
	assert_int_equal(learnt.paused_ns, 104 * SEC);
	retune(&learnt, "exponential initial=1s max=10s jitter=0 retry-max=1s", 5 * SEC);
	assert_int_equal(learnt.until_ns, 14 * SEC);
	assert_int_equal(learnt.paused_ns, 14 * SEC);
	/* Below the new initial there is no delay. */
	retune(&learnt, "exponential initial=20s max=20s jitter=0 retry-max=1s", 6 * SEC);
	assert_int_equal(learnt.delay_ns, 0);
	assert_int_equal(learnt.until_ns, 14 * SEC);
	retune(&learnt, "none", 7 * SEC);
	assert_int_equal(learnt.until_ns, 7 * SEC);
	assert_int_equal(learnt.paused_ns, 7 * SEC);
	/* A delay that was drawn short stays, the one from which the next is made is bounded. */
	learnt.base_ns = 100.0 * SEC;
	learnt.delay_ns = 7 * SEC;
	retune(&learnt, "exponential max=10s", 7 * SEC);
	assert_int_equal(learnt.delay_ns, 7 * SEC);
	assert_true(learnt.base_ns == 10.0 * SEC);
	/* A pause that is over stays so. */
	retune(&learnt, "exponential", 8 * SEC);
	assert_int_equal(learnt.until_ns, 7 * SEC);
	assert_int_equal(learnt.paused_ns, 7 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_that_is_not_given_is_the_default),
		cmocka_unit_test(test_every_parameter_has_its_bounds),
		cmocka_unit_test(test_word_that_is_not_understood_is_refused_and_named),
		cmocka_unit_test(
			test_fifteen_failures_and_every_five_successes_give_the_published_delays),
		cmocka_unit_test(test_5_failures_and_30_successes_make_30_pauses_of_170_us),
		cmocka_unit_test(test_the_first_delay_is_not_randomised_and_the_next_is),
		cmocka_unit_test(test_jitter_is_bounded_and_does_not_add_up),
		cmocka_unit_test(test_a_delay_never_passes_max_whatever_its_jitter),
		cmocka_unit_test(test_linear_goes_up_and_down_in_steps),
		cmocka_unit_test(test_many_at_once_are_as_many_one_by_one),
		cmocka_unit_test(test_a_billion_at_once_take_no_time),
		cmocka_unit_test(test_a_throttling_ends_a_row_of_successes),
		cmocka_unit_test(test_retry_after_is_the_least_pause_and_has_a_bound_of_its_own),
		cmocka_unit_test(test_without_a_bound_given_retry_after_is_up_to_a_day),
		cmocka_unit_test(test_successes_within_a_pause_add_none),
		cmocka_unit_test(test_other_settings_bound_what_there_is),
	};

	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
