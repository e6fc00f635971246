/* Tests of appetite: steady and random readers, readers that never have enough, and changes. */
#include "core/fleet/appetite.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* A leaf of 500/s on 4,096 leaves, in tokens a period. */
static const double LEAF = 500.0 / 4096 / 10;

struct reader {
	struct appetite appetite;
	struct appetite_facts facts;
};

static struct reader reader_of(uint32_t held)
{
	return (struct reader){.facts = {.held = held, .leaf = LEAF}};
}

/* Lets @periods pass in each of which @asked tokens are asked for. */
static void pass(struct reader *reader, uint32_t periods, double asked, bool waited)
{
	reader->facts.asked = asked;
	reader->facts.waited = waited;
	for (uint32_t i = 0; i < periods; i++)
		appetite_note(&reader->appetite, &reader->facts, 1);
}

static double need_a_second(const struct reader *reader)
{
	return appetite_need(&reader->appetite, &reader->facts) * LEAF * APPETITE_SECOND;
}

static void test_a_steady_reader_needs_what_it_asks_for(void **state)
{
	struct reader reader = reader_of(30);

	(void)state;
	for (int i = 0; i < 100; i++) {
		pass(&reader, 1, 1, false);
		pass(&reader, 3, 0, false);
	}
	assert_true(fabs(need_a_second(&reader) - 2.5) < 0.05);
	assert_int_equal(appetite_hunger(&reader.appetite), 0);
}

static void test_the_need_of_a_slow_reader_stays_between_its_tokens(void **state)
{
	struct reader reader = reader_of(30);

	(void)state;
	for (int i = 0; i < 12; i++) {
		pass(&reader, 1, 1, false);
		pass(&reader, 49, 0, false);
	}
	for (int i = 0; i < 3; i++) {
		pass(&reader, 1, 1, false);
		for (int j = 1; j < 50; j++) {
			assert_true(fabs(need_a_second(&reader) - 0.2) < 0.01);
			pass(&reader, 1, 0, false);
		}
	}
	/* It falls once the next ones are late. */
	pass(&reader, 25, 0, false);
	assert_true(need_a_second(&reader) < 0.195);
	pass(&reader, 90, 0, false);
	assert_true(need_a_second(&reader) < 0.17);
}

static void test_a_change_is_seen_within_a_second(void **state)
{
	struct reader reader = reader_of(2000);

	(void)state;
	pass(&reader, 300, 10, false);
	pass(&reader, 10, 20, false);
	assert_true(fabs(need_a_second(&reader) - 200) < 1);
	pass(&reader, 10, 0, false);
	assert_true(need_a_second(&reader) < 1);
}

/* 2.5/s: in five seconds without a token it is hard to tell that from chance. */
static void test_ten_tokens_that_do_not_come_end_a_small_demand(void **state)
{
	struct reader reader = reader_of(30);

	(void)state;
	for (int i = 0; i < 100; i++) {
		pass(&reader, 1, 1, false);
		pass(&reader, 3, 0, false);
	}
	pass(&reader, 35, 0, false);
	assert_true(need_a_second(&reader) > 2);
	pass(&reader, 5, 0, false);
	assert_true(need_a_second(&reader) == 0);
	pass(&reader, 300, 0, false);
	assert_true(need_a_second(&reader) == 0);
}

static void test_a_reader_that_waits_is_not_silent(void **state)
{
	struct reader reader = reader_of(30);

	(void)state;
	for (int i = 0; i < 100; i++) {
		pass(&reader, 1, 1, false);
		pass(&reader, 3, 0, false);
	}
	reader.facts.waiting = 1;
	pass(&reader, 45, 0, true);
	assert_true(need_a_second(&reader) > 0);
}

static void test_a_need_is_over_after_a_long_wait(void **state)
{
	struct reader reader = reader_of(30);

	(void)state;
	for (int i = 0; i < 3; i++) {
		reader.facts.waiting++;
		pass(&reader, 1, 1, true);
		pass(&reader, 9, 0, true);
	}
	pass(&reader, 3000, 0, true);
	reader.facts.waiting = 0;
	pass(&reader, 1, 0, false);
	assert_true(need_a_second(&reader) < 0.001);
}

