/* Limits of keys that have a unit: buckets of each key's own, while it is idle, too. */
#include "core/limiter/key_units.h"
#include "tests/core/stage.h"

#include <stdio.h>

/* As `cat keys/NAME/take/TEXT,within=0s`: whether it was there. */
static bool take(struct stage *stage, struct limiter *limiter, const char *name, const char *text,
		 uint64_t now_ns)
{
	struct token_read read = {.manner = READ_TRYING, .within_ns = NEVER_NS};
	struct amounts amounts;
	struct read_wait wait;
	struct key *key;
	int err;

	assert_int_equal(engine_key(&stage->engine, limiter, name, 0, now_ns, &key), 0);
	read.limiter = keys_open(&stage->engine.schedule, limiter, key);
	assert_non_null(read.limiter);
	assert_int_equal(amounts_parse_take(text, &read.tokens, &read.most, &amounts), 0);
	read.amounts = amounts.count ? &amounts : NULL;
	err = engine_read(&stage->engine, &read, &wait, now_ns);
	keys_close(&stage->engine.schedule, read.limiter);
	assert_true(!err || err == -EBUSY);
	return !err;
}

/* Writes @config of @limiter. */
static int set(struct stage *stage, struct limiter *limiter, const char *config, uint64_t now_ns)
{
	stage_run(stage, now_ns);
	return stage_change(stage, limiter, CHANGE_SETTINGS, config, now_ns);
}

static struct key *key_called(const struct limiter *limiter, const char *name)
{
	return keys_named(limiter->keys, name, strlen(name));
}

