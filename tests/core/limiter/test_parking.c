/* Tests of parking: interrupted waiters that take their places again. */
#include "tests/core/stage.h"

enum { PLACES = 64, RATE_MS = 100 };

/* A stage on which places are parked, with the limiter l: 10/s, burst 1, nothing left. */
struct yard {
	struct stage stage;
	struct parked_place places[PLACES];
	uint32_t used;
	struct limiter *l;
};

static const struct asker ANN = {.thread = 1, .uid = 7}, BOB = {.thread = 2, .uid = 7};

static void yard_open(struct yard *yard, uint32_t size, const char *config)
{
	stage_open(&yard->stage);
	yard->used = 0;
	parking_init(&yard->stage.engine.schedule.parking, yard->places, size, &yard->used);
	yard->l = stage_make(&yard->stage, NULL, "l", config);
}

static struct limiter *yard_open_empty(struct yard *yard)
{
	yard_open(yard, PLACES, "rate=10/s\nburst=1");
	assert_int_equal(stage_try(&yard->stage, yard->l, 1, 0), 0);
	return yard->l;
}

static void interrupt(struct yard *yard, struct guest *guest, const struct asker *asker,
		      uint64_t now_ns)
{
	engine_interrupt(&yard->stage.engine, &guest->waiter, asker, now_ns);
	stage_collect(&yard->stage);
}

/* As one that may come back asks. */
static int ask_again(struct yard *yard, struct guest *guest, const struct asker *asker,
		     struct limiter *limiter, uint64_t tokens, uint64_t within_ns, uint64_t now_ns)
{
	struct engine *engine = &yard->stage.engine;
	int err;

	*guest = (struct guest){
		.waiter = {.limiter = limiter, .tokens = tokens, .outcome = WAITING}};
	if (within_ns != NEVER_NS)
		guest->waiter.expiry = &guest->expiry;
	engine_return(engine, &guest->waiter, asker, within_ns, now_ns);
	err = engine_ask(engine, &guest->waiter, within_ns, now_ns);
	stage_collect(&yard->stage);
	return err;
}

static int again(struct yard *yard, struct guest *guest, const struct asker *asker, uint64_t now_ns)
{
	return ask_again(yard, guest, asker, yard->l, 1, NEVER_NS, now_ns);
}

/* Two wait in this order, and the first one is interrupted at 10 ms. */
static void interrupt_first(struct yard *yard, struct guest *ann, struct guest *bob)
{
	assert_int_equal(stage_ask(&yard->stage, ann, yard->l, 1, 1 * MS), WAITING);
	assert_int_equal(stage_ask(&yard->stage, bob, yard->l, 1, 2 * MS), WAITING);
	interrupt(yard, ann, &ANN, 10 * MS);
	assert_int_equal(yard->l->turns.queue.length, 1);
}

static void test_a_waiter_that_comes_back_stands_where_it_stood(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	assert_int_equal(again(&yard, &ann, &ANN, 11 * MS), WAITING);
	assert_int_equal(yard.l->turns.queue.length, 2);
	stage_run(&yard.stage, SEC);
	assert_int_equal(ann.done_ns, 100 * MS);
	assert_int_equal(bob.done_ns, 200 * MS);
	stage_close(&yard.stage);
}

static void test_its_time_counts_from_its_first_asking(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	again(&yard, &ann, &ANN, 11 * MS);
	assert_int_equal(ann.waiter.asked_ns, 1 * MS);
	stage_run(&yard.stage, SEC);
	assert_int_equal(yard.l->counters[COUNTER_DELAYED], 99 * MS + 198 * MS);
	assert_int_equal(yard.l->counters[COUNTER_CANCELLED], 1);
	stage_close(&yard.stage);
}

static void test_absent_waiter_holds_up_no_other_and_keeps_its_place(void **state)
{
	struct guest ann, bob, cyd;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	assert_int_equal(stage_ask(&yard.stage, &cyd, yard.l, 1, 20 * MS), WAITING);
	stage_run(&yard.stage, 150 * MS);
	assert_int_equal(bob.done_ns, 100 * MS);
	assert_int_equal(again(&yard, &ann, &ANN, 150 * MS), WAITING);
	stage_run(&yard.stage, SEC);
	assert_int_equal(ann.done_ns, 200 * MS);
	assert_int_equal(cyd.done_ns, 300 * MS);
	stage_close(&yard.stage);
}

static void test_a_waiter_that_comes_back_to_a_token_gets_it_at_once(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	assert_int_equal(stage_ask(&yard.stage, &ann, yard.l, 1, 0), WAITING);
	interrupt(&yard, &ann, &ANN, 50 * MS);
	stage_run(&yard.stage, 500 * MS);
	assert_int_equal(yard.l->counters[COUNTER_GRANTED], 1);
	assert_int_equal(again(&yard, &ann, &ANN, 600 * MS), 0);
	assert_false(parking_has_any(&yard.stage.engine.schedule.parking));
	stage_close(&yard.stage);
}

