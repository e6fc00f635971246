/*
 * relay - a limiter whose tiles were changed by foreign hands has its leaves numbered anew: rule 12
 * of fleet.h. Leaves that are in no tile could never be used again, and those that are in two would
 * be used twice.
 */
#ifndef RATEFS_CORE_RELAY_H
#define RATEFS_CORE_RELAY_H

#include "core/fleet/parts.h"

/*
 * Sends the transaction for the limiter of fleet->torn_id, if there is one; tells whether it did.
 * Then: it was answered.
 */
bool relay_send(struct fleet *fleet);
void relay_answered(struct fleet *fleet, const struct request *request);

/* Gives up what is under way: the session is gone, or its outcome is not known. */
void relay_forget(struct fleet *fleet);

#endif
