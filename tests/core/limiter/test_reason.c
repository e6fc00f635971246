/* test_reason - the causes of a wait, see core/limiter/reason.h. */
#include "tests/core/stage.h"

#include "core/limiter/forecast.h"
#include "core/limiter/reason.h"

/* Lists the reasons of @limiter at @now_ns; returns their number. */
static size_t list_reasons(struct stage *stage, struct limiter *limiter,
			   struct reason reasons[REASONS_MAX], uint64_t now_ns)
{
	engine_refresh(&stage->engine, limiter, now_ns);
	return reason_list(&stage->engine.schedule, limiter, reasons);
}

static void test_a_limiter_with_tokens_has_no_reason(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(list_reasons(&stage, a, reasons, 0), 0);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(list_reasons(&stage, a, reasons, 0), 1);
	assert_int_equal(list_reasons(&stage, a, reasons, 100 * MS), 0);
	stage_close(&stage);
}

static void test_tokens_to_come_are_those_of_the_queue_and_ones_own(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s 100/h:1000");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 5, 0), WAITING);
	assert_int_equal(list_reasons(&stage, a, reasons, 50 * MS), 1);
	assert_int_equal(reasons[0].kind, REASON_RATE);
	assert_int_equal(reasons[0].limit, 0);
	assert_int_equal(reasons[0].tokens, 6);
	assert_int_equal(reasons[0].wait_ns, 550 * MS);
	assert_int_equal(reasons[0].wait_ns, engine_eta(&stage.engine, a, 1, NULL, 50 * MS));
	engine_cancel(&stage.engine, &guest.waiter);
	stage_close(&stage);
}

static void test_a_unit_that_the_first_waiter_lacks_is_a_reason(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	struct limiter *a;
	struct guest guest = {.waiter = {.outcome = WAITING}};
	struct amounts amounts;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s x=1/s:5");
	guest.waiter.limiter = a;
	assert_int_equal(
		amounts_parse_take("x=5", &guest.waiter.tokens, &guest.waiter.most, &amounts), 0);
	guest.waiter.amounts = &amounts;
	assert_int_equal(engine_ask(&stage.engine, &guest.waiter, NEVER_NS, 0), 0);
	assert_int_equal(engine_ask(&stage.engine, &guest.waiter, NEVER_NS, 0), WAITING);
	assert_int_equal(list_reasons(&stage, a, reasons, 2 * SEC), 1);
	assert_int_equal(reasons[0].kind, REASON_RATE);
	assert_int_equal(reasons[0].limit, 1);
	assert_int_equal(reasons[0].tokens, 3);
	assert_int_equal(reasons[0].wait_ns, 3 * SEC);
	engine_cancel(&stage.engine, &guest.waiter);
	stage_close(&stage);
}

static void test_each_limiter_on_the_way_up_is_told_of_by_itself(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	struct limiter *a, *b, *c;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	b = stage_make(&stage, a, "b", "backoff=exponential initial=1h max=1d");
	c = stage_make(&stage, b, "c", "rate=4/s");
	assert_int_equal(stage_try(&stage, c, 1, 0), 0);
	assert_int_equal(engine_feedback(&stage.engine, b,
					 &(struct outcome){.kind = OUTCOME_THROTTLED, .count = 1},
					 1, 0),
			 0);
	assert_int_equal(list_reasons(&stage, c, reasons, 0), 3);
	assert_ptr_equal(reasons[0].limiter, c);
	assert_int_equal(reasons[0].wait_ns, 250 * MS);
	assert_int_equal(reasons[1].kind, REASON_PAUSE);
	assert_ptr_equal(reasons[2].limiter, a);
	assert_int_equal(reasons[2].wait_ns, SEC);
	assert_int_equal(list_reasons(&stage, c, reasons, 500 * MS), 2);
	stage_close(&stage);
}

static void test_a_sibling_is_named_only_if_it_comes_first(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	struct limiter *a, *one, *other;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	one = stage_make(&stage, a, "one", "priority=3");
	other = stage_make(&stage, a, "other", "priority=2");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, one, 2, 0), WAITING);
	assert_int_equal(list_reasons(&stage, other, reasons, 0), 2);
	assert_int_equal(reasons[0].kind, REASON_ORDER);
	assert_int_equal(reasons[0].cause, ORDER_BY_PRIORITY);
	assert_ptr_equal(reasons[0].first, one);
	assert_ptr_equal(reasons[0].behind, other);
	assert_int_equal(reasons[1].tokens, 3);
	/* Siblings of a class have their parts side by side. */
	stage_write(&stage, other, "priority=3", 0);
	assert_int_equal(list_reasons(&stage, other, reasons, 0), 2);
	assert_int_equal(reasons[0].kind, REASON_RATE);
	assert_int_equal(reasons[1].cause, ORDER_BY_WEIGHT);
	stage_write(&stage, other, "priority=4", 0);
	assert_int_equal(list_reasons(&stage, other, reasons, 0), 1);
	assert_int_equal(reasons[0].tokens, 1);
	engine_cancel(&stage.engine, &guest.waiter);
	stage_close(&stage);
}

static void test_the_longest_wait_comes_first(void **state)
{
	struct stage stage;
	struct reason reasons[REASONS_MAX];
	const struct outcome throttled = {
		.kind = OUTCOME_THROTTLED, .count = 1, .retry_after_ns = 900 * NSEC_PER_SEC};
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nbackoff=exponential jitter=0");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(engine_feedback(&stage.engine, a, &throttled, 1, 0), 0);
	assert_int_equal(list_reasons(&stage, a, reasons, 0), 2);
	assert_int_equal(reasons[0].kind, REASON_PAUSE);
	assert_int_equal(reasons[1].kind, REASON_RATE);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_limiter_with_tokens_has_no_reason),
		cmocka_unit_test(test_tokens_to_come_are_those_of_the_queue_and_ones_own),
		cmocka_unit_test(test_a_unit_that_the_first_waiter_lacks_is_a_reason),
		cmocka_unit_test(test_each_limiter_on_the_way_up_is_told_of_by_itself),
		cmocka_unit_test(test_a_sibling_is_named_only_if_it_comes_first),
		cmocka_unit_test(test_the_longest_wait_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
