/* Ranges: takes that wait for some tokens, and are granted as many as are there then. */
#include "tests/core/stage.h"

#include "core/limiter/holding.h"
#include "core/limiter/keys.h"

#include <inttypes.h>
#include <stdio.h>

/* Makes a limiter of 10/s with room for @burst, and all that is in it. */
static struct limiter *make_full(struct stage *stage, struct limiter *parent, const char *name,
				 uint64_t burst)
{
	char config[64];

	snprintf(config, sizeof(config), "burst=%" PRIu64 "\nrate=10/s", burst);
	return stage_make(stage, parent, name, config);
}

/* Asks for @tokens to @most. */
static int ask(struct stage *stage, struct guest *guest, struct limiter *limiter, uint64_t tokens,
	       uint64_t most, uint64_t now_ns)
{
	*guest = (struct guest){.waiter = {.limiter = limiter, .tokens = tokens, .most = most}};
	guest->waiter.outcome = WAITING;
	return engine_ask(&stage->engine, &guest->waiter, NEVER_NS, now_ns);
}

/* Asks for @tokens to @most, which are there. Returns the tokens granted. */
static uint64_t take(struct stage *stage, struct limiter *limiter, uint64_t tokens, uint64_t most,
		     uint64_t now_ns)
{
	struct guest guest;

	assert_int_equal(ask(stage, &guest, limiter, tokens, most, now_ns), 0);
	return guest.waiter.granted;
}

static void test_a_range_is_as_many_as_are_there_up_to_its_most(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 10);
	assert_int_equal(take(&stage, a, 1, 4, 0), 4);
	assert_int_equal(take(&stage, a, 6, 6, 0), 6);
	assert_int_equal(ask(&stage, &guest, a, 2, 100, 0), WAITING);
	stage_run(&stage, SEC);
	assert_int_equal(guest.done_ns, 200 * MS);
	assert_int_equal(guest.waiter.granted, 2);
	assert_int_equal(take(&stage, a, 1, 100, SEC), 8);
	assert_int_equal(a->counters[COUNTER_GRANTED], 20);
	assert_int_equal(a->counters[COUNTER_SERVED], 4);
	stage_close(&stage);
}

static void test_without_a_limit_a_range_is_its_most(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(take(&stage, a, 1, TOKENS_MAX, 0), TOKENS_MAX);
	stage_write(&stage, a, "rate=1/s\nenforcement=open", 0);
	assert_int_equal(take(&stage, a, 1, 50, 0), 50);
	stage_close(&stage);
}

static void test_a_range_is_what_all_limits_and_ancestors_have(void **state)
{
	struct limiter *a, *b, *c;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=9\nrate=10/s 100/h:7");
	b = make_full(&stage, a, "b", 20);
	c = make_full(&stage, a, "c", 3);
	assert_int_equal(take(&stage, c, 1, 100, 0), 3);
	assert_int_equal(take(&stage, b, 1, 100, 0), 4);
	assert_int_equal(a->buckets[0].level, 2);
	assert_int_equal(a->buckets[1].level, 0);
	assert_int_equal(b->buckets[0].level, 16);
	stage_close(&stage);
}

/* Takes 1 to @most of @c below @a. Returns 1 if @a notes that it lacked some, 2 if @c does. */
static unsigned int lacking(struct stage *stage, struct limiter *a, struct limiter *c,
			    uint64_t most, uint64_t now_ns)
{
	a->holding->lacked = c->holding->lacked = false;
	(void)take(stage, c, 1, most, now_ns);
	return (unsigned int)a->holding->lacked | (unsigned int)c->holding->lacked << 1;
}

static void test_the_limiter_that_has_the_fewest_notes_what_a_range_lacked(void **state)
{
	struct holding of_a = {0}, of_c = {0};
	struct limiter *a, *c;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 9);
	c = make_full(&stage, a, "c", 6);
	a->holding = &of_a;
	c->holding = &of_c;
	assert_int_equal(lacking(&stage, a, c, 2, 0), 0);
	assert_int_equal(lacking(&stage, a, c, 4, 0), 0); /* all of c, which was enough */
	assert_int_equal(lacking(&stage, a, c, 7, SEC), 2);
	/* c has three by then, and a has five. */
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, SEC), 0);
	assert_int_equal(lacking(&stage, a, c, 7, SEC + 300 * MS), 2);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 4}, 2 * SEC),
			 0);
	assert_int_equal(lacking(&stage, a, c, 7, 2 * SEC), 1);
	a->holding = c->holding = NULL;
	stage_close(&stage);
}

