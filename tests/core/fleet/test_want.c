/* Tests of want: floods are told from readers that come now and then. */
#include "core/fleet/want.h"
#include "tests/core/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SECOND = 10 }; /* periods */

/* A child, and what it was counted until now. */
struct scene {
	struct want want;
	struct want_facts facts;
};

static void begin(struct scene *scene)
{
	*scene = (struct scene){.facts.periods = 1};
	want_begin(&scene->want, &scene->facts);
}

/* Ends @periods, in each of which it is granted @granted, and @waiting tokens wait then. */
static void pass(struct scene *scene, uint32_t periods, uint64_t granted, uint64_t waiting)
{
	scene->facts.waiting = waiting;
	scene->facts.is_forward = waiting;
	for (uint32_t i = 0; i < periods; i++) {
		scene->facts.tokens += granted;
		want_note(&scene->want, &scene->facts);
		want_note_left(&scene->want, 0);
	}
}

/* Likewise, beside lower classes that are granted @left in each. */
static void pass_beside(struct scene *scene, uint32_t periods, uint64_t granted, double left)
{
	for (uint32_t i = 0; i < periods; i++) {
		scene->facts.tokens += granted;
		scene->facts.waiting = 1;
		scene->facts.is_forward = true;
		want_note(&scene->want, &scene->facts);
		want_note_left(&scene->want, left);
	}
}

/* A reader comes every two seconds, and is served at once. */
static void come_now_and_then(struct scene *scene, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++) {
		pass(scene, 1, 1, 0);
		pass(scene, 2 * SECOND - 1, 0, 0);
	}
}

/* A reader waits for so long that it shows hunger, and is served. */
static void be_stilled(struct scene *scene)
{
	pass(scene, SECOND, 0, 1);
	assert_true(want_is_hungry(&scene->want));
	pass(scene, 1, 1, 0);
	pass(scene, SECOND, 0, 0);
	assert_false(want_is_hungry(&scene->want));
}

static void test_waiting_without_a_break_is_hunger_after_half_a_second(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	pass(&scene, 4, 1, 20);
	assert_false(want_is_hungry(&scene.want));
	pass(&scene, 1, 1, 20);
	assert_true(want_is_hungry(&scene.want));
}

static void test_a_child_whose_hunger_was_stilled_wants_what_it_asks_for(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	be_stilled(&scene);
	for (int i = 0; i < 5; i++) {
		come_now_and_then(&scene, 3);
		pass(&scene, SECOND, 0, 1);
		assert_false(want_is_hungry(&scene.want));
		pass(&scene, 1, 1, 0);
		assert_true(fabs(want_asked(&scene.want) - 0.05) < 0.01);
	}
}

static void test_a_backlog_counts_after_two_seconds(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	be_stilled(&scene);
	pass(&scene, 2 * SECOND - 1, 0, 2);
	assert_true(want_asked(&scene.want) < 0.1);
	pass(&scene, 1, 0, 2);
	/* Two tokens in two seconds. */
	assert_true(want_asked(&scene.want) > 0.1 + 0.05);
	assert_true(want_asked(&scene.want) < 0.1 + 0.1);
	pass(&scene, 1, 2, 0);
	assert_true(want_asked(&scene.want) < 0.1);
}

static void test_a_light_child_that_waits_for_ten_seconds_is_hungry(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	be_stilled(&scene);
	pass(&scene, 10 * SECOND - 1, 0, 1);
	assert_false(want_is_hungry(&scene.want));
	pass(&scene, 1, 0, 1);
	assert_true(want_is_hungry(&scene.want));
}

static void test_a_light_child_that_is_flooded_is_hungry_at_once(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	be_stilled(&scene);
	pass(&scene, 5, 1, 30);
	assert_true(want_is_hungry(&scene.want));
}

static void test_a_child_beside_a_lower_class_is_not_hungry(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	for (int i = 0; i < 100; i++) {
		pass_beside(&scene, 1, 2, 1);
		assert_false(want_is_hungry(&scene.want));
	}
}

/* Such a child had all it asked for, until there was no more. */
static void test_it_is_hungry_a_second_after_the_lower_class_has_none(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	pass_beside(&scene, 100, 2, 1);
	pass_beside(&scene, SECOND, 2, 0);
	assert_true(want_is_hungry(&scene.want));
}

static void test_hunger_that_leaves_some_to_a_lower_class_was_stilled(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	pass(&scene, SECOND, 0, 1);
	assert_true(want_is_hungry(&scene.want));
	pass_beside(&scene, 5, 0, 1);
	assert_false(want_is_hungry(&scene.want));
	pass(&scene, 5 * SECOND, 0, 1);
	assert_false(want_is_hungry(&scene.want));
}

/* Readers that come at random, one in a second on average, for an hour. */
static void test_chance_is_no_change(void **state)
{
	struct scene scene;

	(void)state;
	draw_state = 1;
	begin(&scene);
	for (int i = 0; i < 3600 * SECOND; i++) {
		pass(&scene, 1, !draw(SECOND), 0);
		if (i > 60 * SECOND && i % SECOND == 0)
			assert_true(fabs(want_asked(&scene.want) - 0.1) < 0.09);
	}
}

static void test_slack_goes_with_the_time_in_which_readers_wait(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	come_now_and_then(&scene, 15);
	assert_true(want_slack(&scene.want) == 0);
	for (int i = 0; i < 30; i++) {
		pass(&scene, 2, 0, 1);
		pass(&scene, 1, 1, 0);
		pass(&scene, 2 * SECOND - 3, 0, 0);
	}
	/* They wait for a tenth of it. */
	assert_true(fabs(want_slack(&scene.want) / want_asked(&scene.want) - 0.3) < 0.1);
	for (int i = 0; i < 30; i++) {
		pass(&scene, SECOND, 0, 1);
		pass(&scene, 1, 1, 0);
		pass(&scene, SECOND - 1, 0, 0);
	}
	assert_true(want_slack(&scene.want) <= want_asked(&scene.want));
	assert_true(want_slack(&scene.want) > want_asked(&scene.want) * 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waiting_without_a_break_is_hunger_after_half_a_second),
		cmocka_unit_test(test_a_child_whose_hunger_was_stilled_wants_what_it_asks_for),
		cmocka_unit_test(test_a_backlog_counts_after_two_seconds),
		cmocka_unit_test(test_a_light_child_that_waits_for_ten_seconds_is_hungry),
		cmocka_unit_test(test_a_light_child_that_is_flooded_is_hungry_at_once),
		cmocka_unit_test(test_a_child_beside_a_lower_class_is_not_hungry),
		cmocka_unit_test(test_it_is_hungry_a_second_after_the_lower_class_has_none),
		cmocka_unit_test(test_hunger_that_leaves_some_to_a_lower_class_was_stilled),
		cmocka_unit_test(test_chance_is_no_change),
		cmocka_unit_test(test_slack_goes_with_the_time_in_which_readers_wait),
	};

	return cmocka_run_group_tests_name("want", tests, NULL, NULL);
}
