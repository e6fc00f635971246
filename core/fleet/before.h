/*
 * before - the settings that other hosts may still be under, for Q after a change: see Settings in
 * fleet.h.
 *
 * A host knows them from the limiter's record, also of changes that it never saw.
 */
#ifndef RATEFS_CORE_BEFORE_H
#define RATEFS_CORE_BEFORE_H

#include "core/fleet/record.h"
#include "core/limiter/holding.h"

struct fleet;

/*
 * Writes into @record, which has the new settings of @holding, what hosts may be under that do not
 * know of them yet. -EBUSY where none of the settings is the least, and it matters; the record is
 * filled all the same.
 */
int before_name(const struct fleet *fleet, const struct holding *holding, struct record *record);

/* Keeps to what @record says of that for Q, if it says anything. */
void before_heed(const struct fleet *fleet, struct holding *holding, const struct record *record);

/* Tells whether hosts make the same use of partitions under @a and @b. */
bool before_is_alike(const struct settings *a, const struct settings *b);

#endif
