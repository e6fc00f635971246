/*
 * pool - settings that are kept once: limiters that are set to the same share one block.
 *
 * A block is never changed. A change of a limiter takes a reference to another block and drops the
 * one that it had. The defaults are a block of their own that takes no memory.
 */
#ifndef RATEFS_CORE_POOL_H
#define RATEFS_CORE_POOL_H

#include "core/base/chain.h"
#include "core/values/calendar.h"
#include "core/values/settings.h"

struct pool {
	struct chains blocks;	 /* by their text */
	struct wall wall;	 /* the caller's to set */
	uint32_t windowed_count; /* blocks that have windows, of limiters or keys */
};

struct pool_block {
	struct settings settings;
	struct chain_link link;
	struct pool *pool; /* borrowed: it lives longer */
	uint64_t hash;
	uint64_t kept; /* the caller's; begins with 0 */
	uint32_t references;
	struct window *windows; /* owned: one for each limit; NULL: none is of the calendar */
};

/* Begins an empty pool. @seed, which lives longer, is that of the hash: see siphash.h. */
void pool_init(struct pool *pool, const uint64_t seed[2]);

/* Returns a reference to the block whose settings print as @settings do, or NULL: no memory. */
const struct settings *pool_get(struct pool *pool, const struct settings *settings);

/* Returns the caller's number of a block of pool_get(); NULL: it is &SETTINGS_DEFAULT. */
uint64_t *pool_kept(const struct settings *settings);

/*
 * Returns the window of limit @i of @settings, which is of the calendar, of pool_get(): it is there
 * as long as these are.
 */
struct window *pool_window(const struct settings *settings, uint32_t i);

/* Gives back a reference that pool_get() returned, or &SETTINGS_DEFAULT; NULL is none. */
void pool_drop(const struct settings *settings);

#endif