static void test_a_place_is_gone_after_a_second(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "rate=1/d\nburst=1");
	stage_try(&yard.stage, yard.l, 1, 0);
	interrupt_first(&yard, &ann, &bob);
	assert_int_equal(again(&yard, &ann, &ANN, 10 * MS + PARKING_NS - 1), WAITING);
	assert_ptr_equal(queue_first(&yard.l->turns.queue), &ann.waiter);
	interrupt(&yard, &ann, &ANN, 2 * SEC);
	assert_int_equal(again(&yard, &ann, &ANN, 2 * SEC + PARKING_NS), WAITING);
	assert_ptr_equal(queue_first(&yard.l->turns.queue), &bob.waiter);
	assert_false(parking_has_any(&yard.stage.engine.schedule.parking));
	engine_cancel(&yard.stage.engine, &ann.waiter);
	engine_cancel(&yard.stage.engine, &bob.waiter);
	stage_close(&yard.stage);
}

static void test_asking_twice_gives_one_place(void **state)
{
	struct guest ann, twice, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	again(&yard, &ann, &ANN, 11 * MS);
	assert_int_equal(again(&yard, &twice, &ANN, 12 * MS), WAITING);
	stage_run(&yard.stage, SEC);
	assert_int_equal(ann.done_ns, 100 * MS);
	assert_int_equal(bob.done_ns, 200 * MS);
	assert_int_equal(twice.done_ns, 300 * MS);
	stage_close(&yard.stage);
}

static void test_a_place_ends_with_the_answer(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	again(&yard, &ann, &ANN, 11 * MS);
	stage_run(&yard.stage, 150 * MS);
	assert_int_equal(ann.done_ns, 100 * MS);
	assert_int_equal(again(&yard, &ann, &ANN, 150 * MS), WAITING);
	stage_run(&yard.stage, SEC);
	assert_int_equal(bob.done_ns, 200 * MS);
	assert_int_equal(ann.done_ns, 300 * MS);
	stage_close(&yard.stage);
}

static void test_only_the_same_asker_and_the_same_asking_have_the_place(void **state)
{
	static const struct asker stranger = {.thread = 1, .uid = 8};
	struct guest ann, bob, other[4];
	struct limiter *elsewhere;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	elsewhere = stage_make(&yard.stage, NULL, "elsewhere", "rate=1/d\nburst=1");
	stage_try(&yard.stage, elsewhere, 1, 0);
	interrupt_first(&yard, &ann, &bob);
	assert_int_equal(again(&yard, &other[0], &BOB, 11 * MS), WAITING);
	assert_int_equal(again(&yard, &other[1], &stranger, 11 * MS), WAITING);
	ask_again(&yard, &other[2], &ANN, yard.l, 2, NEVER_NS, 11 * MS);
	ask_again(&yard, &other[3], &ANN, elsewhere, 1, NEVER_NS, 11 * MS);
	assert_ptr_equal(queue_first(&yard.l->turns.queue), &bob.waiter);
	assert_int_equal(again(&yard, &ann, &ANN, 11 * MS), WAITING);
	assert_ptr_equal(queue_first(&yard.l->turns.queue), &ann.waiter);
	for (int i = 0; i < 4; i++)
		engine_cancel(&yard.stage.engine, &other[i].waiter);
	engine_cancel(&yard.stage.engine, &ann.waiter);
	engine_cancel(&yard.stage.engine, &bob.waiter);
	stage_close(&yard.stage);
}

static void test_a_thread_that_is_interrupted_elsewhere_has_lost_its_older_place(void **state)
{
	struct guest ann, bob, there;
	struct limiter *elsewhere;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	elsewhere = stage_make(&yard.stage, NULL, "elsewhere", "rate=1/d\nburst=1");
	stage_try(&yard.stage, elsewhere, 1, 0);
	interrupt_first(&yard, &ann, &bob);
	ask_again(&yard, &there, &ANN, elsewhere, 1, NEVER_NS, 12 * MS);
	interrupt(&yard, &there, &ANN, 13 * MS);
	again(&yard, &ann, &ANN, 14 * MS);
	stage_run(&yard.stage, SEC);
	assert_int_equal(bob.done_ns, 100 * MS);
	assert_int_equal(ann.done_ns, 200 * MS);
	stage_close(&yard.stage);
}

