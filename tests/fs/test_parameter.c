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

/* Begins a table in which all users may have 6 names, and each 3. */
static struct parameter_table *new_bounded_table(void)
{
	memset(&users, 0, sizeof(users));
	users.bounds[BOUND_NAMES] = (struct bound){6, 3};
	oldest = 0;
	return new_table();
}

/* As a lookup of `take/TOKENS` by @uid, which may have no room; its number, or 0. */
static uint64_t look_up_as(struct parameter_table *table, uint32_t uid, uint64_t tokens)
{
	const struct parameter_name name = {1, tokens, tokens, 0, 0};

	if (!number_of(table, 1, tokens) && !parameter_make_room(table, uid))
		return 0;
	assert_int_equal(parameter_get(table, &name, NULL, uid), 0);
	return number_of(table, 1, tokens);
}

static void free_table(struct parameter_table *table)
{
	parameter_table_free(table);
	users_free(&users);
}

static uint32_t names_of(uint32_t uid)
{
	const struct user *user = users_find(&users, uid);

	return user ? user->used[BOUND_NAMES] : 0;
}

static void test_the_oldest_name_of_a_user_at_its_bound_gives_way(void **state)
{
	struct parameter_table *table = new_bounded_table();
	uint64_t others = look_up_as(table, 1001, 1000), first = look_up_as(table, 1000, 1);

	(void)state;
	for (uint64_t tokens = 2; tokens <= 100; tokens++) {
		assert_int_not_equal(look_up_as(table, 1000, tokens), 0);
		assert_true(names_of(1000) <= 3);
		assert_true(tokens < 4 || !number_of(table, 1, tokens - 3));
		assert_int_not_equal(number_of(table, 1, tokens - 1), 0);
	}
	assert_null(parameter_find(table, first));
	assert_int_equal(number_of(table, 1, 1000), others);
	/* As the kernel may keep using the stale number. */
	parameter_open(table, first);
	parameter_close(table, first);
	parameter_put(table, first, 1);
	assert_int_not_equal(look_up_as(table, 1000, 1), first);
	assert_int_equal(names_of(1000), 3);
	assert_int_equal(names_of(1001), 1);
	free_table(table);
}

static void test_a_name_that_is_looked_up_again_is_the_newest(void **state)
{
	struct parameter_table *table = new_bounded_table();

	(void)state;
	for (uint64_t tokens = 1; tokens <= 3; tokens++)
		look_up_as(table, 1000, tokens);
	look_up_as(table, 1001, 1);
	look_up_as(table, 1000, 4);
	assert_int_not_equal(number_of(table, 1, 1), 0);
	assert_int_equal(number_of(table, 1, 2), 0);
	free_table(table);
}

static void test_a_name_stays_while_files_of_it_are_open(void **state)
{
	struct parameter_table *table = new_bounded_table();
	uint64_t opened[3];

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		opened[i] = look_up_as(table, 1000, i + 1);
		parameter_open(table, opened[i]);
	}
	parameter_open(table, opened[1]);
	assert_int_equal(look_up_as(table, 1000, 4), 0);
	parameter_close(table, opened[1]);
	assert_int_equal(look_up_as(table, 1000, 4), 0);
	parameter_close(table, opened[1]);
	assert_int_not_equal(look_up_as(table, 1000, 4), 0);
	assert_null(parameter_find(table, opened[1]));
	assert_int_not_equal(look_up_as(table, 1000, 5), 0);
	assert_non_null(parameter_find(table, opened[0]));
	assert_non_null(parameter_find(table, opened[2]));
	assert_int_equal(names_of(1000), 3);
	free_table(table);
}

