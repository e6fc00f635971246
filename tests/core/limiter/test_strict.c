/* Tests of strict: in no window more tokens than its limit. */
#include "core/limiter/bucket.h"
#include "core/limiter/stamps.h"
#include "core/limiter/strict.h"
#include "tests/core/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SEC	  NSEC_PER_SEC
#define BEGINNING UINT64_C(12345678901234567)
#define WINDOW	  (60 * SEC)

static struct rate rate_of(const char *text)
{
	struct rate rate;

	assert_int_equal(rate_parse_limit(text, &rate), 0);
	return rate;
}

/* A bucket of which nothing was taken. */
static struct bucket full_bucket(const char *text)
{
	struct rate rate = rate_of(text);
	struct bucket bucket;

	bucket_init(&bucket, &rate, 1, 0, BEGINNING);
	bucket_fill(&bucket);
	return bucket;
}

/* Tells how many tokens @bucket has @after_ns after the beginning. */
static int64_t level_after(struct bucket *bucket, uint64_t after_ns)
{
	bucket_refill(bucket, BEGINNING + after_ns);
	assert_true(bucket->level <= 0 || bucket_tokens(bucket) == (uint64_t)bucket->level);
	return bucket->level;
}

static void take_after(struct bucket *bucket, uint64_t after_ns, uint64_t tokens)
{
	bucket_refill(bucket, BEGINNING + after_ns);
	bucket_take(bucket, tokens, 0);
}

static void retune(struct bucket *bucket, const char *text, uint64_t after_ns)
{
	struct rate rate = rate_of(text);

	bucket_retune(bucket, &rate, 1, 0, BEGINNING + after_ns);
}

/* The window that ends at t is (t - w, t]. */
static void test_a_token_is_in_the_window_until_the_nanosecond_of_its_length(void **state)
{
	struct bucket bucket = full_bucket("10/60s,strict");

	(void)state;
	take_after(&bucket, 0, 4);
	take_after(&bucket, 10 * SEC, 6);
	assert_false(bucket_has(&bucket, 1));
	assert_int_equal(bucket_when(&bucket, 4, BEGINNING + 10 * SEC), BEGINNING + WINDOW);
	assert_int_equal(bucket_when(&bucket, 5, BEGINNING + 10 * SEC),
			 BEGINNING + WINDOW + 10 * SEC);
	assert_int_equal(level_after(&bucket, WINDOW - 1), 0);
	assert_int_equal(level_after(&bucket, WINDOW), 4);
	assert_int_equal(level_after(&bucket, WINDOW + 10 * SEC - 1), 4);
	assert_int_equal(level_after(&bucket, WINDOW + 10 * SEC), 10);
	bucket_end(&bucket);
}

static void test_takes_that_fill_several_windows_are_due_one_window_after_another(void **state)
{
	struct bucket bucket = full_bucket("10/60s,strict");
	uint64_t now_ns = BEGINNING + SEC;

	(void)state;
	take_after(&bucket, 0, 10);
	bucket_refill(&bucket, now_ns);
	assert_int_equal(bucket_when(&bucket, 10, now_ns), BEGINNING + WINDOW);
	assert_int_equal(bucket_when(&bucket, 11, now_ns), BEGINNING + 2 * WINDOW);
	assert_int_equal(bucket_when(&bucket, 35, now_ns), BEGINNING + 4 * WINDOW);
	assert_int_equal(bucket_when(&bucket, UINT64_C(1) << 61, now_ns), NEVER_NS);
	bucket_end(&bucket);
}

/* Served late, as of when it was due, the reader has the token now: it counts from now on. */
static void test_a_late_step_stamps_its_own_time(void **state)
{
	struct bucket bucket = full_bucket("1/60s,strict");

	(void)state;
	bucket_refill(&bucket, BEGINNING + SEC);
	bucket_take(&bucket, 1, BEGINNING + 5 * SEC);
	assert_int_equal(level_after(&bucket, WINDOW + 5 * SEC - 1), 0);
	assert_int_equal(level_after(&bucket, WINDOW + 5 * SEC), 1);
	bucket_end(&bucket);
}

/* One of 0 s and one of 30 s; whichever of them comes back, the later one stays. */
static void test_a_token_that_comes_back_frees_the_oldest(void **state)
{
	struct bucket bucket = full_bucket("2/60s,strict");

	(void)state;
	take_after(&bucket, 0, 1);
	take_after(&bucket, 30 * SEC, 1);
	bucket_put(&bucket, 1, 0);
	assert_int_equal(level_after(&bucket, 40 * SEC), 1);
	assert_int_equal(level_after(&bucket, WINDOW), 1);
	assert_int_equal(level_after(&bucket, WINDOW + 30 * SEC), 2);
	/* No more come back than were taken, nor of those that are kept for others. */
	bucket_put(&bucket, 5, 0);
	assert_int_equal(level_after(&bucket, 3 * WINDOW), 2);
	take_after(&bucket, 3 * WINDOW, 2);
	bucket_put(&bucket, 2, 1);
	assert_int_equal(bucket.level, 1);
	bucket_end(&bucket);
}

