/*
 * demand - how many partitions a host wants of a limiter.
 *
 * What was granted over the last second goes on; who has waited for longer than a slot shows that it
 * is not enough, and so do readers that waited nearly all of the last slots at full use, however
 * short each time: then twice as much is wanted. Where nothing is held there is no past to go by, and
 * all who wait count.
 *
 * The number is the most of the last second, so that a pause for a breath gives nothing back.
 */
#ifndef RATEFS_CORE_DEMAND_H
#define RATEFS_CORE_DEMAND_H

#include "core/fleet/parts.h"

/* Begins to count: @holding is in use from now on. What a predecessor held was wanted until now. */
void demand_begin(struct fleet *fleet, struct holding *holding);
void demand_resume(struct fleet *fleet, struct holding *holding);

/* Computes what is wanted now; likewise at the end of a slot. */
void demand_update(struct fleet *fleet, struct holding *holding);
void demand_tick(struct fleet *fleet, struct holding *holding);

/* What was wanted until now does not count. */
void demand_forget_wanted(struct holding *holding);

/* Tells whether @holding is not in use any more. */
bool demand_is_idle(const struct holding *holding);

/* Tells whether tokens of this very partition are read. */
bool demand_is_read(const struct holding *holding, uint32_t index);

#endif