static void test_a_range_put_forward_gets_what_came_in_since(void **state)
{
	struct limiter *a, *b;
	struct guest guest;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 50);
	b = stage_make(&stage, a, "b", "burst=50\nrate=20/s");
	assert_int_equal(take(&stage, b, 50, 50, 0), 50);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 10}, 0), 0);
	/* b has it at 50 ms, and a at 1.1 s: by then there is more in b. */
	assert_int_equal(ask(&stage, &guest, b, 1, 30, 0), WAITING);
	stage_run(&stage, SEC);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -10}, SEC), 0);
	stage_collect(&stage);
	assert_int_equal(guest.done_ns, SEC);
	assert_int_equal(guest.waiter.granted, 10);
	assert_int_equal(b->buckets[0].level, 10);
	stage_close(&stage);
}

static void test_a_range_waits_in_the_order_of_arrival(void **state)
{
	struct guest large, range, behind;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 4);
	assert_int_equal(take(&stage, a, 4, 4, 0), 4);
	assert_int_equal(stage_ask(&stage, &large, a, 8, 0), WAITING);
	assert_int_equal(ask(&stage, &range, a, 1, 100, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &behind, a, 1, 0), WAITING);
	assert_int_equal(engine_eta(&stage.engine, a, 1, NULL, 0), 1100 * MS);
	stage_run(&stage, 2 * SEC);
	assert_int_equal(large.done_ns, 800 * MS);
	assert_int_equal(range.done_ns, 900 * MS);
	assert_int_equal(range.waiter.granted, 1);
	assert_int_equal(behind.done_ns, SEC);
	stage_close(&stage);
}

static void test_a_range_leaves_savings_of_an_interrupted_waiter(void **state)
{
	static const struct asker ann = {.thread = 1, .uid = 7};
	struct parked_place places[4];
	struct guest large, range;
	struct stage stage;
	uint32_t used = 0;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	parking_init(&stage.engine.schedule.parking, places, 4, &used);
	a = make_full(&stage, NULL, "a", 2);
	assert_int_equal(take(&stage, a, 2, 2, 0), 2);
	assert_int_equal(stage_ask(&stage, &large, a, 10, 0), WAITING);
	stage_run(&stage, 500 * MS);
	engine_interrupt(&stage.engine, &large.waiter, &ann, 500 * MS);
	stage_collect(&stage);
	assert_int_equal(ask(&stage, &range, a, 1, 100, 500 * MS), 0);
	assert_int_equal(range.waiter.granted, 2);
	stage_close(&stage);
}

static void test_an_interrupted_range_has_its_place_and_a_take_has_not(void **state)
{
	static const struct asker ann = {.thread = 1, .uid = 7};
	struct parked_place places[4];
	struct guest first, behind;
	struct stage stage;
	uint32_t used = 0;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	parking_init(&stage.engine.schedule.parking, places, 4, &used);
	a = make_full(&stage, NULL, "a", 1);
	assert_int_equal(take(&stage, a, 1, 1, 0), 1);
	assert_int_equal(ask(&stage, &first, a, 1, 100, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &behind, a, 1, 0), WAITING);
	engine_interrupt(&stage.engine, &first.waiter, &ann, 0);
	first.waiter.most = 1;
	assert_false(engine_return(&stage.engine, &first.waiter, &ann, NEVER_NS, 0));
	first.waiter.most = 100;
	assert_true(engine_return(&stage.engine, &first.waiter, &ann, NEVER_NS, 0));
	assert_int_equal(engine_ask(&stage.engine, &first.waiter, NEVER_NS, 0), WAITING);
	stage_run(&stage, SEC);
	assert_int_equal(first.done_ns, 100 * MS);
	assert_int_equal(behind.done_ns, 200 * MS);
	stage_close(&stage);
}

