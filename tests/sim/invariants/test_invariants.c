/* Tests that each invariant of the simulator holds for good logs and fails for bad ones. */
#include "tests/sim/invariants/account_check.h"
#include "tests/sim/invariants/empty_check.h"
#include "tests/sim/invariants/queue_check.h"
#include "tests/sim/invariants/quota_check.h"
#include "tests/sim/invariants/rate_check.h"
#include "tests/sim/base/random.h"

#include "core/limiter/change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static char why[WHY_TEXT];

static struct settings settings_of(const char *text)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	assert_int_equal(settings_parse(text, &settings, error), 0);
	return settings;
}

static void tune(struct rate_check *check, const char *text, uint64_t now_ns)
{
	struct settings settings = settings_of(text);

	rate_check_tune(check, &settings, now_ns);
}

static bool grant(struct rate_check *check, uint64_t tokens, uint64_t now_ns)
{
	return rate_check_grant(check, tokens, tokens, now_ns, why);
}

static void test_a_burst_and_then_the_rate_is_allowed(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=10/s\nburst=3", 0);
	assert_true(grant(&check, 3, 0));
	for (uint64_t i = 1; i <= 1000; i++)
		assert_true(grant(&check, 1, i * 100 * MS));
}

static void test_one_token_too_early_is_found_at_the_end_of_a_long_window(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=10/s\nburst=3", 0);
	assert_true(grant(&check, 3, 0));
	for (uint64_t i = 1; i <= 1000; i++)
		assert_true(grant(&check, 1, i * 100 * MS));
	assert_false(grant(&check, 1, 1001 * 100 * MS - 2));
	assert_non_null(strstr(why, "above the rate"));
}

static void test_a_deadline_may_be_rounded_by_one_nanosecond_only(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=3/10ns", 0);
	assert_true(grant(&check, 1, 0));
	/* 3.33 ns later, rounded: 4 is late, 3 is within the nanosecond, 2 is not. */
	assert_true(grant(&check, 1, 3));
	check = (struct rate_check){0};
	tune(&check, "rate=3/10ns", 0);
	assert_true(grant(&check, 1, 0));
	assert_false(grant(&check, 1, 2));
}

static void test_a_take_larger_than_the_burst_makes_room_for_itself_once(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=10/s", 0);
	assert_true(grant(&check, 25, 0));
	assert_false(grant(&check, 1, 0));
}

static void test_cancelled_take_makes_room_only_while_a_reader_waits(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=10/s", 0);
	rate_check_waits(&check, 5);
	rate_check_leaves(&check);
	/* There was no surplus and no reader waited: room for one again. */
	assert_true(grant(&check, 1, 1000 * MS));
	assert_false(grant(&check, 1, 1000 * MS));
}

static void test_the_largest_limit_of_several_that_is_broken_is_named(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1000/s:10 1/s:2", 0);
	assert_true(grant(&check, 1, 0));
	assert_true(grant(&check, 1, 0));
	assert_false(grant(&check, 1, 0));
	assert_non_null(strstr(why, "limit 1"));
}

static void test_a_new_rate_counts_for_the_time_after_it(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1/s", 0);
	assert_true(grant(&check, 1, 0));
	tune(&check, "rate=1000/s", 999 * MS);
	/* 0.999 by the old rate, one by the new one. */
	assert_true(grant(&check, 1, 1000 * MS));
	assert_true(grant(&check, 1, 1001 * MS));
	assert_false(grant(&check, 1, 1001 * MS));
}

static void test_a_burst_that_was_lowered_counts_from_then_on(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1/s\nburst=100", 0);
	for (int i = 0; i < 50; i++)
		assert_true(grant(&check, 1, 0));
	tune(&check, "rate=1/s\nburst=5", 1);
	for (int i = 0; i < 5; i++)
		assert_true(grant(&check, 1, 2));
	/* 56 are within the burst of 100, but not within that of now. */
	assert_false(grant(&check, 1, 3));
}

