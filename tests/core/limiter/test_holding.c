/* Tests of holding: the part of its partitions that a host may use. */
#include "core/limiter/holding.h"
#include "core/limiter/tree.h"
#include "tests/core/draw.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 2000 };

static struct pool pool;

/* Changes the settings of @holding. False: they are refused. */
static bool set(struct holding *holding, const char *config)
{
	struct settings settings = *holding->settings;
	char error[ERROR_TEXT];

	if (settings_parse(config, &settings, error))
		return false;
	pool_drop(holding->settings);
	holding->settings = pool_get(&pool, &settings);
	assert_non_null(holding->settings);
	return true;
}

static struct holding *holding_of(const char *config)
{
	struct limiter *limiter = tree_new(NULL, "a");

	assert_non_null(limiter);
	limiter->holding = holding_new(limiter);
	assert_non_null(limiter->holding);
	assert_true(set(limiter->holding, config));
	return limiter->holding;
}

static void forget(struct holding *holding)
{
	limiter_free(holding->limiter);
}

static void assert_rate(const struct rate *rate, const char *expected)
{
	char text[QUANTITY_TEXT];

	rate_print(rate, text);
	assert_string_equal(text, expected);
}

/* With @usable partitions it may use @rate and save up @burst. */
static void assert_share(struct holding *holding, uint32_t usable, bool reserve, const char *rate,
			 uint64_t burst)
{
	struct settings share;

	holding->usable = usable;
	holding->reserve_usable = reserve;
	holding_share(holding, &share);
	assert_rate(&share.limits[0].rate, rate);
	assert_int_equal(share.burst, burst);
	assert_int_equal(share.enforcement, ENFORCEMENT_ENFORCE);
}

static void test_a_host_may_use_the_sum_of_its_partitions(void **state)
{
	struct holding *h = holding_of("rate=10/s\nburst=20\npartitions.count=4");

	(void)state;
	assert_share(h, 0, false, "0", 0);
	assert_share(h, 1, false, "2.5/s", 5);
	assert_share(h, 2, false, "5/s", 10);
	assert_share(h, 3, false, "7.5/s", 15);
	assert_share(h, 4, false, "10/s", 20);
	forget(h);
}

static void test_the_reserve_of_a_host_comes_on_top_and_off_the_total(void **state)
{
	struct holding *h = holding_of("rate=100/s\npartitions.count=4\n"
				       "partitions.reserve=10/s hosts=6");

	(void)state;
	assert_share(h, 0, false, "0", 0);
	assert_share(h, 0, true, "10/s", 1);
	assert_share(h, 1, false, "10/s", 1);
	assert_share(h, 3, true, "40/s", 1);
	/* All partitions of all kinds: 4 * 10 + 6 * 10. */
	assert_share(h, 4, false, "40/s", 1);
	assert_share(h, 4, true, "50/s", 1);
	forget(h);
}

static void test_each_limit_is_divided_and_each_burst(void **state)
{
	struct holding *h = holding_of("rate=100/s:40 1000/90s\nburst=8\npartitions.count=4");
	struct settings share;

	(void)state;
	h->usable = 3;
	holding_share(h, &share);
	assert_int_equal(share.limit_count, 2);
	assert_rate(&share.limits[0].rate, "75/s");
	assert_int_equal(share.limits[0].burst, 30);
	assert_rate(&share.limits[1].rate, "25/3s");
	assert_int_equal(share.limits[1].burst, 0);
	assert_int_equal(share.burst, 6);
	forget(h);
}

static void test_a_host_saves_up_at_least_one_token(void **state)
{
	struct holding *h = holding_of("rate=10/s\nburst=3\npartitions.count=10");

	(void)state;
	assert_share(h, 1, false, "1/s", 1);
	assert_share(h, 3, false, "3/s", 1);
	assert_share(h, 7, false, "7/s", 2);
	forget(h);
}

static void hold(struct holding *holding, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++)
		holding_add_lease(holding, i, i)->state = LEASE_HELD;
	holding->usable = last - first + 1;
}