static void test_a_poller_of_a_range_reads_the_tokens_that_it_was_granted(void **state)
{
	struct stage stage;
	struct poller poller;
	struct limiter *a;
	struct token_read read = {.tokens = 2,
				  .most = 9,
				  .manner = READ_NONBLOCKING,
				  .within_ns = NEVER_NS,
				  .poller = &poller};
	struct read_wait wait;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 4);
	read.limiter = a;
	assert_int_equal(take(&stage, a, 4, 4, 0), 4);
	poller_init(&poller, a, 2, 9, NULL);
	assert_false(engine_poll(&stage.engine, &poller, 0));
	stage_run(&stage, 200 * MS);
	assert_int_equal(poller.state, POLLER_CALLED);
	assert_int_equal(a->polled, 2);
	assert_int_equal(take(&stage, a, 1, 9, 500 * MS), 3);
	assert_int_equal(engine_read(&stage.engine, &read, &wait, 600 * MS), 0);
	assert_int_equal(wait.waiter.granted, 2);
	assert_int_equal(a->polled, 0);
	/* Unpolled it takes what is there. */
	assert_int_equal(engine_read(&stage.engine, &read, &wait, 900 * MS), 0);
	assert_int_equal(wait.waiter.granted, 4);
	engine_unpoll(&stage.engine, &poller, 900 * MS);
	stage_close(&stage);
}

static void test_a_poller_of_a_range_that_does_not_read_gives_back_what_it_was_granted(void **state)
{
	struct stage stage;
	struct poller poller;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = make_full(&stage, NULL, "a", 20);
	assert_int_equal(take(&stage, a, 20, 20, 0), 20);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 5}, 0), 0);
	poller_init(&poller, a, 2, 9, NULL);
	assert_false(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = -11}, 0), 0);
	stage_run(&stage, 0);
	assert_int_equal(poller.state, POLLER_CALLED);
	assert_int_equal(poller.waiter.granted, 6);
	stage_run(&stage, SEC);
	assert_int_equal(poller.state, POLLER_AWAY);
	assert_int_equal(a->counters[COUNTER_GRANTED], 26);
	assert_int_equal(a->counters[COUNTER_RETURNED], 17);
	assert_int_equal(a->buckets[0].level, 16);
	stage_close(&stage);
}

static void test_a_range_in_shadow_counts_what_was_not_there(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=5\nrate=10/s\nenforcement=shadow");
	assert_int_equal(take(&stage, a, 2, 8, 0), 8);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 3);
	assert_int_equal(a->buckets[0].level, 0);
	/* Less than its least is there: it would have waited for all of it. */
	assert_int_equal(take(&stage, a, 2, 8, 100 * MS), 8);
	assert_int_equal(a->counters[COUNTER_SHADOWED], 11);
	assert_int_equal(a->buckets[0].level, 1);
	stage_close(&stage);
}

static void test_a_range_of_a_key_is_what_the_key_and_its_limiter_have(void **state)
{
	struct stage stage;
	struct limiter *a, *key;
	struct key *found;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=9\nrate=10/s\nkey_rate=1/s\nkey_burst=6");
	assert_int_equal(engine_key(&stage.engine, a, "k", 0, 0, &found), 0);
	key = keys_open(&stage.engine.schedule, a, found);
	assert_int_equal(take(&stage, key, 1, 100, 0), 6);
	assert_int_equal(take(&stage, a, 1, 100, 0), 3);
	keys_close(&stage.engine.schedule, key);
	stage_remove(&stage, a);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_range_is_as_many_as_are_there_up_to_its_most),
		cmocka_unit_test(test_without_a_limit_a_range_is_its_most),
		cmocka_unit_test(test_a_range_is_what_all_limits_and_ancestors_have),
		cmocka_unit_test(test_the_limiter_that_has_the_fewest_notes_what_a_range_lacked),
		cmocka_unit_test(test_a_range_put_forward_gets_what_came_in_since),
		cmocka_unit_test(test_a_range_waits_in_the_order_of_arrival),
		cmocka_unit_test(test_a_range_leaves_savings_of_an_interrupted_waiter),
		cmocka_unit_test(test_an_interrupted_range_has_its_place_and_a_take_has_not),
		cmocka_unit_test(test_a_poller_of_a_range_reads_the_tokens_that_it_was_granted),
		cmocka_unit_test(
			test_a_poller_of_a_range_that_does_not_read_gives_back_what_it_was_granted),
		cmocka_unit_test(test_a_range_in_shadow_counts_what_was_not_there),
		cmocka_unit_test(test_a_range_of_a_key_is_what_the_key_and_its_limiter_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
