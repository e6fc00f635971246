/* test_usage - what a limiter remembers of its readers, see core/limiter/usage.h. */
#include "tests/core/stage.h"

#include "core/limiter/keys.h"
#include "core/limiter/slots.h"
#include "core/limiter/usage.h"

static void test_a_wait_is_counted_by_the_bound_it_does_not_exceed(void **state)
{
	struct histogram histogram = {0};
	static const struct {
		uint64_t ns;
		unsigned int bound;
	} rows[] = {
		{0, 0},
		{1, 0},
		{MS, 0},
		{MS + 1, 1},
		{2 * MS, 1},
		{2 * MS + 1, 2},
		{3 * MS, 2},
		{1024 * MS, 10},
		{1024 * MS + 1, 11},
		{3600 * SEC, 22},
		{(MS << 22) + 1, 23},
		{UINT64_MAX, 23},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct histogram one = {0};

		histogram_add(&one, rows[i].ns);
		histogram_add(&histogram, rows[i].ns);
		assert_int_equal(one.counts[rows[i].bound], 1);
		assert_int_equal(one.sum_ns, rows[i].ns);
	}
	assert_int_equal(histogram_count(&histogram), sizeof(rows) / sizeof(rows[0]));
}

static void test_quantiles_count_those_that_did_not_wait(void **state)
{
	struct histogram histogram = {.at_once = 98};

	(void)state;
	assert_int_equal(histogram_quantile_ns(&(struct histogram){0}, 50), 0);
	histogram_add(&histogram, 3 * MS);
	histogram_add(&histogram, UINT64_MAX);
	assert_int_equal(histogram_quantile_ns(&histogram, 50), 0);
	assert_int_equal(histogram_quantile_ns(&histogram, 98), 0);
	assert_int_equal(histogram_quantile_ns(&histogram, 99), 4 * MS);
	histogram.at_once = 0;
	assert_int_equal(histogram_quantile_ns(&histogram, 50), 4 * MS);
	assert_int_equal(histogram_quantile_ns(&histogram, 51), NEVER_NS);
}

static void test_a_limiter_that_never_waits_remembers_nothing(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_null(a->usage);
	assert_int_equal(usage_of_tokens(a).at_once, 1);
	assert_int_equal(histogram_quantile_ns(&(struct histogram){.at_once = 1}, 99), 0);
	stage_close(&stage);
}

static void test_readers_of_keys_and_partitions_are_the_limiters(void **state)
{
	struct stage stage;
	struct limiter *a, *part, *open;
	struct key *key;
	struct guest guest[3];
	struct histogram waits;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s:3\npartitions.count=1");
	part = partition_get(&stage.engine.schedule, a, 0, 0);
	assert_int_equal(engine_key(&stage.engine, a, "k", 0, 0, &key), 0);
	open = keys_open(&stage.engine.schedule, a, key);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_try(&stage, part, 1, 0), 0);
	assert_int_equal(stage_try(&stage, open, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest[0], a, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guest[1], part, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guest[2], open, 1, 0), WAITING);
	stage_run(&stage, SEC);
	waits = usage_of_tokens(a);
	assert_int_equal(waits.at_once, 3);
	assert_int_equal(histogram_count(&waits), 3);
	assert_int_equal(waits.sum_ns, 600 * MS);
	assert_int_equal(waits.counts[7], 1); /* 100 ms */
	assert_int_equal(waits.counts[8], 1); /* 200 ms */
	assert_int_equal(waits.counts[9], 1); /* 300 ms */
	keys_close(&stage.engine.schedule, open);
	stage_close(&stage);
}

static void test_openers_are_counted_by_themselves(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct slot slots[2] = {{0}};
	struct guest guest = {.waiter = {.slot = &slots[1], .is_opener = true}};
	struct histogram waits;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "concurrency=1");
	guest.waiter.limiter = a;
	assert_int_equal(engine_slot_try(&stage.engine, a, &slots[0], 0), 0);
	assert_int_equal(engine_slot_open(&stage.engine, &guest.waiter, NEVER_NS, 0), WAITING);
	assert_int_equal(usage_pressure(a, SEC).total_ns, SEC);
	engine_slot_close(&stage.engine, &slots[0], true, 5 * SEC);
	stage_collect(&stage);
	waits = usage_of_slots(a);
	assert_int_equal(waits.at_once, 1);
	assert_int_equal(histogram_count(&waits), 1);
	assert_int_equal(waits.sum_ns, 5 * SEC);
	waits = usage_of_tokens(a);
	assert_int_equal(waits.at_once + histogram_count(&waits), 0);
	engine_slot_close(&stage.engine, &slots[1], true, 6 * SEC);
	stage_close(&stage);
}

