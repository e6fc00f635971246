/* Tests of uses: the part of a host's node that tells of its use of limiters. */
#include "tests/core/fleet/scene.h"

#include "core/fleet/survey.h"

#include <stdio.h>

static const char FAST[] = "rate=1000/s\nburst=1000\n";

/* Returns the record in the node of the host. */
static struct host_record own_record(const struct scene *scene)
{
	struct host_record record;
	char path[NODE_PATH_MAX];

	snprintf(path, sizeof(path), "/h/%s", fleet_hid(scene->fleet));
	assert_int_equal(record_parse_host(scene_node(scene, path)->data, &record), 0);
	assert_true(record.has_uses);
	return record;
}

/* Asks for a token of @limiter every @period_ns, @count times. */
static void use(struct scene *scene, struct limiter *limiter, uint64_t period_ns, uint32_t count)
{
	while (count--) {
		(void)scene_try(scene, limiter);
		scene_run(scene, period_ns);
	}
}

static void test_a_renewal_says_how_much_is_granted_and_how_many_wait(void **state)
{
	const struct host_use *found;
	struct host_record record;
	struct guest guests[3];
	struct limiter *a, *b;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", FAST);
	b = scene_make(&scene, "b", "rate=0\n");
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(scene_ask(&scene, &guests[i], b), WAITING);
	use(&scene, a, SEC / 10, 600);
	record = own_record(&scene);
	found = record_use(&record, a->holding->id);
	assert_true(found->granted > 9 && found->granted < 11);
	assert_int_equal(found->waiting, 0);
	found = record_use(&record, b->holding->id);
	assert_true(found->granted == 0);
	assert_int_equal(found->waiting, 3);
	assert_int_equal(record.use_count, 2);
	for (size_t i = 0; i < 3; i++)
		engine_cancel(&scene.engine, &guests[i].waiter);
	scene_close(&scene);
}

/* Telling costs no transaction, and no look. */
static void test_it_is_told_with_renewals_alone(void **state)
{
	uint64_t reads, lists;
	struct limiter *a;
	struct scene scene;
	unsigned int sent;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", FAST);
	use(&scene, a, SEC / 10, 300);
	sent = scene.transactions;
	reads = fleet_counters(scene.fleet)->reads;
	lists = fleet_counters(scene.fleet)->lists;
	use(&scene, a, SEC / 10, 300);
	assert_in_range(scene.transactions - sent, 15, 21);
	assert_in_range(fleet_counters(scene.fleet)->reads - reads, 0, 21);
	assert_int_equal(fleet_counters(scene.fleet)->lists, lists);
	scene_close(&scene);
}

static void test_the_largest_are_told_and_no_more_than_there_is_room_for(void **state)
{
	struct limiter *limiters[HOST_USES_MAX + 4];
	struct host_record record;
	struct scene scene;
	char name[16];

	(void)state;
	scene_open(&scene);
	for (uint32_t i = 0; i < HOST_USES_MAX + 4; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		limiters[i] = scene_make(&scene, name, FAST);
	}
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < HOST_USES_MAX + 4; i++) {
			for (uint32_t n = 0; n <= 2 * i; n++)
				(void)scene_try(&scene, limiters[i]);
		}
		scene_run(&scene, SEC / 10);
	}
	record = own_record(&scene);
	assert_int_equal(record.use_count, HOST_USES_MAX);
	for (uint32_t i = 0; i < HOST_USES_MAX; i++)
		assert_int_equal(record.uses[i].id, limiters[HOST_USES_MAX + 3 - i]->holding->id);
	assert_null(record_use(&record, limiters[0]->holding->id));
	scene_close(&scene);
}

static void test_a_host_that_renews_nothing_uses_nothing(void **state)
{
	struct host_record record;
	struct limiter *a;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", FAST);
	record = own_record(&scene);
	assert_int_equal(record.use_count, 0);
	use(&scene, a, SEC / 10, 100);
	assert_int_equal(own_record(&scene).use_count, 1);
	scene_run(&scene, 120 * SEC);
	record = own_record(&scene);
	assert_false(record.renews);
	assert_int_equal(record.use_count, 0);
	assert_true(record_use(&record, a->holding->id)->granted == 0);
	scene_close(&scene);
}

/* The slots of the test. */
static struct held_slot told[HOST_SLOTS_MAX];
static uint32_t told_count;

static uint32_t list_slots(struct fleet_listener *listener, struct held_slot list[HOST_SLOTS_MAX])
{
	(void)listener;
	memcpy(list, told, told_count * sizeof(told[0]));
	return told_count;
}

static void test_a_renewal_says_which_slots_are_open_and_since_when(void **state)
{
	struct host_record record;
	unsigned int sent;
	uint64_t since_ns;
	struct limiter *a;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", FAST);
	use(&scene, a, SEC / 10, 300);
	sent = scene.transactions;
	since_ns = scene.now_ns;
	scene.listener.slots = list_slots;
	told_count = 2;
	told[0] = (struct held_slot){{.id = a->holding->id, .pid = 812, .uid = 7}, since_ns};
	told[1] = (struct held_slot){{.id = a->holding->id, .pid = 813}, since_ns + 3600 * SEC};
	use(&scene, a, SEC / 10, 300);
	assert_in_range(scene.transactions - sent, 15 / 2, 21);
	record = own_record(&scene);
	assert_int_equal(record.slot_count, 2);
	assert_int_equal(record.slots[0].id, a->holding->id);
	assert_int_equal(record.slots[0].pid, 812);
	assert_int_equal(record.slots[0].uid, 7);
	/* As the record was written: the last renewal is at most R and a quarter ago. */
	assert_in_range(record.slots[0].held_s, 25, 30);
	assert_int_equal(record.slots[1].held_s, 0);
	assert_ptr_equal(survey_limiter(scene.fleet, &record.slots[0]), a);
	record.slots[0].id++;
	assert_null(survey_limiter(scene.fleet, &record.slots[0]));
	told_count = 0;
	use(&scene, a, SEC / 10, 60);
	assert_int_equal(own_record(&scene).slot_count, 0);
	scene_close(&scene);
}

static void test_a_host_that_renews_nothing_tells_of_no_slots(void **state)
{
	struct limiter *a;
	struct scene scene;

	(void)state;
	scene_open(&scene);
	scene.listener.slots = list_slots;
	a = scene_make(&scene, "a", FAST);
	told_count = 1;
	told[0] = (struct held_slot){{.id = a->holding->id, .pid = 812}, scene.now_ns};
	use(&scene, a, SEC / 10, 100);
	assert_int_equal(own_record(&scene).slot_count, 1);
	scene_run(&scene, 120 * SEC);
	assert_false(own_record(&scene).renews);
	assert_int_equal(own_record(&scene).slot_count, 0);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_renewal_says_how_much_is_granted_and_how_many_wait),
		cmocka_unit_test(test_it_is_told_with_renewals_alone),
		cmocka_unit_test(test_the_largest_are_told_and_no_more_than_there_is_room_for),
		cmocka_unit_test(test_a_host_that_renews_nothing_uses_nothing),
		cmocka_unit_test(test_a_renewal_says_which_slots_are_open_and_since_when),
		cmocka_unit_test(test_a_host_that_renews_nothing_tells_of_no_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