/* A token is kept for a poller for a second, and may come back when it has left the window. */
static void test_of_a_window_of_a_second_nothing_comes_back(void **state)
{
	struct bucket bucket = full_bucket("2/1s,strict");

	(void)state;
	take_after(&bucket, 0, 2);
	bucket_put(&bucket, 1, 0);
	assert_int_equal(level_after(&bucket, SEC - 1), 0);
	assert_int_equal(level_after(&bucket, SEC), 2);
	bucket_end(&bucket);
}

static void test_a_charge_may_take_more_than_there_is(void **state)
{
	struct bucket bucket = full_bucket("10/60s,strict");

	(void)state;
	take_after(&bucket, 0, 10);
	take_after(&bucket, 20 * SEC, 5);
	assert_int_equal(bucket.level, -5);
	assert_int_equal(bucket_when(&bucket, 6, BEGINNING + 20 * SEC),
			 BEGINNING + WINDOW + 20 * SEC);
	assert_int_equal(level_after(&bucket, WINDOW), 5);
	assert_int_equal(level_after(&bucket, WINDOW + 20 * SEC), 10);
	bucket_end(&bucket);
}

static void test_another_limit_keeps_what_was_taken(void **state)
{
	struct bucket bucket = full_bucket("10/60s,strict");

	(void)state;
	take_after(&bucket, 0, 8);
	retune(&bucket, "20/60s,strict", 10 * SEC);
	assert_int_equal(bucket.level, 12);
	retune(&bucket, "5/60s,strict", 20 * SEC);
	assert_int_equal(bucket.level, -3);
	assert_int_equal(level_after(&bucket, WINDOW - 1), -3);
	assert_int_equal(level_after(&bucket, WINDOW), 5);
	bucket_end(&bucket);
}

/* It is not known what was taken longer ago than the window that was. */
static void test_a_longer_window_counts_all_as_taken_and_a_shorter_one_what_is_in_it(void **state)
{
	struct bucket bucket = full_bucket("10/60s,strict");

	(void)state;
	take_after(&bucket, 0, 4);
	take_after(&bucket, 50 * SEC, 1);
	retune(&bucket, "10/30s,strict", 55 * SEC);
	assert_int_equal(bucket.level, 9);
	retune(&bucket, "10/90s,strict", 56 * SEC);
	assert_int_equal(bucket.level, 0);
	assert_int_equal(level_after(&bucket, 116 * SEC - 1), 0);
	assert_int_equal(level_after(&bucket, 116 * SEC), 9);
	assert_int_equal(level_after(&bucket, 140 * SEC), 10);
	bucket_end(&bucket);
}

/* A charge may have taken more than there is. */
static void test_tokens_that_come_back_free_none_that_a_longer_window_does_not_know(void **state)
{
	struct bucket bucket = full_bucket("3/s,strict");

	(void)state;
	take_after(&bucket, 10 * SEC, 63);
	retune(&bucket, "10/60s,strict", 30 * SEC);
	bucket_put(&bucket, 15, 0);
	assert_int_equal(level_after(&bucket, 89 * SEC - 1), 0);
	assert_int_equal(level_after(&bucket, 89 * SEC), 10);
	bucket_end(&bucket);
	/* Nor do they where more is known to be used than the new window has. */
	bucket = full_bucket("10/60s,strict");
	take_after(&bucket, 70 * SEC, 56);
	retune(&bucket, "30/300s,strict", 80 * SEC);
	bucket_put(&bucket, 65, 0);
	assert_int_equal(level_after(&bucket, 320 * SEC - 1), -27);
	assert_int_equal(level_after(&bucket, 320 * SEC), -26);
	bucket_put(&bucket, 6, 0);
	assert_int_equal(level_after(&bucket, 320 * SEC), -20);
	assert_int_equal(level_after(&bucket, 370 * SEC), 30);
	bucket_end(&bucket);
}

static void test_a_bucket_that_becomes_a_window_counts_as_used_up(void **state)
{
	struct bucket bucket = full_bucket("10/60s");

	(void)state;
	retune(&bucket, "10/60s,strict", SEC);
	assert_int_equal(level_after(&bucket, WINDOW + SEC - 1), 0);
	assert_int_equal(level_after(&bucket, WINDOW + SEC), 10);
	take_after(&bucket, 2 * WINDOW, 10);
	retune(&bucket, "10/60s", 2 * WINDOW);
	assert_false(bucket_is_strict(&bucket));
	assert_int_equal(bucket.level, 0);
	bucket_end(&bucket);
}

