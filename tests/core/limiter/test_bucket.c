/* Tests of bucket: not a token too many, not a token lost. */
#include "core/limiter/bucket.h"
#include "tests/core/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS	  UINT64_C(1000000)
#define DAY_NS	  (86400 * NSEC_PER_SEC)
#define THIRTY	  (30 * DAY_NS)
#define BEGINNING UINT64_C(12345678901234567) /* not 0, to be sure that nothing counts from there */

static struct rate rate_of(const char *text)
{
	struct rate rate;

	assert_int_equal(rate_parse(text, &rate), 0);
	return rate;
}

static struct bucket empty_bucket(const char *text, uint64_t burst, uint64_t interval_ns)
{
	struct rate rate = rate_of(text);
	struct bucket bucket;

	bucket_init(&bucket, &rate, burst, interval_ns, BEGINNING);
	return bucket;
}

static struct bucket full_bucket(const char *text, uint64_t burst, uint64_t interval_ns)
{
	struct bucket bucket = empty_bucket(text, burst, interval_ns);

	bucket_fill(&bucket);
	return bucket;
}

/* Tokens that can be taken at @after_ns when no reader waited until then. */
static bool has_after(const struct bucket *bucket, uint64_t after_ns, uint64_t tokens)
{
	struct bucket later = *bucket;

	later.account = NULL;
	bucket_refill(&later, BEGINNING + after_ns);
	return bucket_has(&later, tokens);
}

/* The same when the reader whose turn it is has been waiting for them. */
static bool waiting_gets(const struct bucket *bucket, uint64_t at_ns, uint64_t tokens)
{
	struct bucket later = *bucket;

	later.account = NULL;
	bucket_await(&later, tokens);
	bucket_refill(&later, at_ns);
	return bucket_has(&later, tokens);
}

static void retune(struct bucket *bucket, const char *text, uint64_t burst, uint64_t interval_ns,
		   uint64_t after_ns)
{
	struct rate rate = rate_of(text);

	bucket_retune(bucket, &rate, burst, interval_ns, BEGINNING + after_ns);
}

/* The account's equation: nothing comes from nowhere, nothing goes nowhere. */
static void assert_balanced(const struct bucket *bucket)
{
	const struct bucket_account *account = bucket->account;
	i128 level = (i128)bucket->level * (i128)bucket->flow.den + (i128)bucket->part;

	assert_true(bucket->part < bucket->flow.den);
	assert_true(account->opened + (i128)account->accrued + (i128)account->put -
			    (i128)account->taken - (i128)account->spilled ==
		    level);
}

/*
 * A reader always waits and takes 1 to @most tokens at a time. By the time of each grant exactly as
 * many have flowed in as were granted, rounded up to whole nanoseconds.
 */
static void assert_steady(const char *text, uint64_t most, uint64_t length_ns)
{
	struct bucket bucket = full_bucket(text, 1, 0);
	struct fraction flow = bucket.flow;
	uint64_t now_ns = BEGINNING;
	u128 granted = 0;

	for (;;) {
		uint64_t tokens = most == 1 ? 1 : 1 + draw(most), due_ns, when_ns;

		due_ns = BEGINNING +
			 (uint64_t)(((granted + tokens - 1) * flow.den + flow.num - 1) / flow.num);
		bucket_await(&bucket, tokens);
		when_ns = bucket_when(&bucket, tokens, now_ns);
		if (when_ns != due_ns)
			fail_msg("after %llu tokens the next %llu come %lld ns late",
				 (unsigned long long)granted, (unsigned long long)tokens,
				 (long long)(when_ns - due_ns));
		if (when_ns - BEGINNING > length_ns) {
			/* As many as should have been granted by the end, and no more. */
			u128 most_granted = 1 + (u128)flow.num * length_ns / flow.den;

			assert_true(granted <= most_granted && granted + tokens > most_granted);
			return;
		}
		bucket_refill(&bucket, when_ns);
		assert_true(bucket_has(&bucket, tokens));
		bucket_take(&bucket, tokens, 0);
		now_ns = when_ns;
		granted += tokens;
	}
}

static void test_thirty_days_at_a_seventh_of_a_token_a_second_are_exact(void **state)
{
	(void)state;
	assert_steady("1/7s", 1, THIRTY);
	assert_steady("1/7s", 100, THIRTY);
}

static void test_thirty_days_at_a_thousand_in_ninety_seconds_are_exact(void **state)
{
	(void)state;
	assert_steady("1000/90s", 1, THIRTY / 10);
	assert_steady("1000/90s", 30, THIRTY);
}

static void test_thirty_days_at_a_billion_a_second_are_exact(void **state)
{
	(void)state;
	assert_steady("1000000000/s", 1, MS);
	assert_steady("1000000000/s", 10 * NSEC_PER_SEC, THIRTY);
}

static void test_extreme_rates_are_exact(void **state)
{
	(void)state;
	assert_steady("1/d", 1, 3650 * DAY_NS);
	assert_steady("1/26d", 1, 3650 * DAY_NS);
	assert_steady("1.000001/s", 7, DAY_NS);
	assert_steady("2251799813685246/2251799813685247ns", 1000, MS);
	assert_steady("2251799813685247/2251799813685246ns", 1000, MS);
	assert_steady("1000000000000/s", 1, 10000);
	assert_steady("1000000000000/s", 100000, MS);
	assert_steady("999999999999/s", 100000, MS);
}