static void test_chance_is_no_change(void **state)
{
	struct reader reader = reader_of(200);
	uint32_t random = 1;

	(void)state;
	/* 20/s at random times: 2 a period on average, between 0 and 4. */
	for (int i = 0; i < 3000; i++) {
		random = random * 1103515245 + 12345;
		pass(&reader, 1, (double)(random >> 16) / 65536 * 4, false);
		assert_true(i < 300 || fabs(need_a_second(&reader) - 20) < 4);
	}
}

/* Passes 60 s of readers that come at random, independently of each other: @mean a period. */
static void pass_at_random(struct reader *reader, double mean, uint32_t *random)
{
	for (int i = 0; i < 600; i++) {
		double asked = -1;

		for (double left = mean; left > 0; asked++) {
			*random = *random * 1103515245 + 12345;
			left += log(((*random >> 16) + 0.5) / 65536);
		}
		pass(reader, 1, asked, false);
	}
}

static void test_readers_at_random_are_told_from_steady_ones(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (double mean = 0.1; mean < 20; mean *= 4) {
		struct reader reader = reader_of(4000);
		double sum = 0;

		assert_true(appetite_chance(&reader.appetite) == 1);
		for (int i = 0; i < 20; i++) {
			pass_at_random(&reader, mean, &random);
			sum += appetite_chance(&reader.appetite);
		}
		assert_true(sum / 20 > 0.75);
		reader = reader_of(4000);
		for (int i = 0; i < 900; i++)
			pass(&reader, 1, floor((i + 1) * mean) - floor(i * mean), false);
		assert_true(appetite_chance(&reader.appetite) < 0.2);
	}
}

static void test_a_backlog_is_worked_off_in_two_seconds(void **state)
{
	struct reader reader = reader_of(100);

	(void)state;
	pass(&reader, 300, 1, false);
	reader.facts.waiting = 40;
	assert_true(fabs(need_a_second(&reader) - 10) < 1);
	reader.facts.long_waiting = true;
	assert_true(fabs(need_a_second(&reader) - 30) < 1);
	reader.facts.long_waiting = false;
	pass(&reader, 17, 1, true);
	assert_true(fabs(need_a_second(&reader) - 10) < 1);
	pass(&reader, 1, 1, true);
	assert_true(fabs(need_a_second(&reader) - 30) < 1);
}

/* A reader that asks again as soon as it was served, whatever it gets. */
static uint32_t feed(struct reader *reader, uint32_t periods)
{
	for (uint32_t i = 0; i < periods; i++) {
		uint32_t hunger;

		pass(reader, 1, reader->facts.held * LEAF, true);
		hunger = appetite_hunger(&reader->appetite);
		if (hunger > reader->facts.held)
			reader->facts.held = hunger < 4096 ? hunger : 4096;
	}
	return reader->facts.held;
}

static void test_a_hungry_reader_has_all_soon(void **state)
{
	struct reader reader = reader_of(20);

	(void)state;
	reader.facts.contended = true;
	/* After 4 tokens. */
	assert_int_equal(feed(&reader, 16), 20);
	assert_int_equal(feed(&reader, 1), 40);
	assert_int_equal(feed(&reader, 25), 4096);
}

static void test_readers_that_wait_seldom_are_not_hungry(void **state)
{
	struct reader reader = reader_of(200);

	(void)state;
	reader.facts.contended = true;
	for (int i = 0; i < 200; i++) {
		reader.facts.waiting = i % 10 == 0;
		pass(&reader, 1, 2, i % 10 == 0);
		assert_int_equal(appetite_hunger(&reader.appetite), 0);
	}
}

static void test_readers_that_wait_often_want_twice_as_much_while_no_host_is_short(void **state)
{
	struct reader reader = reader_of(200);

	(void)state;
	for (int i = 0; i < 21; i++) {
		reader.facts.waiting = 1 + i % 2;
		pass(&reader, 1, 2, true);
	}
	assert_int_equal(appetite_hunger(&reader.appetite), 393);
}

