/* pool - settings that are kept once, see pool.h. */
#include "core/values/pool.h"
#include "core/base/siphash.h"

#include <assert.h>
#include <stdlib.h>

enum { SETTINGS_BYTES = SETTING_COUNT * 2 * SETTING_TEXT };

static struct pool_block *block_of(struct chain_link *link)
{
	return (struct pool_block *)((char *)link - offsetof(struct pool_block, link));
}

static uint64_t hash_of(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return ((const struct pool_block *)((const char *)link - offsetof(struct pool_block, link)))
		->hash;
}

void pool_init(struct pool *pool, const uint64_t seed[2])
{
	*pool = (struct pool){.blocks = {.hash = hash_of, .seed = seed}};
}

static struct pool_block *find(const struct pool *pool, const struct settings *settings,
			       uint64_t hash)
{
	struct chain_link *link = chains_find(&pool->blocks, hash);

	for (; link; link = link->next) {
		struct pool_block *block = block_of(link);

		if (block->hash == hash && settings_equal(&block->settings, settings))
			return block;
	}
	return NULL;
}

/* Gets the windows of @block, if it is to have some. 0 or -1. */
static int make_windows(struct pool_block *block)
{
	const struct settings *settings = &block->settings;

	if (!settings_have_windows(settings))
		return 0;
	block->windows = calloc(settings->limit_count, sizeof(*block->windows));
	if (!block->windows)
		return -1;
	for (uint32_t i = 0; i < settings->limit_count; i++)
		block->windows[i] = (struct window){.rate = &settings->limits[i].rate,
						    .wall = &block->pool->wall};
	return 0;
}

/* Tells whether @block, of the limiter or its keys, has windows of the calendar. */
static bool is_windowed(const struct pool_block *block)
{
	return settings_have_windows(&block->settings) ||
	       settings_have_key_windows(&block->settings);
}

static void free_block(struct pool_block *block)
{
	free(block->windows);
	settings_drop(&block->settings);
	free(block);
}

static uint64_t hash_settings(const struct pool *pool, const struct settings *settings)
{
	const struct overrides *overrides = settings->overrides;
	struct settings plain = *settings;
	char text[SETTINGS_BYTES];
	uint64_t hash;

	plain.overrides = NULL;
	hash = siphash(text, settings_print(&plain, text, sizeof(text)), pool->blocks.seed);
	if (!overrides)
		return hash;
	return hash ^
	       siphash(overrides_text(overrides), overrides_length(overrides), pool->blocks.seed);
}

const struct settings *pool_get(struct pool *pool, const struct settings *settings)
{
	struct pool_block *block;
	uint64_t hash;

	if (settings_equal(&SETTINGS_DEFAULT, settings))
		return &SETTINGS_DEFAULT;
	hash = hash_settings(pool, settings);
	block = find(pool, settings, hash);
	if (block) {
		block->references++;
		return &block->settings;
	}
	block = malloc(sizeof(*block));
	if (!block)
		return NULL;
	*block = (struct pool_block){
		.settings = settings_hold(settings), .pool = pool, .hash = hash, .references = 1};
	if (make_windows(block) || chains_insert(&pool->blocks, &block->link)) {
		free_block(block);
		return NULL;
	}
	pool->windowed_count += is_windowed(block);
	return &block->settings;
}

uint64_t *pool_kept(const struct settings *settings)
{
	return settings == &SETTINGS_DEFAULT ? NULL : &((struct pool_block *)settings)->kept;
}

struct window *pool_window(const struct settings *settings, uint32_t i)
{
	const struct pool_block *block = (const struct pool_block *)settings;

	assert(settings != &SETTINGS_DEFAULT && i < settings->limit_count && block->windows);
	return &block->windows[i];
}

void pool_drop(const struct settings *settings)
{
	struct pool_block *block = (struct pool_block *)settings;

	if (!settings || settings == &SETTINGS_DEFAULT)
		return;
	assert(block->references);
	if (--block->references)
		return;
	chains_remove(&block->pool->blocks, &block->link);
	block->pool->windowed_count -= is_windowed(block);
	free_block(block);
}
