/* Tests of limiter: the order in which waiters are served, in one limiter and along a path. */
#include "tests/core/stage.h"

static void test_readers_are_served_in_the_order_they_came(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[10];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(stage_ask(&stage, &guests[0], a, 1, 0), 0);
	for (uint64_t i = 1; i < 10; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, i % 3, 0), WAITING);
	stage_run(&stage, 10 * SEC);
	for (int i = 1; i < 10; i++) {
		assert_int_equal(guests[i].waiter.outcome, 0);
		assert_true(guests[i].done_ns >= (i > 1 ? guests[i - 1].done_ns : 0));
	}
	assert_int_equal(guests[9].done_ns, 900 * MS);
	stage_close(&stage);
}

static void test_try_does_not_overtake_a_waiter(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest big;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	assert_int_equal(stage_ask(&stage, &big, a, 10, 0), WAITING);
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	assert_int_equal(stage_try(&stage, a, 0, 0), -EBUSY);
	stage_run(&stage, 500 * MS);
	assert_int_equal(big.waiter.outcome, 0);
	assert_int_equal(stage_try(&stage, a, 0, 500 * MS), 0);
	stage_close(&stage);
}

static void test_waiter_that_gives_up_frees_those_behind_it_and_spends_nothing(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest big, small, last;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	assert_int_equal(stage_ask(&stage, &big, a, 100, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &small, a, 3, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &last, a, 3, 0), WAITING);
	engine_cancel(&stage.engine, &big.waiter);
	assert_int_equal(stage_collect(&stage), 1);
	assert_int_equal(small.waiter.outcome, 0);
	stage_run(&stage, 100 * MS);
	assert_int_equal(last.done_ns, 100 * MS);
	assert_int_equal(a->counters[COUNTER_CANCELLED], 1);
	assert_int_equal(a->counters[COUNTER_GRANTED], 6);
	assert_int_equal(a->turns.wanted, 0);
	stage_close(&stage);
}

static void test_a_child_without_tokens_does_not_hold_up_its_sibling(void **state)
{
	struct stage stage;
	struct limiter *a, *slow, *quick;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	slow = stage_make(&stage, a, "slow", "rate=1/h");
	quick = stage_make(&stage, a, "quick", NULL);
	assert_int_equal(stage_try(&stage, slow, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &first, slow, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, quick, 4, 0), 0);
	engine_cancel(&stage.engine, &first.waiter);
	stage_close(&stage);
}

static void test_waiter_in_a_child_is_not_ahead_of_a_reader_that_need_not_wait(void **state)
{
	struct stage stage;
	struct limiter *a, *slow, *quick;
	struct guest first, second;
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	slow = stage_make(&stage, a, "slow", "enforcement=closed");
	quick = stage_make(&stage, a, "quick", NULL);
	assert_int_equal(stage_ask(&stage, &first, slow, 1000, 0), WAITING);
	/* A take that try grants, within=0s grants too; eta says so, and so does poll. */
	assert_int_equal(engine_eta(&stage.engine, quick, 4, NULL, 0), 0);
	assert_true(stage_poll(&stage, &poller, quick, 1, 0));
	assert_int_equal(stage_ask_within(&stage, &second, quick, 4, 0, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, quick, 4, NULL, 0), 300 * MS);
	assert_int_equal(stage_try(&stage, quick, 1, 0), 0);
	engine_cancel(&stage.engine, &first.waiter);
	stage_close(&stage);
}

static void test_a_token_of_a_child_is_a_token_of_every_ancestor(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *c;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	b = stage_make(&stage, a, "b", NULL);
	c = stage_make(&stage, b, "c", "burst=9\nrate=9/s");
	assert_int_equal(stage_ask(&stage, &guest, c, 1, 0), 0);
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	assert_int_equal(stage_ask(&stage, &guest, c, 1, 0), WAITING);
	assert_int_equal(a->turns.wanted, 1);
	stage_run(&stage, SEC);
	assert_int_equal(guest.done_ns, SEC);
	assert_int_equal(a->counters[COUNTER_GRANTED], 2);
	assert_int_equal(b->counters[COUNTER_GRANTED], 2);
	assert_int_equal(c->counters[COUNTER_GRANTED], 2);
	assert_int_equal(a->counters[COUNTER_SERVED], 0);
	assert_int_equal(c->counters[COUNTER_SERVED], 2);
	assert_int_equal(c->counters[COUNTER_DELAYED], SEC);
	stage_close(&stage);
}

