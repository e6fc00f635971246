/* Tests of tree: limiters by name and by id. */
#include "tests/core/draw.h"
#include "tests/core/stage.h"

#include <stdio.h>

enum { MANY = 3000 };

static struct limiter *insert(struct tree *tree, struct limiter *parent, const char *name)
{
	struct limiter *limiter = tree_new(parent, name);

	assert_non_null(limiter);
	tree_insert(tree, parent, limiter);
	return limiter;
}

static void assert_name(const char *name, int wanted)
{
	char error[ERROR_TEXT] = "";

	assert_int_equal(name_check(name, error), wanted);
	assert_int_equal(wanted != 0, error[0] != '\0');
}

static void test_a_name_is_1_to_255_bytes_without_a_slash_or_a_leading_dot(void **state)
{
	char name[NAME_BYTES_MAX + 2];

	(void)state;
	assert_name("a", 0);
	assert_name("orders and more, \xc3\xa9t\xc3\xa9", 0);
	assert_name("a.b", 0);
	assert_name("", -EINVAL);
	assert_name(".", -EINVAL);
	assert_name("..", -EINVAL);
	assert_name(".hidden", -EINVAL);
	assert_name("a/b", -EINVAL);
	assert_name("/", -EINVAL);
	assert_name("two\nlines", -EINVAL);
	assert_name("del\x7f", -EINVAL);
	memset(name, 'x', sizeof(name));
	name[NAME_BYTES_MAX] = '\0';
	assert_name(name, 0);
	name[NAME_BYTES_MAX] = 'x';
	name[NAME_BYTES_MAX + 1] = '\0';
	assert_name(name, -EINVAL);
}

static void test_each_of_many_is_found_by_name_and_by_id(void **state)
{
	static struct limiter *limiters[MANY];
	struct tree tree;
	char name[32];

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	assert_ptr_equal(tree_find_id(&tree, 0), tree.root);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "limiter%d", i);
		limiters[i] = insert(&tree, tree.root, name);
	}
	assert_int_equal(tree.count, MANY);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "limiter%d", i);
		assert_ptr_equal(tree_find(&tree, tree.root, name), limiters[i]);
		assert_ptr_equal(tree_find_id(&tree, limiters[i]->id), limiters[i]);
	}
	assert_null(tree_find(&tree, tree.root, "limiter"));
	assert_null(tree_find(&tree, limiters[0], "limiter1"));
	assert_null(tree_find_id(&tree, MANY + 1));
	for (int i = 0; i < MANY; i += 2)
		tree_remove(&tree, limiters[i]);
	assert_int_equal(tree.count, MANY / 2);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "limiter%d", i);
		assert_ptr_equal(tree_find(&tree, tree.root, name), i % 2 ? limiters[i] : NULL);
	}
	tree_free(&tree);
}

static void test_one_name_below_two_parents_is_two_limiters(void **state)
{
	struct tree tree;
	struct limiter *a, *b, *ax, *bx;

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	a = insert(&tree, tree.root, "a");
	b = insert(&tree, tree.root, "b");
	ax = insert(&tree, a, "x");
	bx = insert(&tree, b, "x");
	assert_ptr_equal(tree_find(&tree, a, "x"), ax);
	assert_ptr_equal(tree_find(&tree, b, "x"), bx);
	assert_null(tree_find(&tree, tree.root, "x"));
	tree_free(&tree);
}

static void assert_children(const struct limiter *parent, const char *names)
{
	char got[64] = "";

	for (const struct limiter *l = parent->first_child; l; l = l->next_sibling) {
		strcat(got, l->name);
		assert_ptr_equal(
			(l->next_sibling ? l->next_sibling : parent->first_child)->previous_sibling,
			l);
	}
	assert_string_equal(got, names);
}

static void test_siblings_stand_in_order_of_making(void **state)
{
	struct tree tree;
	struct limiter *l[4];
	char name[2] = "a";

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	for (int i = 0; i < 4; i++, name[0]++)
		l[i] = insert(&tree, tree.root, name);
	assert_children(tree.root, "abcd");
	tree_remove(&tree, l[1]);
	assert_children(tree.root, "acd");
	tree_remove(&tree, l[0]);
	assert_children(tree.root, "cd");
	tree_remove(&tree, l[3]);
	assert_children(tree.root, "c");
	l[0] = insert(&tree, tree.root, "a");
	assert_children(tree.root, "ca");
	tree_free(&tree);
}

static void test_an_id_is_never_used_twice(void **state)
{
	struct tree tree;
	uint32_t last = 0;

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	for (int i = 0; i < 100; i++) {
		struct limiter *limiter = insert(&tree, tree.root, "a");

		assert_true(limiter->id > last);
		last = limiter->id;
		tree_remove(&tree, limiter);
		assert_null(tree_find_id(&tree, last));
	}
	tree_free(&tree);
}

