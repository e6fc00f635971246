/* Tests that invariants of several hosts notice a fleet that breaks them. */
#include "tests/sim/invariants/calm_check.h"
#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/invariants/lease_check.h"
#include "tests/sim/invariants/told_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)
#define Q   (8 * SEC)

static char why[WHY_TEXT];

static struct settings settings_of(const char *rate, uint64_t burst, uint32_t count)
{
	struct settings settings = SETTINGS_DEFAULT;

	assert_int_equal(rate_parse(rate, &settings.limits[0].rate), 0);
	settings.limit_count = !rate_is_unlimited(&settings.limits[0].rate);
	settings.burst = burst;
	settings.partitions = count;
	return settings;
}

struct two {
	struct holder a, b;
	struct lease_check check;
};

static struct run run(uint64_t cut, uint32_t first, uint32_t last)
{
	return (struct run){.cut = cut, .first = first, .last = last};
}

static bool begins(struct two *two, struct holder *holder, struct run leaves, uint64_t at_ns)
{
	return lease_check_begins(&two->check, holder, &leaves, at_ns, why);
}

static void ends(struct two *two, struct holder *holder, struct run leaves)
{
	lease_check_ends(&two->check, holder, &leaves);
}

/* Both may use leaves 10 to 19. */
static void hold(struct two *two)
{
	*two = (struct two){.a = {.name = "a"}, .b = {.name = "b"}};
	assert_true(begins(two, &two->a, run(1, 10, 19), 0));
	assert_true(begins(two, &two->b, run(1, 10, 19), 0));
}

/* The rights of both last for ever, and they hold nothing. */
static void begin(struct two *two)
{
	*two = (struct two){.a = {.name = "a"}, .b = {.name = "b"}};
	assert_true(lease_check_right(&two->a, UINT64_MAX, 0, why));
	assert_true(lease_check_right(&two->b, UINT64_MAX, 0, why));
}

static void let_go(struct two *two)
{
	lease_check_ends_all(&two->a);
	lease_check_ends_all(&two->b);
	assert_int_equal(two->check.count, 0);
	lease_check_free(&two->check);
}

static bool grants(struct two *two, struct holder *holder, uint64_t at_ns)
{
	return lease_check_grants(&two->check, holder, at_ns, why);
}

static void test_two_that_may_use_one_leaf_are_found_whether_they_do_or_not(void **state)
{
	struct two two;

	(void)state;
	hold(&two);
	assert_true(lease_check_right(&two.a, 5 * SEC, 0, why));
	assert_false(lease_check_right(&two.b, 8 * SEC, 5 * SEC - 1, why));
	let_go(&two);
	hold(&two);
	assert_true(lease_check_right(&two.a, 5 * SEC, 0, why));
	assert_true(lease_check_right(&two.b, 8 * SEC, 5 * SEC, why));
	let_go(&two);
}

static void test_runs_that_share_a_leaf_at_either_end_are_found(void **state)
{
	static const struct {
		uint32_t first, last;
		bool alone;
	} cases[] = {
		{0, 9, true},	 {0, 10, false},  {19, 30, false}, {20, 30, true},
		{12, 13, false}, {0, 100, false}, {10, 19, false}, {5, 5, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct two two;

		begin(&two);
		assert_true(begins(&two, &two.a, run(1, 10, 19), 1));
		assert_int_equal(begins(&two, &two.b, run(1, cases[i].first, cases[i].last), 2),
				 cases[i].alone);
		let_go(&two);
	}
}

static void test_leaves_of_the_reserve_are_others(void **state)
{
	struct run reserve = {.cut = 1, .reserve = true, .first = 10, .last = 10};
	struct two two;

	(void)state;
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 19), 1));
	assert_true(begins(&two, &two.b, reserve, 2));
	assert_true(grants(&two, &two.a, 3));
	assert_true(grants(&two, &two.b, 4));
	assert_true(grants(&two, &two.a, 5));
	let_go(&two);
}

static void test_hosts_that_may_use_leaves_of_two_cuts_are_found(void **state)
{
	struct two two;

	(void)state;
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 19), 1));
	assert_false(begins(&two, &two.b, run(2, 30, 39), 2));
	let_go(&two);
	/* One host forgets the cut before, and the right of the other is over. */
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 19), 1));
	assert_true(begins(&two, &two.b, run(1, 30, 39), 1));
	assert_true(lease_check_right(&two.a, 5, 2, why));
	ends(&two, &two.b, run(2, 30, 39));
	assert_true(begins(&two, &two.b, run(2, 10, 19), 5));
	let_go(&two);
}

