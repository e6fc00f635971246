/* Tests that order_check.h sees each breach of the order among siblings, and no fair history. */
#include "tests/sim/invariants/order_check.h"
#include "tests/sim/base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { A, B, C, CHILDREN };

/* A limiter with some children, in each of which a reader waits all the time. */
struct family {
	struct order_check check;
	struct sibling_check children[CHILDREN];
	uint64_t since[CHILDREN]; /* 0: not here */
	bool lacks[CHILDREN];	  /* it has no tokens of its own */
	uint64_t events, now_ns;
	struct fraction sure;
	bool returned; /* tokens came back in this step */
};

static char why[WHY_TEXT];

static struct fraction per_second(uint64_t tokens)
{
	return (struct fraction){.num = tokens, .den = UINT64_C(1000) * MS};
}

static void tune(struct family *family, int child, const struct order_terms *terms)
{
	order_check_tune(&family->children[child], terms, family->now_ns);
}

/* A reader that wants @take begins to wait in @child, which has @terms. */
static void come(struct family *family, int child, uint64_t take, const struct order_terms *terms)
{
	struct sibling_check *sibling = &family->children[child];

	tune(family, child, terms);
	order_check_join(&family->check, sibling, family->now_ns);
	sibling->largest = take;
	family->since[child] = ++family->events;
}

static bool ends_step(struct family *family)
{
	const struct order_rest rest = {
		.now_ns = family->now_ns,
		.event = family->events,
		.sure = family->sure,
		.returned = family->returned,
	};

	for (int i = 0; i < CHILDREN; i++) {
		if (family->since[i] && !family->lacks[i])
			order_check_ready(&family->children[i], family->since[i]);
	}
	family->returned = false;
	return order_check_rest(&family->check, &rest, why);
}

/* Grants @tokens to a reader of @child that has waited since it came. */
static bool grants(struct family *family, int child, uint64_t tokens)
{
	const struct order_grant grant = {
		.tokens = tokens,
		.since = family->since[child],
		.number = ++family->events,
		.now_ns = family->now_ns,
		.returned = family->returned,
	};

	return order_check_grant(&family->check, &family->children[child], &grant, why);
}

/* The same in a step of its own. */
static bool serves(struct family *family, int child, uint64_t tokens)
{
	bool keeps = grants(family, child, tokens);

	return ends_step(family) && keeps;
}

static bool serves_times(struct family *family, int child, int times)
{
	for (int i = 0; i < times; i++) {
		if (!serves(family, child, 1))
			return false;
	}
	return true;
}

/* Each letter of @history is a grant of a token to that child, in a step of its own. */
static bool is_fair(struct family *family, const char *history)
{
	for (; *history; history++) {
		if (!serves(family, *history - 'a', 1))
			return false;
	}
	return true;
}

/* Lets @ms pass without a grant. */
static bool passes(struct family *family, uint64_t ms)
{
	family->now_ns += ms * MS;
	return ends_step(family);
}

static struct order_terms weight(uint64_t weight)
{
	return (struct order_terms){.weight = weight, .min = {0, 1}};
}

static struct order_terms class(uint32_t class)
{
	return (struct order_terms){.weight = 100, .min = {0, 1}, .class = class};
}

static struct order_terms min(uint64_t tokens)
{
	return (struct order_terms){.weight = 100, .min = per_second(tokens)};
}

/* Two children, with waiters of one token each, that were both served once. */
static void open_two(struct family *family, struct order_terms a, struct order_terms b)
{
	memset(family, 0, sizeof(*family));
	come(family, A, 1, &a);
	come(family, B, 1, &b);
	assert_true(ends_step(family));
	assert_true(is_fair(family, "ab"));
}

/* Child a of class 0 and b of class 1. */
static void open_classes(struct family *family, struct order_terms low)
{
	const struct order_terms high = class(1);

	memset(family, 0, sizeof(*family));
	come(family, A, 1, &low);
	come(family, B, 1, &high);
	assert_true(ends_step(family));
}

static void close_family(struct family *family)
{
	order_check_free(&family->check);
}

