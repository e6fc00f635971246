/* Tests of key_portion and keys_missed: which keys a host leases, and how much of each. */
#include "core/fleet/key_portion.h"
#include "core/fleet/keys_missed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { OTHERS_MAX = 8 };

/* A key of 100/s whose leaves have a token a second each; nothing of it is leased. */
struct scene {
	struct claim others[OTHERS_MAX + 1];
	struct key_facts facts;
	struct key_decision decision;
};

static void begin(struct scene *scene)
{
	*scene = (struct scene){.facts = {.leaf = 1, .free = KEY_LEAVES, .is_first = true}};
	scene->facts.others = scene->others;
}

/* Another host has @leaves, or claims them. */
static void add_other(struct scene *scene, uint32_t leaves, bool claims)
{
	struct key_facts *facts = &scene->facts;

	facts->others[facts->other_count] = (struct claim){
		.wanted = leaves,
		.weight = 1,
		.sequence = facts->other_count,
	};
	facts->other_count++;
	facts->claims = facts->claims || claims;
}

static void decide(struct scene *scene)
{
	key_portion_decide(&scene->facts, &scene->decision);
}

static void test_a_host_that_misses_tokens_takes_all_that_no_host_has(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.missed = true;
	decide(&scene);
	assert_int_equal(scene.decision.takes, KEY_LEAVES);
	assert_int_equal(scene.decision.claim, 0);
}

static void test_a_host_claims_its_part_of_a_key_that_another_has(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.missed = true;
	scene.facts.free = 0;
	add_other(&scene, KEY_LEAVES, false);
	decide(&scene);
	assert_int_equal(scene.decision.takes, 0);
	assert_int_equal(scene.decision.claim, KEY_LEAVES);
}

static void test_a_holder_gives_a_claimant_what_it_does_not_need(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.kept = KEY_LEAVES;
	scene.facts.free = 0;
	scene.facts.asked = 20;
	add_other(&scene, KEY_LEAVES, true);
	decide(&scene);
	/* It keeps what was asked for and a quarter. */
	assert_in_range(scene.decision.gives, KEY_LEAVES - 26, KEY_LEAVES - 25);
}

static void test_two_hosts_that_miss_tokens_have_half_each(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.kept = KEY_LEAVES;
	scene.facts.free = 0;
	scene.facts.missed = true;
	add_other(&scene, KEY_LEAVES, true);
	decide(&scene);
	assert_int_equal(scene.decision.gives, KEY_LEAVES / 2);
}

static void test_leaves_that_are_not_needed_stay_while_no_host_claims_any(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.kept = KEY_LEAVES;
	scene.facts.free = 0;
	scene.facts.asked = 1;
	decide(&scene);
	assert_int_equal(scene.decision.gives, 0);
}

static void test_a_few_leaves_are_not_worth_a_transaction(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.kept = 20;
	scene.facts.asked = 17;
	decide(&scene);
	assert_int_equal(scene.decision.takes, 0);
	scene.facts.asked = 30;
	decide(&scene);
	assert_int_equal(scene.decision.takes, 18);
}

static void test_an_idle_host_takes_the_rest_and_ends_the_key(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.idle = true;
	scene.facts.kept = 30;
	scene.facts.free = 60;
	decide(&scene);
	assert_int_equal(scene.decision.takes, 60);
	assert_false(scene.decision.ends);
	scene.facts.kept = KEY_LEAVES;
	scene.facts.free = 0;
	decide(&scene);
	assert_true(scene.decision.ends);
}

static void test_an_idle_host_without_leaves_takes_none(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.idle = true;
	decide(&scene);
	assert_int_equal(scene.decision.takes, 0);
	assert_false(scene.decision.ends);
}

static void test_an_idle_host_takes_a_stray_that_no_other_host_has(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.idle = true;
	scene.facts.stray = true;
	decide(&scene);
	assert_int_equal(scene.decision.takes, KEY_LEAVES);
	scene.facts.free = KEY_LEAVES - 30;
	add_other(&scene, 30, false);
	decide(&scene);
	assert_int_equal(scene.decision.takes, 0);
}

static void test_of_idle_hosts_all_but_the_first_give_back(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	scene.facts.idle = true;
	scene.facts.kept = 30;
	scene.facts.free = 0;
	add_other(&scene, 60, false);
	decide(&scene);
	assert_int_equal(scene.decision.gives, 0);
	scene.facts.is_first = false;
	decide(&scene);
	assert_int_equal(scene.decision.gives, 30);
	assert_false(scene.decision.ends);
}

static void test_the_key_that_missed_most_is_next(void **state)
{
	struct keys_missed missed = {0};
	struct key_missed most;

	(void)state;
	assert_false(keys_missed_take(&missed, &most));
	for (uint64_t key = 1; key <= 100; key++)
		keys_missed_note(&missed, key, 7);
	for (int i = 0; i < 5; i++)
		keys_missed_note(&missed, 42, 7);
	assert_true(keys_missed_take(&missed, &most));
	assert_int_equal(most.key, 42);
	assert_int_equal(most.limiter, 7);
	for (int i = 0; i < 99; i++)
		assert_true(keys_missed_take(&missed, &most));
	assert_false(keys_missed_take(&missed, &most));
}

static void test_a_million_keys_do_not_push_out_one_that_misses_often(void **state)
{
	static struct keys_missed missed;
	struct key_missed most;

	(void)state;
	for (uint64_t key = 100; key < 1000000; key++) {
		keys_missed_note(&missed, key, 1);
		/* As often as all that share its place, and once more. */
		if (key % (KEYS_MISSED_MAX / KEYS_MISSED_WAYS / 2) == 0)
			keys_missed_note(&missed, 3, 1);
	}
	assert_in_range(missed.count, 1, KEYS_MISSED_MAX);
	assert_true(keys_missed_take(&missed, &most));
	assert_int_equal(most.key, 3);
}

static void test_a_miss_long_ago_is_forgotten(void **state)
{
	struct keys_missed missed = {0};
	struct key_missed most;

	(void)state;
	keys_missed_note(&missed, 1, 1);
	keys_missed_note(&missed, 2, 1);
	keys_missed_note(&missed, 2, 1);
	keys_missed_age(&missed);
	assert_int_equal(missed.count, 1);
	assert_true(keys_missed_take(&missed, &most));
	assert_int_equal(most.key, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_host_that_misses_tokens_takes_all_that_no_host_has),
		cmocka_unit_test(test_a_host_claims_its_part_of_a_key_that_another_has),
		cmocka_unit_test(test_a_holder_gives_a_claimant_what_it_does_not_need),
		cmocka_unit_test(test_two_hosts_that_miss_tokens_have_half_each),
		cmocka_unit_test(test_leaves_that_are_not_needed_stay_while_no_host_claims_any),
		cmocka_unit_test(test_a_few_leaves_are_not_worth_a_transaction),
		cmocka_unit_test(test_an_idle_host_takes_the_rest_and_ends_the_key),
		cmocka_unit_test(test_an_idle_host_without_leaves_takes_none),
		cmocka_unit_test(test_an_idle_host_takes_a_stray_that_no_other_host_has),
		cmocka_unit_test(test_of_idle_hosts_all_but_the_first_give_back),
		cmocka_unit_test(test_the_key_that_missed_most_is_next),
		cmocka_unit_test(test_a_million_keys_do_not_push_out_one_that_misses_often),
		cmocka_unit_test(test_a_miss_long_ago_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