static void test_shares_of_extreme_rates_are_exact(void **state)
{
	static const char *const texts[] = {
		"1/26d", "1.000001/s", "2251799813685246/2251799813685247ns", "1000000000000/s"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct rate whole = rate_of(texts[i]), share = rate_share(&whole, SHARES_MAX - 3);
		struct bucket bucket;
		uint64_t now_ns = BEGINNING;

		bucket_init(&bucket, &share, 1, 0, now_ns);
		for (uint64_t taken = 1; taken <= 50; taken++) {
			struct fraction flow = bucket.flow;
			u128 due_ns = ((u128)taken * flow.den + flow.num - 1) / flow.num;

			bucket_await(&bucket, 1);
			now_ns = bucket_when(&bucket, 1, now_ns);
			if (due_ns >= NEVER_NS - BEGINNING) {
				assert_int_equal(now_ns, NEVER_NS);
				break;
			}
			assert_int_equal(now_ns, BEGINNING + (uint64_t)due_ns);
			bucket_refill(&bucket, now_ns);
			bucket_take(&bucket, 1, 0);
		}
	}
}

static void test_a_new_bucket_is_empty_until_it_is_filled(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 20, 0);

	(void)state;
	assert_false(bucket_has(&bucket, 1));
	assert_true(bucket_has(&bucket, 0));
	bucket_fill(&bucket);
	assert_true(bucket_has(&bucket, 20));
	assert_false(bucket_has(&bucket, 21));
}

static void test_an_idle_bucket_saves_up_its_burst_and_no_more(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 20, 0);

	(void)state;
	assert_false(has_after(&bucket, 100 * MS - 1, 1));
	assert_true(has_after(&bucket, 100 * MS, 1));
	assert_false(has_after(&bucket, 2000 * MS - 1, 20));
	assert_true(has_after(&bucket, 2000 * MS, 20));
	assert_false(has_after(&bucket, 2100 * MS, 21));
	assert_false(has_after(&bucket, 3650 * DAY_NS, 21));
	assert_true(has_after(&bucket, 3650 * DAY_NS, 20));
}

static void test_idle_time_without_a_burst_gives_no_second_token(void **state)
{
	struct bucket bucket = full_bucket("3/s", 1, 0);
	uint64_t now_ns = BEGINNING;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		now_ns += draw(10 * NSEC_PER_SEC);
		bucket_refill(&bucket, now_ns);
		assert_false(bucket_has(&bucket, 2));
		if (bucket_has(&bucket, 1))
			bucket_take(&bucket, 1, 0);
	}
}

static void test_a_take_larger_than_the_burst_waits_for_its_share(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	bucket_await(&bucket, 50);
	assert_int_equal(bucket_when(&bucket, 50, BEGINNING), BEGINNING + 4500 * MS);
	assert_false(waiting_gets(&bucket, BEGINNING + 4500 * MS - 1, 50));
	bucket_refill(&bucket, BEGINNING + 4500 * MS);
	assert_true(bucket_has(&bucket, 50));
	bucket_take(&bucket, 50, 0);
	bucket_await(&bucket, 0);
	assert_int_equal(bucket.level, 0);
}

static void test_tokens_kept_for_a_reader_that_left_spill_down_to_the_burst(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	bucket_await(&bucket, 50);
	bucket_refill(&bucket, BEGINNING + 3 * NSEC_PER_SEC);
	assert_int_equal(bucket.level, 35);
	bucket_await(&bucket, 0);
	assert_int_equal(bucket.level, 5);
	assert_true(bucket_has(&bucket, 5));
	assert_false(bucket_has(&bucket, 6));
}

static void test_the_most_tokens_there_are_can_be_waited_for(void **state)
{
	struct bucket bucket = empty_bucket("1000000000000/s", 1, 0);
	uint64_t when_ns;

	(void)state;
	bucket_await(&bucket, TOKENS_MAX);
	when_ns = bucket_when(&bucket, TOKENS_MAX, BEGINNING);
	assert_int_equal(when_ns, BEGINNING + TOKENS_MAX / 1000);
	bucket_refill(&bucket, when_ns);
	assert_true(bucket_has(&bucket, TOKENS_MAX));
	bucket_take(&bucket, TOKENS_MAX, 0);
	assert_int_equal(bucket.level, 0);
}

static void test_tokens_that_come_after_the_end_of_time_never_come(void **state)
{
	struct bucket bucket = empty_bucket("1/26d", 1, 0);

	(void)state;
	assert_int_equal(bucket_when(&bucket, TOKENS_MAX, BEGINNING), NEVER_NS);
	bucket = empty_bucket("1/26d", 1, 3600 * NSEC_PER_SEC);
	assert_int_equal(bucket_when(&bucket, TOKENS_MAX, BEGINNING), NEVER_NS);
}

static void test_a_release_after_the_end_of_time_never_comes(void **state)
{
	struct bucket bucket = empty_bucket("1000/s", 1, MS);

	(void)state;
	bucket_refill(&bucket, NEVER_NS - MS / 2);
	bucket_take(&bucket, bucket_capacity(&bucket), 0);
	bucket_await(&bucket, 2);
	assert_int_equal(bucket_when(&bucket, 2, bucket.filled_ns), NEVER_NS);
}

static void test_a_bucket_left_alone_to_the_end_of_time_is_full(void **state)
{
	struct bucket bucket = empty_bucket("1000000000000/s", TOKENS_MAX, 0);
	struct bucket_account account;

	(void)state;
	bucket_account_open(&bucket, &account);
	bucket_refill(&bucket, NEVER_NS - 1);
	assert_int_equal(bucket.level, TOKENS_MAX);
	assert_balanced(&bucket);
	bucket = empty_bucket("1000000000000/s", 1, MS);
	bucket_refill(&bucket, NEVER_NS - 1);
	assert_true(bucket_has(&bucket, bucket_capacity(&bucket)));
	assert_false(bucket_has(&bucket, bucket_capacity(&bucket) + 1));
}

static void test_time_does_not_go_back(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 100, 0), before;

	(void)state;
	bucket_refill(&bucket, BEGINNING + NSEC_PER_SEC);
	before = bucket;
	bucket_refill(&bucket, BEGINNING);
	assert_memory_equal(&bucket, &before, sizeof(bucket));
	bucket_refill(&bucket, BEGINNING + NSEC_PER_SEC);
	assert_memory_equal(&bucket, &before, sizeof(bucket));
	bucket_refill(&bucket, BEGINNING + 2 * NSEC_PER_SEC);
	assert_int_equal(bucket.level, 20);
}