static void test_readers_that_wait_often_want_a_little_more_where_a_host_is_short(void **state)
{
	struct reader reader = reader_of(160);

	(void)state;
	reader.facts.contended = true;
	for (int i = 0; i < 21; i++) {
		reader.facts.waiting = 1 + i % 2;
		pass(&reader, 1, 2, true);
	}
	assert_int_equal(appetite_hunger(&reader.appetite), 193);
}

/* A reader that waits for a third of the time, and asks for @asked tokens a period. */
static void work(struct reader *reader, uint32_t periods, double asked)
{
	reader->facts.contended = true;
	reader->facts.waited_part = 0.33;
	for (uint32_t i = 0; i < periods; i++) {
		reader->facts.waiting = i % 3 == 0;
		pass(reader, 1, asked, false);
	}
}

static void test_a_probe_that_is_of_use_is_followed_by_a_larger_one(void **state)
{
	struct reader reader = reader_of(640);

	(void)state;
	work(&reader, 15, 640 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 681);
	reader.facts.held = 681;
	work(&reader, 10, 681 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 766);
}

/* A reader that works for 30 ms between tokens, which come whole. */
static void work_between(struct reader *reader, uint32_t periods)
{
	double tokens = 0;

	reader->facts.contended = true;
	for (uint32_t i = 0; i < periods; i++) {
		double due = fmin(reader->facts.held * LEAF, 100.0 / 30), before = floor(tokens);

		tokens += due;
		reader->facts.waiting = i % 2;
		reader->facts.waited_part = fmax(0, 1 - 0.3 * due);
		pass(reader, 1, floor(tokens) - before, false);
		if (appetite_hunger(&reader->appetite) > reader->facts.held)
			reader->facts.held = appetite_hunger(&reader->appetite);
	}
}

static void test_a_reader_of_few_tokens_is_seen_to_want_more(void **state)
{
	(void)state;
	for (uint32_t held = 20; held < 60; held++) {
		struct reader reader = reader_of(held);

		work_between(&reader, 200);
		assert_true(reader.facts.held * LEAF * APPETITE_SECOND > 25);
	}
}

static void test_a_vain_probe_is_not_repeated_for_half_a_minute(void **state)
{
	struct reader reader = reader_of(160);

	(void)state;
	work(&reader, 15, 160 * LEAF);
	reader.facts.held = 193;
	work(&reader, 10, 160 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 0);
	reader.facts.held = 160;
	work(&reader, 299, 160 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 0);
	work(&reader, 2, 160 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 193);
}

/* A limiter of @rate tokens a second, in steps of a millisecond, and what comes to it. */
enum { KNOWN_MS = 30000 };

struct crowd {
	struct reader reader;
	double rate, tokens; /* no more than one is saved up */
	double queue;
	int at, waits; /* the millisecond; for so many readers have waited */
	int probes;    /* that began after KNOWN_MS */
	uint32_t random;
};

static struct crowd crowd_of(double rate)
{
	return (struct crowd){
		.reader = reader_of((uint32_t)lround(rate / LEAF / APPETITE_SECOND)),
		.rate = rate,
		.random = 1,
	};
}

/* Tells whether what comes @rate times a second comes in this millisecond. */
static bool comes(struct crowd *crowd, double rate)
{
	crowd->random = crowd->random * 1103515245 + 12345;
	return (crowd->random >> 16) < 65536 * rate / 1000;
}

static void join(struct crowd *crowd, int readers)
{
	crowd->reader.facts.asked += readers;
	if (crowd->waits < 10)
		crowd->reader.facts.asked_calm += readers;
	crowd->queue += readers;
}

