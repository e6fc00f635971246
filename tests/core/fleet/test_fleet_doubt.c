/* Tests of fleet: unknown outcomes, lost history, foreign hands. */
#include "tests/core/fleet/scene.h"

#include <stdio.h>

static const char ONE[] = "rate=10/s\nburst=5\npartitions.count=1\n";

/* A take of partition 0 is under way. */
static struct limiter *begin_take(struct scene *scene, struct guest *guest)
{
	struct limiter *a = scene_make(scene, "a", ONE);

	scene->held_up = true;
	assert_int_equal(scene_ask(scene, guest, a), WAITING);
	scene_answer_until(scene, "/t/1-1");
	return a;
}

static struct limiter *hold(struct scene *scene)
{
	struct guest guest;
	struct limiter *a = begin_take(scene, &guest);

	scene_answer(scene);
	scene->held_up = false;
	scene_run(scene, 0);
	assert_int_equal(guest.waiter.outcome, 0);
	return a;
}

/* Asks until a transaction is sent, which is not answered. */
static void begin_renewal(struct scene *scene, struct limiter *a)
{
	unsigned int before = scene->transactions;

	scene->held_up = true;
	while (scene->transactions == before) {
		while (scene->sent_count)
			scene_answer(scene);
		(void)scene_try(scene, a);
		scene_run(scene, 10 * MS);
	}
	while (scene->sent[0]->kind != REQUEST_TRANSACTION)
		scene_answer(scene);
}

/* The barrier, step by step: the version of the host's node, then a transaction with it. */
static void pass_barrier(struct scene *scene)
{
	char expected[64];

	assert_int_equal(fleet_state(scene->fleet), FLEET_IN_DOUBT);
	assert_int_equal(scene->sent_count, 1);
	scene_assert_next(scene, "read /h/HID");
	scene_run(scene, 200 * MS); /* nothing else meanwhile */
	assert_int_equal(scene->sent_count, 1);
	scene_answer(scene);
	assert_int_equal(scene->sent_count, 1);
	snprintf(expected, sizeof(expected), "/h/%s", fleet_hid(scene->fleet));
	snprintf(expected, sizeof(expected), "set /h/HID %d", scene_node(scene, expected)->version);
	scene_assert_next(scene, expected);
	scene_run(scene, 200 * MS);
	assert_int_equal(scene->sent_count, 1);
	scene_answer(scene);
}

