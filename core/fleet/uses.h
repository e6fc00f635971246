/*
 * uses - what this host tells the others of its use of limiters, and of its open slots, in its
 * node: for those who look at the files `fleet`, `holders` and `why`. No lease, share or right
 * rests on it.
 */
#ifndef RATEFS_CORE_USES_H
#define RATEFS_CORE_USES_H

#include "core/fleet/parts.h"

bool uses_new(struct fleet *fleet);
void uses_free(struct fleet *fleet);

/*
 * Enters in @record the leased limiters that this host uses and lacks most, and its open slots,
 * measured anew where R has passed since. A host that renews nothing uses nothing: @record->renews.
 */
void uses_enter(struct fleet *fleet, struct host_record *record);

#endif
