/* Pollers: they have their turn as blocked readers have, and their tokens are kept for a second. */
#include "tests/core/stage.h"

#include "core/limiter/keys.h"

enum { READERS = 3 };

/* A limiter of 10/s that has nothing, with @more settings. */
static struct limiter *make_empty(struct stage *stage, const char *more, uint64_t burst)
{
	char config[64] = "rate=10/s\n";
	struct limiter *limiter;

	strcat(config, more);
	limiter = stage_make(stage, NULL, "a", config);
	assert_int_equal(stage_try(stage, limiter, burst, 0), 0);
	return limiter;
}

static void test_a_poller_has_its_turn_in_order_of_arrival(void **state)
{
	struct guest before, after;
	struct poller poller;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_int_equal(stage_ask(&stage, &before, a, 1, 0), WAITING);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	assert_int_equal(stage_ask(&stage, &after, a, 1, 0), WAITING);
	/* Polling again, it stands where it stood. */
	assert_false(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, 0), 400 * MS);
	stage_run(&stage, 100 * MS);
	assert_int_equal(before.waiter.outcome, 0);
	assert_int_equal(poller.state, POLLER_WAITS);
	engine_run(&stage.engine, 200 * MS);
	assert_ptr_equal(engine_done(&stage.engine), &poller.waiter);
	assert_int_equal(poller.waiter.outcome, 0);
	assert_int_equal(after.waiter.outcome, WAITING);
	assert_true(engine_poll(&stage.engine, &poller, 200 * MS));
	assert_true(stage_fetch(&stage, &poller, 250 * MS));
	assert_false(stage_fetch(&stage, &poller, 250 * MS));
	stage_run(&stage, 300 * MS);
	assert_int_equal(after.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_beside_three_readers_a_poller_gets_a_quarter(void **state)
{
	struct guest readers[READERS];
	struct poller poller;
	struct stage stage;
	struct limiter *a;
	unsigned int polled = 0, read = 0;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	for (int i = 0; i < READERS; i++)
		assert_int_equal(stage_ask(&stage, &readers[i], a, 1, 0), WAITING);
	for (uint64_t now_ns = 100 * MS; now_ns <= 4 * SEC; now_ns += 100 * MS) {
		stage_run(&stage, now_ns);
		if (stage_fetch(&stage, &poller, now_ns)) {
			polled++;
			assert_false(engine_poll(&stage.engine, &poller, now_ns));
		}
		for (int i = 0; i < READERS; i++) {
			if (readers[i].waiter.outcome)
				continue;
			read++;
			assert_int_equal(stage_ask(&stage, &readers[i], a, 1, now_ns), WAITING);
		}
	}
	assert_int_equal(polled, 10);
	assert_int_equal(read, 30);
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	for (int i = 0; i < READERS; i++)
		engine_cancel(&stage.engine, &readers[i].waiter);
	stage_close(&stage);
}

static void test_tokens_of_an_absent_poller_are_the_next_waiters(void **state)
{
	enum { MANY = 12 };
	struct guest readers[MANY];
	struct poller poller;
	struct stage stage;
	struct limiter *a;
	unsigned int served = 0;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "burst=2", 2);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(stage_ask(&stage, &readers[i], a, 1, 0), WAITING);
	stage_run(&stage, 100 * MS + POLLER_NS - 1);
	assert_int_equal(poller.state, POLLER_CALLED);
	for (int i = 0; i < MANY; i++)
		served += !readers[i].waiter.outcome;
	/* No reader waits for the poller. */
	assert_int_equal(served, 9);
	stage_run(&stage, 100 * MS + POLLER_NS);
	assert_int_equal(poller.state, POLLER_AWAY);
	assert_false(stage_fetch(&stage, &poller, 100 * MS + POLLER_NS));
	for (int i = 9; i < 11; i++)
		assert_int_equal(readers[i].waiter.outcome, 0);
	assert_int_equal(readers[11].waiter.outcome, WAITING);
	assert_int_equal(a->counters[COUNTER_RETURNED], 1);
	/* Polling again, it stands at the end. */
	assert_false(engine_poll(&stage.engine, &poller, 1150 * MS));
	stage_run(&stage, 1200 * MS);
	assert_int_equal(readers[11].waiter.outcome, 0);
	assert_int_equal(poller.state, POLLER_WAITS);
	stage_run(&stage, 1300 * MS);
	assert_true(stage_fetch(&stage, &poller, 1300 * MS + POLLER_NS - 1));
	stage_close(&stage);
}

