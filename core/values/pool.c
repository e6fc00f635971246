/* pool - settings that are kept once, see pool.h. */
#include "core/values/pool.h"
#include "core/base/siphash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

/* Tells whether @a and @b have the same text. Their bytes may differ where that says nothing. */
static bool are_equal(const struct settings *a, const struct settings *b)
{
	if (!memcmp(a, b, sizeof(*a)))
		return true;
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (!setting_equal((enum setting_id)id, a, b))
			return false;
	}
	return true;
}

static struct pool_block *find(const struct pool *pool, const struct settings *settings,
			       uint64_t hash)
{
	struct chain_link *link = chains_find(&pool->blocks, hash);

	for (; link; link = link->next) {
		struct pool_block *block = block_of(link);

		if (block->hash == hash && are_equal(&block->settings, settings))
			return block;
	}
	return NULL;
}

const struct settings *pool_get(struct pool *pool, const struct settings *settings)
{
	char text[SETTINGS_BYTES];
	struct pool_block *block;
	uint64_t hash;

	if (are_equal(&SETTINGS_DEFAULT, settings))
		return &SETTINGS_DEFAULT;
	hash = siphash(text, settings_print(settings, text, sizeof(text)), pool->blocks.seed);
	block = find(pool, settings, hash);
	if (block) {
		block->references++;
		return &block->settings;
	}
	block = malloc(sizeof(*block));
	if (!block)
		return NULL;
	*block = (struct pool_block){
		.settings = *settings, .pool = pool, .hash = hash, .references = 1};
	if (chains_insert(&pool->blocks, &block->link)) {
		free(block);
		return NULL;
	}
	return &block->settings;
}

uint64_t *pool_kept(const struct settings *settings)
{
	return settings == &SETTINGS_DEFAULT ? NULL : &((struct pool_block *)settings)->kept;
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
	free(block);
}
