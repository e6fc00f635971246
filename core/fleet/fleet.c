/* fleet - one host of a fleet: its time, its leases, its source; see fleet.h for the protocol. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <errno.h>
#include <stdlib.h>

/* What a holding is about must not go away while something is under way for it. */
void holding_keep(struct holding *holding)
{
	limiter_hold(holding->limiter);
}

void holding_let_go(struct holding *holding)
{
	limiter_drop(holding->limiter);
}

void fleet_lease_becomes(struct fleet *fleet, struct holding *holding, struct lease *lease,
			 enum lease_state to)
{
	enum lease_state from = (enum lease_state)lease->state;
	bool reserve = lease == &holding->reserve;
	uint32_t index = reserve ? PARTITIONS_MAX + holding->reserve_index
				 : (uint32_t)(lease - holding->leases);

	lease_become(lease, to);
	if (!reserve) {
		holding->held = holding->held + (to == LEASE_HELD) - (from == LEASE_HELD);
		holding->leased = holding->leased + (to != LEASE_NONE) - (from != LEASE_NONE);
		holding->draining = holding->draining + (to == LEASE_DRAINING) -
				    (from == LEASE_DRAINING);
	}
	if (from == LEASE_NONE) {
		fleet->leases++;
		room_count_lease(fleet, holding, true);
		holding_keep(holding);
	}
	if (to == LEASE_HELD || to == LEASE_WAITING) {
		lease->since_ns = fleet->now_ns;
		lease->granted = holding_use(holding);
	}
	fleet_keep_lease(fleet, holding, lease, index);
	if (fleet->listener && fleet->listener->lease)
		fleet->listener->lease(fleet->listener, holding, index, from, to);
	if (to == LEASE_NONE) {
		fleet->leases--;
		room_count_lease(fleet, holding, false);
		holding_let_go(holding);
	}
}

static void run(struct fleet *fleet)
{
	fleet->next_ns = NEVER_NS;
	fleet_watch_connection(fleet);
	fleet_watch_reach(fleet);
	fleet_watch_leaving(fleet);
	if (fleet->left)
		return;
	if (fleet->right)
		fleet_wake_at(fleet, fleet->now_ns + fleet->right_end_ns - fleet->clocks.holder_ns);
	/* Without a connection the next one begins there anyway. */
	if (fleet->retry_ns <= fleet->now_ns && fleet->connected) {
		fleet->retry_ns = NEVER_NS;
		layout_look(fleet);
	}
	if (fleet->connected)
		fleet_wake_at(fleet, fleet->retry_ns);
	doubt_watch(fleet);
	publish_expire(fleet);
	demand_look_for_hosts(fleet);
	if (fleet->now_ns >= fleet->next_tick_ns)
		demand_tick(fleet);
	fleet_wake_at(fleet, fleet->next_tick_ns);
	fleet_pump(fleet);
	if (fleet->state == FLEET_READY && fleet->connected &&
	    (fleet->leases || fleet->trouble_ns != NEVER_NS) && !fleet->transaction.kind &&
	    !fleet->following && !fleet->stale)
		fleet_wake_at(fleet, fleet->next_renewal_ns);
}

static void after(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	fleet->now_ns = now_ns;
	if (now_ns < fleet->next_ns || fleet->running || fleet->state == FLEET_CLOSED)
		return;
	fleet->running = true;
	run(fleet);
	fleet->running = false;
}

/* Rule 4: before anything is granted in this step. */
static void before(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	(void)now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	fleet_check_right(fleet);
}

static uint64_t next_ns(const struct source *source)
{
	const struct fleet *fleet = (const struct fleet *)source;

	return fleet->state == FLEET_CLOSED ? NEVER_NS : fleet->next_ns;
}

void fleet_answered(struct fleet *fleet, struct request *request, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	fleet_note_answer(fleet, request);
	request_returned(fleet, request);
	if (request->done)
		request->done(fleet, request);
	request_free(request);
	fleet->next_ns = 0;
	after(&fleet->source, now_ns);
}

