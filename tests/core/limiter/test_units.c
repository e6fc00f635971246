/* Units: takes of several amounts, each from the limits of its unit, all at one instant. */
#include "tests/core/stage.h"

#include "core/limiter/learning.h"

/* A reader that asks for several amounts. */
struct caller {
	struct guest guest; /* first */
	struct amounts amounts;
};

/* Asks for what @text says, a name of a take. */
static int ask(struct stage *stage, struct caller *caller, struct limiter *limiter,
	       const char *text, uint64_t now_ns)
{
	struct waiter *waiter = &caller->guest.waiter;

	*caller = (struct caller){.guest = {.waiter = {.limiter = limiter, .outcome = WAITING}}};
	assert_int_equal(amounts_parse_take(text, &waiter->tokens, &waiter->most, &caller->amounts),
			 0);
	waiter->amounts = caller->amounts.count ? &caller->amounts : NULL;
	return engine_ask(&stage->engine, waiter, NEVER_NS, now_ns);
}

static int charge(struct stage *stage, struct limiter *limiter, const char *text, uint64_t now_ns)
{
	struct charge parsed;

	assert_int_equal(amounts_parse_charge(text, &parsed), 0);
	return engine_charge(&stage->engine, limiter, &parsed, now_ns);
}

/* Returns the tokens in bucket @i. */
static int64_t level(const struct limiter *limiter, uint32_t i)
{
	return limiter->buckets[i].level;
}

static void test_a_take_has_all_of_its_amounts_or_none(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller one, two, three;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100");
	assert_int_equal(ask(&stage, &one, a, "2,x=60", 0), 0);
	assert_int_equal(ask(&stage, &two, a, "1,x=60", 0), WAITING);
	assert_int_equal(level(a, 0), 3);
	assert_int_equal(level(a, 1), 40);
	assert_int_equal(ask(&stage, &three, a, "1", 0), WAITING);
	stage_run(&stage, 3 * SEC);
	assert_int_equal(two.guest.done_ns, 2 * SEC);
	assert_int_equal(three.guest.done_ns, 2 * SEC);
	assert_int_equal(a->counters[COUNTER_GRANTED], 4);
	assert_int_equal(units_counts(a)->of[1].granted, 120);
	assert_int_equal(units_counts(a)->of[1].wanted, 0);
	stage_close(&stage);
}

static void test_each_limit_of_a_unit_counts(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=x=10/s:100 x=1/s:5");
	assert_int_equal(ask(&stage, &caller, a, "x=7", 0), WAITING);
	stage_run(&stage, 3 * SEC);
	assert_int_equal(caller.guest.done_ns, 2 * SEC);
	assert_int_equal(units_counts(a)->of[0].granted, 7);
	stage_close(&stage);
}

static void test_units_are_taken_from_all_limiters_that_have_them(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=x=10/s:100");
	b = stage_make(&stage, a, "b", "rate=1/s:5 y=10/s:9");
	assert_int_equal(ask(&stage, &caller, b, "1,x=60,y=4", 0), 0);
	assert_int_equal(level(a, 0), 40);
	assert_int_equal(level(b, 0), 4);
	assert_int_equal(level(b, 1), 5);
	assert_int_equal(a->counters[COUNTER_GRANTED], 1);
	assert_int_equal(ask(&stage, &caller, b, "1,x=60,y=4", 0), WAITING);
	assert_int_equal(units_counts(a)->of[0].wanted, 60);
	engine_cancel(&stage.engine, &caller.guest.waiter);
	assert_int_equal(units_counts(a)->of[0].wanted, 0);
	assert_int_equal(units_counts(b)->of[1].wanted, 0);
	stage_close(&stage);
}

