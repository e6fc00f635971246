/* key_change - the transactions about a leased key: rules K2 to K5 of keys.md. */
#ifndef RATEFS_CORE_KEY_CHANGE_H
#define RATEFS_CORE_KEY_CHANGE_H

#include "core/fleet/key_lease.h"

/* Sends what was decided for @lease. False: that is not possible now. */
bool key_change_send(struct fleet *fleet, struct key_lease *lease);

/*
 * Acts on the answer for @lease: whether it was acknowledged. Tells whether the key is not leased
 * any more.
 */
bool key_change_answered(struct fleet *fleet, struct key_lease *lease,
			 const struct request *request);

/*
 * Adds to @request that the usable leaves of @lease are given back, by a host that leaves: they are
 * not used any more. Tells whether there was room for them.
 */
bool key_change_leave(const struct fleet *fleet, const struct key_lease *lease,
		      struct request *request);

/* Nothing is under way any more. */
void key_change_end(struct key_leases *leases);

#endif
