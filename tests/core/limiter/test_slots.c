/* Tests of slots: the order in which openers have slots, along the path to the root. */
#include "tests/core/stage.h"

/* An opener that wants a slot. */
struct opener {
	struct guest guest; /* first */
	struct slot slot;
	struct expiry expiry;
};

static int ask_within(struct stage *stage, struct opener *opener, struct limiter *limiter,
		      uint64_t within_ns, uint64_t now_ns)
{
	*opener = (struct opener){.guest = {.waiter = {.limiter = limiter,
						       .slot = &opener->slot,
						       .is_opener = true,
						       .outcome = WAITING}}};
	if (within_ns != NEVER_NS)
		opener->guest.waiter.expiry = &opener->expiry;
	return engine_slot_open(&stage->engine, &opener->guest.waiter, within_ns, now_ns);
}

static int ask(struct stage *stage, struct opener *opener, struct limiter *limiter, uint64_t now_ns)
{
	return ask_within(stage, opener, limiter, NEVER_NS, now_ns);
}

static void leave(struct stage *stage, struct opener *opener, uint64_t now_ns)
{
	assert_non_null(opener->slot.limiter);
	engine_slot_close(&stage->engine, &opener->slot, true, now_ns);
	stage_collect(stage);
}

static int try(struct stage *stage, struct limiter *limiter, struct slot *slot)
{
	return engine_slot_try(&stage->engine, limiter, slot, stage->engine.schedule.now_ns);
}

static bool holds(const struct opener *opener)
{
	return opener->slot.limiter;
}

static void test_there_are_as_many_as_are_set_and_the_next_waits(void **state)
{
	struct opener a, b, c;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=2");
	assert_int_equal(ask(&stage, &a, l, 0), 0);
	assert_int_equal(ask(&stage, &b, l, 0), 0);
	assert_int_equal(ask(&stage, &c, l, 0), WAITING);
	assert_int_equal(slots_used(l), 2);
	leave(&stage, &a, 7 * MS);
	assert_true(holds(&c));
	assert_int_equal(c.guest.waiter.outcome, 0);
	assert_int_equal(c.slot.opened_ns, 7 * MS);
	leave(&stage, &b, 8 * MS);
	leave(&stage, &c, 8 * MS);
	assert_int_equal(slots_used(l), 0);
	assert_int_equal(l->counters[COUNTER_GRANTED], 0);
	stage_close(&stage);
}

static void test_without_a_setting_there_is_no_end_of_them(void **state)
{
	struct opener openers[100];
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", NULL);
	assert_int_equal(slots_limit(l), UINT32_MAX);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ask(&stage, &openers[i], l, 0), 0);
	assert_int_equal(slots_used(l), 100);
	for (int i = 0; i < 100; i++)
		leave(&stage, &openers[i], 0);
	stage_close(&stage);
}

static void test_waiters_are_served_first_come_first_served(void **state)
{
	struct opener holder, waits[4];
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1");
	assert_int_equal(ask(&stage, &holder, l, 0), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&stage, &waits[i], l, 0), WAITING);
	engine_cancel(&stage.engine, &waits[1].guest.waiter);
	leave(&stage, &holder, 0);
	assert_true(holds(&waits[0]) && !holds(&waits[2]));
	leave(&stage, &waits[0], 0);
	assert_true(holds(&waits[2]) && !holds(&waits[3]));
	leave(&stage, &waits[2], 0);
	leave(&stage, &waits[3], 0);
	assert_false(holds(&waits[1]));
	assert_int_equal(l->counters[COUNTER_CANCELLED], 1);
	stage_close(&stage);
}

