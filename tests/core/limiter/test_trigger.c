/* test_trigger - thresholds of pressure, see core/limiter/trigger.h. */
#include "tests/core/stage.h"

#include "core/limiter/trigger.h"

#include <errno.h>

static struct trigger trigger_of(const char *text)
{
	struct trigger trigger = {0};

	assert_int_equal(trigger_parse(text, &trigger), 0);
	return trigger;
}

static void test_a_threshold_is_a_time_within_a_window(void **state)
{
	struct trigger trigger = trigger_of("some 150000 1000000");

	(void)state;
	assert_int_equal(trigger.stall_ns, 150 * MS);
	assert_int_equal(trigger.window_ns, SEC);
	trigger = trigger_of("some 1 500000");
	assert_int_equal(trigger.stall_ns, 1000);
	trigger = trigger_of("some 10000000\t10000000");
	assert_int_equal(trigger.window_ns, 10 * SEC);
}

static void test_other_texts_and_numbers_out_of_bounds_are_refused(void **state)
{
	static const char *const texts[] = {"",
					    "some",
					    "some 1",
					    "full 150000 1000000",
					    "some 0 1000000",
					    "some 1 499999",
					    "some 1 10000001",
					    "some 1000001 1000000",
					    "some 1 1000000 1",
					    "some 1 1000000x",
					    "some -1 1000000",
					    "some 1 4295967296",
					    "some 0000001501000000",
					    "some150000 1000000",
					    "some 0000000001 1000000",
					    "150000 1000000"};
	struct trigger trigger;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(trigger_parse(texts[i], &trigger), -EINVAL);
}

static void test_a_wait_of_the_threshold_is_an_event_once_a_window(void **state)
{
	struct trigger trigger = trigger_of("some 150000 1000000");
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	assert_int_equal(trigger_look(&trigger, NULL, 0), NEVER_NS);
	pressure_set(&pressure, true, 20 * SEC);
	assert_int_equal(trigger_look(&trigger, &pressure, 20 * SEC), 20 * SEC + 150 * MS + 1);
	assert_int_equal(trigger_look(&trigger, &pressure, 20 * SEC + 149 * MS),
			 20 * SEC + 150 * MS + 1);
	assert_false(trigger_take(&trigger));
	assert_int_equal(trigger_look(&trigger, &pressure, 20 * SEC + 150 * MS), 0);
	assert_true(trigger_take(&trigger));
	assert_false(trigger_take(&trigger));
	assert_int_equal(trigger_look(&trigger, &pressure, 20 * SEC + 200 * MS),
			 21 * SEC + 150 * MS);
	assert_int_equal(trigger_look(&trigger, &pressure, 21 * SEC + 150 * MS), 0);
}

static void test_waits_too_short_for_the_threshold_are_no_event(void **state)
{
	struct trigger trigger = trigger_of("some 150000 1000000");
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	for (uint64_t at_ns = 0; at_ns < 60 * SEC; at_ns += 500 * MS) {
		pressure_set(&pressure, true, at_ns);
		assert_true(trigger_look(&trigger, &pressure, at_ns) > at_ns);
		pressure_set(&pressure, false, at_ns + 40 * MS);
		assert_true(trigger_look(&trigger, &pressure, at_ns + 40 * MS) > at_ns);
	}
	assert_int_equal(trigger_look(&trigger, &pressure, 62 * SEC), 63 * SEC);
	assert_int_equal(trigger_look(&trigger, &pressure, 63 * SEC), NEVER_NS);
}

static void test_a_window_covers_waits_on_both_sides_of_its_beginning(void **state)
{
	struct trigger trigger = trigger_of("some 150000 1000000");
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	(void)trigger_look(&trigger, &pressure, 0);
	pressure_set(&pressure, true, 900 * MS);
	assert_int_equal(trigger_look(&trigger, &pressure, 900 * MS), SEC);
	/* From 1 s on 100 ms of the window before leave it in proportion, and all is waiting. */
	assert_int_equal(trigger_look(&trigger, &pressure, SEC), SEC + 55555556 + 1);
	assert_int_equal(trigger_look(&trigger, &pressure, SEC + 55555557), 0);
}

static void test_an_event_stays_until_it_is_taken(void **state)
{
	struct trigger trigger = trigger_of("some 500000 500000");
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	(void)trigger_look(&trigger, &pressure, 0);
	pressure_set(&pressure, true, 0);
	assert_int_equal(trigger_look(&trigger, &pressure, 500 * MS), 0);
	pressure_set(&pressure, false, 500 * MS);
	assert_int_equal(trigger_look(&trigger, &pressure, 90 * SEC), 0);
	assert_true(trigger_take(&trigger));
	assert_int_equal(trigger_look(&trigger, &pressure, 91 * SEC), NEVER_NS);
}

static void test_waits_of_a_long_time_without_a_look_count_as_their_mean(void **state)
{
	struct trigger trigger = trigger_of("some 150000 1000000");
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	(void)trigger_look(&trigger, &pressure, 0);
	pressure_set(&pressure, true, SEC);
	pressure_set(&pressure, false, 2 * SEC);
	assert_int_equal(trigger_look(&trigger, &pressure, 10 * SEC), 11 * SEC);
	assert_false(trigger_take(&trigger));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_threshold_is_a_time_within_a_window),
		cmocka_unit_test(test_other_texts_and_numbers_out_of_bounds_are_refused),
		cmocka_unit_test(test_a_wait_of_the_threshold_is_an_event_once_a_window),
		cmocka_unit_test(test_waits_too_short_for_the_threshold_are_no_event),
		cmocka_unit_test(test_a_window_covers_waits_on_both_sides_of_its_beginning),
		cmocka_unit_test(test_an_event_stays_until_it_is_taken),
		cmocka_unit_test(test_waits_of_a_long_time_without_a_look_count_as_their_mean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