static void test_where_the_thread_is_unknown_the_file_counts_each_time(void **state)
{
	static const struct asker file = {.file = 5, .uid = 7}, other = {.file = 6, .uid = 7};
	struct guest a, b, c, d;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	stage_ask(&yard.stage, &a, yard.l, 1, 1 * MS);
	stage_ask(&yard.stage, &b, yard.l, 1, 2 * MS);
	stage_ask(&yard.stage, &c, yard.l, 1, 3 * MS);
	interrupt(&yard, &a, &file, 4 * MS);
	interrupt(&yard, &b, &file, 5 * MS);
	assert_int_equal(again(&yard, &d, &other, 6 * MS), WAITING);
	assert_int_equal(again(&yard, &a, &file, 7 * MS), WAITING);
	assert_int_equal(again(&yard, &b, &file, 8 * MS), WAITING);
	stage_run(&yard.stage, SEC);
	assert_int_equal(a.done_ns + b.done_ns, 300 * MS);
	assert_int_equal(c.done_ns, 300 * MS);
	assert_int_equal(d.done_ns, 400 * MS);
	stage_close(&yard.stage);
}

static void test_a_limit_on_the_time_counts_from_the_first_asking(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "rate=1/s\nburst=1");
	stage_try(&yard.stage, yard.l, 1, 0);
	assert_int_equal(stage_ask_within(&yard.stage, &ann, yard.l, 1, SEC, 500 * MS), WAITING);
	assert_int_equal(stage_ask(&yard.stage, &bob, yard.l, 1, 501 * MS), WAITING);
	interrupt(&yard, &ann, &ANN, 900 * MS);
	/* The first token is that of the one behind, and the next comes at 2 s. */
	stage_run(&yard.stage, 1200 * MS);
	assert_int_equal(bob.done_ns, SEC);
	assert_int_equal(ask_again(&yard, &ann, &ANN, yard.l, 1, SEC, 1200 * MS), WAITING);
	stage_run(&yard.stage, 3 * SEC);
	assert_int_equal(ann.waiter.outcome, -EAGAIN);
	assert_int_equal(ann.done_ns, 1500 * MS);
	stage_close(&yard.stage);
}

static void test_a_waiter_that_comes_back_too_late_is_refused_though_there_is_a_token(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	stage_ask_within(&yard.stage, &ann, yard.l, 1, 200 * MS, 0);
	interrupt(&yard, &ann, &ANN, 50 * MS);
	assert_int_equal(ask_again(&yard, &ann, &ANN, yard.l, 1, 200 * MS, 400 * MS), -EAGAIN);
	assert_int_equal(yard.l->counters[COUNTER_REFUSED], 1);
	assert_false(parking_has_any(&yard.stage.engine.schedule.parking));
	stage_close(&yard.stage);
}

static void test_asking_with_another_limit_on_the_time_gives_the_place_up(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	assert_int_equal(ask_again(&yard, &ann, &ANN, yard.l, 1, SEC, 11 * MS), WAITING);
	assert_false(parking_has_any(&yard.stage.engine.schedule.parking));
	stage_run(&yard.stage, SEC);
	assert_int_equal(bob.done_ns, 100 * MS);
	assert_int_equal(ann.done_ns, 200 * MS);
	stage_close(&yard.stage);
}

static void test_an_opener_keeps_its_place_and_a_reader_does_not_have_it(void **state)
{
	struct slot slots[3] = {0};
	struct guest ann, bob, reader;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "rate=1/d\nburst=1\nconcurrency=1");
	stage_try(&yard.stage, yard.l, 1, 0);
	assert_int_equal(engine_slot_try(&yard.stage.engine, yard.l, &slots[0], 0), 0);
	ann.waiter = (struct waiter){.limiter = yard.l, .slot = &slots[1], .is_opener = true};
	bob.waiter = (struct waiter){.limiter = yard.l, .slot = &slots[2], .is_opener = true};
	assert_int_equal(engine_slot_open(&yard.stage.engine, &ann.waiter, NEVER_NS, 1), WAITING);
	assert_int_equal(engine_slot_open(&yard.stage.engine, &bob.waiter, NEVER_NS, 2), WAITING);
	interrupt(&yard, &ann, &ANN, 3);
	assert_int_equal(ask_again(&yard, &reader, &ANN, yard.l, 0, NEVER_NS, 4), 0);
	ann.waiter = (struct waiter){.limiter = yard.l, .slot = &slots[1], .is_opener = true};
	assert_true(engine_return(&yard.stage.engine, &ann.waiter, &ANN, NEVER_NS, 5));
	assert_int_equal(engine_slot_open(&yard.stage.engine, &ann.waiter, NEVER_NS, 5), WAITING);
	engine_slot_close(&yard.stage.engine, &slots[0], true, 6);
	stage_collect(&yard.stage);
	assert_int_equal(ann.waiter.outcome, 0);
	assert_int_equal(bob.waiter.outcome, WAITING);
	engine_slot_close(&yard.stage.engine, &slots[1], true, 7);
	stage_collect(&yard.stage);
	engine_slot_close(&yard.stage.engine, &slots[2], true, 8);
	stage_close(&yard.stage);
}

