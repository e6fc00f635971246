/*
 * Tests of concurrency: how many slots it finds. A service takes as long as it takes for up to
 * `knee` requests in flight, and longer in proportion beyond; there is always an opener that waits.
 */
#include "core/limiter/concurrency.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { IN_FLIGHT_MAX = 1000 };

struct request {
	double from_s, until_s;
};

struct service {
	double latency_s;
	double jitter; /* each takes up to so much of that more or less */
	double slower; /* a second: so much longer it takes, of what it took */
	double rate;   /* requests a second; the others are refused at once. 0: any number */
	int knee;
	int demand; /* workers that would be in flight at most */

	struct concurrency concurrency;
	struct request requests[IN_FLIGHT_MAX];
	int in_flight;
	double now_s, budget;
	uint64_t random;
};

static struct service *begin(double latency_s, double jitter, int knee)
{
	static const struct slot_limit setting = {SLOTS_AUTO, 0, 1, 200, 900000000};
	static struct service service;

	service = (struct service){.latency_s = latency_s,
				   .jitter = jitter,
				   .knee = knee,
				   .demand = IN_FLIGHT_MAX,
				   .random = 88172645463325252};
	concurrency_init(&service.concurrency, &setting, 0);
	return &service;
}

/* xorshift64*: Marsaglia (2003), Vigna (2016). From -1 to 1. */
static double draw(struct service *s)
{
	s->random ^= s->random >> 12;
	s->random ^= s->random << 25;
	s->random ^= s->random >> 27;
	return (double)(s->random * UINT64_C(2685821657736338717) >> 11) / 0x1p52 - 1;
}

static uint64_t clock_of(const struct service *s)
{
	return 1 + (uint64_t)(s->now_s * 1e9);
}

static bool is_refused(struct service *s)
{
	if (s->rate <= 0)
		return false;
	if (s->budget < 1)
		return true;
	s->budget -= 1;
	return false;
}

static void send(struct service *s)
{
	double latency_s = s->latency_s * (1 + s->slower * s->now_s) * (1 + s->jitter * draw(s));
	struct request *request = &s->requests[s->in_flight++];

	concurrency_opened(&s->concurrency, (uint32_t)s->in_flight, clock_of(s));
	if (s->in_flight > s->knee)
		latency_s *= (double)s->in_flight / s->knee;
	if (is_refused(s)) {
		latency_s = s->latency_s / 50;
		concurrency_throttled(&s->concurrency, clock_of(s));
	}
	*request = (struct request){s->now_s, s->now_s + latency_s};
}

/* Runs it until @until_s; the mean number of slots meanwhile. */
static double run(struct service *s, double until_s)
{
	double began_s = s->now_s, slots = 0;

	while (s->now_s < until_s) {
		struct request *first = s->requests;
		struct request done;

		while (s->in_flight < (int)s->concurrency.limit && s->in_flight < s->demand)
			send(s);
		for (int i = 1; i < s->in_flight; i++)
			first = s->requests[i].until_s < first->until_s ? &s->requests[i] : first;
		done = *first;
		slots += s->concurrency.limit * (done.until_s - s->now_s);
		s->budget = fmin(s->budget + s->rate * (done.until_s - s->now_s), s->rate / 10);
		s->now_s = done.until_s;
		*first = s->requests[--s->in_flight];
		concurrency_closed(&s->concurrency, 1 + (uint64_t)(done.from_s * 1e9),
				   (uint32_t)s->in_flight, clock_of(s));
	}
	return slots / (s->now_s - began_s);
}

static void assert_between(double slots, double least, double most)
{
	if (slots < least || slots > most)
		fail_msg("%.2f slots, not %g to %g", slots, least, most);
}

static void test_it_begins_at_min_and_settles_at_the_knee(void **state)
{
	struct service *s = begin(0.05, 0, 10);

	(void)state;
	assert_int_equal(s->concurrency.limit, 1);
	run(s, 60);
	assert_between(run(s, 120), 9, 12);
}

static void test_it_settles_at_the_knee_with_noise(void **state)
{
	struct service *s;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		s = begin(0.05, 0.3, 10);
		s->random += seed * 1000003;
		run(s, 60);
		assert_between(run(s, 120), 9, 12);
	}
}

static void test_it_settles_with_any_round_trip(void **state)
{
	static const double latencies_s[] = {0.001, 0.01, 0.1, 1, 10};
	struct service *s;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		s = begin(latencies_s[i], 0.3, 10);
		run(s, 200 * latencies_s[i]);
		assert_between(run(s, 800 * latencies_s[i]), 9, 12);
	}
}

static void test_it_settles_at_a_knee_of_any_height(void **state)
{
	struct service *s = begin(0.05, 0.3, 1);

	(void)state;
	run(s, 60);
	assert_between(run(s, 120), 1, 2);
	s = begin(0.05, 0.3, 3);
	run(s, 60);
	assert_between(run(s, 120), 2.5, 4);
	s = begin(0.05, 0.3, 100);
	run(s, 60);
	assert_between(run(s, 120), 85, 115);
}

static void test_it_follows_a_knee_that_moves(void **state)
{
	struct service *s = begin(0.05, 0.3, 10);

	(void)state;
	run(s, 60);
	s->knee = 20;
	run(s, 90);
	assert_between(run(s, 120), 18, 23);
	s->knee = 5;
	run(s, 150);
	assert_between(run(s, 180), 4.5, 6.5);
}