static void test_looking_often_or_seldom_gives_the_same(void **state)
{
	static const char *const texts[] = {"1/7s", "1000/90s", "999999937/s", "1.000001/s"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bucket often = empty_bucket(texts[i], TOKENS_MAX, 0), seldom = often;
		uint64_t now_ns = BEGINNING;

		for (int step = 0; step < 10000; step++) {
			now_ns += draw(step % 2 ? 10 : NSEC_PER_SEC);
			bucket_refill(&often, now_ns);
		}
		bucket_refill(&seldom, now_ns);
		assert_int_equal(often.level, seldom.level);
		assert_int_equal(often.part, seldom.part);
	}
}

static void test_a_rate_of_zero_lets_nothing_pass_not_even_what_is_there(void **state)
{
	struct bucket bucket = full_bucket("0", 20, 0);

	(void)state;
	assert_false(bucket_has(&bucket, 1));
	assert_int_equal(bucket_when(&bucket, 1, BEGINNING), NEVER_NS);
	bucket_refill(&bucket, BEGINNING + 3650 * DAY_NS);
	assert_false(bucket_has(&bucket, 1));
	retune(&bucket, "1/s", 20, 0, 3650 * DAY_NS);
	assert_true(bucket_has(&bucket, 20));
}

static void test_debt_is_paid_before_any_reader_is_served(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	bucket_take(&bucket, 25, 0);
	assert_int_equal(bucket.level, -20);
	assert_false(bucket_has(&bucket, 1));
	assert_int_equal(bucket_when(&bucket, 1, BEGINNING), BEGINNING + 2100 * MS);
	assert_false(has_after(&bucket, 2100 * MS - 1, 1));
	assert_true(has_after(&bucket, 2100 * MS, 1));
	assert_true(has_after(&bucket, 2500 * MS, 5));
	assert_false(has_after(&bucket, DAY_NS, 6));
}

static void test_a_debt_has_a_floor(void **state)
{
	struct bucket bucket = empty_bucket("1/s", 1, 0);
	struct bucket_account account;
	int64_t floor;

	(void)state;
	bucket_account_open(&bucket, &account);
	for (int i = 0; i < 1000000; i++)
		bucket_take(&bucket, TOKENS_MAX, 0);
	floor = bucket.level;
	assert_true(floor >= -(INT64_C(1) << 62));
	assert_balanced(&bucket);
	bucket_refill(&bucket, BEGINNING + NSEC_PER_SEC);
	assert_int_equal(bucket.level, floor + 1);
	assert_balanced(&bucket);
	bucket_await(&bucket, 1);
	assert_true(bucket_when(&bucket, 1, BEGINNING + NSEC_PER_SEC) > BEGINNING + 3650 * DAY_NS);
}

static void test_tokens_put_back_can_be_taken_again_up_to_the_burst(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	bucket_take(&bucket, 4, 0);
	bucket_put(&bucket, 2, 0);
	assert_true(bucket_has(&bucket, 3));
	assert_false(bucket_has(&bucket, 4));
	bucket_put(&bucket, 100, 0);
	assert_true(bucket_has(&bucket, 5));
	assert_false(bucket_has(&bucket, 6));
	bucket_take(&bucket, 25, 0);
	bucket_put(&bucket, 5, 0);
	assert_int_equal(bucket.level, -15);
}

static void test_tokens_put_back_leave_room_for_those_that_are_kept(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	bucket_take(&bucket, 5, 0);
	bucket_put(&bucket, 2, 5);
	assert_int_equal(bucket.level, 0);
	bucket_put(&bucket, 2, 4);
	assert_int_equal(bucket.level, 1);
	/* A part of a token needs room, too. */
	bucket_refill(&bucket, BEGINNING + 50 * MS);
	bucket_put(&bucket, 4, 1);
	assert_int_equal(bucket.level, 3);
	bucket_put(&bucket, 1, 1);
	assert_int_equal(bucket.level, 3);
	/* A debt is paid first. */
	bucket_take(&bucket, 13, 0);
	bucket_put(&bucket, 100, 2 * TOKENS_MAX);
	assert_int_equal(bucket.level, -10);
	bucket_put(&bucket, 100, 3);
	assert_int_equal(bucket.level, 1);
}

static void test_an_interval_releases_even_batches(void **state)
{
	struct bucket bucket = empty_bucket("500/s", 1, 200 * MS);

	(void)state;
	for (uint64_t tick = 1; tick <= 50; tick++) {
		uint64_t tick_ns = BEGINNING + tick * 200 * MS;

		bucket_await(&bucket, 1);
		assert_int_equal(bucket_when(&bucket, 1, bucket.filled_ns), tick_ns);
		assert_false(waiting_gets(&bucket, tick_ns - 1, 1));
		bucket_refill(&bucket, tick_ns);
		for (int i = 0; i < 100; i++) {
			assert_true(bucket_has(&bucket, 1));
			bucket_take(&bucket, 1, 0);
		}
		assert_false(bucket_has(&bucket, 1));
		/* Looking in between releases nothing. */
		bucket_refill(&bucket, tick_ns + 199 * MS);
		assert_false(bucket_has(&bucket, 1));
	}
}

static void test_unused_interval_does_not_add_to_the_next(void **state)
{
	struct bucket bucket = full_bucket("500/s", 1, 200 * MS);

	(void)state;
	assert_int_equal(bucket_capacity(&bucket), 100);
	assert_true(has_after(&bucket, DAY_NS, 100));
	assert_false(has_after(&bucket, DAY_NS, 101));
	bucket = full_bucket("500/s", 250, 200 * MS);
	assert_true(has_after(&bucket, DAY_NS, 250));
	assert_false(has_after(&bucket, DAY_NS, 251));
}