static void test_after_an_unknown_outcome_nothing_is_sent_but_a_barrier(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, false);
	assert_int_equal(scene_lease(a, 0), LEASE_IN_DOUBT);
	pass_barrier(&scene);
	scene_assert_next(&scene, "list /t/1-1");
	assert_int_equal(fleet_counters(scene.fleet)->unknown, 1);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_take_that_was_done_after_all_is_usable_q_later(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, true);
	pass_barrier(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_IN_DOUBT);
	assert_int_equal(scene_try(&scene, a), WAITING);
	scene_assert_next(&scene, "list /t/1-1");
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene.held_up = false;
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) - 1);
	assert_int_equal(guest.waiter.outcome, WAITING);
	assert_false(fleet_is_entitled(scene.fleet, a->holding, 0));
	scene_run(&scene, SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_take_that_was_not_done_is_tried_again(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, false);
	pass_barrier(&scene);
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	scene.held_up = false;
	scene_run(&scene, 20 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(fleet_counters(scene.fleet)->taken_clean, 1);
	scene_close(&scene);
}

static void test_a_partition_that_is_anothers_after_all_is_not_held(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, false);
	scene_lay(&scene, "/t/1-1", "0.otherotheroth");
	pass_barrier(&scene);
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	scene.held_up = false;
	scene_run(&scene, 20 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_connection_that_is_lost_leaves_the_outcome_unknown(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_disconnect(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_IN_DOUBT);
	assert_int_equal(scene.sent_count, 0);
	scene_run(&scene, SEC);
	assert_int_equal(scene.sent_count, 0);
	scene_connect(&scene);
	pass_barrier(&scene);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_barrier_that_an_older_request_overtook_begins_again(void **state)
{
	struct scene scene;
	struct guest guest;
	char path[32];

	(void)state;
	scene_open(&scene);
	begin_take(&scene, &guest);
	scene_lose(&scene, false);
	scene_answer(&scene);
	/* It is executed now, after its version was read. */
	snprintf(path, sizeof(path), "/h/%s", fleet_hid(scene.fleet));
	scene_set(&scene, path, "name=host\nweight=1\nheld=1\n");
	scene_answer(&scene);
	pass_barrier(&scene);
	assert_int_equal(scene.opened, 1);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_barrier_that_is_lost_begins_again_with_the_next_connection(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, true);
	scene_answer(&scene);
	scene_lose(&scene, true);
	assert_int_equal(fleet_state(scene.fleet), FLEET_IN_DOUBT);
	scene_disconnect(&scene);
	scene_connect(&scene);
	pass_barrier(&scene);
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_give_back_that_is_in_doubt_is_not_used(void **state)
{
	for (int done = 0; done < 2; done++) {
		struct scene scene;
		struct limiter *a;

		(void)state;
		scene_open(&scene);
		a = hold(&scene);
		scene.held_up = true;
		while (scene_lease(a, 0) == LEASE_HELD) {
			while (scene.sent_count)
				scene_answer(&scene);
			scene_run(&scene, 10 * MS);
		}
		scene_answer_until(&scene, "/t/1-1/0+");
		scene_lose(&scene, done);
		assert_int_equal(scene_lease(a, 0), LEASE_IN_DOUBT);
		assert_int_equal(scene_try(&scene, a), WAITING);
		pass_barrier(&scene);
		scene_assert_next(&scene, "list /t/1-1");
		scene_answer(&scene);
		assert_int_equal(scene_lease(a, 0), done ? LEASE_NONE : LEASE_WAITING);
		scene_close(&scene);
	}
}

static void test_a_renewal_that_is_in_doubt_takes_nothing_away(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t right_ns;

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	begin_renewal(&scene, a);
	right_ns = fleet_right_ns(scene.fleet);
	scene_lose(&scene, true);
	assert_int_equal(fleet_right_ns(scene.fleet), right_ns);
	scene_run(&scene, 500 * MS);
	assert_int_equal(scene_try(&scene, a), 0);
	pass_barrier(&scene);
	/* It does not look at the settings; the renewal that follows does. */
	assert_true(fleet_right_ns(scene.fleet) < right_ns);
	scene.held_up = false;
	scene_answer_all(&scene);
	scene_run(&scene, 100 * MS);
	assert_true(fleet_right_ns(scene.fleet) > FLEET_RIGHT_NS - 300 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_close(&scene);
}

/* Everything is dropped, and the next session has another id. */
static void assert_dropped(struct scene *scene, struct limiter *a, const char *old)
{
	assert_int_equal(scene->opened, 2);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(fleet_right_ns(scene->fleet), 0);
	assert_int_equal(scene_try(scene, a), -EBUSY);
	assert_memory_equal(scene->event, "session dropped", 15);
	scene->held_up = false;
	scene->session = 78;
	scene_connect(scene);
	assert_int_equal(fleet_state(scene->fleet), FLEET_READY);
	assert_string_not_equal(fleet_hid(scene->fleet), old);
	scene_close(scene);
}

static void test_another_version_of_the_hosts_node_ends_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;
	char hid[HID_TEXT], path[32];

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	begin_renewal(&scene, a);
	strcpy(hid, fleet_hid(scene.fleet));
	snprintf(path, sizeof(path), "/h/%s", hid);
	scene_set(&scene, path, "name=foreign\nweight=1\nheld=0\n");
	scene_answer(&scene);
	assert_dropped(&scene, a, hid);
}

static void test_a_hosts_node_that_is_gone_ends_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;
	char hid[HID_TEXT], path[32];

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	begin_renewal(&scene, a);
	strcpy(hid, fleet_hid(scene.fleet));
	snprintf(path, sizeof(path), "/h/%s", hid);
	scene_delete(&scene, path);
	scene_answer(&scene);
	assert_dropped(&scene, a, hid);
}

static void test_a_hosts_node_that_is_gone_while_in_doubt_ends_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	char hid[HID_TEXT], path[32];

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, true);
	strcpy(hid, fleet_hid(scene.fleet));
	snprintf(path, sizeof(path), "/h/%s", hid);
	scene_delete(&scene, path);
	scene_answer(&scene);
	engine_cancel(&scene.engine, &guest.waiter);
	assert_dropped(&scene, a, hid);
}

static void test_a_give_back_of_what_is_gone_ends_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;
	char hid[HID_TEXT];

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	strcpy(hid, fleet_hid(scene.fleet));
	scene.held_up = true;
	while (scene_lease(a, 0) == LEASE_HELD) {
		while (scene.sent_count)
			scene_answer(&scene);
		scene_run(&scene, 10 * MS);
	}
	scene_answer_until(&scene, "/t/1-1/0+");
	scene_lay(&scene, "/t/1-1", "0.otherotheroth");
	scene_answer(&scene);
	assert_dropped(&scene, a, hid);
}

