/* Tests of partition: shares of a limiter that are limiters, and follow it. */
#include "tests/core/stage.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct limiter *get(struct stage *stage, struct limiter *limiter, uint32_t index)
{
	struct limiter *partition = partition_get(&stage->engine.schedule, limiter, index, 0);

	assert_non_null(partition);
	return partition;
}

static uint32_t shares_of(const struct limiter *limiter)
{
	uint32_t shares;

	(void)partition_count(limiter, &shares);
	return shares;
}

static void assert_rate(const struct limiter *limiter, const char *expected)
{
	struct settings settings;
	char text[SETTING_TEXT];

	settings = *limiter_settings(limiter);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, expected);
}

/* Limit @i of all partitions together is limit @i of @limiter: shares and reserves, exactly. */
static void assert_sum(struct stage *stage, struct limiter *limiter, unsigned int i)
{
	struct fraction whole = limiter->buckets[i].flow, one, own = {0, 1};
	uint32_t shares, count = partition_count(limiter, &shares);
	u128 num, den;

	one = get(stage, limiter, 0)->buckets[i].flow;
	num = (u128)one.num * shares;
	den = one.den;
	if (count > shares) {
		own = get(stage, limiter, PARTITIONS_MAX)->buckets[i].flow;
		/* The tests' numbers are small. */
		num = num * own.den + (u128)own.num * (count - shares) * den;
		den *= own.den;
	}
	assert_true(num * whole.den == (u128)whole.num * den);
	for (uint32_t index = 0; index < count; index++) {
		uint32_t number = partition_at(limiter, index);
		struct fraction flow = get(stage, limiter, number)->buckets[i].flow;

		assert_true(index >= shares || (flow.num == one.num && flow.den == one.den));
		assert_true(index < shares || (flow.num == own.num && flow.den == own.den));
	}
}

static uint32_t used_by(const struct stage *stage, uint32_t uid)
{
	const struct user *user = users_find(&stage->engine.users, uid);

	return user ? user->used[BOUND_LIMITERS] : 0;
}

static void test_a_partition_counts_for_its_user_until_it_is_removed(void **state)
{
	struct schedule *schedule;
	struct limiter *limiter, *far;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	schedule = &stage.engine.schedule;
	limiter = stage_make(&stage, NULL, "a", "rate=10000/s\npartitions.count=4096");
	assert_null(partition_find(limiter, 0));
	far = partition_get(schedule, limiter, 4095, 7);
	assert_ptr_equal(partition_find(limiter, 4095), far);
	assert_null(partition_find(limiter, 4094));
	assert_ptr_equal(partition_get(schedule, limiter, 4095, 8), far);
	(void)partition_get(schedule, limiter, 1, 7);
	(void)partition_get(schedule, limiter, 64, 8);
	assert_int_equal(used_by(&stage, 7), 2);
	assert_int_equal(used_by(&stage, 8), 1);
	/* Its place goes, and is there again for the next one. */
	stage_write(&stage, limiter, "partitions.count=64", 0);
	assert_null(partition_find(limiter, 4095));
	assert_int_equal(limiter->partition_room, PARTITION_BLOCK);
	assert_int_equal(used_by(&stage, 7), 1);
	assert_int_equal(used_by(&stage, 8), 0);
	stage_write(&stage, limiter, "partitions.count=4096", 0);
	assert_non_null(partition_get(schedule, limiter, 4095, 8));
	assert_non_null(partition_find(limiter, 1));
	stage_remove(&stage, limiter);
	assert_int_equal(used_by(&stage, 7), 0);
	assert_int_equal(used_by(&stage, 8), 0);
	stage_close(&stage);
}

static void test_the_shares_of_every_limit_add_up_to_the_rate(void **state)
{
	static const char *const rates[] = {
		"500/s", "1/s", "0", "10/s 5000/h", "1/26d", "0.7/3s 1GiB/min 9/7h:5 1000000000/s",
	};
	static const uint32_t counts[] = {1, 2, 3, 7, 11, 20, 97, 1001, 4096};

	(void)state;
	for (size_t r = 0; r < COUNT(rates); r++) {
		for (size_t c = 0; c < COUNT(counts); c++) {
			struct stage stage;
			struct limiter *a;
			char config[256];

			stage_open(&stage);
			snprintf(config, sizeof(config), "rate=%s\npartitions.count=%u", rates[r],
				 counts[c]);
			a = stage_make(&stage, NULL, "a", config);
			assert_int_equal(shares_of(a), counts[c]);
			for (unsigned int i = 0; i < a->bucket_count; i++)
				assert_sum(&stage, a, i);
			stage_close(&stage);
		}
	}
}