static void test_a_renamed_limiter_is_found_by_its_new_name_with_its_children(void **state)
{
	struct tree tree;
	struct limiter *a, *b;
	char path[PATH_TEXT];

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	a = insert(&tree, tree.root, "a");
	b = insert(&tree, a, "b");
	tree_rename(&tree, a, strdup("z"));
	assert_null(tree_find(&tree, tree.root, "a"));
	assert_ptr_equal(tree_find(&tree, tree.root, "z"), a);
	assert_ptr_equal(tree_find(&tree, a, "b"), b);
	tree_path(b, path);
	assert_string_equal(path, "z/b");
	tree_free(&tree);
}

static void test_a_path_of_the_deepest_and_longest_names_fits(void **state)
{
	struct tree tree;
	struct limiter *limiter;
	char name[NAME_BYTES_MAX + 1] = "", path[PATH_TEXT];

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	limiter = tree.root;
	tree_path(limiter, path);
	assert_string_equal(path, "");
	memset(name, 'n', NAME_BYTES_MAX);
	for (uint32_t depth = 1; depth <= DEPTH_MAX; depth++) {
		limiter = insert(&tree, limiter, name);
		assert_int_equal(tree_depth(limiter), depth);
	}
	tree_path(limiter, path);
	assert_int_equal(strlen(path), DEPTH_MAX * (NAME_BYTES_MAX + 1) - 1);
	tree_free(&tree);
}

static void test_a_removed_limiter_lives_on_while_it_is_held(void **state)
{
	struct tree tree;
	struct limiter *limiter;

	(void)state;
	assert_int_equal(tree_init(&tree), 0);
	limiter = insert(&tree, tree.root, "a");
	limiter_hold(limiter);
	limiter_hold(limiter);
	tree_remove(&tree, limiter);
	assert_true(limiter->removed);
	limiter_drop(limiter);
	assert_string_equal(limiter->name, "a");
	limiter_drop(limiter);
	/* One that was not removed stays, held or not. */
	limiter = insert(&tree, tree.root, "b");
	limiter_hold(limiter);
	limiter_drop(limiter);
	assert_ptr_equal(tree_find(&tree, tree.root, "b"), limiter);
	tree_free(&tree);
}

static void test_the_path_of_a_partition_is_its_limiters(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	char path[PATH_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	b = stage_make(&stage, a, "b", "rate=100/s");
	tree_path(partition_get(&stage.engine.schedule, b, 3, 0), path);
	assert_string_equal(path, "a/b");
	stage_close(&stage);
}

static uint64_t count_partitions(const struct limiter *limiter)
{
	uint32_t shares;
	uint64_t count = 0;

	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		count += partition_count(l, &shares) + count_partitions(l);
	return count;
}

static void test_the_sum_of_partitions_is_that_of_a_walk(void **state)
{
	static const char *const configs[] = {
		"rate=100/s",
		"rate=50/s\npartitions.count=7\npartitions.reserve=1/s hosts=3",
		"rate=30/s\npartitions.reserve=none",
		"partitions.count=auto",
		"partitions.count=40",
		"rate=1000/s\npartitions.reserve=10/s hosts=8"};
	enum { PLACES = 12, ROUNDS = 500, CONFIGS = sizeof(configs) / sizeof(*configs) };
	struct limiter *parents[PLACES] = {NULL}, *children[PLACES] = {NULL};
	struct stage stage;
	char name[8];

	(void)state;
	stage_open(&stage);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t place = draw32(PLACES);
		struct limiter **at = draw(2) && parents[place] ? &children[place]
								: &parents[place];
		const char *config = configs[draw32(CONFIGS)];

		snprintf(name, sizeof(name), "l%u", place);
		if (!*at) {
			*at = stage_make(&stage, at == &parents[place] ? NULL : parents[place],
					 name, draw(2) ? "rate=5/s" : NULL);
		} else if (draw(3)) {
			stage_write(&stage, *at, config, 0);
		} else if (!(*at)->first_child) {
			stage_remove(&stage, *at);
			*at = NULL;
		}
		assert_int_equal(stage.engine.tree.partitions,
				 count_partitions(stage.engine.tree.root));
	}
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_is_1_to_255_bytes_without_a_slash_or_a_leading_dot),
		cmocka_unit_test(test_each_of_many_is_found_by_name_and_by_id),
		cmocka_unit_test(test_one_name_below_two_parents_is_two_limiters),
		cmocka_unit_test(test_siblings_stand_in_order_of_making),
		cmocka_unit_test(test_an_id_is_never_used_twice),
		cmocka_unit_test(test_a_renamed_limiter_is_found_by_its_new_name_with_its_children),
		cmocka_unit_test(test_a_path_of_the_deepest_and_longest_names_fits),
		cmocka_unit_test(test_a_removed_limiter_lives_on_while_it_is_held),
		cmocka_unit_test(test_the_path_of_a_partition_is_its_limiters),
		cmocka_unit_test(test_the_sum_of_partitions_is_that_of_a_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