static void test_a_take_larger_than_a_batch_comes_with_the_batch_that_completes_it(void **state)
{
	struct bucket bucket = empty_bucket("500/s", 1, 200 * MS);

	(void)state;
	bucket_await(&bucket, 250);
	assert_int_equal(bucket_when(&bucket, 250, BEGINNING), BEGINNING + 600 * MS);
	assert_false(waiting_gets(&bucket, BEGINNING + 600 * MS - 1, 250));
	bucket_refill(&bucket, BEGINNING + 600 * MS);
	assert_true(bucket_has(&bucket, 250));
	bucket_take(&bucket, 250, 0);
	bucket_await(&bucket, 1);
	assert_true(bucket_has(&bucket, 50));
	assert_false(bucket_has(&bucket, 51));
}

/*
 * A reader always waits and takes 1 to @most tokens at a time. At each release it gets all that
 * flowed in until then, but for what is not enough for its next take.
 */
static void assert_steady_batches(const char *text, uint64_t interval_ns, uint64_t most,
				  uint64_t ticks)
{
	struct bucket bucket = empty_bucket(text, 1, interval_ns);
	uint64_t granted = 0, tokens = 1;

	for (uint64_t tick = 1; tick <= ticks; tick++) {
		uint64_t tick_ns = BEGINNING + tick * interval_ns;
		u128 due = (u128)bucket.flow.num * (tick_ns - BEGINNING) / bucket.flow.den;

		bucket_await(&bucket, tokens);
		bucket_refill(&bucket, tick_ns);
		while (bucket_has(&bucket, tokens)) {
			bucket_take(&bucket, tokens, 0);
			granted += tokens;
			tokens = 1 + draw(most);
			bucket_await(&bucket, tokens);
		}
		assert_true(granted <= due && granted + tokens > due);
	}
}

static void test_batches_that_are_not_whole_are_exact_over_time(void **state)
{
	(void)state;
	assert_steady_batches("500/s", 200 * MS, 1, 10000);
	assert_steady_batches("1/7s", 10 * NSEC_PER_SEC, 1, 100000);
	assert_steady_batches("1000/90s", NSEC_PER_SEC, 1, 100000);
	assert_steady_batches("1000/90s", 7 * MS, 1, 100000);
	assert_steady_batches("1.000001/s", NSEC_PER_SEC, 1, 100000);
	assert_steady_batches("999/s", MS, 1, 100000);
	assert_steady_batches("1/d", MS, 1, 100000);
}

static void test_takes_that_do_not_divide_a_batch_lose_nothing_over_time(void **state)
{
	(void)state;
	assert_steady_batches("500/s", 200 * MS, 30, 10000);
	assert_steady_batches("500/s", 200 * MS, 250, 10000);
	assert_steady_batches("1/7s", 10 * NSEC_PER_SEC, 5, 10000);
	assert_steady_batches("1000/90s", NSEC_PER_SEC, 20, 10000);
	assert_steady_batches("1000000000/s", 200 * MS, 300000000, 10000);
}

static void test_putting_back_between_two_releases_gives_back_at_once(void **state)
{
	struct bucket bucket = full_bucket("500/s", 1, 200 * MS);

	(void)state;
	bucket_take(&bucket, 100, 0);
	bucket_refill(&bucket, BEGINNING + 50 * MS);
	assert_false(bucket_has(&bucket, 1));
	bucket_put(&bucket, 1, 0);
	assert_true(bucket_has(&bucket, 1));
	assert_false(bucket_has(&bucket, 2));
}

static void test_raising_the_burst_adds_no_tokens_and_lowering_it_spills(void **state)
{
	struct bucket bucket = full_bucket("10/s", 5, 0);

	(void)state;
	retune(&bucket, "10/s", 100, 0, 0);
	assert_int_equal(bucket.level, 5);
	bucket_refill(&bucket, BEGINNING + NSEC_PER_SEC);
	assert_int_equal(bucket.level, 15);
	retune(&bucket, "10/s", 3, 0, NSEC_PER_SEC);
	assert_int_equal(bucket.level, 3);
	assert_true(bucket_has(&bucket, 3));
	assert_false(bucket_has(&bucket, 4));
}

static void test_a_new_rate_counts_from_now_on(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 1000, 0);

	(void)state;
	retune(&bucket, "100/s", 1000, 0, NSEC_PER_SEC);
	assert_int_equal(bucket.level, 10);
	bucket_refill(&bucket, BEGINNING + 2 * NSEC_PER_SEC);
	assert_int_equal(bucket.level, 110);
	retune(&bucket, "1/min", 1000, 0, 3 * NSEC_PER_SEC);
	assert_int_equal(bucket.level, 210);
	assert_int_equal(bucket_when(&bucket, 211, bucket.filled_ns),
			 BEGINNING + 63 * NSEC_PER_SEC);
}

static void test_a_part_of_a_token_survives_a_new_rate(void **state)
{
	struct bucket bucket = empty_bucket("1/s", 1, 0);

	(void)state;
	/* Half a token is there; the other half takes half of seven seconds. */
	retune(&bucket, "1/7s", 1, 0, 500 * MS);
	bucket_await(&bucket, 1);
	assert_int_equal(bucket_when(&bucket, 1, bucket.filled_ns), BEGINNING + 4000 * MS);
	/* Retuning over and over makes no tokens. */
	for (uint64_t i = 0; i < 1000; i++)
		retune(&bucket, i % 2 ? "1/7s" : "1000/90s", 1, 0, 500 * MS);
	assert_int_equal(bucket.level, 0);
	assert_true(bucket_when(&bucket, 1, bucket.filled_ns) >= BEGINNING + 4000 * MS);
	assert_true(bucket_when(&bucket, 1, bucket.filled_ns) <= BEGINNING + 4000 * MS + 10000);
}

