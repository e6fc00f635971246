/* Tests of fleet: leases that are runs of leaves, split and merged, with answers lost and kills. */
#include "tests/core/fleet/scene.h"

#include "core/fleet/tile.h"

#include <stdio.h>

static const char FOLDER[] = "/t/1-1";

enum { LEAVES = LEAVES_MOST };

/* Reads the tiles of limiter 1. */
static struct tiles tiles_of(const struct scene *scene)
{
	char *names[NODES_MAX];
	uint32_t count = 0;
	struct tiles tiles;

	for (uint32_t i = 0; i < scene->node_count; i++) {
		const char *path = scene->nodes[i].path;

		if (!strncmp(path, FOLDER, strlen(FOLDER)) && path[strlen(FOLDER)] == '/')
			names[count++] = (char *)path + strlen(FOLDER) + 1;
	}
	assert_true(tiles_read(&tiles, names, count, LEAVES));
	assert_int_equal(tiles.count, count);
	return tiles;
}

/* Asserts that each leaf is in one tile, and, @at_rest, that this host's tiles are its leases. */
static void assert_sound(const struct scene *scene, const struct limiter *a, bool at_rest)
{
	struct tiles tiles = tiles_of(scene);
	const struct holding *holding = a->holding;
	uint32_t own = 0, leased = 0;

	assert_true(tiles.whole);
	for (uint32_t i = 0; i < tiles.count; i++) {
		if (tile_is_of(&tiles.list[i], fleet_hid(scene->fleet)))
			own += tile_size(&tiles.list[i]);
	}
	for (uint32_t i = 0; i < holding->lease_count && at_rest; i++) {
		const struct lease *lease = &holding->leases[i];
		const struct tile *tile = &tiles.list[tiles_find(&tiles, lease->first)];

		if (lease->state == LEASE_NONE)
			continue;
		leased += lease_size(lease);
		assert_true(tile_is_of(tile, fleet_hid(scene->fleet)));
		assert_int_equal(lease->tile_first, tile->first);
		assert_int_equal(lease->tile_last, tile->last);
		assert_in_range(lease->last, lease->first, tile->last);
	}
	assert_int_equal(leased, holding->leased * at_rest);
	if (at_rest)
		assert_int_equal(own, leased);
	tiles_free(&tiles);
}

/* Another host takes the @nth tile that is free, or gives back the @nth that it has. */
static void meddle(struct scene *scene, uint32_t nth)
{
	struct tiles tiles = tiles_of(scene);
	char name[TILE_TEXT], path[NODE_PATH_MAX];
	struct tile *tile = &tiles.list[nth % tiles.count];

	if (tile_is_clean(tile)) {
		tile_print(tile, name);
		snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
		scene_delete(scene, path);
		strcpy(tile->hid, "otherotheroth");
	} else if (tile_is_of(tile, "otherotheroth")) {
		tile_print(tile, name);
		snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
		scene_delete(scene, path);
		*tile = (struct tile){.first = tile->first, .last = tile->last, .epoch = 2};
		tile->rest.saved = 1;
	} else {
		tiles_free(&tiles);
		return;
	}
	tile_print(tile, name);
	snprintf(path, sizeof(path), "%s/%s", FOLDER, name);
	scene_set(scene, path, NULL);
	tiles_free(&tiles);
}

/* Demand that rises and falls, and a claim of another host that comes and goes. */
static void use(struct scene *scene, struct limiter *a, unsigned int step)
{
	static const char claim[] = "/w/1/otherotheroth-3000-1-0000009999";
	unsigned int readers = step / 300 % 3 * 4;

	for (unsigned int i = 0; i < readers; i++)
		(void)scene_try(scene, a);
	if (step % 20 == 10)
		meddle(scene, step / 20 * 7);
	if (step % 700 == 350)
		scene_set(scene, claim, NULL);
	if (step % 700 == 600)
		scene_delete(scene, claim);
}

/* A limiter whose leaves two hosts have, and some of them none. */
static struct limiter *make(struct scene *scene)
{
	struct limiter *a = scene_make(scene, "a", "rate=1000/s\nburst=100");

