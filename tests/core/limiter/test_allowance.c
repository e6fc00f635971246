/* Tests of allowances: which reports hold, for how long, and what they allow. */
#include "core/limiter/allowance.h"
#include "core/values/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_left(const struct allowances *allowances, int64_t left)
{
	const struct allowance *least = allowances_least(allowances);

	assert_non_null(least);
	assert_int_equal(least->left, left);
}

/* A report of a host that shares with no other. */
static void add(struct allowances *allowances, uint64_t tokens, uint64_t until_ns)
{
	allowances_add(allowances, tokens, until_ns, 0, ALLOWANCE_UNTOLD);
}

static void test_without_a_report_all_is_allowed(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	assert_null(allowances_least(&allowances));
	assert_true(allowances_have(&allowances, TOKENS_MAX));
	assert_int_equal(allowances_when(&allowances, TOKENS_MAX), 0);
	assert_int_equal(allowances_until(&allowances, 7, 5), 5);
	allowances_take(&allowances, 1);
	allowances_put(&allowances, 1);
}

static void test_a_report_allows_so_many_until_its_end(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 12, 100);
	assert_true(allowances_have(&allowances, 12));
	assert_false(allowances_have(&allowances, 13));
	assert_int_equal(allowances_when(&allowances, 13), 100);
	allowances_take(&allowances, 12);
	assert_false(allowances_have(&allowances, 1));
	allowances_run(&allowances, 99);
	assert_left(&allowances, 0);
	allowances_run(&allowances, 100);
	assert_null(allowances_least(&allowances));
}

static void test_no_report_raises_another(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 12, 100);
	allowances_take(&allowances, 5);
	add(&allowances, 12, 100);
	assert_left(&allowances, 7);
	add(&allowances, 20, 200);
	assert_left(&allowances, 7);
	assert_int_equal(allowances_when(&allowances, 8), 100);
	assert_int_equal(allowances_when(&allowances, 21), 200);
	add(&allowances, 3, 50);
	assert_left(&allowances, 3);
	assert_int_equal(allowances.count, 3);
	/* This one says all that the others do. */
	add(&allowances, 2, 300);
	assert_int_equal(allowances.count, 1);
	assert_left(&allowances, 2);
}

static void test_a_report_of_fewer_does_not_raise_what_is_left_of_more(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 40, 100);
	allowances_take(&allowances, 38);
	add(&allowances, 30, 200);
	assert_left(&allowances, 2);
	allowances_run(&allowances, 100);
	assert_left(&allowances, 30);
}

static void test_a_grant_counts_in_all_and_what_comes_back_too(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 3, 50);
	add(&allowances, 10, 100);
	allowances_take(&allowances, 5);
	assert_left(&allowances, -2);
	assert_false(allowances_have(&allowances, 0));
	allowances_put(&allowances, 20);
	assert_left(&allowances, 3);
	allowances_run(&allowances, 50);
	assert_left(&allowances, 10);
	for (int i = 0; i < 600000; i++)
		allowances_take(&allowances, TOKENS_MAX);
	assert_true(allowances_least(&allowances)->left < 0);
}

/* The one that has none left may have more than the other, when some come back. */
static void test_a_report_of_more_does_not_stand_for_one_of_less(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 40, 200);
	allowances_take(&allowances, 40);
	add(&allowances, 3, 100);
	allowances_put(&allowances, 33);
	assert_left(&allowances, 3);
	allowances_run(&allowances, 100);
	assert_left(&allowances, 33);
}

static void test_the_closest_two_of_too_many_become_the_stricter_one(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 1, 10);
	add(&allowances, 20, 1000);
	add(&allowances, 30, 1001);
	add(&allowances, 400, 100000);
	assert_int_equal(allowances.count, ALLOWANCES_MAX);
	add(&allowances, 5, 100);
	assert_int_equal(allowances.count, ALLOWANCES_MAX);
	assert_int_equal(allowances_when(&allowances, 2), 10);
	assert_int_equal(allowances_when(&allowances, 6), 100);
	assert_int_equal(allowances_when(&allowances, 21), 1001);
	assert_int_equal(allowances_when(&allowances, 401), 100000);
}