static void test_shares_and_reserves_add_up_to_the_rate(void **state)
{
	static const char *const configs[] = {
		"rate=500/s\npartitions.count=7\npartitions.reserve=10/s hosts=8",
		"rate=10/s\npartitions.count=3\npartitions.reserve=1/7s hosts=11",
		/* Nothing is left to share. */
		"rate=10/s\npartitions.count=4\npartitions.reserve=1/s hosts=10",
		"rate=10/s 5000/h\npartitions.count=13\npartitions.reserve=1/min hosts=5",
	};

	(void)state;
	for (size_t c = 0; c < COUNT(configs); c++) {
		struct stage stage;
		struct limiter *a;

		stage_open(&stage);
		a = stage_make(&stage, NULL, "a", configs[c]);
		for (unsigned int i = 0; i < a->bucket_count; i++)
			assert_sum(&stage, a, i);
		stage_close(&stage);
	}
}

static void test_a_host_has_its_reserve_to_itself_beside_the_shares(void **state)
{
	struct stage stage;
	struct limiter *a;
	uint32_t shares;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=100/s\npartitions.count=8\npartitions.reserve=10/s hosts=2");
	assert_int_equal(partition_count(a, &shares), 10);
	assert_int_equal(shares, 8);
	assert_rate(get(&stage, a, 0), "10/s");
	assert_rate(get(&stage, a, 7), "10/s");
	assert_rate(get(&stage, a, PARTITIONS_MAX), "10/s");
	stage_write(&stage, a, "rate=180/s", 0);
	assert_rate(get(&stage, a, 7), "20/s");
	assert_rate(get(&stage, a, PARTITIONS_MAX), "10/s");
	assert_rate(get(&stage, a, PARTITIONS_MAX + 1), "10/s");
	stage_close(&stage);
}

static void test_a_part_of_the_reserve_stays_one_whatever_the_count_is(void **state)
{
	static const char *const counts[] = {"8", "3", "4096", "1"};
	struct stage stage;
	struct limiter *a, *own;
	struct guest guest;
	char config[64];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=100/s\npartitions.count=4\npartitions.reserve=1/d hosts=3");
	own = get(&stage, a, partition_at(a, 5));
	assert_int_equal(stage_try(&stage, own, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, own, 1, 0), WAITING);
	for (size_t i = 0; i < COUNT(counts); i++) {
		snprintf(config, sizeof(config), "partitions.count=%s", counts[i]);
		stage_write(&stage, a, config, 0);
		assert_int_equal(guest.waiter.outcome, WAITING);
		assert_ptr_equal(get(&stage, a, PARTITIONS_MAX + 1), own);
		assert_rate(own, "1/d");
		assert_sum(&stage, a, 0);
	}
	stage_write(&stage, a, "partitions.reserve=1/d hosts=1", 0);
	assert_int_equal(guest.waiter.outcome, -ENODEV);
	stage_close(&stage);
}

static void test_a_partition_of_a_limiter_without_a_limit_has_none(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(shares_of(a), PARTITIONS_AUTO);
	assert_int_equal(stage_try(&stage, get(&stage, a, 19), TOKENS_MAX, 0), 0);
	assert_rate(get(&stage, a, 19), "max");
	stage_close(&stage);
}

