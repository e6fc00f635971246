/* Tests of heap, against a plain array that knows the answer. */
#include "core/base/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NODES = 300, STEPS = 60000, SEEDS = 5 };

struct model {
	struct heap heap;
	struct heap_node nodes[NODES];
	bool held[NODES];
	uint64_t keys[NODES];
	uint64_t random;
};

/* xorshift64*: Marsaglia (2003), Vigna (2016). */
static uint64_t draw(struct model *model, uint64_t below)
{
	model->random ^= model->random >> 12;
	model->random ^= model->random << 25;
	model->random ^= model->random >> 27;
	return (model->random * UINT64_C(2685821657736338717) >> 11) % below;
}

/* Nodes under @node; every link leads back, and no child is smaller than its parent. */
static size_t assert_links(const struct heap_node *node)
{
	const struct heap_node *back = node;
	size_t count = 1;

	for (const struct heap_node *child = node->child; child; child = child->next) {
		assert_ptr_equal(child->back, back);
		assert_true(child->key >= node->key);
		count += assert_links(child);
		back = child;
	}
	return count;
}

static void assert_agrees(const struct model *model)
{
	const struct heap_node *root = model->heap.root;
	uint64_t least = UINT64_MAX;
	size_t count = 0;

	for (size_t i = 0; i < NODES; i++) {
		assert_int_equal(heap_holds(&model->nodes[i]), model->held[i]);
		if (!model->held[i])
			continue;
		count++;
		assert_int_equal(model->nodes[i].key, model->keys[i]);
		least = model->keys[i] < least ? model->keys[i] : least;
	}
	assert_int_equal(count != 0, root != NULL);
	if (!root)
		return;
	assert_int_equal(root->key, least);
	assert_ptr_equal(root->back, root);
	assert_null(root->next);
	assert_int_equal(assert_links(root), count);
}

static void model_insert(struct model *model, size_t i, uint64_t key)
{
	heap_insert(&model->heap, &model->nodes[i], key);
	model->held[i] = true;
	model->keys[i] = key;
}

/* Inserts node @i, which is likely to come after @latest. */
static void insert_behind(struct model *model, size_t i, uint64_t key, size_t latest)
{
	heap_insert_by(&model->heap, &model->nodes[i], key,
		       model->held[latest] ? &model->nodes[latest] : NULL, NULL);
	model->held[i] = true;
	model->keys[i] = key;
}

static void model_remove(struct model *model, size_t i)
{
	heap_remove(&model->heap, &model->nodes[i]);
	model->held[i] = false;
}

/* Removes the smallest until nothing is left; they must come in order. */
static void drain(struct model *model)
{
	uint64_t last = 0;

	while (model->heap.root) {
		size_t i = (size_t)(model->heap.root - model->nodes);

		assert_true(model->keys[i] >= last);
		last = model->keys[i];
		model_remove(model, i);
		assert_agrees(model);
	}
}

static void test_an_empty_heap_has_no_root(void **state)
{
	struct model model = {0};

	(void)state;
	assert_null(model.heap.root);
	assert_false(heap_holds(&model.nodes[0]));
}

static void test_removing_a_node_that_is_in_no_heap_does_nothing(void **state)
{
	struct model model = {0};

	(void)state;
	heap_remove(&model.heap, &model.nodes[0]);
	assert_agrees(&model);
	model_insert(&model, 1, 5);
	heap_remove(&model.heap, &model.nodes[0]);
	assert_agrees(&model);
	model_remove(&model, 1);
	heap_remove(&model.heap, &model.nodes[1]);
	assert_agrees(&model);
}

static void test_keys_come_out_in_order_however_they_went_in(void **state)
{
	struct model model = {0};

	(void)state;
	for (size_t i = 0; i < NODES; i++)
		model_insert(&model, i, i);
	drain(&model);
	for (size_t i = 0; i < NODES; i++)
		model_insert(&model, i, NODES - i);
	drain(&model);
	for (size_t i = 0; i < NODES; i++)
		model_insert(&model, i, i * 7919 % NODES);
	drain(&model);
	for (size_t i = 0; i < NODES; i++)
		insert_behind(&model, i, i * 7919 % NODES, i ? i - 1 : i);
	drain(&model);
}

static void test_each_may_come_behind_the_latest(void **state)
{
	struct model model = {0};

	(void)state;
	for (size_t i = 0; i < NODES; i++) {
		insert_behind(&model, i, i / 2, i ? i - 1 : i);
		assert_ptr_equal(model.nodes[i].back, &model.nodes[i ? i - 1 : i]);
	}
	assert_agrees(&model);
	drain(&model);
}