static void assert_slots(const struct holding *holding, uint32_t expected)
{
	struct settings share;

	holding_share(holding, &share);
	assert_int_equal(share.slots.kind, SLOTS_COUNT);
	assert_int_equal(share.slots.count, expected);
}

static void test_a_host_opens_the_slots_of_its_partitions(void **state)
{
	struct holding *h = holding_of("concurrency=23\npartitions.count=10");

	(void)state;
	assert_slots(h, 0);
	hold(h, 2, 5); /* the first three have one more */
	assert_slots(h, 3 + 2 + 2 + 2);
	h->yields = 2;
	assert_slots(h, 4);
	h->yields = UINT32_MAX;
	h->usable = 0; /* the right has run out */
	assert_slots(h, 0);
	forget(h);
}

static void test_slots_cut_off_are_divided_rounded_down(void **state)
{
	struct holding *h = holding_of("concurrency=10\noffline=share:4");

	(void)state;
	h->degraded = true;
	assert_slots(h, 2);
	forget(h);
}

static void test_without_limits_and_in_modes_that_need_none_nothing_is_leased(void **state)
{
	static const char *const without[] = {"rate=max", "rate=10/s\nenforcement=open",
					      "concurrency=auto",
					      "concurrency=5\nenforcement=open"};
	static const char *const with[] = {"rate=10/s", "rate=0", "rate=10/s\nenforcement=shadow",
					   "concurrency=5"};
	struct settings share;

	(void)state;
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
		struct holding *h = holding_of(without[i]);

		assert_false(holding_needs_leases(h));
		holding_share(h, &share);
		for (int id = 0; id < SETTING_COUNT; id++)
			assert_true(setting_equal((enum setting_id)id, &share, h->settings));
		forget(h);
	}
	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
		struct holding *h = holding_of(with[i]);

		assert_true(holding_needs_leases(h));
		forget(h);
	}
}

static void test_a_closed_limiter_has_the_part_of_the_leases_that_it_holds(void **state)
{
	struct holding *h = holding_of("rate=10/s\nburst=20\nenforcement=closed");
	struct settings share;

	(void)state;
	assert_false(holding_needs_leases(h));
	holding_share(h, &share);
	assert_int_equal(share.burst, 20);
	h->usable = holding_count(h) / 2;
	holding_share(h, &share);
	assert_int_equal(share.burst, 10);
	forget(h);
}

static void test_out_of_reach_a_host_blocks_unless_it_is_told_otherwise(void **state)
{
	struct holding *h = holding_of("rate=10/s\nburst=20\npartitions.count=4");

	(void)state;
	h->degraded = true;
	assert_share(h, 0, false, "0", 0);
	forget(h);
}

static void test_out_of_reach_a_host_may_be_left_its_share_of_the_whole(void **state)
{
	struct holding *h = holding_of("rate=10/s 600/min:60\nburst=20\npartitions.count=4\n"
				       "offline=share:8");
	struct settings share;

	(void)state;
	assert_share(h, 0, false, "0", 0);
	h->degraded = true;
	assert_share(h, 0, false, "1.25/s", 2);
	holding_share(h, &share);
	assert_rate(&share.limits[1].rate, "1.25/s");
	assert_int_equal(share.limits[1].burst, 7);
	/* Partitions that it still holds by lease make no difference. */
	assert_share(h, 2, false, "1.25/s", 2);
	forget(h);
}

static void test_out_of_reach_a_host_may_be_left_open(void **state)
{
	struct holding *h = holding_of("rate=10/s\noffline=open");
	struct settings share;

	(void)state;
	holding_share(h, &share);
	assert_int_equal(share.enforcement, ENFORCEMENT_ENFORCE);
	h->degraded = true;
	holding_share(h, &share);
	assert_int_equal(share.enforcement, ENFORCEMENT_OPEN);
	assert_int_equal(h->settings->enforcement, ENFORCEMENT_ENFORCE);
	forget(h);
}

