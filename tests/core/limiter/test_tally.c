/* test_tally - how many tokens each user was granted, see core/limiter/tally.h. */
#include "tests/core/stage.h"

#include "core/limiter/tally.h"

static void add(struct tally *tally, uint32_t uid, uint64_t key, uint64_t granted)
{
	assert_int_equal(tally_add(tally,
				   &(struct tally_line){
					   .uid = uid, .key = key, .granted = granted, .pid = 7}),
			 0);
}

static void test_a_user_and_a_key_have_a_line_each(void **state)
{
	struct tally tally = {0}, copy;

	(void)state;
	add(&tally, 1000, 0, 5);
	add(&tally, 1000, 3, 6);
	add(&tally, 1001, 0, 7);
	add(&tally, 1000, 0, 3);
	assert_int_equal(tally_copy(&tally, &copy), 0);
	tally_sort(&copy);
	assert_int_equal(copy.count, 3);
	assert_int_equal(copy.lines[0].granted, 8);
	assert_int_equal(copy.lines[0].uid, 1000);
	assert_int_equal(copy.lines[1].uid, 1001);
	assert_int_equal(copy.lines[2].key, 3);
	assert_int_equal(copy.lines[2].over, 0);
	tally_free(&copy);
	tally_free(&tally);
}

static void test_a_heavy_user_stays_among_any_number_of_light_ones(void **state)
{
	struct tally tally = {0};
	uint64_t all = 0;

	(void)state;
	for (uint32_t uid = 1; uid <= 100000; uid++) {
		add(&tally, uid, 0, 1);
		add(&tally, uid % 2 ? 5000000 : 6000000, 0, 1);
	}
	tally_sort(&tally);
	assert_int_equal(tally.count, TALLY_MAX);
	assert_int_equal(tally.lines[0].granted - tally.lines[0].over, 50000);
	assert_int_equal(tally.lines[1].granted - tally.lines[1].over, 50000);
	/* Counts are never too small: together they are all tokens. */
	for (uint32_t i = 0; i < tally.count; i++) {
		assert_true(tally.lines[i].granted >= tally.lines[i].over);
		all += tally.lines[i].granted;
	}
	assert_int_equal(all, 200000);
	tally_free(&tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_and_a_key_have_a_line_each),
		cmocka_unit_test(test_a_heavy_user_stays_among_any_number_of_light_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