static void test_equal_keys_all_come_out(void **state)
{
	struct model model = {0};

	(void)state;
	for (size_t i = 0; i < NODES; i++)
		model_insert(&model, i, 42);
	assert_agrees(&model);
	for (size_t i = 0; i < NODES; i += 3)
		model_remove(&model, i);
	assert_agrees(&model);
	drain(&model);
}

static void test_the_greatest_and_the_smallest_key_are_keys_like_others(void **state)
{
	struct model model = {0};

	(void)state;
	model_insert(&model, 0, UINT64_MAX);
	model_insert(&model, 1, 0);
	model_insert(&model, 2, UINT64_MAX);
	model_insert(&model, 3, 0);
	assert_agrees(&model);
	drain(&model);
}

static void test_any_node_can_be_removed_from_any_place(void **state)
{
	enum { SMALL = 24 };

	(void)state;
	for (size_t pops = 0; pops < SMALL; pops++) {
		for (size_t victim = 0; victim < SMALL; victim++) {
			struct model model = {.random = 1};

			for (size_t i = 0; i < SMALL; i++)
				model_insert(&model, i, draw(&model, SMALL));
			/* Each removal of the smallest gives the tree another shape. */
			for (size_t i = 0; i < pops; i++)
				model_remove(&model, (size_t)(model.heap.root - model.nodes));
			model_remove(&model, victim);
			assert_agrees(&model);
			drain(&model);
		}
	}
}

static void test_placing_a_node_moves_it_whether_it_was_there_or_not(void **state)
{
	struct model model = {0};
	static const uint64_t keys[] = {50, 10, 90, 90, 0, 50};

	(void)state;
	for (size_t i = 1; i <= 10; i++)
		model_insert(&model, i, i * 10);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		heap_place(&model.heap, &model.nodes[0], keys[i]);
		model.held[0] = true;
		model.keys[0] = keys[i];
		assert_agrees(&model);
	}
	drain(&model);
}

static void random_step(struct model *model, uint64_t key_range)
{
	size_t i = (size_t)draw(model, NODES);
	uint64_t key = draw(model, key_range);

	switch (draw(model, 5)) {
	case 0:
		if (model->heap.root)
			model_remove(model, (size_t)(model->heap.root - model->nodes));
		break;
	case 1:
		heap_place(&model->heap, &model->nodes[i], key);
		model->held[i] = true;
		model->keys[i] = key;
		break;
	case 2:
		if (!model->held[i])
			insert_behind(model, i, key, (size_t)draw(model, NODES));
		break;
	default:
		if (model->held[i])
			model_remove(model, i);
		else
			model_insert(model, i, key);
	}
}

static void test_random_steps_agree_with_a_plain_array(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct model model = {.random = seed};
		/* Few different keys in every other round, so that many are equal. */
		uint64_t key_range = seed % 2 ? 1000000 : 10;

		for (size_t step = 0; step < STEPS; step++) {
			random_step(&model, key_range);
			if (step % 7 == 0)
				assert_agrees(&model);
		}
		drain(&model);
	}
}

static void test_each_node_is_passed_once(void **state)
{
	struct model model = {.random = 5};

	(void)state;
	for (size_t step = 0; step < STEPS / 10; step++) {
		bool seen[NODES] = {false};
		struct heap_node *node;

		random_step(&model, 1000);
		for (node = model.heap.root; node; node = heap_next(node)) {
			assert_false(seen[node - model.nodes]);
			seen[node - model.nodes] = true;
		}
		assert_memory_equal(seen, model.held, sizeof(seen));
	}
}

static void test_two_heaps_do_not_know_of_each_other(void **state)
{
	struct model deadlines = {0}, turns = {0};

	(void)state;
	for (size_t i = 0; i < 10; i++) {
		model_insert(&deadlines, i, i);
		model_insert(&turns, i, 10 - i);
	}
	model_remove(&deadlines, 0);
	model_remove(&turns, 9);
	assert_agrees(&deadlines);
	assert_agrees(&turns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_heap_has_no_root),
		cmocka_unit_test(test_removing_a_node_that_is_in_no_heap_does_nothing),
		cmocka_unit_test(test_keys_come_out_in_order_however_they_went_in),
		cmocka_unit_test(test_each_may_come_behind_the_latest),
		cmocka_unit_test(test_equal_keys_all_come_out),
		cmocka_unit_test(test_the_greatest_and_the_smallest_key_are_keys_like_others),
		cmocka_unit_test(test_any_node_can_be_removed_from_any_place),
		cmocka_unit_test(test_placing_a_node_moves_it_whether_it_was_there_or_not),
		cmocka_unit_test(test_random_steps_agree_with_a_plain_array),
		cmocka_unit_test(test_each_node_is_passed_once),
		cmocka_unit_test(test_two_heaps_do_not_know_of_each_other),
	};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
