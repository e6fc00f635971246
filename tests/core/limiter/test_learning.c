/*
 * Tests of learning: effects of feedback on a limiter, its readers and its ancestors, on virtual
 * time.
 */
#include "tests/core/stage.h"

#include "core/limiter/learning.h"

#include <math.h>
#include <stdio.h>

#define MIN (60 * SEC)

static void hear(struct stage *stage, struct limiter *limiter, enum outcome_kind kind,
		 uint64_t count, uint64_t retry_after_ns, uint64_t now_ns)
{
	const struct outcome outcome = {
		.kind = kind, .count = count, .retry_after_ns = retry_after_ns};

	assert_int_equal(engine_feedback(&stage->engine, limiter, &outcome, 1, now_ns), 0);
	stage_collect(stage);
}

static void throttle(struct stage *stage, struct limiter *limiter, uint64_t now_ns)
{
	hear(stage, limiter, OUTCOME_THROTTLED, 1, 0, now_ns);
}

static double rate_of(const struct limiter *limiter)
{
	return learning_rate(limiter);
}

static void assert_rate(const struct limiter *limiter, double expected)
{
	if (fabs(rate_of(limiter) - expected) > 1e-6)
		fail_msg("%.9g a second, not %.9g", rate_of(limiter), expected);
}

/*
 * Takes every token there is, at once, and says that it went well; until @until_ns. Their number.
 */
static uint64_t work(struct stage *stage, struct limiter *limiter, uint64_t until_ns)
{
	struct engine *engine = &stage->engine;
	uint64_t taken = 0;
	struct guest guest;

	for (;;) {
		if (stage_ask(stage, &guest, limiter, 1, engine->schedule.now_ns) == 0)
			guest.waiter.outcome = 0;
		while (guest.waiter.outcome == WAITING && engine_next_ns(engine) <= until_ns) {
			engine_run(engine, engine_next_ns(engine));
			stage_collect(stage);
		}
		if (guest.waiter.outcome == WAITING)
			break;
		taken++;
		hear(stage, limiter, OUTCOME_OK, 1, 0, engine->schedule.now_ns);
	}
	engine_cancel(engine, &guest.waiter);
	engine_run(engine, until_ns);
	stage_collect(stage);
	return taken;
}

static void test_a_limiter_that_does_not_learn_counts_outcomes_all_the_same(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	hear(&stage, a, OUTCOME_OK, 3, 0, 0);
	hear(&stage, a, OUTCOME_THROTTLED, 2, SEC, 0);
	hear(&stage, a, OUTCOME_ERROR, 7, 0, 0);
	assert_int_equal(a->counters[COUNTER_OK], 3);
	assert_int_equal(a->counters[COUNTER_THROTTLED], 2);
	assert_int_equal(a->counters[COUNTER_ERROR], 7);
	assert_null(a->learning);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	stage_close(&stage);
}

static void test_feedback_of_a_child_is_feedback_of_all_above_and_of_none_beside(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *c;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd\nbackoff=linear");
	b = stage_make(&stage, a, "b", "rate=8/s\nadapt=aimd");
	c = stage_make(&stage, a, "c", "rate=8/s\nadapt=aimd\nbackoff=linear");
	throttle(&stage, b, 0);
	assert_int_equal(a->counters[COUNTER_THROTTLED], 1);
	assert_int_equal(c->counters[COUNTER_THROTTLED], 0);
	assert_rate(a, 5);
	assert_rate(b, 4);
	assert_true(isinf(rate_of(c)));
	/* All of the path rests; so nothing of c comes past a. */
	assert_int_equal(stage_try(&stage, c, 1, 500 * MS), -EBUSY);
	assert_int_equal(stage_try(&stage, c, 1, SEC), 0);
	stage_close(&stage);
}