static void test_raising_the_burst_and_using_it_at_once_is_found(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1/s\nburst=1", 0);
	assert_true(grant(&check, 1, 0));
	tune(&check, "rate=1/s\nburst=1", 1);
	/* Were the bucket filled by tuning, each tuning would let one through. */
	assert_false(grant(&check, 1, 2));
}

static void test_nothing_passes_at_rate_0_or_when_closed(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=0", 0);
	assert_false(grant(&check, 1, 1000 * MS));
	tune(&check, "enforcement=closed", 1000 * MS);
	assert_false(grant(&check, 0, 2000 * MS));
	assert_non_null(strstr(why, "closed"));
}

static void test_open_shadow_and_max_let_everything_pass(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1/s\nenforcement=open", 0);
	assert_true(grant(&check, 1000000, 0));
	tune(&check, "rate=1/s\nenforcement=shadow", 0);
	assert_true(grant(&check, 1000000, 0));
	tune(&check, "rate=max", 0);
	assert_true(grant(&check, 1000000, 0));
	tune(&check, "rate=1/s", 1);
	assert_true(grant(&check, 1, 1));
	assert_false(grant(&check, 1, 1));
}

static void test_an_interval_may_release_a_batch_and_no_more(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=500/s\nrelease_interval=200ms", 0);
	for (uint64_t i = 0; i < 100; i++)
		assert_true(grant(&check, 1, 0));
	assert_true(grant(&check, 1, 0));
	assert_false(grant(&check, 1, 0));
}

static void test_token_given_back_may_be_granted_again(void **state)
{
	struct rate_check check = {0};

	(void)state;
	tune(&check, "rate=1/s\nburst=5", 0);
	assert_true(grant(&check, 5, 0));
	rate_check_return(&check, 2, 0);
	assert_true(grant(&check, 2, 0));
	assert_false(grant(&check, 1, 0));
}

enum { GRANTS = 40, LOGS = 20000 };

/* Whether every window of a log that ends at a grant keeps rate * (w + 1 ns) + burst. */
static bool keeps_everywhere(const uint64_t *at_ns, size_t count, const struct fraction *flow,
			     uint64_t burst)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = i; j < count; j++) {
			u128 room = (u128)burst * flow->den +
				    (u128)flow->num * (at_ns[j] - at_ns[i] + 1);

			if ((u128)(j - i + 1) * flow->den > room)
				return false;
		}
	}
	return true;
}

static void test_every_window_of_random_logs_is_judged_as_by_brute_force(void **state)
{
	struct settings settings = settings_of("rate=7/30ns\nburst=3");
	struct fraction flow = rate_fraction(&settings.limits[0].rate);
	struct random random = {42};
	size_t broken = 0;

	(void)state;
	for (size_t n = 0; n < LOGS; n++) {
		struct rate_check check = {0};
		uint64_t at_ns[GRANTS], now_ns = 0;
		bool kept = true;

		rate_check_tune(&check, &settings, 0);
		for (size_t i = 0; i < GRANTS && kept; i++) {
			now_ns += random_below(&random, 10);
			at_ns[i] = now_ns;
			kept = grant(&check, 1, now_ns);
			assert_int_equal(kept, keeps_everywhere(at_ns, i + 1, &flow, 3));
		}
		broken += !kept;
	}
	assert_true(broken > LOGS / 10 && broken < LOGS);
}

static void test_first_come_first_served_is_allowed(void **state)
{
	struct queue_check check = {0};
	struct reader_check a = {.number = 1}, b = {.number = 2}, c = {.number = 3};

	(void)state;
	assert_true(queue_check_waits(&check, &a, why));
	assert_true(queue_check_waits(&check, &b, why));
	assert_true(queue_check_waits(&check, &c, why));
	assert_true(queue_check_left(&check, &b, why));
	assert_true(queue_check_granted(&check, &a, why));
	assert_true(queue_check_granted(&check, &c, why));
	assert_int_equal(check.length, 0);
	assert_null(check.oldest);
	assert_null(check.newest);
}