/* Ann's place in @part, where nothing is left, is not one in its parent. */
static void check_part(struct yard *yard, struct limiter *part)
{
	struct guest ann, bob;

	assert_int_equal(stage_ask(&yard->stage, &ann, part, 1, 2), WAITING);
	assert_int_equal(stage_ask(&yard->stage, &bob, part, 1, 3), WAITING);
	interrupt(yard, &ann, &ANN, 4);
	ask_again(yard, &ann, &ANN, part->parent, 1, NEVER_NS, 5);
	assert_true(parking_has_any(&yard->stage.engine.schedule.parking));
	if (ann.waiter.outcome == WAITING && part->parent->turns.queue.length)
		engine_cancel(&yard->stage.engine, &ann.waiter);
	assert_int_equal(ask_again(yard, &ann, &ANN, part, 1, NEVER_NS, 6), WAITING);
	assert_false(parking_has_any(&yard->stage.engine.schedule.parking));
	assert_ptr_equal(queue_first(&part->turns.queue), &ann.waiter);
	engine_cancel(&yard->stage.engine, &ann.waiter);
	engine_cancel(&yard->stage.engine, &bob.waiter);
}

static void test_a_waiter_in_a_key_keeps_its_place_there(void **state)
{
	struct limiter *inflated;
	struct yard yard;
	struct key *key;

	(void)state;
	yard_open(&yard, PLACES, "key_rate=1/d\nkey_burst=1");
	assert_int_equal(engine_key(&yard.stage.engine, yard.l, "k", 0, 0, &key), 0);
	inflated = keys_open(&yard.stage.engine.schedule, yard.l, key);
	assert_int_equal(stage_try(&yard.stage, inflated, 1, 1), 0);
	check_part(&yard, inflated);
	keys_close(&yard.stage.engine.schedule, inflated);
	stage_close(&yard.stage);
}

static void test_a_waiter_in_a_partition_keeps_its_place_there(void **state)
{
	struct limiter *partition;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "rate=4/d\nburst=4\npartitions.count=4");
	partition = partition_get(&yard.stage.engine.schedule, yard.l, 2, 0);
	assert_int_equal(stage_try(&yard.stage, partition, 1, 1), 0);
	check_part(&yard, partition);
	partition_remove_all(&yard.stage.engine.schedule, yard.l);
	stage_close(&yard.stage);
}

/*
 * Interrupts Ann at 500 ms. She wants 10 of a burst of 1, has saved up 5, and would be served at 1
 * s.
 */
static void interrupt_a_large_take(struct yard *yard, struct guest *ann)
{
	yard_open_empty(yard);
	assert_int_equal(stage_ask(&yard->stage, ann, yard->l, 10, 0), WAITING);
	engine_run(&yard->stage.engine, 500 * MS);
	interrupt(yard, ann, &ANN, 500 * MS);
}

static int take_again(struct yard *yard, struct guest *ann, uint64_t now_ns)
{
	return ask_again(yard, ann, &ANN, yard->l, 10, NEVER_NS, now_ns);
}

static void test_savings_are_there_when_their_waiter_is_back(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	interrupt_a_large_take(&yard, &ann);
	for (unsigned int i = 0; i < 5; i++) {
		uint64_t now_ns = 510 * MS + i * 10 * MS;

		assert_int_equal(take_again(&yard, &ann, now_ns), WAITING);
		interrupt(&yard, &ann, &ANN, now_ns);
	}
	assert_int_equal(take_again(&yard, &ann, 600 * MS), WAITING);
	stage_run(&yard.stage, 2 * SEC);
	/*
	 * No other reader was there, so all that is lost is the tokens beyond one that came in
	 * while she was away.
	 */
	assert_in_range(ann.done_ns, SEC, SEC + 100 * MS);
	stage_close(&yard.stage);
}

static void test_others_have_of_a_bucket_what_is_not_set_aside(void **state)
{
	struct guest ann, bob, cyd;
	struct yard yard;

	(void)state;
	interrupt_a_large_take(&yard, &ann);
	assert_int_equal(stage_ask(&yard.stage, &bob, yard.l, 1, 500 * MS), 0);
	assert_int_equal(stage_ask(&yard.stage, &cyd, yard.l, 1, 501 * MS), WAITING);
	stage_run(&yard.stage, 650 * MS);
	assert_int_equal(cyd.done_ns, 600 * MS);
	/* 4 are hers, and a half has come in since. */
	assert_int_equal(take_again(&yard, &ann, 650 * MS), WAITING);
	stage_run(&yard.stage, 2 * SEC);
	assert_int_equal(ann.done_ns, 1200 * MS);
	stage_close(&yard.stage);
}

static void test_tokens_set_aside_are_gone_with_the_place(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	interrupt_a_large_take(&yard, &ann);
	engine_run(&yard.stage.engine, 1500 * MS);
	assert_int_equal(stage_try(&yard.stage, yard.l, 1, 1500 * MS), 0);
	assert_int_equal(take_again(&yard, &ann, 1500 * MS), WAITING);
	stage_run(&yard.stage, 3 * SEC);
	assert_int_equal(ann.done_ns, 2500 * MS);
	stage_close(&yard.stage);
}