static void test_try_does_not_overtake_waiters(void **state)
{
	struct opener holder, waits;
	struct slot slot = {0};
	struct stage stage;
	struct limiter *all, *l;

	(void)state;
	stage_open(&stage);
	all = stage_make(&stage, NULL, "all", "concurrency=2");
	l = stage_make(&stage, all, "l", "concurrency=1");
	assert_int_equal(try(&stage, l, &slot), 0);
	engine_slot_close(&stage.engine, &slot, true, 0);
	assert_int_equal(ask(&stage, &holder, l, 0), 0);
	assert_int_equal(try(&stage, l, &slot), -EAGAIN);
	assert_int_equal(ask(&stage, &waits, l, 0), WAITING);
	/* The opener that waits below holds up no other there. */
	assert_int_equal(try(&stage, all, &slot), 0);
	leave(&stage, &holder, 0);
	assert_int_equal(try(&stage, all, &slot), -EAGAIN);
	assert_int_equal(l->slots->refused, 1);
	slot.limiter = all;
	engine_slot_close(&stage.engine, &slot, true, 0);
	leave(&stage, &waits, 0);
	stage_close(&stage);
}

static void test_an_opener_that_would_not_wait_is_refused_at_once(void **state)
{
	struct opener holder, waits, hasty;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1\nqueue_max=1");
	assert_int_equal(ask_within(&stage, &holder, l, 0, 0), 0);
	assert_int_equal(ask_within(&stage, &hasty, l, 0, 0), -EAGAIN);
	assert_int_equal(l->slots->refused, 1);
	assert_int_equal(slots_waiting(l), 0);
	assert_int_equal(stage.engine.waiting, 0);
	/* Nor does it overtake an opener that waits, whose slot is there. */
	assert_int_equal(ask(&stage, &waits, l, 0), WAITING);
	leave(&stage, &holder, MS);
	assert_true(holds(&waits));
	assert_int_equal(ask_within(&stage, &hasty, l, 0, MS), -EAGAIN);
	leave(&stage, &waits, 2 * MS);
	assert_int_equal(ask_within(&stage, &hasty, l, 0, 2 * MS), 0);
	leave(&stage, &hasty, 2 * MS);
	assert_int_equal(l->slots->refused, 2);
	stage_close(&stage);
}

static void test_an_opener_waits_for_the_time_that_it_allows(void **state)
{
	struct opener holder, first, second;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1");
	assert_int_equal(ask(&stage, &holder, l, 0), 0);
	assert_int_equal(ask_within(&stage, &first, l, SEC, 5 * MS), WAITING);
	assert_int_equal(ask_within(&stage, &second, l, 3 * SEC, 5 * MS), WAITING);
	assert_int_equal(engine_next_ns(&stage.engine), SEC + 5 * MS);
	stage_run(&stage, SEC + 5 * MS - 1);
	assert_int_equal(first.guest.waiter.outcome, WAITING);
	stage_run(&stage, SEC + 5 * MS);
	assert_int_equal(first.guest.waiter.outcome, -EAGAIN);
	assert_int_equal(l->slots->refused, 1);
	assert_int_equal(slots_waiting(l), 1);
	/* A slot that comes free in the time of the second is its own; the time is over then. */
	leave(&stage, &holder, 2 * SEC);
	assert_true(holds(&second) && !holds(&first));
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_run(&stage, 9 * SEC);
	assert_true(holds(&second));
	leave(&stage, &second, 9 * SEC);
	stage_close(&stage);
}

static void test_the_next_one_has_the_turn_of_an_opener_whose_time_is_up(void **state)
{
	struct opener holder, below, beside;
	struct limiter *all, *l;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	all = stage_make(&stage, NULL, "all", "concurrency=1");
	l = stage_make(&stage, all, "l", NULL);
	assert_int_equal(ask(&stage, &holder, all, 0), 0);
	assert_int_equal(ask_within(&stage, &below, l, SEC, 0), WAITING);
	assert_int_equal(ask(&stage, &beside, all, 0), WAITING);
	stage_run(&stage, SEC);
	assert_int_equal(below.guest.waiter.outcome, -EAGAIN);
	assert_int_equal(all->slots->turns.waiting, 1);
	leave(&stage, &holder, SEC);
	assert_true(holds(&beside));
	leave(&stage, &beside, SEC);
	stage_close(&stage);
}