static void test_a_charge_of_units_counts_whole_or_not_at_all(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100");
	assert_int_equal(ask(&stage, &caller, a, "2,x=60", 0), 0);
	assert_int_equal(charge(&stage, a, "-1 x=-61", 0), -ERANGE);
	assert_int_equal(charge(&stage, a, "-1 z=1", 0), -EINVAL);
	assert_int_equal(level(a, 0), 3);
	assert_int_equal(level(a, 1), 40);
	assert_int_equal(charge(&stage, a, "-1 x=70", 0), 0);
	assert_int_equal(level(a, 0), 4);
	assert_int_equal(level(a, 1), -30);
	assert_int_equal(charge(&stage, a, "x=-130", 0), 0);
	assert_int_equal(charge(&stage, a, "x=-1", 0), -ERANGE);
	assert_int_equal(level(a, 1), 100);
	assert_int_equal(units_counts(a)->of[1].charged, 70);
	assert_int_equal(units_counts(a)->of[1].returned, 130);
	stage_close(&stage);
}

static void test_a_grant_that_does_not_arrive_gives_its_units_back(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100");
	assert_int_equal(ask(&stage, &caller, a, "2,x=60", 0), 0);
	engine_refund(&stage.engine, a, 2, &caller.amounts, 0);
	assert_int_equal(level(a, 0), 5);
	assert_int_equal(level(a, 1), 100);
	assert_int_equal(units_counts(a)->of[1].granted, 0);
	stage_close(&stage);
}

static void test_a_poller_keeps_its_units_for_a_second(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100");
	assert_int_equal(ask(&stage, &caller, a, "2,x=100", 0), 0);
	assert_int_equal(ask(&stage, &caller, a, "x=0", 0), 0);
	caller.amounts.of[0].tokens = 10;
	poller_init(&poller, a, 0, 0, &caller.amounts);
	assert_false(engine_poll(&stage.engine, &poller, 0));
	stage_run(&stage, SEC);
	assert_int_equal(poller.state, POLLER_CALLED);
	assert_int_equal(units_counts(a)->of[1].polled, 10);
	assert_int_equal(units_counts(a)->of[1].granted, 110);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(poller.state, POLLER_AWAY);
	assert_int_equal(units_counts(a)->of[1].polled, 0);
	assert_int_equal(units_counts(a)->of[1].returned, 10);
	assert_int_equal(level(a, 1), 20);
	/* It wants more than its burst, and is told at once. */
	caller.amounts.of[0].tokens = 101;
	assert_true(engine_poll(&stage.engine, &poller, 2 * SEC));
	stage_close(&stage);
}

static void test_a_poller_may_want_what_an_interval_releases_of_a_unit(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "release_interval=1s\nrate=x=100/s:5");
	(void)ask(&stage, &caller, a, "x=100", 0);
	assert_true(limiter_can_hold(a, 0, &caller.amounts));
	stage_run(&stage, 2 * SEC);
	(void)ask(&stage, &caller, a, "x=101", 2 * SEC);
	assert_false(limiter_can_hold(a, 0, &caller.amounts));
	stage_run(&stage, 5 * SEC);
	stage_close(&stage);
}