static void test_reader_served_before_an_older_one_is_found(void **state)
{
	struct queue_check check = {0};
	struct reader_check a = {.number = 1}, b = {.number = 2}, c = {.number = 3};

	(void)state;
	queue_check_waits(&check, &a, why);
	queue_check_waits(&check, &b, why);
	assert_false(queue_check_granted(&check, &b, why));
	/* So is one that never waited. */
	assert_false(queue_check_granted(&check, &c, why));
}

static void test_reader_served_twice_or_after_leaving_is_found(void **state)
{
	struct queue_check check = {0};
	struct reader_check a = {.number = 1}, b = {.number = 2};

	(void)state;
	assert_true(queue_check_granted(&check, &a, why));
	assert_false(queue_check_granted(&check, &a, why));
	queue_check_waits(&check, &b, why);
	assert_false(queue_check_waits(&check, &b, why));
	assert_true(queue_check_left(&check, &b, why));
	assert_false(queue_check_granted(&check, &b, why));
	assert_false(queue_check_left(&check, &b, why));
	assert_false(queue_check_waits(&check, &b, why));
}

static void test_a_reader_missing_from_the_queue_is_found(void **state)
{
	struct queue_check check = {0};
	struct reader_check a = {.number = 1};
	struct limiter limiter = {0};
	struct waiter waiter = {0};

	(void)state;
	queue_check_waits(&check, &a, why);
	assert_false(queue_check_length(&check, &limiter, why));
	queue_append(&limiter.turns.queue, &waiter);
	assert_true(queue_check_length(&check, &limiter, why));
}

static void test_a_limiter_is_due_when_all_its_limits_are(void **state)
{
	struct bucket buckets[2];
	struct settings settings = SETTINGS_DEFAULT;
	struct limiter limiter = {
		.buckets = buckets, .bucket_count = 2, .plain_count = 2, .settings = &settings};
	struct rate rate;

	(void)state;
	assert_int_equal(rate_parse("10/s", &rate), 0);
	bucket_init(&buckets[0], &rate, 2, 0, 0);
	assert_int_equal(rate_parse("5/s", &rate), 0);
	bucket_init(&buckets[1], &rate, 2, 0, 0);
	assert_int_equal(queue_check_due_ns(&limiter, 2, NULL, 100 * MS), 400 * MS);
	assert_int_equal(queue_check_due_ns(&limiter, 2, NULL, 400 * MS), 400 * MS);
	settings.enforcement = ENFORCEMENT_CLOSED;
	assert_int_equal(queue_check_due_ns(&limiter, 2, NULL, 400 * MS), NEVER_NS);
	settings.enforcement = ENFORCEMENT_SHADOW;
	assert_int_equal(queue_check_due_ns(&limiter, 2, NULL, 0), 0);
}

struct books {
	struct bucket bucket;
	struct account_check check;
};

/* A bucket of 10/s and a burst of 5 that was full, a second and a take of 3 later. */
static void open_books(struct books *books)
{
	struct rate rate;

	assert_int_equal(rate_parse("10/s", &rate), 0);
	bucket_init(&books->bucket, &rate, 5, 0, 0);
	bucket_fill(&books->bucket);
	memset(&books->check, 0, sizeof(books->check));
	account_check_open(&books->check, &books->bucket);
	bucket_refill(&books->bucket, 1000 * MS);
	bucket_take(&books->bucket, 3, 0);
	account_check_take(&books->check, &books->bucket, 3);
}

static bool balances(const struct books *books)
{
	return account_check_balance(&books->check, &books->bucket, why);
}

static void test_books_balance_after_taking_and_putting_and_spilling(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	assert_true(balances(&books));
	bucket_put(&books.bucket, 7, 0);
	account_check_put(&books.check, &books.bucket, 7);
	assert_true(balances(&books));
	bucket_refill(&books.bucket, 1234567891);
	assert_true(balances(&books));
}

static void test_a_token_from_nowhere_is_found(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	books.bucket.level++;
	assert_false(balances(&books));
	open_books(&books);
	books.bucket.part++;
	assert_false(balances(&books));
	open_books(&books);
	books.bucket.part = books.bucket.flow.den;
	assert_false(balances(&books));
}

