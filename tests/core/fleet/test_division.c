/* Tests of division: children of a limiter have their order over all hosts that claim for them. */
#include "core/fleet/division.h"
#include "tests/core/draw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { HOSTS_MAX = 30, CHILDREN_MAX = 12, ROUNDS = 3000 };

/* A line of claims, and the children that they are about. */
struct scene {
	struct claim claims[HOSTS_MAX];
	struct part parts[HOSTS_MAX][PARTS_MAX];
	uint32_t hosts, capacity;
	struct part children[CHILDREN_MAX]; /* `wanted`, `gets` and `least` over all hosts */
	uint32_t child_count;
};

/* Adds a child with its place among the siblings. Returns its id. */
static uint32_t add_child(struct scene *scene, uint32_t weight, uint32_t min, uint32_t priority)
{
	uint32_t id = scene->child_count++;

	scene->children[id] =
		(struct part){.child = id, .weight = weight, .min = min, .priority = priority};
	return id;
}

/* Adds a host that claims @wanted in all. Returns its number. */
static uint32_t add_host(struct scene *scene, uint32_t wanted, uint32_t weight)
{
	uint32_t host = scene->hosts++;

	scene->claims[host] = (struct claim){
		.wanted = wanted,
		.weight = weight,
		.sequence = host,
		.parts = scene->parts[host],
	};
	return host;
}

/* Lets child @child want @wanted on @host. */
static void want(struct scene *scene, uint32_t host, uint32_t child, uint32_t wanted)
{
	struct claim *claim = &scene->claims[host];
	struct part *part = &claim->parts[claim->part_count++];

	*part = scene->children[child];
	part->wanted = wanted;
	if (scene->children[child].child == PART_REST)
		part->min = 0;
}

static const struct claim *claim_of(const struct scene *scene, uint64_t sequence)
{
	for (uint32_t i = 0; i < scene->hosts; i++) {
		if (scene->claims[i].sequence == sequence)
			return &scene->claims[i];
	}
	fail_msg("the claim %llu is lost", (unsigned long long)sequence);
	return NULL;
}

/* Divides @capacity, and sums up what each child gets. */
static void divide(struct scene *scene, uint32_t capacity)
{
	scene->capacity = capacity;
	division_make(scene->claims, scene->hosts, capacity);
	for (uint32_t i = 0; i < scene->child_count; i++)
		scene->children[i].wanted = scene->children[i].gets = scene->children[i].least = 0;
	for (uint32_t i = 0; i < scene->hosts; i++) {
		const struct claim *claim = &scene->claims[i];

		for (uint32_t j = 0; j < claim->part_count; j++) {
			struct part *child = &scene->children[claim->parts[j].child];

			child->wanted += claim->parts[j].wanted;
			child->gets += claim->parts[j].gets;
			child->least += claim->parts[j].least;
		}
	}
}

static uint32_t gets(const struct scene *scene, uint32_t host)
{
	return claim_of(scene, host)->gets;
}

#define LIST(...) ((const uint32_t[]){__VA_ARGS__})

/* Children of @weights, @mins and @wants, on @hosts hosts each, get @expected of @capacity. */
static void assert_children(uint32_t capacity, uint32_t hosts, uint32_t count,
			    const uint32_t *weights, const uint32_t *mins, const uint32_t *wants,
			    const uint32_t *expected)
{
	struct scene scene = {0};

	for (uint32_t i = 0; i < count; i++)
		add_child(&scene, weights[i], mins[i], 0);
	for (uint32_t host = 0; host < hosts; host++)
		add_host(&scene, UINT32_MAX, 1);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t host = 0; host < hosts; host++)
			want(&scene, host, i, wants[i]);
	}
	divide(&scene, capacity);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(scene.children[i].gets, expected[i]);
}