static void test_a_debt_survives_a_new_rate(void **state)
{
	struct bucket bucket = full_bucket("10/s", 1, 0);

	(void)state;
	bucket_take(&bucket, 11, 0);
	retune(&bucket, "100/s", 1, 0, 0);
	assert_int_equal(bucket_when(&bucket, 1, BEGINNING), BEGINNING + 110 * MS);
	retune(&bucket, "0", 1, 0, 0);
	assert_int_equal(bucket_when(&bucket, 1, BEGINNING), NEVER_NS);
	retune(&bucket, "10/s", 1, 0, 0);
	assert_int_equal(bucket_when(&bucket, 1, BEGINNING), BEGINNING + 1100 * MS);
}

static void test_a_new_interval_begins_now_and_an_old_one_goes_on(void **state)
{
	struct bucket bucket = empty_bucket("500/s", 1, 200 * MS);

	(void)state;
	bucket_await(&bucket, 1);
	retune(&bucket, "1000/s", 1, 200 * MS, 150 * MS);
	assert_int_equal(bucket_when(&bucket, 1, bucket.filled_ns), BEGINNING + 200 * MS);
	retune(&bucket, "1000/s", 1, 100 * MS, 150 * MS);
	assert_int_equal(bucket_when(&bucket, 1, bucket.filled_ns), BEGINNING + 250 * MS);
	/* Without an interval what has flowed in can be taken at once. */
	retune(&bucket, "1000/s", 100, 0, 150 * MS);
	assert_true(bucket_has(&bucket, 75));
	assert_false(bucket_has(&bucket, 76));
}

static void test_a_new_interval_does_not_hold_back_what_could_be_taken(void **state)
{
	struct bucket bucket = full_bucket("500/s", 50, 0);

	(void)state;
	retune(&bucket, "500/s", 50, 200 * MS, 0);
	assert_true(bucket_has(&bucket, 50));
	bucket_take(&bucket, 50, 0);
	assert_false(has_after(&bucket, 199 * MS, 1));
	assert_true(has_after(&bucket, 200 * MS, 100));
}

static void test_a_restored_level_counts_only_as_far_as_it_makes_sense(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 20, 0);

	(void)state;
	bucket_restore(&bucket, 7, 3);
	assert_int_equal(bucket.level, 7);
	assert_int_equal(bucket.part, 3);
	bucket_restore(&bucket, 8, bucket.flow.den);
	assert_int_equal(bucket.level, 7);
	bucket_restore(&bucket, INT64_MIN, 0);
	assert_int_equal(bucket.level, 7);
	bucket_restore(&bucket, -5, 0);
	assert_int_equal(bucket.level, -5);
	bucket_restore(&bucket, 20, 1);
	assert_true(bucket.level == 20 && bucket.part <= 1);
	bucket_restore(&bucket, INT64_MAX, 0);
	assert_int_equal(bucket.level, 20);
	assert_false(bucket_has(&bucket, 21));
}

static void random_step(struct bucket *bucket, uint64_t *now_ns)
{
	static const char *const texts[] = {"1/7s",	    "1000/90s", "500/s",      "0",
					    "1000000000/s", "1/d",	"1.000001/s", "1001/3us"};
	static const uint64_t intervals_ns[] = {0, 0, MS, 200 * MS, 10 * NSEC_PER_SEC};
	uint64_t tokens = draw(draw(2) ? 4 : 1000);
	struct rate rate;

	*now_ns += draw(draw(2) ? 1000 : NSEC_PER_SEC);
	bucket_refill(bucket, *now_ns);
	switch (draw(8)) {
	case 0:
		rate = rate_of(texts[draw(sizeof(texts) / sizeof(texts[0]))]);
		bucket_retune(bucket, &rate, 1 + draw(50), intervals_ns[draw(5)], *now_ns);
		break;
	case 1:
		bucket_put(bucket, tokens, 0);
		break;
	case 2:
		bucket_take(bucket, tokens, 0);
		break;
	case 3:
		bucket_await(bucket, tokens);
		break;
	case 4:
		bucket_await(bucket, 0);
		break;
	default:
		if (bucket_has(bucket, tokens))
			bucket_take(bucket, tokens, 0);
	}
}

static void test_every_token_is_accounted_for_whatever_happens(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct bucket bucket = empty_bucket("10/s", 10, 0);
		struct bucket_account account;
		uint64_t now_ns = BEGINNING;

		bucket_account_open(&bucket, &account);
		for (int step = 0; step < 500; step++) {
			random_step(&bucket, &now_ns);
			assert_balanced(&bucket);
		}
	}
}

static void test_never_more_is_released_than_is_there(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct bucket bucket = empty_bucket("10/s", 10, 0);
		uint64_t now_ns = BEGINNING;

		for (int step = 0; step < 500; step++) {
			random_step(&bucket, &now_ns);
			if (bucket.interval_ns)
				assert_true(bucket.released <= bucket.level);
		}
	}
}

static void test_when_tells_the_first_time_at_which_a_waiting_reader_is_served(void **state)
{
	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct bucket bucket = empty_bucket("10/s", 10, 0);
		uint64_t now_ns = BEGINNING, tokens = 1 + draw(200), when_ns;

		for (int step = 0; step < 20; step++)
			random_step(&bucket, &now_ns);
		bucket_await(&bucket, tokens);
		when_ns = bucket_when(&bucket, tokens, now_ns);
		assert_true(when_ns >= now_ns);
		assert_int_equal(when_ns == now_ns, bucket_has(&bucket, tokens));
		if (when_ns == NEVER_NS) {
			assert_int_equal(bucket.flow.num, 0);
			continue;
		}
		assert_true(waiting_gets(&bucket, when_ns, tokens));
		if (when_ns > now_ns)
			assert_false(waiting_gets(&bucket, when_ns - 1, tokens));
	}
}