static void test_feedback_to_a_limiter_that_is_gone_is_ENODEV(void **state)
{
	const struct outcome outcome = {.kind = OUTCOME_OK, .count = 1};
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "adapt=aimd\nbackoff=linear");
	limiter_hold(a);
	stage_remove(&stage, a);
	assert_int_equal(engine_feedback(&stage.engine, a, &outcome, 1, 0), -ENODEV);
	limiter_drop(a);
	stage_close(&stage);
}

static void test_errors_change_no_rate_and_make_no_pause(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd\nbackoff=linear");
	hear(&stage, a, OUTCOME_ERROR, 1000, 0, 0);
	assert_true(isinf(rate_of(a)));
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	stage_close(&stage);
}

static void test_pause_grants_nothing_and_ends_for_waiters(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5\nbackoff=exponential initial=2s");
	throttle(&stage, a, SEC);
	assert_int_equal(stage_try(&stage, a, 1, SEC), -EBUSY);
	assert_int_equal(stage_ask_within(&stage, &first, a, 1, SEC, SEC), -EAGAIN);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, SEC), 2 * SEC);
	assert_int_equal(stage_ask(&stage, &first, a, 1, SEC), WAITING);
	assert_int_equal(stage_ask(&stage, &second, a, 1, SEC), WAITING);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(first.done_ns, 3 * SEC);
	assert_int_equal(second.done_ns, 3 * SEC);
	stage_close(&stage);
}

static void test_longer_pause_keeps_waiters_longer(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=exponential initial=2s jitter=0");
	throttle(&stage, a, 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	hear(&stage, a, OUTCOME_THROTTLED, 1, 5 * SEC, SEC);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(guest.done_ns, 6 * SEC);
	stage_close(&stage);
}

static void test_a_pause_keeps_a_waiter_that_lacks_a_token_above_alone(void **state)
{
	struct limiter *parent, *child;
	struct stage stage;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	parent = stage_make(&stage, NULL, "parent", "rate=1/s");
	child = stage_make(&stage, parent, "child", "backoff=exponential initial=20s jitter=0");
	assert_int_equal(stage_try(&stage, parent, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, child, 1, 0), WAITING);
	throttle(&stage, child, SEC / 2);
	stage_run(&stage, MIN);
	assert_int_equal(guest.done_ns, 20 * SEC + SEC / 2);
	stage_close(&stage);
}

static void test_a_very_long_retry_after_lasts_until_retry_max(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=exponential max=5s retry-max=10s");
	hear(&stage, a, OUTCOME_THROTTLED, 1, UINT64_C(315360000) * SEC, 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	stage_run(&stage, MIN);
	assert_int_equal(guest.done_ns, 10 * SEC);
	stage_close(&stage);
}

static void test_a_pause_is_over_when_backoff_is_none_or_shorter(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=exponential initial=1min");
	throttle(&stage, a, 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	stage_write(&stage, a, "backoff=exponential initial=2s max=5s", SEC);
	assert_int_equal(guest.waiter.outcome, WAITING);
	stage_run(&stage, 6 * SEC);
	assert_int_equal(guest.done_ns, 6 * SEC);
	throttle(&stage, a, 7 * SEC);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 7 * SEC), WAITING);
	stage_write(&stage, a, "backoff=none", 8 * SEC);
	assert_int_equal(guest.done_ns, 8 * SEC);
	stage_close(&stage);
}

static void test_a_pause_above_holds_those_below_in_order(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *c;
	struct guest guests[4];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=linear initial=3s");
	b = stage_make(&stage, a, "b", NULL);
	c = stage_make(&stage, a, "c", NULL);
	throttle(&stage, a, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], i % 2 ? b : c, 1, i * MS), WAITING);
	stage_run(&stage, 10 * SEC);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(guests[i].done_ns, 3 * SEC);
		assert_int_equal(guests[i].place, i + 1);
	}
	stage_close(&stage);
}

