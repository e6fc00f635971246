/* rebalance - which partitions are given back, and when more are looked for, see rebalance.h. */
#include "core/fleet/rebalance.h"
#include "core/fleet/acquire.h"
#include "core/fleet/agreed_rate.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/release.h"
#include "core/fleet/room.h"
#include "core/fleet/round.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/limiter/slots.h"

#include <stdlib.h>

enum { SAVING_PARTS = 8, YOUNG_PARTS = 3, EXCESS_PARTS = 4 };

struct rebalance {
	uint64_t next_ns;	 /* under contention nothing is given back before */
	bool spare;		 /* more are kept than are wanted ... */
	uint64_t spare_until_ns; /* ... and may be until then ... */
	uint32_t spare_wanted;	 /* ... in which at most so many were */
};

bool rebalance_attach(struct holding *holding)
{
	holding->rebalance = calloc(1, sizeof(*holding->rebalance));
	return holding->rebalance;
}

void rebalance_detach(struct holding *holding)
{
	free(holding->rebalance);
}

/* Tells whether fewer slots than are open would be left without @lease. */
static bool is_in_use(const struct holding *holding, const struct lease *lease)
{
	uint32_t index = (uint32_t)(lease - holding->leases), used;

	if (holding->settings->slots.kind != SLOTS_COUNT || lease->state != LEASE_HELD ||
	    index >= holding_count(holding))
		return false;
	used = slots_used(holding->limiter);
	return used && used + holding_slots_of(holding, index) > holding_slots(holding);
}

/* Returns the next lease to give back: the newest, or with @oldest the oldest. NULL: none. */
static struct lease *next_to_give(const struct fleet *fleet, struct holding *holding, bool oldest,
				  uint64_t age_ns)
{
	struct lease *best = NULL;
	uint64_t use = holding_use(holding);

	for (uint32_t i = 0; i < holding->lease_room; i++) {
		struct lease *lease = &holding->leases[i];

		/*
		 * A partition that waits is of use to no host yet; the next one would begin anew.
		 */
		if (lease->state != LEASE_HELD || demand_is_read(holding, i) ||
		    is_in_use(holding, lease))
			continue;
		/* Under contention only what is old enough and has been of use. */
		if (oldest && (use == lease->granted || fleet->now_ns - lease->since_ns < age_ns))
			continue;
		if (!best ||
		    (oldest ? lease->since_ns < best->since_ns : lease->since_ns >= best->since_ns))
			best = lease;
	}
	return best;
}

static uint32_t give(struct fleet *fleet, struct holding *holding, uint32_t count, bool oldest,
		     uint64_t age_ns)
{
	uint32_t given = 0;

	while (given < count) {
		struct lease *lease = next_to_give(fleet, holding, oldest, age_ns);

		if (!lease)
			break;
		release_lease(fleet, holding, lease);
		given++;
	}
	return given;
}

/* Tells whether a limiter saves up: before it is full, tokens are lost with its partitions. */
static bool is_saving(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	if (!term_runs(fleet) || !holding->usable || claim_has_claimants(holding))
		return false;
	if (keys_count(limiter))
		return true;
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];

		bucket_refill(bucket, fleet->engine->schedule.now_ns);
		if (bucket->flow.num && bucket->level < (int64_t)bucket_capacity(bucket))
			return true;
	}
	return false;
}

static void begin_spare(struct fleet *fleet, struct holding *holding)
{
	uint64_t third_ns = holding->settings->lease_ns / YOUNG_PARTS;

	holding->rebalance->spare_until_ns =
		fleet->now_ns + (third_ns < FLEET_SPARE_MAX_NS ? third_ns : FLEET_SPARE_MAX_NS);
	holding->rebalance->spare_wanted = 0;
}

/* Notes that more is kept than was wanted in the last second. */
static void note_spare(struct fleet *fleet, struct holding *holding)
{
	if (!holding->rebalance->spare) {
		demand_note_spare(fleet, holding);
		holding->rebalance->spare = true;
		begin_spare(fleet, holding);
	}
	acquire_look_sooner(fleet, holding);
	if (holding->rebalance->spare_wanted < demand_wanted(holding))
		holding->rebalance->spare_wanted = demand_wanted(holding);
}

/*
 * Returns how many partitions to keep. Demand that comes and goes would cost two writes each time,
 * so a partition that is not wanted is kept for a while where there is plenty, and the last one
 * also where there is not; unless others claim some, or the host has many leases.
 */