/* Tells whether two children of these weights may be served like @history. */
static bool is_fair_by_weights(uint64_t a, uint64_t b, const char *history)
{
	struct family family;
	bool fair;

	open_two(&family, weight(a), weight(b));
	fair = is_fair(&family, history);
	close_family(&family);
	return fair;
}

static void test_equal_children_may_be_two_takes_apart_and_no_more(void **state)
{
	(void)state;
	assert_true(is_fair_by_weights(100, 100, "abababab"));
	assert_true(is_fair_by_weights(100, 100, "aabbaabbaabb"));
	assert_false(is_fair_by_weights(100, 100, "aabbbaaabbb"));
	assert_true(is_fair_by_weights(100, 100, "aa"));
	assert_false(is_fair_by_weights(100, 100, "aaa"));
	assert_false(is_fair_by_weights(100, 100, "bbb"));
	/* A window may begin at any time. */
	assert_false(is_fair_by_weights(100, 100, "babababaaa"));
}

static void test_weights_say_how_much_each_gets(void **state)
{
	(void)state;
	assert_true(is_fair_by_weights(100, 300, "bbabbbabbbabbb"));
	assert_true(is_fair_by_weights(100, 300, "bbb"));
	assert_false(is_fair_by_weights(100, 300, "bbbb"));
	assert_false(is_fair_by_weights(100, 300, "abababab"));
	assert_true(is_fair_by_weights(300, 100, "aaab"));
	assert_true(is_fair_by_weights(10000, 1, "aaaaaaaaaaaaaaaaaaaa"));
	assert_false(is_fair_by_weights(10000, 1, "b"));
}

static void test_a_drift_is_found_however_slow_it_is(void **state)
{
	struct family family;
	bool fair = true;
	int rounds = 0;

	(void)state;
	/* 11 to 10: after 20 rounds a is 20 tokens ahead. */
	open_two(&family, weight(100), weight(100));
	for (; rounds < 20 && fair; rounds++)
		fair = is_fair(&family, "abababababababababab") && serves(&family, A, 1);
	assert_false(fair);
	assert_in_range(rounds, 2, 4);
	close_family(&family);
}

static void test_takes_count_by_their_size(void **state)
{
	struct family family;

	(void)state;
	open_two(&family, weight(100), weight(100));
	assert_true(serves(&family, A, 30));
	assert_true(serves_times(&family, B, 30));
	assert_true(serves(&family, A, 30));
	close_family(&family);

	open_two(&family, weight(100), weight(100));
	assert_true(serves(&family, A, 30));
	/* Take for take is no share by tokens: 60 in a row, and one on each side, are too many. */
	assert_true(serves(&family, B, 1));
	assert_false(serves(&family, A, 30));
	close_family(&family);
}

static void test_a_large_take_is_paid_for_once(void **state)
{
	struct family family;

	(void)state;
	open_two(&family, weight(100), weight(100));
	assert_true(serves(&family, A, 30));
	assert_true(serves_times(&family, B, 31));
	assert_false(serves_times(&family, B, 2));
	close_family(&family);
}

static void test_children_that_are_not_ready_all_the_time_save_nothing_up(void **state)
{
	struct family family;

	(void)state;
	open_two(&family, weight(100), weight(100));
	family.lacks[B] = true;
	assert_true(is_fair(&family, "aaaaaaaaaaaaaaaa"));
	family.lacks[B] = false;
	assert_true(ends_step(&family));
	/* From now on they are equal again. */
	assert_true(is_fair(&family, "bb"));
	assert_false(is_fair(&family, "b"));
	close_family(&family);
}

static void test_a_child_whose_reader_has_just_come_was_not_ready_before(void **state)
{
	struct family family;
	const struct order_terms equal = weight(100);

	(void)state;
	open_two(&family, weight(100), weight(100));
	order_check_leave(&family.children[B]);
	family.since[B] = 0;
	assert_true(is_fair(&family, "aaaaaa"));
	assert_true(grants(&family, A, 6));
	come(&family, B, 1, &equal);
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "bababa"));
	close_family(&family);
}

static void test_children_of_two_classes_share_nothing_by_weight(void **state)
{
	struct family family;

	(void)state;
	open_classes(&family, class(0));
	family.lacks[B] = true;
	assert_true(is_fair(&family, "aaaaaaaaaaaaaaaa"));
	family.lacks[B] = false;
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "bbbbbbbbbbbbbbbb"));
	close_family(&family);
}