static void test_a_forecast_counts_those_that_last_so_long(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	add(&allowances, 3, 50);
	add(&allowances, 10, 100);
	assert_int_equal(allowances_until(&allowances, 49, 1000), 3);
	assert_int_equal(allowances_until(&allowances, 50, 1000), 10);
	assert_int_equal(allowances_until(&allowances, 100, 1000), 1000);
}

static void test_a_host_has_its_share_of_a_report(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 4);
	allowances_add(&allowances, 14, 100, 1, 7);
	assert_left(&allowances, 3);
	allowances_take(&allowances, 2);
	allowances_gain(&allowances, 1);
	assert_left(&allowances, 5);
	allowances_put(&allowances, 10);
	assert_left(&allowances, 7);
	allowances_take(&allowances, 1);
	allowances_lose(&allowances, 1);
	assert_left(&allowances, 2);
	allowances_set_whole(&allowances, 0);
	assert_left(&allowances, 13);
}

static void test_leaves_that_are_lost_are_worth_nothing_more(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 4);
	allowances_add(&allowances, 12, 100, 4, 7);
	allowances_take(&allowances, 2);
	allowances_bound(&allowances, 3);
	assert_left(&allowances, 9);
	allowances_bound(&allowances, 0);
	assert_left(&allowances, 0);
	allowances_put(&allowances, 9);
	assert_left(&allowances, 0);
	allowances_take(&allowances, 2);
	allowances_bound(&allowances, 0);
	assert_left(&allowances, -2);
}

static void test_as_many_leaves_may_go_as_what_is_left_comes_to(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	assert_int_equal(allowances_spare(&allowances), UINT32_MAX);
	allowances_set_whole(&allowances, 8);
	assert_int_equal(allowances_spare(&allowances), UINT32_MAX);
	allowances_add(&allowances, 0, 50, 4, 6);
	assert_int_equal(allowances_spare(&allowances), UINT32_MAX);
	allowances_run(&allowances, 50);
	allowances_add(&allowances, 12, 100, 4, 7);
	assert_int_equal(allowances_spare(&allowances), 4);
	allowances_take(&allowances, 1);
	assert_int_equal(allowances_spare(&allowances), 3);
	allowances_take(&allowances, 1);
	assert_int_equal(allowances_spare(&allowances), 2);
	allowances_lose(&allowances, 2);
	assert_left(&allowances, 1);
	assert_int_equal(allowances_spare(&allowances), 0);
	allowances_gain(&allowances, 1);
	assert_int_equal(allowances_spare(&allowances), 1);
	allowances_take(&allowances, 5);
	assert_left(&allowances, -3);
	assert_int_equal(allowances_spare(&allowances), 0);
}

static void test_reports_of_one_window_become_one(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 10);
	allowances_add(&allowances, 100, 3200, 5, 7);
	allowances_take(&allowances, 20);
	allowances_add(&allowances, 40, 3300, 5, 8);
	assert_int_equal(allowances.count, 1);
	assert_left(&allowances, 20);
	assert_int_equal(allowances_when(&allowances, 21), 3300);
	/* One that comes brings 4, one that goes costs 10 while others may not know of the 40. */
	allowances_gain(&allowances, 1);
	assert_left(&allowances, 24);
	assert_int_equal(allowances_spare(&allowances), 2);
	allowances_lose(&allowances, 1);
	assert_left(&allowances, 14);
	allowances_run(&allowances, 1000);
	allowances_settle(&allowances, 1000);
	assert_int_equal(allowances_spare(&allowances), 1);
	allowances_run(&allowances, 1999);
	allowances_settle(&allowances, 1000);
	assert_int_equal(allowances_spare(&allowances), 1);
	allowances_run(&allowances, 2000);
	allowances_settle(&allowances, 1000);
	assert_int_equal(allowances_spare(&allowances), 3);
	/* Those of another window stay by themselves. */
	allowances_add(&allowances, 30, 4000, 5, 9);
	assert_int_equal(allowances.count, 2);
}