static void test_a_larger_take_of_another_waiter_spills_what_is_set_aside(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	interrupt_a_large_take(&yard, &ann);
	assert_int_equal(stage_ask(&yard.stage, &bob, yard.l, 2, 500 * MS), WAITING);
	assert_int_equal(take_again(&yard, &ann, 550 * MS), WAITING);
	stage_run(&yard.stage, 3 * SEC);
	/* 1 was left at 500 ms. */
	assert_int_equal(ann.done_ns, 1400 * MS);
	assert_int_equal(bob.done_ns, 1600 * MS);
	stage_close(&yard.stage);
}

static void test_savings_are_for_the_next_waiter_if_that_wants_more_than_the_burst(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	for (int is_back = 0; is_back < 2; is_back++) {
		yard_open_empty(&yard);
		assert_int_equal(stage_ask(&yard.stage, &ann, yard.l, 10, 0), WAITING);
		assert_int_equal(stage_ask(&yard.stage, &bob, yard.l, 8, 1 * MS), WAITING);
		engine_run(&yard.stage.engine, 500 * MS);
		interrupt(&yard, &ann, &ANN, 500 * MS);
		if (is_back)
			assert_int_equal(take_again(&yard, &ann, 700 * MS), WAITING);
		stage_run(&yard.stage, 3 * SEC);
		/* 10 tokens come a second, and none was lost. */
		if (is_back)
			assert_int_equal(ann.done_ns, 1000 * MS);
		assert_int_equal(bob.done_ns, is_back ? 1800 * MS : 800 * MS);
		stage_close(&yard.stage);
	}
}

static void test_a_new_rate_spills_what_is_set_aside(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	interrupt_a_large_take(&yard, &ann);
	stage_write(&yard.stage, yard.l, "rate=20/s", 500 * MS);
	assert_int_equal(take_again(&yard, &ann, 500 * MS), WAITING);
	stage_run(&yard.stage, 3 * SEC);
	assert_int_equal(ann.done_ns, 950 * MS);
	stage_close(&yard.stage);
}

static void test_without_room_a_waiter_asks_at_the_end(void **state)
{
	struct guest ann, bob, cyd;
	struct yard yard;

	(void)state;
	yard_open(&yard, 1, "rate=10/s\nburst=1");
	stage_try(&yard.stage, yard.l, 1, 0);
	interrupt_first(&yard, &ann, &bob);
	interrupt(&yard, &bob, &BOB, 11 * MS);
	stage_ask(&yard.stage, &cyd, yard.l, 1, 12 * MS);
	again(&yard, &bob, &BOB, 13 * MS);
	again(&yard, &ann, &ANN, 14 * MS);
	stage_run(&yard.stage, SEC);
	assert_int_equal(ann.done_ns, 100 * MS);
	assert_int_equal(cyd.done_ns, 200 * MS);
	assert_int_equal(bob.done_ns, 300 * MS);
	stage_close(&yard.stage);
}

static void test_without_memory_nothing_is_parked(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	stage_open(&yard.stage);
	yard.l = stage_make(&yard.stage, NULL, "l", "rate=1/d\nburst=1");
	stage_try(&yard.stage, yard.l, 1, 0);
	assert_int_equal(stage_ask(&yard.stage, &ann, yard.l, 1, 1), WAITING);
	interrupt(&yard, &ann, &ANN, 2);
	assert_false(parking_has_any(&yard.stage.engine.schedule.parking));
	stage_close(&yard.stage);
}

static void test_limiter_that_is_gone_is_ENODEV_for_returning_waiters(void **state)
{
	struct guest ann;
	struct yard yard;
	struct limiter *l;

	(void)state;
	l = yard_open_empty(&yard);
	stage_ask(&yard.stage, &ann, l, 1, 1 * MS);
	interrupt(&yard, &ann, &ANN, 2 * MS);
	limiter_hold(l);
	stage_remove(&yard.stage, l);
	assert_int_equal(again(&yard, &ann, &ANN, 3 * MS), -ENODEV);
	limiter_drop(l);
	stage_close(&yard.stage);
}

static void test_waiters_that_came_back_are_evicted_with_the_others(void **state)
{
	struct guest ann, bob;
	struct limiter *key_limiter;
	struct yard yard;
	struct key *key;

	(void)state;
	yard_open(&yard, PLACES, "key_rate=1/d\nkey_burst=1");
	assert_int_equal(engine_key(&yard.stage.engine, yard.l, "k", 0, 0, &key), 0);
	key_limiter = keys_open(&yard.stage.engine.schedule, yard.l, key);
	stage_try(&yard.stage, key_limiter, 1, 0);
	stage_ask(&yard.stage, &ann, key_limiter, 1, 1);
	stage_ask(&yard.stage, &bob, key_limiter, 1, 2);
	interrupt(&yard, &ann, &ANN, 3);
	ask_again(&yard, &ann, &ANN, key_limiter, 1, NEVER_NS, 4);
	keys_remove(&yard.stage.engine.schedule, yard.l);
	stage_collect(&yard.stage);
	assert_int_equal(ann.waiter.outcome, -ENODEV);
	assert_int_equal(bob.waiter.outcome, -ENODEV);
	keys_close(&yard.stage.engine.schedule, key_limiter);
	stage_close(&yard.stage);
}