static void test_pollers_are_called_when_a_pause_is_over(void **state)
{
	struct poller poller;
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=linear initial=3s");
	b = stage_make(&stage, a, "b", NULL);
	throttle(&stage, b, 0);
	assert_false(stage_poll(&stage, &poller, b, 1, 0));
	engine_run(&stage.engine, 2 * SEC);
	assert_int_equal(poller.state, POLLER_WAITS);
	assert_int_equal(engine_next_ns(&stage.engine), 3 * SEC);
	stage_run(&stage, 3 * SEC);
	assert_true(stage_fetch(&stage, &poller, 3 * SEC));
	stage_close(&stage);
}

static void test_pollers_are_called_at_once_when_backoff_is_none(void **state)
{
	struct poller poller;
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "backoff=linear initial=1min");
	b = stage_make(&stage, a, "b", NULL);
	throttle(&stage, a, 0);
	assert_false(stage_poll(&stage, &poller, b, 1, 0));
	stage_write(&stage, a, "backoff=none", SEC);
	assert_true(stage_fetch(&stage, &poller, SEC));
	stage_close(&stage);
}

static void test_a_poller_below_a_closed_limiter_sees_it_opened(void **state)
{
	struct poller poller;
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "enforcement=closed");
	b = stage_make(&stage, a, "b", "rate=10/s\nadapt=aimd");
	throttle(&stage, b, 0);
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = 1000}, 0), 0);
	assert_false(stage_poll(&stage, &poller, b, 1, 0));
	/* A look at whether to grow was due meanwhile. */
	stage_write(&stage, a, "enforcement=enforce", 10 * SEC);
	assert_int_equal(poller.state, POLLER_WAITS);
	stage_run(&stage, 1000 * SEC);
	assert_int_equal(b->counters[COUNTER_GRANTED], 1);
	assert_int_equal(poller.state, POLLER_AWAY);
	stage_close(&stage);
}

static void test_waiting_readers_feel_the_rate_fall_and_grow(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[40];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=20/s\nadapt=aimd increase=2/s");
	throttle(&stage, a, 0);
	assert_rate(a, 10);
	for (int i = 0; i < 40; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	stage_run(&stage, SEC);
	/* Nothing was saved up at the new rate. */
	assert_int_equal(guests[0].done_ns, 100 * MS);
	assert_int_equal(guests[9].waiter.outcome, 0);
	assert_int_equal(guests[10].waiter.outcome, WAITING);
	stage_run(&stage, MIN);
	/* At 10/s it would have been 4 s. */
	assert_int_equal(guests[39].waiter.outcome, 0);
	assert_true(guests[39].done_ns < 3800 * MS);
	stage_close(&stage);
}

static void test_one_large_take_is_woken_by_growth(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\nadapt=aimd increase=10/s");
	assert_int_equal(work(&stage, a, 10 * SEC), 1001);
	throttle(&stage, a, 10 * SEC);
	assert_rate(a, 50);
	assert_int_equal(stage_ask(&stage, &guest, a, 400, 10 * SEC), WAITING);
	stage_run(&stage, MIN);
	assert_true(guest.done_ns < 17900 * MS);
	stage_close(&stage);
}

static void test_a_burst_of_throttlings_counts_once_a_period(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=64/s\nadapt=aimd");
	for (uint64_t i = 0; i < 1000; i++)
		hear(&stage, a, OUTCOME_THROTTLED, 100, 0, SEC + i * MS);
	assert_rate(a, 32);
	throttle(&stage, a, 2 * SEC);
	assert_rate(a, 16);
	stage_close(&stage);
}

static void test_an_idle_limiter_does_not_drift(void **state)
{
	static const char *const kinds[] = {"rate=100/s\nadapt=aimd increase=50%",
					    "rate=100/s\nadapt=cubic scale=100"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct stage stage;
		struct limiter *a;
		double before;

		stage_open(&stage);
		a = stage_make(&stage, NULL, "a", kinds[i]);
		work(&stage, a, 10 * SEC);
		throttle(&stage, a, 10 * SEC);
		before = rate_of(a);
		/* Nothing is done from now on; earlier work does not count. */
		stage_run(&stage, 11 * SEC);
		engine_refresh(&stage.engine, a, 11 * SEC);
		assert_rate(a, before);
		for (uint64_t t = 12; t < 4000; t += 7) {
			engine_refresh(&stage.engine, a, t * SEC);
			if (!(t % 3))
				(void)stage_try(&stage, a, 1, t * SEC);
		}
		assert_rate(a, before);
		stage_close(&stage);
	}
}

static void test_time_before_the_work_began_does_not_count_for_its_rate(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "adapt=aimd");
	/* 100/s for a second, and again half an hour later. */
	for (uint64_t began = 7 * SEC; began < 3600 * SEC; began += 1800 * SEC) {
		for (uint64_t i = 0; i < 100; i++) {
			engine_run(&stage.engine, began + i * 10 * MS);
			(void)stage_try(&stage, a, 1, began + i * 10 * MS);
			hear(&stage, a, OUTCOME_OK, 1, 0, began + i * 10 * MS);
		}
		throttle(&stage, a, began + SEC);
		assert_true(rate_of(a) > 90 && rate_of(a) < 110);
		stage_write(&stage, a, "adapt=none", began + SEC);
		stage_write(&stage, a, "adapt=aimd", began + SEC);
	}
	stage_close(&stage);
}