static void test_a_newcomer_that_is_never_served_is_found(void **state)
{
	struct family family;
	const struct order_terms equal = weight(100);

	(void)state;
	open_two(&family, weight(100), weight(100));
	come(&family, C, 1, &equal);
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "ab"));
	assert_false(is_fair(&family, "abab"));
	close_family(&family);
}

static void test_new_weights_count_for_the_time_after_them(void **state)
{
	struct family family;
	const struct order_terms heavy = weight(300), equal = weight(100);

	(void)state;
	open_two(&family, weight(100), weight(100));
	tune(&family, B, &heavy);
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "babbbabbbabbb"));
	assert_false(is_fair(&family, "bababa"));
	close_family(&family);
	/* To write what was there changes nothing. */
	open_two(&family, weight(100), weight(100));
	assert_true(is_fair(&family, "aa"));
	tune(&family, B, &equal);
	assert_false(is_fair(&family, "a"));
	close_family(&family);
}

static void test_each_two_of_three_children_are_compared(void **state)
{
	struct family family;
	const struct order_terms equal = weight(100);

	(void)state;
	open_two(&family, weight(100), weight(100));
	come(&family, C, 1, &equal);
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "cabcabcab"));
	assert_false(is_fair(&family, "ababab"));
	close_family(&family);
}

static void test_a_lower_class_that_is_served_first_is_found(void **state)
{
	struct family family;

	(void)state;
	open_classes(&family, class(0));
	assert_true(is_fair(&family, "bbbbbbbb"));
	assert_false(is_fair(&family, "a"));
	assert_non_null(strstr(why, "class 0"));
	close_family(&family);
}

static void test_a_lower_class_that_is_served_first_within_a_step_is_found(void **state)
{
	struct family family;

	(void)state;
	/* Afterwards b may have no tokens left: it was ready when a was served. */
	open_classes(&family, class(0));
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, A, 1));
	assert_false(grants(&family, B, 1) && grants(&family, B, 1));
	close_family(&family);
	open_classes(&family, class(0));
	assert_true(grants(&family, A, 1));
	assert_false(grants(&family, B, 1));
	close_family(&family);
	/* Where tokens came back b was ready if it was before, else that is not known. */
	open_classes(&family, class(0));
	family.returned = true;
	assert_true(grants(&family, A, 1));
	assert_false(grants(&family, B, 1));
	close_family(&family);
	open_classes(&family, class(0));
	family.lacks[B] = true;
	assert_true(ends_step(&family));
	family.returned = true;
	assert_true(grants(&family, A, 1));
	assert_true(grants(&family, B, 1));
	close_family(&family);
}

static void test_a_child_that_was_ready_all_along_is_passed_where_something_came_back(void **state)
{
	struct family family;

	(void)state;
	/* As with slots, that are granted in the steps in which others are closed. */
	open_classes(&family, class(0));
	assert_true(grants(&family, B, 1));
	assert_true(ends_step(&family));
	family.returned = true;
	assert_true(grants(&family, A, 1));
	assert_false(ends_step(&family));
	close_family(&family);
	/* It has had some since: it may have had none in between. */
	open_classes(&family, class(0));
	family.returned = true;
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, A, 1));
	assert_true(ends_step(&family));
	close_family(&family);
}

static void test_a_child_whose_reader_gave_up_is_passed_in_that_step(void **state)
{
	const struct order_check none = {0};
	struct family family;

	(void)state;
	/* Others wait in it, and lack tokens of its own. */
	open_two(&family, weight(100), weight(100));
	order_check_lose(&none, &family.children[A]);
	family.lacks[A] = true;
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, B, 1));
	assert_true(ends_step(&family));
	close_family(&family);
	/* Or they are ready. */
	open_two(&family, weight(100), weight(100));
	order_check_lose(&none, &family.children[A]);
	assert_true(grants(&family, B, 3));
	assert_true(grants(&family, B, 3));
	assert_true(grants(&family, B, 3));
	assert_false(ends_step(&family));
	close_family(&family);
}