/*
 * Many are interrupted and come back in a random order, again and again: the order of the first
 * asking holds.
 */
static void test_a_crowd_that_is_frozen_and_thawed_keeps_its_order(void **state)
{
	enum { CROWD = PLACES, ROUNDS = 20 };
	static struct guest crowd[CROWD];
	struct yard yard;
	uint64_t random = 1, now_ns = 0;

	(void)state;
	yard_open_empty(&yard);
	for (unsigned int i = 0; i < CROWD; i++)
		stage_ask(&yard.stage, &crowd[i], yard.l, 1, 1 * MS);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t away = 0;

		for (unsigned int i = 0; i < CROWD; i++) {
			struct asker asker = {.thread = i + 1};

			random = random * UINT64_C(6364136223846793005) + 1;
			if (random >> 63) {
				interrupt(&yard, &crowd[i], &asker, 1 * MS);
				away |= UINT64_C(1) << i;
			}
		}
		for (unsigned int i = 0; i < CROWD; i++) {
			unsigned int which = i * 37 % CROWD;
			struct asker asker = {.thread = which + 1};

			if (away >> which & 1)
				again(&yard, &crowd[which], &asker, 1 * MS);
		}
	}
	for (unsigned int i = 0; i < CROWD; i++) {
		now_ns += RATE_MS * MS;
		stage_run(&yard.stage, now_ns);
		assert_int_equal(crowd[i].done_ns, now_ns);
	}
	assert_int_equal(yard.l->turns.queue.length, 0);
	stage_close(&yard.stage);
}

static void test_a_successor_puts_places_between_those_that_ask(void **state)
{
	struct parked_place kept;
	struct guest ann, bob, cyd;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	stage_ask(&yard.stage, &ann, yard.l, 1, 1 * MS);
	interrupt(&yard, &ann, &ANN, 2 * MS);
	kept = yard.places[0];
	assert_int_equal(kept.state, PLACE_PARKED);
	yard.used = 0;
	parking_free(&yard.stage.engine.schedule.parking);
	parking_init(&yard.stage.engine.schedule.parking, yard.places, PLACES, &yard.used);
	stage_ask(&yard.stage, &bob, yard.l, 1, 3 * MS);
	parking_restore(&yard.stage.engine.schedule.parking, &kept,
			++yard.stage.engine.schedule.tickets, 3 * MS + PARKING_NS);
	stage_ask(&yard.stage, &cyd, yard.l, 1, 4 * MS);
	again(&yard, &ann, &ANN, 5 * MS);
	assert_int_equal(yard.places[0].state, PLACE_TAKEN);
	assert_int_equal(ann.waiter.asked_ns, 1 * MS);
	stage_run(&yard.stage, SEC);
	assert_int_equal(yard.places[0].state, PLACE_FREE);
	assert_int_equal(bob.done_ns, 100 * MS);
	assert_int_equal(ann.done_ns, 200 * MS);
	assert_int_equal(cyd.done_ns, 300 * MS);
	stage_close(&yard.stage);
}

static void test_nothing_is_granted_while_frozen(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "rate=10/s\nburst=5\nconcurrency=1");
	engine_freeze(&yard.stage.engine);
	assert_int_equal(stage_try(&yard.stage, yard.l, 1, SEC), -EBUSY);
	assert_int_equal(stage_ask(&yard.stage, &ann, yard.l, 1, SEC), WAITING);
	assert_int_equal(engine_next_ns(&yard.stage.engine), NEVER_NS);
	stage_run(&yard.stage, 3 * SEC);
	assert_int_equal(ann.waiter.outcome, WAITING);
	engine_thaw(&yard.stage.engine, 4 * SEC);
	engine_go_on(&yard.stage.engine, 4 * SEC);
	stage_collect(&yard.stage);
	assert_int_equal(ann.waiter.outcome, 0);
	assert_int_equal(stage_try(&yard.stage, yard.l, 1, 4 * SEC), 0);
	stage_close(&yard.stage);
}