static void test_time_in_pauses_does_not_count_for_the_rate_of_work(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "adapt=aimd\nbackoff=linear initial=5s max=5s");
	/* Short bursts at 100/s, each answered by a pause. */
	for (uint64_t began = 10 * SEC; began < 20 * SEC; began += 5300 * MS) {
		for (uint64_t i = 0; i < 20; i++)
			assert_int_equal(stage_try(&stage, a, 1, began + i * 10 * MS), 0);
		throttle(&stage, a, began + 200 * MS);
	}
	assert_true(rate_of(a) > 50 && rate_of(a) < 200);
	stage_close(&stage);
}

static void test_growth_comes_back_to_the_rate_that_is_set_and_ends_there(void **state)
{
	static const char *const kinds[] = {"rate=50/s\nadapt=aimd increase=10%",
					    "rate=50/s\nadapt=cubic"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct stage stage;
		struct limiter *a;
		uint64_t taken;

		stage_open(&stage);
		a = stage_make(&stage, NULL, "a", kinds[i]);
		work(&stage, a, 10 * SEC);
		throttle(&stage, a, 10 * SEC);
		assert_true(rate_of(a) < 40);
		work(&stage, a, 3 * MIN);
		assert_true(isinf(rate_of(a)));
		taken = work(&stage, a, 4 * MIN);
		assert_in_range(taken, 2999, 3001);
		stage_close(&stage);
	}
}

static void test_a_limit_of_its_own_above_another_does_not_loosen_that(void **state)
{
	struct stage stage;
	struct limiter *a;
	uint64_t taken;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=50/s 60/min:60\nadapt=aimd");
	throttle(&stage, a, 0);
	/* The least limit is 1/s: so is min. */
	assert_rate(a, 1);
	taken = work(&stage, a, 10 * MIN);
	assert_true(taken <= 660);
	stage_close(&stage);
}

static void test_with_an_interval_what_is_learnt_comes_in_batches(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[25];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=20/s\nrelease_interval=1s\nadapt=aimd increase=1/d");
	throttle(&stage, a, 0);
	assert_rate(a, 10);
	for (int i = 0; i < 25; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	stage_run(&stage, 3500 * MS);
	for (int i = 0; i < 25; i++)
		assert_int_equal(guests[i].done_ns, SEC * (uint64_t)(1 + i / 10));
	stage_close(&stage);
}

static void test_an_idle_limiter_saves_up_its_burst_at_the_learnt_rate(void **state)
{
	struct stage stage;
	struct limiter *a;
	unsigned int tokens = 0;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=20/s\nburst=7\nadapt=aimd");
	throttle(&stage, a, 0);
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	while (!stage_try(&stage, a, 1, MIN))
		tokens++;
	assert_int_equal(tokens, 7);
	stage_close(&stage);
}

static void test_charge_is_work_and_owed_to_the_learnt_rate(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "adapt=aimd");
	/* 20 calls of 50 each in a second. */
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(stage_try(&stage, a, 1, i * 50 * MS), 0);
		assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 49},
					       i * 50 * MS),
				 0);
		hear(&stage, a, OUTCOME_OK, 1, 0, i * 50 * MS);
	}
	throttle(&stage, a, SEC);
	assert_true(rate_of(a) > 900 && rate_of(a) <= 1000);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 5000}, SEC), 0);
	assert_true(engine_eta(&stage.engine, a, 1, NULL, SEC) > 5 * SEC);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -5000}, SEC),
			 0);
	assert_true(engine_eta(&stage.engine, a, 1, NULL, SEC) < 10 * MS);
	stage_close(&stage);
}

