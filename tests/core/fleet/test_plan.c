/* Tests of plan: takes and give-backs, after each of which all leaves are covered once. */
#include "core/fleet/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const i128 NANO = 1000000000;
static const char ME[] = "aaaaaaaaaaaaa", OTHER[] = "bbbbbbbbbbbbb";

/* The coordinator's part: a set of names, which a transaction changes as a whole or not at all. */
struct nodes {
	char (*names)[TILE_TEXT]; /* owned */
	uint32_t count, room;
	bool refused;
	uint32_t changes;
};

static struct nodes nodes_new(uint32_t room)
{
	struct nodes nodes = {.room = room, .names = calloc(room, sizeof(*nodes.names))};

	assert_non_null(nodes.names);
	return nodes;
}

static void nodes_open(struct nodes *nodes, const char *const *names, uint32_t count)
{
	*nodes = nodes_new(TILE_LEAVES_MAX + PLAN_CHANGES_MAX);
	for (; nodes->count < count; nodes->count++)
		strcpy(nodes->names[nodes->count], names[nodes->count]);
}

static void nodes_close(struct nodes *nodes)
{
	free(nodes->names);
}

static void change_node(void *of, const struct tile *tile, bool there)
{
	struct nodes *nodes = of;
	char name[TILE_TEXT];
	uint32_t at = 0;

	tile_print(tile, name);
	nodes->changes++;
	while (at < nodes->count && strcmp(nodes->names[at], name) != 0)
		at++;
	if (there != (at < nodes->count))
		nodes->refused = true;
	else if (there)
		memmove(nodes->names[at], nodes->names[--nodes->count], TILE_TEXT);
	else
		strcpy(nodes->names[nodes->count++], name);
}

/* Executes @plan; refused as a whole if a node is not as it was listed. */
static bool execute(struct nodes *nodes, const struct plan *plan)
{
	struct nodes after = nodes_new(nodes->count + PLAN_CHANGES_MAX);

	memcpy(after.names, nodes->names, nodes->count * sizeof(*nodes->names));
	after.count = nodes->count;
	plan_changes(plan, change_node, &after);
	assert_in_range(after.changes, 0, PLAN_CHANGES_MAX);
	if (after.refused) {
		nodes_close(&after);
		return false;
	}
	nodes_close(nodes);
	*nodes = after;
	nodes->changes = 0;
	return true;
}

static void list(const struct nodes *nodes, uint32_t leaves, struct tiles *tiles)
{
	char **names = calloc(nodes->count + 1, sizeof(*names));

	assert_non_null(names);
	for (uint32_t i = 0; i < nodes->count; i++)
		names[i] = nodes->names[i];
	assert_true(tiles_read(tiles, names, nodes->count, leaves));
	assert_true(tiles->whole);
	assert_int_equal(tiles->count, nodes->count);
	free(names);
}

static uint32_t count_of(const struct tiles *tiles, const char *hid, uint32_t *leaves)
{
	uint32_t count = 0;

	*leaves = 0;
	for (uint32_t i = 0; i < tiles->count; i++) {
		if (!tile_is_of(&tiles->list[i], hid))
			continue;
		*leaves += tile_size(&tiles->list[i]);
		count++;
	}
	return count;
}

static i128 sum(const struct tiles *tiles, const struct rest *full)
{
	i128 nano = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		if (tile_is_clean(tile))
			nano += rest_now(&tile->rest, full, tile->first, tile->last, tiles->leaves)
					.nano[0];
	}
	return nano;
}

static struct plan_rules rules_of(const char *hid, uint64_t seed)
{
	return (struct plan_rules){
		.hid = hid,
		.full = {.saved = 1, .count = 1, .nano = {100 * NANO}},
		.seed = seed,
	};
}

static struct plan plan_of(const struct plan_rules *rules, const char *const *names, uint32_t count,
			   uint32_t leaves)
{
	struct tiles tiles;
	struct plan plan;

	assert_true(tiles_read(&tiles, (char *const *)names, count, leaves));
	assert_int_equal(plan_begin(&plan, rules, &tiles), 0);
	tiles_free(&tiles);
	return plan;
}

static void assert_after(const struct plan *plan, const char *const *names, uint32_t count)
{
	char name[TILE_TEXT];

	assert_int_equal(plan->after.count, count);
	for (uint32_t i = 0; i < count; i++) {
		tile_print(&plan->after.list[i], name);
		assert_string_equal(name, names[i]);
	}
}