/* Takes come at random times, greedily; every window between two of them is looked at. */
static void assert_bounded(const char *text, uint64_t burst, uint64_t interval_ns)
{
	enum { TAKES = 400 };
	struct bucket bucket = full_bucket(text, burst, interval_ns);
	uint64_t times_ns[TAKES], total[TAKES], now_ns = BEGINNING, sum = 0;
	u128 capacity = (u128)bucket_capacity(&bucket) * bucket.flow.den;

	for (size_t i = 0; i < TAKES; i++) {
		/* Now a rush, now a pause. */
		if (draw(10) == 0)
			now_ns += draw(20 * NSEC_PER_SEC);
		bucket_refill(&bucket, now_ns);
		bucket_await(&bucket, 1);
		now_ns = bucket_when(&bucket, 1, now_ns);
		bucket_refill(&bucket, now_ns);
		assert_true(bucket_has(&bucket, 1));
		bucket_take(&bucket, 1, 0);
		bucket_await(&bucket, 0);
		times_ns[i] = now_ns;
		total[i] = ++sum;
		for (size_t j = 0; j <= i; j++) {
			u128 flowed = (u128)bucket.flow.num * (times_ns[i] - times_ns[j] + 1);

			assert_true((u128)(total[i] - total[j] + 1) * bucket.flow.den <=
				    flowed + capacity);
		}
	}
}

static void test_no_window_sees_more_than_its_rate_and_one_capacity(void **state)
{
	(void)state;
	assert_bounded("1/7s", 1, 0);
	assert_bounded("10/s", 1, 0);
	assert_bounded("10/s", 20, 0);
	assert_bounded("1000/90s", 7, 0);
	assert_bounded("500/s", 1, 200 * MS);
	assert_bounded("1/7s", 1, 10 * NSEC_PER_SEC);
	assert_bounded("1000/90s", 3, 70 * MS);
	assert_bounded("1000000000/s", 1, 0);
	assert_bounded("1000000000000/s", 1, 0);
}

/* Returns @part in billionths. */
static i128 nano_of(const struct bucket_part *part)
{
	return (i128)part->tokens * NSEC_PER_SEC + part->nano;
}

/* Returns the tokens in @bucket, in billionths of its den. */
static i128 nano_units_of(const struct bucket *bucket)
{
	return ((i128)bucket->level * (i128)bucket->flow.den + (i128)bucket->part) *
	       (i128)NSEC_PER_SEC;
}

static void assert_part(const struct bucket_part *part, int64_t tokens, uint32_t nano)
{
	assert_int_equal(part->tokens, tokens);
	assert_int_equal(part->nano, nano);
}

static void test_a_level_is_split_in_equal_parts_and_the_last_takes_the_rest(void **state)
{
	struct bucket bucket = full_bucket("3/s", 10, 0);
	struct bucket_part part;

	(void)state;
	part = bucket_split(&bucket, 1, 4, 10, 0);
	assert_part(&part, 2, 500000000);
	part = bucket_split(&bucket, 1, 3, 10, 0);
	assert_part(&part, 2, 500000000);
	part = bucket_split(&bucket, 1, 2, 10, 0);
	assert_part(&part, 2, 500000000);
	part = bucket_split(&bucket, 1, 1, 10, 0);
	assert_part(&part, 2, 500000000);
	assert_int_equal(bucket.level, 0);
	assert_int_equal(bucket.part, 0);
}

static void test_several_parts_go_at_once(void **state)
{
	struct bucket bucket = full_bucket("3/s", 10, 0);
	struct bucket_part part;

	(void)state;
	part = bucket_split(&bucket, 3, 4, 10, 0);
	assert_part(&part, 7, 500000000);
	part = bucket_split(&bucket, 4096, 4096, 10, 0);
	assert_part(&part, 2, 500000000);
	assert_int_equal(bucket.level, 0);
}

static void test_no_part_is_larger_than_its_share_of_the_burst(void **state)
{
	struct bucket bucket = full_bucket("3/s", 10, 0);
	struct bucket_part part;

	(void)state;
	part = bucket_split(&bucket, 1, 1, 4, 0);
	assert_part(&part, 4, 0);
	assert_int_equal(bucket.level, 6);
	part = bucket_split(&bucket, 1, 2, 2, 0);
	assert_part(&part, 2, 0);
	part = bucket_split(&bucket, 1, 3, 0, 0);
	assert_part(&part, 0, 0);
	assert_int_equal(bucket.level, 4);
}

static void test_a_part_leaves_the_tokens_that_are_kept(void **state)
{
	struct bucket bucket = empty_bucket("3/s", 10, 0);
	struct bucket_part part = {3, 400000000};

	(void)state;
	bucket_join(&bucket, &part);
	part = bucket_split(&bucket, 1, 4, 10, 1);
	assert_part(&part, 0, 850000000);
	part = bucket_split(&bucket, 99, 100, 10, 1);
	assert_part(&part, 1, 550000000);
	assert_int_equal(bucket.level, 1);
	part = bucket_split(&bucket, 99, 100, 10, 1);
	assert_part(&part, 0, 0);
	part = bucket_split(&bucket, 99, 100, 10, 2);
	assert_part(&part, 0, 0);
	part = bucket_split(&bucket, 1, 2, 10, 0);
	assert_part(&part, 0, 500000000);
	/* Less than is kept is there. */
	part = bucket_split(&bucket, 99, 100, 10, 1);
	assert_part(&part, 0, 0);
	assert_int_equal(bucket.level, 0);
}