static void test_a_smaller_number_takes_none_away_and_a_larger_one_wakes(void **state)
{
	struct opener holders[3], waits[3];
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=3");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&stage, &holders[i], l, 0), 0);
	stage_write(&stage, l, "concurrency=1", 0);
	assert_int_equal(slots_used(l), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&stage, &waits[i], l, 0), WAITING);
	leave(&stage, &holders[0], 0);
	leave(&stage, &holders[1], 0);
	assert_false(holds(&waits[0]));
	stage_write(&stage, l, "concurrency=3", 0);
	stage_collect(&stage);
	assert_true(holds(&waits[0]) && holds(&waits[1]) && !holds(&waits[2]));
	stage_write(&stage, l, "concurrency=max", 0);
	assert_true(holds(&waits[2]));
	leave(&stage, &holders[2], 0);
	for (int i = 0; i < 3; i++)
		leave(&stage, &waits[i], 0);
	stage_close(&stage);
}

static void test_a_slot_of_a_child_is_one_of_every_ancestor(void **state)
{
	struct opener a, b, c;
	struct stage stage;
	struct limiter *top, *left, *right;

	(void)state;
	stage_open(&stage);
	top = stage_make(&stage, NULL, "top", "concurrency=2");
	left = stage_make(&stage, top, "left", "concurrency=1");
	right = stage_make(&stage, top, "right", NULL);
	assert_int_equal(ask(&stage, &a, left, 0), 0);
	assert_int_equal(ask(&stage, &b, right, 0), 0);
	assert_int_equal(ask(&stage, &c, right, 0), WAITING);
	assert_int_equal(slots_used(top), 2);
	assert_int_equal(slots_used(right), 1);
	leave(&stage, &a, 0);
	assert_true(holds(&c));
	assert_int_equal(slots_used(left), 0);
	leave(&stage, &b, 0);
	leave(&stage, &c, 0);
	assert_int_equal(slots_used(top), 0);
	stage_close(&stage);
}

static void test_a_child_out_of_slots_does_not_hold_up_its_siblings(void **state)
{
	struct opener a, first, second;
	struct stage stage;
	struct limiter *top, *left, *right;

	(void)state;
	stage_open(&stage);
	top = stage_make(&stage, NULL, "top", "concurrency=2");
	left = stage_make(&stage, top, "left", "concurrency=1");
	right = stage_make(&stage, top, "right", NULL);
	assert_int_equal(ask(&stage, &a, left, 0), 0);
	assert_int_equal(ask(&stage, &first, left, 0), WAITING);
	assert_int_equal(ask(&stage, &second, right, 0), 0);
	/* Both limits are in the way now. */
	leave(&stage, &second, 0);
	assert_false(holds(&first));
	leave(&stage, &a, 0);
	assert_true(holds(&first));
	leave(&stage, &first, 0);
	stage_close(&stage);
}

static void test_over_siblings_the_first_to_come_is_the_first_served(void **state)
{
	struct opener holder, waits[4];
	struct stage stage;
	struct limiter *top, *sides[2];

	(void)state;
	stage_open(&stage);
	top = stage_make(&stage, NULL, "top", "concurrency=1");
	sides[0] = stage_make(&stage, top, "left", NULL);
	sides[1] = stage_make(&stage, top, "right", NULL);
	assert_int_equal(ask(&stage, &holder, sides[0], 0), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ask(&stage, &waits[i], sides[i % 2], 0), WAITING);
	leave(&stage, &holder, 0);
	for (int i = 0; i < 4; i++) {
		assert_true(holds(&waits[i]));
		assert_false(i < 3 && holds(&waits[i + 1]));
		leave(&stage, &waits[i], 0);
	}
	stage_close(&stage);
}

