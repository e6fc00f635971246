/*
 * chain - a hash table of chains that grows and shrinks one chain at a time, so that no single
 * insertion takes long, however many there are.
 *
 * Litwin: "Linear hashing: a new tool for file and table addressing" (1980). The links are the
 * entries' own. Without memory the chains just grow longer, so nothing here fails but the first
 * insertion.
 */
#ifndef RATEFS_CORE_CHAIN_H
#define RATEFS_CORE_CHAIN_H

#include "core/base/container.h"

#include <stdint.h>

struct chain_link {
	struct chain_link *next;
};

struct chains {
	struct chain_link **heads; /* owned; NULL while there are no entries */
	uint32_t size;		   /* chains in use */
	uint32_t room;		   /* for chains, a power of two */
	uint32_t count;		   /* entries */
	uint64_t (*hash)(const struct chain_link *link, const void *seed);
	const void *seed; /* borrowed; for @hash */
};

/* Puts @link into @chains. 0 or -ENOMEM. */
int chains_insert(struct chains *chains, struct chain_link *link);

/* Takes @link out of @chains, in which it is. */
void chains_remove(struct chains *chains, struct chain_link *link);

/* Returns the largest power of two that is not above @size: chains from it on were split off. */
static inline uint32_t chains_level(uint32_t size)
{
	return UINT32_C(1) << (31 - __builtin_clz(size));
}

/* Returns the number of the chain in which entries with @hash are. */
static inline uint32_t chains_index(const struct chains *chains, uint64_t hash)
{
	uint32_t level = chains_level(chains->size);
	uint32_t index = (uint32_t)hash & (2 * level - 1);

	return index < chains->size ? index : index - level;
}

/* Returns the first of the chain in which entries with @hash are, or NULL. */
static inline struct chain_link *chains_find(const struct chains *chains, uint64_t hash)
{
	return chains->heads ? chains->heads[chains_index(chains, hash)] : NULL;
}

/*
 * Returns the first entry whose place is not below *@place, and its place; NULL: there are no more.
 * Places are numbers of 62 bits. They stay the same while the table grows and shrinks, so they are
 * an order in which all entries can be listed.
 */
struct chain_link *chains_from(const struct chains *chains, uint64_t *place);

#endif