static void test_joined_tokens_can_be_taken_and_those_without_room_are_spilled(void **state)
{
	struct bucket bucket = empty_bucket("1/s", 5, 0);
	const struct bucket_part part = {3, 500000000};

	(void)state;
	bucket_join(&bucket, &part);
	assert_true(has_after(&bucket, 0, 3));
	assert_false(has_after(&bucket, 0, 4));
	assert_true(has_after(&bucket, NSEC_PER_SEC / 2, 4));
	bucket_join(&bucket, &part);
	assert_int_equal(bucket.level, 5);
	assert_int_equal(bucket.part, 0);
}

static void test_a_debt_stays_until_the_last_part_and_goes_with_it(void **state)
{
	struct bucket bucket = full_bucket("3/s", 5, 0), other = full_bucket("7/s", 5, 0);
	struct bucket_part part;

	(void)state;
	bucket_take(&bucket, 12, 0);
	part = bucket_split(&bucket, 1, 2, 5, 1);
	assert_part(&part, 0, 0);
	assert_int_equal(bucket.level, -7);
	part = bucket_split(&bucket, 1, 1, 5, 0);
	assert_part(&part, -7, 0);
	assert_int_equal(bucket.level, 0);
	bucket_join(&other, &part);
	assert_int_equal(other.level, -2);
	assert_false(bucket_has(&other, 0));
}

static void test_a_part_that_makes_no_sense_is_not_joined(void **state)
{
	struct bucket bucket = empty_bucket("1/s", 5, 0);
	const struct bucket_part large = {INT64_MAX, 0}, small = {INT64_MIN, 0};

	(void)state;
	bucket_join(&bucket, &large);
	assert_int_equal(bucket.level, 0);
	bucket_join(&bucket, &small);
	assert_int_equal(bucket.level, 0);
}

static void test_leaving_takes_all_that_is_more_and_no_debt(void **state)
{
	struct bucket bucket = full_bucket("3/s", 10, 0);
	struct bucket_account account;

	(void)state;
	bucket_account_open(&bucket, &account);
	bucket_take(&bucket, 3, 0);
	bucket_refill(&bucket, BEGINNING + 100 * MS);
	bucket_leave(&bucket, 8);
	assert_int_equal(bucket.level, 7);
	assert_int_not_equal(bucket.part, 0);
	bucket_leave(&bucket, 7);
	assert_int_equal(bucket.level, 7);
	assert_int_equal(bucket.part, 0);
	bucket_leave(&bucket, 0);
	assert_int_equal(bucket.level, 0);
	assert_false(bucket_has(&bucket, 1));
	assert_balanced(&bucket);
	bucket_take(&bucket, 4, 0);
	bucket_leave(&bucket, 0);
	assert_int_equal(bucket.level, -4);
	assert_balanced(&bucket);
}

static void test_leaving_nothing_takes_a_part_of_a_token_too(void **state)
{
	struct bucket bucket = empty_bucket("1/7s", 1, 0);

	(void)state;
	bucket_refill(&bucket, BEGINNING + 6 * NSEC_PER_SEC);
	assert_int_not_equal(bucket.part, 0);
	bucket_leave(&bucket, 0);
	assert_int_equal(bucket.part, 0);
	assert_false(has_after(&bucket, 12 * NSEC_PER_SEC, 1));
	assert_true(has_after(&bucket, 13 * NSEC_PER_SEC, 1));
}

static void test_a_burst_of_0_has_room_for_all_but_a_token_of_a_take(void **state)
{
	struct bucket bucket = empty_bucket("10/s", 1, 0);
	struct rate none = rate_of("0");

	(void)state;
	bucket_await(&bucket, 40);
	bucket_put(&bucket, 40, 0);
	bucket_retune(&bucket, &none, 0, 0, BEGINNING);
	assert_int_equal(bucket.level, 39);
	/* The waiter is away, and another is there for a token. */
	bucket_set_aside(&bucket, 0);
	bucket_await(&bucket, 1);
	bucket_put(&bucket, 1, 0);
	assert_int_equal(bucket.level, 39);
	bucket_take_back(&bucket, 40);
	assert_int_equal(bucket.level, 39);
	bucket_await(&bucket, 1);
	assert_int_equal(bucket.level, 0);
	bucket_put(&bucket, 1, 0);
	assert_int_equal(bucket.level, 0);
	bucket_take(&bucket, 3, 0);
	bucket_put(&bucket, 5, 0);
	assert_int_equal(bucket.level, 0);
}

static void test_with_an_interval_what_is_split_off_cannot_be_taken_here(void **state)
{
	struct bucket bucket = full_bucket("10/s", 20, NSEC_PER_SEC);
	struct bucket_part part = bucket_split(&bucket, 1, 2, 20, 0);

	(void)state;
	assert_part(&part, 10, 0);
	assert_true(bucket_has(&bucket, 10));
	assert_false(bucket_has(&bucket, 11));
	bucket_leave(&bucket, 3);
	assert_true(bucket_has(&bucket, 3));
	assert_false(bucket_has(&bucket, 4));
	bucket_join(&bucket, &part);
	assert_true(bucket_has(&bucket, 13));
	assert_false(bucket_has(&bucket, 14));
}

/*
 * A bucket is split in @shares parts that are joined by as many others, of another rate: nothing is
 * created, less than a billionth is lost with each, and less than a unit where it arrives.
 */