static void test_another_version_of_the_settings_is_read_before_it_is_tried_again(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	/* Another host has made a limiter. */
	scene_set(&scene, "/g",
		  "renewal=1500ms\nright=8s\nquarantine=8330ms\nsession=6s\nlast=2\n"
		  "recent=1:1 2:2\n");
	scene_set(&scene, "/c/2",
		  "name=b\nparent=0\ngeneration=1\ncut=1\nwriter=bbbbbbbbbbbbb\nowner=0 0 755\n"
		  "settings:\nrate=7/s\n");
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene.opened, 1);
	scene_assert_next(&scene, "read /g");
	scene.held_up = false;
	scene_run(&scene, 3 * SEC);
	assert_non_null(tree_find(&scene.engine.tree, scene.engine.tree.root, "b"));
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_memory_equal(scene.transaction, "check /g 2; ", 12);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_barrier_that_is_denied_is_tried_again_after_r_and_not_at_once(void **state)
{
	struct scene scene;
	struct limiter *a;
	unsigned int before;

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	begin_renewal(&scene, a);
	scene_lose(&scene, false);
	before = scene.transactions;
	for (int i = 0; i < 1000; i++) {
		if (scene.sent_count && scene.sent[0]->kind == REQUEST_TRANSACTION)
			scene_refuse(&scene, ANSWER_DENIED, 0);
		else if (scene.sent_count)
			scene_answer(&scene);
		scene_run(&scene, 10 * MS);
	}
	assert_in_range(scene.transactions - before, 10 * SEC / FLEET_RENEWAL_NS - 1,
			10 * SEC / FLEET_RENEWAL_NS + 1);
	assert_non_null(strstr(scene.event, "access denied"));
	scene.held_up = false;
	scene_run(&scene, 2 * SEC);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	scene_close(&scene);
}