static void test_a_part_that_was_given_back_may_be_used_and_the_rest_may_not(void **state)
{
	struct two two;

	(void)state;
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 19), 1));
	ends(&two, &two.a, run(1, 13, 15));
	for (uint32_t leaf = 10; leaf < 20; leaf++)
		assert_int_equal(lease_check_has(&two.check, &two.a, &(struct run){.cut = 1}, leaf),
				 leaf < 13 || leaf > 15);
	assert_true(begins(&two, &two.b, run(1, 13, 15), 2));
	assert_false(begins(&two, &two.b, run(1, 12, 15), 2));
	let_go(&two);
}

static void test_a_host_that_takes_what_it_has_and_more_is_checked_for_what_is_more(void **state)
{
	struct two two;

	(void)state;
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 12), 1));
	assert_true(begins(&two, &two.a, run(1, 18, 19), 1));
	assert_true(begins(&two, &two.b, run(1, 15, 15), 1));
	assert_false(begins(&two, &two.a, run(1, 10, 19), 2));
	let_go(&two);
}

static void test_a_piece_that_a_host_takes_beside_its_own_begins_anew(void **state)
{
	struct two two;

	(void)state;
	begin(&two);
	assert_true(begins(&two, &two.a, run(1, 10, 12), 1));
	assert_true(begins(&two, &two.b, run(1, 13, 19), 1));
	assert_true(grants(&two, &two.a, 2));
	assert_true(grants(&two, &two.b, 3));
	ends(&two, &two.b, run(1, 13, 19));
	assert_true(begins(&two, &two.a, run(1, 13, 19), 4));
	assert_true(grants(&two, &two.a, 5));
	let_go(&two);
}

static void test_hosts_that_use_one_leaf_in_turns_are_found_whatever_they_say(void **state)
{
	struct two two;

	(void)state;
	hold(&two);
	assert_true(grants(&two, &two.a, 1));
	assert_true(grants(&two, &two.b, 2));
	assert_true(grants(&two, &two.b, 3));
	assert_false(grants(&two, &two.a, 4));
	let_go(&two);
}

static void test_a_run_that_goes_from_one_to_another_and_back_is_no_breach(void **state)
{
	struct two two;

	(void)state;
	hold(&two);
	assert_true(grants(&two, &two.a, 1));
	ends(&two, &two.a, run(1, 10, 19));
	assert_true(grants(&two, &two.b, 2));
	ends(&two, &two.b, run(1, 10, 19));
	assert_true(begins(&two, &two.a, run(1, 10, 19), 3));
	assert_true(grants(&two, &two.a, 4));
	/* The other goes on with the lease that it had. */
	assert_true(begins(&two, &two.b, run(1, 19, 19), 5));
	assert_true(grants(&two, &two.b, 6));
	assert_false(grants(&two, &two.a, 7));
	let_go(&two);
}

static void test_a_use_by_a_lease_that_has_ended_counts(void **state)
{
	struct two two;

	(void)state;
	hold(&two);
	assert_true(grants(&two, &two.a, 1));
	assert_true(grants(&two, &two.b, 2));
	ends(&two, &two.b, run(1, 10, 19));
	assert_false(grants(&two, &two.a, 3));
	let_go(&two);
}

static void test_grants_of_another_limiter_use_no_leaf_of_this_one(void **state)
{
	struct lease_check another = {0};
	struct two two;

	(void)state;
	hold(&two);
	assert_true(grants(&two, &two.a, 1));
	assert_true(grants(&two, &two.b, 2));
	assert_true(lease_check_grants(&another, &two.a, 3, why));
	let_go(&two);
}

static const struct amounts NONE;

struct fleet_of {
	struct fleet_check check;
	struct fleet_asks asks;
};

static bool granted(struct fleet_of *fleet, uint64_t tokens, uint64_t at_ns)
{
	return fleet_check_grant(&fleet->check, 1, tokens, tokens, &NONE, &fleet->asks, at_ns, why);
}

static void follow(struct fleet_of *fleet, uint64_t id, const char *rate, uint64_t burst,
		   uint64_t at_ns)
{
	struct settings settings = settings_of(rate, burst, 1);

	fleet_check_follow(&fleet->check, id, &settings, Q, at_ns);
}