static void test_tokens_that_go_back_never_exceed_the_burst(void **state)
{
	struct guest readers[READERS];
	struct poller poller;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	stage_run(&stage, POLLER_NS);
	assert_int_equal(poller.state, POLLER_CALLED);
	/* The bucket is full: tokens that go back just as one is due find no room. */
	assert_int_equal(stage_try(&stage, a, 1, POLLER_NS), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(stage_ask(&stage, &readers[i], a, 1, POLLER_NS), WAITING);
	stage_run(&stage, 100 * MS + POLLER_NS);
	assert_int_equal(poller.state, POLLER_AWAY);
	assert_int_equal(readers[0].waiter.outcome, 0);
	assert_int_equal(readers[1].waiter.outcome, WAITING);
	stage_run(&stage, 300 * MS + POLLER_NS);
	assert_int_equal(readers[2].waiter.outcome, 0);
	stage_close(&stage);
}

static void test_pollers_that_never_read_save_up_no_more_than_a_second_brings(void **state)
{
	enum { MANY = 60 };
	struct poller pollers[MANY];
	struct stage stage;
	struct limiter *a;
	unsigned int fetched = 0;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "burst=3", 3);
	for (int i = 0; i < MANY; i++)
		assert_false(stage_poll(&stage, &pollers[i], a, 1, 0));
	for (uint64_t now_ns = 50 * MS; now_ns <= 4 * SEC; now_ns += 50 * MS) {
		stage_run(&stage, now_ns);
		for (int i = 0; i < MANY; i++)
			(void)engine_poll(&stage.engine, &pollers[i], now_ns);
	}
	for (int i = 0; i < MANY; i++)
		fetched += stage_fetch(&stage, &pollers[i], 4 * SEC);
	/* The tokens of a second, and the burst. */
	assert_in_range(fetched, 10, 13);
	assert_int_equal(a->polled, 0);
	for (int i = 0; i < MANY; i++)
		engine_unpoll(&stage.engine, &pollers[i], stage.engine.schedule.now_ns);
	stage_close(&stage);
}

static void test_polling_again_gives_no_second_place(void **state)
{
	struct poller poller;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	for (int i = 0; i < 3; i++)
		assert_false(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(a->turns.queue.length, 1);
	assert_int_equal(a->turns.wanted, 1);
	assert_int_equal(a->pollers, 1);
	/* Called, and not told yet, it does not wait once more either. */
	engine_run(&stage.engine, 100 * MS);
	assert_true(engine_poll(&stage.engine, &poller, 100 * MS));
	assert_true(stage_fetch(&stage, &poller, 100 * MS));
	assert_true(engine_poll(&stage.engine, &poller, 100 * MS));
	assert_int_equal(a->turns.queue.length, 0);
	assert_int_equal(stage_collect(&stage), 0);
	assert_false(engine_poll(&stage.engine, &poller, 100 * MS));
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	assert_int_equal(a->pollers, 0);
	stage_close(&stage);
}

static void test_a_poller_that_leaves_makes_way_and_gives_back(void **state)
{
	struct poller poller;
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "burst=3", 3);
	assert_false(stage_poll(&stage, &poller, a, 3, 0));
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	stage_run(&stage, 250 * MS);
	assert_int_equal(guest.waiter.outcome, WAITING);
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	stage_collect(&stage);
	assert_int_equal(guest.waiter.outcome, 0);
	/* Called, but not told: 1.5 tokens are there. */
	assert_false(engine_poll(&stage.engine, &poller, 250 * MS));
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 250 * MS), WAITING);
	engine_run(&stage.engine, 400 * MS);
	assert_int_equal(poller.state, POLLER_CALLED);
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	assert_ptr_equal(engine_done(&stage.engine), &guest.waiter);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(stage_try(&stage, a, 2, 400 * MS), 0);
	stage_close(&stage);
}