static void test_a_parent_learns_from_what_its_children_do(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *c;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "adapt=aimd");
	b = stage_make(&stage, a, "b", "rate=60/s");
	c = stage_make(&stage, a, "c", "rate=40/s");
	for (uint64_t t = 100 * MS; t <= 2 * SEC; t += 100 * MS) {
		work(&stage, b, t);
		/* The settings of one burst: 10/s. */
		work(&stage, c, t);
	}
	/* Work is known within two seconds. */
	throttle(&stage, b, 2 * SEC);
	assert_true(rate_of(a) > 60 && rate_of(a) < 80);
	assert_true(isinf(rate_of(b)));
	stage_close(&stage);
}

static void test_modes_that_grant_at_once_count_what_would_have_paused(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "enforcement=shadow\nbackoff=linear initial=3s");
	throttle(&stage, a, 0);
	assert_int_equal(stage_try(&stage, a, 5, SEC), 0);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 5);
	assert_int_equal(stage_try(&stage, a, 5, 3 * SEC), 0);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 5);
	/* A learnt rate is shadowed likewise. */
	stage_write(&stage, a, "rate=10/s\nadapt=aimd\nbackoff=none", 3 * SEC);
	throttle(&stage, a, 4 * SEC);
	assert_int_equal(stage_try(&stage, a, 1, 4 * SEC), 0);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 6);
	stage_write(&stage, a, "enforcement=open", 4 * SEC);
	assert_int_equal(stage_try(&stage, a, 100, 4 * SEC), 0);
	stage_write(&stage, a, "enforcement=closed", 5 * SEC);
	assert_int_equal(stage_try(&stage, a, 0, 100 * SEC), -EBUSY);
	stage_write(&stage, a, "enforcement=enforce", 100 * SEC);
	assert_int_equal(stage_try(&stage, a, 1, 101 * SEC), 0);
	stage_close(&stage);
}

static void test_adapt_none_forgets_and_lets_go_at_once(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=cubic");
	throttle(&stage, a, 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	stage_write(&stage, a, "adapt=none", 10 * MS);
	assert_int_equal(guest.done_ns, 10 * MS);
	/* Begun anew, nothing is known. */
	stage_write(&stage, a, "adapt=cubic", 20 * MS);
	assert_true(isinf(rate_of(a)));
	stage_close(&stage);
}

static void test_other_parameters_keep_what_was_learnt_within_their_bounds(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\nadapt=aimd");
	throttle(&stage, a, 0);
	assert_rate(a, 50);
	stage_write(&stage, a, "adapt=aimd decrease=0.3", 0);
	assert_rate(a, 50);
	stage_write(&stage, a, "adapt=aimd min=70/s", 0);
	assert_rate(a, 70);
	stage_write(&stage, a, "rate=60/s", 0);
	assert_true(isinf(rate_of(a)));
	stage_write(&stage, a, "adapt=cubic", 0);
	assert_true(isinf(rate_of(a)));
	stage_close(&stage);
}

static void test_a_rate_of_0_in_between_leaves_no_trace(void **state)
{
	struct stage stage;
	struct limiter *a;
	uint64_t taken;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\nadapt=aimd\nburst=5");
	work(&stage, a, 10 * SEC);
	/* An operator stops it; answers to earlier calls still come. */
	stage_write(&stage, a, "rate=0", 10 * SEC);
	throttle(&stage, a, 10 * SEC);
	stage_run(&stage, MIN);
	throttle(&stage, a, MIN);
	stage_write(&stage, a, "rate=100/s", MIN);
	taken = work(&stage, a, 3 * MIN);
	assert_true(taken > 6000);
	stage_close(&stage);
}

static void test_learnt_values_go_with_the_limiter(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	/* The sanitizers see to it. */
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd\nbackoff=exponential");
	stage_remove(&stage, a);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd\nbackoff=exponential");
	stage.answer = -EIO;
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "adapt=cubic", 0), -EIO);
	assert_int_equal(stage_change(&stage, stage.engine.tree.root, CHANGE_MAKE, "b", 0), -EIO);
	stage.answer = 0;
	a = stage_make(&stage, NULL, "c", NULL);
	stage.answer = -EIO;
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "adapt=cubic", 0), -EIO);
	assert_null(a->learning);
	stage_close(&stage);
}

