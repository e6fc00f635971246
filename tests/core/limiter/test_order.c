/* test_order - which sibling comes first, see core/limiter/order.h. */
#include "tests/core/stage.h"

#include "core/limiter/keys.h"
#include "core/limiter/order.h"
#include "core/limiter/slots.h"

enum { FLOOD = 500 };

/* Has @count readers of @limiter wait for @tokens each. */
static void flood(struct stage *stage, struct guest *guests, int count, struct limiter *limiter,
		  uint64_t tokens)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(stage_ask(stage, &guests[i], limiter, tokens,
					   stage->engine.schedule.now_ns),
				 WAITING);
}

static void leave(struct stage *stage, struct guest *guests, int count)
{
	for (int i = 0; i < count; i++) {
		if (guests[i].waiter.outcome == WAITING)
			engine_cancel(&stage->engine, &guests[i].waiter);
	}
}

static uint64_t granted(const struct limiter *limiter)
{
	return limiter->counters[COUNTER_GRANTED];
}

/* A limiter of 10/s whose first token is gone, with two children. */
static struct limiter *make_family(struct stage *stage, const char *one, const char *other,
				   struct limiter *children[2])
{
	struct limiter *a;

	stage_open(stage);
	a = stage_make(stage, NULL, "a", "rate=10/s");
	children[0] = stage_make(stage, a, "one", one);
	children[1] = stage_make(stage, a, "other", other);
	assert_int_equal(stage_try(stage, a, 1, 0), 0);
	return a;
}

static void test_a_sibling_with_more_readers_gets_no_more(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest many[FLOOD], few[100];

	(void)state;
	make_family(&stage, NULL, NULL, children);
	flood(&stage, many, FLOOD, children[0], 1);
	flood(&stage, few, 100, children[1], 1);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(granted(children[0]), 50);
	assert_int_equal(granted(children[1]), 50);
	leave(&stage, many, FLOOD);
	leave(&stage, few, 100);
	stage_close(&stage);
}

static void test_siblings_share_by_weight(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest one[FLOOD], other[FLOOD];

	(void)state;
	make_family(&stage, "weight=100", "weight=300", children);
	flood(&stage, one, FLOOD, children[0], 1);
	flood(&stage, other, FLOOD, children[1], 1);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(granted(children[0]), 25);
	assert_int_equal(granted(children[1]), 75);
	leave(&stage, one, FLOOD);
	leave(&stage, other, FLOOD);
	stage_close(&stage);
}

/* 3000 of 10000 is no divisor: the rest of each division is carried on. */
static void test_weights_hold_exactly_in_the_long_run(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	static struct guest one[3100], other[7100];

	(void)state;
	make_family(&stage, "weight=3000", "weight=7000", children);
	flood(&stage, one, 3100, children[0], 1);
	flood(&stage, other, 7100, children[1], 1);
	stage_run(&stage, 1000 * SEC);
	assert_in_range(granted(children[0]), 2999, 3001);
	assert_in_range(granted(children[1]), 6999, 7001);
	leave(&stage, one, 3100);
	leave(&stage, other, 7100);
	stage_close(&stage);
}

static void test_a_take_counts_by_its_size(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest large[FLOOD], small[FLOOD];

	(void)state;
	make_family(&stage, NULL, NULL, children);
	flood(&stage, large, 20, children[0], 5);
	flood(&stage, small, FLOOD, children[1], 1);
	stage_run(&stage, 10 * SEC);
	assert_in_range(granted(children[0]), 45, 55);
	assert_in_range(granted(children[1]), 45, 55);
	leave(&stage, large, 20);
	leave(&stage, small, FLOOD);
	stage_close(&stage);
}

static void test_the_own_queue_is_one_more_sibling(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct guest many[FLOOD], own[FLOOD];

	(void)state;
	a = make_family(&stage, NULL, NULL, children);
	flood(&stage, many, FLOOD, children[0], 1);
	flood(&stage, own, FLOOD, a, 1);
	stage_run(&stage, 10 * SEC);
	assert_int_equal(granted(children[0]), 50);
	leave(&stage, many, FLOOD);
	leave(&stage, own, FLOOD);
	stage_close(&stage);
}