/* Ends a millisecond, and its period. Returns how many tokens were granted. */
static int pass_a_millisecond(struct crowd *crowd)
{
	struct appetite_facts *facts = &crowd->reader.facts;
	int granted;

	crowd->tokens = fmin(crowd->tokens + crowd->rate / 1000, 1);
	granted = crowd->tokens >= 1 && crowd->queue >= 1;
	crowd->tokens -= granted;
	crowd->queue -= granted;
	facts->calm += crowd->waits < 10 ? 0.01 : 0;
	facts->waited_part += crowd->queue > 0 ? 0.01 : 0;
	crowd->waits = crowd->queue > 0 ? crowd->waits + 1 : 0;
	if (++crowd->at % 100)
		return granted;
	facts->waited = facts->waited_part > 0.995;
	facts->waiting = crowd->queue;
	appetite_note(&crowd->reader.appetite, facts, 1);
	/* A probe that begins is given up at once: it may begin again, also if it was in vain. */
	crowd->probes += crowd->at > KNOWN_MS && crowd->reader.appetite.wanted;
	crowd->reader.appetite.wanted = crowd->reader.appetite.steps = 0;
	facts->asked = facts->asked_calm = facts->calm = facts->waited_part = 0;
	return granted;
}

static void test_readers_that_wait_by_chance_are_not_probed(void **state)
{
	static const double LOADS[] = {0.5, 0.7, 0.8};

	(void)state;
	for (uint32_t i = 0; i < 12; i++) {
		struct crowd crowd = crowd_of(25);

		crowd.random = i;
		while (crowd.at < 600 * 1000) {
			if (comes(&crowd, 25 * LOADS[i % 3]))
				join(&crowd, 1);
			(void)pass_a_millisecond(&crowd);
		}
		/* In ten minutes, with no such rule: 1,600 and more. */
		assert_true(crowd.probes < 100);
	}
}

/* Readers that come together, a millisecond apart, each @chain times; then a pause at random. */
static int probes_of(double rate, int readers, int chain, double pauses_per_s, int seconds)
{
	struct crowd crowd = crowd_of(rate);
	int coming = 0, again = 0;

	while (crowd.at < seconds * 1000) {
		if (!coming && !again && crowd.queue <= 0 && comes(&crowd, pauses_per_s)) {
			coming = readers;
			again = readers * (chain - 1);
		}
		if (coming && coming--)
			join(&crowd, 1);
		if (pass_a_millisecond(&crowd) && again && again--)
			join(&crowd, 1);
	}
	return crowd.probes;
}

static void test_readers_that_wait_less_and_ask_more_are_probed(void **state)
{
	(void)state;
	/* One after another: 8 with pauses of 0.25 s. All together: 8 and 10. */
	assert_true(probes_of(20, 1, 8, 4, 60) > 20);
	assert_true(probes_of(8.75, 8, 1, 1 / 0.3, 60) > 20);
	assert_true(probes_of(20, 10, 1, 5, 60) > 20);
}

/* A reader that pauses for @pause milliseconds. */
static int probes_with(double rate, int pause, int seconds)
{
	struct crowd crowd = crowd_of(rate);
	int since = 0;

	while (crowd.at < seconds * 1000) {
		if (crowd.queue <= 0 && ++since == pause) {
			join(&crowd, 1);
			since = 0;
		}
		(void)pass_a_millisecond(&crowd);
	}
	return crowd.probes;
}

static void test_one_slow_reader_that_waits_is_probed(void **state)
{
	(void)state;
	assert_true(probes_with(1, 600, 60) > 20);
}

static void test_readers_that_wait_all_the_time_now_are_probed_soon(void **state)
{
	struct crowd crowd = crowd_of(12);

	(void)state;
	/* Half a minute of one reader a tenth of a second; then others make it wait for good. */
	while (crowd.at < 30 * 1000) {
		if (comes(&crowd, 9))
			join(&crowd, 1);
		(void)pass_a_millisecond(&crowd);
	}
	while (crowd.at < 40 * 1000 && !crowd.probes) {
		if (crowd.queue <= 6 && comes(&crowd, 30))
			join(&crowd, 1);
		(void)pass_a_millisecond(&crowd);
	}
	assert_true(crowd.probes > 0);
}