static void test_slow_growth_does_not_carry_it_away(void **state)
{
	struct service *s = begin(0.05, 0.3, 10);

	(void)state;
	run(s, 60);
	s->slower = 0.01;
	assert_between(run(s, 600), 8.5, 12);
}

static void test_a_service_that_becomes_slower_by_itself_keeps_its_slots(void **state)
{
	struct service *s = begin(0.05, 0.3, 10);

	(void)state;
	run(s, 60);
	s->latency_s = 0.15;
	run(s, 90);
	assert_between(run(s, 120), 9, 12);
	s->latency_s = 0.02;
	run(s, 150);
	assert_between(run(s, 180), 9, 12);
}

static void test_unused_slots_do_not_become_more_or_fewer(void **state)
{
	struct service *s = begin(0.05, 0.3, 10);

	(void)state;
	s->demand = 4;
	run(s, 60);
	assert_int_equal(s->concurrency.number, 5);
	s->demand = 2;
	run(s, 120);
	assert_between(s->concurrency.number, 2, 5);
}

static void test_a_rate_limit_that_is_reported_holds_it(void **state)
{
	struct service *s = begin(0.05, 0.3, IN_FLIGHT_MAX);

	(void)state;
	s->rate = 200; /* which ten in flight make */
	run(s, 60);
	assert_between(run(s, 120), 6, 12);
}

static void test_throttlings_within_a_round_trip_count_once(void **state)
{
	struct service *s = begin(0.05, 0, 50);
	uint32_t before;

	(void)state;
	run(s, 60);
	before = s->concurrency.number;
	for (int i = 0; i < 10; i++)
		concurrency_throttled(&s->concurrency, clock_of(s) + (uint64_t)i * 1000);
	assert_int_equal(s->concurrency.number, (uint32_t)(before * 0.9));
	concurrency_throttled(&s->concurrency, clock_of(s) + 100000000);
	assert_int_equal(s->concurrency.number, (uint32_t)((uint32_t)(before * 0.9) * 0.9));
}

static void test_throttling_in_a_look_opens_no_more(void **state)
{
	struct concurrency c = {
		.min = 1,
		.max = 20,
		.decrease = 0.9,
		.number = 10,
		.limit = 7,
		.looking = true,
		.began_ns = NEVER_NS,
	};

	(void)state;
	concurrency_throttled(&c, 1);
	assert_int_equal(c.number, 9);
	assert_int_equal(c.limit, 7);
	assert_true(c.looking && c.began_ns == NEVER_NS);
	concurrency_throttled(&c, 2);
	concurrency_throttled(&c, 3);
	assert_int_equal(c.number, 7);
	assert_int_equal(c.limit, 7);
	assert_false(c.looking);
	assert_int_equal(c.began_ns, 3);
}

static void test_it_stays_within_its_bounds(void **state)
{
	static const struct slot_limit few = {SLOTS_AUTO, 0, 3, 6, 500000000};
	struct service *s = begin(0.05, 0.3, 10);

	(void)state;
	run(s, 60);
	concurrency_tune(&s->concurrency, &few, clock_of(s));
	assert_int_equal(s->concurrency.number, 6);
	assert_between(run(s, 120), 4, 6);
	s->knee = 1;
	run(s, 150);
	assert_between(run(s, 180), 3, 4);
	assert_true(s->concurrency.number >= 3);
}

static void test_few_in_flight_that_take_longer_leave_the_least_number(void **state)
{
	static const struct slot_limit setting = {SLOTS_AUTO, 0, 4, 200, 500000000};
	uint64_t now_ns = 1, took_ns = 1000000000;
	struct concurrency c;

	(void)state;
	concurrency_init(&c, &setting, now_ns);
	/* One at a time, and after some rounds each takes ten times as long. */
	for (int i = 0; i < 40; i++) {
		if (i == 20)
			took_ns *= 10;
		concurrency_opened(&c, 1, now_ns);
		concurrency_closed(&c, now_ns, 0, now_ns + took_ns);
		now_ns += took_ns;
		assert_in_range(c.number, 4, 200);
		assert_in_range(c.limit, 4, 200);
	}
}

static void test_slot_opened_before_a_change_decides_nothing(void **state)
{
	static const struct slot_limit setting = {SLOTS_AUTO, 0, 2, 10, 900000000};
	struct concurrency c;

	(void)state;
	concurrency_init(&c, &setting, 1000);
	for (int i = 0; i < 100; i++)
		concurrency_closed(&c, 10, 0, 2000);
	assert_int_equal(c.count, 0);
	assert_int_equal(c.number, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_begins_at_min_and_settles_at_the_knee),
		cmocka_unit_test(test_it_settles_at_the_knee_with_noise),
		cmocka_unit_test(test_it_settles_with_any_round_trip),
		cmocka_unit_test(test_it_settles_at_a_knee_of_any_height),
		cmocka_unit_test(test_it_follows_a_knee_that_moves),
		cmocka_unit_test(test_slow_growth_does_not_carry_it_away),
		cmocka_unit_test(test_a_service_that_becomes_slower_by_itself_keeps_its_slots),
		cmocka_unit_test(test_unused_slots_do_not_become_more_or_fewer),
		cmocka_unit_test(test_a_rate_limit_that_is_reported_holds_it),
		cmocka_unit_test(test_throttlings_within_a_round_trip_count_once),
		cmocka_unit_test(test_throttling_in_a_look_opens_no_more),
		cmocka_unit_test(test_it_stays_within_its_bounds),
		cmocka_unit_test(test_few_in_flight_that_take_longer_leave_the_least_number),
		cmocka_unit_test(test_slot_opened_before_a_change_decides_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
