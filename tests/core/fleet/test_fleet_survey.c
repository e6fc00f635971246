/* Tests of survey: looks at who has what. */
#include "tests/core/fleet/scene.h"

#include "core/fleet/survey.h"

#include <stdio.h>
#include <string.h>

static const char TEN[] = "rate=10/s\npartitions.count=10\n";

/* The other host, and one that is not there. */
static const char OTHER[] = "otherotheroth", GONE[] = "gonegonegoneg";

/* Looks, and waits until all is answered. */
static void look(struct scene *scene, struct limiter *limiter)
{
	survey_begin(scene->fleet, limiter->holding);
	scene_answer_all(scene);
	assert_true(survey_is_done(scene->fleet, limiter->holding, scene->now_ns));
}

static void assert_holder(const struct scene *scene, const struct limiter *limiter, uint32_t leaf,
			  const char *hid, const char *name)
{
	const struct seen_tile *tile = survey_tile(limiter->holding, leaf, false);
	const struct seen_host *host;

	assert_non_null(tile);
	assert_in_range(leaf, tile->first, tile->last);
	assert_string_equal(tile->hid, hid);
	host = survey_holder(scene->fleet, tile);
	assert_string_equal(host ? host->record.name : "", name);
}

static void test_a_look_is_a_list_of_the_tiles_and_then_one_of_the_hosts(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	scene.held_up = true;
	survey_begin(scene.fleet, a->holding);
	survey_begin(scene.fleet, a->holding); /* it is being done */
	assert_false(survey_is_done(scene.fleet, a->holding, scene.now_ns));
	scene_assert_next(&scene, "list /t/1-1");
	scene_answer(&scene);
	scene_assert_next(&scene, "list /h");
	scene_answer(&scene);
	/* Their names are read once. */
	assert_int_equal(scene.sent_count, 2);
	scene_answer_all(&scene);
	assert_true(survey_is_done(scene.fleet, a->holding, scene.now_ns));
	survey_begin(scene.fleet, a->holding);
	assert_int_equal(scene.sent_count, 0);
	scene_run(&scene, FLEET_SURVEY_FRESH_NS);
	survey_begin(scene.fleet, a->holding);
	assert_int_equal(scene.sent_count, 2);
	scene_answer_all(&scene);
	assert_int_equal(scene.sent_count, 0);
	scene.held_up = false;
	scene_close(&scene);
}

static void test_tiles_are_free_or_of_a_host_or_of_one_that_is_gone(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	scene_lay(&scene, "/t/1-1", "0.otherotheroth 1-3+2+1 4-9.gonegonegoneg");
	assert_null(survey_tile(a->holding, 0, false));
	look(&scene, a);
	assert_int_equal(survey_tiles(a->holding, false)->count, 3);
	assert_holder(&scene, a, 0, OTHER, "other");
	assert_holder(&scene, a, 1, "", "");
	assert_holder(&scene, a, 3, "", "");
	assert_holder(&scene, a, 4, GONE, "");
	assert_holder(&scene, a, 9, GONE, "");
	assert_null(survey_tile(a->holding, 10, false));
	assert_int_equal(survey_tiles(a->holding, true)->count, 0);
	scene_close(&scene);
}

static void test_a_host_whose_node_is_not_understood_is_there(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	scene_set(&scene, "/h/gonegonegoneg", "name=strange\n");
	scene_lay(&scene, "/t/1-1", "0.gonegonegoneg 1-9+2+1");
	look(&scene, a);
	assert_holder(&scene, a, 0, GONE, "");
	assert_non_null(survey_holder(scene.fleet, survey_tile(a->holding, 0, false)));
	scene_close(&scene);
}

static void test_the_reserve_is_seen_where_there_is_one(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.reserve=1/s hosts=4\n");
	scene_run(&scene, SEC); /* the host takes its part */
	look(&scene, a);
	for (uint32_t i = 0; i < 4; i++) {
		bool own = i == a->holding->reserve.first;

		assert_string_equal(survey_tile(a->holding, i, true)->hid,
				    own ? fleet_hid(scene.fleet) : "");
	}
	assert_int_equal(a->holding->reserve.state, LEASE_HELD);
	scene_close(&scene);
}

static void test_leaves_that_were_numbered_anew_were_not_seen(void **state)
{
	struct change change = {.kind = CHANGE_SETTINGS, .setting = CHANGE_CONFIG};
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	look(&scene, a);
	assert_non_null(survey_tile(a->holding, 9, false));
	change.limiter = a;
	change.text = "partitions.count=20";
	assert_int_equal(scene_change(&scene, &change), 0);
	assert_null(survey_tile(a->holding, 9, false));
	scene_run(&scene, FLEET_SURVEY_FRESH_NS);
	look(&scene, a);
	assert_non_null(survey_tile(a->holding, 19, false));
	scene_close(&scene);
}

static void test_without_a_connection_the_last_look_is_all_that_there_is(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	scene_lay(&scene, "/t/1-1", "0-8+2+1 9.otherotheroth");
	look(&scene, a);
	scene_disconnect(&scene);
	scene_run(&scene, SEC);
	survey_begin(scene.fleet, a->holding);
	assert_true(survey_is_done(scene.fleet, a->holding, scene.now_ns));
	assert_holder(&scene, a, 9, OTHER, "other");
	scene_close(&scene);
}

