/* Tests of share: a host that wants little gets it, and the others share the rest by weight. */
#include "core/fleet/share.h"
#include "tests/core/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { CLAIMS_MAX = 200, ROUNDS = 3000 };

static const struct claim *find(const struct claim *claims, uint32_t count, uint64_t sequence)
{
	for (uint32_t i = 0; i < count; i++) {
		if (claims[i].sequence == sequence)
			return &claims[i];
	}
	fail_msg("the claim %llu is lost", (unsigned long long)sequence);
	return NULL;
}

/* Claims of @wants and @weights (NULL: all 1), in order of sequence, get @expected. */
static void assert_shares(uint32_t capacity, uint32_t count, const uint32_t *wants,
			  const uint32_t *weights, const uint32_t *expected)
{
	struct claim claims[CLAIMS_MAX];

	for (uint32_t i = 0; i < count; i++)
		claims[i] = (struct claim){
			.wanted = wants[i], .weight = weights ? weights[i] : 1, .sequence = 10 * i};
	division_plain(claims, count, capacity);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(find(claims, count, 10 * i)->gets, expected[i]);
}

#define LIST(...) ((const uint32_t[]){__VA_ARGS__})

static void test_the_published_cases_come_out_as_published(void **state)
{
	(void)state;
	assert_shares(120, 3, LIST(1000, 60, 10), NULL, LIST(55, 55, 10));
	assert_shares(120, 3, LIST(1000, 50, 10), NULL, LIST(60, 50, 10));
	assert_shares(120, 5, LIST(100, 1, 38, 5, 25), NULL, LIST(51, 1, 38, 5, 25));
}

static void test_all_get_what_they_want_when_there_is_enough(void **state)
{
	(void)state;
	assert_shares(100, 3, LIST(50, 30, 20), NULL, LIST(50, 30, 20));
	assert_shares(UINT32_MAX, 2, LIST(4096, 1), LIST(1, 1000), LIST(4096, 1));
	assert_shares(7, 1, LIST(100), NULL, LIST(7));
	assert_shares(7, 3, LIST(0, 7, 0), NULL, LIST(0, 7, 0));
}

static void test_weights_divide_what_is_contended(void **state)
{
	(void)state;
	assert_shares(120, 2, LIST(1000, 1000), LIST(1, 2), LIST(40, 80));
	assert_shares(120, 3, LIST(1000, 1000, 22), LIST(3, 1, 1), LIST(74, 24, 22));
	assert_shares(100, 2, LIST(1000, 10), LIST(1, 1000), LIST(90, 10));
	assert_shares(1001, 2, LIST(4096, 4096), LIST(1000, 1), LIST(1000, 1));
}

static void test_remainders_go_one_by_one_in_order_of_sequence(void **state)
{
	(void)state;
	assert_shares(11, 3, LIST(100, 100, 100), NULL, LIST(4, 4, 3));
	assert_shares(10, 3, LIST(100, 100, 100), NULL, LIST(4, 3, 3));
	/* A claim that has all it wants does not stand in that line. */
	assert_shares(12, 4, LIST(2, 100, 100, 100), NULL, LIST(2, 4, 3, 3));
}

static void test_a_part_that_is_whole_has_no_remainder(void **state)
{
	(void)state;
	assert_shares(2, 3, LIST(2, 2, 2), LIST(3, 1, 2), LIST(1, 1, 0));
	assert_shares(2, 3, LIST(2, 2, 2), LIST(3, 2, 1), LIST(1, 1, 0));
	assert_shares(3, 3, LIST(9, 9, 9), LIST(2, 3, 1), LIST(1, 2, 0));
}

static void test_more_hosts_than_partitions_are_served_in_order_of_sequence(void **state)
{
	struct claim claims[CLAIMS_MAX];

	(void)state;
	for (uint32_t i = 0; i < CLAIMS_MAX; i++)
		claims[i] = (struct claim){
			.wanted = 1 + i % 3, .weight = 1, .sequence = CLAIMS_MAX - i};
	division_plain(claims, CLAIMS_MAX, 20);
	for (uint32_t i = 0; i < CLAIMS_MAX; i++)
		assert_int_equal(claims[i].gets, claims[i].sequence <= 20);
}

static void test_of_nothing_each_host_gets_nothing(void **state)
{
	struct claim one = {.wanted = 5, .weight = 1, .sequence = 1, .gets = UINT32_MAX};

	(void)state;
	assert_shares(0, 3, LIST(1000, 1, 0), LIST(1, 1000, 7), LIST(0, 0, 0));
	division_plain(&one, 0, 100);
	assert_int_equal(one.gets, UINT32_MAX);
}