static void test_limits_keep_their_tokens_by_their_units(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller, waits;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=x=10/s:100 1/s:5");
	assert_int_equal(ask(&stage, &caller, a, "2,x=60", 0), 0);
	assert_int_equal(ask(&stage, &waits, a, "1,x=99,y=30", 0), WAITING);
	stage_write(&stage, a, "rate=y=20/s:20 2/s:50 x=10/s:100 1/s:7", 0);
	assert_int_equal(a->plain_count, 2);
	assert_int_equal(a->bucket_count, 4);
	assert_int_equal(level(a, 0), 3);  /* of the first one without a name */
	assert_int_equal(level(a, 1), 7);  /* new */
	assert_int_equal(level(a, 2), 20); /* y is new */
	assert_int_equal(level(a, 3), 40);
	assert_int_equal(units_counts(a)->of[2].wanted, 30);
	assert_int_equal(units_counts(a)->of[3].wanted, 99);
	assert_int_equal(units_counts(a)->of[3].granted, 60);
	stage_write(&stage, a, "rate=1/s:5", 0);
	assert_null(units_counts(a));
	assert_int_equal(waits.guest.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_a_forecast_has_the_units_of_readers_before(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller one, two;
	struct amounts amounts = {.count = 1, .of = {{.unit = "x", .tokens = 5}}};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100");
	assert_int_equal(ask(&stage, &one, a, "1,x=100", 0), 0);
	assert_int_equal(engine_eta(&stage.engine, a, 1, &amounts, 0), 500 * MS);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, 0), 0);
	assert_int_equal(ask(&stage, &two, a, "1,x=20", 0), WAITING);
	assert_int_equal(engine_eta(&stage.engine, a, 1, &amounts, 0), 2500 * MS);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, 0), 2 * SEC);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, SEC), SEC);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(two.guest.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_in_shadow_units_are_taken_if_all_is_there(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s:5 x=10/s:100\nenforcement=shadow");
	assert_int_equal(ask(&stage, &caller, a, "2,x=60", 0), 0);
	assert_int_equal(ask(&stage, &caller, a, "2,x=60", 0), 0);
	assert_int_equal(level(a, 0), 3);
	assert_int_equal(level(a, 1), 40);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 2);
	assert_int_equal(units_counts(a)->of[1].granted, 120);
	stage_close(&stage);
}

static void test_partitions_have_a_share_of_each_unit(void **state)
{
	struct stage stage;
	struct limiter *a, *part;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=4/s:8 x=40/s:100\npartitions.count=4");
	part = partition_get(&stage.engine.schedule, a, 1, 0);
	assert_non_null(part);
	assert_int_equal(level(part, 0), 2);
	assert_int_equal(level(part, 1), 25);
	assert_int_equal(ask(&stage, &caller, part, "1,x=30", 0), WAITING);
	stage_run(&stage, SEC);
	assert_int_equal(caller.guest.done_ns, 500 * MS);
	assert_int_equal(units_counts(a)->of[1].granted, 30);
	stage_write(&stage, a, "rate=x=40/s:100", SEC);
	assert_int_equal(part->plain_count, 0);
	assert_int_equal(units_counts(part)->of[0].granted, 30);
	stage_close(&stage);
}

static void test_a_take_without_a_name_has_its_turns_by_its_first_unit(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *c;
	struct caller of_b[30], of_c[30];
	unsigned int served_b = 0, served_c = 0;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=x=10/s:1");
	b = stage_make(&stage, a, "b", NULL);
	c = stage_make(&stage, a, "c", NULL);
	for (int i = 0; i < 30; i++) {
		ask(&stage, &of_b[i], b, "x=3", 0);
		ask(&stage, &of_c[i], c, "x=1", 0);
	}
	stage_run(&stage, 2900 * MS);
	for (int i = 0; i < 30; i++) {
		served_b += of_b[i].guest.waiter.outcome == 0;
		served_c += of_c[i].guest.waiter.outcome == 0;
	}
	/* 30 of x: about a half each. */
	assert_in_range(served_b * 3, 12, 18);
	assert_in_range(served_c, 12, 18);
	stage_write(&stage, a, "rate=max", 2900 * MS);
	stage_close(&stage);
}

/* Tells @limiter what @text says. */
static int tell(struct stage *stage, struct limiter *limiter, const char *text, uint64_t now_ns)
{
	struct outcome outcomes[4];
	char error[ERROR_TEXT];
	size_t count = 0;

	while (!feedback_parse(&text, &outcomes[count], error))
		count++;
	return engine_feedback(&stage->engine, limiter, outcomes, count, now_ns);
}