/* YARN: ComputeFairShares, of TestComputeFairShares.java; weights are written tenfold. */
static void test_the_published_rows_of_yarn_come_out_on_any_number_of_hosts(void **state)
{
	const uint32_t *equal = LIST(10, 10, 10, 10), *weights = LIST(20, 10, 10, 5);
	const uint32_t *none = LIST(0, 0, 0, 0), *all = LIST(1000, 1000, 1000, 1000);

	(void)state;
	for (uint32_t hosts = 1; hosts <= 5; hosts++) {
		assert_children(40, hosts, 4, equal, none, all, LIST(10, 10, 10, 10));
		assert_children(40, hosts, 4, equal, LIST(20, 18, 0, 2), all, LIST(20, 18, 0, 2));
		assert_children(45, hosts, 4, weights, none, all, LIST(20, 10, 10, 5));
		assert_children(45, hosts, 4, weights, LIST(20, 0, 5, 15), all, LIST(20, 5, 5, 15));
	}
	assert_children(40, 1, 4, equal, none, LIST(100, 50, 11, 3), LIST(13, 13, 11, 3));
	assert_children(45, 1, 4, weights, none, LIST(10, 11, 12, 5), LIST(10, 11, 12, 5));
}

static void test_a_high_class_on_one_host_comes_before_a_low_one_on_another(void **state)
{
	struct scene scene = {0};
	uint32_t high = add_child(&scene, 100, 0, 1), low = add_child(&scene, 10000, 0, 0);

	(void)state;
	want(&scene, add_host(&scene, 4096, 1), low, 4096);
	want(&scene, add_host(&scene, 3000, 1), high, 3000);
	divide(&scene, 4096);
	assert_int_equal(gets(&scene, 0), 1096);
	assert_int_equal(gets(&scene, 1), 3000);
	divide(&scene, 2000);
	assert_int_equal(gets(&scene, 0), 0);
	assert_int_equal(gets(&scene, 1), 2000);
	/* Turns are taken within a class: none keeps the low one from its share. */
	assert_false(claim_of(&scene, 0)->starves);
}

static void test_hosts_of_one_class_starve_where_it_has_too_little_for_all(void **state)
{
	struct scene scene = {0};
	uint32_t high = add_child(&scene, 100, 0, 1), low = add_child(&scene, 100, 0, 0);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		want(&scene, add_host(&scene, 1, 1), high, 1);
	want(&scene, add_host(&scene, 1, 1), low, 1);
	divide(&scene, 2);
	assert_int_equal(gets(&scene, 1), 1);
	assert_true(claim_of(&scene, 2)->starves);
	assert_false(claim_of(&scene, 3)->starves);
}

static void test_children_on_two_hosts_share_by_their_weights(void **state)
{
	struct scene scene = {0};
	uint32_t a = add_child(&scene, 100, 0, 0), b = add_child(&scene, 300, 0, 0);

	(void)state;
	want(&scene, add_host(&scene, 4096, 1), a, 4096);
	want(&scene, add_host(&scene, 4096, 1), b, 4096);
	divide(&scene, 4096);
	assert_int_equal(gets(&scene, 0), 1024);
	assert_int_equal(gets(&scene, 1), 3072);
}

static void test_a_child_on_three_hosts_has_no_more_than_its_sibling_on_one(void **state)
{
	struct scene scene = {0};
	uint32_t a = add_child(&scene, 100, 0, 0), b = add_child(&scene, 100, 0, 0);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		want(&scene, add_host(&scene, 4096, 1), a, 4096);
	want(&scene, 2, b, 4096);
	divide(&scene, 4096);
	assert_int_equal(scene.children[a].gets, 2048);
	assert_int_equal(scene.children[b].gets, 2048);
	assert_int_equal(gets(&scene, 0), 683);
	assert_int_equal(gets(&scene, 2), 2048 + 682);
}

static void test_a_min_holds_over_all_hosts_and_before_every_class(void **state)
{
	struct scene scene = {0};
	uint32_t high = add_child(&scene, 100, 0, 9), sure = add_child(&scene, 100, 1000, 0);

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		want(&scene, add_host(&scene, 4096, 1), high, 4096);
	want(&scene, 0, sure, 4096);
	want(&scene, 1, sure, 100);
	divide(&scene, 4096);
	assert_int_equal(scene.children[sure].gets, 1000);
	assert_int_equal(scene.children[sure].least, 1000);
	assert_int_equal(claim_of(&scene, 1)->parts[1].least, 100);
	assert_int_equal(claim_of(&scene, 0)->parts[1].least, 900);
	assert_int_equal(gets(&scene, 2), 3096 / 3);
}