static void test_closed_grants_none_and_open_and_shadow_grant_all(void **state)
{
	struct opener a, b, c;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1\nenforcement=closed");
	assert_int_equal(ask(&stage, &a, l, 0), WAITING);
	stage_write(&stage, l, "enforcement=enforce", 0);
	assert_true(holds(&a));
	assert_int_equal(ask(&stage, &b, l, 0), WAITING);
	stage_write(&stage, l, "enforcement=shadow", 0);
	assert_true(holds(&b));
	assert_int_equal(l->slots->shadowed, 1);
	stage_write(&stage, l, "enforcement=open", 0);
	assert_int_equal(ask(&stage, &c, l, 0), 0);
	assert_int_equal(l->slots->shadowed, 1);
	assert_int_equal(slots_used(l), 3);
	leave(&stage, &a, 0);
	leave(&stage, &b, 0);
	leave(&stage, &c, 0);
	stage_close(&stage);
}

static void test_a_limiter_with_open_slots_or_openers_is_not_removed(void **state)
{
	struct opener a, b;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1");
	assert_int_equal(ask(&stage, &a, l, 0), 0);
	assert_int_equal(stage_change(&stage, l, CHANGE_REMOVE, NULL, 0), -EBUSY);
	assert_int_equal(ask(&stage, &b, l, 0), WAITING);
	leave(&stage, &a, 0);
	assert_int_equal(stage_change(&stage, l, CHANGE_REMOVE, NULL, 0), -EBUSY);
	leave(&stage, &b, 0);
	stage_remove(&stage, l);
	stage_close(&stage);
}

static void test_limiter_that_another_host_removes_leaves_its_slots_to_be_closed(void **state)
{
	struct opener a, b, outside;
	struct stage stage;
	struct limiter *top, *l;

	(void)state;
	stage_open(&stage);
	top = stage_make(&stage, NULL, "top", "concurrency=1");
	l = stage_make(&stage, top, "l", NULL);
	limiter_hold(l);
	assert_int_equal(ask(&stage, &a, l, 0), 0);
	assert_int_equal(ask(&stage, &b, l, 0), WAITING);
	assert_int_equal(ask(&stage, &outside, top, 0), WAITING);
	change_apply_removal(&stage.engine, l);
	stage_collect(&stage);
	assert_int_equal(b.guest.waiter.outcome, -ENODEV);
	assert_int_equal(ask(&stage, &b, l, 0), -ENODEV);
	assert_int_equal(slots_used(top), 1);
	leave(&stage, &a, 0);
	assert_true(holds(&outside));
	limiter_drop(l);
	leave(&stage, &outside, 0);
	stage_close(&stage);
}

static void test_slot_that_no_opener_got_was_never_opened(void **state)
{
	struct opener a;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=auto");
	assert_int_equal(ask(&stage, &a, l, 0), 0);
	engine_slot_close(&stage.engine, &a.slot, false, 9 * SEC);
	assert_int_equal(l->slots->opened, 0);
	assert_int_equal(l->slots->concurrency.count, 0);
	assert_int_equal(slots_used(l), 0);
	stage_close(&stage);
}

static void test_one_that_stops_grants_none(void **state)
{
	struct opener a, b;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "concurrency=1");
	assert_int_equal(ask(&stage, &a, l, 0), 0);
	assert_int_equal(ask(&stage, &b, l, 0), WAITING);
	engine_stop(&stage.engine);
	leave(&stage, &a, 0);
	assert_false(holds(&b));
	engine_cancel(&stage.engine, &b.guest.waiter);
	stage_close(&stage);
}