static void test_reports_that_were_not_told_go_on_costing(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 10);
	allowances_add(&allowances, 100, 3200, 5, 7);
	allowances_take(&allowances, 1);
	allowances_add(&allowances, 10, 3300, 5, ALLOWANCE_UNTOLD);
	assert_true(allowances_have_untold(&allowances));
	allowances_run(&allowances, 1000);
	allowances_settle(&allowances, 10);
	allowances_run(&allowances, 2000);
	allowances_settle(&allowances, 10);
	assert_int_equal(allowances_spare(&allowances), 0);
	allowances_rename(&allowances, ALLOWANCE_UNTOLD, 8);
	allowances_settle(&allowances, 10);
	assert_int_equal(allowances_spare(&allowances), 0);
	allowances_run(&allowances, 2010);
	allowances_settle(&allowances, 10);
	assert_int_equal(allowances_spare(&allowances), 5);
}

static void test_joined_reports_of_hosts_that_share_nothing_have_no_more_left(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 10);
	allowances_add(&allowances, 1000, 3200, 1, 7);
	allowances_add(&allowances, 110, 3300, 9, 8);
	assert_int_equal(allowances.count, 1);
	assert_left(&allowances, 99);
	allowances_set_whole(&allowances, 0);
	assert_left(&allowances, 110);
	allowances_lose(&allowances, 1);
	allowances_set_whole(&allowances, 10);
	assert_left(&allowances, 0);
}

static void test_a_report_ends_by_its_id(void **state)
{
	struct allowances allowances = {0};

	(void)state;
	allowances_set_whole(&allowances, 4);
	allowances_add(&allowances, 4, 100, 4, 7);
	allowances_add(&allowances, 8, 200, 4, 8);
	allowances_add(&allowances, 12, 300, 4, ALLOWANCE_UNTOLD);
	allowances_end(&allowances, 7);
	assert_left(&allowances, 8);
	allowances_end_told(&allowances);
	assert_left(&allowances, 12);
}

/*
 * A fleet by the rule alone: reports that are told to one host and heard by the others at any time
 * later, leaves that go from host to host as far as they may, and hosts that die. Each report
 * bounds what all hosts grant from when each has heard it.
 */
enum { HOSTS = 4, WHOLE = 40, REPORTS = 30, STEPS = 3000, SETTLE = 40, LATEST = 20 };

struct world {
	struct allowances hosts[HOSTS];
	uint32_t leaves[HOSTS];
	struct {
		uint64_t tokens, until_ns, told_ns, granted;
		bool heard[HOSTS];
	} reports[REPORTS];
	uint32_t count;
	uint64_t now_ns, random;
};

static uint32_t draw(struct world *world, uint32_t most)
{
	world->random ^= world->random << 13;
	world->random ^= world->random >> 7;
	world->random ^= world->random << 17;
	return (uint32_t)(world->random % most);
}

static void hear(struct world *world, uint32_t i, uint32_t host)
{
	world->reports[i].heard[host] = true;
	allowances_add(&world->hosts[host], world->reports[i].tokens, world->reports[i].until_ns,
		       world->leaves[host], i + 2);
}

static void report(struct world *world, uint32_t host)
{
	uint32_t i = world->count++;

	world->reports[i].tokens = draw(world, 200);
	world->reports[i].until_ns = world->now_ns + 1 + draw(world, 4) * 500 + draw(world, 20);
	world->reports[i].told_ns = world->now_ns;
	hear(world, i, host);
}

static void grant(struct world *world, uint32_t host)
{
	uint64_t tokens = 1 + draw(world, 3);

	if (!world->leaves[host] || !allowances_have(&world->hosts[host], tokens))
		return;
	allowances_take(&world->hosts[host], tokens);
	for (uint32_t i = 0; i < world->count; i++) {
		if (!world->reports[i].heard[host] || world->reports[i].until_ns <= world->now_ns)
			continue;
		world->reports[i].granted += tokens;
		assert_in_range(world->reports[i].granted, 0, world->reports[i].tokens);
	}
}