static void test_a_grant_that_was_not_taken_is_found(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	account_check_take(&books.check, &books.bucket, 1);
	assert_false(balances(&books));
}

static void test_take_that_no_reader_was_granted_is_found(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	bucket_take(&books.bucket, 1, 0);
	assert_false(balances(&books));
}

static void test_tokens_put_back_without_a_taker_or_not_at_all_are_found(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	bucket_put(&books.bucket, 1, 0);
	assert_false(balances(&books));
	open_books(&books);
	account_check_put(&books.check, &books.bucket, 1);
	assert_false(balances(&books));
}

static void test_more_flowing_in_than_rate_times_time_is_found(void **state)
{
	struct books books;

	(void)state;
	open_books(&books);
	/* The bucket believes that it is a nanosecond earlier than it is. */
	books.bucket.filled_ns--;
	assert_false(balances(&books));
}

static void test_tuning_that_adds_tokens_is_found(void **state)
{
	struct books books;
	struct rate rate;

	(void)state;
	assert_int_equal(rate_parse("1/7s", &rate), 0);
	open_books(&books);
	account_check_tuning(&books.check, &books.bucket, 1010 * MS);
	bucket_retune(&books.bucket, &rate, 100, 0, 1010 * MS);
	assert_true(account_check_tuned(&books.check, &books.bucket, why));
	assert_true(balances(&books));

	open_books(&books);
	account_check_tuning(&books.check, &books.bucket, 1010 * MS);
	bucket_retune(&books.bucket, &rate, 100, 0, 1010 * MS);
	books.bucket.level++;
	bucket_account_open(&books.bucket, &books.check.account);
	assert_false(account_check_tuned(&books.check, &books.bucket, why));
}

static void test_waiter_left_in_a_limiter_is_found(void **state)
{
	struct sibling sibling = {0};
	struct limiter limiter = {.turns.sibling = &sibling};
	struct waiter waiter = {0};
	struct heap heap = {0};
	struct bucket bucket = {.awaited = 1};

	(void)state;
	assert_true(empty_check_limiter(&limiter, why));
	queue_append(&limiter.turns.queue, &waiter);
	assert_false(empty_check_limiter(&limiter, why));
	queue_shift(&limiter.turns.queue);
	limiter.turns.current = &waiter;
	assert_false(empty_check_limiter(&limiter, why));
	limiter.turns.current = NULL;
	limiter.turns.wanted = 1;
	assert_false(empty_check_limiter(&limiter, why));
	limiter.turns.wanted = 0;
	heap_insert(&heap, &limiter.due, 1);
	assert_false(empty_check_limiter(&limiter, why));
	heap_remove(&heap, &limiter.due);
	heap_insert(&heap, &sibling.turn, 1);
	assert_false(empty_check_limiter(&limiter, why));
	heap_remove(&heap, &sibling.turn);
	limiter.buckets = &bucket;
	limiter.bucket_count = 1;
	assert_false(empty_check_limiter(&limiter, why));
	bucket.awaited = 0;
	assert_true(empty_check_limiter(&limiter, why));
}

static void test_deadline_left_in_the_engine_is_found(void **state)
{
	struct limiter root = {0};
	struct engine engine = {.tree.root = &root};
	struct heap_node node = {0};
	struct waiter waiter = {0};
	struct poller poller = {0};
	struct change change = {0};

	(void)state;
	assert_true(empty_check_engine(&engine, why));
	engine.waiting = 1;
	assert_false(empty_check_engine(&engine, why));
	engine.waiting = 0;
	heap_insert(&engine.schedule.deadlines, &node, 1);
	assert_false(empty_check_engine(&engine, why));
	heap_remove(&engine.schedule.deadlines, &node);
	heap_insert(&engine.schedule.expiries, &node, 1);
	assert_false(empty_check_engine(&engine, why));
	heap_remove(&engine.schedule.expiries, &node);
	queue_append(&engine.schedule.done, &waiter);
	assert_false(empty_check_engine(&engine, why));
	queue_shift(&engine.schedule.done);
	list_append(&engine.schedule.called, &poller.called);
	assert_false(empty_check_engine(&engine, why));
	list_remove(&engine.schedule.called, &poller.called);
	engine.change = &change;
	assert_false(empty_check_engine(&engine, why));
	engine.change = NULL;
	root.turns.wanted = 1;
	assert_false(empty_check_engine(&engine, why));
}