static void test_throttling_shrinks_what_adapts_and_nothing_else(void **state)
{
	struct stage stage;
	struct limiter *fixed, *adapts;

	(void)state;
	stage_open(&stage);
	fixed = stage_make(&stage, NULL, "fixed", "concurrency=10");
	adapts = stage_make(&stage, NULL, "adapts", "concurrency=auto min=2 max=50");
	stage_write(&stage, adapts, "concurrency=auto min=20 max=50", 0);
	stage_write(&stage, adapts, "concurrency=auto min=2 max=50", 0);
	assert_int_equal(slots_limit(adapts), 20);
	slots_throttled(&stage.engine.schedule, fixed);
	slots_throttled(&stage.engine.schedule, adapts);
	assert_int_equal(slots_limit(fixed), 10);
	assert_int_equal(slots_limit(adapts), 18);
	stage_close(&stage);
}

static struct limiter *open_key(struct stage *stage, struct limiter *limiter, const char *name)
{
	struct limiter *opened;
	struct key *key;

	assert_int_equal(
		engine_key(&stage->engine, limiter, name, 0, stage->engine.schedule.now_ns, &key),
		0);
	opened = keys_open(&stage->engine.schedule, limiter, key);
	assert_non_null(opened);
	return opened;
}

static void test_each_key_has_so_many_slots_and_all_of_them_those_of_the_limiter(void **state)
{
	struct opener a, b, c, d, e;
	struct limiter *l, *x, *y;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "key_concurrency=1\nconcurrency=2");
	x = open_key(&stage, l, "x");
	y = open_key(&stage, l, "y");
	assert_int_equal(ask(&stage, &a, x, 0), 0);
	assert_int_equal(ask(&stage, &b, x, 0), WAITING);
	assert_int_equal(ask(&stage, &c, x, 0), WAITING);
	assert_int_equal(ask(&stage, &d, y, 0), 0);
	assert_int_equal(slots_limit(x), 1);
	assert_int_equal(slots_used(l), 2);
	assert_int_equal(keys_waiting(l), 2);
	leave(&stage, &a, MS);
	assert_true(holds(&b) && !holds(&c));
	/* The second of x would be the third of the limiter. */
	stage_write(&stage, l, "key_concurrency=2", MS);
	stage_collect(&stage);
	assert_false(holds(&c));
	assert_int_equal(try(&stage, x, &e.slot), -EAGAIN);
	leave(&stage, &d, 2 * MS);
	assert_true(holds(&c));
	/* A lower number closes none. */
	stage_write(&stage, l, "key_concurrency=1\nconcurrency=max", 3 * MS);
	assert_int_equal(slots_used(x), 2);
	leave(&stage, &b, 4 * MS);
	assert_int_equal(try(&stage, x, &e.slot), -EAGAIN);
	leave(&stage, &c, 5 * MS);
	assert_int_equal(try(&stage, x, &e.slot), 0);
	engine_slot_close(&stage.engine, &e.slot, true, 6 * MS);
	keys_close(&stage.engine.schedule, x);
	keys_close(&stage.engine.schedule, y);
	/* A key with an open slot is not forgotten, and has no other bound when it comes back. */
	x = open_key(&stage, l, "x");
	assert_int_equal(ask(&stage, &a, x, 7 * MS), 0);
	engine_run(&stage.engine, 3600 * SEC);
	assert_int_equal(keys_count(l), 1);
	assert_ptr_equal(open_key(&stage, l, "x"), x);
	keys_close(&stage.engine.schedule, x);
	assert_int_equal(stage_change(&stage, l, CHANGE_REMOVE, NULL, 3600 * SEC), -EBUSY);
	leave(&stage, &a, 3601 * SEC);
	keys_close(&stage.engine.schedule, x);
	stage_remove(&stage, l);
	stage_close(&stage);
}

