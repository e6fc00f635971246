/* Tests of core/users. */
#include "tests/core/stage.h"

static void bound_to(struct users *users, enum bound_id id, uint32_t all, uint32_t each)
{
	*users = (struct users){.mounter = 7};
	users->bounds[id] = (struct bound){all, each};
}

static void test_a_user_may_have_so_many_and_no_more(void **state)
{
	struct users users;
	char error[ERROR_TEXT];

	(void)state;
	bound_to(&users, BOUND_FILES, 10, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(users_check(&users, 100, BOUND_FILES, error), 0);
		users_add(&users, 100, BOUND_FILES);
	}
	assert_int_equal(users_check(&users, 100, BOUND_FILES, error), -ENOSPC);
	assert_string_equal(error, "user 100 has 2 open files, the most a user can have");
	assert_int_equal(users_check(&users, 101, BOUND_FILES, error), 0);
	users_drop(&users, 100, BOUND_FILES);
	assert_int_equal(users_check(&users, 100, BOUND_FILES, NULL), 0);
	users_free(&users);
}

static void test_all_together_may_have_so_many_and_no_more(void **state)
{
	struct users users;
	char error[ERROR_TEXT];

	(void)state;
	bound_to(&users, BOUND_KEYS, 3, 2);
	for (uint32_t uid = 0; uid < 3; uid++)
		users_add(&users, uid, BOUND_KEYS);
	for (uint32_t uid = 0; uid < 9; uid++)
		assert_int_equal(users_check(&users, uid, BOUND_KEYS, error), -ENOSPC);
	assert_string_equal(error, "there are 3 keys, the most there can be");
	users_free(&users);
}

static void test_root_and_the_mounter_are_bound_by_all_only(void **state)
{
	struct users users;

	(void)state;
	bound_to(&users, BOUND_READERS, 9, 1);
	for (int i = 0; i < 4; i++) {
		users_add(&users, 0, BOUND_READERS);
		users_add(&users, 7, BOUND_READERS);
	}
	assert_int_equal(users_check(&users, 0, BOUND_READERS, NULL), 0);
	assert_int_equal(users_check(&users, 7, BOUND_READERS, NULL), 0);
	users_add(&users, 8, BOUND_READERS);
	assert_int_equal(users_check(&users, 0, BOUND_READERS, NULL), -ENOSPC);
	users_free(&users);
}

static void test_many_users_come_and_go(void **state)
{
	enum { MANY = 10000 };
	struct users users;

	(void)state;
	bound_to(&users, BOUND_READERS, 2 * MANY, 1);
	for (uint32_t uid = 1000; uid < 1000 + MANY; uid++)
		users_add(&users, uid, BOUND_READERS);
	for (uint32_t uid = 1000; uid < 1000 + MANY; uid++)
		assert_int_equal(users_check(&users, uid, BOUND_READERS, NULL), -ENOSPC);
	for (uint32_t uid = 1000; uid < 1000 + MANY; uid++)
		users_drop(&users, uid, BOUND_READERS);
	assert_int_equal(users.used[BOUND_READERS], 0);
	assert_true(users.by_uid.count < 100);
	users_free(&users);
}

static int change_owner(struct stage *stage, struct limiter *limiter, uint32_t uid)
{
	struct owner owner = {.uid = uid, .access = 0755};

	change_apply_owner(&stage->engine, limiter, &owner);
	return users_check(&stage->engine.users, uid, BOUND_LIMITERS, NULL);
}

static void test_limiters_are_counted_for_their_owners(void **state)
{
	struct stage stage;
	struct users *users;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	users = &stage.engine.users;
	users->bounds[BOUND_LIMITERS] = (struct bound){3, 1};
	a = stage_make(&stage, NULL, "a", NULL);
	b = stage_make(&stage, a, "b", NULL);
	assert_int_equal(users->used[BOUND_LIMITERS], 2);
	assert_int_equal(users_check(users, 5, BOUND_LIMITERS, NULL), 0);
	assert_int_equal(change_owner(&stage, a, 5), -ENOSPC);
	assert_int_equal(change_owner(&stage, a, 6), -ENOSPC);
	assert_int_equal(users_check(users, 5, BOUND_LIMITERS, NULL), 0);
	assert_int_equal(change_owner(&stage, b, 5), -ENOSPC);
	change_apply_removal(&stage.engine, b);
	assert_int_equal(users_check(users, 5, BOUND_LIMITERS, NULL), 0);
	assert_int_equal(users->used[BOUND_LIMITERS], 1);
	stage_make(&stage, NULL, "c", NULL);
	stage_make(&stage, NULL, "d", NULL);
	assert_int_equal(stage_change(&stage, stage.engine.tree.root, CHANGE_MAKE, "e", 0),
			 -ENOSPC);
	stage_close(&stage);
}

static int key(struct stage *stage, struct limiter *limiter, const char *name, uint32_t uid)
{
	struct key *key;

	return engine_key(&stage->engine, limiter, name, uid, 0, &key);
}

static void test_one_key_too_many_of_a_user_costs_it_its_oldest_and_no_other_user(void **state)
{
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	stage.engine.users.bounds[BOUND_KEYS] = (struct bound){10, 2};
	a = stage_make(&stage, NULL, "a", "key_rate=1/d");
	b = stage_make(&stage, NULL, "b", "key_rate=1/d");
	assert_int_equal(key(&stage, a, "first", 5), 0);
	assert_int_equal(key(&stage, a, "second", 5), 0);
	assert_int_equal(key(&stage, a, "third", 5), 0);
	assert_int_equal(keys_count(a), 2);
	assert_int_equal(key(&stage, b, "fourth", 5), -ENOSPC);
	assert_int_equal(key(&stage, b, "other", 6), 0);
	assert_int_equal(key(&stage, b, "fourth", 5), -ENOSPC);
	assert_int_equal(keys_count(b), 1);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_user_may_have_so_many_and_no_more),
		cmocka_unit_test(test_all_together_may_have_so_many_and_no_more),
		cmocka_unit_test(test_root_and_the_mounter_are_bound_by_all_only),
		cmocka_unit_test(test_many_users_come_and_go),
		cmocka_unit_test(test_limiters_are_counted_for_their_owners),
		cmocka_unit_test(
			test_one_key_too_many_of_a_user_costs_it_its_oldest_and_no_other_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