	scene_lay(scene, FOLDER,
		  "0-499+2+1 500-899.otherotheroth 900-1099+2+1 1100-1700.otherotheroth "
		  "1701-2000+2+1 2001+2+1 2002-2899.otherotheroth 2900-3333+2+1 "
		  "3334-4095.otherotheroth");
	return a;
}

/* Answers all; loses the outcome of one transaction in @lost, and of one at most at a time. */
static void answer(struct scene *scene, unsigned int lost, unsigned int *count)
{
	bool has_lost = false;

	while (scene->sent_count) {
		bool is_write = scene->sent[0]->kind == REQUEST_TRANSACTION;

		if (is_write && lost && ++*count % lost == 0 && !has_lost) {
			has_lost = true;
			scene_lose(scene, *count / lost % 2);
		} else {
			scene_answer(scene);
		}
	}
}

static bool is_at_rest(const struct scene *scene)
{
	return !scene->sent_count && fleet_state(scene->fleet) == FLEET_READY;
}

static void run(struct scene *scene, struct limiter *a, unsigned int steps, unsigned int lost)
{
	unsigned int count = 0;

	scene->held_up = true;
	for (unsigned int step = 0; step < steps; step++) {
		use(scene, a, step);
		assert_sound(scene, a, is_at_rest(scene));
		answer(scene, lost, &count);
		assert_sound(scene, a, is_at_rest(scene));
		scene_run(scene, 10 * MS);
	}
}

static void test_tiles_that_are_split_and_merged_are_the_leases_of_their_host(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = make(&scene);
	run(&scene, a, 3000, 0);
	assert_true(fleet_counters(scene.fleet)->taken_clean > 3);
	assert_true(fleet_counters(scene.fleet)->given_back > 3);
	assert_int_equal(scene.opened, 1);
	scene_close(&scene);
}

static void test_tiles_and_leases_agree_after_each_outcome_that_was_lost(void **state)
{
	(void)state;
	for (unsigned int lost = 2; lost < 5; lost++) {
		struct scene scene;
		struct limiter *a;

		scene_open(&scene);
		a = make(&scene);
		run(&scene, a, 3000, lost);
		assert_true(fleet_counters(scene.fleet)->unknown > 10);
		assert_int_equal(scene.opened, 1);
		scene_close(&scene);
	}
}

static void test_a_successor_goes_on_with_the_runs_of_its_predecessor(void **state)
{
	struct scene scene;
	struct limiter *a;
	unsigned int count = 0;

	(void)state;
	scene_open(&scene);
	a = make(&scene);
	scene.held_up = true;
	for (unsigned int step = 0; step < 3000; step++) {
		use(&scene, a, step);
		if (step % 251 == 250) {
			/* Some die with a request that is done, and some before. */
			if (step % 2 && scene.sent_count)
				scene_execute(&scene, scene.sent[0]);
			a = scene_succeed(&scene, a);
			scene_connect(&scene);
		}
		answer(&scene, 0, &count);
		assert_sound(&scene, a, is_at_rest(&scene));
		scene_run(&scene, 10 * MS);
	}
	assert_int_equal(scene.opened, 1);
	scene_close(&scene);
}

static bool is_take(const struct request *request)
{
	return request->operation_count > 2 &&
	       !strncmp(request->operations[2].path, FOLDER, strlen(FOLDER));
}

static void test_a_take_that_was_refused_takes_as_much_again(void **state)
{
	struct scene scene;
	struct guest guest;
	struct limiter *a;
	unsigned int takes = 0;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1000/s\nburst=100");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	for (int i = 0; i < 100 && takes < 4; i++) {
		scene_run(&scene, 10 * MS);
		while (scene.sent_count) {
			if (is_take(scene.sent[0]) && takes++ < 3)
				scene_refuse(&scene, ANSWER_NO_NODE, 2);
			else
				scene_answer(&scene);
		}
	}
	assert_int_equal(takes, 4);
	assert_int_equal(a->holding->held, LEAVES);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiles_that_are_split_and_merged_are_the_leases_of_their_host),
		cmocka_unit_test(test_tiles_and_leases_agree_after_each_outcome_that_was_lost),
		cmocka_unit_test(test_a_take_that_was_refused_takes_as_much_again),
		cmocka_unit_test(test_a_successor_goes_on_with_the_runs_of_its_predecessor),
	};

	return cmocka_run_group_tests_name("fleet_runs", tests, NULL, NULL);
}