static void test_hosts_of_one_child_share_it_by_their_weights(void **state)
{
	struct scene scene = {0};
	uint32_t a = add_child(&scene, 100, 0, 0), b = add_child(&scene, 100, 0, 0);

	(void)state;
	want(&scene, add_host(&scene, 4096, 1), a, 4096);
	want(&scene, add_host(&scene, 4096, 3), a, 4096);
	want(&scene, add_host(&scene, 4096, 1), b, 4096);
	divide(&scene, 4096);
	assert_int_equal(gets(&scene, 0), 512);
	assert_int_equal(gets(&scene, 1), 1536);
	assert_int_equal(gets(&scene, 2), 2048);
}

static void test_no_host_gets_more_than_it_claims_and_others_have_the_rest(void **state)
{
	struct scene scene = {0};
	uint32_t a = add_child(&scene, 100, 0, 0), b = add_child(&scene, 100, 0, 0);

	(void)state;
	add_host(&scene, 40, 1);
	add_host(&scene, 100, 1);
	want(&scene, 0, a, 40);
	want(&scene, 0, b, 40);
	want(&scene, 1, a, 100);
	divide(&scene, 100);
	assert_int_equal(gets(&scene, 0), 40);
	assert_int_equal(gets(&scene, 1), 60);
}

static void test_leaves_that_are_held_without_a_claim_are_due(void **state)
{
	struct scene scene = {0};
	uint32_t high = add_child(&scene, 100, 0, 9);

	(void)state;
	want(&scene, add_host(&scene, 4096, 1), high, 4096);
	scene.claims[add_host(&scene, 500, 1)].is_due = true;
	divide(&scene, 4096);
	assert_int_equal(gets(&scene, 0), 3596);
	assert_int_equal(gets(&scene, 1), 500);
}

/* A line of some hosts, some of them with children: few or many, of few classes or of all. */
static void draw_scene(struct scene *scene, uint64_t seed)
{
	uint32_t children, classes, most;

	draw_state = seed * UINT64_C(0x9e3779b97f4a7c15);
	*scene = (struct scene){.capacity = draw32(draw32(2) ? 40 : 4097)};
	children = 1 + draw32(CHILDREN_MAX);
	classes = 1 + draw32(draw32(2) ? 3 : PRIORITIES);
	most = 1 + draw32(draw32(2) ? 10 : 4096);
	for (uint32_t i = 0; i < children; i++)
		add_child(scene, i ? 1 + draw32(draw32(2) ? 4 : 10000) : SIBLING_WEIGHT_DEFAULT,
			  i && !draw32(3) ? draw32(scene->capacity / children + 1) : 0,
			  i ? draw32(classes) : 0);
	for (uint32_t i = 1 + draw32(HOSTS_MAX - 1); i > 0; i--) {
		uint32_t host = add_host(scene, 1 + draw32(most), 1 + draw32(draw32(2) ? 1 : 1000));
		uint32_t chance = 1 + draw32(4);

		for (uint32_t child = 0; child < children; child++) {
			if (!draw32(chance))
				want(scene, host, child, 1 + draw32(scene->claims[host].wanted));
		}
	}
}

/* Tells whether a host that @child is on has all that it claims: no more can go to it there. */
static bool is_bounded(const struct scene *scene, uint32_t child)
{
	for (uint32_t i = 0; i < scene->hosts; i++) {
		const struct claim *claim = &scene->claims[i];
		uint64_t wanted = 0;
		bool wants = !child && !claim->part_count;

		for (uint32_t j = 0; j < claim->part_count; j++) {
			wanted += claim->parts[j].wanted;
			wants |= claim->parts[j].child == child;
		}
		if (wants && wanted > claim->wanted)
			return true;
	}
	return false;
}