static void test_a_child_one_of_whose_readers_gave_up_is_not_passed(void **state)
{
	struct sibling_check below[2] = {{.ready = true}, {.ready = true}};
	const struct order_check two = {.siblings = {&below[0], &below[1]}, .slots = 2};
	struct family family;

	(void)state;
	open_two(&family, weight(100), weight(100));
	below[0].altered = true;
	order_check_lose(&two, &family.children[A]);
	family.lacks[A] = true;
	assert_true(grants(&family, B, 1));
	assert_false(grants(&family, B, 1) && grants(&family, B, 1));
	close_family(&family);
	open_two(&family, weight(100), weight(100));
	below[1].altered = true;
	order_check_lose(&two, &family.children[A]);
	family.lacks[A] = true;
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, B, 1));
	assert_true(grants(&family, B, 1));
	assert_true(ends_step(&family));
	close_family(&family);
}

static void test_a_lower_class_is_served_while_the_higher_one_has_no_tokens(void **state)
{
	struct family family;

	(void)state;
	open_classes(&family, class(0));
	family.lacks[B] = true;
	assert_true(ends_step(&family));
	assert_true(is_fair(&family, "aaaa"));
	close_family(&family);
}

static void test_a_higher_class_that_comes_after_a_grant_is_not_held_against_it(void **state)
{
	struct family family;
	const struct order_terms low = class(0), high = class(1);

	(void)state;
	memset(&family, 0, sizeof(family));
	come(&family, A, 1, &low);
	assert_true(ends_step(&family));
	/* All in one step: a is served, then b comes. */
	assert_true(grants(&family, A, 1));
	come(&family, B, 1, &high);
	assert_true(ends_step(&family));
	/* And then a is served again. */
	assert_false(is_fair(&family, "a"));
	close_family(&family);
}

static void test_a_higher_class_that_came_in_a_step_before_the_grant_is_passed(void **state)
{
	struct family family;
	const struct order_terms low = class(0), high = class(1);

	(void)state;
	memset(&family, 0, sizeof(family));
	come(&family, A, 1, &low);
	assert_true(ends_step(&family));
	come(&family, B, 1, &high);
	/* Whether b is ready is known at the end of the step. */
	assert_true(grants(&family, A, 1));
	assert_false(ends_step(&family));
	close_family(&family);
}

static void test_where_tokens_came_back_readiness_in_that_step_is_unknown(void **state)
{
	struct family family;
	const struct order_terms low = class(0), high = class(1);

	(void)state;
	memset(&family, 0, sizeof(family));
	come(&family, A, 1, &low);
	assert_true(ends_step(&family));
	come(&family, B, 1, &high);
	family.returned = true;
	assert_true(grants(&family, A, 1));
	assert_true(ends_step(&family));
	/* In the next one it is known. */
	assert_false(is_fair(&family, "a"));
	close_family(&family);
}

static void test_a_min_is_granted_before_a_higher_class_and_no_more(void **state)
{
	struct family family;

	(void)state;
	open_classes(&family, min(1));
	/* A take may be due from the beginning. */
	assert_true(is_fair(&family, "a"));
	for (int i = 0; i < 10; i++) {
		assert_true(passes(&family, 1000));
		assert_true(is_fair(&family, "ba"));
	}
	assert_false(is_fair(&family, "aa"));
	close_family(&family);
}

static void test_a_min_saves_up_a_second_and_a_take(void **state)
{
	struct family family;

	(void)state;
	open_classes(&family, min(5));
	assert_true(passes(&family, 100000));
	/* 5 of a second, one take, and the one that is not yet over when it begins. */
	assert_true(is_fair(&family, "aaaaaaa"));
	assert_false(is_fair(&family, "a"));
	close_family(&family);
}

/* Child a has a min of 10/s, b takes @take at a time, and the limiter is sure of 100/s. */
static void open_min(struct family *family, uint64_t take)
{
	const struct order_terms ten = min(10), none = weight(100);

	memset(family, 0, sizeof(*family));
	family->sure = per_second(100);
	come(family, A, 1, &ten);
	come(family, B, take, &none);
	assert_true(ends_step(family));
}