static void move(struct world *world, uint32_t from, uint32_t to)
{
	uint32_t spare = allowances_spare(&world->hosts[from]), leaves = 1 + draw(world, 10);

	leaves = leaves < world->leaves[from] ? leaves : world->leaves[from];
	leaves = leaves < spare ? leaves : spare;
	world->leaves[from] -= leaves;
	allowances_lose(&world->hosts[from], leaves);
	world->leaves[to] += leaves;
	allowances_gain(&world->hosts[to], leaves);
}

/* Another host takes the leaves of @host, which is gone and begins anew, after all have heard. */
static void die(struct world *world, uint32_t host, uint32_t heir)
{
	for (uint32_t i = 0; i < world->count; i++) {
		for (uint32_t h = 0; h < HOSTS; h++) {
			if (!world->reports[i].heard[h])
				return;
		}
	}
	world->leaves[heir] += world->leaves[host];
	world->leaves[host] = 0;
	allowances_bound(&world->hosts[host], 0);
}

static void step(struct world *world)
{
	uint32_t host = draw(world, HOSTS), other = (host + 1 + draw(world, HOSTS - 1)) % HOSTS;

	world->now_ns += 1;
	for (uint32_t h = 0; h < HOSTS; h++) {
		allowances_run(&world->hosts[h], world->now_ns);
		allowances_settle(&world->hosts[h], SETTLE);
	}
	for (uint32_t i = 0; i < world->count; i++) {
		bool late = world->now_ns - world->reports[i].told_ns >= LATEST;

		for (uint32_t h = 0; h < HOSTS; h++) {
			if (!world->reports[i].heard[h] && (late || !draw(world, 10)))
				hear(world, i, h);
		}
	}
	if (world->count < REPORTS && !draw(world, 60))
		report(world, host);
	else if (!draw(world, 500))
		die(world, host, other);
	else if (draw(world, 2))
		grant(world, host);
	else
		move(world, host, other);
}

static void test_hosts_together_grant_no_more_than_was_reported(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct world world = {.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};

		for (uint32_t h = 0; h < HOSTS; h++) {
			allowances_set_whole(&world.hosts[h], WHOLE);
			world.leaves[h] = WHOLE / HOSTS;
		}
		for (uint32_t i = 0; i < STEPS; i++)
			step(&world);
		assert_int_equal(world.count, REPORTS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_report_all_is_allowed),
		cmocka_unit_test(test_a_report_allows_so_many_until_its_end),
		cmocka_unit_test(test_no_report_raises_another),
		cmocka_unit_test(test_a_report_of_fewer_does_not_raise_what_is_left_of_more),
		cmocka_unit_test(test_a_grant_counts_in_all_and_what_comes_back_too),
		cmocka_unit_test(test_a_report_of_more_does_not_stand_for_one_of_less),
		cmocka_unit_test(test_the_closest_two_of_too_many_become_the_stricter_one),
		cmocka_unit_test(test_a_forecast_counts_those_that_last_so_long),
		cmocka_unit_test(test_a_host_has_its_share_of_a_report),
		cmocka_unit_test(test_leaves_that_are_lost_are_worth_nothing_more),
		cmocka_unit_test(test_as_many_leaves_may_go_as_what_is_left_comes_to),
		cmocka_unit_test(test_reports_of_one_window_become_one),
		cmocka_unit_test(test_reports_that_were_not_told_go_on_costing),
		cmocka_unit_test(test_joined_reports_of_hosts_that_share_nothing_have_no_more_left),
		cmocka_unit_test(test_a_report_ends_by_its_id),
		cmocka_unit_test(test_hosts_together_grant_no_more_than_was_reported),
	};

	return cmocka_run_group_tests_name("allowance", tests, NULL, NULL);
}
