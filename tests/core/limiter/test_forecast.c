/* test_forecast - how long readers wait as things stand: `eta`, `waiters`, `within`, `wait_max`. */
#include "tests/core/stage.h"

#include "core/limiter/forecast.h"

#include <stdio.h>

enum { READERS_MOST = 200, LIMITERS_MOST = 13, TREES = 400 };

/* A limiter `a` with children and grandchildren, and readers that wait in them. */
struct crowd {
	struct stage stage;
	struct limiter *limiters[LIMITERS_MOST];
	int limiter_count;
	struct guest readers[READERS_MOST];
	uint64_t until_ns[READERS_MOST]; /* when each has its tokens, as it was told */
	int reader_count;
	uint64_t seed;
};

static uint32_t draw(struct crowd *crowd, uint32_t below)
{
	crowd->seed = crowd->seed * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(crowd->seed >> 33) % below;
}

static struct limiter *add_limiter(struct crowd *crowd, struct limiter *parent, int min)
{
	static const uint32_t weights[] = {1, 50, 100, 100, 300, 10000};
	char name[16], config[128];
	struct limiter *limiter;

	snprintf(name, sizeof(name), "l%d", crowd->limiter_count);
	snprintf(config, sizeof(config), "weight=%u\npriority=%u\nmin=%d/s",
		 weights[draw(crowd, 6)], draw(crowd, 3) ? 0 : draw(crowd, 10), min);
	limiter = stage_make(&crowd->stage, parent, name, config);
	crowd->limiters[crowd->limiter_count++] = limiter;
	return limiter;
}

static void open_crowd(struct crowd *crowd, uint64_t seed)
{
	struct limiter *a;
	int children;

	*crowd = (struct crowd){.seed = seed};
	stage_open(&crowd->stage);
	a = stage_make(&crowd->stage, NULL, "a", "rate=20/s\nburst=5");
	crowd->limiters[crowd->limiter_count++] = a;
	children = 1 + (int)draw(crowd, 4);
	for (int i = 0; i < children; i++) {
		struct limiter *child = add_limiter(crowd, a, draw(crowd, 2) ? 0 : 5);

		for (uint32_t left = draw(crowd, 3); left; left--)
			(void)add_limiter(crowd, child, draw(crowd, 2) ? 0 : (int)draw(crowd, 10));
	}
	assert_int_equal(stage_try(&crowd->stage, a, 5, 0), 0);
}

/* Has a reader of a random limiter ask for 1 to 5 tokens, and notes what it is told. */
static void add_reader(struct crowd *crowd)
{
	struct stage *stage = &crowd->stage;
	uint64_t now_ns = stage->engine.schedule.now_ns, tokens = 1 + draw(crowd, 5);
	/* Most in few limiters: floods. */
	uint32_t places = draw(crowd, 3) ? 3 : (uint32_t)crowd->limiter_count;
	struct limiter *limiter =
		crowd->limiters[draw(crowd, places) % (uint32_t)crowd->limiter_count];
	uint64_t eta_ns = engine_eta(&stage->engine, limiter, tokens, NULL, now_ns);
	int err = stage_ask(stage, &crowd->readers[crowd->reader_count], limiter, tokens, now_ns);

	if (!err) {
		assert_int_equal(eta_ns, 0);
		return;
	}
	assert_int_equal(err, WAITING);
	crowd->until_ns[crowd->reader_count++] = now_ns + eta_ns;
}

/* Notes for each reader what `waiters` says of it now. */
static void look(struct crowd *crowd)
{
	uint64_t now_ns = crowd->stage.engine.schedule.now_ns;

	for (int i = 0; i < crowd->reader_count; i++)
		crowd->until_ns[i] = NEVER_NS; /* of those that have their tokens */
	for (int l = 0; l < crowd->limiter_count; l++) {
		uint64_t asked = 0;

		engine_refresh(&crowd->stage.engine, crowd->limiters[l], now_ns);
		for (int i = 0; i < crowd->reader_count; i++) {
			const struct waiter *waiter = &crowd->readers[i].waiter;

			if (waiter->limiter != crowd->limiters[l] || waiter->outcome != WAITING)
				continue;
			asked += waiter->tokens;
			crowd->until_ns[i] = forecast_waiter(crowd->limiters[l], asked,
							     waiter->tokens, NULL, now_ns);
		}
	}
}

/* Tells whether each reader was granted when it was told, or before. */
static void check(struct crowd *crowd, uint64_t seed, int first)
{
	stage_run(&crowd->stage, crowd->stage.engine.schedule.now_ns + 60 * SEC);
	for (int i = first; i < crowd->reader_count; i++) {
		const struct guest *reader = &crowd->readers[i];

		assert_int_equal(reader->waiter.outcome, 0);
		if (reader->done_ns > crowd->until_ns[i])
			fail_msg("tree %llu: reader %d of '%s' has its tokens at %llu, not %llu",
				 (unsigned long long)seed, i, reader->waiter.limiter->name,
				 (unsigned long long)reader->done_ns,
				 (unsigned long long)crowd->until_ns[i]);
	}
	stage_close(&crowd->stage);
}

