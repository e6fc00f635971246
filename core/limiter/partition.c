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

bool partition_is_in_pieces(const struct limiter *limiter)
{
	return limiter->holding && !holding_has_numbers(limiter->holding->settings);
}

bool partition_is_there(const struct limiter *limiter, uint32_t index)
{
	uint32_t shares, count = partition_count(limiter, &shares);

	return index < count && (index >= shares || !partition_is_in_pieces(limiter));
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

struct limiter *partition_get(struct schedule *schedule, struct limiter *limiter, uint32_t index)
{
	struct partition *partition;

	if (index >= limiter->partition_room) {
		uint32_t shares, count = partition_count(limiter, &shares);
		struct limiter **slots;

		assert(partition_is_there(limiter, index));
		slots = realloc(limiter->partitions, count * sizeof(struct limiter *));
		if (!slots)
			return NULL;
		memset(slots + limiter->partition_room, 0,
		       (count - limiter->partition_room) * sizeof(struct limiter *));
		limiter->partitions = slots;
		limiter->partition_room = (uint16_t)count;
	}
	if (limiter->partitions[index])
		return limiter->partitions[index];
	if (turns_prepare(&limiter->turns))
		return NULL;
	/* Room for as many limits as there can be: following the limiter must not fail. */
	partition = calloc(1, sizeof(*partition));
	if (!partition)
		return NULL;
	partition->limiter.name = no_name;
	partition->limiter.parent = limiter;
	partition->limiter.partition = (uint16_t)(index + 1);
	partition->limiter.settings = &partition->settings;
	partition->limiter.buckets = partition->buckets.buckets;
	turns_place(&partition->limiter.turns, &partition->sibling, &SETTINGS_DEFAULT);
	limiter->partitions[index] = &partition->limiter;
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
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (limiter->partitions[i])
			waiting += limiter->partitions[i]->turns.queue.length;
	}
	return waiting;
}

static void remove_partition(struct schedule *schedule, struct limiter *limiter, uint32_t index)
{
	struct limiter *partition = limiter->partitions[index];

	limiter_evict(schedule, partition);
	limiter->partitions[index] = NULL;
	partition->removed = true;
	if (!partition->references)
		partition_free(partition);
}

void partition_follow(struct schedule *schedule, struct limiter *limiter)
{
	bool gathers = schedule->gathers;

	schedule->gathers = true;
	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (!limiter->partitions[i])
			continue;
		if (partition_is_there(limiter, i))
			configure_partition(schedule, limiter->partitions[i]);
		else
			remove_partition(schedule, limiter, i);
	}
	schedule->gathers = gathers;
}

void partition_remove_all(struct schedule *schedule, struct limiter *limiter)
{
	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (limiter->partitions[i])
			remove_partition(schedule, limiter, i);
	}
}
