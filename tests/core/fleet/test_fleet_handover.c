/* Tests of fleet: a host that was killed, and its successor. */
#include "core/fleet/claim.h"
#include "tests/core/fleet/scene.h"

#include <stdio.h>

static const char ONE[] = "rate=10/s\nburst=5\npartitions.count=1\n";

/* Partition 0 is held, and nothing is answered from now on. */
static struct limiter *hold(struct scene *scene)
{
	struct guest guest;
	struct limiter *a;

	scene_open(scene);
	a = scene_make(scene, "a", ONE);
	(void)scene_ask(scene, &guest, a);
	scene_run(scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene->held_up = true;
	return a;
}

static int32_t host_version(const struct scene *scene)
{
	char path[64];

	snprintf(path, sizeof(path), "/h/%s", fleet_hid(scene->fleet));
	return scene_node(scene, path)->version;
}

static void assert_barrier(struct scene *scene, int32_t version)
{
	char expected[64];

	assert_int_equal(fleet_state(scene->fleet), FLEET_IN_DOUBT);
	assert_int_equal(scene->sent_count, 1);
	snprintf(expected, sizeof(expected), "set /h/HID %d", version);
	scene_assert_next(scene, expected);
}

/* A transaction is under way; it is done if @done, and no host hears of it. */
static void leave_under_way(struct scene *scene, bool done)
{
	unsigned int before = scene->transactions;

	while (scene->transactions == before) {
		while (scene->sent_count)
			scene_answer(scene);
		scene_run(scene, 10 * MS);
	}
	while (scene->sent[0]->kind != REQUEST_TRANSACTION)
		scene_answer(scene);
	if (done)
		scene_execute(scene, scene->sent[0]);
}

static void test_held_partition_is_used_before_there_is_a_connection(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);

	(void)state;
	a = scene_succeed(&scene, a);
	assert_int_equal(scene.resumed, 1);
	assert_int_equal(scene.opened, 1);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_true(fleet_is_entitled(scene.fleet, a->holding, 0));
	scene_run(&scene, 200 * MS);
	assert_int_equal(scene_try(&scene, a), 0);
	scene_run(&scene, FLEET_RIGHT_NS);
	assert_int_equal(scene_try(&scene, a), -EBUSY);
	assert_false(fleet_is_entitled(scene.fleet, a->holding, 0));
	scene.held_up = false;
	scene_connect(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_true(fleet_is_entitled(scene.fleet, a->holding, 0));
	assert_int_equal(scene.opened, 1);
	scene_close(&scene);
}

static void test_the_barrier_comes_before_anything_is_read(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);

	(void)state;
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	assert_barrier(&scene, host_version(&scene));
	scene_answer(&scene);
	scene_assert_next(&scene, "list /h");
	scene_answer_all(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_close(&scene);
}

static void test_a_transaction_that_was_done_is_found_out_by_a_barrier_that_is_refused(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);
	int32_t version;

	(void)state;
	leave_under_way(&scene, true);
	version = host_version(&scene);
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	assert_barrier(&scene, version - 1);
	scene_answer(&scene);
	scene_assert_next(&scene, "read /h/HID");
	scene_answer(&scene);
	assert_barrier(&scene, version);
	scene_answer_all(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_close(&scene);
}

static void test_a_successor_that_is_killed_in_its_barrier_has_one(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);

	(void)state;
	leave_under_way(&scene, false);
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	scene_execute(&scene, scene.sent[0]);
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	assert_barrier(&scene, host_version(&scene) - 1);
	scene_answer_all(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_close(&scene);
}

static void test_a_wait_that_an_election_made_longer_is_as_long_for_a_successor(void **state)
{
	struct scene scene;
	struct guest guest;
	struct limiter *a;
	uint64_t usable_ns;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, "/t/1-1", "0+0+1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, MS);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	usable_ns = a->holding->leases[0].usable_ns;
	scene.epoch++;
	scene.holder_ns += FLEET_RIGHT_NS;
	scene_run(&scene, 4 * SEC);
	assert_in_range(a->holding->leases[0].usable_ns, usable_ns + SEC, usable_ns + 4 * SEC);
	usable_ns = a->holding->leases[0].usable_ns;
	engine_cancel(&scene.engine, &guest.waiter);
	a = scene_succeed(&scene, a);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	assert_int_equal(a->holding->leases[0].usable_ns, usable_ns);
	scene_connect(&scene);
	scene_close(&scene);
}

static void test_a_version_that_no_transaction_explains_is_a_foreign_hand(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/h/%s", fleet_hid(scene.fleet));
	for (int i = 0; i < 2; i++)
		scene_set(&scene, path, scene_node(&scene, path)->data);
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	while (scene.sent_count && scene.opened == 1)
		scene_answer(&scene);
	assert_int_equal(scene.opened, 2);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	while (scene.sent_count)
		scene_lose(&scene, false);
	scene_close(&scene);
}

static void test_with_another_session_nothing_is_held(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);

	(void)state;
	a = scene_succeed(&scene, a);
	scene.session++;
	scene_connect(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene.opened, 2);
	scene_close(&scene);
}

static void test_whose_session_has_expired_is_a_new_host(void **state)
{
	struct scene scene;
	struct limiter *a = hold(&scene);

	(void)state;
	a = scene_succeed(&scene, a);
	engine_run(&scene.engine, scene.now_ns);
	fleet_expired(scene.fleet, scene.now_ns);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene.opened, 2);
	/* Nor does the next one have anything to go on with. */
	a = scene_succeed(&scene, a);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene.opened, 3);
	scene_close(&scene);
}

/* Names of claims of this host; the last one. */
static unsigned int claims(const struct scene *scene, const char **last)
{
	unsigned int count = 0;

	for (uint32_t i = 0; i < scene->node_count; i++) {
		if (!strncmp(scene->nodes[i].path, "/w/1/", 5) && scene->nodes[i].session) {
			*last = scene->nodes[i].path + 5;
			count++;
		}
	}
	return count;
}

static void test_a_claim_is_found_again(void **state)
{
	struct scene scene;
	struct guest guest;
	struct limiter *a;
	const char *before = "", *after = "";
	char claim[64];

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, "/t/1-1", "0.otherotheroth");
	(void)scene_ask(&scene, &guest, a);
	scene_run(&scene, 2 * SEC);
	assert_int_equal(claims(&scene, &before), 1);
	snprintf(claim, sizeof(claim), "%s", before);
	a = scene_succeed(&scene, a);
	(void)scene_ask(&scene, &guest, a);
	scene_connect(&scene);
	scene_run(&scene, 5 * SEC);
	assert_int_equal(claims(&scene, &after), 1);
	assert_string_equal(claim_name(a->holding), claim);
	/* A name without a limiter goes. */
	a = scene_succeed(&scene, a);
	scene_connect(&scene);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(claims(&scene, &after), 0);
	scene_close(&scene);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_held_partition_is_used_before_there_is_a_connection),
		cmocka_unit_test(test_the_barrier_comes_before_anything_is_read),
		cmocka_unit_test(
			test_a_transaction_that_was_done_is_found_out_by_a_barrier_that_is_refused),
		cmocka_unit_test(test_a_successor_that_is_killed_in_its_barrier_has_one),
		cmocka_unit_test(
			test_a_wait_that_an_election_made_longer_is_as_long_for_a_successor),
		cmocka_unit_test(test_a_version_that_no_transaction_explains_is_a_foreign_hand),
		cmocka_unit_test(test_with_another_session_nothing_is_held),
		cmocka_unit_test(test_whose_session_has_expired_is_a_new_host),
		cmocka_unit_test(test_a_claim_is_found_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
