/*
 * Tests of keys: buckets of their own below a limiter, remembered while there is something to
 * remember.
 */
#include "tests/core/stage.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The key called @name, open, until shut(). */
static struct limiter *open_key(struct stage *stage, struct limiter *limiter, const char *name,
				uint64_t now_ns)
{
	struct limiter *inflated;
	struct key *key;

	assert_int_equal(engine_key(&stage->engine, limiter, name, 0, now_ns, &key), 0);
	assert_string_equal(key->name, name);
	inflated = keys_open(&stage->engine.schedule, limiter, key);
	assert_non_null(inflated);
	return inflated;
}

static void shut(struct stage *stage, struct limiter *inflated)
{
	keys_close(&stage->engine.schedule, inflated);
}

/* As `cat keys/NAME/take/TOKENS,within=0s`: whether they were there. */
static bool take(struct stage *stage, struct limiter *limiter, const char *name, uint64_t tokens,
		 uint64_t now_ns)
{
	struct limiter *key = open_key(stage, limiter, name, now_ns);
	int err = stage_try(stage, key, tokens, now_ns);

	shut(stage, key);
	assert_true(!err || err == -EBUSY);
	return !err;
}

static uint64_t eta(struct stage *stage, struct limiter *limiter, const char *name, uint64_t tokens,
		    uint64_t now_ns)
{
	struct limiter *key = open_key(stage, limiter, name, now_ns);
	uint64_t wait_ns = engine_eta(&stage->engine, key, tokens, NULL, now_ns);

	shut(stage, key);
	return wait_ns;
}