static void test_a_take_grows_the_tile_that_it_touches(void **state)
{
	const char *const names[] = {"0-9+1+1", "10-19.aaaaaaaaaaaaa", "20-29.bbbbbbbbbbbbb",
				     "30-99+1+1"};
	const char *const after[] = {"0-4+1+1", "5-19.aaaaaaaaaaaaa", "20-29.bbbbbbbbbbbbb",
				     "30-99+1+1"};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 4, 100);

	(void)state;
	assert_int_equal(plan_take(&plan, 5, false), 5);
	assert_after(&plan, after, 4);
	assert_int_equal(plan_change_count(&plan), 4);
	assert_int_equal(plan.gain_count, 1);
	assert_int_equal(plan.gains[0].first, 5);
	assert_int_equal(plan.gains[0].last, 9);
	plan_end(&plan);
}

static void test_a_take_goes_through_free_tiles_side_by_side(void **state)
{
	const char *const names[] = {"0-9.aaaaaaaaaaaaa", "10-19+3+1:4", "20-29+2+1:0",
				     "30-39+1+1:10"};
	const char *const after[] = {"0-34.aaaaaaaaaaaaa", "35-39+1+1:5"};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 4, 40);

	(void)state;
	assert_int_equal(plan_take(&plan, 25, false), 25);
	assert_after(&plan, after, 2);
	assert_int_equal(plan.gain_count, 3);
	assert_int_equal(plan.gains[0].epoch, 3);
	assert_true(plan.gains[0].rest.nano[0] == 4 * NANO);
	assert_int_equal(plan.gains[2].last, 34);
	assert_true(plan.gains[2].rest.nano[0] == 5 * NANO);
	plan_end(&plan);
}

static void test_a_take_of_a_large_run_leaves_room_on_both_sides(void **state)
{
	const char *const names[] = {"0-99+1+1"};

	(void)state;
	for (uint64_t seed = 1; seed < 50; seed++) {
		struct plan_rules rules = rules_of(ME, seed);
		struct plan plan = plan_of(&rules, names, 1, 100);

		assert_int_equal(plan_take(&plan, 10, false), 10);
		assert_int_equal(plan.after.count, 3);
		assert_in_range(plan.gains[0].first, 10, 80);
		plan_end(&plan);
	}
}

static void test_if_no_run_is_long_enough_the_longest_go_whole(void **state)
{
	const char *const names[] = {"0-9+1+1",	  "10-19.bbbbbbbbbbbbb",
				     "20-49+1+1", "50.bbbbbbbbbbbbb",
				     "51-52+1+1", "53-59.bbbbbbbbbbbbb"};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 6, 60);

	(void)state;
	assert_int_equal(plan_take(&plan, 40, false), 40);
	assert_int_equal(plan.after.list[0].first, 0);
	assert_true(tile_is_of(&plan.after.list[0], ME));
	assert_true(tile_is_of(&plan.after.list[2], ME));
	assert_true(tile_is_clean(&plan.after.list[4]));
	assert_int_equal(plan_take(&plan, 40, false), 2);
	plan_end(&plan);
}

static void test_tiles_that_have_to_wait_are_taken_only_when_asked_for(void **state)
{
	const char *const names[] = {"0-9+0+1", "10-19.bbbbbbbbbbbbb", "20-29.ccccccccccccc"};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 3, 30);

	(void)state;
	plan.after.list[1].gone = true;
	assert_int_equal(plan_take(&plan, 30, false), 0);
	assert_int_equal(plan_take_leaf(&plan, 15, false), 0);
	assert_int_equal(plan_take(&plan, 30, true), 20);
	assert_int_equal(plan.gain_count, 2);
	assert_true(tile_is_of(&plan.gains[1], OTHER));
	plan_end(&plan);
}

static void test_a_fixed_tile_is_left_as_it_is(void **state)
{
	const char *const names[] = {"0-9.aaaaaaaaaaaaa", "10-19+1+1"};
	const char *const after[] = {"0-9.aaaaaaaaaaaaa", "10-14.aaaaaaaaaaaaa", "15-19+1+1"};
	const struct rest none = {.saved = 1, .count = 1};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan;

	(void)state;
	for (uint64_t seed = 1;; seed++) {
		rules.seed = seed;
		plan = plan_of(&rules, names, 2, 20);
		plan.after.list[0].fixed = true;
		assert_int_equal(plan_take(&plan, 5, false), 5);
		if (plan.gains[0].first == 10)
			break;
		plan_end(&plan);
	}
	assert_after(&plan, after, 3);
	assert_int_equal(plan_give(&plan, 20, 1, &none), 5);
	plan_end(&plan);
}