static void test_a_probe_that_lost_its_leaves_ends_when_readers_wait_no_more(void **state)
{
	struct reader reader = reader_of(160);

	(void)state;
	work(&reader, 15, 160 * LEAF);
	reader.facts.held = 193;
	work(&reader, 5, 193 * LEAF);
	assert_int_equal(appetite_hunger(&reader.appetite), 193);
	/* Other hosts need them before it can tell, and its readers want less. */
	reader.facts.held = 160;
	reader.facts.waited_part = 0;
	pass(&reader, 50, 0.1, false);
	assert_int_equal(appetite_hunger(&reader.appetite), 0);
}

static void test_a_probe_shows_what_readers_want(void **state)
{
	struct reader reader = reader_of(40);

	(void)state;
	work(&reader, 300, 40 * LEAF);
	reader.facts.held = appetite_hunger(&reader.appetite);
	assert_in_range(reader.facts.held, 41, 73);
	reader.facts.waited_part = 0;
	pass(&reader, 10, 0.8, false);
	assert_int_equal(appetite_hunger(&reader.appetite), 0);
	assert_true(fabs(need_a_second(&reader) - 8) < 0.1);
}

static void test_nothing_is_wanted_for_a_short_wait(void **state)
{
	struct reader reader = reader_of(20);

	(void)state;
	for (int i = 0; i < 50; i++) {
		pass(&reader, 1, 1, true);
		pass(&reader, 9, 1, false);
		assert_int_equal(appetite_hunger(&reader.appetite), 0);
	}
}

/* Lets readers wait until more is wanted, gives it, and lets them wait no more. */
static uint32_t be_vain(struct reader *reader, uint32_t *hunger)
{
	uint32_t periods = 0;

	while (!appetite_hunger(&reader->appetite) && periods < 1000) {
		pass(reader, 1, 1, true);
		periods++;
	}
	*hunger = appetite_hunger(&reader->appetite);
	reader->facts.held = *hunger;
	pass(reader, 1, 1, true);
	pass(reader, 1, 1, false);
	assert_int_equal(appetite_hunger(&reader->appetite), 0);
	reader->facts.held = 64;
	pass(reader, 5, 1, false);
	return periods;
}

static void test_after_a_vain_try_readers_have_to_wait_twice_as_long(void **state)
{
	struct reader reader = reader_of(64);
	uint32_t hunger;

	(void)state;
	assert_int_equal(be_vain(&reader, &hunger), 5);
	assert_int_equal(hunger, 128);
	assert_int_equal(be_vain(&reader, &hunger), 10);
	assert_int_equal(hunger, 96);
	for (int i = 0; i < 10; i++)
		assert_int_equal(be_vain(&reader, &hunger), 20);
	assert_int_equal(hunger, 80);
}

static void test_a_use_ends_the_vain_tries(void **state)
{
	struct reader reader = reader_of(64);
	uint32_t hunger;

	(void)state;
	for (int i = 0; i < 5; i++)
		(void)be_vain(&reader, &hunger);
	assert_int_equal(feed(&reader, 50), 4096);
}

static void test_rare_readers_are_told_also_after_a_while(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	for (int i = 0; i < 10; i++) {
		pass(&reader, 1, 100, false);
		assert_int_equal(appetite_is_rare(&reader.appetite), i > 0);
		pass(&reader, 299, 0, false);
		assert_true(appetite_is_rare(&reader.appetite));
	}
	/* When they came is known after a break, too. */
	appetite_begin(&reader.appetite, 1);
	assert_true(need_a_second(&reader) == 0);
	assert_true(appetite_is_rare(&reader.appetite));
	pass(&reader, 20, 1, false);
	assert_false(appetite_is_rare(&reader.appetite));
	appetite_begin(&reader.appetite, 150);
	assert_false(appetite_is_rare(&reader.appetite));
	appetite_begin(&reader.appetite, 1);
	assert_true(appetite_is_rare(&reader.appetite));
	appetite_begin(&reader.appetite, UINT64_MAX);
	assert_true(appetite_is_rare(&reader.appetite));
	/* A break that was long makes no reader rare that comes often. */
	pass(&reader, 20, 1, false);
	appetite_begin(&reader.appetite, UINT64_MAX);
	pass(&reader, 1, 1, false);
	assert_false(appetite_is_rare(&reader.appetite));
}

