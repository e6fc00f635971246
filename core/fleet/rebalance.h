/*
 * rebalance - which partitions are given back, and when more are looked for: CHOOSING in fleet.h.
 */
#ifndef RATEFS_CORE_REBALANCE_H
#define RATEFS_CORE_REBALANCE_H

#include "core/fleet/parts.h"

/* Gives @holding the part of it that is rebalance's; frees that. */
bool rebalance_attach(struct holding *holding);
void rebalance_detach(struct holding *holding);

/*
 * Acts on what is noted: hosts that came or went, holdings that were roused; and every
 * DEMAND_PERIOD_NS looks at each holding that is in use.
 */
void rebalance_step(struct fleet *fleet);

/* Sends the next transaction that takes, gives back or claims; false: there is none. */
bool rebalance_send(struct fleet *fleet);

#endif