static void test_the_largest_numbers_do_not_overflow(void **state)
{
	struct claim claims[CLAIMS_MAX];
	uint64_t sum = 0;

	(void)state;
	for (uint32_t i = 0; i < CLAIMS_MAX; i++)
		claims[i] = (struct claim){
			.wanted = UINT32_MAX, .weight = 1000, .sequence = UINT64_MAX - i};
	division_plain(claims, CLAIMS_MAX, UINT32_MAX);
	for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
		sum += claims[i].gets;
		assert_in_range(claims[i].gets, UINT32_MAX / CLAIMS_MAX,
				UINT32_MAX / CLAIMS_MAX + 1);
	}
	assert_int_equal(sum, UINT32_MAX);
}

/* Some claims, few or many, of alike or very different weights, with sequences in no order. */
static uint32_t draw_claims(struct claim *claims, uint32_t most_weight)
{
	uint32_t count = 1 + draw32(draw32(2) ? 6 : 40), most = 1 + draw32(draw32(2) ? 10 : 400);

	for (uint32_t i = 0; i < count; i++)
		claims[i] = (struct claim){.wanted = draw32(most + 1),
					   .weight = 1 + draw32(most_weight),
					   .sequence = 3 * i + 1};
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = draw32(i);
		uint64_t sequence = claims[i - 1].sequence;

		claims[i - 1].sequence = claims[j].sequence;
		claims[j].sequence = sequence;
	}
	return count;
}

/*
 * Whether @a, which has @a_gets, should have the next unit before @b: the one with less of its
 * weight.
 */
static bool is_before(const struct claim *a, uint32_t a_gets, const struct claim *b,
		      uint32_t b_gets)
{
	uint64_t left = (uint64_t)a_gets * b->weight, right = (uint64_t)b_gets * a->weight;

	return left != right ? left < right : a->sequence < b->sequence;
}

/* Unit by unit: each goes to the host that wants more and has the least. For equal weights. */
static void fill(const struct claim *claims, uint32_t count, uint32_t capacity, uint32_t *gets)
{
	memset(gets, 0, count * sizeof(*gets));
	while (capacity--) {
		uint32_t next = count;

		for (uint32_t i = 0; i < count; i++) {
			if (gets[i] < claims[i].wanted &&
			    (next == count ||
			     is_before(&claims[i], gets[i], &claims[next], gets[next])))
				next = i;
		}
		if (next == count)
			return;
		gets[next]++;
	}
}

static void test_equal_weights_share_as_if_filled_unit_by_unit(void **state)
{
	struct claim claims[CLAIMS_MAX];
	uint32_t gets[CLAIMS_MAX];

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint64_t order[CLAIMS_MAX];
		uint32_t count, capacity;

		draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		count = draw_claims(claims, 1);
		capacity = draw32(600);
		fill(claims, count, capacity, gets);
		for (uint32_t i = 0; i < count; i++)
			order[i] = claims[i].sequence;
		division_plain(claims, count, capacity);
		for (uint32_t i = 0; i < count; i++) {
			if (find(claims, count, order[i])->gets != gets[i])
				fail_msg("seed %llu: claim %llu gets %u, not %u",
					 (unsigned long long)seed, (unsigned long long)order[i],
					 find(claims, count, order[i])->gets, gets[i]);
		}
	}
}

/*
 * Of two hosts that get less than they want, or of one that does and any other, none has more than
 * a unit beyond his part: that is max-min.
 */
static void assert_fair(const struct claim *claims, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (claims[i].gets == claims[i].wanted)
			continue;
		for (uint32_t j = 0; j < count; j++) {
			if (claims[j].gets)
				assert_true((uint64_t)(claims[j].gets - 1) * claims[i].weight <
					    (uint64_t)(claims[i].gets + 1) * claims[j].weight);
		}
	}
}

static void test_shares_have_the_right_sum_stay_in_bounds_and_are_fair(void **state)
{
	struct claim claims[CLAIMS_MAX];

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint64_t wanted = 0, sum = 0;
		uint32_t count, capacity;

		draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		count = draw_claims(claims, draw32(2) ? 4 : 1000);
		capacity = draw32(600);
		division_plain(claims, count, capacity);
		for (uint32_t i = 0; i < count; i++) {
			assert_true(claims[i].gets <= claims[i].wanted);
			wanted += claims[i].wanted;
			sum += claims[i].gets;
		}
		assert_int_equal(sum, wanted < capacity ? wanted : capacity);
		assert_fair(claims, count);
	}
}

