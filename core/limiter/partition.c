/* partition - the shares of a limiter, see partition.h. */
#include "core/limiter/partition.h"
#include "core/limiter/holding.h"
#include "core/limiter/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t partition_count(const struct limiter *limiter, uint32_t *shares)
{
	struct settings settings;

	limiter_settings(limiter, &settings);
	*shares = settings_partition_count(&settings);
	return *shares + settings.reserve_hosts;
}

static void configure(struct schedule *schedule, struct limiter *partition)
{
	const struct holding *holding = partition->parent->holding;
	struct settings whole, share;

	limiter_settings(partition->parent, &whole);
	if (holding)
		holding_partition_share(holding, partition->partition - 1, &share);
	else
		share = settings_of_partition(&whole, partition->partition - 1);
	limiter_configure(schedule, partition, &share, partition->buckets,
			  !holding || holding->alone);
}

struct limiter *partition_get(struct schedule *schedule, struct limiter *limiter, uint32_t index)
{
	struct limiter *partition;

	if (index >= limiter->partition_slots) {
		uint32_t shares, count = partition_count(limiter, &shares);
		struct limiter **slots;

		assert(index < count);
		slots = realloc(limiter->partitions, count * sizeof(struct limiter *));
		if (!slots)
			return NULL;
		memset(slots + limiter->partition_slots, 0,
		       (count - limiter->partition_slots) * sizeof(struct limiter *));
		limiter->partitions = slots;
		limiter->partition_slots = count;
	}
	if (limiter->partitions[index])
		return limiter->partitions[index];
	partition = tree_new("");
	if (!partition)
		return NULL;
	/* Room for as many limits as there can be: following the limiter must not fail. */
	partition->buckets = calloc(LIMITS_MAX, sizeof(*partition->buckets));
	if (!partition->buckets) {
		limiter_free(partition);
		return NULL;
	}
	partition->parent = limiter;
	partition->partition = index + 1;
	limiter->partitions[index] = partition;
	configure(schedule, partition);
	return partition;
}

uint32_t partition_waiting(const struct limiter *limiter)
{
	uint32_t waiting = 0;

	for (uint32_t i = 0; i < limiter->partition_slots; i++) {
		if (limiter->partitions[i])
			waiting += limiter->partitions[i]->queue.length;
	}
	return waiting;
}

void partition_follow(struct schedule *schedule, struct limiter *limiter)
{
	uint32_t shares, count = partition_count(limiter, &shares);

	partition_remove(schedule, limiter, count);
	for (uint32_t i = 0; i < limiter->partition_slots; i++) {
		if (limiter->partitions[i])
			configure(schedule, limiter->partitions[i]);
	}
}

void partition_remove(struct schedule *schedule, struct limiter *limiter, uint32_t index)
{
	for (uint32_t i = index; i < limiter->partition_slots; i++) {
		struct limiter *partition = limiter->partitions[i];

		if (!partition)
			continue;
		limiter_evict(schedule, partition);
		limiter->partitions[i] = NULL;
		partition->removed = true;
		if (!partition->references)
			limiter_free(partition);
	}
}
