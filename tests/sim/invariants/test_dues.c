/* Tests that siblings that have too little over all hosts of a fleet are found. */
#include "tests/sim/invariants/dues_check.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static char why[WHY_TEXT];

/* A sibling that wants more than there is, and has a minimum of @min tokens a second. */
static struct due due(uint64_t weight, uint64_t min, uint32_t class, double granted)
{
	struct due sibling = {.terms = {.weight = weight, .class = class},
			      .name = "x",
			      .wanted = (double)INFINITY,
			      .granted = granted};

	sibling.terms.min = (struct fraction){min, NSEC_PER_SEC};
	return sibling;
}

/* All of them together, in a second. */
static struct dues dues_of(struct due *siblings, uint32_t count)
{
	return (struct dues){.parts = siblings, .count = count, .hosts = 2, .span_s = 1};
}

#define DUES_OF(siblings) dues_of(siblings, sizeof(siblings) / sizeof((siblings)[0]))

/* Hadoop YARN, TestComputeFairShares: weights, minima, and both. */
static void test_siblings_of_a_fleet_are_due_what_yarn_gives_to_queues(void **state)
{
	static const struct {
		uint64_t weights[4], minima[4];
		double of, due[4];
	} rows[] = {
		{{20, 10, 10, 5}, {0}, 45, {20, 10, 10, 5}},
		{{1, 1, 1, 1}, {20, 18, 0, 2}, 40, {20, 18, 0, 2}},
		{{20, 10, 10, 5}, {20, 0, 5, 15}, 45, {20, 5, 5, 15}},
	};

	(void)state;
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		struct due siblings[4];
		struct dues dues = DUES_OF(siblings);

		for (int i = 0; i < 4; i++)
			siblings[i] = due(rows[row].weights[i], rows[row].minima[i], 0,
					  rows[row].of / 4);
		assert_true(dues_check_compute(&dues));
		for (int i = 0; i < 4; i++)
			assert_float_equal(siblings[i].due, rows[row].due[i], 1e-6);
	}
}

static void test_the_rest_of_a_sibling_that_wants_little_is_due_to_the_others(void **state)
{
	struct due siblings[] = {due(100, 0, 0, 10), due(100, 0, 0, 60), due(200, 0, 0, 30)};
	struct dues dues = DUES_OF(siblings);

	(void)state;
	siblings[0].wanted = 10;
	assert_true(dues_check_compute(&dues));
	assert_float_equal(siblings[0].due, 10, 1e-6);
	assert_float_equal(siblings[1].due, 30, 1e-6);
	assert_float_equal(siblings[2].due, 60, 1e-6);
}

static void test_a_higher_class_is_due_all_but_the_minima(void **state)
{
	struct due siblings[] = {due(100, 0, 5, 0), due(10000, 20, 0, 100), due(100, 0, 9, 0)};
	struct dues dues = DUES_OF(siblings);

	(void)state;
	siblings[2].wanted = 10;
	assert_true(dues_check_compute(&dues));
	assert_float_equal(siblings[0].due, 70, 1e-6);
	assert_float_equal(siblings[1].due, 20, 1e-6);
	assert_float_equal(siblings[2].due, 10, 1e-6);
}

static void test_a_sibling_with_less_than_its_part_over_all_hosts_is_found(void **state)
{
	struct due fair[] = {due(100, 0, 0, 250), due(300, 0, 0, 750)};
	/* 950/1000 of 750 less a token on its way on each of two hosts, 710.5. */
	struct due unfair[] = {due(100, 0, 0, 290), due(300, 0, 0, 710)};
	struct dues dues = DUES_OF(fair);

	(void)state;
	assert_true(dues_check(&dues, why));
	dues.parts = unfair;
	assert_false(dues_check(&dues, why));
	/* A piece that is not divided, on each host; or a take. */
	dues.piece = 1;
	assert_true(dues_check(&dues, why));
	dues.piece = 0;
	unfair[0].largest = 1;
	assert_true(dues_check(&dues, why));
	unfair[0].largest = 0;
	dues.light = 1;
	assert_true(dues_check(&dues, why));
}

static void test_a_low_class_that_is_served_before_a_high_one_is_found(void **state)
{
	struct due siblings[] = {due(100, 0, 1, 945), due(100, 0, 0, 55)};
	struct dues dues = DUES_OF(siblings);

	(void)state;
	assert_false(dues_check(&dues, why));
	/* It has had all that it wanted. */
	siblings[0].wanted = 945;
	assert_true(dues_check(&dues, why));
	siblings[0].wanted = (double)INFINITY;
	siblings[1].terms.min.num = 55;
	assert_true(dues_check(&dues, why));
}

static void test_a_min_that_is_not_kept_over_all_hosts_is_found(void **state)
{
	struct due siblings[] = {due(1, 100, 0, 90), due(10000, 0, 9, 910)};
	struct dues dues = DUES_OF(siblings);

	(void)state;
	assert_false(dues_check(&dues, why));
	siblings[0].wanted = 90;
	assert_true(dues_check(&dues, why));
	/* More than all that was granted is sure to no sibling. */
	siblings[0] = due(1, 1001, 0, 0);
	assert_true(dues_check(&dues, why));
}

static void test_a_rate_that_siblings_want_and_do_not_get_is_found(void **state)
{
	struct due siblings[] = {due(100, 0, 0, 90), due(100, 0, 0, 3)};
	struct dues dues = DUES_OF(siblings);

	(void)state;
	assert_true(dues_check_use(&dues, 100, why));
	siblings[1].granted = 2;
	assert_false(dues_check_use(&dues, 100, why));
	/* All that was wanted is 95. */
	siblings[0].wanted = 90;
	siblings[1].wanted = 5;
	assert_true(dues_check_use(&dues, 100, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siblings_of_a_fleet_are_due_what_yarn_gives_to_queues),
		cmocka_unit_test(test_the_rest_of_a_sibling_that_wants_little_is_due_to_the_others),
		cmocka_unit_test(test_a_higher_class_is_due_all_but_the_minima),
		cmocka_unit_test(test_a_sibling_with_less_than_its_part_over_all_hosts_is_found),
		cmocka_unit_test(test_a_low_class_that_is_served_before_a_high_one_is_found),
		cmocka_unit_test(test_a_min_that_is_not_kept_over_all_hosts_is_found),
		cmocka_unit_test(test_a_rate_that_siblings_want_and_do_not_get_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