static void test_the_order_in_which_claims_are_seen_does_not_matter(void **state)
{
	struct claim one[CLAIMS_MAX], other[CLAIMS_MAX];

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint32_t count, capacity;

		draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		count = draw_claims(one, draw32(2) ? 1 : 1000);
		capacity = draw32(600);
		for (uint32_t i = 0; i < count; i++) {
			uint32_t j = draw32(i + 1);

			other[i] = other[j];
			other[j] = one[i];
		}
		division_plain(one, count, capacity);
		division_plain(other, count, capacity);
		for (uint32_t i = 0; i < count; i++)
			assert_int_equal(find(other, count, one[i].sequence)->gets, one[i].gets);
	}
}

/* A line of claims of @wants, in which this host's is the one at @own; beyond them: it has none. */
static struct claim_line line_of(struct claim *claims, uint32_t count, const uint32_t *wants,
				 uint32_t own)
{
	for (uint32_t i = 0; i < count; i++)
		claims[i] = (struct claim){.wanted = wants[i], .weight = 1, .sequence = 10 * i};
	return (struct claim_line){
		.claims = claims, .count = count, .own = own < count ? 10 * own : UINT64_MAX};
}

static struct share weigh(uint32_t capacity, uint32_t count, const uint32_t *wants, uint32_t own,
			  uint32_t wanted)
{
	struct claim claims[CLAIMS_MAX];
	const struct claim_line line = line_of(claims, count, wants, own);

	return share_weigh(&line, wanted, capacity);
}

enum { NO_CLAIM = CLAIMS_MAX };

static void test_claims_of_no_more_than_there_is_contend_for_nothing(void **state)
{
	const struct share share = weigh(20, 3, LIST(10, 7, 3), 0, 10);

	(void)state;
	assert_false(share.contended || share.starving);
	assert_int_equal(share.target, UINT32_MAX);
}

static void test_a_host_alone_in_the_line_contends_with_no_other(void **state)
{
	(void)state;
	assert_false(weigh(20, 1, LIST(21), 0, 21).contended);
	assert_int_equal(weigh(20, 1, LIST(21), 0, 21).target, UINT32_MAX);
}

static void test_claims_of_more_than_there_is_make_a_share(void **state)
{
	struct share share = weigh(20, 3, LIST(10, 8, 3), 0, 10);

	(void)state;
	assert_true(share.contended);
	assert_false(share.starving);
	assert_int_equal(share.target, 9);
	assert_int_equal(weigh(20, 3, LIST(10, 8, 3), 2, 3).target, 3);
}

static void test_a_host_without_a_claim_contends_if_its_wants_are_too_much(void **state)
{
	(void)state;
	assert_true(weigh(20, 2, LIST(8, 8), NO_CLAIM, 5).contended);
	assert_false(weigh(20, 2, LIST(8, 8), NO_CLAIM, 4).contended);
	assert_false(weigh(20, 0, NULL, NO_CLAIM, 30).contended);
	assert_int_equal(weigh(20, 2, LIST(8, 8), NO_CLAIM, 5).target, UINT32_MAX);
}

static void test_a_share_is_less_at_the_end_of_the_line_by_its_remainder(void **state)
{
	struct share share = weigh(5, 3, LIST(9, 9, 9), 0, 9);

	(void)state;
	assert_int_equal(share.target, 2);
	assert_int_equal(share.target_behind, 1);
	share = weigh(5, 3, LIST(9, 9, 9), 2, 9);
	assert_int_equal(share.target, 1);
	assert_int_equal(share.target_behind, 1);
}

static void test_with_more_hosts_than_partitions_some_starve(void **state)
{
	struct share share = weigh(2, 3, LIST(1, 1, 1), 0, 1);

	(void)state;
	assert_true(share.starving);
	assert_int_equal(share.target, 1);
	assert_int_equal(share.target_behind, 0);
	assert_false(weigh(3, 3, LIST(2, 1, 1), 0, 2).starving);
}