/* Returns the tokens a second that partition @index gives on this host. */
static void assert_partition(struct holding *holding, uint32_t index, const char *rate)
{
	struct settings share;

	holding_partition_share(holding, index, &share);
	assert_rate(&share.limits[0].rate, rate);
}

static void test_a_single_partition_gives_something_only_where_it_is_held(void **state)
{
	struct holding *h = holding_of("rate=100/s\npartitions.count=4\n"
				       "partitions.reserve=10/s hosts=6");

	(void)state;
	assert_partition(h, 1, "0");
	holding_add_lease(h, 1, 1)->state = LEASE_HELD;
	holding_add_lease(h, 2, 2)->state = LEASE_WAITING;
	assert_partition(h, 1, "0"); /* the right is missing */
	h->usable = 1;
	assert_partition(h, 0, "0");
	assert_partition(h, 1, "10/s");
	assert_partition(h, 2, "0");
	h->reserve.first = 5;
	assert_partition(h, PARTITIONS_MAX + 5, "0");
	h->reserve_usable = true;
	assert_partition(h, PARTITIONS_MAX + 5, "10/s");
	assert_partition(h, PARTITIONS_MAX + 4, "0");
	forget(h);
}

static void test_leases_are_found_by_the_number_of_their_partition(void **state)
{
	struct holding *h = holding_of("rate=100/s\npartitions.count=4\n"
				       "partitions.reserve=10/s hosts=6");

	(void)state;
	assert_null(holding_lease(h, 0, false));
	holding_add_lease(h, 3, 3)->state = LEASE_HELD;
	assert_non_null(holding_add_lease(h, 1, 1));
	assert_int_equal(h->lease_count, 2);
	assert_null(holding_lease(h, 2, false));
	assert_ptr_equal(holding_lease(h, 3, false), holding_find_lease(h, 3));
	assert_int_equal(holding_lease(h, 3, false)->state, LEASE_HELD);
	assert_null(holding_lease(h, 2, true));
	h->reserve.state = LEASE_HELD;
	h->reserve.first = 2;
	assert_ptr_equal(holding_lease(h, 2, true), &h->reserve);
	assert_null(holding_lease(h, 3, true));
	forget(h);
}

static void test_leases_are_in_the_order_of_their_leaves(void **state)
{
	struct holding *h = holding_of("rate=100/s");

	(void)state;
	for (uint32_t i = 100; i-- > 0;)
		holding_add_lease(h, 10 * i, 10 * i + 7)->state = LEASE_HELD;
	assert_int_equal(h->lease_count, 100);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(h->leases[i].first, 10 * i);
		assert_int_equal(lease_size(&h->leases[i]), 8);
		assert_ptr_equal(holding_find_lease(h, 10 * i), &h->leases[i]);
		assert_ptr_equal(holding_find_lease(h, 10 * i + 7), &h->leases[i]);
		assert_null(holding_find_lease(h, 10 * i + 8));
	}
	assert_ptr_equal(holding_add_lease(h, 50, 57), &h->leases[5]);
	assert_int_equal(h->leases[5].state, LEASE_HELD);
	forget(h);
}

static void test_a_lease_takes_the_place_of_those_that_are_over(void **state)
{
	struct holding *h = holding_of("rate=100/s");

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		assert_non_null(holding_add_lease(h, 10 * i, 10 * i + 9));
	h->leases[0].state = h->leases[4].state = LEASE_HELD;
	assert_ptr_equal(holding_add_lease(h, 15, 32), &h->leases[1]);
	assert_int_equal(h->lease_count, 3);
	assert_int_equal(h->leases[1].first, 15);
	assert_int_equal(h->leases[1].last, 32);
	assert_int_equal(h->leases[2].first, 40);
	assert_int_equal(h->leases[2].state, LEASE_HELD);
	forget(h);
}

/* A rate as people write them, or one that does not divide. */
static void draw_rate(char text[QUANTITY_TEXT])
{
	static const char *const periods[] = {"s", "min", "h", "7s", "90s", "d"};
	static const uint64_t most[] = {10, 1000, 1000000, UINT64_C(10000000000)};

	snprintf(text, QUANTITY_TEXT, "%llu/%s", (unsigned long long)(1 + draw(most[draw(4)])),
		 periods[draw(6)]);
}

