/* status - what a fleet says of itself to those who look, see fleet.h. */
#include "core/fleet/baseline.h"
#include "core/fleet/claim.h"
#include "core/fleet/membership.h"
#include "core/fleet/parts.h"
#include "core/fleet/replicate.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"

#include <stddef.h>

static const char *const STATE_NAMES[FLEET_STATE_COUNT] = {
	[FLEET_CLOSED] = "closed",	 [FLEET_CONNECTING] = "connecting",
	[FLEET_PREPARING] = "preparing", [FLEET_LOADING] = "loading",
	[FLEET_JOINING] = "joining",	 [FLEET_READY] = "ready",
	[FLEET_IN_DOUBT] = "in_doubt",	 [FLEET_REFUSED] = "refused",
};

static const struct {
	const char *name;
	const char *help;
	size_t offset;
} COUNTERS[FLEET_COUNTER_COUNT] = {
	{"transactions", "Transactions that ZooKeeper was sent",
	 offsetof(struct fleet_counters, transactions)},
	{"reads", "Nodes that ZooKeeper was asked for", offsetof(struct fleet_counters, reads)},
	{"lists", "Lists of nodes that ZooKeeper was asked for",
	 offsetof(struct fleet_counters, lists)},
	{"renewals", "Transactions that only renewed the right",
	 offsetof(struct fleet_counters, renewals)},
	{"taken_clean", "Leases taken that their last holder had given back",
	 offsetof(struct fleet_counters, taken_clean)},
	{"taken_unclean", "Leases taken that their last holder had not given back",
	 offsetof(struct fleet_counters, taken_unclean)},
	{"given_back", "Leases given back", offsetof(struct fleet_counters, given_back)},
	{"conflicts", "Leases that another host was faster to take",
	 offsetof(struct fleet_counters, conflicts)},
	{"sessions", "Sessions with ZooKeeper so far", offsetof(struct fleet_counters, sessions)},
	{"lapses", "Times that the right ran out while something was held",
	 offsetof(struct fleet_counters, lapses)},
	{"unknown_outcomes", "Requests without an answer, which may have been done or not",
	 offsetof(struct fleet_counters, unknown)},
	{"late_grants", "Tokens that were on their way to readers when the right ended",
	 offsetof(struct fleet_counters, late_grants)},
	{"hosts_ended", "Rights of hosts that died, which this host ended",
	 offsetof(struct fleet_counters, ended)},
	{"left_out", "Takes and claims for which there was no room",
	 offsetof(struct fleet_counters, left_out)},
};

const char *fleet_counter_name(size_t index)
{
	return COUNTERS[index].name;
}

const char *fleet_counter_help(size_t index)
{
	return COUNTERS[index].help;
}

uint64_t fleet_counter(const struct fleet_counters *counters, size_t index)
{
	return *(const uint64_t *)(const void *)((const char *)counters + COUNTERS[index].offset);
}

void fleet_was_late(struct fleet *fleet)
{
	fleet->counters.late_grants++;
}

uint64_t fleet_use_until_ns(const struct fleet *fleet)
{
	if (!term_runs(fleet))
		return NEVER_NS;
	return fleet->engine->schedule.now_ns + term_end_ns(fleet) - fleet->clocks.holder_ns;
}

enum fleet_state fleet_state(const struct fleet *fleet)
{
	return session_state(fleet);
}

const char *fleet_state_name(enum fleet_state state)
{
	return STATE_NAMES[state];
}

const struct fleet_counters *fleet_counters(const struct fleet *fleet)
{
	return &fleet->counters;
}

const struct fleet_constants *fleet_constants(const struct fleet *fleet)
{
	return &fleet->constants;
}

const char *fleet_hid(const struct fleet *fleet)
{
	return session_hid(fleet);
}

uint64_t fleet_session(const struct fleet *fleet)
{
	return session_id(fleet);
}

uint32_t fleet_leases(const struct fleet *fleet)
{
	return room_leases(fleet);
}

uint32_t fleet_own_bytes(const struct fleet *fleet)
{
	return room_own_bytes(fleet);
}

uint64_t fleet_right_ns(const struct fleet *fleet)
{
	return term_runs(fleet) ? term_end_ns(fleet) - fleet->clocks.holder_ns : 0;
}

bool fleet_is_up_to_date(const struct fleet *fleet)
{
	return session_state(fleet) == FLEET_READY && !baseline_is_stale(fleet) &&
	       !replicate_runs(fleet);
}

uint32_t fleet_host_count(const struct fleet *fleet)
{
	return membership_count(fleet);
}

uint64_t fleet_claimed_ns(const struct fleet *fleet, const struct holding *holding)
{
	uint64_t since_ns = claim_since_ns(holding);

	return since_ns ? fleet->engine->schedule.now_ns - since_ns : NEVER_NS;
}

bool fleet_knows_hosts(const struct fleet *fleet)
{
	return membership_is_known(fleet);
}

bool fleet_is_connected(const struct fleet *fleet)
{
	return session_is_connected(fleet);
}

bool fleet_is_joining(const struct fleet *fleet)
{
	return session_is_connected(fleet) && session_is_answered(fleet) &&
	       (session_state(fleet) != FLEET_READY || !membership_is_known(fleet)) &&
	       session_state(fleet) != FLEET_REFUSED;
}

bool fleet_is_degraded(const struct fleet *fleet)
{
	return term_is_degraded(fleet);
}

bool fleet_is_entitled(const struct fleet *fleet, const struct holding *holding, uint32_t index)
{
	const struct lease *lease;

	if (!term_runs(fleet))
		return false;
	if (index >= PARTITIONS_MAX)
		return holding_has_reserve(holding) &&
		       holding->reserve.first == index - PARTITIONS_MAX;
	lease = holding_find_lease(holding, index);
	return lease && index < holding_count(holding) && lease->state == LEASE_HELD;
}
