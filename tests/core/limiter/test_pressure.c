/* test_pressure - the part of the time in which a reader waited, see core/limiter/pressure.h. */
#include "tests/core/stage.h"

#include "core/limiter/pressure.h"

#include <math.h>

/* An average is what the integral of the weights says, to a thousandth. */
static void assert_averages(const struct pressure *pressure, uint64_t now_ns, double ten,
			    double sixty, double many)
{
	const struct pressure now = pressure_at(pressure, now_ns);

	assert_true(fabs(now.averages[0] - ten) < 0.001);
	assert_true(fabs(now.averages[1] - sixty) < 0.001);
	assert_true(fabs(now.averages[2] - many) < 0.001);
}

static void test_without_a_wait_there_is_no_pressure(void **state)
{
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 5 * SEC);
	assert_averages(&pressure, 5 * SEC, 0, 0, 0);
	assert_averages(&pressure, 500 * SEC, 0, 0, 0);
	assert_int_equal(pressure_at(&pressure, 500 * SEC).total_ns, 0);
}

static void test_a_wait_counts_while_it_lasts_and_then_fades(void **state)
{
	struct pressure pressure;
	double ten = 1 - exp(-1), sixty = 1 - exp(-10 / 60.0), many = 1 - exp(-10 / 300.0);

	(void)state;
	pressure_init(&pressure, 0);
	pressure_set(&pressure, true, 0);
	assert_averages(&pressure, 10 * SEC, ten, sixty, many);
	assert_int_equal(pressure_at(&pressure, 10 * SEC).total_ns, 10 * SEC);
	pressure_set(&pressure, false, 10 * SEC);
	assert_averages(&pressure, 40 * SEC, ten * exp(-3), sixty * exp(-0.5), many * exp(-0.1));
	assert_int_equal(pressure_at(&pressure, 40 * SEC).total_ns, 10 * SEC);
	assert_averages(&pressure, 4000 * SEC, 0, 0, 0);
}

static void test_a_short_wait_before_a_long_rest_has_faded(void **state)
{
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	pressure_set(&pressure, true, 0);
	pressure_set(&pressure, false, 1900 * MS);
	assert_averages(&pressure, 300 * SEC, 0, (1 - exp(-1.9 / 60)) * exp(-298.1 / 60),
			(1 - exp(-1.9 / 300)) * exp(-298.1 / 300));
}

static void test_waits_for_a_quarter_of_the_time_are_a_quarter(void **state)
{
	struct pressure pressure;

	(void)state;
	pressure_init(&pressure, 0);
	for (uint64_t at_ns = 0; at_ns < 3000 * SEC; at_ns += 100 * MS) {
		pressure_set(&pressure, true, at_ns);
		pressure_set(&pressure, true, at_ns + MS); /* another one: nothing new */
		pressure_set(&pressure, false, at_ns + 25 * MS);
	}
	assert_averages(&pressure, 3000 * SEC, 0.25, 0.25, 0.25);
	assert_int_equal(pressure_at(&pressure, 3000 * SEC).total_ns, 750 * SEC);
}

static void test_looking_changes_nothing(void **state)
{
	struct pressure watched, alone;

	(void)state;
	pressure_init(&watched, 0);
	pressure_init(&alone, 0);
	pressure_set(&watched, true, SEC);
	pressure_set(&alone, true, SEC);
	for (uint64_t at_ns = SEC; at_ns < 20 * SEC; at_ns += 7 * MS)
		(void)pressure_at(&watched, at_ns);
	assert_memory_equal(&watched, &alone, sizeof(alone));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_wait_there_is_no_pressure),
		cmocka_unit_test(test_a_wait_counts_while_it_lasts_and_then_fades),
		cmocka_unit_test(test_a_short_wait_before_a_long_rest_has_faded),
		cmocka_unit_test(test_waits_for_a_quarter_of_the_time_are_a_quarter),
		cmocka_unit_test(test_looking_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
