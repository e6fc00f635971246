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

/* Returns their number; the first @shares share the rate, the others are the reserve's. */
uint32_t partition_count(const struct limiter *limiter, uint32_t *shares);

/*
 * Finds or makes partition @index (below the count) of @limiter; NULL when there is no memory. Its
 * buckets begin full.
 */
struct limiter *partition_get(struct schedule *schedule, struct limiter *limiter, uint32_t index);

/* Returns the number of readers that wait in partitions of @limiter. */
uint32_t partition_waiting(const struct limiter *limiter);

/* Gives each partition its share of @limiter's settings; those beyond the count are removed. */
void partition_follow(struct schedule *schedule, struct limiter *limiter);

/* Removes the partitions from @index on; readers that wait there get -ENODEV. */
void partition_remove(struct schedule *schedule, struct limiter *limiter, uint32_t index);

/* Frees a partition that was removed and that nothing holds. */
void partition_free(struct limiter *limiter);

#endif