static uint32_t to_keep(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t wanted = demand_wanted(holding), kept = leases_kept(holding);
	bool over = fleet->now_ns >= holding->rebalance->spare_until_ns;

	if (claim_has_claimants(holding) || room_is_scarce(fleet))
		return wanted;
	if (acquire_is_scarce(holding))
		return wanted || over ? wanted : 1;
	return over && holding->rebalance->spare_wanted < kept ? holding->rebalance->spare_wanted
							       : kept;
}

static void give_unwanted(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = leases_kept(holding), count = holding_count(holding), keep;

	if (holding->limiter->removed || !holding_needs_leases(holding)) {
		release_all(fleet, holding);
		return;
	}
	for (uint32_t i = count; i < holding->lease_room; i++)
		release_lease(fleet, holding, &holding->leases[i]);
	if (!holding->settings->reserve_hosts ||
	    holding->reserve_index >= holding->settings->reserve_hosts)
		release_lease(fleet, holding, &holding->reserve);
	if (kept <= demand_wanted(holding)) {
		holding->rebalance->spare = false;
		return;
	}
	note_spare(fleet, holding);
	if (!demand_wanted(holding) && is_saving(fleet, holding))
		return;
	keep = to_keep(fleet, holding);
	if (keep < holding->held)
		give(fleet, holding, holding->held - keep, false, 0);
	if (fleet->now_ns >= holding->rebalance->spare_until_ns)
		begin_spare(fleet, holding);
}

/* Opens no more slots than of @partitions, so that others come free to be given back. */
static void yield(struct fleet *fleet, struct holding *holding, uint32_t partitions)
{
	if (holding->yields == partitions)
		return;
	holding->yields = partitions;
	leases_reshare(fleet, holding);
}

/* Tells whether a partition whose lease is over stays because its slots are in use. */
static bool is_held_up(const struct fleet *fleet, const struct holding *holding)
{
	for (uint32_t i = 0; i < holding->lease_room; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD && is_in_use(holding, lease) &&
		    fleet->now_ns - lease->since_ns >= holding->settings->lease_ns)
			return true;
	}
	return false;
}

/* Tells whether a reader saves up for a take that is larger than goes with the last partition. */
static bool is_saving_up(const struct fleet *fleet, const struct holding *holding)
{
	const struct settings *settings = holding->settings;
	const struct limiter *limiter = holding->limiter;
	uint32_t count = settings_partition_count(settings);

	for (unsigned int i = 0; limiter->turns.wanted && i < limiter->bucket_count; i++) {
		uint64_t part = settings_burst(settings, i) / count;

		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		if (limiter->buckets[i].level >= (int64_t)(part ? part : 1))
			return true;
	}
	return false;
}

/* Returns the age at which a turn is over: longer while a large take is being saved up. */
static uint64_t turn_ns(const struct fleet *fleet, const struct holding *holding)
{
	uint64_t lease_ns = holding->settings->lease_ns;

	return is_saving_up(fleet, holding) ? lease_ns + lease_ns / SAVING_PARTS : lease_ns;
}

/* Tells whether every lease is so old that the one which came with this host's turn is, too. */
static bool is_turn_over(const struct fleet *fleet, const struct holding *holding)
{
	uint64_t long_ns = turn_ns(fleet, holding);

	for (uint32_t i = 0; i < holding->lease_room; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD && fleet->now_ns - lease->since_ns < long_ns)
			return false;
	}
	return true;
}

/* Gives back what is above this host's share, to hosts that have less than theirs. */
static void give_contended(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = leases_kept(holding), target = claim_target(holding), part, given;
	bool takes_turns = claim_takes_turns(holding, kept);
	uint64_t lease_ns = holding->settings->lease_ns;

	if (target == UINT32_MAX || (kept <= target && !takes_turns))
		yield(fleet, holding, UINT32_MAX);
	if (target == UINT32_MAX || fleet->now_ns < holding->rebalance->next_ns)
		return;
	if ((kept > target || takes_turns) && is_held_up(fleet, holding))
		yield(fleet, holding, kept > target ? target : kept - 1);
	if (kept > target) {
		part = (kept - target + EXCESS_PARTS - 1) / EXCESS_PARTS;
		given = give(fleet, holding, kept - target, true, lease_ns);
		if (given < part)
			given += give(fleet, holding, part - given, true, lease_ns / YOUNG_PARTS);
	} else {
		/* A host whose lease is over goes to the end of the line. */
		given = takes_turns && is_turn_over(fleet, holding)
				? give(fleet, holding, 1, true, 0)
				: 0;
		if (given)
			claim_anew(holding);
	}
	if (!given)
		return;
	yield(fleet, holding, UINT32_MAX);
	holding->rebalance->next_ns = fleet->now_ns + fleet->constants.renewal_ns;
}

