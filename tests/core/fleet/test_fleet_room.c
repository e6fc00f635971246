/* Tests of fleet: how many nodes and watches a host may have, see core/fleet/room.c. */
#include "tests/core/fleet/scene.h"

#include <stdio.h>

/* PATH is as long as if a handful of nodes filled all the room. */
enum { PREFIX_BYTES = 20000, NODES_THAT_FIT = 12, HOST_BYTES = PREFIX_BYTES + 4 + 3 + 13 };

static const char MANY[] = "rate=100/s\npartitions.count=30\n";

/* A host that is alone, and so wants all there is. */
static void open_alone(struct scene *scene)
{
	scene_prepare(scene);
	scene->coordinator.prefix_bytes = PREFIX_BYTES;
	scene_begin(scene);
	assert_int_equal(fleet_state(scene->fleet), FLEET_READY);
}

static void keep_asking(struct scene *scene, struct limiter *limiter, uint64_t ns)
{
	for (uint64_t end_ns = scene->now_ns + ns; scene->now_ns < end_ns;) {
		(void)scene_try(scene, limiter);
		scene_run(scene, 100 * MS);
	}
}

static uint32_t count_nodes(const struct scene *scene, const char *folder)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scene->node_count; i++)
		count += scene->nodes[i].session &&
			 !strncmp(scene->nodes[i].path, folder, strlen(folder));
	return count;
}

/* Counts the bytes that the paths of its ephemeral nodes really have. */
static uint32_t count_bytes(const struct scene *scene)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < scene->node_count; i++) {
		if (scene->nodes[i].session)
			bytes += 4 + PREFIX_BYTES + (uint32_t)strlen(scene->nodes[i].path);
	}
	return bytes;
}

static void test_leases_take_up_no_room_since_they_outlive_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	open_alone(&scene);
	a = scene_make(&scene, "a", MANY);
	keep_asking(&scene, a, 20 * SEC);
	assert_int_equal(fleet_leases(scene.fleet), 30);
	assert_int_equal(fleet_own_bytes(scene.fleet), HOST_BYTES);
	assert_int_equal(count_bytes(&scene), HOST_BYTES);
	assert_int_equal(scene.told_full, 0);
	scene_close(&scene);
}

static void test_a_successor_has_no_more_room_than_its_predecessor(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint32_t bytes;

	(void)state;
	scene_open(&scene);
	scene.coordinator.prefix_bytes = PREFIX_BYTES;
	a = scene_make(&scene, "a", "rate=1/s\npartitions.count=1\n");
	scene_lay(&scene, "/t/1-1", "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 5 * SEC);
	bytes = fleet_own_bytes(scene.fleet);
	assert_true(bytes > HOST_BYTES);
	engine_cancel(&scene.engine, &guest.waiter);
	(void)scene_succeed(&scene, a);
	assert_int_equal(fleet_own_bytes(scene.fleet), bytes);
	scene_close(&scene);
}

static void test_claims_end_where_their_paths_have_no_more_room(void **state)
{
	enum { COUNT = 15 };
	struct scene scene;
	struct guest guests[COUNT];
	struct limiter *limiters[COUNT];
	char name[16], path[32];

	(void)state;
	scene_open(&scene);
	scene.coordinator.prefix_bytes = PREFIX_BYTES;
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		limiters[i] = scene_make(&scene, name, "rate=1/s\npartitions.count=1\n");
		snprintf(path, sizeof(path), "/t/%d-1", i + 1);
		scene_lay(&scene, path, "0.otherotheroth");
	}
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(scene_ask(&scene, &guests[i], limiters[i]), WAITING);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(count_nodes(&scene, "/w/"), NODES_THAT_FIT);
	assert_memory_equal(scene.event, "full: 0 leases, ", strlen("full: 0 leases, "));
	assert_int_equal(scene.told_full, 1);
	assert_in_range(fleet_counters(scene.fleet)->left_out, 1, 100);
	assert_in_range(fleet_own_bytes(scene.fleet), count_bytes(&scene), FLEET_OWN_BYTES_MAX);
	for (int i = 0; i < COUNT; i++)
		engine_cancel(&scene.engine, &guests[i].waiter);
	scene_run(&scene, 20 * SEC);
	assert_int_equal(count_nodes(&scene, "/w/"), 0);
	assert_int_equal(fleet_own_bytes(scene.fleet), HOST_BYTES);
	scene_close(&scene);
}

/* All limiters are in use for so long. */
static void keep_asking_all(struct scene *scene, struct limiter *limiters[], int count, uint64_t ns)
{
	for (uint64_t end_ns = scene->now_ns + ns; scene->now_ns < end_ns;) {
		for (int i = 0; i < count; i++)
			(void)scene_try(scene, limiters[i]);
		scene_run(scene, 100 * MS);
	}
}

static void test_agreed_rates_are_read_where_watches_have_no_more_room(void **state)
{
	enum { COUNT = 4, THAT_FIT = 2 };
	struct scene scene;
	struct limiter *limiters[COUNT];
	char name[16];
	int watched = 0;

	(void)state;
	scene_open(&scene);
	scene.coordinator.prefix_bytes = FLEET_AGREED_RATE_BYTES_MAX / (THAT_FIT + 1) + 1;
	for (int i = 0; i < COUNT; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		limiters[i] = scene_make(&scene, name,
					 "rate=100/s\npartitions.count=1\nadapt=aimd");
	}
	keep_asking_all(&scene, limiters, COUNT, SEC);
	assert_int_equal(scene.agreed_rate_watched, THAT_FIT);
	assert_int_equal(scene.agreed_rate_read, COUNT);
	keep_asking_all(&scene, limiters, COUNT, 20 * SEC);
	assert_int_equal(scene.agreed_rate_watched, THAT_FIT);
	/* Every 5 seconds. */
	assert_in_range(scene.agreed_rate_read, COUNT + 3 * (COUNT - THAT_FIT),
			COUNT + 4 * (COUNT - THAT_FIT));
	/* A watch that has told of a change is set again. */
	while (!limiters[watched]->holding->agreed_rate_watched)
		watched++;
	snprintf(name, sizeof(name), "/a/%d", watched + 1);
	fleet_changed(scene.fleet, name, scene.now_ns);
	scene_run(&scene, 0);
	assert_int_equal(scene.agreed_rate_watched, THAT_FIT + 1);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leases_take_up_no_room_since_they_outlive_the_session),
		cmocka_unit_test(test_a_successor_has_no_more_room_than_its_predecessor),
		cmocka_unit_test(test_claims_end_where_their_paths_have_no_more_room),
		cmocka_unit_test(test_agreed_rates_are_read_where_watches_have_no_more_room),
	};

	return cmocka_run_group_tests_name("fleet_room", tests, NULL, NULL);
}