static int adopt(struct source *source, struct limiter *limiter)
{
	(void)source;
	limiter->holding = holding_new(limiter);
	if (!limiter->holding)
		return -ENOMEM;
	limiter->settings = &limiter->holding->share;
	return 0;
}

static void rouse(struct source *source, struct limiter *limiter)
{
	demand_rouse((struct fleet *)source, limiter->holding, true);
}

/* Whether @limiter or one above it may soon have more than it has. */
static bool may_come(struct source *source, const struct limiter *limiter)
{
	const struct fleet *fleet = (const struct fleet *)source;

	if (fleet->leaving || !fleet->connected || fleet->state < FLEET_PREPARING ||
	    fleet->state == FLEET_REFUSED)
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    (h->search || h->next_search_ns <= fleet->now_ns || h->has_work ||
		     (!h->usable && !h->reserve_usable && !h->lacking)))
			return true;
	}
	return false;
}

struct fleet *fleet_new(struct engine *engine, struct coordinator *coordinator,
			const struct fleet_options *options, struct fleet_listener *listener)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	if (!fleet)
		return NULL;
	if (!requests_new(fleet)) {
		free(fleet);
		return NULL;
	}
	fleet->source = (struct source){
		.store = publish_store,
		.before = before,
		.after = after,
		.next_ns = next_ns,
		.adopt = adopt,
		.rouse = rouse,
		.may_come = may_come,
	};
	fleet->engine = engine;
	fleet->coordinator = coordinator;
	fleet->options = options;
	fleet->listener = listener;
	fleet->kept = options->kept;
	fleet->constants = options->constants;
	fleet->constants.quarantine_ns = quarantine_of(options->constants.right_ns);
	fleet->random_state = coordinator->random(coordinator) | 1;
	fleet->applied = -1;
	fleet->root_version = -1;
	fleet->trouble_ns = NEVER_NS;
	fleet->doubt_ns = NEVER_NS;
	/* Nothing is known yet of how long answers take, and no right is at stake. */
	fleet->reads.vain = 1;
	fleet->writes.vain = 1;
	fleet->retry_ns = NEVER_NS;
	fleet->next_tick_ns = NEVER_NS;
	fleet->next_ns = NEVER_NS;
	return fleet;
}

void fleet_free(struct fleet *fleet)
{
	sweep_free(fleet);
	names_free(fleet);
	survey_free(fleet);
	requests_free(fleet);
	follow_forget(fleet);
	free(fleet->change_record);
	free(fleet);
}

struct source *fleet_source(struct fleet *fleet)
{
	return &fleet->source;
}

void fleet_start(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	fleet->vain_since_ns = now_ns;
	fleet->open_ns = NEVER_NS;
	fleet->trouble_ns = fleet->clocks.holder_ns;
	fleet->next_ns = 0;
	fleet->opened_ns = fleet->constants.session_ns;
	if (fleet->resuming) {
		fleet->coordinator->resume(fleet->coordinator, fleet->session, fleet->opened_ns);
		for (struct holding *h = fleet->holdings; h; h = h->next)
			demand_resume(fleet, h);
		return;
	}
	fleet_keep_nothing(fleet);
	fleet->state = FLEET_CONNECTING;
	fleet->coordinator->open(fleet->coordinator, fleet->opened_ns);
}

/* Before anything is given back: it claims nothing any more, and asks whom to wake. */
static void tell_others(struct fleet *fleet, struct holding *holding)
{
	claim_withdraw(fleet, holding);
	if (holding->leased || holding->reserve.state != LEASE_NONE)
		claims_look(fleet, holding);
}

void fleet_leave(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (fleet->state == FLEET_CLOSED) {
		fleet->left = true;
		return;
	}
	fleet->leaving = true;
	fleet->leave_until_ns = now_ns + FLEET_LEAVE_NS;
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (fleet->state == FLEET_READY && fleet->connected && !fleet->alone)
			tell_others(fleet, h);
		drain_all(fleet, h);
	}
	fleet->next_ns = 0;
	after(&fleet->source, now_ns);
}

bool fleet_has_left(const struct fleet *fleet)
{
	return fleet->left;
}