/* The level of the child while its reader waits above stops where no reader could have taken it. */
static void test_token_without_room_while_its_reader_waited_above_is_spilled(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/100s");
	b = stage_make(&stage, a, "b", "rate=1/s");
	assert_int_equal(stage_ask(&stage, &first, b, 1, 0), 0);
	/* In b there is a token after 1 s, and room for no other; in a there is one after 100 s. */
	assert_int_equal(stage_ask(&stage, &first, b, 1, 0), WAITING);
	stage_run(&stage, 100 * SEC);
	assert_int_equal(first.done_ns, 100 * SEC);
	stage_write(&stage, a, "rate=max", 100 * SEC);
	assert_int_equal(stage_ask(&stage, &second, b, 1, 100 * SEC), WAITING);
	stage_run(&stage, 200 * SEC);
	assert_int_equal(second.done_ns, 101 * SEC);
	stage_close(&stage);
}

static void test_savings_for_a_big_take_survive_readers_that_come_first(void **state)
{
	struct stage stage;
	struct limiter *a, *steady, *other;
	struct guest guests[100], first, big;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	steady = stage_make(&stage, a, "steady", "rate=5/s\nweight=10000");
	other = stage_make(&stage, a, "other", "weight=1");
	assert_int_equal(stage_ask(&stage, &first, other, 20, 0), WAITING);
	for (int i = 0; i < 100; i++)
		stage_ask(&stage, &guests[i], steady, 1, 0);
	stage_ask(&stage, &big, other, 20, 0);
	/* After the first take the other sibling comes first, each time it has a token. */
	stage_run(&stage, 1900 * MS);
	assert_int_equal(first.done_ns, 1900 * MS);
	/* Every 200 ms it takes one of the two tokens that came in. */
	stage_run(&stage, 6100 * MS);
	assert_int_equal(big.waiter.outcome, 0);
	assert_true(big.done_ns >= 5700 * MS);
	stage_run(&stage, 30 * SEC);
	assert_int_equal(guests[99].waiter.outcome, 0);
	stage_close(&stage);
}

static void test_an_interval_loses_nothing_of_takes_that_do_not_divide_a_batch(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[1000];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "release_interval=200ms\nrate=100/s");
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 20}, 0), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 3, 0), WAITING);
	stage_run(&stage, 30 * SEC);
	assert_int_equal(a->counters[COUNTER_GRANTED], 3000);
	stage_close(&stage);
}

static void test_within_is_refused_at_once_or_served_by_then(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest first, second, third;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(stage_ask_within(&stage, &first, a, 3, 200 * MS - 1, 0), -EAGAIN);
	assert_int_equal(stage_ask_within(&stage, &first, a, 3, 200 * MS, 0), WAITING);
	assert_int_equal(stage_ask_within(&stage, &second, a, 2, 399 * MS, 0), -EAGAIN);
	assert_int_equal(stage_ask_within(&stage, &second, a, 2, 400 * MS, 0), WAITING);
	assert_int_equal(stage_ask_within(&stage, &third, a, 1, NEVER_NS - 1, 0), WAITING);
	assert_int_equal(a->counters[COUNTER_REFUSED], 2);
	stage_run(&stage, SEC);
	/* The tokens come exactly at the end of the time. */
	assert_int_equal(first.waiter.outcome, 0);
	assert_int_equal(first.done_ns, 200 * MS);
	assert_int_equal(second.waiter.outcome, 0);
	assert_int_equal(second.done_ns, 400 * MS);
	assert_int_equal(third.done_ns, 500 * MS);
	stage_close(&stage);
}

static void test_waiter_that_expires_is_refused_and_makes_way(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest timed, next;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(stage_ask_within(&stage, &timed, a, 11, SEC, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &next, a, 1, 0), WAITING);
	stage_write(&stage, a, "rate=5/s", 500 * MS);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(timed.waiter.outcome, -EAGAIN);
	assert_int_equal(timed.done_ns, SEC);
	assert_int_equal(next.done_ns, SEC);
	assert_int_equal(a->counters[COUNTER_REFUSED], 1);
	assert_int_equal(a->counters[COUNTER_GRANTED], 1);
	stage_close(&stage);
}

static void test_modes_act_on_waiters_at_once(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[4];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\nenforcement=closed");
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	for (int i = 0; i < 4; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_write(&stage, a, "enforcement=enforce", SEC);
	assert_int_equal(guests[0].waiter.outcome, 0);
	assert_int_equal(guests[1].waiter.outcome, WAITING);
	stage_write(&stage, a, "enforcement=shadow", 2 * SEC);
	assert_int_equal(guests[3].waiter.outcome, 0);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 3);
	assert_int_equal(a->buckets[0].level, 0);
	stage_close(&stage);
}

