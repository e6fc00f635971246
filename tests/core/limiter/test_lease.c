/* Tests of lease: which steps a lease may take, and what it leaves behind. */
#include "core/limiter/lease.h"
#include "core/fleet/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As in the picture in lease.h: rows become columns. */
/* clang-format off */
static const char PICTURE[LEASE_STATE_COUNT][LEASE_STATE_COUNT + 1] = {
	/*                 none
	 *                 | taking
	 *                 | | waiting
	 *                 | | | held
	 *                 | | | | draining
	 *                 | | | | | in doubt */
	[LEASE_NONE]     = ".y....",
	[LEASE_TAKING]   = "y.yy.y",
	[LEASE_WAITING]  = "y..y..",
	[LEASE_HELD]     = "y.y.y.",
	[LEASE_DRAINING] = "y.y..y",
	[LEASE_IN_DOUBT] = "y.y...",
};
/* clang-format on */

static void test_every_pair_of_states_is_as_in_the_picture(void **state)
{
	(void)state;
	for (int from = 0; from < LEASE_STATE_COUNT; from++) {
		for (int to = 0; to < LEASE_STATE_COUNT; to++) {
			bool may = lease_may_become((enum lease_state)from, (enum lease_state)to);

			if (may != (PICTURE[from][to] == 'y'))
				fail_msg("%s to %s is %s", lease_state_name((enum lease_state)from),
					 lease_state_name((enum lease_state)to),
					 may ? "allowed" : "refused");
		}
	}
}

static void test_every_step_that_is_allowed_can_be_taken(void **state)
{
	(void)state;
	for (int from = 0; from < LEASE_STATE_COUNT; from++) {
		for (int to = 0; to < LEASE_STATE_COUNT; to++) {
			struct lease lease = {.state = (uint8_t)from, .sent = true};

			if (PICTURE[from][to] != 'y')
				continue;
			lease_become(&lease, (enum lease_state)to);
			assert_int_equal(lease.state, to);
			assert_false(lease.sent);
		}
	}
}

static void test_nothing_is_held_that_was_not_taken(void **state)
{
	(void)state;
	assert_false(lease_may_become(LEASE_NONE, LEASE_HELD));
	assert_false(lease_may_become(LEASE_NONE, LEASE_WAITING));
	assert_false(lease_may_become(LEASE_IN_DOUBT, LEASE_HELD));
	assert_false(lease_may_become(LEASE_DRAINING, LEASE_HELD));
}

static void test_level_that_goes_with_leaves_is_kept_until_they_have_gone(void **state)
{
	static const enum lease_state after[] = {LEASE_NONE, LEASE_IN_DOUBT};

	(void)state;
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		struct lease lease = {.state = LEASE_HELD};

		lease.rest = calloc(1, sizeof(*lease.rest));
		assert_non_null(lease.rest);
		lease_become(&lease, LEASE_DRAINING);
		assert_non_null(lease.rest);
		lease_become(&lease, after[i]);
		assert_null(lease.rest);
	}
}

static void test_every_state_has_one_word_of_its_own(void **state)
{
	(void)state;
	assert_string_equal(lease_state_name(LEASE_NONE), "free");
	for (int i = 0; i < LEASE_STATE_COUNT; i++) {
		const char *name = lease_state_name((enum lease_state)i);

		assert_non_null(name);
		assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz_"), strlen(name));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(name, lease_state_name((enum lease_state)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_pair_of_states_is_as_in_the_picture),
		cmocka_unit_test(test_every_step_that_is_allowed_can_be_taken),
		cmocka_unit_test(test_nothing_is_held_that_was_not_taken),
		cmocka_unit_test(test_level_that_goes_with_leaves_is_kept_until_they_have_gone),
		cmocka_unit_test(test_every_state_has_one_word_of_its_own),
	};

	return cmocka_run_group_tests_name("lease", tests, NULL, NULL);
}