static void test_no_reader_is_rare_until_another_one_has_not_come(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	pass(&reader, 1000, 0, false);
	assert_false(appetite_is_rare(&reader.appetite));
	pass(&reader, 1, 1, false);
	pass(&reader, 150, 0, false);
	assert_false(appetite_is_rare(&reader.appetite));
	pass(&reader, 1, 0, false);
	assert_true(appetite_is_rare(&reader.appetite));
}

/* One comes @times times after @idle periods in which none waited, and waits for @waits. */
static void come(struct reader *reader, uint32_t idle, uint32_t waits, int times)
{
	for (int i = 0; i < times; i++) {
		pass(reader, idle, 0, false);
		reader->facts.waiting = 1;
		pass(reader, 1, 1, false);
		pass(reader, waits, 0, false);
		reader->facts.waiting = 0;
	}
}

static void test_a_rare_reader_that_asks_again_and_again_is_not_rare(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 100, 30, 20);
	assert_true(appetite_is_rare(&reader.appetite));
	come(&reader, 23, 60, 2);
	come(&reader, 25, 60, 1);
	come(&reader, 23, 60, 2);
	assert_true(appetite_is_rare(&reader.appetite));
	/* Also while a break is remembered. */
	appetite_begin(&reader.appetite, 0);
	come(&reader, 23, 60, 1);
	assert_false(appetite_is_rare(&reader.appetite));
	/* The next one is late. */
	pass(&reader, 24, 0, false);
	assert_false(appetite_is_rare(&reader.appetite));
	pass(&reader, 1, 0, false);
	assert_true(appetite_is_rare(&reader.appetite));
	come(&reader, 0, 60, 1);
	assert_true(appetite_is_rare(&reader.appetite));
	come(&reader, 0, 60, 3);
	assert_false(appetite_is_rare(&reader.appetite));
}

static void test_breaks_go_on_while_the_host_has_no_use_of_the_limiter(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 100, 0, 20);
	/* Neither the time before it nor what was learnt of the earlier ones is forgotten. */
	for (int i = 0; i < 3; i++) {
		pass(&reader, 15, 0, false);
		appetite_begin(&reader.appetite, 15);
		come(&reader, 0, 0, 1);
		assert_true(appetite_is_rare(&reader.appetite));
	}
	for (int i = 0; i < 20; i++) {
		appetite_begin(&reader.appetite, 15);
		come(&reader, 15, 0, 1);
	}
	assert_false(appetite_is_rare(&reader.appetite));
}

static void test_a_host_that_was_late_has_seen_one_reader_not_many(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 100, 0, 20);
	for (int i = 0; i < 5; i++) {
		reader.facts.asked = 1 / 40.0;
		appetite_note(&reader.appetite, &reader.facts, 40);
		assert_true(appetite_is_rare(&reader.appetite));
		pass(&reader, 60, 0, false);
	}
	/* A steady need stays what it is. */
	reader = reader_of(64);
	pass(&reader, 300, 1, false);
	appetite_note(&reader.appetite, &reader.facts, 50);
	assert_true(fabs(need_a_second(&reader) - 10) < 0.01);
	reader = reader_of(64);
	come(&reader, 100, 0, 20);
	/* It was late by more than is remembered. */
	appetite_note(&reader.appetite, &reader.facts, UINT64_MAX);
	assert_true(appetite_is_rare(&reader.appetite));
	reader = reader_of(64);
	reader.facts.asked = 2;
	appetite_note(&reader.appetite, &reader.facts, UINT64_MAX);
	assert_true(fabs(need_a_second(&reader) - 20) < 1);
}