static void test_a_higher_priority_comes_first_always(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest batch[FLOOD], online[3];

	(void)state;
	make_family(&stage, NULL, "priority=1", children);
	flood(&stage, batch, FLOOD, children[0], 1);
	stage_run(&stage, 1050 * MS);
	flood(&stage, online, 3, children[1], 1);
	stage_run(&stage, 1300 * MS);
	assert_int_equal(online[0].done_ns, 1100 * MS);
	assert_int_equal(online[1].done_ns, 1200 * MS);
	assert_int_equal(online[2].done_ns, 1300 * MS);
	leave(&stage, batch, FLOOD);
	stage_close(&stage);
}

static void test_a_priority_counts_at_once_for_waiters(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest batch[FLOOD], online[3];

	(void)state;
	make_family(&stage, NULL, NULL, children);
	flood(&stage, batch, FLOOD, children[0], 1);
	flood(&stage, online, 3, children[1], 1);
	stage_write(&stage, children[1], "priority=9", 50 * MS);
	stage_run(&stage, 300 * MS);
	assert_int_equal(granted(children[1]), 3);
	leave(&stage, batch, FLOOD);
	stage_close(&stage);
}

static void test_a_min_comes_before_any_priority(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest high[FLOOD], sure[FLOOD];

	(void)state;
	make_family(&stage, "priority=9", "min=3/s", children);
	flood(&stage, high, FLOOD, children[0], 1);
	flood(&stage, sure, FLOOD, children[1], 1);
	stage_run(&stage, 10 * SEC);
	assert_in_range(granted(children[1]), 29, 31);
	assert_int_equal(children[1]->counters[COUNTER_GRANTED_MIN], granted(children[1]));
	leave(&stage, high, FLOOD);
	leave(&stage, sure, FLOOD);
	stage_close(&stage);
}

/* The table of minima and weights of YARN's ComputeFairShares: 20, 5, 5, 15 of 45. */
static void test_a_sibling_gets_the_greater_of_its_min_and_its_part(void **state)
{
	static const char *const settings[] = {"min=20/s\nweight=200", "weight=100",
					       "min=5/s\nweight=100", "min=15/s\nweight=50"};
	static const uint64_t parts[] = {20, 5, 5, 15};
	struct stage stage;
	struct limiter *a, *children[4];
	static struct guest guests[4][FLOOD];
	const char *names[] = {"w", "x", "y", "z"};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=45/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	for (int i = 0; i < 4; i++) {
		children[i] = stage_make(&stage, a, names[i], settings[i]);
		flood(&stage, guests[i], FLOOD, children[i], 1);
	}
	stage_run(&stage, 10 * SEC);
	for (int i = 0; i < 4; i++) {
		assert_in_range(granted(children[i]), parts[i] * 10 - 2, parts[i] * 10 + 2);
		leave(&stage, guests[i], FLOOD);
	}
	stage_close(&stage);
}

/* The limiter looks again when the min is due, although it saves up for a large take. */
static void test_a_min_that_falls_due_comes_before_a_large_take(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest large, sure[3];

	(void)state;
	make_family(&stage, "weight=10000", "weight=1\nmin=1/s", children);
	flood(&stage, sure, 3, children[1], 1);
	stage_run(&stage, 250 * MS);
	/* The first was due at once, and one more came before there was another sibling. */
	assert_int_equal(granted(children[1]), 2);
	flood(&stage, &large, 1, children[0], 100);
	stage_run(&stage, 1 * SEC);
	assert_int_equal(granted(children[1]), 3);
	assert_int_equal(large.waiter.outcome, WAITING);
	leave(&stage, &large, 1);
	stage_close(&stage);
}

static void test_a_min_that_was_more_than_the_part_is_no_debt(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	static struct guest sure[2000], other[2000];
	uint64_t before;

	(void)state;
	a = make_family(&stage, "min=9/s", NULL, children);
	flood(&stage, sure, 2000, children[0], 1);
	flood(&stage, other, 2000, children[1], 1);
	stage_run(&stage, 100 * SEC);
	assert_in_range(granted(children[0]), 895, 905);
	stage_write(&stage, a, "rate=100/s", 100 * SEC);
	before = granted(children[0]);
	stage_run(&stage, 104 * SEC);
	assert_in_range(granted(children[0]) - before, 180, 220);
	leave(&stage, sure, 2000);
	leave(&stage, other, 2000);
	stage_close(&stage);
}