static void test_raising_the_rate_wakes_and_lowering_it_makes_wait(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	stage_write(&stage, a, "rate=1/9s", 100 * MS);
	assert_int_equal(engine_next_ns(&stage.engine), 100 * MS + 8100 * MS);
	stage_write(&stage, a, "rate=0", 100 * MS);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_write(&stage, a, "rate=max", 100 * MS);
	assert_int_equal(guest.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_a_charge_delays_and_giving_back_wakes_up_to_the_burst(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=5\nrate=10/s");
	b = stage_make(&stage, a, "b", "burst=5\nrate=10/s");
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = 100}, 0), 0);
	assert_int_equal(a->buckets[0].level, -95);
	assert_int_equal(stage_ask(&stage, &guest, b, 1, 0), WAITING);
	assert_int_equal(engine_next_ns(&stage.engine), 9600 * MS);
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -101}, 0),
			 -ERANGE);
	assert_int_equal(a->buckets[0].level, -95);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -1}, 0), 0);
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -100}, 0),
			 -ERANGE); /* not all of it is a's */
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, 0), 0);
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -100}, 0), 0);
	stage_collect(&stage);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(b->buckets[0].level, 4);
	assert_int_equal(b->counters[COUNTER_CHARGED], 100);
	assert_int_equal(a->counters[COUNTER_RETURNED], 101);
	engine_refund(&stage.engine, b, 1, NULL, 0);
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -1}, 0),
			 -ERANGE);
	stage_close(&stage);
}

static void test_the_deepest_debt_and_a_long_queue_overflow_nothing(void **state)
{
	enum { CHARGES = 470000, READERS = 5000 };
	static struct guest guests[READERS];
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nrelease_interval=1h");
	for (int i = 0; i < CHARGES; i++)
		assert_int_equal(engine_charge(&stage.engine, a,
					       &(struct charge){.tokens = (int64_t)TOKENS_MAX}, 0),
				 0);
	assert_true(a->buckets[0].level <= -(INT64_C(1) << 62) + (int64_t)TOKENS_MAX);
	assert_true(a->buckets[0].level >= -(INT64_C(1) << 62));
	for (int i = 0; i < READERS; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, TOKENS_MAX, 0), WAITING);
	assert_int_equal(engine_eta(&stage.engine, a, TOKENS_MAX, NULL, 0), NEVER_NS);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	for (int i = 0; i < READERS; i++)
		engine_cancel(&stage.engine, &guests[i].waiter);
	stage_close(&stage);
}

static void test_a_time_that_does_not_fit_is_never(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nrelease_interval=1h");
	/*
	 * 2^64 ns are 18446744073.7 s. 3600 tokens are there, and a release is up to 3600 s later.
	 */
	for (uint64_t tokens = 18446744073 - 3600; tokens < 18446744073 + 7200; tokens += 60)
		assert_true(engine_eta(&stage.engine, a, tokens, NULL, 0) >= (tokens - 3600) * SEC);
	stage_close(&stage);
}

static void test_a_take_larger_than_the_burst_is_never_there_at_once(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	b = stage_make(&stage, a, "b", "rate=10/s\nburst=9");
	assert_true(limiter_can_hold(b, 5, NULL));
	assert_false(limiter_can_hold(b, 6, NULL));
	/* A reader that would not wait is told so at once. */
	assert_true(stage_poll(&stage, &poller, b, 6, 0));
	assert_int_equal(stage_try(&stage, b, 5, 0), 0);
	assert_false(stage_poll(&stage, &poller, b, 5, 0));
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_are_served_in_the_order_they_came),
		cmocka_unit_test(test_try_does_not_overtake_a_waiter),
		cmocka_unit_test(
			test_waiter_that_gives_up_frees_those_behind_it_and_spends_nothing),
		cmocka_unit_test(test_a_child_without_tokens_does_not_hold_up_its_sibling),
		cmocka_unit_test(
			test_waiter_in_a_child_is_not_ahead_of_a_reader_that_need_not_wait),
		cmocka_unit_test(test_a_token_of_a_child_is_a_token_of_every_ancestor),
		cmocka_unit_test(test_token_without_room_while_its_reader_waited_above_is_spilled),
		cmocka_unit_test(test_savings_for_a_big_take_survive_readers_that_come_first),
		cmocka_unit_test(
			test_an_interval_loses_nothing_of_takes_that_do_not_divide_a_batch),
		cmocka_unit_test(test_within_is_refused_at_once_or_served_by_then),
		cmocka_unit_test(test_waiter_that_expires_is_refused_and_makes_way),
		cmocka_unit_test(test_modes_act_on_waiters_at_once),
		cmocka_unit_test(test_raising_the_rate_wakes_and_lowering_it_makes_wait),
		cmocka_unit_test(test_a_charge_delays_and_giving_back_wakes_up_to_the_burst),
		cmocka_unit_test(test_the_deepest_debt_and_a_long_queue_overflow_nothing),
		cmocka_unit_test(test_a_time_that_does_not_fit_is_never),
		cmocka_unit_test(test_a_take_larger_than_the_burst_is_never_there_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