static void test_a_min_that_is_not_granted_is_found(void **state)
{
	struct family family;

	(void)state;
	/* A take of each may be owed: so two tokens, which have come after 200 ms. */
	open_min(&family, 1);
	assert_true(passes(&family, 200));
	assert_false(passes(&family, 1));
	assert_non_null(strstr(why, "minimum"));
	close_family(&family);
	open_min(&family, 30);
	assert_true(passes(&family, 3100));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_a_min_may_be_more_than_the_part_and_nothing_beside_it(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	/* A take by weight, and one that is due. */
	assert_true(is_fair(&family, "aa"));
	assert_false(is_fair(&family, "a"));
	close_family(&family);
	open_min(&family, 1);
	for (int i = 0; i < 100; i++)
		assert_true(passes(&family, 100) && is_fair(&family, "a"));
	assert_false(is_fair(&family, "aaa"));
	close_family(&family);
}

static void test_a_child_that_lived_by_its_min_is_behind_by_a_second_and_two_takes(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	for (int i = 0; i < 100; i++)
		assert_true(passes(&family, 100) && is_fair(&family, "a"));
	/* 10 and 2, and 2 by weight. */
	assert_true(serves_times(&family, B, 14));
	assert_false(serves_times(&family, B, 1));
	close_family(&family);
}

/* Returns how often in a row a child gets a token by weight, after it lived by @min tokens. */
static int count_after_min(struct fraction min)
{
	const struct order_terms heavy = {.weight = 300, .min = min}, high = class(1);
	struct family family;
	int tokens = 0;

	open_two(&family, heavy, weight(100));
	come(&family, C, 1, &high);
	assert_true(ends_step(&family));
	for (int i = 0; i < 20; i++)
		assert_true(passes(&family, min.den / MS) && is_fair(&family, "a"));
	family.lacks[C] = true;
	assert_true(ends_step(&family));
	while (is_fair(&family, "a"))
		tokens++;
	close_family(&family);
	return tokens;
}

static void test_a_child_that_lived_by_a_small_min_is_behind_by_no_more_than_that(void **state)
{
	(void)state;
	/* It is behind by 3, where 4 would be the bound by weight; and one is due. */
	assert_int_equal(count_after_min(per_second(1)), 1 + 1);
	/* By 2: a second of that min is no whole token. */
	assert_int_equal(count_after_min((struct fraction){1, 2000 * MS}), 1 + 2);
}

static void test_a_min_counts_towards_the_part_in_each_release_of_tokens(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	family.sure = (struct fraction){0, 1};
	assert_true(ends_step(&family));
	for (int i = 0; i < 20; i++) {
		assert_true(passes(&family, 1000));
		for (int n = 0; n < 20; n++)
			assert_true(grants(&family, n < 10 ? A : B, 1));
		assert_true(ends_step(&family));
	}
	close_family(&family);
}

static void test_half_a_min_is_found(void **state)
{
	struct family family;
	bool fair = true;
	int tokens = 0;

	(void)state;
	open_min(&family, 1);
	for (; tokens < 100 && fair; tokens++)
		fair = passes(&family, 200) && serves(&family, A, 1);
	assert_false(fair);
	assert_in_range(tokens, 2, 4);
	close_family(&family);
}

static void test_a_large_take_is_its_min_for_as_long_as_that_takes(void **state)
{
	struct family family;

	(void)state;
	/* 30 tokens are 3 s, and then the two takes of above. */
	open_min(&family, 1);
	assert_true(serves(&family, A, 30));
	assert_true(passes(&family, 1000));
	assert_true(passes(&family, 2200));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_takes_of_siblings_that_have_a_min_may_all_be_due_before(void **state)
{
	struct family family;
	const struct order_terms ten = min(10), none = weight(100);

	(void)state;
	/* Of those without a min one take may be before it, and no more. */
	open_min(&family, 3);
	come(&family, C, 5, &none);
	assert_true(passes(&family, 1));
	assert_true(passes(&family, 599));
	assert_false(passes(&family, 1));
	close_family(&family);
	open_min(&family, 3);
	come(&family, C, 5, &ten);
	assert_true(passes(&family, 1));
	assert_true(passes(&family, 899));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_a_min_that_is_granted_in_time_is_fair(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	for (int i = 0; i < 1000; i++)
		assert_true(passes(&family, 100) && is_fair(&family, "ab"));
	close_family(&family);
}

static void test_tokens_beyond_a_min_are_not_held_against_a_child(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	/* But for the last take, which counts for the time after it. */
	family.lacks[B] = true;
	assert_true(is_fair(&family, "aaaaaaaaaaaaaaaaaaaa"));
	family.lacks[B] = false;
	assert_true(passes(&family, 300));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_a_child_that_lacks_tokens_of_its_own_is_owed_no_min(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	family.lacks[A] = true;
	assert_true(passes(&family, 1));
	assert_true(passes(&family, 10000));
	family.lacks[A] = false;
	assert_true(passes(&family, 1));
	assert_true(passes(&family, 200));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_minima_above_the_sure_rate_are_no_promise(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	family.sure = per_second(9);
	assert_true(passes(&family, 1));
	assert_true(passes(&family, 100000));
	/* Sure again: when a second of the min and a take are made up for, at 90/s. */
	family.sure = per_second(100);
	assert_true(passes(&family, 120));
	assert_true(passes(&family, 3));
	assert_true(passes(&family, 200));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_a_charge_ends_what_is_owed(void **state)
{
	struct family family;

	(void)state;
	open_min(&family, 1);
	assert_true(passes(&family, 200));
	order_check_charge(&family.check);
	assert_true(passes(&family, 200));
	assert_false(passes(&family, 1));
	close_family(&family);
}

static void test_more_siblings_than_are_looked_at_are_left_out(void **state)
{
	static struct sibling_check many[ORDER_SIBLINGS_MAX + 1];
	struct order_check check = {0};
	const struct order_terms terms = weight(100);

	(void)state;
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i <= ORDER_SIBLINGS_MAX; i++) {
		order_check_tune(&many[i], &terms, 0);
		order_check_join(&check, &many[i], 0);
	}
	assert_non_null(many[ORDER_SIBLINGS_MAX - 1].check);
	assert_null(many[ORDER_SIBLINGS_MAX].check);
	/* One that has left makes room for the next. */
	order_check_leave(&many[7]);
	order_check_join(&check, &many[ORDER_SIBLINGS_MAX], 0);
	assert_non_null(many[ORDER_SIBLINGS_MAX].check);
	assert_int_equal(many[ORDER_SIBLINGS_MAX].slot, 7);
	order_check_free(&check);
}

enum { FLOWS = CHILDREN, LOGS = 300, GRANTS = 200 };

/* Start-time fair queueing as it was published, in exact fractions of 1/6 of a token. */
struct published {
	uint64_t start[FLOWS], finish[FLOWS], take[FLOWS], parts[FLOWS], time;
};

static void ask(struct published *flows, int i, struct random *random)
{
	flows->take[i] = 1 + random_below(random, 8);
	flows->start[i] = flows->finish[i] > flows->time ? flows->finish[i] : flows->time;
	flows->finish[i] = flows->start[i] + flows->take[i] * (6 / flows->parts[i]);
}

static int first_flow(const struct published *flows)
{
	int first = 0;

	for (int i = 1; i < FLOWS; i++) {
		if (flows->start[i] < flows->start[first])
			first = i;
	}
	return first;
}

/* Serves @times takes by the publication, each flow being ready all the time. */
static bool follows(struct family *family, struct published *flows, int times,
		    struct random *random)
{
	for (int n = 0; n < times; n++) {
		int i = first_flow(flows);

		flows->time = flows->start[i];
		if (!serves(family, i, flows->take[i]))
			return false;
		ask(flows, i, random);
	}
	return true;
}

static void open_published(struct family *family, struct published *flows, struct random *random)
{
	memset(family, 0, sizeof(*family));
	*flows = (struct published){0};
	for (int i = 0; i < FLOWS; i++) {
		struct order_terms terms;

		flows->parts[i] = 1 + random_below(random, 3);
		terms = weight(flows->parts[i] * 100);
		come(family, i, 8, &terms);
		ask(flows, i, random);
	}
	assert_true(ends_step(family));
}

static void test_random_histories_of_the_published_queue_are_fair(void **state)
{
	struct random random = {7};

	(void)state;
	for (int n = 0; n < LOGS; n++) {
		struct published flows;
		struct family family;

		open_published(&family, &flows, &random);
		assert_true(follows(&family, &flows, GRANTS, &random));
		close_family(&family);
	}
}

static void test_a_flow_of_the_published_queue_that_is_left_out_is_found(void **state)
{
	struct random random = {8};

	(void)state;
	for (int n = 0; n < LOGS; n++) {
		struct published flows;
		struct family family;

		open_published(&family, &flows, &random);
		assert_true(follows(&family, &flows, GRANTS, &random));
		flows.start[C] = UINT64_MAX;
		assert_false(follows(&family, &flows, GRANTS, &random));
		close_family(&family);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_children_may_be_two_takes_apart_and_no_more),
		cmocka_unit_test(test_weights_say_how_much_each_gets),
		cmocka_unit_test(test_a_drift_is_found_however_slow_it_is),
		cmocka_unit_test(test_takes_count_by_their_size),
		cmocka_unit_test(test_a_large_take_is_paid_for_once),
		cmocka_unit_test(test_children_that_are_not_ready_all_the_time_save_nothing_up),
		cmocka_unit_test(test_a_child_whose_reader_has_just_come_was_not_ready_before),
		cmocka_unit_test(test_children_of_two_classes_share_nothing_by_weight),
		cmocka_unit_test(test_a_newcomer_that_is_never_served_is_found),
		cmocka_unit_test(test_new_weights_count_for_the_time_after_them),
		cmocka_unit_test(test_each_two_of_three_children_are_compared),
		cmocka_unit_test(test_a_lower_class_that_is_served_first_is_found),
		cmocka_unit_test(test_a_lower_class_that_is_served_first_within_a_step_is_found),
		cmocka_unit_test(
			test_a_child_that_was_ready_all_along_is_passed_where_something_came_back),
		cmocka_unit_test(test_a_child_whose_reader_gave_up_is_passed_in_that_step),
		cmocka_unit_test(test_a_child_one_of_whose_readers_gave_up_is_not_passed),
		cmocka_unit_test(test_a_lower_class_is_served_while_the_higher_one_has_no_tokens),
		cmocka_unit_test(
			test_a_higher_class_that_comes_after_a_grant_is_not_held_against_it),
		cmocka_unit_test(
			test_a_higher_class_that_came_in_a_step_before_the_grant_is_passed),
		cmocka_unit_test(test_where_tokens_came_back_readiness_in_that_step_is_unknown),
		cmocka_unit_test(test_a_min_is_granted_before_a_higher_class_and_no_more),
		cmocka_unit_test(test_a_min_saves_up_a_second_and_a_take),
		cmocka_unit_test(test_a_min_that_is_not_granted_is_found),
		cmocka_unit_test(test_a_min_may_be_more_than_the_part_and_nothing_beside_it),
		cmocka_unit_test(
			test_a_child_that_lived_by_its_min_is_behind_by_a_second_and_two_takes),
		cmocka_unit_test(
			test_a_child_that_lived_by_a_small_min_is_behind_by_no_more_than_that),
		cmocka_unit_test(test_a_min_counts_towards_the_part_in_each_release_of_tokens),
		cmocka_unit_test(test_half_a_min_is_found),
		cmocka_unit_test(test_a_large_take_is_its_min_for_as_long_as_that_takes),
		cmocka_unit_test(test_takes_of_siblings_that_have_a_min_may_all_be_due_before),
		cmocka_unit_test(test_a_min_that_is_granted_in_time_is_fair),
		cmocka_unit_test(test_tokens_beyond_a_min_are_not_held_against_a_child),
		cmocka_unit_test(test_a_child_that_lacks_tokens_of_its_own_is_owed_no_min),
		cmocka_unit_test(test_minima_above_the_sure_rate_are_no_promise),
		cmocka_unit_test(test_a_charge_ends_what_is_owed),
		cmocka_unit_test(test_more_siblings_than_are_looked_at_are_left_out),
		cmocka_unit_test(test_random_histories_of_the_published_queue_are_fair),
		cmocka_unit_test(test_a_flow_of_the_published_queue_that_is_left_out_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
