/* Tests of fleet: hosts that died are ended by the host before them, and what they had is taken. */
#include "tests/core/fleet/scene.h"

#include <stdio.h>

#define Q	 record_quarantine_ns(FLEET_RIGHT_NS)
#define R	 FLEET_RENEWAL_NS
#define OTHER	 "otherotheroth"
#define RENEWING "name=other\nweight=1\nheld=1\nrenews=1\n"

static const char ONE[] = "rate=10/s\nburst=5\npartitions.count=1\n";
static const char HOST[] = "/h/" OTHER, END[] = "/d/" OTHER "+2";

/* This host holds something, and so does the other one, as it says. */
static struct limiter *hold(struct scene *scene)
{
	struct limiter *a;
	struct guest guest;

	scene_open(scene);
	scene_set(scene, HOST, RENEWING);
	a = scene_make(scene, "a", ONE);
	(void)scene_ask(scene, &guest, a);
	scene_run(scene, 0);
	assert_int_equal(guest.waiter.outcome, 0);
	return a;
}

/* Time passes, in which this host goes on to need what it holds. */
static void live(struct scene *scene, struct limiter *a, uint64_t ns)
{
	for (uint64_t end_ns = scene->now_ns + ns; scene->now_ns < end_ns;) {
		(void)scene_try(scene, a);
		scene_run(scene, 100 * MS);
	}
}

static void test_a_host_that_is_silent_for_q_is_ended_in_one_transaction(void **state)
{
	struct scene scene;
	int32_t version;

	(void)state;
	hold(&scene);
	version = scene_node(&scene, HOST)->version;
	scene_run(&scene, Q - 100 * MS);
	assert_non_null(scene_node(&scene, HOST));
	scene_run(&scene, 2 * R + 100 * MS);
	assert_null(scene_node(&scene, HOST));
	assert_non_null(scene_node(&scene, END));
	assert_int_equal(fleet_counters(scene.fleet)->ended, 1);
	assert_true(version > 0);
	scene_close(&scene);
}

static void test_a_host_that_is_ended_is_named_as_it_calls_itself(void **state)
{
	struct scene scene;

	(void)state;
	hold(&scene);
	scene_run(&scene, Q + 2 * R);
	assert_null(scene_node(&scene, HOST));
	assert_string_equal(scene.event, "host other (" OTHER ") is silent: its right was ended");
	scene_close(&scene);
}

static void test_a_host_that_writes_is_not_ended(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	a = hold(&scene);
	for (int i = 0; i < 20; i++) {
		live(&scene, a, R);
		scene_set(&scene, HOST, RENEWING);
	}
	assert_non_null(scene_node(&scene, HOST));
	assert_int_equal(fleet_counters(scene.fleet)->ended, 0);
	scene_close(&scene);
}

static void test_a_host_that_renews_nothing_is_read_once_and_not_ended(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t reads;

	(void)state;
	a = hold(&scene);
	scene_set(&scene, HOST, "name=other\nweight=1\nheld=0\nrenews=0\n");
	live(&scene, a, 2 * R);
	reads = fleet_counters(scene.fleet)->reads;
	live(&scene, a, 3 * Q);
	assert_int_equal(fleet_counters(scene.fleet)->reads, reads);
	assert_non_null(scene_node(&scene, HOST));
	scene_close(&scene);
}

/* Lets time pass until the end of the other host is about to be done. */
static void come_to_its_end(struct scene *scene)
{
	char text[4096] = "";

	scene->held_up = true;
	while (!strstr(text, END)) {
		if (*text)
			scene_answer(scene);
		while (!scene->sent_count)
			scene_run(scene, 10 * MS);
		scene_say(scene, scene->sent[0], text);
	}
}

static void test_a_host_that_writes_at_the_last_moment_is_counted_anew(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	a = hold(&scene);
	come_to_its_end(&scene);
	scene_set(&scene, HOST, RENEWING);
	scene.held_up = false;
	scene_answer_all(&scene);
	live(&scene, a, Q - 100 * MS);
	assert_non_null(scene_node(&scene, HOST));
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	live(&scene, a, 2 * R);
	assert_null(scene_node(&scene, HOST));
	assert_int_equal(fleet_counters(scene.fleet)->ended, 1);
	scene_close(&scene);
}

static void test_an_end_of_unknown_outcome_is_not_taken_for_granted(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	a = hold(&scene);
	come_to_its_end(&scene);
	scene_lose(&scene, false);
	assert_int_equal(fleet_state(scene.fleet), FLEET_IN_DOUBT);
	scene.held_up = false;
	scene_answer_all(&scene);
	assert_non_null(scene_node(&scene, HOST));
	live(&scene, a, Q + 2 * R);
	assert_null(scene_node(&scene, HOST));
	assert_non_null(scene_node(&scene, END));
	scene_close(&scene);
}

static void test_tiles_of_an_ended_host_are_taken_with_its_end_and_used_at_once(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint64_t ended_ns;

	(void)state;
	scene_open(&scene);
	scene_set(&scene, HOST, RENEWING);
	a = scene_make(&scene, "a", ONE);
	scene_run(&scene, 5 * SEC);
	scene_lay(&scene, "/t/1-1", "0." OTHER);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	while (!fleet_counters(scene.fleet)->ended)
		scene_run(&scene, 10 * MS);
	ended_ns = scene.now_ns;
	while (guest.waiter.outcome == WAITING)
		scene_run(&scene, 10 * MS);
	assert_int_equal(guest.waiter.outcome, 0);
	/* A listing of ends is up to 100 ms late; the bucket was empty. */
	assert_in_range(scene.now_ns - ended_ns, 0, 300 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_close(&scene);
}

static void test_a_host_that_was_ended_drops_everything_and_joins_anew(void **state)
{
	char path[64], hid[HID_TEXT];
	struct scene scene;
	struct limiter *a;

	(void)state;
	a = hold(&scene);
	snprintf(hid, sizeof(hid), "%s", fleet_hid(scene.fleet));
	snprintf(path, sizeof(path), "/h/%s", hid);
	scene_delete(&scene, path);
	scene_run(&scene, 2 * R);
	assert_string_equal(scene.event, "session dropped: the host's node is gone");
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	scene_run(&scene, R);
	assert_string_not_equal(fleet_hid(scene.fleet), hid);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_host_that_is_silent_for_q_is_ended_in_one_transaction),
		cmocka_unit_test(test_a_host_that_is_ended_is_named_as_it_calls_itself),
		cmocka_unit_test(test_a_host_that_writes_is_not_ended),
		cmocka_unit_test(test_a_host_that_renews_nothing_is_read_once_and_not_ended),
		cmocka_unit_test(test_a_host_that_writes_at_the_last_moment_is_counted_anew),
		cmocka_unit_test(test_an_end_of_unknown_outcome_is_not_taken_for_granted),
		cmocka_unit_test(
			test_tiles_of_an_ended_host_are_taken_with_its_end_and_used_at_once),
		cmocka_unit_test(test_a_host_that_was_ended_drops_everything_and_joins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