/* Returns how many single tokens may be granted at once. */
static uint64_t count_grants(struct fleet_of *fleet, uint64_t at_ns)
{
	uint64_t count = 0;

	while (count < 10000 && granted(fleet, 1, at_ns))
		count++;
	return count;
}

static void test_the_first_rate_counts_at_once(void **state)
{
	struct fleet_of fleet = {0};

	(void)state;
	follow(&fleet, 1, "max", 1, 0);
	follow(&fleet, 1, "10/s", 5, SEC);
	assert_int_equal(count_grants(&fleet, SEC + MS), 5);
}

static void test_for_q_after_a_change_the_larger_rate_counts_and_then_the_new_one(void **state)
{
	struct fleet_of fleet = {0};
	uint64_t at_ns = 10 * SEC;

	(void)state;
	follow(&fleet, 1, "10/s", 1, 0);
	follow(&fleet, 1, "5/s", 1, at_ns);
	for (; at_ns < 10 * SEC + Q - 100 * MS; at_ns += 100 * MS)
		assert_true(granted(&fleet, 1, at_ns));
	at_ns = 10 * SEC + Q + SEC;
	assert_true(granted(&fleet, 1, at_ns));
	assert_false(granted(&fleet, 1, at_ns + 100 * MS));
}

static void test_a_limiter_made_with_a_name_shares_its_rate_with_the_one_before(void **state)
{
	struct fleet_of fleet = {0};

	(void)state;
	follow(&fleet, 1, "10/s", 1, 0);
	fleet_check_goes(&fleet.check, 1, Q, 10 * SEC);
	follow(&fleet, 2, "10/s", 1, 10 * SEC);
	for (uint64_t at_ns = 10 * SEC; at_ns < 11 * SEC; at_ns += 100 * MS)
		assert_true(granted(&fleet, 1, at_ns));
	/* Another host has another limiter of that name. */
	assert_true(granted(&fleet, 1, 11 * SEC));
	assert_false(granted(&fleet, 1, 11 * SEC));
}

static void test_grant_q_after_a_limiter_was_removed_is_found(void **state)
{
	struct fleet_of fleet = {0};

	(void)state;
	follow(&fleet, 1, "10/s", 1, 0);
	fleet_check_goes(&fleet.check, 1, Q, 10 * SEC);
	assert_true(granted(&fleet, 1, 10 * SEC + Q - 1));
	assert_false(granted(&fleet, 1, 10 * SEC + Q));
}

static void test_nothing_is_waited_for_longer_than_it_can_take(void **state)
{
	struct fleet_constants constants = {.renewal_ns = SEC,
					    .right_ns = 4 * SEC,
					    .quarantine_ns = 5 * SEC,
					    .session_ns = 3 * SEC};
	struct settings settings = settings_of("10/s", 1, 20);

	(void)state;
	settings.lease_ns = 6 * SEC;
	/*
	 * 8 to reconnect, T and a tick, Q, the lease, 4 R, and two tokens at a twentieth of the
	 * rate.
	 */
	assert_int_equal(calm_check_wait_ns(&settings, &constants, 1),
			 (8 + 3 + 1 + 5 + 6 + 4 + 4) * SEC);
	settings.enforcement = ENFORCEMENT_CLOSED;
	assert_true(calm_check_wait_ns(&settings, &constants, 1) == NEVER_NS);
}

static void test_a_rate_that_is_not_used_is_found(void **state)
{
	struct fleet_constants constants = {.renewal_ns = 1500 * MS};
	struct settings settings = settings_of("100/s", 1, 10);
	struct calm_hosts hosts = {.count = 4};

	(void)state;
	/* A token is on its way on each host. */
	assert_true(calm_check_use(&settings, &constants, &hosts, 1000, 946, why));
	assert_false(calm_check_use(&settings, &constants, &hosts, 1000, 945, why));
	/* Three of ten partitions are of hosts that do not use all of one. */
	hosts.idle = 3;
	assert_true(calm_check_use(&settings, &constants, &hosts, 1000, 661, why));
	assert_false(calm_check_use(&settings, &constants, &hosts, 1000, 660, why));
	hosts.idle = 11;
	assert_true(calm_check_use(&settings, &constants, &hosts, 1000, 0, why));
}