static bool is_same(const struct rate *a, const struct rate *b)
{
	return rate_compare(a, b) == 0;
}

/* @count partitions cut in any way among hosts, and the sum of what those may use. */
static void assert_sum(struct holding *holding, uint32_t count, const char *config)
{
	const struct rate *whole = &holding->settings->limits[0].rate;
	struct fraction total = rate_fraction(whole);
	uint32_t left = count;
	u128 sum = 0;
	struct settings share;

	holding->usable = count;
	holding_share(holding, &share);
	if (!is_same(&share.limits[0].rate, whole))
		fail_msg("all of '%s' are not the whole", config);
	/* Over the common denominator den * count, which that of each host's rate divides. */
	while (left) {
		struct fraction flow;

		holding->usable = 1 + (uint32_t)draw(left);
		left -= holding->usable;
		holding_share(holding, &share);
		flow = rate_fraction(&share.limits[0].rate);
		assert_int_equal((u128)total.den * count % flow.den == 0, 1);
		sum += (u128)total.den * count / flow.den * flow.num;
	}
	if (sum != (u128)total.num * count)
		fail_msg("the parts of '%s' do not add up", config);
}

static void test_the_parts_of_all_hosts_add_up_to_the_rate_exactly(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		char config[2 * SETTING_TEXT], rate[QUANTITY_TEXT];
		struct holding *holding;
		uint32_t count;

		draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		draw_rate(rate);
		count = 1 + (uint32_t)draw(draw(2) ? 20 : PARTITIONS_MAX);
		snprintf(config, sizeof(config), "rate=%s\npartitions.count=%u", rate, count);
		holding = holding_of(config);
		assert_sum(holding, count, config);
		forget(holding);
	}
}

/*
 * Rates and counts of any kind: where a sum is no rate that can be written, it is less, never more.
 */
static void test_no_division_among_hosts_comes_to_more_than_the_rate(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		char config[2 * SETTING_TEXT];
		struct holding *holding;
		struct settings share;
		uint32_t count, left;
		long double sum = 0;

		draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		count = 1 + (uint32_t)draw(PARTITIONS_MAX);
		snprintf(config, sizeof(config),
			 "rate=%llu/%lluns\npartitions.count=%u\n"
			 "partitions.reserve=%llu/%llus hosts=%u",
			 (unsigned long long)(1 + draw(1000000)),
			 (unsigned long long)(1000 + draw(1000000000)), count,
			 (unsigned long long)(1 + draw(9)), (unsigned long long)(1 + draw(1000000)),
			 1 + (unsigned int)draw(8));
		holding = holding_of("rate=1/s");
		if (!set(holding, config)) {
			/* Larger than the rate: refused at the door. */
			forget(holding);
			continue;
		}
		for (left = count; left; left -= holding->usable) {
			holding->usable = 1 + (uint32_t)draw(left);
			holding_share(holding, &share);
			sum += (long double)rate_per_second(&share.limits[0].rate);
		}
		sum += (long double)holding->settings->reserve_hosts *
		       (long double)rate_per_second(&holding->settings->reserve_rate);
		assert_true(sum <=
			    (long double)rate_per_second(&holding->settings->limits[0].rate) *
				    (1 + 1e-12L));
		forget(holding);
	}
}

/* With @usable partitions each key may use @rate and save up @burst. */
static void assert_key_share(struct holding *holding, uint32_t usable, const char *rate,
			     uint64_t burst)
{
	struct settings share;

	holding->usable = usable;
	holding_share(holding, &share);
	assert_int_equal(share.limit_count, 0);
	assert_rate(&share.key_rate, rate);
	assert_int_equal(share.key_burst, burst);
}