static void test_breaks_that_differ_by_a_quarter_are_even(void **state)
{
	struct reader even = reader_of(64), odd = reader_of(64), two = reader_of(64);

	(void)state;
	come(&even, 99, 0, 4);
	assert_false(appetite_is_even(&even.appetite));
	come(&even, 99, 0, 1);
	assert_true(appetite_is_even(&even.appetite));
	for (int i = 0; i < 10; i++) {
		come(&even, i % 2 ? 119 : 79, 0, 1);
		come(&odd, i % 2 ? 129 : 69, 0, 1);
		pass(&two, 99, 0, false);
		pass(&two, 1, 2, false);
	}
	assert_true(appetite_is_even(&even.appetite));
	assert_false(appetite_is_even(&odd.appetite));
	/* A second token is not saved up. */
	assert_false(appetite_is_even(&two.appetite));
	/* They are remembered while the host has no use of the limiter. */
	appetite_begin(&even.appetite, 79);
	come(&even, 20, 0, 1);
	assert_true(appetite_is_even(&even.appetite));
	pass(&even, 140, 0, false);
	assert_true(appetite_is_even(&even.appetite));
	/* The next one is late. */
	pass(&even, 20, 0, false);
	assert_false(appetite_is_even(&even.appetite));
	/* Long ones are not alike. */
	come(&even, 200, 0, 10);
	assert_false(appetite_is_even(&even.appetite));
}

static void test_a_break_that_several_tokens_end_is_as_one_that_is_far_off(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 99, 0, 20);
	pass(&reader, 99, 0, false);
	pass(&reader, 1, 2, false);
	for (int i = 0; i < 10; i++) {
		assert_false(appetite_is_even(&reader.appetite));
		come(&reader, 99, 0, 1);
	}
	come(&reader, 99, 0, 10);
	assert_true(appetite_is_even(&reader.appetite));
	/* A host that was late may have seen as many: 49 times the part is less than 2. */
	pass(&reader, 51, 0, false);
	reader.facts.asked = 2 / 49.0;
	appetite_note(&reader.appetite, &reader.facts, 49);
	assert_false(appetite_is_even(&reader.appetite));
}

static void test_rare_readers_need_what_comes_in_a_break_also_of_a_new_mean(void **state)
{
	struct reader one = reader_of(64), four = reader_of(64);

	(void)state;
	for (int i = 0; i < 8; i++) {
		appetite_begin(&one.appetite, i % 2 ? 59 : 139);
		come(&one, 0, 0, 1);
		appetite_begin(&four.appetite, 99);
		pass(&four, 1, 4, false);
	}
	for (int i = 0; i < 99; i++) {
		assert_true(need_a_second(&one) > 0.09);
		assert_true(need_a_second(&one) < 0.12);
		pass(&one, 1, 0, false);
	}
	assert_true(need_a_second(&four) > 0.4);
	assert_true(need_a_second(&four) < 0.45);
	/* A mean of half a minute tells more, if they come more often now. */
	one = reader_of(64);
	come(&one, 99, 0, 20);
	come(&one, 69, 0, 4);
	assert_true(need_a_second(&one) > 0.12);
}

static void test_a_rare_reader_that_asks_again_begins_another_mean(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 599, 0, 4);
	assert_true(need_a_second(&reader) < 0.1);
	come(&reader, 24, 0, 1);
	assert_true(appetite_is_young(&reader.appetite));
	come(&reader, 9, 0, 2);
	assert_false(appetite_is_rare(&reader.appetite));
	assert_true(need_a_second(&reader) > 0.9);
	/* One that is as late as the others were goes on with theirs. */
	reader = reader_of(64);
	come(&reader, 599, 0, 4);
	come(&reader, 25, 0, 1);
	assert_false(appetite_is_young(&reader.appetite));
}

static void test_rare_readers_are_expected_for_longer(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	come(&reader, 119, 0, 3);
	pass(&reader, 1190, 0, false);
	assert_true(need_a_second(&reader) > 0);
	pass(&reader, 20, 0, false);
	assert_true(need_a_second(&reader) == 0);
}

