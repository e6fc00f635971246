/* outcome - what follows from the answer to a transaction: rules 3 and 6 to 12 of fleet.h. */
#ifndef RATEFS_CORE_OUTCOME_H
#define RATEFS_CORE_OUTCOME_H

#include "core/fleet/parts.h"

/* Acts on the answer to the transaction that is under way, if there is one. */
void outcome_settle(struct fleet *fleet);

#endif