/* Returns the seconds for which the host @hid has written nothing. */
static int64_t silent_s(const struct scene *scene, const char *hid)
{
	const struct seen_host *host = survey_hosts(scene->fleet);

	while (host && strcmp(host->hid, hid) != 0)
		host = host->next;
	assert_non_null(host);
	return survey_silent_s(scene->fleet, host);
}

static void test_hosts_are_as_old_as_the_last_look_that_was_answered(void **state)
{
	struct scene scene;
	uint64_t age_ns;

	(void)state;
	scene_open(&scene);
	survey_begin(scene.fleet, NULL);
	scene_answer_all(&scene);
	assert_false(survey_is_old(scene.fleet, NULL, &age_ns));
	scene_run(&scene, 4 * SEC);
	assert_false(survey_is_old(scene.fleet, NULL, &age_ns)); /* there was no look since */
	scene.held_up = true;
	survey_begin(scene.fleet, NULL);
	scene_run(&scene, 500 * MS);
	assert_true(survey_is_old(scene.fleet, NULL, &age_ns));
	assert_int_equal(age_ns, 4500 * MS);
	scene_disconnect(&scene);
	scene_run(&scene, SEC);
	assert_true(survey_is_old(scene.fleet, NULL, &age_ns));
	assert_int_equal(age_ns, 5500 * MS);
	scene.held_up = false;
	scene_connect(&scene);
	scene_answer_all(&scene);
	survey_begin(scene.fleet, NULL);
	scene_answer_all(&scene);
	assert_false(survey_is_old(scene.fleet, NULL, &age_ns));
	scene_close(&scene);
}

static void test_a_look_that_was_cut_off_makes_no_new_hosts(void **state)
{
	struct scene scene;
	uint64_t age_ns;

	(void)state;
	scene_open(&scene);
	survey_begin(scene.fleet, NULL);
	scene_answer_all(&scene);
	scene_run(&scene, SEC);
	scene.held_up = true;
	survey_begin(scene.fleet, NULL);
	scene_disconnect(&scene);
	scene.held_up = false;
	scene_connect(&scene);
	scene_answer_all(&scene);
	assert_true(survey_is_old(scene.fleet, NULL, &age_ns));
	assert_int_equal(age_ns, SEC);
	scene_close(&scene);
}

static void test_tiles_of_a_limiter_may_be_older_than_the_hosts(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t age_ns;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", TEN);
	scene_run(&scene, 0);
	survey_begin(scene.fleet, a->holding);
	scene_answer_all(&scene);
	scene_run(&scene, 10 * SEC);
	survey_begin(scene.fleet, NULL);
	scene_answer_all(&scene);
	scene_disconnect(&scene);
	assert_true(survey_is_old(scene.fleet, NULL, &age_ns));
	assert_int_equal(age_ns, 0);
	assert_true(survey_is_old(scene.fleet, a->holding, &age_ns));
	assert_int_equal(age_ns, 10 * SEC);
	scene_close(&scene);
}

static void test_without_a_look_all_of_the_hosts_is_old(void **state)
{
	struct scene scene;
	uint64_t age_ns;

	(void)state;
	scene_open(&scene);
	scene_disconnect(&scene);
	assert_true(survey_is_old(scene.fleet, NULL, &age_ns));
	assert_int_equal(age_ns, NEVER_NS);
	scene_close(&scene);
}

static void test_seconds_of_the_host_itself_begin_with_its_last_write(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	survey_begin(scene.fleet, NULL);
	scene_answer_all(&scene);
	scene_run(&scene, 20 * SEC);
	assert_int_equal(silent_s(&scene, fleet_hid(scene.fleet)), 20);
	a = scene_make(&scene, "a", TEN); /* a write */
	scene_run(&scene, 0);
	assert_non_null(a);
	assert_int_equal(silent_s(&scene, fleet_hid(scene.fleet)), 0);
	scene_disconnect(&scene);
	scene_run(&scene, 3 * SEC);
	assert_int_equal(silent_s(&scene, fleet_hid(scene.fleet)), 3);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_look_is_a_list_of_the_tiles_and_then_one_of_the_hosts),
		cmocka_unit_test(test_tiles_are_free_or_of_a_host_or_of_one_that_is_gone),
		cmocka_unit_test(test_a_host_whose_node_is_not_understood_is_there),
		cmocka_unit_test(test_the_reserve_is_seen_where_there_is_one),
		cmocka_unit_test(test_leaves_that_were_numbered_anew_were_not_seen),
		cmocka_unit_test(test_without_a_connection_the_last_look_is_all_that_there_is),
		cmocka_unit_test(test_hosts_are_as_old_as_the_last_look_that_was_answered),
		cmocka_unit_test(test_a_look_that_was_cut_off_makes_no_new_hosts),
		cmocka_unit_test(test_tiles_of_a_limiter_may_be_older_than_the_hosts),
		cmocka_unit_test(test_without_a_look_all_of_the_hosts_is_old),
		cmocka_unit_test(test_seconds_of_the_host_itself_begin_with_its_last_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