static void test_a_sibling_that_had_all_alone_does_not_pay_for_it(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest alone[30], one[FLOOD], other[FLOOD];

	(void)state;
	make_family(&stage, NULL, NULL, children);
	flood(&stage, alone, 30, children[0], 1);
	stage_run(&stage, 3050 * MS);
	assert_int_equal(granted(children[0]), 30);
	flood(&stage, one, FLOOD, children[0], 1);
	flood(&stage, other, FLOOD, children[1], 1);
	stage_run(&stage, 8 * SEC);
	assert_in_range(granted(children[0]) - 30, 24, 26);
	leave(&stage, one, FLOOD);
	leave(&stage, other, FLOOD);
	stage_close(&stage);
}

static void test_a_try_passes_waiters_that_the_order_puts_behind_it(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct guest large;

	(void)state;
	a = make_family(&stage, NULL, "priority=1", children);
	flood(&stage, &large, 1, children[0], 20);
	engine_run(&stage.engine, 1050 * MS);
	assert_int_equal(stage_try(&stage, a, 1, 1050 * MS), -EBUSY);
	assert_int_equal(stage_try(&stage, children[0], 1, 1050 * MS), -EBUSY);
	assert_int_equal(stage_try(&stage, children[1], 1, 1050 * MS), 0);
	/* The rest of what was saved up stays for the large take. */
	stage_run(&stage, 2100 * MS);
	assert_int_equal(large.done_ns, 2100 * MS);
	stage_close(&stage);
}

static void test_a_key_does_not_wait_for_the_flood_of_another(void **state)
{
	struct stage stage;
	struct limiter *a, *greedy, *small;
	struct key *key;
	struct guest many[FLOOD], one;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nkey_rate=10/s");
	assert_int_equal(engine_key(&stage.engine, a, "greedy", 0, 0, &key), 0);
	greedy = keys_open(&stage.engine.schedule, a, key);
	assert_int_equal(engine_key(&stage.engine, a, "small", 0, 0, &key), 0);
	small = keys_open(&stage.engine.schedule, a, key);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, many, FLOOD, greedy, 1);
	stage_run(&stage, 5050 * MS);
	flood(&stage, &one, 1, small, 1);
	stage_run(&stage, 5200 * MS);
	assert_int_equal(one.waiter.outcome, 0);
	leave(&stage, many, FLOOD);
	keys_close(&stage.engine.schedule, greedy);
	keys_close(&stage.engine.schedule, small);
	stage_close(&stage);
}

/* Takes a token of key @name of @a, by a file that is opened for it. */
static void read_key(struct stage *stage, struct limiter *a, const char *name, struct guest *guest)
{
	struct schedule *schedule = &stage->engine.schedule;
	uint64_t now_ns = schedule->now_ns;
	struct limiter *limiter;
	struct key *key;

	assert_int_equal(engine_key(&stage->engine, a, name, 0, now_ns, &key), 0);
	limiter = keys_open(schedule, a, key);
	assert_int_equal(stage_ask(stage, guest, limiter, 1, now_ns), WAITING);
	while (guest->waiter.outcome == WAITING)
		stage_run(stage, engine_next_ns(&stage->engine));
	keys_close(schedule, limiter);
}

static void test_a_key_that_is_opened_for_each_token_gets_no_more(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct guest many[FLOOD], one;

	(void)state;
	a = make_family(&stage, NULL, NULL, children);
	flood(&stage, many, FLOOD, children[0], 1);
	for (int i = 0; i < 100; i++)
		read_key(&stage, a, "k", &one);
	assert_in_range(granted(children[0]), 99, 101);
	leave(&stage, many, FLOOD);
	stage_close(&stage);
}

/* The key is idle for longer than keys are remembered without a reason. */
static void test_a_key_is_remembered_while_it_comes_after_its_siblings(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct guest many[FLOOD], one;

	(void)state;
	a = make_family(&stage, NULL, NULL, children);
	stage_write(&stage, a, "rate=1/10s", 0);
	flood(&stage, many, FLOOD, children[0], 1);
	for (int i = 0; i < 10; i++) {
		read_key(&stage, a, "k", &one);
		stage_run(&stage, stage.engine.schedule.now_ns + 2 * KEYS_LINGER_NS);
	}
	assert_in_range(granted(children[0]), 9, 11);
	leave(&stage, many, FLOOD);
	/* The last of its tokens was paid for when no other reader waited any more. */
	stage_run(&stage, stage.engine.schedule.now_ns + 3 * KEYS_LINGER_NS);
	assert_int_equal(keys_count(a), 0);
	stage_close(&stage);
}