static void fill(struct crowd *crowd)
{
	for (uint32_t left = 1 + draw(crowd, READERS_MOST); left; left--) {
		add_reader(crowd);
		if (!draw(crowd, 8))
			stage_run(&crowd->stage,
				  crowd->stage.engine.schedule.now_ns + draw(crowd, 1000) * MS);
	}
}

static void test_no_reader_waits_longer_than_eta_while_no_other_comes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= TREES; seed++) {
		struct crowd crowd;

		open_crowd(&crowd, seed);
		fill(&crowd);
		check(&crowd, seed, crowd.reader_count ? crowd.reader_count - 1 : 0);
	}
}

static void test_no_waiter_waits_longer_than_waiters_tells(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= TREES; seed++) {
		struct crowd crowd;

		open_crowd(&crowd, seed);
		fill(&crowd);
		look(&crowd);
		check(&crowd, seed, 0);
	}
}

static void flood(struct stage *stage, struct guest *guests, int count, struct limiter *limiter)
{
	uint64_t now_ns = stage->engine.schedule.now_ns;

	for (int i = 0; i < count; i++)
		assert_int_equal(stage_ask(stage, &guests[i], limiter, 1, now_ns), WAITING);
}

static void leave(struct stage *stage, struct guest *guests, int count)
{
	for (int i = 0; i < count; i++)
		engine_cancel(&stage->engine, &guests[i].waiter);
}

/* Returns forecast_waiter() of a reader of one token with @asked. */
static uint64_t when(struct stage *stage, struct limiter *limiter, uint64_t asked)
{
	return forecast_waiter(limiter, asked, 1, NULL, stage->engine.schedule.now_ns);
}

static void test_waiters_of_an_only_child_know_their_time_exactly(void **state)
{
	struct stage stage;
	struct guest guests[10];
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	b = stage_make(&stage, a, "b", NULL);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, guests, 10, b);
	for (uint64_t i = 1; i <= 10; i++)
		assert_int_equal(when(&stage, b, i), i * 100 * MS);
	stage_run(&stage, 250 * MS);
	assert_int_equal(when(&stage, b, 1), 300 * MS);
	leave(&stage, guests + 2, 8);
	stage_close(&stage);
}

static void test_waiters_count_those_that_come_before_in_siblings(void **state)
{
	struct stage stage;
	struct guest high[50], low[2];
	struct limiter *a, *b, *c;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	b = stage_make(&stage, a, "b", "priority=1");
	c = stage_make(&stage, a, "c", NULL);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, low, 2, c);
	flood(&stage, high, 50, b);
	assert_int_equal(when(&stage, b, 50), 5 * SEC);
	assert_int_equal(when(&stage, c, 1), 5 * SEC + 100 * MS);
	assert_int_equal(when(&stage, c, 2), 5 * SEC + 200 * MS);
	leave(&stage, high, 50);
	leave(&stage, low, 2);
	stage_close(&stage);
}

static void test_a_small_min_with_a_long_queue_holds_up_its_siblings_by_little(void **state)
{
	struct stage stage;
	struct guest batch[READERS_MOST], guests[2];
	struct limiter *a, *b, *c;
	uint64_t eta_ns;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	b = stage_make(&stage, a, "b", "min=1/s");
	c = stage_make(&stage, a, "c", NULL);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	flood(&stage, batch, READERS_MOST, b);
	stage_run(&stage, SEC);
	/* A take of b's share, one that is due, and what is made up for in a second at most. */
	eta_ns = engine_eta(&stage.engine, c, 1, NULL, SEC);
	assert_in_range(eta_ns, 100 * MS, 700 * MS);
	/* So `within` and wait_max let it wait. */
	assert_int_equal(stage_ask_within(&stage, &guests[0], c, 1, SEC, SEC), WAITING);
	stage_write(&stage, c, "wait_max=2s", SEC);
	assert_int_equal(stage_ask(&stage, &guests[1], c, 1, SEC), WAITING);
	stage_run(&stage, 3 * SEC);
	assert_int_equal(guests[0].waiter.outcome, 0);
	assert_int_equal(guests[1].waiter.outcome, 0);
	for (int i = 0; i < READERS_MOST; i++) {
		if (batch[i].waiter.outcome == WAITING)
			engine_cancel(&stage.engine, &batch[i].waiter);
	}
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_reader_waits_longer_than_eta_while_no_other_comes),
		cmocka_unit_test(test_no_waiter_waits_longer_than_waiters_tells),
		cmocka_unit_test(test_waiters_of_an_only_child_know_their_time_exactly),
		cmocka_unit_test(test_waiters_count_those_that_come_before_in_siblings),
		cmocka_unit_test(
			test_a_small_min_with_a_long_queue_holds_up_its_siblings_by_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
