/*
 * Tests of fs/parameter: names with a number in them are remembered no longer than what they are
 * of.
 */
#include "fs/state/parameter.h"

#include "core/limiter/users.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct users users;
static const uint64_t SEED[2] = {1, 2};

static struct parameter places[PARAMETERS_MAX];
static struct amounts amounts[PARAMETERS_MAX];
static uint32_t used;

static uint64_t oldest; /* nodes below it are gone */

static bool is_gone(void *context, uint64_t node)
{
	(void)context;
	return node < oldest;
}

/* One without a predecessor. */
static struct parameter_table *new_table(void)
{
	used = 0;
	return parameter_table_new(places, amounts, &used, 0, &users, SEED);
}

/* Returns the number of `take/TOKENS` of @node, or 0. */
static uint64_t number_of(const struct parameter_table *table, uint64_t node, uint64_t tokens)
{
	const struct parameter_name name = {node, tokens, tokens, 0, 0};

	return parameter_known(table, &name, NULL);
}

/* As a lookup of `take/TOKENS` of @node; its number. */
static uint64_t look_up(struct parameter_table *table, uint64_t node, uint64_t tokens)
{
	const struct parameter_name name = {node, tokens, tokens, 0, 0};

	parameter_sweep(table, 2, is_gone, NULL);
	assert_int_equal(parameter_get(table, &name, NULL, 1000), 0);
	return parameter_known(table, &name, NULL);
}

static void test_names_of_nodes_that_come_and_go_never_fill_it(void **state)
{
	struct parameter_table *table = new_table();
	uint64_t kept = look_up(table, UINT64_MAX >> 1, 7);

	(void)state;
	for (uint64_t node = 1; node < PARAMETERS_MAX + PARAMETERS_MAX / 4; node++) {
		oldest = node > 1000 ? node - 1000 : 0;
		look_up(table, node, 2);
	}
	assert_int_equal(parameter_find(table, kept)->name.tokens, 7);
	parameter_table_free(table);
	users_free(&users);
}

static void test_it_is_full_of_names_of_nodes_that_are_there(void **state)
{
	struct parameter_table *table = new_table();
	const struct parameter_name more = {1, PARAMETERS_MAX + 1, PARAMETERS_MAX + 1, 0, 0};
	uint64_t first = look_up(table, 1, 1), again;

	(void)state;
	oldest = 0;
	for (uint64_t tokens = 2; tokens <= PARAMETERS_MAX; tokens++)
		look_up(table, 1, tokens);
	assert_int_equal(parameter_get(table, &more, NULL, 1000), -ENOSPC);
	parameter_put(table, first, 1);
	assert_null(parameter_find(table, first));
	again = look_up(table, 1, PARAMETERS_MAX + 1);
	assert_int_not_equal(again, first);
	assert_null(parameter_find(table, first));
	parameter_table_free(table);
	users_free(&users);
}

static void test_number_of_a_forgotten_place_is_no_other_waiters(void **state)
{
	struct parameter_table *table = new_table();
	uint64_t number = look_up(table, 1, 5), other;

	(void)state;
	oldest = 2;
	other = look_up(table, 3, 6);
	assert_int_not_equal(other, number);
	assert_null(parameter_find(table, number));
	assert_int_equal(number_of(table, 1, 5), 0);
	/* The kernel lets go of it in its own time. */
	parameter_put(table, number, 1);
	assert_int_equal(parameter_find(table, other)->name.tokens, 6);
	parameter_table_free(table);
	users_free(&users);
}

static void test_a_successor_finds_them_and_counts_them_for_the_same_user(void **state)
{
	static const uint64_t other_seed[2] = {3, 4};
	struct parameter_table *table = new_table();
	uint64_t kept, gone;

	(void)state;
	oldest = 0;
	for (uint64_t tokens = 1; tokens <= 1000; tokens++)
		look_up(table, 1, tokens);
	kept = number_of(table, 1, 500);
	gone = number_of(table, 1, 501);
	parameter_put(table, gone, 1);
	parameter_table_free(table);
	users_free(&users);
	memset(&users, 0, sizeof(users));

	table = parameter_table_new(places, amounts, &used, 0, &users, other_seed);
	assert_int_equal(number_of(table, 1, 500), kept);
	assert_int_equal(number_of(table, 1, 501), 0);
	assert_int_equal(users.used[BOUND_NAMES], 999);
	users.bounds[BOUND_NAMES] = (struct bound){2000, 999};
	assert_int_equal(users_check(&users, 1000, BOUND_NAMES, NULL), -ENOSPC);
	assert_int_equal(users_check(&users, 1001, BOUND_NAMES, NULL), 0);
	parameter_put(table, kept, 1);
	assert_int_equal(users_check(&users, 1000, BOUND_NAMES, NULL), 0);
	parameter_table_free(table);
	users_free(&users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_nodes_that_come_and_go_never_fill_it),
		cmocka_unit_test(test_it_is_full_of_names_of_nodes_that_are_there),
		cmocka_unit_test(test_a_successor_finds_them_and_counts_them_for_the_same_user),
		cmocka_unit_test(test_number_of_a_forgotten_place_is_no_other_waiters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