static void test_slots_follow_the_order(void **state)
{
	struct stage stage;
	struct limiter *a, *batch, *online;
	struct slot first = {0}, slots[3] = {0};
	struct waiter openers[3] = {0};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "concurrency=1");
	batch = stage_make(&stage, a, "batch", NULL);
	online = stage_make(&stage, a, "online", "priority=1");
	assert_int_equal(engine_slot_try(&stage.engine, a, &first, 0), 0);
	for (int i = 0; i < 3; i++) {
		openers[i] = (struct waiter){
			.limiter = i < 2 ? batch : online, .slot = &slots[i], .is_opener = true};
		assert_int_equal(engine_slot_open(&stage.engine, &openers[i], NEVER_NS, 0),
				 WAITING);
	}
	engine_slot_close(&stage.engine, &first, true, 0);
	assert_ptr_equal(engine_done(&stage.engine), &openers[2]);
	engine_slot_close(&stage.engine, &slots[2], true, 0);
	assert_ptr_equal(engine_done(&stage.engine), &openers[0]);
	engine_slot_close(&stage.engine, &slots[0], true, 0);
	assert_ptr_equal(engine_done(&stage.engine), &openers[1]);
	engine_slot_close(&stage.engine, &slots[1], true, 0);
	stage_close(&stage);
}

static void test_eta_counts_what_comes_before(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest batch[FLOOD];

	(void)state;
	make_family(&stage, NULL, "priority=1", children);
	flood(&stage, batch, FLOOD, children[0], 1);
	assert_int_equal(engine_eta(&stage.engine, children[1], 1, NULL, 0), 100 * MS);
	assert_int_equal(engine_eta(&stage.engine, children[0], 1, NULL, 0), 50 * SEC + 100 * MS);
	stage_write(&stage, children[1], "priority=0", 0);
	/* One take of the other comes first, which has waited for longer. */
	assert_int_equal(engine_eta(&stage.engine, children[1], 1, NULL, 0), 200 * MS);
	stage_run(&stage, 150 * MS);
	assert_int_equal(engine_eta(&stage.engine, children[1], 1, NULL, 150 * MS), 50 * MS);
	leave(&stage, batch, FLOOD);
	stage_close(&stage);
}

/* The bound on what comes before counts the largest take of each sibling, not all its takes. */
static void test_eta_is_the_same_after_a_change_of_place(void **state)
{
	struct stage stage;
	struct limiter *children[2];
	struct guest batch[FLOOD];

	(void)state;
	make_family(&stage, NULL, NULL, children);
	flood(&stage, batch, FLOOD, children[0], 1);
	stage_write(&stage, children[0], "priority=1", 0);
	stage_write(&stage, children[0], "priority=0", 0);
	assert_int_equal(engine_eta(&stage.engine, children[1], 1, NULL, 0), 200 * MS);
	leave(&stage, batch, FLOOD);
	stage_close(&stage);
}

static void test_eta_is_the_same_in_a_first_child(void **state)
{
	struct stage stage;
	struct limiter *a, *child;
	struct guest own[FLOOD];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, own, FLOOD, a, 1);
	child = stage_make(&stage, a, "child", NULL);
	assert_int_equal(engine_eta(&stage.engine, child, 1, NULL, 0), 200 * MS);
	leave(&stage, own, FLOOD);
	stage_close(&stage);
}

static void test_queue_max_refuses_one_more_waiter(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[3];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nqueue_max=2");
	/* A reader that need not wait is not counted. */
	assert_int_equal(stage_ask(&stage, &guests[0], a, 1, 0), 0);
	flood(&stage, guests, 2, a, 1);
	assert_int_equal(stage_ask(&stage, &guests[2], a, 1, 0), -EBUSY);
	assert_int_equal(stage.engine.refused_by, SETTING_QUEUE_MAX);
	assert_int_equal(stage_read(&stage, a, 1, READ_NONBLOCKING, 0), -EBUSY);
	assert_int_equal(a->counters[COUNTER_REFUSED_QUEUE], 2);
	assert_int_equal(a->counters[COUNTER_REFUSED], 2);
	stage_run(&stage, SEC);
	assert_int_equal(stage_ask(&stage, &guests[0], a, 1, SEC), WAITING);
	leave(&stage, guests, 2);
	stage_close(&stage);
}