static void test_shadow_and_closed_hold_for_slots_of_keys(void **state)
{
	struct opener a, b, c;
	struct limiter *l, *x;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "key_concurrency=1\nenforcement=shadow");
	x = open_key(&stage, l, "x");
	assert_int_equal(ask(&stage, &a, x, 0), 0);
	assert_int_equal(ask(&stage, &b, x, 0), 0);
	assert_int_equal(x->slots->shadowed, 1);
	stage_write(&stage, l, "enforcement=closed", 0);
	assert_int_equal(ask(&stage, &c, x, 0), WAITING);
	stage_write(&stage, l, "enforcement=enforce", 0);
	leave(&stage, &a, 0);
	assert_false(holds(&c));
	leave(&stage, &b, 0);
	assert_true(holds(&c));
	leave(&stage, &c, 0);
	keys_close(&stage.engine.schedule, x);
	stage_remove(&stage, l);
	stage_close(&stage);
}

static void test_removing_a_limiter_for_good_answers_openers_of_its_keys(void **state)
{
	struct limiter *l, *x;
	struct opener a, b;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", "key_concurrency=1");
	x = open_key(&stage, l, "x");
	assert_int_equal(ask(&stage, &a, x, 0), 0);
	assert_int_equal(ask(&stage, &b, x, 0), WAITING);
	change_apply_removal(&stage.engine, l); /* as another host of a fleet may do */
	stage_collect(&stage);
	assert_int_equal(b.guest.waiter.outcome, -ENODEV);
	leave(&stage, &a, MS);
	keys_close(&stage.engine.schedule, x);
	stage_close(&stage);
}

static uint32_t number_of(struct slot *slot)
{
	uint32_t number;

	assert_int_equal(slots_number(slot, &number), 0);
	return number;
}

static void test_open_slots_have_numbers_in_the_nearest_limiter_with_a_number(void **state)
{
	struct opener a, b, c, d;
	struct limiter *all, *left, *right;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	all = stage_make(&stage, NULL, "all", "concurrency=4");
	left = stage_make(&stage, all, "left", NULL);
	right = stage_make(&stage, all, "right", "concurrency=3");
	assert_int_equal(ask(&stage, &a, left, 0), 0);
	assert_int_equal(ask(&stage, &b, right, 0), 0);
	assert_int_equal(ask(&stage, &c, right, 0), 0);
	assert_int_equal(ask(&stage, &d, all, 0), 0);
	assert_int_equal(number_of(&d.slot), 0);
	assert_int_equal(number_of(&a.slot), 1);
	assert_int_equal(number_of(&c.slot), 0);
	assert_int_equal(number_of(&b.slot), 1);
	assert_int_equal(number_of(&d.slot), 0);
	assert_int_equal(slots_numbered_above(&a.slot), 1);
	assert_int_equal(slots_numbered_above(&b.slot), 0);
	/* It stays what it was, and is free with its slot. */
	stage_write(&stage, right, "concurrency=max", 0);
	assert_int_equal(number_of(&b.slot), 1);
	leave(&stage, &d, 0);
	assert_int_equal(ask(&stage, &d, all, 0), 0);
	assert_int_equal(number_of(&d.slot), 0);
	leave(&stage, &a, 0);
	leave(&stage, &b, 0);
	leave(&stage, &c, 0);
	leave(&stage, &d, 0);
	stage_close(&stage);
}

static void test_without_a_setting_there_is_no_end_of_numbers(void **state)
{
	enum { COUNT = 200 };
	struct opener openers[COUNT], late;
	struct stage stage;
	struct limiter *l;

	(void)state;
	stage_open(&stage);
	l = stage_make(&stage, NULL, "l", NULL);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_int_equal(ask(&stage, &openers[i], l, 0), 0);
		assert_int_equal(number_of(&openers[i].slot), i);
	}
	leave(&stage, &openers[127], 0);
	leave(&stage, &openers[64], 0);
	assert_int_equal(ask(&stage, &openers[64], l, 0), 0);
	assert_int_equal(ask(&stage, &openers[127], l, 0), 0);
	assert_int_equal(ask(&stage, &late, l, 0), 0);
	assert_int_equal(number_of(&openers[64].slot), 64);
	assert_int_equal(number_of(&openers[127].slot), 127);
	assert_int_equal(number_of(&late.slot), COUNT);
	leave(&stage, &late, 0);
	for (uint32_t i = 0; i < COUNT; i++)
		leave(&stage, &openers[i], 0);
	stage_close(&stage);
}

