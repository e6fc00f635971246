/* Tests of quotas that services tell one host of a fleet, as the others hear of them. */
#include "tests/core/fleet/scene.h"

#include "core/limiter/learning.h"

#include <stdio.h>

static const char NUMBERED[] = "rate=1000/s\nburst=1000\npartitions.count=1\n";

/* A host that holds all of a limiter, beside another one. */
static struct limiter *open_holding(struct scene *scene)
{
	struct limiter *limiter;

	scene_open(scene);
	limiter = scene_make(scene, "a", NUMBERED);
	(void)scene_try(scene, limiter);
	scene_run(scene, SEC);
	assert_int_equal(scene_try(scene, limiter), 0);
	return limiter;
}

static void hear(struct scene *scene, struct limiter *limiter, const char *text)
{
	char error[ERROR_TEXT];
	struct outcome outcome;

	assert_int_equal(feedback_parse(&text, &outcome, error), 0);
	assert_int_equal(engine_feedback(&scene->engine, limiter, &outcome, 1, scene->now_ns), 0);
}

/* Returns the quotas that hosts were told of the limiter. */
static struct told_quotas told(const struct scene *scene)
{
	const struct node *node = scene_node(scene, "/w/1");
	struct told_quotas quotas;

	assert_int_equal(record_parse_told(node->data, &quotas), 0);
	return quotas;
}

/* Another host tells @text of the limiter. */
static void tell(struct scene *scene, const char *text)
{
	struct told_marks marks = {{0}};
	char mark[TOLD_MARKS_TEXT];

	record_mark_told(&marks, 1);
	record_print_told_marks(&marks, mark);
	scene_set(scene, "/w", mark);
	fleet_changed(scene->fleet, "/w", scene->now_ns);
	scene_set(scene, "/w/1", text);
	fleet_changed(scene->fleet, "/w/1", scene->now_ns);
	/* The host uses the limiter, and looks. */
	scene_run(scene, SEC / 2);
}

static int64_t left_of(const struct limiter *limiter)
{
	const struct allowance *least = limiter->learning
						? allowances_least(&limiter->learning->allowances)
						: NULL;

	return least ? least->left : -1;
}

static void test_a_report_is_told_to_the_other_hosts(void **state)
{
	struct told_quotas quotas;
	struct told_marks marks;
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	hear(&scene, a, "200 remaining=12 reset=41s");
	assert_int_equal(left_of(a), 12);
	scene_run(&scene, SEC);
	record_parse_told_marks(scene_node(&scene, "/w")->data, &marks);
	assert_true(record_is_marked(&marks, a->holding->id));
	quotas = told(&scene);
	assert_int_equal(quotas.count, 1);
	assert_int_equal(quotas.list[0].tokens, 12);
	assert_in_range(quotas.list[0].rest_ms, 40000, 41000);
	assert_string_equal(quotas.list[0].unit, "");
	/* It is told once, and taken out when it is over. */
	scene_run(&scene, 10 * SEC);
	assert_int_equal(scene_node(&scene, "/w/1")->version, 1);
	for (int i = 0; i < 400; i++) {
		(void)scene_try(&scene, a);
		scene_run(&scene, SEC / 10);
	}
	assert_int_equal(told(&scene).count, 0);
	scene_close(&scene);
}

static void test_reports_are_told_once_a_second(void **state)
{
	struct told_quotas quotas;
	struct limiter *a;
	struct scene scene;
	char text[64];

	(void)state;
	a = open_holding(&scene);
	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "200 remaining=%d reset=41s", 500 - i);
		hear(&scene, a, text);
		scene_run(&scene, SEC / 10);
	}
	scene_run(&scene, SEC);
	assert_in_range(scene_node(&scene, "/w/1")->version, 5, 11);
	quotas = told(&scene);
	assert_in_range(quotas.count, 1, ALLOWANCES_MAX);
	for (uint32_t i = 0, last = 0; i < quotas.count; i++) {
		last |= quotas.list[i].tokens == 401;
		assert_true(i + 1 < quotas.count || last);
	}
	scene_close(&scene);
}

static void test_a_report_of_another_host_counts_until_its_end_and_one_per_cent_more(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=1\n0123456789abcdef,2,10000,\n");
	assert_int_equal(left_of(a), 2);
	assert_int_equal(scene_try(&scene, a), 0);
	assert_int_equal(scene_try(&scene, a), 0);
	assert_int_not_equal(scene_try(&scene, a), 0);
	scene_run(&scene, 9590 * MS);
	assert_int_not_equal(scene_try(&scene, a), 0);
	scene_run(&scene, 300 * MS);
	assert_int_equal(scene_try(&scene, a), 0);
	scene_close(&scene);
}

static void test_a_report_that_is_gone_is_over(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=2\n0123456789abcdef,2,100000,\n1123456789abcdef,30,1000000,\n");
	assert_int_equal(left_of(a), 2);
	tell(&scene, "quotas=1\n1123456789abcdef,30,1000000,\n");
	assert_int_equal(left_of(a), 30);
	assert_int_equal(scene_try(&scene, a), 0);
	/* One of no more tokens may stand for it. */
	tell(&scene, "quotas=1\n2123456789abcdef,30,2000000,\n");
	assert_int_equal(left_of(a), 29);
	tell(&scene, "quotas=0\n");
	assert_int_equal(left_of(a), -1);
	scene_close(&scene);
}