static void test_without_a_queue_a_read_is_granted_or_refused(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nqueue_max=0");
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), -EBUSY);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, SEC), 0);
	stage_close(&stage);
}

static void test_wait_max_refuses_a_longer_wait(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[6];
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nwait_max=5s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, guests, 5, a, 1);
	assert_int_equal(stage_ask(&stage, &guests[5], a, 1, 0), -EBUSY);
	assert_int_equal(stage.engine.refused_by, SETTING_WAIT_MAX);
	/* A poll is answered: the read is refused. */
	assert_true(stage_poll(&stage, &poller, a, 1, 0));
	assert_int_equal(a->counters[COUNTER_REFUSED_WAIT], 1);
	leave(&stage, guests, 5);
	stage_close(&stage);
}

/* Bounds that were lowered since, or that others have filled, do not end a wait. */
static void test_a_reader_that_a_predecessor_let_wait_is_not_refused(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[2];
	struct slot first = {0}, slot = {0};
	struct token_read read = {.tokens = 1, .again = true, .within_ns = NEVER_NS};
	struct read_wait wait;
	struct waiter opener;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nconcurrency=1\nqueue_max=0\nwait_max=1ms");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guests[0], a, 1, 0), -EBUSY);
	read.limiter = a;
	assert_int_equal(engine_read(&stage.engine, &read, &wait, 0), WAITING);
	guests[1].waiter = wait.waiter;
	assert_int_equal(engine_ask(&stage.engine, &guests[1].waiter, wait.within_ns, 0), WAITING);
	engine_cancel(&stage.engine, &guests[1].waiter);
	assert_int_equal(engine_slot_try(&stage.engine, a, &first, 0), 0);
	opener = (struct waiter){
		.limiter = a, .slot = &slot, .is_opener = true, .is_admitted = true};
	assert_int_equal(engine_slot_open(&stage.engine, &opener, NEVER_NS, 0), WAITING);
	engine_cancel(&stage.engine, &opener);
	engine_slot_close(&stage.engine, &first, true, 0);
	stage_close(&stage);
}

static void test_a_file_counts_once_for_queue_max(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[2];
	struct poller poller;
	struct token_read read = {.tokens = 1, .within_ns = NEVER_NS, .poller = &poller};
	struct read_wait wait;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s\nqueue_max=1");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	read.limiter = a;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_read(&stage.engine, &read, &wait, 0), WAITING);
		guests[i].waiter = wait.waiter;
		assert_int_equal(engine_ask(&stage.engine, &guests[i].waiter, NEVER_NS, 0),
				 i ? -EBUSY : WAITING);
	}
	engine_cancel(&stage.engine, &guests[0].waiter);
	engine_unpoll(&stage.engine, &poller, 0);
	stage_close(&stage);
}

static void test_openers_are_refused_by_queue_max(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct slot first = {0}, slots[2] = {0};
	struct waiter openers[2];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "concurrency=1\nqueue_max=1");
	assert_int_equal(engine_slot_try(&stage.engine, a, &first, 0), 0);
	for (int i = 0; i < 2; i++) {
		openers[i] = (struct waiter){.limiter = a, .slot = &slots[i], .is_opener = true};
		assert_int_equal(engine_slot_open(&stage.engine, &openers[i], NEVER_NS, 0),
				 i ? -EBUSY : WAITING);
	}
	assert_int_equal(a->counters[COUNTER_REFUSED_QUEUE], 1);
	engine_cancel(&stage.engine, &openers[0]);
	engine_slot_close(&stage.engine, &first, true, 0);
	stage_close(&stage);
}

