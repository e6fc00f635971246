/* term - until when what is held may be used: rules 3, 4 and 12 of fleet.h. */
#include "core/fleet/inside.h"
#include "core/limiter/partition.h"

void fleet_reshare(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	uint32_t count = holding_count(holding), usable = 0;

	if (holding->limiter->removed)
		return;
	for (uint32_t i = 0; fleet->right && i < holding->lease_room && i < count; i++)
		usable += holding->leases[i].state == LEASE_HELD;
	holding->usable = usable;
	holding->reserve_usable = fleet->right && holding->reserve.state == LEASE_HELD;
	holding->degraded = fleet->degraded;
	limiter_reshare(schedule, holding->limiter);
	partition_follow(schedule, holding->limiter);
	if (fleet->listener && fleet->listener->reshared)
		fleet->listener->reshared(fleet->listener, holding->limiter);
}

/* Rule 3. */
void fleet_extend_right(struct fleet *fleet, uint64_t sent_ns)
{
	uint64_t end_ns = sent_ns + fleet->constants.right_ns;
	bool was = fleet->right, degraded = fleet->degraded;

	if (end_ns > fleet->right_end_ns)
		fleet->right_end_ns = end_ns;
	fleet->trouble_ns = NEVER_NS;
	fleet->resumed = false;
	fleet->degraded = false;
	fleet->right = fleet->clocks.holder_ns < fleet->right_end_ns;
	/* Not sooner than R, or there would be more than one write in it. */
	fleet->next_renewal_ns = fleet->now_ns + fleet->constants.renewal_ns +
				 fleet_random(fleet) % (fleet->constants.renewal_ns / 4 + 1);
	if (degraded)
		fleet_tell(fleet, FLEET_BACK, "the coordinator is back");
	if (was == fleet->right && !degraded)
		return;
	/* A host without leases has nothing but what `offline` gave. */
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		/* Tokens that `offline` let it save up are no share of any host. */
		if (degraded)
			fleet_empty(fleet, h);
		if (degraded || h->held || h->reserve.state == LEASE_HELD)
			fleet_reshare(fleet, h);
	}
}

void fleet_empty(struct fleet *fleet, struct holding *holding)
{
	if (holding->limiter->removed)
		return;
	limiter_empty(&fleet->engine->schedule, holding->limiter);
	for (uint32_t i = 0; i < holding->limiter->partition_room; i++) {
		if (holding->limiter->partitions[i])
			limiter_empty(&fleet->engine->schedule, holding->limiter->partitions[i]);
	}
}

void fleet_empty_usable(struct fleet *fleet)
{
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (h->usable || h->reserve_usable)
			fleet_empty(fleet, h);
	}
}

/* The right has run out: nothing that is held is used from here on. */
static void lapse(struct fleet *fleet)
{
	fleet->right = false;
	if (!fleet->leases)
		return;
	fleet->counters.lapses++;
	fleet_tell(fleet, FLEET_LAPSED, "right lapsed");
	fleet_empty_usable(fleet);
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (h->usable || h->reserve_usable)
			fleet_reshare(fleet, h);
	}
}

void fleet_watch_reach(struct fleet *fleet)
{
	uint64_t at_ns = fleet->right_end_ns;

	if (fleet->trouble_ns == NEVER_NS || fleet->degraded)
		return;
	/*
	 * Who has leases does without when the right ends, others as long after the last contact; and a
	 * successor, which was not there when it ended.
	 */
	if (!fleet->leases || (fleet->resumed && fleet->right_end_ns < fleet->trouble_ns))
		at_ns = fleet->trouble_ns + fleet->constants.right_ns;
	if (fleet->clocks.holder_ns < at_ns) {
		fleet_wake_at(fleet, fleet->now_ns + (at_ns - fleet->clocks.holder_ns));
		return;
	}
	fleet->degraded = true;
	fleet_keep(fleet);
	fleet_tell(fleet, FLEET_DEGRADED, "degraded: the coordinator is out of reach");
	for (struct holding *h = fleet->holdings; h; h = h->next)
		fleet_reshare(fleet, h);
}

void fleet_check_right(struct fleet *fleet)
{
	if (fleet->right && fleet->clocks.holder_ns >= fleet->right_end_ns)
		lapse(fleet);
}