static void test_a_read_in_doubt_that_is_denied_does_not_cost_the_connection(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = begin_take(&scene, &guest);
	scene_lose(&scene, true);
	pass_barrier(&scene);
	scene_assert_next(&scene, "list /t/1-1");
	scene.event[0] = '\0';
	scene_refuse(&scene, ANSWER_DENIED, 0);
	assert_non_null(strstr(scene.event, "access denied"));
	assert_int_equal(scene.hung_up, 0);
	scene.held_up = false;
	scene_run(&scene, 2 * SEC);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

/* More than is read of a node. */
static const char *too_large(void)
{
	static char text[NODE_DATA_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	return text;
}

static void test_a_change_in_doubt_of_a_record_that_is_too_large_is_not_known_for_ever(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change = {
		.kind = CHANGE_SETTINGS, .setting = CHANGE_CONFIG, .text = "rate=20/s"};

	(void)state;
	scene_open(&scene);
	a = hold(&scene);
	change.limiter = a;
	scene.held_up = true;
	assert_int_equal(scene_change(&scene, &change), WAITING);
	scene_answer_until(&scene, "/c/1");
	scene_lose(&scene, true);
	scene_set(&scene, "/c/1", too_large());
	scene.held_up = false;
	scene_run(&scene, 2 * SEC);
	assert_int_equal(scene.hung_up, 0);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_ptr_equal(engine_changed(&scene.engine), &change);
	assert_int_equal(change.outcome, -ETIMEDOUT);
	scene_close(&scene);
}

static void test_nodes_that_are_too_large_are_as_garbage_and_rights_go_on(void **state)
{
	static const char *const paths[] = {"/c/1", "/g"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct scene scene;
		struct limiter *a;
		struct guest guest;

		scene_open(&scene);
		a = scene_make(&scene, "a", "rate=10/s\npartitions.count=2\n");
		(void)scene_make(&scene, "b", ONE);
		scene_set(&scene, paths[i], too_large());
		/* As if another host had changed settings, too. */
		if (i == 0)
			scene_set(&scene, "/g", scene_node(&scene, "/g")->data);
		engine_run(&scene.engine, scene.now_ns);
		fleet_changed(scene.fleet, "/g", scene.now_ns);
		assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
		scene_run(&scene, 30 * SEC);
		assert_int_equal(guest.waiter.outcome, 0);
		assert_int_equal(fleet_counters(scene.fleet)->lapses, 0);
		assert_int_equal(scene.hung_up, 0);
		assert_int_equal(scene.opened, 1);
		assert_true(fleet_is_up_to_date(scene.fleet));
		scene_close(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after_an_unknown_outcome_nothing_is_sent_but_a_barrier),
		cmocka_unit_test(test_a_take_that_was_done_after_all_is_usable_q_later),
		cmocka_unit_test(test_a_take_that_was_not_done_is_tried_again),
		cmocka_unit_test(test_a_partition_that_is_anothers_after_all_is_not_held),
		cmocka_unit_test(test_a_connection_that_is_lost_leaves_the_outcome_unknown),
		cmocka_unit_test(test_a_barrier_that_an_older_request_overtook_begins_again),
		cmocka_unit_test(
			test_a_barrier_that_is_denied_is_tried_again_after_r_and_not_at_once),
		cmocka_unit_test(test_a_read_in_doubt_that_is_denied_does_not_cost_the_connection),
		cmocka_unit_test(
			test_a_change_in_doubt_of_a_record_that_is_too_large_is_not_known_for_ever),
		cmocka_unit_test(test_nodes_that_are_too_large_are_as_garbage_and_rights_go_on),
		cmocka_unit_test(test_a_barrier_that_is_lost_begins_again_with_the_next_connection),
		cmocka_unit_test(test_a_give_back_that_is_in_doubt_is_not_used),
		cmocka_unit_test(test_a_renewal_that_is_in_doubt_takes_nothing_away),
		cmocka_unit_test(test_another_version_of_the_hosts_node_ends_the_session),
		cmocka_unit_test(test_a_hosts_node_that_is_gone_ends_the_session),
		cmocka_unit_test(test_a_hosts_node_that_is_gone_while_in_doubt_ends_the_session),
		cmocka_unit_test(test_a_give_back_of_what_is_gone_ends_the_session),
		cmocka_unit_test(
			test_another_version_of_the_settings_is_read_before_it_is_tried_again),
	};

	return cmocka_run_group_tests_name("fleet_doubt", tests, NULL, NULL);
}