static void test_keys_have_the_bounds_of_their_limiter_each(void **state)
{
	struct stage stage;
	struct limiter *a, *x;
	struct key *key;
	struct guest guests[2];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1/s\nqueue_max=1\nweight=300\npriority=3");
	assert_int_equal(engine_key(&stage.engine, a, "x", 0, 0, &key), 0);
	x = keys_open(&stage.engine.schedule, a, key);
	assert_int_equal(stage_try(&stage, x, 1, 0), 0);
	flood(&stage, guests, 1, x, 1);
	assert_int_equal(stage_ask(&stage, &guests[1], x, 1, 0), -EBUSY);
	assert_int_equal(x->settings->weight, 100);
	assert_int_equal(x->settings->priority, 0);
	stage_write(&stage, a, "queue_max=2", 0);
	assert_int_equal(stage_ask(&stage, &guests[1], x, 1, 0), WAITING);
	leave(&stage, guests, 2);
	keys_close(&stage.engine.schedule, x);
	stage_close(&stage);
}

static void test_the_min_of_siblings_fits_the_rate(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct change change = {.kind = CHANGE_SETTINGS, .setting = CHANGE_CONFIG};

	(void)state;
	a = make_family(&stage, "min=6/s", "min=4/s", children);
	change.limiter = children[1];
	change.text = "min=4.5/s";
	change_begin(&stage.engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &change);
	assert_int_equal(change.outcome, -ERANGE);
	assert_string_equal(change.error, "the min of all limiters in 'a' together is 10.5/s: "
					  "more than its rate, 10/s");
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "rate=9/s", 0), -ERANGE);
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "rate=100/s 9/s", 0), -ERANGE);
	/* A limiter can be stopped. */
	stage_write(&stage, a, "rate=0", 0);
	stage_write(&stage, a, "rate=10/s", 0);
	stage_write(&stage, children[0], "min=none", 0);
	stage_write(&stage, a, "rate=9/s", 0);
	stage_close(&stage);
}

/* Writes @config to @limiter, which is refused with @reason. */
static void refuse(struct stage *stage, struct limiter *limiter, const char *config,
		   const char *reason)
{
	struct change change = {.kind = CHANGE_SETTINGS, .setting = CHANGE_CONFIG};

	change.limiter = limiter;
	change.text = config;
	change_begin(&stage->engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage->engine), &change);
	assert_int_equal(change.outcome, -ERANGE);
	assert_string_equal(change.error, reason);
}

static void test_a_min_fits_the_rates_of_all_limiters_above(void **state)
{
	struct stage stage;
	struct limiter *children[2], *grandchild;

	(void)state;
	(void)make_family(&stage, "min=6/s", "rate=20/s", children);
	grandchild = stage_make(&stage, children[1], "one", "rate=max");
	stage_make(&stage, children[1], "other", "min=4/s");
	refuse(&stage, grandchild, "min=7/s",
	       "the min of all limiters in 'a/other' together is 11/s: more than the rate of 'a', "
	       "10/s");
	refuse(&stage, grandchild, "min=17/s",
	       "the min of all limiters in 'a/other' together is 21/s: more than its rate, 20/s");
	/* They are no part of the sum in `a`: those are its own children's. */
	stage_write(&stage, grandchild, "min=6/s", 0);
	stage_close(&stage);
}

static void test_a_rate_is_lowered_whatever_limiters_further_down_have(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a, *grandchild;

	(void)state;
	a = make_family(&stage, "min=3/s", "rate=max", children);
	grandchild = stage_make(&stage, children[1], "one", "min=9/s");
	stage_write(&stage, a, "rate=4/s", 0);
	/* Less is no reason to refuse, nor is the same. */
	stage_write(&stage, grandchild, "min=8/s", 0);
	stage_write(&stage, grandchild, "min=8/s\nweight=5", 0);
	refuse(&stage, grandchild, "min=8.5/s",
	       "the min of all limiters in 'a/other' together is 8.5/s: more than the rate of 'a', "
	       "4/s");
	stage_close(&stage);
}

/* Two hosts of a fleet, each within the rate for itself, can get there. */
static void test_a_sum_that_is_too_large_may_come_down_in_steps(void **state)
{
	struct stage stage;
	struct limiter *children[2], *a;
	struct settings settings;
	uint32_t altered;

	(void)state;
	a = make_family(&stage, "min=6/s", "min=4/s", children);
	settings = *limiter_settings(children[0]);
	settings.min.amount = 20;
	assert_int_equal(change_apply_settings(&stage.engine, children[0], &settings, &altered), 0);
	assert_int_equal(limiter_settings(children[0])->min.amount, 20);
	stage_write(&stage, a, "rate=15/s", 0);
	stage_write(&stage, children[0], "min=19/s", 0);
	refuse(&stage, a, "rate=14/s",
	       "the min of all limiters in 'a' together is 23/s: more than its rate, 14/s");
	refuse(&stage, children[1], "min=5/s",
	       "the min of all limiters in 'a' together is 24/s: more than its rate, 15/s");
	stage_close(&stage);
}