static void test_a_reader_that_waits_presses_on_all_limiters_above(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *other;
	struct guest guest[2];
	char text[STAT_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	b = stage_make(&stage, a, "b", NULL);
	other = stage_make(&stage, a, "other", NULL);
	assert_int_equal(stage_try(&stage, b, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest[0], b, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guest[1], b, 1, 500 * MS), WAITING);
	(void)stat_print(a, text);
	assert_non_null(strstr(text, "waiting 0\nwaiting_below 2\n"));
	(void)stat_print(b, text);
	assert_non_null(strstr(text, "waiting 2\nwaiting_below 0\n"));
	stage_run(&stage, 5 * SEC);
	assert_int_equal(usage_pressure(a, 5 * SEC).total_ns, 2 * SEC);
	assert_int_equal(usage_pressure(b, 5 * SEC).total_ns, 2 * SEC);
	assert_int_equal(usage_pressure(other, 5 * SEC).total_ns, 0);
	stage_close(&stage);
}

static void let_go(struct limiter *limiter)
{
	holding_free(limiter->holding);
	limiter->holding = NULL;
}

/* A holding counts waits without their first 10 ms, and the tokens that were asked for behind. */
static void test_a_reader_that_comes_with_the_first_one_does_not_come_behind(void **state)
{
	struct guest guest[5];
	struct holding *held;
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	b = stage_make(&stage, a, "b", NULL);
	held = a->holding = holding_new(a);
	assert_non_null(held);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest[0], a, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &guest[1], b, 1, 10 * MS), WAITING);
	assert_int_equal(held->behind, 0);
	assert_int_equal(stage_ask(&stage, &guest[2], b, 3, 11 * MS), WAITING);
	assert_int_equal(held->behind, 3);
	stage_run(&stage, SEC);
	assert_int_equal(guest[2].done_ns, 500 * MS);
	assert_int_equal(held->stalled_ns, 490 * MS);
	/* A reader that has its token at once does not wait; a short wait does not count. */
	assert_int_equal(stage_try(&stage, a, 1, SEC), 0);
	assert_int_equal(stage_ask(&stage, &guest[3], a, 1, SEC + 95 * MS), WAITING);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(guest[3].done_ns, SEC + 100 * MS);
	assert_int_equal(held->stalled_ns, 490 * MS);
	assert_int_equal(held->behind, 3);
	let_go(a);
	stage_close(&stage);
}

static void test_a_reader_that_comes_back_to_its_place_does_not_come_behind(void **state)
{
	struct guest first, second;
	static const struct asker ann = {.thread = 1, .uid = 7};
	struct parked_place places[4];
	struct stage stage;
	uint32_t used = 0;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	parking_init(&stage.engine.schedule.parking, places, 4, &used);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	a->holding = holding_new(a);
	assert_non_null(a->holding);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &first, a, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, a, 1, 500 * MS), WAITING);
	assert_int_equal(a->holding->behind, 1);
	engine_interrupt(&stage.engine, &second.waiter, &ann, 600 * MS);
	assert_true(engine_return(&stage.engine, &second.waiter, &ann, NEVER_NS, 600 * MS));
	assert_int_equal(engine_ask(&stage.engine, &second.waiter, NEVER_NS, 600 * MS), WAITING);
	assert_int_equal(a->holding->behind, 1);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(second.done_ns, 2 * SEC);
	let_go(a);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wait_is_counted_by_the_bound_it_does_not_exceed),
		cmocka_unit_test(test_quantiles_count_those_that_did_not_wait),
		cmocka_unit_test(test_a_limiter_that_never_waits_remembers_nothing),
		cmocka_unit_test(test_readers_of_keys_and_partitions_are_the_limiters),
		cmocka_unit_test(test_openers_are_counted_by_themselves),
		cmocka_unit_test(test_a_reader_that_waits_presses_on_all_limiters_above),
		cmocka_unit_test(test_a_reader_that_comes_with_the_first_one_does_not_come_behind),
		cmocka_unit_test(test_a_reader_that_comes_back_to_its_place_does_not_come_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