static void test_a_quota_of_a_unit_binds_its_takes_alone(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller one, two, three;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s:10 x=100/s:1000");
	assert_int_equal(tell(&stage, a, "200 unit=x remaining=60 reset=30s", SEC), 0);
	assert_int_equal(ask(&stage, &one, a, "1,x=40", SEC), 0);
	assert_int_equal(ask(&stage, &two, a, "1", SEC), 0);
	assert_int_equal(ask(&stage, &three, a, "x=21", SEC), WAITING);
	assert_int_equal(charge(&stage, a, "x=-1", 2 * SEC), 0);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(three.guest.done_ns, 2 * SEC);
	/* The unit without a name has another one. */
	assert_int_equal(tell(&stage, a, "quota remaining=0 reset=9s", 2 * SEC), 0);
	assert_int_equal(ask(&stage, &two, a, "1", 2 * SEC), WAITING);
	stage_run(&stage, 20 * SEC);
	assert_int_equal(two.guest.done_ns, 11 * SEC);
	assert_int_equal(ask(&stage, &one, a, "1,x=1", 30 * SEC + 1), WAITING);
	stage_run(&stage, 40 * SEC);
	assert_int_equal(one.guest.done_ns, 31 * SEC);
	stage_close(&stage);
}

static void test_a_quota_of_a_unit_that_is_not_there_is_refused_with_all(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=x=100/s:1000");
	b = stage_make(&stage, a, "b", "rate=10/s:10");
	assert_int_equal(tell(&stage, a, "ok\nquota unit=x remaining=0 reset=1h\nok unit=y", 0),
			 -EINVAL);
	assert_int_equal(a->counters[COUNTER_OK], 0);
	assert_null(a->learning);
	/* A unit above is not its own. */
	assert_int_equal(tell(&stage, b, "ok unit=x remaining=1 reset=1s", 0), -EINVAL);
	assert_int_equal(ask(&stage, &caller, b, "1,x=900", 0), 0);
	stage_close(&stage);
}

static void test_a_quota_goes_with_its_unit(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct caller caller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s:10 x=100/s:100 y=1/s:9");
	assert_int_equal(tell(&stage, a,
			      "ok unit=x remaining=0 reset=1h\nok unit=y remaining=2 reset=1h", 0),
			 0);
	stage_write(&stage, a, "rate=10/s:10 y=1/s:9", 0);
	stage_write(&stage, a, "rate=10/s:10 y=1/s:9 x=100/s:100", 0);
	assert_int_equal(ask(&stage, &caller, a, "1,x=50,y=2", 0), 0);
	assert_int_equal(tell(&stage, a, "ok unit=y remaining=max", 0), 0);
	assert_int_equal(ask(&stage, &caller, a, "y=3", 0), 0);
	/* Of two limits of a unit there is one quota. */
	stage_write(&stage, a, "rate=x=100/s:100 x=10/s:1000", 0);
	assert_int_equal(tell(&stage, a, "ok unit=x remaining=20 reset=1h", 0), 0);
	assert_int_equal(ask(&stage, &caller, a, "x=15", 0), 0);
	assert_int_equal(a->learning->units->of[0].allowances.list[0].left, 5);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_take_has_all_of_its_amounts_or_none),
		cmocka_unit_test(test_each_limit_of_a_unit_counts),
		cmocka_unit_test(test_units_are_taken_from_all_limiters_that_have_them),
		cmocka_unit_test(test_a_charge_of_units_counts_whole_or_not_at_all),
		cmocka_unit_test(test_a_grant_that_does_not_arrive_gives_its_units_back),
		cmocka_unit_test(test_a_poller_keeps_its_units_for_a_second),
		cmocka_unit_test(test_a_poller_may_want_what_an_interval_releases_of_a_unit),
		cmocka_unit_test(test_limits_keep_their_tokens_by_their_units),
		cmocka_unit_test(test_a_forecast_has_the_units_of_readers_before),
		cmocka_unit_test(test_in_shadow_units_are_taken_if_all_is_there),
		cmocka_unit_test(test_partitions_have_a_share_of_each_unit),
		cmocka_unit_test(test_a_take_without_a_name_has_its_turns_by_its_first_unit),
		cmocka_unit_test(test_a_quota_of_a_unit_binds_its_takes_alone),
		cmocka_unit_test(test_a_quota_of_a_unit_that_is_not_there_is_refused_with_all),
		cmocka_unit_test(test_a_quota_goes_with_its_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
