/*
 * partition - the shares of a limiter, each as a limiter of its own.
 *
 * A partition's token is also its limiter's, so reads of partitions and of the limiter together
 * never exceed the rate. A partition is made when it is first asked for, and follows the limiter's
 * settings from then on.
 */
#ifndef RATEFS_CORE_PARTITION_H
#define RATEFS_CORE_PARTITION_H

#include "core/limiter/limiter.h"

enum { PARTITION_BLOCK = 64 }; /* places that are there, or not, together */

/*
 * Returns how many there are. The first @shares have the numbers from 0 on, and share the rate; the
 * others are the reserve's, from PARTITIONS_MAX on.
 */
uint32_t partition_count(const struct limiter *limiter, uint32_t *shares);

/* Returns the number of the one at @place, below their count. */
uint32_t partition_at(const struct limiter *limiter, uint32_t place);

/*
 * Tells whether there is a partition @index. Where the hosts of a fleet share a limiter in pieces
 * only those of the reserve are there.
 */
bool partition_is_there(const struct limiter *limiter, uint32_t index);

/* Tells whether the hosts of a fleet share @limiter in pieces. */
bool partition_is_in_pieces(const struct limiter *limiter);

/* Returns partition @index of @limiter, or NULL: it was not made yet. */
static inline struct limiter *partition_find(const struct limiter *limiter, uint32_t index)
{
	struct limiter **block = index < limiter->partition_room
					 ? limiter->partitions[index / PARTITION_BLOCK]
					 : NULL;

	return block ? block[index % PARTITION_BLOCK] : NULL;
}

/*
 * Returns the first partition of @limiter from number *index on, and moves *index behind it; NULL:
 * there are no more. Others may be made and removed in between.
 */
static inline struct limiter *partition_next(const struct limiter *limiter, uint32_t *index)
{
	while (*index < limiter->partition_room) {
		struct limiter *partition = partition_find(limiter, *index);
		bool skips = !limiter->partitions[*index / PARTITION_BLOCK];

		*index += skips ? PARTITION_BLOCK - *index % PARTITION_BLOCK : 1;
		if (partition)
			return partition;
	}
	return NULL;
}

/*
 * Finds partition @index (which is there) of @limiter, or makes it for @uid, whatever the bounds:
 * it counts as a limiter of that user. NULL when there is no memory. Its buckets begin full.
 */
struct limiter *partition_get(struct schedule *schedule, struct limiter *limiter, uint32_t index,
			      uint32_t uid);

/* Returns the number of readers that wait in partitions of @limiter. */
uint32_t partition_waiting(const struct limiter *limiter);

/*
 * Gives each partition its share of @limiter's settings; those that are not there are removed. No
 * waiter is granted before all partitions follow: limiter_settle() of @limiter has to come next.
 */
void partition_follow(struct schedule *schedule, struct limiter *limiter);

/*
 * Removes all partitions, and their places; readers that wait there get -ENODEV. Comes before the
 * limiter is freed.
 */
void partition_remove_all(struct schedule *schedule, struct limiter *limiter);

/* Frees a partition that was removed and that nothing holds. */
void partition_free(struct limiter *limiter);

#endif
