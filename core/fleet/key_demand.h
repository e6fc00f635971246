/*
 * key_demand - how much of a leased key this host needs, and what is to be done for that.
 */
#ifndef RATEFS_CORE_KEY_DEMAND_H
#define RATEFS_CORE_KEY_DEMAND_H

#include "core/fleet/key_lease.h"

/* Returns the tokens a second that a leaf of the key brings; 0: it has no limit. */
double key_demand_leaf(const struct fleet *fleet, struct key_lease *lease);

/* Measures what was asked for since the last look. */
void key_demand_measure(struct fleet *fleet, struct key_lease *lease);

/* Decides what is to be done by the folder as it was listed. */
void key_demand_decide(struct fleet *fleet, struct key_lease *lease);

#endif
