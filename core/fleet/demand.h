/*
 * demand - how many partitions a host wants of a limiter.
 *
 * The rate of the last second is taken to go on. A reader that has waited for longer than a period
 * shows that it is not enough; so do readers that waited nearly all of the last periods at full
 * use, however short each time: then twice as much is wanted. Where nothing is held there is no
 * past to go by, and all waiters count.
 *
 * The number is the most of the last second, so that a pause for a breath gives nothing back.
 *
 * Where partitions have no numbers, it is leaves that are wanted, as appetite.h has it.
 */
#ifndef RATEFS_CORE_DEMAND_H
#define RATEFS_CORE_DEMAND_H

#include "core/fleet/balance.h"
#include "core/fleet/parts.h"
#include "core/fleet/portion.h"

/* Gives @holding the part of it that is demand's; frees that. */
bool demand_attach(struct holding *holding);
void demand_detach(struct holding *holding);

/*
 * Begins to count: @holding is in use from now on. Likewise for a successor: a predecessor wanted
 * what it held until now. @claims: it may have left a claim.
 */
void demand_begin(struct fleet *fleet, struct holding *holding);
void demand_resume(struct fleet *fleet, struct holding *holding, bool claims);

/* Partitions that are wanted: the most in the last second. Slots that are open or waited for. */
uint32_t demand_wanted(const struct holding *holding);
uint32_t demand_slots(const struct holding *holding);

/* The last round did not find enough; it found only what no host gave back. */
void demand_note_unmet(struct holding *holding, bool unmet);
void demand_note_unclean(struct holding *holding, bool unclean_only);

/* Other hosts claim partitions, or none does. */
void demand_note_contested(struct holding *holding, bool contested);

/* More is kept than is wanted: where it was asked for a moment ago that was in vain. */
void demand_note_spare(const struct fleet *fleet, struct holding *holding);

/* Computes what is wanted now; likewise at the end of a slot. */
void demand_update(struct fleet *fleet, struct holding *holding);
void demand_tick(struct fleet *fleet, struct holding *holding);

/* Forgets what was wanted until now. */
void demand_forget_wanted(struct holding *holding);

/* Tells whether the own tokens of partition @index, of any, are read and it is not held. */
bool demand_misses(const struct holding *holding, uint32_t index);
bool demand_misses_any(const struct holding *holding);

/* Returns the tokens that a leaf of @holding brings in a period, of the limit that needs most. */
double demand_leaf(const struct holding *holding);

/* Tells whether one of the reserve is wanted and not leased. */
bool demand_wants_reserve(const struct holding *holding);

/* Tells whether tokens of this very partition are read. */
bool demand_is_read(const struct holding *holding, uint32_t index);

/*
 * Tells the policy's facts of demand; @facts has those of the limiter. Likewise where partitions
 * have no numbers.
 */
void demand_tell(const struct holding *holding, struct facts *facts);
void demand_tell_portion(const struct fleet *fleet, const struct holding *holding,
			 struct portion_facts *facts);

#endif
