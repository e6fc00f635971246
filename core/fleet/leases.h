/*
 * leases - the leases of this host, and what they are worth: rules 4, 8, 10 and 12 of fleet.h.
 *
 * Only its holder deletes a lease's node, unless it is deleted by hand, or was never really
 * committed. The holder watches it: a server tells of the deletion before it acknowledges a later
 * transaction, so the right ends in time. A watch that was lost with a connection is set by the
 * next one.
 */
#ifndef RATEFS_CORE_LEASES_H
#define RATEFS_CORE_LEASES_H

#include "core/fleet/parts.h"
#include "core/fleet/znode.h"

/* Leases of @holding that are not on their way back. */
uint32_t leases_kept(const struct holding *holding);

/* @lease of @holding goes over to state @to. */
void leases_become(struct fleet *fleet, struct holding *holding, struct lease *lease,
		   enum lease_state to);

/* Rule 7: lets @lease, which is to wait, be usable Q from this step on. */
void leases_wait(struct fleet *fleet, struct lease *lease);

/* Holds the leases of @holding that have waited for Q; ends a restriction that is over. */
void leases_fall_due(struct fleet *fleet, struct holding *holding);

/* This host's share of @holding's limiter changed: reconfigures its buckets. */
void leases_reshare(struct fleet *fleet, struct holding *holding);

/*
 * Rule 12: empties the buckets of all that is usable, before any of it is reshared: the first
 * limiter that is reshared may serve readers of limiters above or below it.
 */
void leases_empty(struct fleet *fleet);

/* Rule 3: a transaction that was sent at @sent_ns was acknowledged. */
void leases_extend_term(struct fleet *fleet, uint64_t sent_ns);

/* Rule 4: before anything is granted in a step. */
void leases_check_term(struct fleet *fleet);

/* Whether it is time to do without the coordinator. */
void leases_watch_reach(struct fleet *fleet);

/* The session is gone: there are no leases of @holding any more, then of any. */
void leases_forget(struct fleet *fleet, struct holding *holding);

/* Rule 10: watches the node of a lease; of all that are not watched yet; such a node changed. */
void leases_watch(struct fleet *fleet, const struct holding *holding, uint32_t index, bool reserve);
void leases_watch_all(struct fleet *fleet);
void leases_changed(struct fleet *fleet, const struct znode *znode);

#endif