static void test_single_leaves_stay_single(void **state)
{
	const char *const names[] = {"0-9+1+1"};
	struct plan_rules rules = rules_of(ME, 7);
	struct plan plan;

	(void)state;
	rules.single = true;
	plan = plan_of(&rules, names, 1, 10);
	assert_int_equal(plan_take_leaf(&plan, 4, false), 1);
	assert_int_equal(plan_take_leaf(&plan, 4, false), 0);
	assert_int_equal(plan_take(&plan, 9, false), 9);
	assert_int_equal(plan.after.count, 10);
	plan_end(&plan);
}

static void test_a_give_back_ends_small_tiles_and_cuts_beside_free_ones(void **state)
{
	const char *const names[] = {"0-1.aaaaaaaaaaaaa", "2-49.bbbbbbbbbbbbb", "50-59+1+1",
				     "60-89.aaaaaaaaaaaaa", "90-99.bbbbbbbbbbbbb"};
	const char *const after[] = {"0-1+8+1:2",   "2-49.bbbbbbbbbbbbb",  "50-59+1+1",
				     "60-62+8+1:3", "63-89.aaaaaaaaaaaaa", "90-99.bbbbbbbbbbbbb"};
	const struct rest rest = {.saved = 1, .count = 1, .nano = {5 * NANO}};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 5, 100);

	(void)state;
	assert_int_equal(plan_give(&plan, 5, 8, &rest), 5);
	assert_after(&plan, after, 6);
	plan_end(&plan);
}

static void test_many_small_tiles_are_taken_in_several_transactions(void **state)
{
	struct plan_rules rules = rules_of(ME, 1);
	struct nodes nodes;
	struct tiles tiles;
	uint32_t taken = 0, plans = 0;

	(void)state;
	nodes_open(&nodes, NULL, 0);
	for (uint32_t i = 0; i < 200; i++)
		tile_print(&(struct tile){.first = i, .last = i, .epoch = 1, .rest = {.saved = 1}},
			   nodes.names[nodes.count++]);
	while (taken < 150) {
		struct plan plan;
		int done;

		list(&nodes, 200, &tiles);
		assert_int_equal(plan_begin(&plan, &rules, &tiles), 0);
		done = plan_take(&plan, 150 - taken, false);
		assert_in_range(done, 1, PLAN_CHANGES_MAX);
		taken += (uint32_t)done;
		plans++;
		assert_true(execute(&nodes, &plan));
		plan_end(&plan);
		tiles_free(&tiles);
	}
	assert_in_range(plans, 3, 4);
	assert_int_equal(nodes.count, 51);
	nodes_close(&nodes);
}

static void test_a_plan_by_an_old_list_is_refused_as_a_whole(void **state)
{
	const char *const names[] = {"0-49+1+1", "50-99+1+1"};
	struct plan_rules mine = rules_of(ME, 1), others = rules_of(OTHER, 2);
	struct plan first = plan_of(&mine, names, 2, 100), second = plan_of(&others, names, 2, 100);
	struct nodes nodes;

	(void)state;
	nodes_open(&nodes, names, 2);
	assert_int_equal(plan_take(&first, 80, false), 80);
	assert_int_equal(plan_take(&second, 80, false), 80);
	assert_true(execute(&nodes, &first));
	assert_false(execute(&nodes, &second));
	assert_int_equal(nodes.count, first.after.count);
	plan_end(&first);
	plan_end(&second);
	nodes_close(&nodes);
}

static void test_tiles_that_were_apart_for_a_reason_are_merged_later(void **state)
{
	const char *const names[] = {"0-9.aaaaaaaaaaaaa", "10-19.aaaaaaaaaaaaa",
				     "20-29.bbbbbbbbbbbbb"};
	const char *const after[] = {"0-19.aaaaaaaaaaaaa", "20-29.bbbbbbbbbbbbb"};
	struct plan_rules rules = rules_of(ME, 1);
	struct plan plan = plan_of(&rules, names, 3, 30);

	(void)state;
	plan_tidy(&plan);
	assert_after(&plan, after, 2);
	assert_int_equal(plan_change_count(&plan), 3);
	plan_end(&plan);
}

