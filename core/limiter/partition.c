/* partition - the shares of a limiter, see partition.h. */
#include "core/limiter/partition.h"
#include "core/limiter/bucket.h"
#include "core/limiter/holding.h"
#include "core/limiter/slots.h"
#include "core/limiter/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A partition: its limiter, with memory for all that it can ever be set to. */
struct partition {
	struct limiter limiter; /* first */
	struct sibling sibling; /* of its turns */
	struct settings settings;
	struct unit_buckets buckets;
};

uint32_t partition_count(const struct limiter *limiter, uint32_t *shares)
{
	const struct settings *settings = limiter_settings(limiter);

	*shares = settings_partition_count(settings);
	return *shares + settings->reserve_hosts;
}

uint32_t partition_at(const struct limiter *limiter, uint32_t place)
{
	uint32_t shares = settings_partition_count(limiter_settings(limiter));

	return place < shares ? place : PARTITIONS_MAX + place - shares;
}

bool partition_is_in_pieces(const struct limiter *limiter)
{
	return limiter->holding && !holding_has_numbers(limiter->holding->settings);
}

bool partition_is_there(const struct limiter *limiter, uint32_t index)
{
	const struct settings *settings = limiter_settings(limiter);

	if (index >= PARTITIONS_MAX)
		return index - PARTITIONS_MAX < settings->reserve_hosts;
	return index < settings_partition_count(settings) && !partition_is_in_pieces(limiter);
}

static void configure_partition(struct schedule *schedule, struct limiter *limiter)
{
	const struct holding *holding = limiter->parent->holding;
	struct settings *share = &((struct partition *)limiter)->settings;
	const struct settings old = *share;

	if (holding)
		holding_partition_share(holding, limiter->partition - 1, share);
	else
		*share = settings_of_partition(limiter->parent->settings, limiter->partition - 1);
	limiter_follow(schedule, limiter, &old, limiter->buckets, !holding || holding->alone);
}

static char no_name[] = "";

/* Finds or makes the place of partition @index, which is there. NULL: no memory. */
static struct limiter **get_place(struct limiter *limiter, uint32_t index)
{
	struct limiter ***block;

	if (index >= limiter->partition_room) {
		uint32_t blocks = index / PARTITION_BLOCK + 1;
		uint32_t former = limiter->partition_room / PARTITION_BLOCK;

		assert(partition_is_there(limiter, index));
		block = realloc(limiter->partitions, blocks * sizeof(struct limiter **));
		if (!block)
			return NULL;
		memset(block + former, 0, (blocks - former) * sizeof(struct limiter **));
		limiter->partitions = block;
		limiter->partition_room = (uint16_t)(blocks * PARTITION_BLOCK);
	}
	block = &limiter->partitions[index / PARTITION_BLOCK];
	if (!*block)
		*block = calloc(PARTITION_BLOCK, sizeof(struct limiter *));
	return *block ? &(*block)[index % PARTITION_BLOCK] : NULL;
}

/* Frees the block with the place of partition @index, if it is empty. */
static void free_block(struct limiter *limiter, uint32_t index)
{
	struct limiter ***block = &limiter->partitions[index / PARTITION_BLOCK];

	for (uint32_t i = 0; i < PARTITION_BLOCK; i++) {
		if ((*block)[i])
			return;
	}
	free(*block);
	*block = NULL;
}

struct limiter *partition_get(struct schedule *schedule, struct limiter *limiter, uint32_t index,
			      uint32_t uid)
{
	struct partition *partition;
	struct limiter **place;

	if (partition_find(limiter, index))
		return partition_find(limiter, index);
	if (turns_prepare(&limiter->turns))
		return NULL;
	place = get_place(limiter, index);
	if (!place)
		return NULL;
	/* Room for as many limits as there can be: following the limiter must not fail. */
	partition = calloc(1, sizeof(*partition));
	if (!partition) {
		free_block(limiter, index);
		return NULL;
	}
	partition->limiter.name = no_name;
	partition->limiter.parent = limiter;
	partition->limiter.uid = uid;
	partition->limiter.partition = (uint16_t)(index + 1);
	partition->limiter.settings = &partition->settings;
	partition->limiter.buckets = partition->buckets.buckets;
	turns_place(&partition->limiter.turns, &partition->sibling, &SETTINGS_DEFAULT);
	*place = &partition->limiter;
	users_add(schedule->users, uid, BOUND_LIMITERS);
	configure_partition(schedule, &partition->limiter);
	return &partition->limiter;
}

void partition_free(struct limiter *limiter)
{
	for (uint32_t i = 0; i < limiter->bucket_count; i++)
		bucket_end(&limiter->buckets[i]);
	slots_free(limiter);
	turns_free(&limiter->turns);
	free((struct partition *)limiter);
}

uint32_t partition_waiting(const struct limiter *limiter)
{
	const struct limiter *partition;
	uint32_t waiting = 0, i = 0;

	while ((partition = partition_next(limiter, &i)))
		waiting += partition->turns.queue.length;
	return waiting;
}

static void remove_partition(struct schedule *schedule, struct limiter *partition)
{
	struct limiter *limiter = partition->parent;
	uint32_t index = partition->partition - 1u;

	limiter_evict(schedule, partition);
	limiter->partitions[index / PARTITION_BLOCK][index % PARTITION_BLOCK] = NULL;
	free_block(limiter, index);
	users_drop(schedule->users, partition->uid, BOUND_LIMITERS);
	partition->removed = true;
	if (!partition->references)
		partition_free(partition);
}

/* Gives up places behind the last partition. */
static void trim_places(struct limiter *limiter)
{
	while (limiter->partition_room &&
	       !limiter->partitions[limiter->partition_room / PARTITION_BLOCK - 1])
		limiter->partition_room -= PARTITION_BLOCK;
	if (limiter->partition_room)
		return;
	free(limiter->partitions);
	limiter->partitions = NULL;
}

void partition_follow(struct schedule *schedule, struct limiter *limiter)
{
	bool gathers = schedule->gathers;
	struct limiter *partition;
	uint32_t i = 0;

	schedule->gathers = true;
	while ((partition = partition_next(limiter, &i))) {
		if (partition_is_there(limiter, partition->partition - 1u))
			configure_partition(schedule, partition);
		else
			remove_partition(schedule, partition);
	}
	trim_places(limiter);
	schedule->gathers = gathers;
}

void partition_remove_all(struct schedule *schedule, struct limiter *limiter)
{
	struct limiter *partition;
	uint32_t i = 0;

	while ((partition = partition_next(limiter, &i)))
		remove_partition(schedule, partition);
	trim_places(limiter);
}