static void test_a_take_of_a_key_has_all_units_or_none(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s x=10/s:30\nkey_burst=2");
	assert_true(take(&stage, a, "k", "1,x=20", 0));
	assert_false(take(&stage, a, "k", "1,x=11", 0));
	assert_true(take(&stage, a, "k", "1,x=10", 0));
	assert_false(take(&stage, a, "k", "1", 0));
	assert_true(take(&stage, a, "j", "2,x=30", 0));
	assert_false(take(&stage, a, "k", "1,x=10", SEC - 1));
	assert_true(take(&stage, a, "k", "1,x=10", SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_with_units_is_forgotten_when_all_of_them_are_full(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "key_rate=1/s x=1/s:30 y=1/s:9\n"
		       "key_burst=2");
	assert_true(take(&stage, a, "k", "2,x=30,y=9", 0));
	assert_true(take(&stage, a, "idle", "x=0", 0));
	assert_true(key_called(a, "k")->rests);
	assert_false(key_called(a, "idle")->rests);
	stage_run(&stage, 10 * SEC);
	assert_non_null(key_called(a, "k"));
	assert_null(key_called(a, "idle"));
	stage_run(&stage, 29 * SEC);
	assert_non_null(key_called(a, "k"));
	stage_run(&stage, 31 * SEC);
	assert_null(key_called(a, "k"));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_units_that_come_and_go_are_as_new_each_time(void **state)
{
	struct stage stage;
	struct limiter *a;
	char text[32];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=u0=1/s:10");
	for (unsigned int i = 0; i < 3 * KEY_UNITS_MAX; i++) {
		snprintf(text, sizeof(text), "u%u=10", i % 20);
		assert_true(take(&stage, a, "k", text, 0));
		assert_false(take(&stage, a, "k", text, 0));
		snprintf(text, sizeof(text), "key_rate=u%u=1/s:10", (i + 1) % 20);
		assert_int_equal(set(&stage, a, text, 0), 0);
	}
	assert_true(a->keys->units->count <= KEY_UNITS_MAX);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_strict_window_of_a_unit_is_kept_while_the_key_is_idle(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=x=3/10s,strict");
	assert_true(take(&stage, a, "k", "x=2", SEC));
	assert_true(take(&stage, a, "k", "x=1", 5 * SEC));
	assert_false(take(&stage, a, "k", "x=1", 10 * SEC));
	assert_true(take(&stage, a, "k", "x=2", 11 * SEC));
	assert_false(take(&stage, a, "k", "x=1", 11 * SEC));
	/* It has a log now, which goes with the unit. */
	assert_int_equal(set(&stage, a, "key_rate=max", 11 * SEC), 0);
	assert_true(take(&stage, a, "k", "9", 11 * SEC));
	assert_false(key_called(a, "k")->rests);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_the_limits_of_a_limiter_and_its_keys_are_eight_together(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=a=1/s b=1/s c=1/s d=1/s e=1/s\nkey_rate=5/s x=1/s y=1/s z=1/s");
	assert_int_equal(set(&stage, a, "rate=a=1/s b=1/s c=1/s d=1/s e=1/s f=1/s", 0), -ERANGE);
	assert_int_equal(set(&stage, a, "key_rate=x=1/s y=1/s z=1/s u=1/s", 0), -ERANGE);
	assert_true(take(&stage, a, "k", "x=1,y=1,z=1", 0));
	/* In one write both change, in any order. */
	assert_int_equal(settings_parse("rate=1/s a=1/s b=1/s\nkey_rate=x=1/s y=1/s z=1/s u=1/s "
					"v=1/s",
					&settings, error),
			 0);
	assert_int_equal(settings_parse("key_rate=x=1/s y=1/s\nrate=1/s a=1/s b=1/s c=1/s d=1/s "
					"e=1/s",
					&settings, error),
			 0);
	assert_int_equal(settings.limit_count, 6);
	assert_int_equal(settings.key_unit_count, 2);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_forgotten_key_leaves_no_more_of_a_unit_to_others(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=x=1/10s:5 y=1/s:10\nkeys_max=1");
	assert_true(take(&stage, a, "k", "x=3", 0));
	assert_false(take(&stage, a, "j", "x=3", 0));
	assert_true(take(&stage, a, "j", "x=2,y=10", 0));
	assert_false(take(&stage, a, "k", "x=1", 0));
	assert_false(take(&stage, a, "k", "y=1", 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_may_have_rates_of_its_own_for_units_of_all(void **state)
{
	struct stage stage;
	struct limiter *a, *open;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=5/s y=1/s:3 x=1/s:10\nkey.k.rate=x=2/s");
	assert_int_equal(set(&stage, a, "key.k.rate=z=1/s", 0), -ERANGE);
	assert_int_equal(set(&stage, a, "key_rate=5/s y=1/s", 0), -ERANGE);
	assert_true(take(&stage, a, "k", "x=7,y=100", 0));
	assert_int_equal(engine_key(&stage.engine, a, "k", 0, 0, &key), 0);
	open = keys_open(&stage.engine.schedule, a, key);
	assert_non_null(open);
	assert_int_equal(open->bucket_count, 1);
	assert_int_equal(open->buckets[0].level, 3);
	/* Each bucket stays that of its unit, and y is new. */
	assert_int_equal(set(&stage, a, "key.k.rate=default", 0), 0);
	assert_int_equal(open->bucket_count, 3);
	assert_int_equal(open->plain_count, 1);
	assert_int_equal(open->buckets[1].level, 3);
	assert_int_equal(open->buckets[2].level, 3);
	assert_int_equal(units_counts(open)->of[2].granted, 7);
	assert_int_equal(set(&stage, a, "key.k.rate=y=1/s x=4/s", 0), 0);
	assert_int_equal(open->bucket_count, 2);
	assert_int_equal(open->buckets[1].level, 3);
	keys_close(&stage.engine.schedule, open);
	assert_false(take(&stage, a, "k", "x=4", 0));
	assert_true(take(&stage, a, "k", "x=3", 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_reader_that_waits_follows_a_change_of_units(void **state)
{
	struct stage stage;
	struct limiter *a, *open;
	struct amounts amounts = {.count = 1, .of = {{.unit = "x", .tokens = 6}}};
	struct guest guest;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=5/s");
	assert_int_equal(engine_key(&stage.engine, a, "k", 0, 0, &key), 0);
	open = keys_open(&stage.engine.schedule, a, key);
	assert_non_null(open);
	assert_int_equal(set(&stage, a, "key_rate=y=1/s:3 x=1/s:10", 0), 0);
	assert_int_equal(open->bucket_count, 2);
	assert_int_equal(open->buckets[1].level, 10);
	open->buckets[1].level = 0;
	guest = (struct guest){
		.waiter = {.limiter = open, .amounts = &amounts, .outcome = WAITING}};
	assert_int_equal(engine_ask(&stage.engine, &guest.waiter, NEVER_NS, 0), WAITING);
	assert_int_equal(units_counts(open)->of[1].wanted, 6);
	/* Another order of the same: each bucket stays that of its unit. */
	assert_int_equal(set(&stage, a, "key_rate=x=1/s:10 y=1/s:3", 0), 0);
	assert_int_equal(open->buckets[0].level, 0);
	assert_int_equal(open->buckets[1].level, 3);
	assert_int_equal(units_counts(open)->of[0].wanted, 6);
	assert_int_equal(set(&stage, a, "key_rate=5/s", SEC), 0);
	stage_run(&stage, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_null(units_counts(open));
	keys_close(&stage.engine.schedule, open);
	stage_remove(&stage, a);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_take_of_a_key_has_all_units_or_none),
		cmocka_unit_test(test_a_key_with_units_is_forgotten_when_all_of_them_are_full),
		cmocka_unit_test(test_units_that_come_and_go_are_as_new_each_time),
		cmocka_unit_test(test_a_strict_window_of_a_unit_is_kept_while_the_key_is_idle),
		cmocka_unit_test(test_the_limits_of_a_limiter_and_its_keys_are_eight_together),
		cmocka_unit_test(test_a_forgotten_key_leaves_no_more_of_a_unit_to_others),
		cmocka_unit_test(test_a_key_may_have_rates_of_its_own_for_units_of_all),
		cmocka_unit_test(test_a_reader_that_waits_follows_a_change_of_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
