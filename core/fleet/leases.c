/* leases - the leases of this host, and what they are worth, see leases.h. */
#include "core/fleet/leases.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/limiter/partition.h"

#include <stdlib.h>
#include <string.h>

uint32_t leases_kept(const struct holding *holding)
{
	return holding->leased - holding->draining;
}

void leases_become(struct fleet *fleet, struct holding *holding, struct lease *lease,
		   enum lease_state to)
{
	enum lease_state from = (enum lease_state)lease->state;
	bool reserve = lease == &holding->reserve;
	uint32_t index = reserve ? PARTITIONS_MAX + holding->reserve_index : lease->first;

	uint32_t size = lease_size(lease);

	lease_become(lease, to);
	if (!reserve) {
		holding->held += (to == LEASE_HELD) * size - (from == LEASE_HELD) * size;
		holding->leased += (to != LEASE_NONE) * size - (from != LEASE_NONE) * size;
		holding->draining += (to == LEASE_DRAINING) * size -
				     (from == LEASE_DRAINING) * size;
	}
	if (from == LEASE_NONE) {
		room_count_lease(fleet, holding->id, true);
		holdings_keep(holding);
	}
	if (to == LEASE_HELD || to == LEASE_WAITING) {
		lease->since_ns = fleet->now_ns;
		lease->granted = holding_use(holding);
	}
	handover_keep_lease(fleet, holding, lease, index);
	if (fleet->listener && fleet->listener->lease)
		fleet->listener->lease(fleet->listener, holding, index, from, to);
	if (to == LEASE_NONE) {
		room_count_lease(fleet, holding->id, false);
		holdings_let_go(holding);
	}
}

void leases_wait(struct fleet *fleet, struct lease *lease)
{
	lease->usable_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

void leases_reshare(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	uint32_t count = holding_count(holding), usable = 0;

	if (holding->limiter->removed)
		return;
	for (uint32_t i = 0; term_runs(fleet) && i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD && lease->first < count)
			usable += lease_size(lease);
	}
	holding->usable = usable;
	holding->reserve_usable = term_runs(fleet) && holding->reserve.state == LEASE_HELD;
	holding->degraded = term_is_degraded(fleet);
	limiter_reshare(schedule, holding->limiter);
	partition_follow(schedule, holding->limiter);
	if (fleet->listener && fleet->listener->reshared)
		fleet->listener->reshared(fleet->listener, holding->limiter);
}

static void empty(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	struct limiter *limiter = holding->limiter;

	if (limiter->removed)
		return;
	limiter_empty(schedule, limiter);
	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (limiter->partitions[i])
			limiter_empty(schedule, limiter->partitions[i]);
	}
}

void leases_empty(struct fleet *fleet)
{
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (h->usable || h->reserve_usable)
			empty(fleet, h);
	}
}

void leases_extend_term(struct fleet *fleet, uint64_t sent_ns)
{
	bool ran = term_runs(fleet), degraded = term_is_degraded(fleet);

	term_extend(fleet, sent_ns);
	if (degraded)
		fleet_tell(fleet, FLEET_BACK, "the coordinator is back");
	if (ran == term_runs(fleet) && !degraded)
		return;
	/* A host without leases has nothing but what `offline` gave. */
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		/* Tokens that `offline` let it save up are no share of any host. */
		if (degraded)
			empty(fleet, h);
		if (degraded || h->held || h->reserve.state == LEASE_HELD)
			leases_reshare(fleet, h);
	}
}

void leases_check_term(struct fleet *fleet)
{
	if (!term_is_over(fleet))
		return;
	term_lapse(fleet);
	if (!room_leases(fleet))
		return;
	fleet->counters.lapses++;
	fleet_tell(fleet, FLEET_LAPSED, "right lapsed");
	leases_empty(fleet);
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (h->usable || h->reserve_usable)
			leases_reshare(fleet, h);
	}
}