static void restore_number(struct slot *slot, uint32_t above, uint32_t number)
{
	assert_int_equal(slots_restore_number(slot, above, number), 0);
}

static void test_restored_slots_have_the_numbers_that_they_had(void **state)
{
	struct slot a = {0}, b = {0}, c = {0}, strange = {0};
	struct limiter *all, *l;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	all = stage_make(&stage, NULL, "all", "concurrency=4");
	l = stage_make(&stage, all, "l", NULL);
	assert_int_equal(slots_restore(&stage.engine.schedule, l, &a, 1), 0);
	assert_int_equal(slots_restore(&stage.engine.schedule, l, &b, 1), 0);
	assert_int_equal(slots_restore(&stage.engine.schedule, l, &c, 1), 0);
	assert_int_equal(slots_restore(&stage.engine.schedule, l, &strange, 1), 0);
	restore_number(&b, 1, 0);
	restore_number(&c, 1, 2);
	/* No server can have written a number twice, one above the tree, or one too large. */
	restore_number(&strange, 1, 2);
	assert_null(strange.numbered);
	restore_number(&strange, 9, 1);
	assert_null(strange.numbered);
	restore_number(&strange, 0, UINT32_MAX);
	assert_null(strange.numbered);
	assert_int_equal(number_of(&a), 1);
	assert_int_equal(number_of(&b), 0);
	assert_int_equal(number_of(&strange), 3);
	slots_close(&stage.engine.schedule, &a, true);
	slots_close(&stage.engine.schedule, &b, true);
	slots_close(&stage.engine.schedule, &c, true);
	slots_close(&stage.engine.schedule, &strange, true);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_are_as_many_as_are_set_and_the_next_waits),
		cmocka_unit_test(test_without_a_setting_there_is_no_end_of_them),
		cmocka_unit_test(test_waiters_are_served_first_come_first_served),
		cmocka_unit_test(test_try_does_not_overtake_waiters),
		cmocka_unit_test(test_an_opener_that_would_not_wait_is_refused_at_once),
		cmocka_unit_test(test_an_opener_waits_for_the_time_that_it_allows),
		cmocka_unit_test(test_the_next_one_has_the_turn_of_an_opener_whose_time_is_up),
		cmocka_unit_test(test_a_smaller_number_takes_none_away_and_a_larger_one_wakes),
		cmocka_unit_test(test_a_slot_of_a_child_is_one_of_every_ancestor),
		cmocka_unit_test(test_a_child_out_of_slots_does_not_hold_up_its_siblings),
		cmocka_unit_test(test_over_siblings_the_first_to_come_is_the_first_served),
		cmocka_unit_test(test_closed_grants_none_and_open_and_shadow_grant_all),
		cmocka_unit_test(test_a_limiter_with_open_slots_or_openers_is_not_removed),
		cmocka_unit_test(
			test_limiter_that_another_host_removes_leaves_its_slots_to_be_closed),
		cmocka_unit_test(test_slot_that_no_opener_got_was_never_opened),
		cmocka_unit_test(test_one_that_stops_grants_none),
		cmocka_unit_test(test_throttling_shrinks_what_adapts_and_nothing_else),
		cmocka_unit_test(
			test_each_key_has_so_many_slots_and_all_of_them_those_of_the_limiter),
		cmocka_unit_test(test_shadow_and_closed_hold_for_slots_of_keys),
		cmocka_unit_test(test_open_slots_have_numbers_in_the_nearest_limiter_with_a_number),
		cmocka_unit_test(test_without_a_setting_there_is_no_end_of_numbers),
		cmocka_unit_test(test_restored_slots_have_the_numbers_that_they_had),
		cmocka_unit_test(test_removing_a_limiter_for_good_answers_openers_of_its_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