static void test_where_hosts_take_turns_one_look_in_a_window_may_be_waited_for(void **state)
{
	struct fleet_constants constants = {.renewal_ns = 4 * SEC};
	struct settings settings = settings_of("100/s", 1, 2);
	struct calm_hosts hosts = {.count = 2};

	(void)state;
	assert_false(calm_check_use(&settings, &constants, &hosts, 1000, 947, why));
	/* 5 s in 30. */
	hosts.count = 3;
	assert_true(calm_check_use(&settings, &constants, &hosts, 1000, 789, why));
	assert_false(calm_check_use(&settings, &constants, &hosts, 1000, 788, why));
}

static void test_a_rate_in_parts_without_numbers_is_used_but_for_the_least_parts(void **state)
{
	struct fleet_constants constants = {.renewal_ns = 1500 * MS};
	struct settings settings = settings_of("100/s", 1, 0);
	struct calm_hosts hosts = {.count = 4};

	(void)state;
	settings.lease_ns = 15 * SEC;
	assert_true(calm_check_use(&settings, &constants, &hosts, 3000, 2846, why));
	assert_false(calm_check_use(&settings, &constants, &hosts, 3000, 2845, why));
	/* Three hosts owe nothing of two tokens each. */
	hosts.idle = 3;
	assert_true(calm_check_use(&settings, &constants, &hosts, 3000, 2841, why));
	assert_false(calm_check_use(&settings, &constants, &hosts, 3000, 2840, why));
}

static void test_equal_hosts_with_unequal_shares_are_found(void **state)
{
	struct settings settings = settings_of("10/s", 3, 10);

	(void)state;
	/*
	 * A partition is worth 30 in 30 s; three hosts can save up a token each, and one more; 1 %.
	 */
	assert_true(calm_check_shares(&settings, 3, 70, 133, why));
	assert_false(calm_check_shares(&settings, 3, 70, 134, why));
	/* More hosts than partitions take turns. */
	assert_true(calm_check_shares(&settings, 11, 0, 300, why));
	/* Twice 3 of 300, a token of burst and one more, and 1 %. */
	settings = settings_of("10/s", 3, 0);
	settings.lease_ns = 15 * SEC;
	assert_true(calm_check_shares(&settings, 3, 92, 101, why));
	assert_false(calm_check_shares(&settings, 3, 91, 101, why));
	/* So many get no token each in a lease. */
	assert_true(calm_check_shares(&settings, 151, 0, 300, why));
	/* One of 20 leaves is worth 15; a part of a window more is 20/3, a token, and 1 %. */
	settings = settings_of("20/2s", 1, 0);
	settings.limits[0].rate.kind = RATE_STRICT;
	assert_true(calm_check_shares(&settings, 3, 90, 128, why));
	assert_false(calm_check_shares(&settings, 3, 90, 129, why));
	settings.partitions = 10;
	assert_true(calm_check_shares(&settings, 3, 60, 128, why));
	assert_false(calm_check_shares(&settings, 3, 59, 128, why));
}

static void test_a_host_that_asks_without_end_is_found(void **state)
{
	struct fleet_constants constants = {.renewal_ns = 1500 * MS};
	struct calm_limiters limiters = {.count = 1, .partitions = 20};
	struct traffic traffic;

	(void)state;
	/* W / R + 1 is 21. */
	traffic = (struct traffic){.transactions = 67};
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.transactions = 68;
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.changes = 1;
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.changes = 0;
	traffic.given = 1;
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic = (struct traffic){.transactions = 147, .leases = 80};
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.leases = 81;
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
	/* Two rounds. */
	traffic = (struct traffic){.transactions = 56, .refused = 56, .lists = 6};
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic = (struct traffic){.transactions = 57, .refused = 57, .lists = 6};
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.heard = 1;
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic = (struct traffic){.lists = 249};
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.lists = 250;
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic = (struct traffic){.transactions = 10, .leases = 20, .reads = 80};
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.reads = 81;
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.heard = 1;
	assert_true(calm_check_traffic(&traffic, &limiters, &constants, why));
	traffic.reads = 85;
	assert_false(calm_check_traffic(&traffic, &limiters, &constants, why));
}

/* Hosts 0 and 1 are in touch from the beginning; the service tells host 0 at 10 s of 5 tokens. */
static struct told_check told_five(void)
{
	struct told_check check = {0};

	told_check_report(&check, 0, "", 5, 100 * SEC, 10 * SEC);
	return check;
}

