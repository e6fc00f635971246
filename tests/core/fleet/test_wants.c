/* Tests of wants: which changes of what children want are worth another claim. */
#include "core/fleet/wants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { LEAVES = 4096, CHILDREN = 200 };

/* Returns a list of @count parts, of a host that wants @wanted in all. */
static struct part_list list_of(const struct part *parts, uint32_t count, uint32_t wanted)
{
	return (struct part_list){.parts = parts, .count = count, .wanted = wanted};
}

static bool differ(const struct part *claimed, uint32_t claimed_count, const struct part *wants,
		   uint32_t count)
{
	struct part_list before = list_of(claimed, claimed_count, LEAVES);
	struct part_list now = list_of(wants, count, LEAVES);

	return wants_differ(&before, &now, LEAVES);
}

static void test_a_small_change_is_not_worth_a_claim(void **state)
{
	const struct part claimed[] = {{.child = 3, .wanted = 1000}, {.child = 4, .wanted = 20}};
	const struct part near[] = {{.child = 3, .wanted = 1190}, {.child = 4, .wanted = 50}};
	const struct part less[] = {{.child = 3, .wanted = 820}};
	const struct part far[] = {{.child = 3, .wanted = 1300}, {.child = 4, .wanted = 20}};
	const struct part gone[] = {{.child = 4, .wanted = 20}};

	(void)state;
	assert_false(differ(claimed, 2, claimed, 2));
	assert_false(differ(claimed, 2, near, 2));
	assert_false(differ(claimed, 2, less, 1));
	assert_true(differ(claimed, 2, far, 2));
	assert_true(differ(claimed, 2, gone, 1));
}

static void test_a_child_that_gets_hungry_is_claimed_though_it_wanted_nearly_all(void **state)
{
	const struct part claimed[] = {{.child = 3, .wanted = 3600},
				       {.child = 4, .wanted = LEAVES}};
	const struct part hungry[] = {{.child = 3, .wanted = LEAVES},
				      {.child = 4, .wanted = LEAVES}};

	(void)state;
	assert_true(differ(claimed, 2, hungry, 2));
	assert_true(differ(hungry, 2, claimed, 2));
}

static void test_a_higher_class_is_claimed_however_little_it_wants(void **state)
{
	const struct part claimed[] = {{.child = 3, .wanted = 1000, .priority = 1}};
	const struct part higher[] = {{.child = 3, .wanted = 1000, .priority = 1},
				      {.child = 5, .wanted = 1, .priority = 2}};
	const struct part lower[] = {{.child = 2, .wanted = 1},
				     {.child = 3, .wanted = 1000, .priority = 1}};

	(void)state;
	assert_true(differ(claimed, 1, higher, 2));
	assert_false(differ(claimed, 1, lower, 2));
	assert_false(differ(higher, 2, claimed, 1));
}

static void test_a_claim_without_parts_is_of_the_own_queue(void **state)
{
	const struct part own[] = {{.child = 0, .wanted = LEAVES}};
	const struct part child[] = {{.child = 7, .wanted = LEAVES}};

	(void)state;
	assert_false(differ(NULL, 0, own, 1));
	assert_true(differ(NULL, 0, child, 1));
	assert_true(differ(child, 1, NULL, 0));
}

static void test_more_than_a_host_claims_is_no_change(void **state)
{
	const struct part hungry[] = {{.child = 7, .wanted = 500}};
	const struct part hungrier[] = {{.child = 7, .wanted = 4000}};
	struct part_list before = list_of(hungry, 1, 500), now = list_of(hungrier, 1, 4000);

	(void)state;
	assert_false(wants_differ(&before, &now, LEAVES));
}

static void test_the_rest_of_each_class_is_one_part(void **state)
{
	const struct part claimed[] = {
		{.child = PART_REST, .priority = 2, .wanted = 500, .weight = 100},
		{.child = PART_REST, .priority = 0, .wanted = 900, .weight = 100}};
	const struct part moved[] = {
		{.child = PART_REST, .priority = 2, .wanted = 900, .weight = 100},
		{.child = PART_REST, .priority = 0, .wanted = 500, .weight = 100}};

	(void)state;
	assert_false(differ(claimed, 2, claimed, 2));
	assert_true(differ(claimed, 2, moved, 2));
}

/* A limiter of which this host holds nothing, and in whose children readers wait. */
struct crowd {
	struct settings all, heavy;
	struct limiter limiter, children[CHILDREN];
	struct holding holding, holdings[CHILDREN];
	struct sibling siblings[CHILDREN];
	struct waiter waiter;
	struct fleet fleet;
};

static void begin(struct crowd *crowd)
{
	char error[ERROR_TEXT];

	crowd->all = crowd->heavy = SETTINGS_DEFAULT;
	assert_int_equal(settings_parse("rate=1000/s", &crowd->all, error), 0);
	assert_int_equal(settings_parse("weight=10000", &crowd->heavy, error), 0);
	crowd->holding.limiter = &crowd->limiter;
	crowd->holding.settings = &crowd->all;
	assert_true(wants_attach(&crowd->holding));
	for (uint32_t i = 0; i < CHILDREN; i++) {
		struct limiter *child = &crowd->children[i];
		struct holding *holding = &crowd->holdings[i];

		crowd->siblings[i].head = &crowd->waiter;
		child->turns.sibling = &crowd->siblings[i];
		child->settings = holding->settings = &crowd->heavy;
		child->parent = &crowd->limiter;
		child->next_sibling = crowd->limiter.first_child;
		child->holding = holding;
		crowd->limiter.first_child = child;
		holding->limiter = child;
		holding->id = i + 1;
		assert_true(wants_attach(holding));
	}
	crowd->fleet.now_ns = 10 * DEMAND_PERIOD_NS;
	wants_tick(&crowd->fleet, &crowd->holding);
}

static void end(struct crowd *crowd)
{
	for (uint32_t i = 0; i < CHILDREN; i++)
		wants_detach(&crowd->holdings[i]);
	wants_detach(&crowd->holding);
}

/* Or its host would come to other parts than the hosts that read the claim. */
static void test_the_rest_weighs_no_more_than_a_claim_says(void **state)
{
	static struct crowd crowd;
	struct part parts[PARTS_MAX];
	uint32_t count;

	(void)state;
	begin(&crowd);
	count = wants_gather(&crowd.holding, LEAVES, 0, parts);
	assert_int_equal(count, PARTS_OF_CHILDREN + 1);
	for (uint32_t i = 0; i < PARTS_OF_CHILDREN; i++)
		assert_int_equal(parts[i].weight, 10000);
	assert_true(parts[PARTS_OF_CHILDREN].child == PART_REST);
	assert_int_equal(parts[PARTS_OF_CHILDREN].wanted, LEAVES);
	assert_int_equal(parts[PARTS_OF_CHILDREN].weight, REST_WEIGHT_MAX);
	end(&crowd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_small_change_is_not_worth_a_claim),
		cmocka_unit_test(
			test_a_child_that_gets_hungry_is_claimed_though_it_wanted_nearly_all),
		cmocka_unit_test(test_a_higher_class_is_claimed_however_little_it_wants),
		cmocka_unit_test(test_a_claim_without_parts_is_of_the_own_queue),
		cmocka_unit_test(test_more_than_a_host_claims_is_no_change),
		cmocka_unit_test(test_the_rest_of_each_class_is_one_part),
		cmocka_unit_test(test_the_rest_weighs_no_more_than_a_claim_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