static void test_a_restored_level_counts_what_is_used_as_taken_now(void **state)
{
	struct rate rate = rate_of("10/60s,strict");
	struct bucket bucket;

	(void)state;
	bucket_init(&bucket, &rate, 1, 0, BEGINNING);
	assert_int_equal(bucket.level, 0);
	bucket_restore(&bucket, 7, 0);
	take_after(&bucket, SEC, 2);
	/* The three may stand for more: nothing comes back while they count. */
	bucket_put(&bucket, 1, 0);
	assert_int_equal(level_after(&bucket, WINDOW - 1), 5);
	assert_int_equal(level_after(&bucket, WINDOW), 8);
	bucket_put(&bucket, 1, 0);
	assert_int_equal(bucket.level, 9);
	bucket_fill(&bucket);
	assert_int_equal(level_after(&bucket, WINDOW), 10);
	bucket_end(&bucket);
	bucket_init(&bucket, &rate, 1, 0, BEGINNING);
	bucket_restore(&bucket, 11, 0);
	assert_int_equal(bucket.level, 10);
	bucket_end(&bucket);
}

/* The rest comes along, and counts as free; all else of the share counts as taken now. */
static void test_a_share_that_changes_hosts_counts_as_taken_but_for_its_rest(void **state)
{
	struct bucket giver = full_bucket("8/60s,strict"), taker = full_bucket("2/60s,strict");
	struct bucket_part rest;
	int64_t level;

	(void)state;
	take_after(&giver, 0, 4);
	rest = bucket_split(&giver, 1, 2, 4, 4);
	assert_int_equal(rest.tokens, 0);
	rest = bucket_split(&giver, 1, 2, 4, 1);
	assert_int_equal(rest.tokens, 2);
	assert_int_equal(rest.nano, 0);
	level = giver.level;
	retune(&giver, "4/60s,strict", 0);
	strict_hold_level(&giver, level);
	assert_int_equal(giver.level, 2);
	assert_int_equal(level_after(&giver, WINDOW), 4);

	take_after(&taker, 0, 1);
	level = level_after(&taker, 30 * SEC);
	retune(&taker, "6/60s,strict", 30 * SEC);
	strict_hold_level(&taker, level);
	assert_int_equal(taker.level, 1);
	bucket_join(&taker, &rest);
	assert_int_equal(taker.level, 3);
	assert_int_equal(level_after(&taker, WINDOW), 4);
	assert_int_equal(level_after(&taker, WINDOW + 30 * SEC - 1), 4);
	assert_int_equal(level_after(&taker, WINDOW + 30 * SEC), 6);
	bucket_end(&giver);
	bucket_end(&taker);
}

static void test_a_debt_goes_with_the_last_part(void **state)
{
	struct bucket giver = full_bucket("4/60s,strict"), taker = full_bucket("4/60s,strict");
	struct bucket_part rest;

	(void)state;
	take_after(&giver, 0, 6);
	rest = bucket_split(&giver, 1, 2, 4, 0);
	assert_int_equal(rest.tokens, 0);
	rest = bucket_split(&giver, 2, 2, 4, 0);
	assert_int_equal(rest.tokens, -2);
	assert_int_equal(giver.level, 0);
	bucket_leave(&taker, 0);
	bucket_join(&taker, &rest);
	assert_int_equal(taker.level, -2);
	bucket_end(&giver);
	bucket_end(&taker);
}

/* Tokens beyond the log join the oldest: they are freed later than they could be, never sooner. */
static void test_a_log_that_is_full_joins_its_oldest_stamps(void **state)
{
	struct bucket bucket = full_bucket("65536/60s,strict");
	uint64_t beyond = 10, last = STAMPS_MAX + beyond - 1;

	(void)state;
	for (uint64_t i = 0; i <= last; i++)
		take_after(&bucket, i, 1);
	assert_int_equal(bucket.stamps->count, STAMPS_MAX);
	assert_int_equal(bucket.level, -(int64_t)beyond);
	assert_int_equal(level_after(&bucket, WINDOW + beyond - 2), -(int64_t)beyond);
	assert_int_equal(level_after(&bucket, WINDOW + beyond - 1), 0);
	assert_int_equal(level_after(&bucket, WINDOW + beyond), 1);
	assert_int_equal(level_after(&bucket, WINDOW + last), 65536);
	bucket_end(&bucket);
}

static void test_a_counter_has_few_stamps_however_much_is_taken(void **state)
{
	struct bucket bucket = full_bucket("1000000/60s,strict");

	(void)state;
	for (uint64_t i = 0; i < 500000; i++)
		take_after(&bucket, i * 3 * WINDOW / 500000, 1);
	assert_in_range(bucket.stamps->count, STAMPS_PARTS, STAMPS_PARTS + 2);
	bucket_end(&bucket);
}

