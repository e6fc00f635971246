/* lease - the life of a lease on one host, see lease.h. */
#include "core/limiter/lease.h"

#include <assert.h>
#include <stdlib.h>

/* The table: a state of the row may become that of the column. */
/* clang-format off */
static const bool MAY_BECOME[LEASE_STATE_COUNT][LEASE_STATE_COUNT] = {
	[LEASE_NONE]     = {[LEASE_TAKING] = true},
	[LEASE_TAKING]   = {[LEASE_HELD] = true, [LEASE_WAITING] = true, [LEASE_NONE] = true,
			    [LEASE_IN_DOUBT] = true},
	[LEASE_WAITING]  = {[LEASE_HELD] = true, [LEASE_NONE] = true},
	[LEASE_HELD]     = {[LEASE_DRAINING] = true, [LEASE_WAITING] = true, [LEASE_NONE] = true},
	[LEASE_DRAINING] = {[LEASE_NONE] = true, [LEASE_WAITING] = true, [LEASE_IN_DOUBT] = true},
	[LEASE_IN_DOUBT] = {[LEASE_WAITING] = true, [LEASE_NONE] = true},
};
/* clang-format on */

static const char *const NAMES[LEASE_STATE_COUNT] = {
	[LEASE_NONE] = "free", [LEASE_TAKING] = "taking",     [LEASE_WAITING] = "waiting",
	[LEASE_HELD] = "held", [LEASE_DRAINING] = "draining", [LEASE_IN_DOUBT] = "in_doubt",
};

uint32_t lease_size(const struct lease *lease)
{
	return lease->last - lease->first + 1;
}

bool lease_may_become(enum lease_state from, enum lease_state to)
{
	return MAY_BECOME[from][to];
}

void lease_become(struct lease *lease, enum lease_state to)
{
	assert(lease_may_become((enum lease_state)lease->state, to));
	lease->state = (uint8_t)to;
	lease->sent = false;
	if (to != LEASE_DRAINING) {
		free(lease->rest);
		lease->rest = NULL;
	}
}

const char *lease_state_name(enum lease_state state)
{
	return NAMES[state];
}