static void test_two_refused_writes_leave_adapt_and_backoff_alone(void **state)
{
	struct settings before, after;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd min=2/s\nbackoff=linear");
	before = *limiter_settings(a);
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "adapt=cubic\nbackoff=loud", 0),
			 -EINVAL);
	assert_int_equal(
		stage_change(&stage, a, CHANGE_SETTINGS, "backoff=none\nadapt=aimd min=0", 0),
		-ERANGE);
	after = *limiter_settings(a);
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_true(setting_equal((enum setting_id)id, &before, &after));
	stage_close(&stage);
}

static void test_a_pause_goes_on_while_other_settings_change(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nbackoff=linear initial=10s");
	throttle(&stage, a, 0);
	stage_write(&stage, a, "rate=max", SEC);
	stage_write(&stage, a, "burst=100", 2 * SEC);
	stage_write(&stage, a, "adapt=aimd", 3 * SEC);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 3 * SEC), WAITING);
	stage_run(&stage, MIN);
	assert_int_equal(guest.done_ns, 10 * SEC);
	stage_close(&stage);
}

static void test_waiter_that_gives_up_in_a_pause_frees_those_behind(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nadapt=aimd\nbackoff=linear initial=2s");
	throttle(&stage, a, 0);
	assert_int_equal(stage_ask(&stage, &first, a, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, a, 1, 0), WAITING);
	engine_cancel(&stage.engine, &first.waiter);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(second.done_ns, 2 * SEC);
	stage_close(&stage);
}

/* The rate that is shown is the one in force. */
static void test_stat_shows_what_was_learnt(void **state)
{
	char text[STAT_TEXT];
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=100/s\nadapt=aimd\nbackoff=linear initial=1500ms after=1");
	throttle(&stage, a, 0);
	hear(&stage, a, OUTCOME_OK, 2, 0, 2 * SEC);
	engine_refresh(&stage.engine, a, 2 * SEC);
	(void)stat_print(a, text);
	assert_non_null(
		strstr(text, "\nok 2\nthrottled 1\nerror 0\nbackoff_up 1\nbackoff_down 1\n"));
	assert_non_null(strstr(text, "\nrate 100\neffective_rate 50\n"));
	assert_non_null(strstr(text, "\nbackoff_paused_seconds 1.500000000\n"));
	assert_non_null(strstr(text, "\nbackoff_seconds 0\n"));
	throttle(&stage, a, 3 * SEC);
	(void)stat_print(a, text);
	assert_non_null(strstr(text, "\nbackoff_seconds 1.5\n"));
	stage_close(&stage);
}