/* Tags begin anew long before they would wrap around. */
static void test_the_order_holds_where_tags_begin_anew(void **state)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct order *order = order_new();
	struct sibling siblings[2] = {0};
	struct waiter waiters[2] = {{.ticket = 1, .tokens = TOKENS_MAX},
				    {.ticket = 2, .tokens = TOKENS_MAX}};
	uint64_t now_ns = 1;

	(void)state;
	settings.weight = 1;
	for (int i = 0; i < 2; i++) {
		order_follow(order, &siblings[i], &settings, 0, false);
		order_enter(order, &siblings[i], &waiters[i], now_ns);
	}
	for (int i = 0; i < 1000; i++, now_ns++) {
		struct sibling *turn = &siblings[i % 2];

		assert_ptr_equal(order_first(order, now_ns), &waiters[i % 2]);
		(void)order_grant(order, turn, TOKENS_MAX, now_ns);
		waiters[i % 2].ticket += 2;
		order_enter(order, turn, &waiters[i % 2], now_ns);
	}
	for (int i = 0; i < 2; i++) {
		order_leave(order, &siblings[i]);
		order_free_sibling(&siblings[i]);
	}
	free(order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sibling_with_more_readers_gets_no_more),
		cmocka_unit_test(test_siblings_share_by_weight),
		cmocka_unit_test(test_weights_hold_exactly_in_the_long_run),
		cmocka_unit_test(test_a_take_counts_by_its_size),
		cmocka_unit_test(test_the_own_queue_is_one_more_sibling),
		cmocka_unit_test(test_a_higher_priority_comes_first_always),
		cmocka_unit_test(test_a_priority_counts_at_once_for_waiters),
		cmocka_unit_test(test_a_min_comes_before_any_priority),
		cmocka_unit_test(test_a_sibling_gets_the_greater_of_its_min_and_its_part),
		cmocka_unit_test(test_a_min_that_falls_due_comes_before_a_large_take),
		cmocka_unit_test(test_a_min_that_was_more_than_the_part_is_no_debt),
		cmocka_unit_test(test_a_sibling_that_had_all_alone_does_not_pay_for_it),
		cmocka_unit_test(test_a_try_passes_waiters_that_the_order_puts_behind_it),
		cmocka_unit_test(test_a_key_does_not_wait_for_the_flood_of_another),
		cmocka_unit_test(test_a_key_that_is_opened_for_each_token_gets_no_more),
		cmocka_unit_test(test_a_key_is_remembered_while_it_comes_after_its_siblings),
		cmocka_unit_test(test_slots_follow_the_order),
		cmocka_unit_test(test_eta_counts_what_comes_before),
		cmocka_unit_test(test_eta_is_the_same_after_a_change_of_place),
		cmocka_unit_test(test_eta_is_the_same_in_a_first_child),
		cmocka_unit_test(test_queue_max_refuses_one_more_waiter),
		cmocka_unit_test(test_without_a_queue_a_read_is_granted_or_refused),
		cmocka_unit_test(test_wait_max_refuses_a_longer_wait),
		cmocka_unit_test(test_a_reader_that_a_predecessor_let_wait_is_not_refused),
		cmocka_unit_test(test_a_file_counts_once_for_queue_max),
		cmocka_unit_test(test_openers_are_refused_by_queue_max),
		cmocka_unit_test(test_keys_have_the_bounds_of_their_limiter_each),
		cmocka_unit_test(test_the_min_of_siblings_fits_the_rate),
		cmocka_unit_test(test_a_min_fits_the_rates_of_all_limiters_above),
		cmocka_unit_test(test_a_rate_is_lowered_whatever_limiters_further_down_have),
		cmocka_unit_test(test_a_sum_that_is_too_large_may_come_down_in_steps),
		cmocka_unit_test(test_the_order_holds_where_tags_begin_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