/* Adds what hosts without parts want and get to their child. */
static void add_plain(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->hosts; i++) {
		if (scene->claims[i].part_count)
			continue;
		scene->children[0].wanted += scene->claims[i].wanted;
		scene->children[0].gets += scene->claims[i].gets;
	}
}

/* Of two children that hosts do not bound @a, which gets less than it wants, has its part. */
static void assert_order(const struct part *a, const struct part *b)
{
	if (a->gets == a->wanted || b->gets <= b->least)
		return;
	assert_false(b->priority < a->priority);
	if (b->priority == a->priority)
		assert_true((uint64_t)(b->gets - 1) * a->weight <
			    (uint64_t)(a->gets + 1) * b->weight);
}

static void test_random_lines_keep_the_order_of_children(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct scene scene;

		draw_scene(&scene, seed);
		divide(&scene, scene.capacity);
		add_plain(&scene);
		for (uint32_t i = 0; i < scene.child_count; i++) {
			const struct part *child = &scene.children[i];
			uint32_t sure = child->wanted < child->min ? child->wanted : child->min;

			assert_true(child->gets <= child->wanted);
			if (is_bounded(&scene, i))
				continue;
			assert_true(child->gets >= sure);
			for (uint32_t j = 0; j < scene.child_count; j++)
				assert_order(child, &scene.children[j]);
		}
	}
}

static void test_random_lines_have_the_right_sum_and_stay_in_bounds(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint64_t wanted = 0, sum = 0;
		struct scene scene;

		draw_scene(&scene, seed);
		divide(&scene, scene.capacity);
		for (uint32_t i = 0; i < scene.hosts; i++) {
			const struct claim *claim = &scene.claims[i];
			uint64_t parts = 0, part_gets = 0;

			for (uint32_t j = 0; j < claim->part_count; j++) {
				assert_true(claim->parts[j].gets <= claim->parts[j].wanted);
				assert_true(claim->parts[j].least <= claim->parts[j].gets);
				parts += claim->parts[j].wanted;
				part_gets += claim->parts[j].gets;
			}
			if (claim->part_count)
				assert_int_equal(part_gets, claim->gets);
			else
				parts = claim->wanted;
			wanted += parts < claim->wanted ? parts : claim->wanted;
			sum += claim->gets;
			assert_true(claim->gets <= claim->wanted);
		}
		assert_int_equal(sum, wanted < scene.capacity ? wanted : scene.capacity);
	}
}

static void test_the_order_in_which_claims_are_seen_does_not_matter(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint32_t expected[HOSTS_MAX];
		struct scene scene;

		draw_scene(&scene, seed);
		divide(&scene, scene.capacity);
		for (uint32_t i = 0; i < scene.hosts; i++)
			expected[i] = gets(&scene, i);
		for (uint32_t i = scene.hosts; i > 1; i--) {
			uint32_t j = draw32(i);
			struct claim claim = scene.claims[i - 1];

			scene.claims[i - 1] = scene.claims[j];
			scene.claims[j] = claim;
		}
		divide(&scene, scene.capacity);
		for (uint32_t i = 0; i < scene.hosts; i++)
			assert_int_equal(gets(&scene, i), expected[i]);
	}
}

static void test_without_parts_shares_are_those_of_hosts_alone(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct claim plain[HOSTS_MAX];
		struct scene scene;
		uint32_t one;

		draw_scene(&scene, seed);
		one = draw32(scene.hosts);
		for (uint32_t i = 0; i < scene.hosts; i++) {
			scene.claims[i].part_count = 0;
			plain[i] = scene.claims[i];
		}
		division_plain(plain, scene.hosts, scene.capacity);
		/* A claim that lists the own queue says the same as one without parts. */
		if (draw32(2))
			want(&scene, one, 0, scene.claims[one].wanted);
		divide(&scene, scene.capacity);
		for (uint32_t i = 0; i < scene.hosts; i++)
			assert_int_equal(gets(&scene, (uint32_t)plain[i].sequence), plain[i].gets);
	}
}