static void test_a_new_key_is_full_and_each_has_a_bucket_of_its_own(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=3");
	assert_true(take(&stage, a, "x", 3, 0));
	assert_false(take(&stage, a, "x", 1, 0));
	assert_true(take(&stage, a, "y", 3, 0));
	assert_int_equal(eta(&stage, a, "x", 1, 0), SEC);
	assert_int_equal(eta(&stage, a, "x", 4, 0), 4 * SEC);
	assert_int_equal(eta(&stage, a, "z", 3, 0), 0);
	assert_false(take(&stage, a, "x", 1, SEC - 1));
	assert_true(take(&stage, a, "x", 1, SEC));
	assert_int_equal(keys_count(a), 3);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_debt_of_a_strict_window_is_one_of_the_rate_after_it(void **state)
{
	struct stage stage;
	struct limiter *a, *k;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/60s,strict");
	k = open_key(&stage, a, "k", 0);
	assert_int_equal(stage_try(&stage, k, 10, 0), 0);
	stage_write(&stage, a, "key_rate=3/60s,strict", 0);
	stage_write(&stage, a, "key_rate=1/s", 0);
	shut(&stage, k);
	assert_false(take(&stage, a, "k", 1, 8 * SEC - 1));
	assert_true(take(&stage, a, "k", 1, 8 * SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_token_of_a_key_is_also_one_of_the_limiter_and_all_above(void **state)
{
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\nburst=5");
	b = stage_make(&stage, a, "b", "rate=1/h\nburst=4\nkey_rate=1/h\nkey_burst=3");
	assert_true(take(&stage, b, "x", 3, 0));
	assert_int_equal(a->counters[COUNTER_GRANTED], 3);
	assert_int_equal(b->counters[COUNTER_GRANTED], 3);
	assert_true(take(&stage, b, "y", 1, 0));
	assert_false(take(&stage, b, "z", 1, 0));
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(eta(&stage, b, "z", 1, 0), 3600 * SEC);
	stage_remove(&stage, b);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_readers_of_keys_are_served_first_come_first_served_by_the_limiter(void **state)
{
	static const char *const names[] = {"x", "y", "z"};
	struct limiter *a, *keys[COUNT(names)];
	struct guest guests[COUNT(names)], greedy;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nkey_rate=10/s\nkey_burst=2");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	for (size_t i = 0; i < COUNT(names); i++) {
		keys[i] = open_key(&stage, a, names[i], i);
		assert_int_equal(stage_ask(&stage, &guests[i], keys[i], 1, i), WAITING);
	}
	assert_int_equal(stage_ask(&stage, &greedy, keys[0], 1, 5), WAITING);
	assert_int_equal(keys_waiting(a), 4);
	stage_run(&stage, 10 * SEC);
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(guests[i].waiter.outcome, 0);
		assert_int_equal(guests[i].done_ns, (i + 1) * SEC);
		shut(&stage, keys[i]);
	}
	assert_int_equal(greedy.done_ns, 4 * SEC);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_keys_in_which_readers_wait_are_found_among_all_that_are_open(void **state)
{
	static const char *const names[] = {"w", "x", "y", "z"};
	struct limiter *a, *keys[COUNT(names)];
	struct guest first, second, third;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s");
	assert_null(keys_next_waiting(a, NULL));
	for (size_t i = 0; i < COUNT(names); i++)
		keys[i] = open_key(&stage, a, names[i], 0);
	assert_null(keys_next_waiting(a, NULL));
	assert_int_equal(stage_try(&stage, keys[3], 1, 0), 0);
	assert_int_equal(stage_try(&stage, keys[1], 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &first, keys[3], 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, keys[1], 2, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &third, keys[3], 1, 0), WAITING);
	assert_ptr_equal(keys_next_waiting(a, NULL), keys[3]);
	assert_ptr_equal(keys_next_waiting(a, keys[3]), keys[1]);
	assert_null(keys_next_waiting(a, keys[1]));
	assert_int_equal(keys_waiting(a), 3);
	/* One of two is granted; the key stays until the other one has left, too. */
	stage_run(&stage, SEC);
	assert_int_equal(first.waiter.outcome, 0);
	assert_ptr_equal(keys_next_waiting(a, NULL), keys[3]);
	engine_cancel(&stage.engine, &third.waiter);
	assert_ptr_equal(keys_next_waiting(a, NULL), keys[1]);
	assert_int_equal(keys_waiting(a), 1);
	engine_cancel(&stage.engine, &second.waiter);
	assert_null(keys_next_waiting(a, NULL));
	stage_remove(&stage, a);
	for (size_t i = 0; i < COUNT(names); i++)
		shut(&stage, keys[i]);
	stage_close(&stage);
}

static void test_one_key_out_of_tokens_holds_up_no_other(void **state)
{
	struct limiter *a, *greedy, *other;
	struct guest guests[3], modest;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\nkey_rate=1/s");
	greedy = open_key(&stage, a, "greedy", 0);
	other = open_key(&stage, a, "other", 0);
	assert_int_equal(stage_ask(&stage, &guests[0], greedy, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guests[1], greedy, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guests[2], greedy, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &modest, other, 1, 10 * MS), 0);
	stage_run(&stage, 5 * SEC);
	assert_int_equal(guests[1].done_ns, SEC);
	assert_int_equal(guests[2].done_ns, 2 * SEC);
	shut(&stage, greedy);
	shut(&stage, other);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_two_openings_of_a_key_share_its_bucket(void **state)
{
	struct limiter *a, *one, *two;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h\nkey_burst=2");
	one = open_key(&stage, a, "x", 0);
	two = open_key(&stage, a, "x", 0);
	assert_ptr_equal(one, two);
	assert_int_equal(stage_try(&stage, one, 1, 0), 0);
	shut(&stage, one);
	assert_int_equal(stage_try(&stage, two, 1, 0), 0);
	assert_int_equal(stage_try(&stage, two, 1, 0), -EBUSY);
	shut(&stage, two);
	assert_false(take(&stage, a, "x", 1, 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_counters_of_a_key_stay_while_it_is_remembered(void **state)
{
	struct limiter *a, *key;
	char text[STAT_TEXT];
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=10");
	assert_true(take(&stage, a, "x", 4, 0));
	assert_true(take(&stage, a, "x", 5, 0));
	assert_false(take(&stage, a, "x", 5, SEC));
	key = open_key(&stage, a, "x", SEC);
	engine_refresh(&stage.engine, key, SEC);
	(void)stat_print(key, text);
	assert_string_equal(text, "granted 9\nserved 2\nrefused 1\nwaiting 0\nrate 1\n"
				  "effective_rate 1\ntokens 2\n");
	shut(&stage, key);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_that_is_full_and_idle_is_forgotten_by_itself(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=10");
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	assert_true(take(&stage, a, "x", 10, 0));
	assert_true(take(&stage, a, "y", 1, 0));
	stage_run(&stage, 9 * SEC);
	assert_int_equal(keys_count(a), 2);
	/* In one go, and then there is nothing more to wake up for. */
	stage_run(&stage, 10 * SEC + KEYS_SLACK_NS);
	assert_int_equal(keys_count(a), 0);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_name_that_was_only_looked_at_is_forgotten_after_a_moment(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;
	uint64_t id;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	assert_int_equal(engine_key(&stage.engine, a, "x", 0, 0, &key), 0);
	id = key->id;
	assert_ptr_equal(keys_find(&stage.engine.schedule, id), key);
	stage_run(&stage, KEYS_LINGER_NS + KEYS_SLACK_NS);
	assert_int_equal(keys_count(a), 0);
	assert_null(keys_find(&stage.engine.schedule, id));
	assert_int_equal(engine_key(&stage.engine, a, "x", 0, 10 * SEC, &key), 0);
	assert_int_not_equal(key->id, id);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_that_is_open_is_not_forgotten(void **state)
{
	struct limiter *a, *key;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s");
	key = open_key(&stage, a, "x", 0);
	stage_run(&stage, 1000 * SEC);
	assert_int_equal(keys_count(a), 1);
	shut(&stage, key);
	stage_run(&stage, 2000 * SEC);
	assert_int_equal(keys_count(a), 0);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_of_rate_0_is_remembered_for_good_once_it_has_granted(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s");
	assert_true(take(&stage, a, "x", 1, 0));
	stage_write(&stage, a, "key_rate=0", 0);
	assert_false(take(&stage, a, "y", 1, 0));
	stage_run(&stage, 1000000 * SEC);
	assert_int_equal(keys_count(a), 1);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	assert_int_equal(eta(&stage, a, "x", 1, 1000000 * SEC), NEVER_NS);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_new_rate_counts_from_now_on_for_idle_keys_too(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=1000");
	assert_true(take(&stage, a, "x", 1000, 0));
	stage_write(&stage, a, "key_rate=10/s", 7 * SEC);	     /* 7 */
	stage_write(&stage, a, "key_rate=0", 9 * SEC);		     /* 27 */
	stage_write(&stage, a, "key_rate=1/3s", 100 * SEC);	     /* 27 */
	stage_write(&stage, a, "key_burst=30", 106 * SEC);	     /* 29 */
	stage_write(&stage, a, "key_burst=40", 112 * SEC);	     /* 30 */
	stage_write(&stage, a, "key_rate=1/s", 113 * SEC + SEC / 2); /* 30.5 */
	assert_int_equal(eta(&stage, a, "x", 31, 114 * SEC), 0);
	assert_int_equal(eta(&stage, a, "x", 32, 114 * SEC), SEC);
	assert_true(take(&stage, a, "x", 31, 114 * SEC));
	assert_false(take(&stage, a, "x", 1, 114 * SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_new_rate_is_felt_at_once_by_a_waiter_of_a_key(void **state)
{
	struct limiter *a, *key;
	struct guest guest;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	assert_true(take(&stage, a, "x", 1, 0));
	key = open_key(&stage, a, "x", 0);
	assert_int_equal(stage_ask(&stage, &guest, key, 1, 0), WAITING);
	stage_write(&stage, a, "key_rate=1/s", 0);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(guest.done_ns, SEC);
	stage_write(&stage, a, "key_rate=0", 10 * SEC);
	assert_int_equal(stage_ask(&stage, &guest, key, 10, 10 * SEC), WAITING);
	stage_write(&stage, a, "key_rate=max", 11 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	shut(&stage, key);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_limit_that_is_new_begins_full(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	assert_true(take(&stage, a, "x", 1000, 0));
	stage_write(&stage, a, "key_rate=1/h\nkey_burst=5", 0);
	assert_true(take(&stage, a, "x", 5, 0));
	assert_false(take(&stage, a, "x", 1, 0));
	assert_true(take(&stage, a, "y", 5, 0));
	assert_false(take(&stage, a, "y", 1, 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_after_more_changes_than_are_remembered_a_key_has_no_more_tokens(void **state)
{
	struct limiter *a, *b;
	struct stage stage;
	uint64_t now_ns = 0, exact = 0;
	char config[64];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=1000000");
	b = stage_make(&stage, NULL, "b", "key_rate=1/s\nkey_burst=1000000");
	assert_true(take(&stage, a, "idle", 1000000, 0));
	assert_true(take(&stage, b, "idle", 1000000, 0));
	for (unsigned int i = 1; i <= 3 * TUNINGS_MAX; i++) {
		now_ns += 2 * SEC;
		exact += 2 * i;
		snprintf(config, sizeof(config), "key_rate=%u/s", i + 1);
		stage_write(&stage, a, config, now_ns);
		if (i < TUNINGS_MAX)
			stage_write(&stage, b, config, now_ns);
		if (i == TUNINGS_MAX - 1) {
			/* So many are exact. */
			assert_true(take(&stage, b, "idle", exact, now_ns));
			assert_false(take(&stage, b, "idle", 1, now_ns));
		}
	}
	assert_false(take(&stage, a, "idle", exact + 1, now_ns));
	assert_true(take(&stage, a, "idle", exact / 2, now_ns));
	assert_true(a->keys->tunings.count <= TUNINGS_MAX);
	stage_remove(&stage, a);
	stage_remove(&stage, b);
	stage_close(&stage);
}

static void test_a_part_of_a_token_is_lost_with_the_rate_in_whose_units_it_was_counted(void **state)
{
	static const uint64_t half_ns = 13 * UINT64_C(86400) * SEC;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/26d\nkey_burst=1000");
	assert_true(take(&stage, a, "idle", 1000, 0));
	assert_false(take(&stage, a, "idle", 1, half_ns));
	for (unsigned int i = 0; i < TUNINGS_MAX; i++)
		stage_write(&stage, a, i % 2 ? "key_rate=1/s" : "key_rate=0", half_ns);
	assert_false(take(&stage, a, "idle", 1, half_ns + SEC - 1));
	assert_true(take(&stage, a, "idle", 1, half_ns + SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_one_key_too_many_has_the_oldest_idle_one_forgotten(void **state)
{
	struct limiter *a, *held;
	struct stage stage;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h\nkey_burst=2\nkeys_max=3");
	held = open_key(&stage, a, "held", 0);
	assert_true(take(&stage, a, "first", 2, 1));
	assert_true(take(&stage, a, "second", 2, 2));
	assert_int_equal(keys_count(a), 3);
	assert_false(take(&stage, a, "first", 1, 3)); /* used again: second is the oldest now */
	assert_int_equal(engine_key(&stage.engine, a, "third", 0, 4, &key), 0);
	assert_int_equal(keys_count(a), 3);
	assert_false(take(&stage, a, "first", 1, 5));
	assert_int_equal(held->counters[COUNTER_GRANTED], 0);
	shut(&stage, held);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_names_that_were_only_looked_at_push_out_no_key_in_debt_to_its_rate(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h\nkeys_max=10");
	assert_true(take(&stage, a, "user", 1, 0));
	for (unsigned int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "guess%u", i);
		assert_int_equal(engine_key(&stage.engine, a, name, 0, 0, &key), 0);
	}
	assert_int_equal(keys_count(a), 10);
	assert_false(take(&stage, a, "user", 1, 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_idle_names_that_were_only_looked_at_are_few(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	for (unsigned int i = 0; i < 2 * KEYS_FRESH_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(engine_key(&stage.engine, a, name, 0, 0, &key), 0);
	}
	assert_int_equal(keys_count(a), KEYS_FRESH_MAX);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_forgetting_keys_gains_no_token(void **state)
{
	struct stage stage;
	struct limiter *a;
	uint64_t got = 0;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=2\nkeys_max=4");
	for (uint64_t now_ns = 0; now_ns < 100 * SEC; now_ns += 100 * MS) {
		got += take(&stage, a, "me", 1, now_ns);
		for (unsigned int i = 0; i < 5; i++) {
			snprintf(name, sizeof(name), "%u", (unsigned int)(now_ns / MS) + i);
			(void)take(&stage, a, name, 1, now_ns);
		}
	}
	assert_in_range(got, 1, 100 + 2);
	/* When all is quiet again a new key is full again. */
	assert_true(take(&stage, a, "new", 2, 110 * SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_when_all_keys_are_in_use_there_is_room_for_no_other(void **state)
{
	struct limiter *a, *one, *two;
	struct stage stage;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h\nkeys_max=2");
	one = open_key(&stage, a, "one", 0);
	two = open_key(&stage, a, "two", 0);
	assert_int_equal(engine_key(&stage.engine, a, "three", 0, 0, &key), -ENOSPC);
	assert_int_equal(engine_key(&stage.engine, a, "two", 0, 0, &key), 0);
	shut(&stage, one);
	assert_int_equal(engine_key(&stage.engine, a, "three", 0, 0, &key), 0);
	shut(&stage, two);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_lowering_keys_max_forgets_those_that_are_too_many(void **state)
{
	struct limiter *a, *held;
	struct stage stage;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/d");
	held = open_key(&stage, a, "held", 0);
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_true(take(&stage, a, name, 1, 0));
	}
	stage_write(&stage, a, "keys_max=10", 0);
	stage_run(&stage, SEC);
	assert_int_equal(keys_count(a), 10);
	assert_false(take(&stage, a, "4999", 1, SEC));
	shut(&stage, held);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_each_step_forgets_so_many_and_no_more(void **state)
{
	struct stage stage;
	struct limiter *a;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/min");
	for (unsigned int i = 0; i < 3 * KEYS_SWEEP; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_true(take(&stage, a, name, 1, 0));
	}
	engine_run(&stage.engine, 1000 * SEC);
	assert_int_equal(keys_count(a), 2 * KEYS_SWEEP);
	stage_run(&stage, 1001 * SEC);
	assert_int_equal(keys_count(a), 0);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_the_mode_of_the_limiter_is_that_of_its_keys(void **state)
{
	struct limiter *a, *key;
	struct guest guest;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\nkey_rate=1/h\nenforcement=open");
	key = open_key(&stage, a, "x", 0);
	assert_int_equal(stage_try(&stage, key, 1000, 0), 0);
	stage_write(&stage, a, "enforcement=shadow", 0);
	assert_int_equal(stage_try(&stage, key, 1000, 0), 0);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 1000);
	assert_int_equal(key->counters[COUNTER_SHADOWED], 1000);
	stage_write(&stage, a, "enforcement=closed", 0);
	assert_int_equal(stage_ask(&stage, &guest, key, 1, 0), WAITING);
	stage_run(&stage, 10000 * SEC);
	assert_int_equal(guest.waiter.outcome, WAITING);
	stage_write(&stage, a, "enforcement=enforce", 10000 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	shut(&stage, key);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_limiter_in_whose_keys_readers_wait_is_not_removed(void **state)
{
	struct limiter *a, *key;
	struct guest guest;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	assert_true(take(&stage, a, "x", 1, 0));
	key = open_key(&stage, a, "x", 0);
	assert_int_equal(stage_ask(&stage, &guest, key, 1, 0), WAITING);
	assert_int_equal(stage_change(&stage, a, CHANGE_REMOVE, NULL, 0), -EBUSY);
	engine_cancel(&stage.engine, &guest.waiter);
	assert_int_equal(key->counters[COUNTER_CANCELLED], 1);
	/* With it go its keys; open files of them find it gone. */
	stage_remove(&stage, a);
	assert_int_equal(stage_try(&stage, key, 1, 0), -ENODEV);
	shut(&stage, key);
	stage_close(&stage);
}

static void test_keys_of_a_removed_limiter_go_bit_by_bit(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;
	uint64_t id;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	for (unsigned int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_true(take(&stage, a, name, 1, 0));
	}
	assert_int_equal(engine_key(&stage.engine, a, "1", 0, 0, &key), 0);
	id = key->id;
	stage_remove(&stage, a);
	/* One of the same name has nothing to do with it. */
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	assert_int_equal(keys_count(a), 0);
	assert_true(take(&stage, a, "1", 1, 0));
	stage_run(&stage, SEC);
	assert_null(keys_find(&stage.engine.schedule, id));
	assert_int_equal(stage.engine.schedule.keys_by_id.count, 1);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_renamed_limiter_keeps_its_keys(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	assert_true(take(&stage, a, "x", 1, 0));
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, "b", 0), 0);
	assert_false(take(&stage, a, "x", 1, 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_grant_that_was_not_delivered_goes_back_to_the_key(void **state)
{
	struct limiter *a, *key;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	key = open_key(&stage, a, "x", 0);
	assert_int_equal(stage_try(&stage, key, 1, 0), 0);
	engine_refund(&stage.engine, key, 1, NULL, 0);
	assert_int_equal(a->counters[COUNTER_GRANTED], 0);
	shut(&stage, key);
	assert_true(take(&stage, a, "x", 1, 0));
	assert_false(take(&stage, a, "x", 1, 0));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_poller_of_a_key_is_called_when_it_has_a_token(void **state)
{
	struct limiter *a, *key;
	struct poller poller;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1000/s\nkey_rate=1/s");
	key = open_key(&stage, a, "x", 0);
	assert_int_equal(stage_try(&stage, key, 1, 0), 0);
	assert_false(stage_poll(&stage, &poller, key, 1, 0));
	stage_run(&stage, SEC - 1);
	assert_int_equal(poller.state, POLLER_WAITS);
	stage_run(&stage, SEC);
	assert_true(stage_fetch(&stage, &poller, SEC));
	assert_int_equal(stage_try(&stage, key, 1, SEC), -EBUSY);
	/* Closed while it polls. */
	assert_false(engine_poll(&stage.engine, &poller, SEC));
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	shut(&stage, key);
	stage_run(&stage, 10 * SEC);
	stage_remove(&stage, a);
	stage_close(&stage);
}

/*
 * A key that is there from the start to the end of a listing is in it once, whatever comes and
 * goes.
 */
static void test_a_listing_has_each_key_once_while_others_come_and_go(void **state)
{
	enum { STAY = 3000, GUESTS = 20000 };
	struct stage stage;
	struct limiter *a;
	unsigned char seen[STAY] = {0};
	unsigned int guests = 0, listed = 0;
	uint64_t place = 0;
	struct key *key;
	char name[32];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/h");
	for (unsigned int i = 0; i < STAY; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_true(take(&stage, a, name, 1, 0));
	}
	for (; (key = keys_from(a, &place)); place++) {
		if (key->name[0] != 'g')
			assert_int_equal(seen[atoi(key->name)]++, 0);
		for (unsigned int i = 0; i < 10 && guests < GUESTS; i++) {
			snprintf(name, sizeof(name), "g%u", guests++);
			assert_true(take(&stage, a, name, 1, 0));
		}
		if (++listed == 2500)
			stage_write(&stage, a, "key_rate=0", 0);
	}
	assert_int_equal(guests, GUESTS);
	for (unsigned int i = 0; i < STAY; i++)
		assert_int_equal(seen[i], 1);
	/* And while there are ever fewer. */
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < STAY; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(engine_key(&stage.engine, a, name, 0, 0, &key), 0);
	}
	place = 0;
	for (; (key = keys_from(a, &place)); place++) {
		if (key->name[0] != 'g')
			assert_int_equal(seen[atoi(key->name)]++, 0);
		if (a->settings->keys_max > STAY)
			stage_write(&stage, a, "keys_max=3000", 0);
		engine_run(&stage.engine, stage.engine.schedule.now_ns + 10 * MS);
	}
	assert_int_equal(keys_count(a), STAY);
	for (unsigned int i = 0; i < STAY; i++)
		assert_int_equal(seen[i], 1);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_restored_limiter_does_not_know_what_its_keys_had(void **state)
{
	static const struct owner owner = {.access = 0755};
	struct settings settings = SETTINGS_DEFAULT;
	struct stage stage;
	struct limiter *a;
	char error[ERROR_TEXT];

	(void)state;
	stage_open(&stage);
	assert_int_equal(settings_parse("key_rate=1/s\nkey_burst=5", &settings, error), 0);
	assert_int_equal(change_restore(&stage.engine, stage.engine.tree.root, "a", &settings,
					&owner, NULL, 0, &a),
			 0);
	assert_false(take(&stage, a, "x", 1, 0));
	assert_true(take(&stage, a, "x", 1, SEC));
	assert_true(take(&stage, a, "y", 5, 5 * SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_an_idle_key_costs_at_most_128_bytes_beyond_its_name(void **state)
{
	(void)state;
	/* With its NUL, what malloc adds, and its part of two tables of which a chain has two. */
	assert_true(offsetof(struct key, name) + 1 + 8 + 15 + 2 * 4 <= 128);
}

/* As an open file of a key is found by a successor, with a lower keys_max by then. */
static void test_a_key_that_was_open_is_restored_with_its_number_beyond_every_bound(void **state)
{
	struct key *first, *second, *again;
	struct limiter *a, *open;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "keys_max=1");
	assert_int_equal(keys_restore(&stage.engine.schedule, a, "first", 7, 42, &first), 0);
	open = keys_open(&stage.engine.schedule, a, first);
	assert_non_null(open);
	assert_int_equal(keys_restore(&stage.engine.schedule, a, "second", 7, 3, &second), 0);
	assert_int_equal(keys_restore(&stage.engine.schedule, a, "first", 7, 42, &again), 0);
	assert_ptr_equal(first, again);
	assert_ptr_equal(keys_find(&stage.engine.schedule, 42), first);
	assert_ptr_equal(keys_find(&stage.engine.schedule, 3), second);
	assert_int_equal(keys_count(a), 2);
	shut(&stage, open);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_an_override_counts_at_once_for_idle_keys_and_for_readers_that_wait(void **state)
{
	struct stage stage;
	struct limiter *a, *waits;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=10");
	waits = open_key(&stage, a, "waits", 0);
	assert_int_equal(stage_try(&stage, waits, 10, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, waits, 5, 0), WAITING);
	assert_true(take(&stage, a, "idle", 10, 0));
	/* 2 have flown in. waits: 3 more at 10/s; idle: the level stays, and has room for 4. */
	stage_write(&stage, a, "key.waits.rate=10/s\nkey.idle.burst=4\nkey.idle.rate=100/s",
		    2 * SEC);
	assert_int_equal(keys_next_open(a, NULL)->settings->limits[0].rate.amount, 10);
	engine_run(&stage.engine, 2 * SEC + 300 * MS - 1);
	assert_int_equal(guest.waiter.outcome, WAITING);
	engine_run(&stage.engine, 2 * SEC + 300 * MS);
	stage_collect(&stage);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_false(take(&stage, a, "idle", 5, 3 * SEC));
	assert_true(take(&stage, a, "idle", 4, 3 * SEC));
	assert_int_equal(eta(&stage, a, "idle", 3, 3 * SEC), 30 * MS);
	/* Others have what they had. */
	assert_true(take(&stage, a, "other", 10, 3 * SEC));
	assert_int_equal(eta(&stage, a, "other", 1, 3 * SEC), SEC);
	stage_write(&stage, a, "key.waits.rate=default\nkey.idle.rate=default", 4 * SEC);
	assert_int_equal(stage_try(&stage, waits, 10, 4 * SEC), 0); /* 17, of which 10 fit */
	assert_int_equal(engine_eta(&stage.engine, waits, 1, NULL, 4 * SEC), SEC);
	assert_true(take(&stage, a, "idle", 4, 4 * SEC));
	assert_int_equal(eta(&stage, a, "idle", 1, 4 * SEC), SEC);
	shut(&stage, waits);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_key_with_overrides_is_forgotten_when_it_is_full_alone(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;
	char name[16];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "key_rate=1/s\nkeys_max=2\nkey.slow.rate=1/10s\n"
		       "key.slow.burst=2");
	assert_true(take(&stage, a, "slow", 2, 0));
	for (unsigned int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(engine_key(&stage.engine, a, name, 0, 1, &key), 0);
	}
	/* They stand beside keys_max. */
	assert_int_equal(keys_count(a), 3);
	assert_false(take(&stage, a, "slow", 1, 10 * SEC - 1));
	assert_true(take(&stage, a, "slow", 1, 10 * SEC));
	engine_run(&stage.engine, 30 * SEC - MS);
	assert_int_equal(keys_count(a), 1);
	engine_run(&stage.engine, 31 * SEC);
	assert_int_equal(keys_count(a), 0);
	/* Its overrides are not forgotten. */
	assert_true(take(&stage, a, "slow", 2, 32 * SEC));
	assert_int_equal(eta(&stage, a, "slow", 1, 32 * SEC), 10 * SEC);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_an_override_brings_no_tokens_to_a_key_that_was_forgotten(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nkey_burst=5\nkeys_max=2");
	assert_true(take(&stage, a, "me", 5, 0));
	assert_true(take(&stage, a, "other", 1, 0));
	assert_int_equal(engine_key(&stage.engine, a, "more", 0, 0, &key), 0);
	stage_write(&stage, a, "key.me.burst=50\nkey.me.rate=10/s", 1 * SEC);
	assert_false(take(&stage, a, "me", 2, 1 * SEC));
	assert_true(take(&stage, a, "me", 1, 1 * SEC));
	assert_int_equal(eta(&stage, a, "me", 1, 1 * SEC), 100 * MS);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_an_override_is_a_limit_where_keys_have_none(void **state)
{
	struct limiter *a, *open;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	open = open_key(&stage, a, "open", 0);
	assert_int_equal(stage_try(&stage, open, 1000, 0), 0);
	assert_true(take(&stage, a, "idle", 1000, 0));
	stage_write(&stage, a, "key.open.rate=1/s\nkey.open.burst=3\nkey.idle.rate=2/s", SEC);
	assert_int_equal(stage_try(&stage, open, 3, SEC), 0);
	assert_int_equal(engine_eta(&stage.engine, open, 1, NULL, SEC), SEC);
	assert_true(take(&stage, a, "idle", 1, SEC));
	assert_int_equal(eta(&stage, a, "idle", 1, SEC), SEC / 2);
	assert_true(take(&stage, a, "other", 1000, SEC));
	stage_write(&stage, a, "key.open.rate=max\nkey.idle.rate=default", SEC);
	assert_int_equal(stage_try(&stage, open, 1000, SEC), 0);
	assert_true(take(&stage, a, "idle", 1000, SEC));
	shut(&stage, open);
	assert_true(take(&stage, a, "open", 1000, SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_keys_with_overrides_begin_empty_where_tokens_were_not_kept(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	assert_int_equal(settings_parse("key.me.rate=1/s\nkey.me.burst=5", &settings, error), 0);
	engine_run(&stage.engine, 100 * SEC);
	assert_int_equal(change_restore(&stage.engine, stage.engine.tree.root, "a", &settings,
					&(struct owner){0, 0, 0755}, NULL, 0, &a),
			 0);
	settings_drop(&settings);
	assert_int_equal(eta(&stage, a, "me", 1, 100 * SEC), SEC);
	assert_true(take(&stage, a, "me", 3, 103 * SEC));
	assert_false(take(&stage, a, "me", 1, 103 * SEC));
	stage_remove(&stage, a);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_key_is_full_and_each_has_a_bucket_of_its_own),
		cmocka_unit_test(test_a_debt_of_a_strict_window_is_one_of_the_rate_after_it),
		cmocka_unit_test(test_a_token_of_a_key_is_also_one_of_the_limiter_and_all_above),
		cmocka_unit_test(
			test_readers_of_keys_are_served_first_come_first_served_by_the_limiter),
		cmocka_unit_test(test_keys_in_which_readers_wait_are_found_among_all_that_are_open),
		cmocka_unit_test(test_one_key_out_of_tokens_holds_up_no_other),
		cmocka_unit_test(test_two_openings_of_a_key_share_its_bucket),
		cmocka_unit_test(test_counters_of_a_key_stay_while_it_is_remembered),
		cmocka_unit_test(test_a_key_that_is_full_and_idle_is_forgotten_by_itself),
		cmocka_unit_test(test_a_name_that_was_only_looked_at_is_forgotten_after_a_moment),
		cmocka_unit_test(test_a_key_that_is_open_is_not_forgotten),
		cmocka_unit_test(test_a_key_of_rate_0_is_remembered_for_good_once_it_has_granted),
		cmocka_unit_test(test_a_new_rate_counts_from_now_on_for_idle_keys_too),
		cmocka_unit_test(test_new_rate_is_felt_at_once_by_a_waiter_of_a_key),
		cmocka_unit_test(test_a_limit_that_is_new_begins_full),
		cmocka_unit_test(
			test_after_more_changes_than_are_remembered_a_key_has_no_more_tokens),
		cmocka_unit_test(
			test_a_part_of_a_token_is_lost_with_the_rate_in_whose_units_it_was_counted),
		cmocka_unit_test(test_one_key_too_many_has_the_oldest_idle_one_forgotten),
		cmocka_unit_test(
			test_names_that_were_only_looked_at_push_out_no_key_in_debt_to_its_rate),
		cmocka_unit_test(test_idle_names_that_were_only_looked_at_are_few),
		cmocka_unit_test(test_forgetting_keys_gains_no_token),
		cmocka_unit_test(test_when_all_keys_are_in_use_there_is_room_for_no_other),
		cmocka_unit_test(test_lowering_keys_max_forgets_those_that_are_too_many),
		cmocka_unit_test(test_each_step_forgets_so_many_and_no_more),
		cmocka_unit_test(test_the_mode_of_the_limiter_is_that_of_its_keys),
		cmocka_unit_test(test_a_limiter_in_whose_keys_readers_wait_is_not_removed),
		cmocka_unit_test(test_keys_of_a_removed_limiter_go_bit_by_bit),
		cmocka_unit_test(test_a_renamed_limiter_keeps_its_keys),
		cmocka_unit_test(test_a_grant_that_was_not_delivered_goes_back_to_the_key),
		cmocka_unit_test(test_a_poller_of_a_key_is_called_when_it_has_a_token),
		cmocka_unit_test(test_a_listing_has_each_key_once_while_others_come_and_go),
		cmocka_unit_test(test_a_restored_limiter_does_not_know_what_its_keys_had),
		cmocka_unit_test(test_an_idle_key_costs_at_most_128_bytes_beyond_its_name),
		cmocka_unit_test(
			test_a_key_that_was_open_is_restored_with_its_number_beyond_every_bound),
		cmocka_unit_test(
			test_an_override_counts_at_once_for_idle_keys_and_for_readers_that_wait),
		cmocka_unit_test(test_a_key_with_overrides_is_forgotten_when_it_is_full_alone),
		cmocka_unit_test(test_an_override_brings_no_tokens_to_a_key_that_was_forgotten),
		cmocka_unit_test(test_an_override_is_a_limit_where_keys_have_none),
		cmocka_unit_test(test_keys_with_overrides_begin_empty_where_tokens_were_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