static void test_at_the_bound_of_all_only_own_names_give_way(void **state)
{
	struct parameter_table *table = new_bounded_table();

	(void)state;
	for (uint64_t tokens = 1; tokens <= 3; tokens++)
		look_up_as(table, 1000, tokens);
	for (uint64_t tokens = 4; tokens <= 5; tokens++)
		look_up_as(table, 1001, tokens);
	look_up_as(table, 0, 6);
	assert_int_equal(look_up_as(table, 1002, 7), 0);
	assert_null(users_find(&users, 1002));
	assert_int_not_equal(look_up_as(table, 0, 7), 0);
	assert_int_equal(number_of(table, 1, 6), 0);
	assert_int_not_equal(look_up_as(table, 1001, 8), 0);
	assert_int_equal(number_of(table, 1, 4), 0);
	assert_int_equal(names_of(1000), 3);
	assert_int_equal(users.used[BOUND_NAMES], 6);
	free_table(table);
}

static void test_users_whom_no_bound_binds_leave_room_while_they_can(void **state)
{
	struct parameter_table *table = new_bounded_table();
	uint64_t opened;

	(void)state;
	for (uint64_t tokens = 1; tokens <= 100; tokens++)
		assert_int_not_equal(look_up_as(table, 0, tokens), 0);
	assert_int_equal(names_of(0), 3);
	for (uint64_t tokens = 101; tokens <= 104; tokens++) {
		opened = look_up_as(table, 0, tokens);
		parameter_open(table, opened);
	}
	assert_int_equal(names_of(0), 4);
	free_table(table);
}

static void test_a_lower_bound_is_come_down_to_name_by_name(void **state)
{
	struct parameter_table *table = new_bounded_table();

	(void)state;
	users.bounds[BOUND_NAMES] = (struct bound){100, 50};
	for (uint64_t tokens = 1; tokens <= 50; tokens++)
		look_up_as(table, 1000, tokens);
	users.bounds[BOUND_NAMES] = (struct bound){100, 3};
	for (uint64_t tokens = 51; tokens <= 50 + 47; tokens++)
		assert_int_not_equal(look_up_as(table, 1000, tokens), 0);
	assert_int_equal(names_of(1000), 3);
	free_table(table);
}

static void test_names_whose_references_are_lost_give_way_in_a_successor(void **state)
{
	static const uint64_t other_seed[2] = {3, 4};
	struct parameter_table *table = new_bounded_table();
	uint64_t numbers[3], opened;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		numbers[i] = look_up_as(table, 1000, i + 1);
	opened = numbers[0];
	free_table(table);
	memset(&users.used, 0, sizeof(users.used));
	table = parameter_table_new(places, amounts, &used, 0, &users, other_seed);
	parameter_open(table, opened); /* as it was at the end of the first */
	for (uint64_t tokens = 4; tokens <= 8; tokens++)
		assert_int_not_equal(look_up_as(table, 1000, tokens), 0);
	assert_non_null(parameter_find(table, opened));
	assert_null(parameter_find(table, numbers[1]));
	assert_null(parameter_find(table, numbers[2]));
	assert_int_equal(names_of(1000), 3);
	free_table(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_nodes_that_come_and_go_never_fill_it),
		cmocka_unit_test(test_it_is_full_of_names_of_nodes_that_are_there),
		cmocka_unit_test(test_a_successor_finds_them_and_counts_them_for_the_same_user),
		cmocka_unit_test(test_number_of_a_forgotten_place_is_no_other_waiters),
		cmocka_unit_test(test_the_oldest_name_of_a_user_at_its_bound_gives_way),
		cmocka_unit_test(test_a_name_that_is_looked_up_again_is_the_newest),
		cmocka_unit_test(test_a_name_stays_while_files_of_it_are_open),
		cmocka_unit_test(test_at_the_bound_of_all_only_own_names_give_way),
		cmocka_unit_test(test_users_whom_no_bound_binds_leave_room_while_they_can),
		cmocka_unit_test(test_a_lower_bound_is_come_down_to_name_by_name),
		cmocka_unit_test(test_names_whose_references_are_lost_give_way_in_a_successor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