static void test_children_that_are_not_listed_are_one_for_each_class_and_host(void **state)
{
	struct scene scene = {0};
	uint32_t listed = add_child(&scene, 100, 0, 0);
	const struct part rest = {.child = PART_REST, .weight = 300, .priority = 0, .wanted = 4096};
	const struct part high = {.child = PART_REST, .weight = 100, .priority = 2, .wanted = 96};

	(void)state;
	want(&scene, add_host(&scene, 4096, 1), listed, 4096);
	add_host(&scene, 4096, 1);
	scene.parts[1][0] = high;
	scene.parts[1][1] = rest;
	scene.claims[1].part_count = 2;
	division_make(scene.claims, 2, 4096);
	assert_int_equal(gets(&scene, 0), 1000);
	assert_int_equal(gets(&scene, 1), 3096);
	assert_int_equal(claim_of(&scene, 1)->parts[0].gets, 96);
}

/* Returns the host that gets the only piece, and puts its claim to the end of the line. */
static uint32_t take_turn(struct scene *scene, uint64_t last, uint32_t *hosts)
{
	uint32_t host = UINT32_MAX;

	divide(scene, 1);
	for (uint32_t i = 0; i < scene->hosts; i++) {
		struct claim *claim = &scene->claims[i];

		if (!claim->gets)
			continue;
		assert_int_equal(host, UINT32_MAX);
		host = hosts[claim->sequence];
		hosts[last] = host;
		claim->sequence = last;
	}
	return host;
}

static void test_children_take_turns_of_one_piece(void **state)
{
	struct scene scene = {0};
	uint32_t own = add_child(&scene, 100, 0, 0), child = add_child(&scene, 100, 0, 0);
	uint32_t hosts[7] = {0, 1, 2};

	(void)state;
	want(&scene, add_host(&scene, 1, 1), own, 1);
	want(&scene, add_host(&scene, 1, 1), child, 1);
	want(&scene, add_host(&scene, 1, 1), child, 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(take_turn(&scene, 3 + i, hosts), i % 3);
}

static void test_on_random_lines_each_host_has_its_turn(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		uint32_t turns[HOSTS_MAX] = {0}, hosts[2 * HOSTS_MAX];
		struct scene scene;

		draw_scene(&scene, seed);
		for (uint32_t i = 0; i < scene.hosts; i++) {
			hosts[i] = i;
			for (uint32_t j = 0; j < scene.claims[i].part_count; j++)
				scene.parts[i][j].min = scene.parts[i][j].priority = 0;
		}
		for (uint32_t i = 0; i < scene.hosts; i++)
			turns[take_turn(&scene, scene.hosts + i, hosts)]++;
		for (uint32_t i = 0; i < scene.hosts; i++)
			assert_int_equal(turns[i], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_published_rows_of_yarn_come_out_on_any_number_of_hosts),
		cmocka_unit_test(test_a_high_class_on_one_host_comes_before_a_low_one_on_another),
		cmocka_unit_test(test_hosts_of_one_class_starve_where_it_has_too_little_for_all),
		cmocka_unit_test(test_children_on_two_hosts_share_by_their_weights),
		cmocka_unit_test(test_a_child_on_three_hosts_has_no_more_than_its_sibling_on_one),
		cmocka_unit_test(test_a_min_holds_over_all_hosts_and_before_every_class),
		cmocka_unit_test(test_hosts_of_one_child_share_it_by_their_weights),
		cmocka_unit_test(test_no_host_gets_more_than_it_claims_and_others_have_the_rest),
		cmocka_unit_test(test_leaves_that_are_held_without_a_claim_are_due),
		cmocka_unit_test(test_random_lines_keep_the_order_of_children),
		cmocka_unit_test(test_random_lines_have_the_right_sum_and_stay_in_bounds),
		cmocka_unit_test(test_the_order_in_which_claims_are_seen_does_not_matter),
		cmocka_unit_test(test_without_parts_shares_are_those_of_hosts_alone),
		cmocka_unit_test(test_children_that_are_not_listed_are_one_for_each_class_and_host),
		cmocka_unit_test(test_children_take_turns_of_one_piece),
		cmocka_unit_test(test_on_random_lines_each_host_has_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