static void test_a_try_does_not_overtake_pollers(void **state)
{
	struct poller poller, other;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "burst=3", 3);
	assert_false(stage_poll(&stage, &poller, a, 3, 0));
	stage_run(&stage, 200 * MS);
	assert_int_equal(stage_try(&stage, a, 1, 200 * MS), -EBUSY);
	/*
	 * A token that could be had at once is not kept for a poller, and a reader may be faster.
	 */
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	assert_true(stage_poll(&stage, &other, a, 1, 200 * MS));
	assert_int_equal(other.state, POLLER_AWAY);
	assert_int_equal(stage_try(&stage, a, 2, 200 * MS), 0);
	assert_false(stage_fetch(&stage, &other, 200 * MS));
	assert_false(engine_poll(&stage.engine, &other, 200 * MS));
	engine_unpoll(&stage.engine, &other, stage.engine.schedule.now_ns);
	stage_close(&stage);
}

static void test_a_poller_is_called_when_ancestors_have_tokens(void **state)
{
	struct poller poller, other;
	struct limiter *a, *b, *c;
	struct stage stage;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h");
	b = stage_make(&stage, a, "b", NULL);
	c = stage_make(&stage, a, "c", "rate=100/s\nburst=2");
	assert_int_equal(stage_ask(&stage, &guest, b, 1, 0), 0);
	assert_false(stage_poll(&stage, &poller, c, 1, 0));
	assert_false(
		stage_poll(&stage, &other, partition_get(&stage.engine.schedule, c, 1, 0), 1, 0));
	assert_int_equal(a->pollers, 2);
	engine_refund(&stage.engine, b, 1, NULL, SEC);
	stage_collect(&stage);
	assert_true(stage_fetch(&stage, &poller, SEC));
	assert_int_equal(other.state, POLLER_WAITS);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -1}, SEC), 0);
	stage_collect(&stage);
	assert_true(stage_fetch(&stage, &other, SEC));
	assert_false(engine_poll(&stage.engine, &poller, SEC));
	assert_false(engine_poll(&stage.engine, &other, SEC));
	stage_write(&stage, a, "rate=max", 2 * SEC);
	assert_true(stage_fetch(&stage, &poller, 2 * SEC));
	assert_true(stage_fetch(&stage, &other, 2 * SEC));
	assert_int_equal(a->pollers, 0);
	stage_close(&stage);
}

static void test_a_poller_is_told_when_a_change_makes_its_tokens_more_than_the_burst(void **state)
{
	struct limiter *a, *b, *x, *where[4];
	struct poller small, pollers[4];
	struct stage stage;
	struct key *key;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\nburst=4");
	b = stage_make(&stage, a, "b", "rate=max");
	assert_int_equal(engine_key(&stage.engine, b, "x", 0, 0, &key), 0);
	x = keys_open(&stage.engine.schedule, b, key);
	assert_int_equal(stage_try(&stage, a, 4, 0), 0);
	where[0] = a;
	where[1] = b;
	where[2] = partition_get(&stage.engine.schedule, b, 1, 0);
	where[3] = x;
	assert_false(stage_poll(&stage, &small, a, 3, 0));
	for (int i = 0; i < 4; i++)
		assert_false(stage_poll(&stage, &pollers[i], where[i], 4, 0));
	stage_write(&stage, a, "rate=1/h\nburst=3", 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pollers[i].waiter.outcome, -EINVAL);
		assert_true(engine_poll(&stage.engine, &pollers[i], 0));
		assert_int_equal(pollers[i].state, POLLER_AWAY);
	}
	assert_int_equal(a->pollers, 1);
	stage_run(&stage, 3 * 3600 * SEC);
	assert_true(stage_fetch(&stage, &small, 3 * 3600 * SEC));
	keys_close(&stage.engine.schedule, x);
	stage_close(&stage);
}

