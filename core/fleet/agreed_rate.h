/*
 * agreed_rate - the rate that the hosts of a fleet have learnt together of the service behind a
 * limiter: `scope=fleet` of `adapt`. core/limiter/learning.h has what one host has learnt.
 *
 * It is the data of node /a/LID, at most one write a second and limiter over all hosts: a host
 * that writes has seen the node unchanged for that long, and names the version it has seen. Every
 * host that uses the limiter watches it. A lower rate counts on the host that was throttled at once
 * and is told when it may be; a higher one counts once it was written. Nothing of the protocol
 * rests on it, so that these transactions have no head.
 */
#ifndef RATEFS_CORE_AGREED_RATE_H
#define RATEFS_CORE_AGREED_RATE_H

#include "core/fleet/parts.h"

/* Looks whether there is something of @holding to tell or to ask. */
void agreed_rate_tick(struct fleet *fleet, struct holding *holding);

/* The node of limiter @id changed. */
void agreed_rate_changed(struct fleet *fleet, uint64_t id);

/* Voids the agreed rate: another `adapt` was set. */
void agreed_rate_void(struct fleet *fleet, const struct holding *holding);

/* The session is gone, and what was asked in it is not answered. */
void agreed_rate_forget(struct holding *holding);

#endif