/* As where the answer of the source is lost, and the settings are read before it is known. */
static void test_a_change_that_is_stored_late_keeps_what_was_learnt_meanwhile(void **state)
{
	struct change change = {
		.kind = CHANGE_SETTINGS, .setting = SETTING_ADAPT, .text = "aimd increase=10/s"};
	const struct learning *learning;
	struct stage stage;
	uint32_t altered;

	(void)state;
	stage_open(&stage);
	change.limiter = stage_make(&stage, NULL, "a", "rate=100/s");
	stage.later = true;
	change_begin(&stage.engine, &change, 0);
	assert_int_equal(
		change_apply_settings(&stage.engine, change.limiter, &change.settings, &altered),
		0);
	learning = change.limiter->learning;
	assert_non_null(learning);
	work(&stage, change.limiter, SEC);
	throttle(&stage, change.limiter, SEC);
	assert_rate(change.limiter, 50);
	change_stored(&stage.engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &change);
	assert_ptr_equal(change.limiter->learning, learning);
	assert_rate(change.limiter, 50);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_limiter_that_does_not_learn_counts_outcomes_all_the_same),
		cmocka_unit_test(
			test_feedback_of_a_child_is_feedback_of_all_above_and_of_none_beside),
		cmocka_unit_test(test_feedback_to_a_limiter_that_is_gone_is_ENODEV),
		cmocka_unit_test(test_errors_change_no_rate_and_make_no_pause),
		cmocka_unit_test(test_pause_grants_nothing_and_ends_for_waiters),
		cmocka_unit_test(test_longer_pause_keeps_waiters_longer),
		cmocka_unit_test(test_a_pause_keeps_a_waiter_that_lacks_a_token_above_alone),
		cmocka_unit_test(test_a_very_long_retry_after_lasts_until_retry_max),
		cmocka_unit_test(test_a_pause_is_over_when_backoff_is_none_or_shorter),
		cmocka_unit_test(test_a_pause_above_holds_those_below_in_order),
		cmocka_unit_test(test_pollers_are_called_when_a_pause_is_over),
		cmocka_unit_test(test_pollers_are_called_at_once_when_backoff_is_none),
		cmocka_unit_test(test_a_poller_below_a_closed_limiter_sees_it_opened),
		cmocka_unit_test(test_waiting_readers_feel_the_rate_fall_and_grow),
		cmocka_unit_test(test_one_large_take_is_woken_by_growth),
		cmocka_unit_test(test_a_burst_of_throttlings_counts_once_a_period),
		cmocka_unit_test(test_an_idle_limiter_does_not_drift),
		cmocka_unit_test(test_time_before_the_work_began_does_not_count_for_its_rate),
		cmocka_unit_test(test_time_in_pauses_does_not_count_for_the_rate_of_work),
		cmocka_unit_test(test_growth_comes_back_to_the_rate_that_is_set_and_ends_there),
		cmocka_unit_test(test_a_limit_of_its_own_above_another_does_not_loosen_that),
		cmocka_unit_test(test_with_an_interval_what_is_learnt_comes_in_batches),
		cmocka_unit_test(test_an_idle_limiter_saves_up_its_burst_at_the_learnt_rate),
		cmocka_unit_test(test_charge_is_work_and_owed_to_the_learnt_rate),
		cmocka_unit_test(test_a_parent_learns_from_what_its_children_do),
		cmocka_unit_test(test_modes_that_grant_at_once_count_what_would_have_paused),
		cmocka_unit_test(test_adapt_none_forgets_and_lets_go_at_once),
		cmocka_unit_test(test_other_parameters_keep_what_was_learnt_within_their_bounds),
		cmocka_unit_test(test_a_rate_of_0_in_between_leaves_no_trace),
		cmocka_unit_test(test_learnt_values_go_with_the_limiter),
		cmocka_unit_test(test_two_refused_writes_leave_adapt_and_backoff_alone),
		cmocka_unit_test(test_a_pause_goes_on_while_other_settings_change),
		cmocka_unit_test(test_waiter_that_gives_up_in_a_pause_frees_those_behind),
		cmocka_unit_test(test_stat_shows_what_was_learnt),
		cmocka_unit_test(test_a_change_that_is_stored_late_keeps_what_was_learnt_meanwhile),
	};

	return cmocka_run_group_tests_name("learning", tests, NULL, NULL);
}