static void test_pollers_do_not_keep_a_limiter(void **state)
{
	struct poller waits, called;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	limiter_hold(a);
	assert_false(stage_poll(&stage, &called, a, 1, 0));
	stage_run(&stage, 100 * MS);
	assert_false(stage_poll(&stage, &waits, a, 1, 100 * MS));
	stage_remove(&stage, a);
	assert_int_equal(waits.waiter.outcome, -ENODEV);
	assert_int_equal(waits.state, POLLER_AWAY);
	assert_true(engine_poll(&stage.engine, &waits, 100 * MS));
	assert_false(stage_fetch(&stage, &called, 100 * MS));
	stage_run(&stage, 100 * MS + POLLER_NS);
	assert_int_equal(called.state, POLLER_AWAY);
	limiter_drop(a);
	stage_close(&stage);
}

static void test_a_poller_with_a_time_is_told_when_it_is_up(void **state)
{
	struct poller poller;
	struct expiry expiry;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	poller_init(&poller, a, 1, 1, NULL);
	/* A time that is too short as things stand: a read is refused now. */
	poller_limit(&poller, &expiry, 99 * MS);
	assert_true(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(a->turns.queue.length, 0);
	poller_limit(&poller, &expiry, 100 * MS);
	assert_false(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, 0), 0);
	engine_run(&stage.engine, 100 * MS);
	assert_ptr_equal(engine_done(&stage.engine), &poller.waiter);
	assert_int_equal(poller.waiter.outcome, -EAGAIN);
	assert_int_equal(poller.state, POLLER_AWAY);
	assert_true(engine_poll(&stage.engine, &poller, 100 * MS));
	/* Its tokens are there to be had. */
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -1}, 100 * MS),
			 0);
	assert_int_equal(stage_try(&stage, a, 1, 100 * MS), 0);
	poller.late = false;
	/* One that leaves, or is called, before its time is up is not told again. */
	poller_limit(&poller, &expiry, 100 * MS);
	assert_false(engine_poll(&stage.engine, &poller, 100 * MS));
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	assert_false(engine_poll(&stage.engine, &poller, 110 * MS));
	engine_run(&stage.engine, 200 * MS);
	assert_ptr_equal(engine_done(&stage.engine), &poller.waiter);
	assert_int_equal(poller.waiter.outcome, 0);
	engine_run(&stage.engine, 300 * MS);
	assert_null(engine_done(&stage.engine));
	engine_unpoll(&stage.engine, &poller, stage.engine.schedule.now_ns);
	stage_close(&stage);
}

static void test_tokens_of_a_poller_that_leaves_go_back_as_of_then(void **state)
{
	struct guest guest;
	struct poller poller;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_empty(&stage, "", 1);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	stage_run(&stage, 100 * MS); /* it is called */
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 110 * MS), WAITING);
	engine_unpoll(&stage.engine, &poller, 150 * MS);
	/* The bucket has room for one token: tokens that flowed in since the last step are lost. */
	stage_run(&stage, 150 * MS);
	assert_int_equal(guest.done_ns, 150 * MS);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, 150 * MS), 100 * MS);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_poller_has_its_turn_in_order_of_arrival),
		cmocka_unit_test(test_beside_three_readers_a_poller_gets_a_quarter),
		cmocka_unit_test(test_tokens_of_an_absent_poller_are_the_next_waiters),
		cmocka_unit_test(test_tokens_that_go_back_never_exceed_the_burst),
		cmocka_unit_test(test_pollers_that_never_read_save_up_no_more_than_a_second_brings),
		cmocka_unit_test(test_polling_again_gives_no_second_place),
		cmocka_unit_test(test_a_poller_that_leaves_makes_way_and_gives_back),
		cmocka_unit_test(test_a_try_does_not_overtake_pollers),
		cmocka_unit_test(test_a_poller_is_called_when_ancestors_have_tokens),
		cmocka_unit_test(
			test_a_poller_is_told_when_a_change_makes_its_tokens_more_than_the_burst),
		cmocka_unit_test(test_pollers_do_not_keep_a_limiter),
		cmocka_unit_test(test_a_poller_with_a_time_is_told_when_it_is_up),
		cmocka_unit_test(test_tokens_of_a_poller_that_leaves_go_back_as_of_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