/* A model that remembers all. */
enum { MODEL_MOST = 20000 };

struct model {
	uint64_t at_ns[MODEL_MOST], tokens[MODEL_MOST];
	size_t first, count;
};

/* Sums up what was taken after @since_ns. */
static uint64_t taken_since(const struct model *model, uint64_t since_ns)
{
	uint64_t sum = 0;

	for (size_t i = model->count; i-- > model->first && model->at_ns[i] > since_ns;)
		sum += model->tokens[i];
	return sum;
}

/* Takes what there is at random times; @late_ns: stamps may be as much later than the takes. */
static void assert_like_the_model(const char *text, uint64_t window_ns, uint64_t most,
				  uint64_t late_ns, uint64_t seed)
{
	static struct model model;
	struct bucket bucket = full_bucket(text);
	uint64_t now_ns = BEGINNING;

	draw_state = seed;
	model.first = model.count = 0;
	while (model.count < MODEL_MOST) {
		uint64_t used, late, tokens, when_ns;

		now_ns += draw(3) ? draw(window_ns / 64 + 1) : 0;
		bucket_refill(&bucket, now_ns);
		used = taken_since(&model, now_ns - window_ns);
		late = taken_since(&model, now_ns - window_ns - late_ns);
		assert_true(bucket.level <= (int64_t)most - (int64_t)used);
		assert_true(bucket.level >= (int64_t)most - (int64_t)late);
		tokens = 1 + draw(draw(8) ? most / 20 + 1 : most);
		when_ns = bucket_when(&bucket, tokens, now_ns);
		assert_int_equal(when_ns == now_ns, bucket_has(&bucket, tokens));
		if (when_ns > now_ns && draw(2)) {
			/* Not a nanosecond sooner. */
			bucket_refill(&bucket, when_ns - 1);
			assert_false(bucket_has(&bucket, tokens));
			bucket_refill(&bucket, when_ns);
			assert_true(bucket_has(&bucket, tokens));
			now_ns = when_ns;
		}
		if (!bucket_has(&bucket, tokens) && draw(16))
			continue;
		bucket_take(&bucket, tokens, 0);
		model.at_ns[model.count] = now_ns;
		model.tokens[model.count++] = tokens;
		if (bucket.level >= 0)
			assert_true(taken_since(&model, now_ns - window_ns) <= most);
	}
	bucket_end(&bucket);
}

static void test_the_log_is_exact(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		assert_like_the_model("10/60s,strict", WINDOW, 10, 0, seed);
		assert_like_the_model("1/7ns,strict", 7, 1, 0, seed);
		assert_like_the_model("65536/s,strict", SEC, 65536, 0, seed);
	}
}

static void test_the_counter_loses_at_most_a_256th_of_the_window(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		assert_like_the_model("65537/60s,strict", WINDOW, 65537, WINDOW / 256, seed);
		assert_like_the_model("1M/999us,strict", 999000, 1000000, 999000 / 256, seed);
		assert_like_the_model("100k/300ns,strict", 300, 100000, 1, seed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_token_is_in_the_window_until_the_nanosecond_of_its_length),
		cmocka_unit_test(
			test_takes_that_fill_several_windows_are_due_one_window_after_another),
		cmocka_unit_test(test_a_late_step_stamps_its_own_time),
		cmocka_unit_test(test_a_token_that_comes_back_frees_the_oldest),
		cmocka_unit_test(test_of_a_window_of_a_second_nothing_comes_back),
		cmocka_unit_test(test_a_charge_may_take_more_than_there_is),
		cmocka_unit_test(test_another_limit_keeps_what_was_taken),
		cmocka_unit_test(
			test_a_longer_window_counts_all_as_taken_and_a_shorter_one_what_is_in_it),
		cmocka_unit_test(
			test_tokens_that_come_back_free_none_that_a_longer_window_does_not_know),
		cmocka_unit_test(test_a_bucket_that_becomes_a_window_counts_as_used_up),
		cmocka_unit_test(test_a_restored_level_counts_what_is_used_as_taken_now),
		cmocka_unit_test(test_a_share_that_changes_hosts_counts_as_taken_but_for_its_rest),
		cmocka_unit_test(test_a_debt_goes_with_the_last_part),
		cmocka_unit_test(test_a_log_that_is_full_joins_its_oldest_stamps),
		cmocka_unit_test(test_a_counter_has_few_stamps_however_much_is_taken),
		cmocka_unit_test(test_the_log_is_exact),
		cmocka_unit_test(test_the_counter_loses_at_most_a_256th_of_the_window),
	};

	return cmocka_run_group_tests_name("strict", tests, NULL, NULL);
}