static bool takes(struct told_check *check, unsigned int host, uint64_t tokens, uint64_t at_ns)
{
	static const uint64_t in_touch_ns[TOLD_HOSTS_MAX];

	return told_check_grant(check, host, "", tokens, in_touch_ns, at_ns, why);
}

static void test_hosts_that_together_grant_more_than_is_left_are_found(void **state)
{
	struct told_check check = told_five();

	(void)state;
	assert_true(takes(&check, 1, 9, 39 * SEC));
	assert_true(takes(&check, 0, 3, 40 * SEC));
	assert_true(
		told_check_grant(&check, 0, "x", 9, (uint64_t[TOLD_HOSTS_MAX]){0}, 40 * SEC, why));
	assert_true(takes(&check, 1, 2, 50 * SEC));
	assert_false(takes(&check, 1, 1, 60 * SEC));
	told_check_return(&check, 1, "", 3);
	assert_true(takes(&check, 1, 2, 70 * SEC));
	assert_false(takes(&check, 0, 1, 80 * SEC));
	assert_true(takes(&check, 0, 9, 110 * SEC));
	told_check_free(&check);
}

static void test_hosts_that_were_not_in_touch_need_not_have_heard(void **state)
{
	uint64_t in_touch_ns[TOLD_HOSTS_MAX] = {[1] = 40 * SEC, [2] = UINT64_MAX};
	struct told_check check = told_five();

	(void)state;
	assert_true(told_check_grant(&check, 1, "", 9, in_touch_ns, 69 * SEC, why));
	assert_true(told_check_grant(&check, 2, "", 9, in_touch_ns, 69 * SEC, why));
	assert_false(told_check_grant(&check, 1, "", 6, in_touch_ns, 70 * SEC, why));
	told_check_void(&check, NULL);
	assert_true(told_check_grant(&check, 1, "", 6, in_touch_ns, 70 * SEC, why));
	/* The host that was told was cut off before it could tell. */
	check = told_five();
	in_touch_ns[0] = 11 * SEC;
	assert_true(told_check_grant(&check, 1, "", 6, in_touch_ns, 70 * SEC, why));
	told_check_free(&check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_that_may_use_one_leaf_are_found_whether_they_do_or_not),
		cmocka_unit_test(test_runs_that_share_a_leaf_at_either_end_are_found),
		cmocka_unit_test(test_leaves_of_the_reserve_are_others),
		cmocka_unit_test(test_hosts_that_may_use_leaves_of_two_cuts_are_found),
		cmocka_unit_test(test_a_part_that_was_given_back_may_be_used_and_the_rest_may_not),
		cmocka_unit_test(
			test_a_host_that_takes_what_it_has_and_more_is_checked_for_what_is_more),
		cmocka_unit_test(test_a_piece_that_a_host_takes_beside_its_own_begins_anew),
		cmocka_unit_test(test_hosts_that_use_one_leaf_in_turns_are_found_whatever_they_say),
		cmocka_unit_test(test_a_run_that_goes_from_one_to_another_and_back_is_no_breach),
		cmocka_unit_test(test_a_use_by_a_lease_that_has_ended_counts),
		cmocka_unit_test(test_grants_of_another_limiter_use_no_leaf_of_this_one),
		cmocka_unit_test(test_the_first_rate_counts_at_once),
		cmocka_unit_test(
			test_for_q_after_a_change_the_larger_rate_counts_and_then_the_new_one),
		cmocka_unit_test(
			test_a_limiter_made_with_a_name_shares_its_rate_with_the_one_before),
		cmocka_unit_test(test_grant_q_after_a_limiter_was_removed_is_found),
		cmocka_unit_test(test_nothing_is_waited_for_longer_than_it_can_take),
		cmocka_unit_test(test_a_rate_that_is_not_used_is_found),
		cmocka_unit_test(
			test_where_hosts_take_turns_one_look_in_a_window_may_be_waited_for),
		cmocka_unit_test(
			test_a_rate_in_parts_without_numbers_is_used_but_for_the_least_parts),
		cmocka_unit_test(test_equal_hosts_with_unequal_shares_are_found),
		cmocka_unit_test(test_a_host_that_asks_without_end_is_found),
		cmocka_unit_test(test_hosts_that_together_grant_more_than_is_left_are_found),
		cmocka_unit_test(test_hosts_that_were_not_in_touch_need_not_have_heard),
	};

	return cmocka_run_group_tests_name("fleet_invariants", tests, NULL, NULL);
}