static void test_claims_keep_their_places_when_they_are_weighed(void **state)
{
	struct claim claims[CLAIMS_MAX];
	const struct claim_line line = line_of(claims, 3, LIST(9, 9, 9), 1);

	(void)state;
	(void)share_weigh(&line, 9, 5);
	for (uint64_t i = 0; i < 3; i++)
		(void)find(claims, 3, 10 * i);
}

/* With @capacity the host at @own gives way to others as in @expected, by what they want. */
static void assert_way(uint32_t capacity, uint32_t count, const uint32_t *wants, uint32_t own,
		       uint32_t expected_count, const uint32_t *expected)
{
	struct claim claims[CLAIMS_MAX], others[CLAIMS_MAX];
	const struct claim_line line = line_of(claims, count, wants, own);

	assert_int_equal(share_give_way(&line, capacity, others), expected_count);
	for (uint32_t i = 0; i < expected_count; i++)
		assert_int_equal(others[i].wanted, expected[i]);
}

static void test_a_host_gives_way_to_those_that_gain_by_it_first(void **state)
{
	(void)state;
	/* Of 2 partitions the host at 0 and the next have one each; then the last but one does. */
	assert_way(2, 4, LIST(1, 2, 3, 4), 0, 2, LIST(3, 2));
	/* Remainders: the host at 0 has 2, others 2, 1, 1; behind them it has 1. */
	assert_way(6, 4, LIST(11, 12, 13, 14), 0, 3, LIST(13, 14, 12));
}

static void test_a_host_gives_way_to_the_newest_first(void **state)
{
	(void)state;
	assert_way(20, 4, LIST(1, 2, 3, 4), 0, 3, LIST(4, 3, 2));
	assert_way(20, 3, LIST(1, 2, 3), NO_CLAIM, 3, LIST(3, 2, 1));
}

static void test_a_host_does_not_give_way_to_hosts_without_a_share(void **state)
{
	(void)state;
	assert_way(1, 3, LIST(1, 2, 3), NO_CLAIM, 1, LIST(1));
	assert_way(0, 2, LIST(1, 2), 0, 0, NULL);
	assert_way(5, 1, LIST(1), 0, 0, NULL);
}

static void test_hosts_whose_turns_end_at_one_time_know_how_many_are_behind(void **state)
{
	struct claim claims[CLAIMS_MAX];
	struct claim_line line = line_of(claims, 4, LIST(1, 1, 1, 1), 1);

	(void)state;
	assert_int_equal(share_count_behind(&line), 2);
	line.own = UINT64_MAX;
	assert_int_equal(share_count_behind(&line), 0);
	line.own = 30;
	assert_int_equal(share_count_behind(&line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_claims_of_no_more_than_there_is_contend_for_nothing),
		cmocka_unit_test(test_a_host_alone_in_the_line_contends_with_no_other),
		cmocka_unit_test(test_claims_of_more_than_there_is_make_a_share),
		cmocka_unit_test(test_a_host_without_a_claim_contends_if_its_wants_are_too_much),
		cmocka_unit_test(test_a_share_is_less_at_the_end_of_the_line_by_its_remainder),
		cmocka_unit_test(test_with_more_hosts_than_partitions_some_starve),
		cmocka_unit_test(test_claims_keep_their_places_when_they_are_weighed),
		cmocka_unit_test(test_a_host_gives_way_to_those_that_gain_by_it_first),
		cmocka_unit_test(test_a_host_gives_way_to_the_newest_first),
		cmocka_unit_test(test_a_host_does_not_give_way_to_hosts_without_a_share),
		cmocka_unit_test(test_hosts_whose_turns_end_at_one_time_know_how_many_are_behind),
		cmocka_unit_test(test_the_published_cases_come_out_as_published),
		cmocka_unit_test(test_all_get_what_they_want_when_there_is_enough),
		cmocka_unit_test(test_weights_divide_what_is_contended),
		cmocka_unit_test(test_remainders_go_one_by_one_in_order_of_sequence),
		cmocka_unit_test(test_a_part_that_is_whole_has_no_remainder),
		cmocka_unit_test(test_more_hosts_than_partitions_are_served_in_order_of_sequence),
		cmocka_unit_test(test_of_nothing_each_host_gets_nothing),
		cmocka_unit_test(test_the_largest_numbers_do_not_overflow),
		cmocka_unit_test(test_equal_weights_share_as_if_filled_unit_by_unit),
		cmocka_unit_test(test_shares_have_the_right_sum_stay_in_bounds_and_are_fair),
		cmocka_unit_test(test_the_order_in_which_claims_are_seen_does_not_matter),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