void leases_watch_reach(struct fleet *fleet)
{
	uint64_t at_ns = term_end_ns(fleet);

	if (session_trouble_ns(fleet) == NEVER_NS || term_is_degraded(fleet))
		return;
	/*
	 * A host with leases does without the coordinator when its right ends; a host without
	 * leases D after the last contact, and so does a successor that was not there when the
	 * right ended.
	 */
	if (!room_leases(fleet) ||
	    (term_is_resumed(fleet) && term_end_ns(fleet) < session_trouble_ns(fleet)))
		at_ns = session_trouble_ns(fleet) + fleet->constants.right_ns;
	if (fleet->clocks.holder_ns < at_ns) {
		fleet_wake_at(fleet, fleet->now_ns + (at_ns - fleet->clocks.holder_ns));
		return;
	}
	term_degrade(fleet);
	handover_keep(fleet);
	fleet_tell(fleet, FLEET_DEGRADED, "degraded: the coordinator is out of reach");
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		leases_reshare(fleet, h);
}

void leases_fall_due(struct fleet *fleet, struct holding *holding)
{
	bool others = holding->leased > holding->held + holding->draining;
	bool changed = false;

	for (uint32_t i = others ? 0 : holding->lease_count; i <= holding->lease_count; i++) {
		struct lease *lease = i < holding->lease_count ? &holding->leases[i]
							       : &holding->reserve;

		if (lease->state != LEASE_WAITING || lease->usable_ns > fleet->clocks.waiter_ns)
			continue;
		leases_become(fleet, holding, lease, LEASE_HELD);
		changed = true;
	}
	if (holding->before_ns && holding->before_ns <= fleet->clocks.waiter_ns) {
		changed = changed || holding->restricted;
		holding->restricted = false;
		holding->before_ns = 0;
	}
	if (changed)
		leases_reshare(fleet, holding);
}

void leases_forget(struct fleet *fleet, struct holding *holding)
{
	for (uint32_t i = 0; i < holding->lease_count; i++) {
		if (holding->leases[i].state != LEASE_NONE)
			leases_become(fleet, holding, &holding->leases[i], LEASE_NONE);
	}
	if (holding->reserve.state != LEASE_NONE)
		leases_become(fleet, holding, &holding->reserve, LEASE_NONE);
	if (holding->usable || holding->reserve_usable)
		leases_reshare(fleet, holding);
}

/* Returns this host's lease that has node @znode, unless it is on its way back; else NULL. */
static struct lease *lease_of_node(struct fleet *fleet, const struct znode *znode)
{
	struct holding *holding = holdings_find(fleet, znode->id);
	struct lease *lease;

	if (!holding || (znode->reserve && znode->index != holding->reserve_index))
		return NULL;
	lease = znode->reserve ? &holding->reserve : holding_find_lease(holding, znode->index);
	if (!lease)
		return NULL;
	return lease->state == LEASE_HELD || lease->state == LEASE_WAITING ? lease : NULL;
}

static void lease_seen(struct fleet *fleet, struct request *request)
{
	struct lease *lease;
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	lease = lease_of_node(fleet, &znode);
	if (!lease)
		return;
	if (request->answer == ANSWER_OK && !strcmp(request->data, session_hid(fleet)))
		lease->watched = true;
	else if (request->answer == ANSWER_OK || request->answer == ANSWER_NO_NODE ||
		 request->answer == ANSWER_REFUSED)
		session_drop(fleet, "a lease of this host's is another's: a foreign hand");
}

void leases_watch(struct fleet *fleet, const struct holding *holding, uint32_t index, bool reserve)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path_partition(ZNODE_LEASE, holding->id, index, reserve, path);
	request = request_new(REQUEST_GET, path, lease_seen);
	if (!request)
		return;
	request->watch = true;
	request_send(fleet, request);
}

void leases_watch_all(struct fleet *fleet)
{
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		for (uint32_t i = 0; h->leased && i < h->lease_count; i++) {
			const struct lease *lease = &h->leases[i];

			if (!lease->watched &&
			    (lease->state == LEASE_HELD || lease->state == LEASE_WAITING))
				leases_watch(fleet, h, lease->first, false);
		}
		if (!h->reserve.watched &&
		    (h->reserve.state == LEASE_HELD || h->reserve.state == LEASE_WAITING))
			leases_watch(fleet, h, h->reserve_index, true);
	}
}

void leases_changed(struct fleet *fleet, const struct znode *znode)
{
	if (lease_of_node(fleet, znode))
		session_drop(fleet, "a lease of this host's was changed by a foreign hand");
}