static void test_keys_have_the_same_share_as_their_limiter(void **state)
{
	static const char config[] = "key_rate=10/s\nkey_burst=8\npartitions.count=4";
	struct holding *h = holding_of(config);

	(void)state;
	assert_true(holding_needs_leases(h));
	assert_key_share(h, 0, "0", 1);
	assert_key_share(h, 1, "2.5/s", 2);
	assert_key_share(h, 3, "7.5/s", 6);
	assert_key_share(h, 4, "10/s", 8);
	assert_true(set(h, "offline=share:5"));
	h->degraded = true;
	assert_key_share(h, 0, "2/s", 1);
	assert_true(set(h, "key_rate=max"));
	assert_false(holding_needs_leases(h));
	forget(h);
}

static void assert_key(struct holding *holding, uint32_t usable, uint32_t leaves, const char *rate,
		       uint64_t burst)
{
	struct rate its;
	uint64_t its_burst;

	holding->usable = usable;
	holding_share(holding, &holding->share);
	holding_key_share(holding, leaves, &its, &its_burst);
	assert_rate(&its, rate);
	assert_int_equal(its_burst, burst);
}

static void test_a_leased_key_has_a_share_of_a_tenth_and_its_leaves(void **state)
{
	struct holding *h = holding_of("rate=10/s\npartitions.count=20\nkey_rate=100/s\n"
				       "key_burst=200\nkey_share=leased");

	(void)state;
	assert_key(h, 2, 0, "1/s", 2);
	assert_key(h, 2, KEY_LEAVES, "91/s", 182);
	assert_key(h, 2, 1, "2/s", 4);
	assert_key(h, 20, KEY_LEAVES, "100/s", 200);
	assert_key(h, 20, 0, "10/s", 20);
	/* Leaves do not count where nothing of the limiter is held, as after a lapse. */
	assert_key(h, 0, KEY_LEAVES, "0", 1);
	forget(h);
}

static void test_a_key_that_is_not_leased_has_its_share_of_the_whole(void **state)
{
	struct holding *h = holding_of("rate=10/s\npartitions.count=20\nkey_rate=100/s\n"
				       "key_burst=200");

	(void)state;
	assert_key(h, 2, 0, "10/s", 20);
	assert_key(h, 20, 0, "100/s", 200);
	forget(h);
}

int main(void)
{
	static const uint64_t seed[2];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_host_may_use_the_sum_of_its_partitions),
		cmocka_unit_test(test_the_reserve_of_a_host_comes_on_top_and_off_the_total),
		cmocka_unit_test(test_each_limit_is_divided_and_each_burst),
		cmocka_unit_test(test_a_host_saves_up_at_least_one_token),
		cmocka_unit_test(test_a_host_opens_the_slots_of_its_partitions),
		cmocka_unit_test(test_slots_cut_off_are_divided_rounded_down),
		cmocka_unit_test(test_without_limits_and_in_modes_that_need_none_nothing_is_leased),
		cmocka_unit_test(test_a_closed_limiter_has_the_part_of_the_leases_that_it_holds),
		cmocka_unit_test(test_out_of_reach_a_host_blocks_unless_it_is_told_otherwise),
		cmocka_unit_test(test_out_of_reach_a_host_may_be_left_its_share_of_the_whole),
		cmocka_unit_test(test_out_of_reach_a_host_may_be_left_open),
		cmocka_unit_test(test_a_single_partition_gives_something_only_where_it_is_held),
		cmocka_unit_test(test_leases_are_found_by_the_number_of_their_partition),
		cmocka_unit_test(test_leases_are_in_the_order_of_their_leaves),
		cmocka_unit_test(test_a_lease_takes_the_place_of_those_that_are_over),
		cmocka_unit_test(test_keys_have_the_same_share_as_their_limiter),
		cmocka_unit_test(test_a_leased_key_has_a_share_of_a_tenth_and_its_leaves),
		cmocka_unit_test(test_a_key_that_is_not_leased_has_its_share_of_the_whole),
		cmocka_unit_test(test_the_parts_of_all_hosts_add_up_to_the_rate_exactly),
		cmocka_unit_test(test_no_division_among_hosts_comes_to_more_than_the_rate),
	};

	pool_init(&pool, seed);
	return cmocka_run_group_tests_name("holding", tests, NULL, NULL);
}
