/* Tests of the pool: equal settings are one block, for as long as a limiter has them. */
#include "core/values/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint64_t SEED[2] = {1, 2};

static struct settings settings_of(const char *config)
{
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	if (settings_parse(config, &settings, error))
		fail_msg("%s", error);
	return settings;
}

static const struct settings *get(struct pool *pool, const char *config)
{
	struct settings settings = settings_of(config);
	const struct settings *block = pool_get(pool, &settings);

	assert_non_null(block);
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_true(setting_equal((enum setting_id)id, block, &settings));
	return block;
}

static void test_equal_settings_are_one_block(void **state)
{
	const struct settings *one, *other;
	struct pool pool;

	(void)state;
	pool_init(&pool, SEED);
	one = get(&pool, "rate=500/s\nburst=3\n");
	other = get(&pool, "burst=3\nrate=500.0/1s\n");
	assert_ptr_equal(one, other);
	assert_int_equal(pool.blocks.count, 1);
	pool_drop(one);
	assert_int_equal(pool.blocks.count, 1);
	pool_drop(other);
	assert_int_equal(pool.blocks.count, 0);
}

static void test_settings_that_differ_are_blocks_of_their_own(void **state)
{
	static const char *const configs[] = {
		"rate=500/s\n",		 "rate=501/s\n",	   "rate=500/s:1\n",
		"rate=500/s\nburst=2\n", "enforcement=shadow\n",   "offline=share:3\n",
		"adapt=aimd\n",		 "backoff=linear\n",	   "concurrency=3\n",
		"key_rate=1/s\n",	 "key_burst=2\n",	   "keys_max=7\n",
		"partitions.count=3\n",	 "partitions.lease=16s\n", "release_interval=1s\n",
		"key_share=leased\n",
	};
	enum { CONFIGS = sizeof(configs) / sizeof(configs[0]) };
	const struct settings *blocks[CONFIGS];
	struct pool pool;

	(void)state;
	pool_init(&pool, SEED);
	for (size_t i = 0; i < CONFIGS; i++) {
		blocks[i] = get(&pool, configs[i]);
		assert_int_equal(pool.blocks.count, i + 1);
	}
	for (size_t i = 0; i < CONFIGS; i++)
		pool_drop(blocks[i]);
	assert_int_equal(pool.blocks.count, 0);
}

static void test_a_block_that_was_dropped_is_made_anew(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool, SEED);
	for (int i = 0; i < 3; i++) {
		pool_drop(get(&pool, "rate=1/s\n"));
		assert_int_equal(pool.blocks.count, 0);
	}
}

static void test_the_defaults_take_no_memory(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool, SEED);
	assert_ptr_equal(get(&pool, "rate=max\n"), &SETTINGS_DEFAULT);
	assert_int_equal(pool.blocks.count, 0);
	pool_drop(&SETTINGS_DEFAULT);
	pool_drop(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_settings_are_one_block),
		cmocka_unit_test(test_settings_that_differ_are_blocks_of_their_own),
		cmocka_unit_test(test_a_block_that_was_dropped_is_made_anew),
		cmocka_unit_test(test_the_defaults_take_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