static void test_data_that_are_not_understood_say_nothing(void **state)
{
	static const char *const texts[] = {
		"", "quotas=", "quotas=1\n", "quotas=0\nx", "quotas=1\n0123456789abcdef,0,1000,9\n",
	};
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=1\n0123456789abcdef,2,100000,\n");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		tell(&scene, texts[i]);
		assert_int_equal(left_of(a), 2);
	}
	/* And is written over, with all that is known. */
	hear(&scene, a, "200 remaining=1 reset=1h");
	scene_run(&scene, 3 * SEC);
	assert_int_equal(told(&scene).count, 1);
	assert_int_equal(told(&scene).list[0].tokens, 1);
	scene_close(&scene);
}

static void test_a_report_that_was_refused_is_told_again(void **state)
{
	struct told_quotas quotas;
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=1\n0123456789abcdef,20,1000000,\n");
	hear(&scene, a, "200 remaining=30 reset=1h");
	/* Another host is first, and this one has not heard of it yet. */
	scene_set(&scene, "/w/1", "quotas=1\n1123456789abcdef,25,1500000,\n");
	scene_run(&scene, 3 * SEC);
	quotas = told(&scene);
	assert_int_equal(quotas.count, 2);
	assert_true(quotas.list[0].tokens == 25 && quotas.list[1].tokens == 30);
	assert_int_equal(a->learning->allowances.count, 2);
	scene_close(&scene);
}

static void test_max_ends_what_was_told_to_all(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=2\n0123456789abcdef,20,1000000,\n1123456789abcdef,5,1000000,x\n");
	scene_run(&scene, SEC);
	hear(&scene, a, "quota remaining=max");
	assert_int_equal(left_of(a), -1);
	scene_run(&scene, 2 * SEC);
	assert_int_equal(told(&scene).count, 1);
	assert_string_equal(told(&scene).list[0].unit, "x");
	scene_close(&scene);
}

static void test_an_election_takes_nothing_back_that_was_heard(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	hear(&scene, a, "200 remaining=12 reset=1h");
	scene_run(&scene, 2 * SEC);
	assert_int_equal(told(&scene).count, 1);
	scene.epoch++;
	scene_set(&scene, "/w/1", "quotas=0\n");
	scene_run(&scene, 4 * SEC);
	assert_int_equal(left_of(a), 12);
	assert_int_equal(told(&scene).count, 1);
	assert_int_equal(told(&scene).list[0].tokens, 12);
	scene_close(&scene);
}

static void test_of_too_many_reports_those_that_end_one_after_the_other_are_joined(void **state)
{
	uint64_t tokens = 0; /* a bit for each report of so many */
	struct told_quotas quotas;
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	tell(&scene, "quotas=4\n0123456789abcdef,2,10000,\n1123456789abcdef,3,40000,\n"
		     "2123456789abcdef,4,41000,\n3123456789abcdef,5,70000,\n");
	hear(&scene, a, "200 remaining=6 reset=100s");
	scene_run(&scene, 2 * SEC);
	quotas = told(&scene);
	assert_int_equal(quotas.count, ALLOWANCES_MAX);
	for (uint32_t i = 0; i < quotas.count; i++)
		tokens |= UINT64_C(1) << quotas.list[i].tokens;
	assert_int_equal(tokens, 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6);
	scene_close(&scene);
}

static void test_leaves_that_have_to_stay_do(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	a = open_holding(&scene);
	hear(&scene, a, "200 remaining=4 reset=1min");
	for (int i = 0; i < 3; i++)
		assert_int_equal(scene_try(&scene, a), 0);
	/* Nothing is wanted any more: the leaf goes after the reset. */
	scene_run(&scene, 50 * SEC);
	assert_int_equal(a->holding->held, 1);
	scene_run(&scene, 40 * SEC);
	assert_int_equal(a->holding->held, 0);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_report_is_told_to_the_other_hosts),
		cmocka_unit_test(test_reports_are_told_once_a_second),
		cmocka_unit_test(
			test_a_report_of_another_host_counts_until_its_end_and_one_per_cent_more),
		cmocka_unit_test(test_a_report_that_is_gone_is_over),
		cmocka_unit_test(test_data_that_are_not_understood_say_nothing),
		cmocka_unit_test(test_a_report_that_was_refused_is_told_again),
		cmocka_unit_test(test_max_ends_what_was_told_to_all),
		cmocka_unit_test(test_an_election_takes_nothing_back_that_was_heard),
		cmocka_unit_test(
			test_of_too_many_reports_those_that_end_one_after_the_other_are_joined),
		cmocka_unit_test(test_leaves_that_have_to_stay_do),
	};

	return cmocka_run_group_tests_name("fleet_told", tests, NULL, NULL);
}
