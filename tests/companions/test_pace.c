/* Tests of pace: the takes of a pipe, at rates that are steady, rise and fall. */
#include "companions/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

/* A copy of input that is always there, by a bucket of no burst. */
struct copy {
	struct pace pace;
	uint64_t now_ns, tokens;
	uint64_t left; /* bytes of the piece */
};

static struct copy copy_new(void)
{
	return (struct copy){.pace = PACE_START};
}

/* Copies for @span_ns at @rate tokens a second. */
static void copy_for(struct copy *copy, uint64_t span_ns, uint64_t rate)
{
	uint64_t end_ns = copy->now_ns + span_ns;

	while (copy->now_ns < end_ns) {
		struct pace_take take;
		uint64_t wait_ns;

		if (!copy->left)
			copy->left = PACE_PIECE;
		take = pace_next(&copy->pace, copy->left);
		wait_ns = take.least * 1000 * MS / rate;
		if (take.least > 1 && wait_ns > PACE_PATIENCE_NS) {
			copy->now_ns += PACE_PATIENCE_NS;
			pace_refused(&copy->pace, &take);
			continue;
		}
		copy->now_ns += wait_ns + 1;
		copy->tokens += take.least;
		copy->left -= take.least;
		pace_granted(&copy->pace, &take, take.least, copy->now_ns);
	}
}

static void test_takes_are_of_powers_of_two_within_what_is_left(void **state)
{
	struct pace pace = PACE_START;

	(void)state;
	for (pace.expected = 1; pace.expected <= PACE_PIECE; pace.expected += 997) {
		for (uint64_t left = 1; left <= PACE_PIECE; left += 991) {
			struct pace_take take = pace_next(&pace, left);

			assert_true(take.least >= 1 && take.least <= take.most);
			assert_true(take.most <= left && take.most > left / 2);
			assert_int_equal(take.least & (take.least - 1), 0);
			assert_int_equal(take.most & (take.most - 1), 0);
			assert_true(take.least <= pace.expected);
		}
	}
}

static void test_a_take_waits_for_what_comes_in_thirty_milliseconds(void **state)
{
	static const uint64_t rates[] = {1, 40, 5000, 500000, 10000000, 1000000000};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct copy copy = copy_new();
		uint64_t due = rates[i] * 3 / 100;

		copy_for(&copy, 1000 * MS, rates[i]);
		copy.left = 0;
		copy_for(&copy, 1, rates[i]);
		due = due < 1 ? 1 : due > PACE_PIECE ? PACE_PIECE : due;
		assert_in_range(copy.pace.expected, due * 9 / 10, due);
	}
}

/* Few takes tell enough: 524,288 is 8 to the 6th, twice. */
static void test_it_grows_by_eight_times_with_each_take(void **state)
{
	struct copy copy = copy_new();

	(void)state;
	for (uint64_t expected = 8; expected <= PACE_PIECE; expected *= 8) {
		struct pace_take take = pace_next(&copy.pace, PACE_PIECE);

		pace_granted(&copy.pace, &take, take.least, 0);
		assert_int_equal(copy.pace.expected, expected);
	}
}

static void test_a_take_that_got_its_most_says_nothing(void **state)
{
	struct pace pace = {.expected = 100};
	struct pace_take take = pace_next(&pace, 16);

	(void)state;
	assert_int_equal(take.least, 16);
	pace_granted(&pace, &take, 16, 500 * MS);
	assert_int_equal(pace.expected, 100);
	assert_int_equal(pace.granted_ns, 500 * MS);
}

static void test_a_copy_without_input_does_not_count_that_time(void **state)
{
	struct pace pace = {.expected = 1000};
	struct pace_take take = pace_next(&pace, PACE_PIECE);

	(void)state;
	pace_input(&pace, 60000 * MS);
	pace_granted(&pace, &take, 512, 60010 * MS);
	assert_int_equal(pace.expected, 1536);
}

static void test_a_rate_that_has_fallen_is_found_within_seconds(void **state)
{
	struct copy copy = copy_new();
	uint64_t before;

	(void)state;
	copy_for(&copy, 1000 * MS, 10000000);
	before = copy.tokens;
	copy_for(&copy, 20000 * MS, 1000);
	assert_true(copy.tokens > before);
	assert_in_range(copy.pace.expected, 27, 30);
}

static void test_after_refusals_it_takes_one_and_waits_for_any_time(void **state)
{
	struct pace pace = {.expected = PACE_PIECE};

	(void)state;
	for (int i = 0; i < 30; i++) {
		struct pace_take take = pace_next(&pace, PACE_PIECE);

		pace_refused(&pace, &take);
	}
	assert_int_equal(pace.expected, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_takes_are_of_powers_of_two_within_what_is_left),
		cmocka_unit_test(test_a_take_waits_for_what_comes_in_thirty_milliseconds),
		cmocka_unit_test(test_it_grows_by_eight_times_with_each_take),
		cmocka_unit_test(test_a_take_that_got_its_most_says_nothing),
		cmocka_unit_test(test_a_copy_without_input_does_not_count_that_time),
		cmocka_unit_test(test_a_rate_that_has_fallen_is_found_within_seconds),
		cmocka_unit_test(test_after_refusals_it_takes_one_and_waits_for_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
