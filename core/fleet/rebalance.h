/*
 * rebalance - the balance of each limiter: its facts are gathered, the policy decides (balance.h),
 * and that is carried out.
 */
#ifndef RATEFS_CORE_REBALANCE_H
#define RATEFS_CORE_REBALANCE_H

#include "core/fleet/parts.h"

/* Gives @holding the part of it that is the policy's; frees that. */
bool rebalance_attach(struct holding *holding);
void rebalance_detach(struct holding *holding);

/*
 * Acts on what is noted: hosts that came or went, holdings that were roused; and every
 * DEMAND_PERIOD_NS looks at each holding that is in use.
 */
void rebalance_step(struct fleet *fleet);

/* Sends the next transaction that takes, gives back or claims; false: there is none. */
bool rebalance_send(struct fleet *fleet);

/* Tells whether @limiter or one above it may soon have more than it has. */
bool rebalance_may_come(const struct fleet *fleet, const struct limiter *limiter);

/* Likewise of slots, for openers that wait: also if others were told of it a moment ago. */
bool rebalance_slots_may_come(struct fleet *fleet, const struct limiter *limiter);

/* The session is gone. */
void rebalance_forget(struct holding *holding);

#endif