static void test_a_place_lasts_as_long_as_it_is_frozen_and_a_second_more(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	engine_freeze(&yard.stage.engine);
	stage_run(&yard.stage, 60 * SEC);
	engine_thaw(&yard.stage.engine, 60 * SEC);
	engine_go_on(&yard.stage.engine, 60 * SEC);
	/* The token that is there is for the one that is yet to come back. */
	assert_int_equal(engine_next_ns(&yard.stage.engine), 61 * SEC);
	stage_run(&yard.stage, 61 * SEC - 1);
	assert_int_equal(bob.waiter.outcome, WAITING);
	assert_int_equal(again(&yard, &ann, &ANN, 61 * SEC - 1), WAITING);
	engine_go_on(&yard.stage.engine, 61 * SEC - 1);
	stage_collect(&yard.stage);
	assert_int_equal(ann.waiter.outcome, 0);
	assert_int_equal(ann.waiter.asked_ns, 1 * MS);
	assert_int_equal(bob.waiter.outcome, WAITING);
	stage_run(&yard.stage, 62 * SEC);
	assert_int_equal(bob.waiter.outcome, 0);
	stage_close(&yard.stage);
}

static void test_a_thaw_waits_a_second_for_waiters_that_are_gone(void **state)
{
	struct guest ann, bob;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	interrupt_first(&yard, &ann, &bob);
	engine_freeze(&yard.stage.engine);
	engine_thaw(&yard.stage.engine, 60 * SEC);
	engine_go_on(&yard.stage.engine, 61 * SEC - 1);
	assert_int_equal(bob.waiter.outcome, WAITING);
	engine_go_on(&yard.stage.engine, 61 * SEC);
	stage_collect(&yard.stage);
	assert_int_equal(bob.waiter.outcome, 0);
	assert_int_equal(again(&yard, &ann, &ANN, 61 * SEC), WAITING);
	assert_int_equal(ann.waiter.asked_ns, 61 * SEC);
	stage_run(&yard.stage, 62 * SEC);
	stage_close(&yard.stage);
}

static void test_a_time_that_is_allowed_goes_on_while_frozen(void **state)
{
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	stage_ask_within(&yard.stage, &ann, yard.l, 1, 500 * MS, 0);
	engine_freeze(&yard.stage.engine);
	assert_int_equal(engine_next_ns(&yard.stage.engine), 500 * MS);
	stage_run(&yard.stage, SEC);
	assert_int_equal(ann.waiter.outcome, -EAGAIN);
	engine_thaw(&yard.stage.engine, SEC);
	engine_go_on(&yard.stage.engine, SEC);
	stage_close(&yard.stage);
}

static void test_tokens_of_a_called_poller_are_kept_while_frozen(void **state)
{
	struct poller poller;
	struct yard yard;

	(void)state;
	yard_open_empty(&yard);
	poller_init(&poller, yard.l, 1, 1, NULL);
	assert_false(engine_poll(&yard.stage.engine, &poller, 0));
	engine_run(&yard.stage.engine, 100 * MS);
	assert_int_equal(poller.state, POLLER_CALLED);
	engine_freeze(&yard.stage.engine);
	engine_run(&yard.stage.engine, 60 * SEC);
	engine_thaw(&yard.stage.engine, 60 * SEC);
	engine_go_on(&yard.stage.engine, 60 * SEC);
	assert_int_equal(poller.state, POLLER_CALLED);
	engine_run(&yard.stage.engine, 60 * SEC + POLLER_NS - 1);
	assert_int_equal(poller.state, POLLER_CALLED);
	engine_run(&yard.stage.engine, 60 * SEC + POLLER_NS);
	assert_int_equal(poller.state, POLLER_AWAY);
	engine_unpoll(&yard.stage.engine, &poller, 62 * SEC);
	stage_close(&yard.stage);
}

static void test_an_opener_that_comes_back_has_what_is_left_of_its_time(void **state)
{
	struct expiry expiries[2];
	struct slot slots[2];
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "concurrency=1");
	assert_int_equal(engine_slot_try(&yard.stage.engine, yard.l, &slots[0], 0), 0);
	for (uint64_t i = 0; i < 2; i++) {
		ann = (struct guest){.waiter = {.limiter = yard.l,
						.slot = &slots[1],
						.is_opener = true,
						.expiry = &expiries[i],
						.outcome = WAITING}};
		assert_int_equal(
			engine_return(&yard.stage.engine, &ann.waiter, &ANN, 2 * SEC, SEC * i), i);
		assert_int_equal(
			engine_slot_open(&yard.stage.engine, &ann.waiter, 2 * SEC, SEC * i),
			WAITING);
		if (!i)
			engine_interrupt(&yard.stage.engine, &ann.waiter, &ANN, SEC / 2);
	}
	assert_int_equal(engine_next_ns(&yard.stage.engine), 2 * SEC);
	stage_run(&yard.stage, 2 * SEC);
	assert_int_equal(ann.waiter.outcome, -EAGAIN);
	engine_slot_close(&yard.stage.engine, &slots[0], true, 3 * SEC);
	stage_close(&yard.stage);
}