static void assert_moved(const char *from, const char *to, uint32_t shares, uint64_t burst)
{
	struct bucket source = full_bucket(from, burst, 0);
	i128 before, sum = 0, arrived = 0;
	struct bucket_account account;

	bucket_take(&source, draw(burst + 1), 0);
	bucket_refill(&source, BEGINNING + draw(10 * NSEC_PER_SEC));
	bucket_account_open(&source, &account);
	before = nano_units_of(&source);
	for (uint32_t i = shares; i; i--) {
		struct bucket target = empty_bucket(to, burst + 1, 0);
		struct bucket_part part = bucket_split(&source, 1, i, burst, 0);
		i128 joined;

		assert_true(part.nano < NSEC_PER_SEC);
		sum += nano_of(&part) * (i128)source.flow.den;
		bucket_join(&target, &part);
		joined = nano_units_of(&target) / (i128)target.flow.den;
		assert_true(joined <= nano_of(&part));
		assert_true((nano_of(&part) - joined - 1) * (i128)target.flow.den <
			    (i128)NSEC_PER_SEC);
		arrived += joined;
	}
	assert_balanced(&source);
	assert_int_equal(source.level, 0);
	assert_int_equal(source.part, 0);
	assert_true(sum <= before);
	assert_true(before - sum < (i128)shares * (i128)source.flow.den);
	assert_true(arrived * (i128)source.flow.den <= before);
}

static void test_moving_creates_nothing_and_loses_less_than_a_billionth_a_part(void **state)
{
	static const char *const rates[] = {"1/7s", "1000/90s",	   "3/s",  "10/s",
					    "1/d",  "999999937/s", "7/19h"};

	(void)state;
	draw_state = 7;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (size_t j = 0; j < sizeof(rates) / sizeof(rates[0]); j++) {
			for (uint32_t k = 0; k < 50; k++)
				assert_moved(rates[i], rates[j], 1 + (uint32_t)draw(30),
					     1 + draw(k % 2 ? 10 : 1000000));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thirty_days_at_a_seventh_of_a_token_a_second_are_exact),
		cmocka_unit_test(test_thirty_days_at_a_thousand_in_ninety_seconds_are_exact),
		cmocka_unit_test(test_thirty_days_at_a_billion_a_second_are_exact),
		cmocka_unit_test(test_extreme_rates_are_exact),
		cmocka_unit_test(test_shares_of_extreme_rates_are_exact),
		cmocka_unit_test(test_a_new_bucket_is_empty_until_it_is_filled),
		cmocka_unit_test(test_an_idle_bucket_saves_up_its_burst_and_no_more),
		cmocka_unit_test(test_idle_time_without_a_burst_gives_no_second_token),
		cmocka_unit_test(test_a_take_larger_than_the_burst_waits_for_its_share),
		cmocka_unit_test(test_tokens_kept_for_a_reader_that_left_spill_down_to_the_burst),
		cmocka_unit_test(test_the_most_tokens_there_are_can_be_waited_for),
		cmocka_unit_test(test_tokens_that_come_after_the_end_of_time_never_come),
		cmocka_unit_test(test_a_release_after_the_end_of_time_never_comes),
		cmocka_unit_test(test_a_bucket_left_alone_to_the_end_of_time_is_full),
		cmocka_unit_test(test_time_does_not_go_back),
		cmocka_unit_test(test_looking_often_or_seldom_gives_the_same),
		cmocka_unit_test(test_a_rate_of_zero_lets_nothing_pass_not_even_what_is_there),
		cmocka_unit_test(test_debt_is_paid_before_any_reader_is_served),
		cmocka_unit_test(test_a_debt_has_a_floor),
		cmocka_unit_test(test_tokens_put_back_can_be_taken_again_up_to_the_burst),
		cmocka_unit_test(test_tokens_put_back_leave_room_for_those_that_are_kept),
		cmocka_unit_test(test_an_interval_releases_even_batches),
		cmocka_unit_test(test_unused_interval_does_not_add_to_the_next),
		cmocka_unit_test(
			test_a_take_larger_than_a_batch_comes_with_the_batch_that_completes_it),
		cmocka_unit_test(test_batches_that_are_not_whole_are_exact_over_time),
		cmocka_unit_test(test_takes_that_do_not_divide_a_batch_lose_nothing_over_time),
		cmocka_unit_test(test_putting_back_between_two_releases_gives_back_at_once),
		cmocka_unit_test(test_raising_the_burst_adds_no_tokens_and_lowering_it_spills),
		cmocka_unit_test(test_a_new_rate_counts_from_now_on),
		cmocka_unit_test(test_a_part_of_a_token_survives_a_new_rate),
		cmocka_unit_test(test_a_debt_survives_a_new_rate),
		cmocka_unit_test(test_a_new_interval_begins_now_and_an_old_one_goes_on),
		cmocka_unit_test(test_a_new_interval_does_not_hold_back_what_could_be_taken),
		cmocka_unit_test(test_a_restored_level_counts_only_as_far_as_it_makes_sense),
		cmocka_unit_test(test_every_token_is_accounted_for_whatever_happens),
		cmocka_unit_test(test_never_more_is_released_than_is_there),
		cmocka_unit_test(
			test_when_tells_the_first_time_at_which_a_waiting_reader_is_served),
		cmocka_unit_test(test_no_window_sees_more_than_its_rate_and_one_capacity),
		cmocka_unit_test(test_a_level_is_split_in_equal_parts_and_the_last_takes_the_rest),
		cmocka_unit_test(test_several_parts_go_at_once),
		cmocka_unit_test(test_no_part_is_larger_than_its_share_of_the_burst),
		cmocka_unit_test(test_a_part_leaves_the_tokens_that_are_kept),
		cmocka_unit_test(
			test_joined_tokens_can_be_taken_and_those_without_room_are_spilled),
		cmocka_unit_test(test_a_debt_stays_until_the_last_part_and_goes_with_it),
		cmocka_unit_test(test_a_part_that_makes_no_sense_is_not_joined),
		cmocka_unit_test(test_leaving_takes_all_that_is_more_and_no_debt),
		cmocka_unit_test(test_leaving_nothing_takes_a_part_of_a_token_too),
		cmocka_unit_test(test_a_burst_of_0_has_room_for_all_but_a_token_of_a_take),
		cmocka_unit_test(test_with_an_interval_what_is_split_off_cannot_be_taken_here),
		cmocka_unit_test(
			test_moving_creates_nothing_and_loses_less_than_a_billionth_a_part),
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