/* One host's transaction, planned by a list as old as @tiles. All that it takes it uses up. */
static void act(struct nodes *nodes, const struct tiles *tiles, struct plan_rules *rules,
		uint64_t random, i128 *used)
{
	uint32_t amount = (uint32_t)(random >> 8) % (tiles->leaves / 2) + 1, held;
	struct plan plan;
	int done;

	rules->seed = random;
	rules->full.saved = 1;
	assert_int_equal(plan_begin(&plan, rules, tiles), 0);
	for (uint32_t i = 0; i < plan.after.count; i++) {
		plan.after.list[i].fixed = (random >> (i % 48)) % 16 == 0;
		plan.after.list[i].gone = tile_is_of(&plan.after.list[i], "ddddddddddddd");
	}
	(void)count_of(tiles, rules->hid, &held);
	if (random & 1) {
		done = plan_take(&plan, amount, random & 2);
		assert_in_range(done, 0, amount);
	} else {
		struct rest rest = {.saved = 1, .count = 1};

		done = plan_give(&plan, amount < held ? amount : held, 1, &rest);
		assert_in_range(done, 0, held);
		plan_tidy(&plan);
	}
	if (execute(nodes, &plan)) {
		for (uint32_t i = 0; i < plan.gain_count; i++) {
			const struct tile *gain = &plan.gains[i];

			*used += tile_is_clean(gain)
					 ? rest_now(&gain->rest, &rules->full, gain->first,
						    gain->last, tiles->leaves)
						   .nano[0]
					 : 0;
		}
	}
	plan_end(&plan);
}

static void run_hosts(uint32_t leaves, bool single, uint64_t seed)
{
	static const char *const hids[] = {"aaaaaaaaaaaaa", "bbbbbbbbbbbbb", "ccccccccccccc",
					   "ddddddddddddd"};
	char all[TILE_TEXT];
	const char *const names[] = {all};
	const struct plan_rules rules_now = rules_of(ME, 0);
	struct nodes nodes;
	struct tiles old, now;
	i128 used = 0;
	uint64_t random = seed;

	tile_print(&(struct tile){.last = leaves - 1, .epoch = 1, .rest = {.saved = 1}}, all);
	nodes_open(&nodes, names, 1);
	list(&nodes, leaves, &old);
	for (int i = 0; i < 300; i++) {
		struct plan_rules rules;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		rules = rules_of(hids[random >> 60 & 3], 0);
		rules.single = single;
		list(&nodes, leaves, &now);
		act(&nodes, random >> 40 & 7 ? &now : &old, &rules, random >> 16, &used);
		if (random >> 44 & 3) {
			tiles_free(&now);
			continue;
		}
		tiles_free(&old);
		old = now;
	}
	list(&nodes, leaves, &now);
	/* Every plan keeps what was left to the billionth; nothing that was given back had any. */
	assert_true(used + sum(&now, &rules_now.full) == 100 * NANO);
	tiles_free(&old);
	tiles_free(&now);
	nodes_close(&nodes);
}

static void test_hosts_keep_all_leaves_covered_once_and_make_no_tokens(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 40; seed++) {
		run_hosts(4096, false, seed);
		run_hosts(20, false, seed);
		run_hosts(20, true, seed);
		run_hosts(2, seed % 2, seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_take_grows_the_tile_that_it_touches),
		cmocka_unit_test(test_a_take_goes_through_free_tiles_side_by_side),
		cmocka_unit_test(test_a_take_of_a_large_run_leaves_room_on_both_sides),
		cmocka_unit_test(test_if_no_run_is_long_enough_the_longest_go_whole),
		cmocka_unit_test(test_tiles_that_have_to_wait_are_taken_only_when_asked_for),
		cmocka_unit_test(test_a_fixed_tile_is_left_as_it_is),
		cmocka_unit_test(test_single_leaves_stay_single),
		cmocka_unit_test(test_a_give_back_ends_small_tiles_and_cuts_beside_free_ones),
		cmocka_unit_test(test_many_small_tiles_are_taken_in_several_transactions),
		cmocka_unit_test(test_a_plan_by_an_old_list_is_refused_as_a_whole),
		cmocka_unit_test(test_tiles_that_were_apart_for_a_reason_are_merged_later),
		cmocka_unit_test(test_hosts_keep_all_leaves_covered_once_and_make_no_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