static void test_a_partition_is_made_once_full_and_has_its_limiters_path(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *partition;
	char path[PATH_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	b = stage_make(&stage, a, "b", "rate=10/s\nburst=20\npartitions.count=4");
	partition = get(&stage, b, 3);
	assert_ptr_equal(get(&stage, b, 3), partition);
	assert_ptr_not_equal(get(&stage, b, 0), partition);
	assert_int_equal(partition->partition, 4);
	assert_ptr_equal(partition->parent, b);
	assert_int_equal(partition->buckets[0].level, 5);
	tree_path(partition, path);
	assert_string_equal(path, "a/b");
	/* It is neither among the limiters nor among the children. */
	assert_int_equal(stage.engine.tree.count, 2);
	assert_null(b->first_child);
	stage_close(&stage);
}

static void test_a_token_of_a_partition_is_a_token_of_its_limiter_and_ancestors(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *partition;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\nburst=100");
	b = stage_make(&stage, a, "b", "rate=10/s\nburst=10\npartitions.count=5");
	partition = get(&stage, b, 2);
	assert_int_equal(stage_try(&stage, partition, 2, 0), 0);
	assert_int_equal(partition->buckets[0].level, 0);
	assert_int_equal(b->buckets[0].level, 8);
	assert_int_equal(a->buckets[0].level, 98);
	assert_int_equal(b->counters[COUNTER_GRANTED], 2);
	assert_int_equal(b->counters[COUNTER_SERVED], 0);
	/* The share is 2/s. */
	assert_int_equal(stage_ask(&stage, &guest, partition, 1, 0), WAITING);
	assert_int_equal(stage_try(&stage, get(&stage, b, 3), 1, 0), 0);
	stage_run(&stage, SEC);
	assert_int_equal(guest.done_ns, 500 * MS);
	assert_int_equal(a->counters[COUNTER_GRANTED], 4);
	stage_close(&stage);
}

static void test_the_limiter_and_its_partitions_together_never_exceed_the_rate(void **state)
{
	struct stage stage;
	struct limiter *a, *partitions[4];
	uint64_t granted = 0;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\npartitions.count=4");
	for (uint32_t i = 0; i < COUNT(partitions); i++)
		partitions[i] = get(&stage, a, i);
	for (uint64_t now_ns = 0; now_ns <= 10 * SEC; now_ns += 10 * MS) {
		for (uint32_t i = 0; i < COUNT(partitions); i++)
			granted += !stage_try(&stage, partitions[i], 1, now_ns);
		granted += !stage_try(&stage, a, 1, now_ns);
	}
	assert_int_equal(granted, 101);
	assert_int_equal(a->counters[COUNTER_GRANTED], 101);
	stage_close(&stage);
}

static void test_a_partition_waits_for_its_limiter(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\npartitions.count=1\nenforcement=closed");
	partition = get(&stage, a, 0);
	assert_int_equal(stage_ask(&stage, &guest, partition, 1, 0), WAITING);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_write(&stage, a, "enforcement=open", SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_no_partition_grants_by_its_old_settings_while_others_follow(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct guest large, first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=1");
	b = stage_make(&stage, a, "b",
		       "rate=100/s\nburst=100\npartitions.count=100\nenforcement=shadow");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &large, get(&stage, b, 0), 3, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &first, get(&stage, b, 1), 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, get(&stage, b, 1), 1, 0), WAITING);
	/* Two tokens are kept for the large take, which has to wait for its partition now. */
	stage_write(&stage, b, "enforcement=enforce", 250 * MS);
	assert_int_equal(first.waiter.outcome, WAITING);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(first.done_ns, 300 * MS);
	assert_int_equal(second.done_ns, 1300 * MS);
	assert_int_equal(large.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_partitions_follow_a_new_rate_burst_and_interval(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;
	struct settings settings;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=20\npartitions.count=4");
	partition = get(&stage, a, 1);
	assert_rate(partition, "2.5/s");
	stage_write(&stage, a, "rate=40/s 7000/h:100\nrelease_interval=1s", 0);
	assert_rate(partition, "10/s 1750/h:25");
	settings = *limiter_settings(partition);
	assert_int_equal(settings.burst, 5);
	assert_int_equal(settings.release_interval_ns, SEC);
	/* The level of the limit that was there stays; a new limit starts full. */
	assert_int_equal(partition->buckets[0].level, 5);
	assert_int_equal(partition->buckets[1].level, 25);
	stage_write(&stage, a, "rate=max\nburst=8", 0);
	assert_int_equal(partition->bucket_count, 0);
	stage_write(&stage, a, "rate=1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s", 0);
	assert_int_equal(partition->bucket_count, LIMITS_MAX);
	assert_int_equal(partition->buckets[7].burst, 2);
	for (unsigned int i = 0; i < LIMITS_MAX; i++)
		assert_sum(&stage, a, i);
	stage_close(&stage);
}

static void test_a_new_count_changes_the_shares_of_those_that_stay(void **state)
{
	struct stage stage;
	struct limiter *a, *first;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=60/s\npartitions.count=3");
	first = get(&stage, a, 0);
	assert_rate(first, "20/s");
	stage_write(&stage, a, "partitions.count=5", 0);
	assert_ptr_equal(get(&stage, a, 0), first);
	assert_rate(first, "12/s");
	assert_rate(get(&stage, a, 4), "12/s");
	assert_sum(&stage, a, 0);
	stage_write(&stage, a, "partitions.count=1", 0);
	assert_ptr_equal(get(&stage, a, 0), first);
	assert_rate(first, "60/s");
	/* Cut again, the others are made anew. */
	stage_write(&stage, a, "partitions.count=4", 0);
	assert_sum(&stage, a, 0);
	stage_close(&stage);
}

static void test_auto_cuts_anew_when_the_rate_changes(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s");
	partition = get(&stage, a, 19);
	limiter_hold(partition);
	assert_int_equal(shares_of(a), 20);
	/* 0.2/s is three tokens in a lease of 15 s. */
	stage_write(&stage, a, "rate=0.2/s", 0);
	assert_int_equal(shares_of(a), 3);
	assert_true(partition->removed);
	assert_sum(&stage, a, 0);
	limiter_drop(partition);
	stage_close(&stage);
}

static void test_waiter_in_a_partition_feels_a_new_rate_at_once(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=10\npartitions.count=10");
	partition = get(&stage, a, 0);
	assert_int_equal(stage_try(&stage, partition, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, partition, 1, 0), WAITING);
	assert_int_equal(engine_next_ns(&stage.engine), SEC);
	stage_write(&stage, a, "rate=40/s", 0);
	assert_int_equal(engine_next_ns(&stage.engine), 250 * MS);
	stage_write(&stage, a, "rate=max", 100 * MS);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(guest.done_ns, 100 * MS);
	stage_close(&stage);
}

static void test_waiting_readers_of_all_partitions_are_counted(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[3], own;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0\npartitions.count=9");
	assert_int_equal(partition_waiting(a), 0);
	assert_int_equal(stage_ask(&stage, &guests[0], get(&stage, a, 8), 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guests[1], get(&stage, a, 8), 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guests[2], get(&stage, a, 2), 1, 0), WAITING);
	assert_int_equal(partition_waiting(a), 3);
	/* A waiter of the limiter itself is in none of them. */
	assert_int_equal(stage_ask(&stage, &own, a, 1, 0), WAITING);
	assert_int_equal(partition_waiting(a), 3);
	engine_cancel(&stage.engine, &guests[0].waiter);
	assert_int_equal(partition_waiting(a), 2);
	stage_write(&stage, a, "rate=max", 0);
	assert_int_equal(partition_waiting(a), 0);
	stage_close(&stage);
}

static void test_waiter_in_a_partition_that_goes_gets_ENODEV(void **state)
{
	struct stage stage;
	struct limiter *a, *stays, *goes;
	struct guest kept, gone[3];
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\npartitions.count=6");
	stays = get(&stage, a, 2);
	goes = get(&stage, a, 3);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &kept, stays, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &gone[0], goes, 1, 0), WAITING);
	assert_int_equal(stage_ask_within(&stage, &gone[1], goes, 1, NEVER_NS - 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &gone[2], get(&stage, a, 5), 1, 0), WAITING);
	limiter_hold(goes);
	assert_false(stage_poll(&stage, &poller, goes, 1, 0));
	stage_write(&stage, a, "partitions.count=3", 0);
	for (size_t i = 0; i < COUNT(gone); i++)
		assert_int_equal(gone[i].waiter.outcome, -ENODEV);
	assert_int_equal(poller.waiter.outcome, -ENODEV);
	limiter_drop(goes);
	assert_int_equal(kept.waiter.outcome, WAITING);
	assert_int_equal(partition_waiting(a), 1);
	assert_int_equal(a->turns.wanted, 1);
	assert_int_equal(stage.engine.waiting, 1);
	assert_int_equal(a->pollers, 0);
	engine_cancel(&stage.engine, &kept.waiter);
	stage_close(&stage);
}

static void test_a_reserve_that_is_taken_back_ends_its_readers(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=10/s\npartitions.count=2\npartitions.reserve=1/s hosts=2");
	assert_int_equal(stage_ask(&stage, &guest, get(&stage, a, PARTITIONS_MAX + 1), 2, 0),
			 WAITING);
	stage_write(&stage, a, "partitions.reserve=none", 0);
	assert_int_equal(guest.waiter.outcome, -ENODEV);
	assert_int_equal(partition_waiting(a), 0);
	assert_sum(&stage, a, 0);
	stage_close(&stage);
}

static void test_a_partition_that_is_held_lives_on_as_removed(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;
	struct poller poller;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\npartitions.count=2");
	partition = get(&stage, a, 1);
	limiter_hold(partition);
	stage_write(&stage, a, "partitions.count=1", 0);
	assert_true(partition->removed);
	assert_int_equal(stage_ask(&stage, &guest, partition, 1, 0), -ENODEV);
	assert_int_equal(stage_try(&stage, partition, 1, 0), -ENODEV);
	assert_true(stage_poll(&stage, &poller, partition, 1, 0));
	/* Cut again, there is another one in its place. */
	stage_write(&stage, a, "partitions.count=2", 0);
	assert_ptr_not_equal(get(&stage, a, 1), partition);
	limiter_drop(partition);
	stage_close(&stage);
}

static void test_a_limiter_that_goes_takes_its_partitions_along(void **state)
{
	struct stage stage;
	struct limiter *a, *partition;
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0\npartitions.count=4");
	partition = get(&stage, a, 1);
	limiter_hold(partition);
	assert_false(stage_poll(&stage, &poller, partition, 1, 0));
	stage_remove(&stage, a);
	assert_int_equal(poller.waiter.outcome, -ENODEV);
	assert_true(partition->removed);
	assert_int_equal(engine_charge(&stage.engine, partition, &(struct charge){.tokens = 1}, 0),
			 -ENODEV);
	limiter_drop(partition);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_partition_counts_for_its_user_until_it_is_removed),
		cmocka_unit_test(test_the_shares_of_every_limit_add_up_to_the_rate),
		cmocka_unit_test(test_shares_and_reserves_add_up_to_the_rate),
		cmocka_unit_test(test_a_host_has_its_reserve_to_itself_beside_the_shares),
		cmocka_unit_test(test_a_part_of_the_reserve_stays_one_whatever_the_count_is),
		cmocka_unit_test(test_a_partition_of_a_limiter_without_a_limit_has_none),
		cmocka_unit_test(test_a_partition_is_made_once_full_and_has_its_limiters_path),
		cmocka_unit_test(
			test_a_token_of_a_partition_is_a_token_of_its_limiter_and_ancestors),
		cmocka_unit_test(
			test_the_limiter_and_its_partitions_together_never_exceed_the_rate),
		cmocka_unit_test(test_a_partition_waits_for_its_limiter),
		cmocka_unit_test(test_no_partition_grants_by_its_old_settings_while_others_follow),
		cmocka_unit_test(test_partitions_follow_a_new_rate_burst_and_interval),
		cmocka_unit_test(test_a_new_count_changes_the_shares_of_those_that_stay),
		cmocka_unit_test(test_auto_cuts_anew_when_the_rate_changes),
		cmocka_unit_test(test_waiter_in_a_partition_feels_a_new_rate_at_once),
		cmocka_unit_test(test_waiting_readers_of_all_partitions_are_counted),
		cmocka_unit_test(test_waiter_in_a_partition_that_goes_gets_ENODEV),
		cmocka_unit_test(test_a_reserve_that_is_taken_back_ends_its_readers),
		cmocka_unit_test(test_a_partition_that_is_held_lives_on_as_removed),
		cmocka_unit_test(test_a_limiter_that_goes_takes_its_partitions_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