static void test_a_reader_that_does_not_wait_is_not_rare_for_half_a_minute(void **state)
{
	struct reader reader = reader_of(64);

	(void)state;
	reader.facts.refused = true;
	pass(&reader, 1, 1, false);
	reader.facts.refused = false;
	pass(&reader, 200, 0, false);
	assert_false(appetite_is_rare(&reader.appetite));
	appetite_begin(&reader.appetite, 99);
	assert_false(appetite_is_rare(&reader.appetite));
	pass(&reader, 1, 0, false);
	assert_true(appetite_is_rare(&reader.appetite));
	appetite_begin(&reader.appetite, UINT64_MAX);
	assert_true(appetite_is_rare(&reader.appetite));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readers_at_random_are_told_from_steady_ones),
		cmocka_unit_test(test_a_steady_reader_needs_what_it_asks_for),
		cmocka_unit_test(test_the_need_of_a_slow_reader_stays_between_its_tokens),
		cmocka_unit_test(test_a_change_is_seen_within_a_second),
		cmocka_unit_test(test_ten_tokens_that_do_not_come_end_a_small_demand),
		cmocka_unit_test(test_a_reader_that_waits_is_not_silent),
		cmocka_unit_test(test_a_need_is_over_after_a_long_wait),
		cmocka_unit_test(test_chance_is_no_change),
		cmocka_unit_test(test_a_backlog_is_worked_off_in_two_seconds),
		cmocka_unit_test(test_a_hungry_reader_has_all_soon),
		cmocka_unit_test(test_readers_that_wait_seldom_are_not_hungry),
		cmocka_unit_test(
			test_readers_that_wait_often_want_twice_as_much_while_no_host_is_short),
		cmocka_unit_test(
			test_readers_that_wait_often_want_a_little_more_where_a_host_is_short),
		cmocka_unit_test(test_a_probe_that_is_of_use_is_followed_by_a_larger_one),
		cmocka_unit_test(test_a_reader_of_few_tokens_is_seen_to_want_more),
		cmocka_unit_test(test_a_vain_probe_is_not_repeated_for_half_a_minute),
		cmocka_unit_test(test_readers_that_wait_by_chance_are_not_probed),
		cmocka_unit_test(test_readers_that_wait_less_and_ask_more_are_probed),
		cmocka_unit_test(test_one_slow_reader_that_waits_is_probed),
		cmocka_unit_test(test_readers_that_wait_all_the_time_now_are_probed_soon),
		cmocka_unit_test(test_a_probe_that_lost_its_leaves_ends_when_readers_wait_no_more),
		cmocka_unit_test(test_a_probe_shows_what_readers_want),
		cmocka_unit_test(test_nothing_is_wanted_for_a_short_wait),
		cmocka_unit_test(test_after_a_vain_try_readers_have_to_wait_twice_as_long),
		cmocka_unit_test(test_a_use_ends_the_vain_tries),
		cmocka_unit_test(test_rare_readers_are_told_also_after_a_while),
		cmocka_unit_test(test_no_reader_is_rare_until_another_one_has_not_come),
		cmocka_unit_test(test_a_rare_reader_that_asks_again_and_again_is_not_rare),
		cmocka_unit_test(test_breaks_go_on_while_the_host_has_no_use_of_the_limiter),
		cmocka_unit_test(test_a_host_that_was_late_has_seen_one_reader_not_many),
		cmocka_unit_test(test_breaks_that_differ_by_a_quarter_are_even),
		cmocka_unit_test(test_a_break_that_several_tokens_end_is_as_one_that_is_far_off),
		cmocka_unit_test(test_rare_readers_need_what_comes_in_a_break_also_of_a_new_mean),
		cmocka_unit_test(test_a_rare_reader_that_asks_again_begins_another_mean),
		cmocka_unit_test(test_rare_readers_are_expected_for_longer),
		cmocka_unit_test(test_a_reader_that_does_not_wait_is_not_rare_for_half_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
