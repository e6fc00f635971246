/* chain - a hash table of chains that grows and shrinks one chain at a time, see chain.h. */
#include "core/base/chain.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Entries to a chain: above CHAIN_LONG the table grows, below CHAIN_SHORT it shrinks. */
enum { FIRST_ROOM = 16, CHAIN_LONG = 2, CHAIN_SHORT = 1, PLACE_BITS = 62 };

static void push_link(struct chains *chains, struct chain_link *link)
{
	struct chain_link **head =
		&chains->heads[chains_index(chains, chains->hash(link, chains->seed))];

	link->next = *head;
	*head = link;
}

static int resize_heads(struct chains *chains, uint32_t room)
{
	struct chain_link **heads = realloc(chains->heads, room * sizeof(struct chain_link *));

	if (!heads)
		return -ENOMEM;
	chains->heads = heads;
	chains->room = room;
	return 0;
}

/* Splits one chain: entries go over into a new one, as far as their hashes say so. */
static void split_chain(struct chains *chains)
{
	uint32_t from = chains->size - chains_level(chains->size);
	struct chain_link *link, *next;

	if (chains->size == chains->room && chains->room > UINT32_MAX / 4)
		return;
	if (chains->size == chains->room && resize_heads(chains, chains->room * 2))
		return;
	link = chains->heads[from];
	chains->heads[from] = NULL;
	chains->heads[chains->size++] = NULL;
	for (; link; link = next) {
		next = link->next;
		push_link(chains, link);
	}
}

static void join_chains(struct chains *chains)
{
	struct chain_link *link = chains->heads[--chains->size], *next;

	for (; link; link = next) {
		next = link->next;
		push_link(chains, link);
	}
	if (chains->size <= chains->room / 4)
		(void)resize_heads(chains, chains->room / 2);
}

int chains_insert(struct chains *chains, struct chain_link *link)
{
	if (!chains->heads) {
		chains->heads = calloc(FIRST_ROOM, sizeof(struct chain_link *));
		if (!chains->heads)
			return -ENOMEM;
		chains->size = FIRST_ROOM;
		chains->room = FIRST_ROOM;
	}
	push_link(chains, link);
	if (++chains->count / CHAIN_LONG > chains->size)
		split_chain(chains);
	return 0;
}

void chains_remove(struct chains *chains, struct chain_link *link)
{
	struct chain_link **at =
		&chains->heads[chains_index(chains, chains->hash(link, chains->seed))];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	chains->count--;
	if (chains->size > FIRST_ROOM && chains->count / CHAIN_SHORT < chains->size)
		join_chains(chains);
	if (chains->count)
		return;
	assert(chains->size == FIRST_ROOM);
	free(chains->heads);
	chains->heads = NULL;
}

static uint64_t reverse_bits(uint64_t bits, unsigned int count)
{
	uint64_t result = 0;

	for (unsigned int i = 0; i < count; i++)
		result |= (bits >> i & 1) << (count - 1 - i);
	return result;
}

/*
 * Places are hashes with their bits reversed. So one chain holds an unbroken range of places, and
 * splitting the chain cuts the range in two.
 */
struct chain_link *chains_from(const struct chains *chains, uint64_t *place)
{
	unsigned int bits;
	uint32_t level;

	if (!chains->heads)
		return NULL;
	level = chains_level(chains->size);
	bits = (unsigned int)__builtin_ctz(level) + 1;
	for (uint64_t at = *place >> (PLACE_BITS - bits); at < UINT64_C(1) << bits; at++) {
		uint64_t least = UINT64_MAX, hash = reverse_bits(at, bits);
		struct chain_link *found = NULL;

		for (struct chain_link *l = chains_find(chains, hash); l; l = l->next) {
			uint64_t its = reverse_bits(chains->hash(l, chains->seed), PLACE_BITS);

			if (its >= *place && its < least) {
				least = its;
				found = l;
			}
		}
		if (found) {
			*place = least;
			return found;
		}
	}
	return NULL;
}