/* Decides for @holding what goes back, and whether more is looked for. */
static void choose(struct fleet *fleet, struct holding *holding)
{
	leases_fall_due(fleet, holding);
	/* Without a connection nothing can go back, and what is wanted shows afterwards. */
	if (session_is_connected(fleet))
		give_unwanted(fleet, holding);
	if (session_state(fleet) != FLEET_READY || session_is_leaving(fleet))
		return;
	give_contended(fleet, holding);
	if (!demand_wanted(holding))
		claim_end_contention(holding);
	acquire_choose(fleet, holding);
	if (acquire_has_work(fleet, holding))
		holdings_add_work(fleet, holding);
}

/* Acts on what is noted of @holding, which was roused. */
static void act_on(struct fleet *fleet, struct holding *holding)
{
	bool begins = holdings_begins(holding), woken = holdings_is_woken(holding);

	acquire_settle(fleet, holding);
	if (holding->limiter->removed)
		return;
	if (begins)
		demand_begin(fleet, holding);
	if (woken)
		acquire_wake(holding);
	else if (!begins && !acquire_is_due(fleet, holding))
		return; /* the next look sees it */
	if (begins || !woken)
		demand_update(fleet, holding);
	choose(fleet, holding);
}

/* Another host came, or none is left. */
static void turn(struct fleet *fleet, struct holding *holding, bool alone)
{
	if (!alone) {
		/* Demand of a host that was alone does not count any more. */
		demand_forget_wanted(holding);
		holding->rebalance->spare = true;
		holding->rebalance->spare_until_ns = 0;
		holding->rebalance->spare_wanted = 0;
		return;
	}
	if (!holdings_is_active(holding) || holding->limiter->removed)
		return;
	/* All is wanted at once, also by a round that is under way. */
	round_again(holding);
	demand_update(fleet, holding);
	choose(fleet, holding);
}

/* Tells whether @holding is not in use any more. */
static bool is_idle(const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	if (holding->leased || holding->reserve.state != LEASE_NONE ||
	    round_is_under_way(holding) || claim_name(holding))
		return false;
	return limiter->removed || (!claim_is_unknown(holding) && !demand_wanted(holding) &&
				    !holding->restricted && !holding->settings->reserve_hosts &&
				    !turns_demand(&limiter->turns) && !demand_slots(holding));
}

/* One look at a holding that is in use; false: it is no longer. */
static bool look(struct fleet *fleet, struct holding *holding)
{
	demand_tick(fleet, holding);
	choose(fleet, holding);
	agreed_rate_tick(fleet, holding);
	return !is_idle(holding);
}

void rebalance_step(struct fleet *fleet)
{
	struct holding *holding;

	if (membership_has_shrunk(fleet)) {
		for (struct holding *h = holdings_first(fleet); h; h = h->next)
			acquire_seek_reserve(h);
	}
	if (membership_has_turned(fleet)) {
		for (struct holding *h = holdings_first(fleet); h; h = h->next)
			turn(fleet, h, membership_is_alone(fleet));
	}
	while ((holding = holdings_next_roused(fleet))) {
		act_on(fleet, holding);
		holdings_let_go(holding);
	}
	membership_watch(fleet);
	if (fleet->now_ns >= holdings_look_ns(fleet))
		holdings_look(fleet, look);
	fleet_wake_at(fleet, holdings_look_ns(fleet));
}

bool rebalance_send(struct fleet *fleet)
{
	const struct holding *last = holdings_last_work(fleet);
	struct holding *holding;
	bool sent = false, done = false;

	/* One holding after the other, each once. */
	while (!sent && !done && (holding = holdings_next_work(fleet))) {
		done = holding == last;
		sent = release_send(fleet, holding) || round_send(fleet, holding) ||
		       (!round_is_under_way(holding) && claim_send(fleet, holding));
		if (acquire_has_work(fleet, holding))
			holdings_add_work(fleet, holding);
		holdings_let_go(holding);
	}
	return sent;
}