static void test_blocks_of_memory_that_are_left_are_found(void **state)
{
	(void)state;
	assert_true(empty_check_memory(3, 3, why));
	assert_false(empty_check_memory(3, 4, why));
	assert_false(empty_check_memory(3, 2, why));
}

static void test_more_than_a_service_said_is_left_is_found(void **state)
{
	static struct quota_check check;

	(void)state;
	quota_check_report(&check, 5, 100);
	quota_check_report(&check, 9, 200);
	assert_true(quota_check_grant(&check, 5, 10, why));
	quota_check_charge(&check, -2);
	assert_true(quota_check_grant(&check, 2, 20, why));
	assert_false(quota_check_grant(&check, 1, 99, why));
	assert_true(quota_check_grant(&check, 3, 100, why));
	assert_false(quota_check_grant(&check, 1, 199, why));
	assert_true(quota_check_grant(&check, 1000, 200, why));
	quota_check_report(&check, 0, 400);
	assert_false(quota_check_grant(&check, 1, 300, why));
	quota_check_void(&check);
	assert_true(quota_check_grant(&check, 1, 300, why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_and_then_the_rate_is_allowed),
		cmocka_unit_test(test_one_token_too_early_is_found_at_the_end_of_a_long_window),
		cmocka_unit_test(test_a_deadline_may_be_rounded_by_one_nanosecond_only),
		cmocka_unit_test(test_a_take_larger_than_the_burst_makes_room_for_itself_once),
		cmocka_unit_test(test_cancelled_take_makes_room_only_while_a_reader_waits),
		cmocka_unit_test(test_the_largest_limit_of_several_that_is_broken_is_named),
		cmocka_unit_test(test_a_new_rate_counts_for_the_time_after_it),
		cmocka_unit_test(test_a_burst_that_was_lowered_counts_from_then_on),
		cmocka_unit_test(test_raising_the_burst_and_using_it_at_once_is_found),
		cmocka_unit_test(test_nothing_passes_at_rate_0_or_when_closed),
		cmocka_unit_test(test_open_shadow_and_max_let_everything_pass),
		cmocka_unit_test(test_an_interval_may_release_a_batch_and_no_more),
		cmocka_unit_test(test_token_given_back_may_be_granted_again),
		cmocka_unit_test(test_every_window_of_random_logs_is_judged_as_by_brute_force),
		cmocka_unit_test(test_first_come_first_served_is_allowed),
		cmocka_unit_test(test_reader_served_before_an_older_one_is_found),
		cmocka_unit_test(test_reader_served_twice_or_after_leaving_is_found),
		cmocka_unit_test(test_a_reader_missing_from_the_queue_is_found),
		cmocka_unit_test(test_a_limiter_is_due_when_all_its_limits_are),
		cmocka_unit_test(test_books_balance_after_taking_and_putting_and_spilling),
		cmocka_unit_test(test_a_token_from_nowhere_is_found),
		cmocka_unit_test(test_a_grant_that_was_not_taken_is_found),
		cmocka_unit_test(test_take_that_no_reader_was_granted_is_found),
		cmocka_unit_test(test_tokens_put_back_without_a_taker_or_not_at_all_are_found),
		cmocka_unit_test(test_more_flowing_in_than_rate_times_time_is_found),
		cmocka_unit_test(test_tuning_that_adds_tokens_is_found),
		cmocka_unit_test(test_waiter_left_in_a_limiter_is_found),
		cmocka_unit_test(test_deadline_left_in_the_engine_is_found),
		cmocka_unit_test(test_blocks_of_memory_that_are_left_are_found),
		cmocka_unit_test(test_more_than_a_service_said_is_left_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