static void test_slots_are_not_opened_while_frozen(void **state)
{
	struct slot first, other;
	struct expiry expiry;
	struct guest ann;
	struct yard yard;

	(void)state;
	yard_open(&yard, PLACES, "concurrency=2");
	assert_int_equal(engine_slot_try(&yard.stage.engine, yard.l, &first, 0), 0);
	engine_freeze(&yard.stage.engine);
	assert_int_equal(engine_slot_try(&yard.stage.engine, yard.l, &other, 0), -EAGAIN);
	/* One that would not wait waits for a little: a slot may be free. */
	ann = (struct guest){.waiter = {.limiter = yard.l,
					.slot = &other,
					.is_opener = true,
					.expiry = &expiry,
					.outcome = WAITING}};
	assert_int_equal(engine_slot_open(&yard.stage.engine, &ann.waiter, 0, 0), WAITING);
	assert_int_equal(engine_next_ns(&yard.stage.engine), ENGINE_PATIENCE_NS);
	stage_run(&yard.stage, ENGINE_PATIENCE_NS);
	assert_int_equal(ann.waiter.outcome, -EAGAIN);
	ann = (struct guest){
		.waiter = {
			.limiter = yard.l, .slot = &other, .is_opener = true, .outcome = WAITING}};
	assert_int_equal(engine_slot_open(&yard.stage.engine, &ann.waiter, NEVER_NS, SEC / 2),
			 WAITING);
	engine_slot_close(&yard.stage.engine, &first, true, SEC);
	assert_int_equal(ann.waiter.outcome, WAITING);
	engine_thaw(&yard.stage.engine, SEC);
	engine_go_on(&yard.stage.engine, SEC);
	stage_collect(&yard.stage);
	assert_int_equal(ann.waiter.outcome, 0);
	engine_slot_close(&yard.stage.engine, &other, true, 2 * SEC);
	stage_close(&yard.stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_waiter_that_comes_back_stands_where_it_stood),
		cmocka_unit_test(test_its_time_counts_from_its_first_asking),
		cmocka_unit_test(test_absent_waiter_holds_up_no_other_and_keeps_its_place),
		cmocka_unit_test(test_a_waiter_that_comes_back_to_a_token_gets_it_at_once),
		cmocka_unit_test(test_a_place_is_gone_after_a_second),
		cmocka_unit_test(test_asking_twice_gives_one_place),
		cmocka_unit_test(test_a_place_ends_with_the_answer),
		cmocka_unit_test(test_only_the_same_asker_and_the_same_asking_have_the_place),
		cmocka_unit_test(
			test_a_thread_that_is_interrupted_elsewhere_has_lost_its_older_place),
		cmocka_unit_test(test_where_the_thread_is_unknown_the_file_counts_each_time),
		cmocka_unit_test(test_a_limit_on_the_time_counts_from_the_first_asking),
		cmocka_unit_test(
			test_a_waiter_that_comes_back_too_late_is_refused_though_there_is_a_token),
		cmocka_unit_test(test_asking_with_another_limit_on_the_time_gives_the_place_up),
		cmocka_unit_test(test_an_opener_keeps_its_place_and_a_reader_does_not_have_it),
		cmocka_unit_test(test_a_waiter_in_a_key_keeps_its_place_there),
		cmocka_unit_test(test_a_waiter_in_a_partition_keeps_its_place_there),
		cmocka_unit_test(test_savings_are_there_when_their_waiter_is_back),
		cmocka_unit_test(test_others_have_of_a_bucket_what_is_not_set_aside),
		cmocka_unit_test(test_tokens_set_aside_are_gone_with_the_place),
		cmocka_unit_test(test_a_larger_take_of_another_waiter_spills_what_is_set_aside),
		cmocka_unit_test(
			test_savings_are_for_the_next_waiter_if_that_wants_more_than_the_burst),
		cmocka_unit_test(test_a_new_rate_spills_what_is_set_aside),
		cmocka_unit_test(test_without_room_a_waiter_asks_at_the_end),
		cmocka_unit_test(test_without_memory_nothing_is_parked),
		cmocka_unit_test(test_limiter_that_is_gone_is_ENODEV_for_returning_waiters),
		cmocka_unit_test(test_waiters_that_came_back_are_evicted_with_the_others),
		cmocka_unit_test(test_a_crowd_that_is_frozen_and_thawed_keeps_its_order),
		cmocka_unit_test(test_a_successor_puts_places_between_those_that_ask),
		cmocka_unit_test(test_nothing_is_granted_while_frozen),
		cmocka_unit_test(test_a_place_lasts_as_long_as_it_is_frozen_and_a_second_more),
		cmocka_unit_test(test_a_thaw_waits_a_second_for_waiters_that_are_gone),
		cmocka_unit_test(test_a_time_that_is_allowed_goes_on_while_frozen),
		cmocka_unit_test(test_tokens_of_a_called_poller_are_kept_while_frozen),
		cmocka_unit_test(test_an_opener_that_comes_back_has_what_is_left_of_its_time),
		cmocka_unit_test(test_slots_are_not_opened_while_frozen),
	};

	return cmocka_run_group_tests_name("parking", tests, NULL, NULL);
}
