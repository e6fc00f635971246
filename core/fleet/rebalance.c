/*
 * rebalance - which leases are given back, and when it is time to look for more: see CHOOSING in
 * fleet.h. Called every DEMAND_PERIOD_NS for each limiter that is in use.
 */
#include "core/fleet/inside.h"
#include "core/limiter/slots.h"

enum { VAIN_DOUBLINGS_MAX = 5, SAVING_PARTS = 8, YOUNG_PARTS = 3, EXCESS_PARTS = 4 };

/* Somebody reads the token of this very partition. */
static bool is_read(const struct holding *holding, uint32_t index)
{
	const struct limiter *limiter = holding->limiter;
	const struct limiter *partition = index < limiter->partition_room
						  ? limiter->partitions[index]
						  : NULL;

	return partition && partition->turns.queue.length;
}

bool holding_misses(const struct holding *holding, uint32_t index)
{
	return is_read(holding, index) && index < holding_count(holding) &&
	       (index >= holding->lease_room || holding->leases[index].state == LEASE_NONE);
}

uint32_t holding_missing(const struct holding *holding)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < holding->limiter->partition_room; i++)
		missing += holding_misses(holding, i);
	return missing;
}

static void keep_up(struct fleet *fleet, struct holding *holding)
{
	bool others = holding->leased > holding->held + holding->draining;
	bool changed = false;

	for (uint32_t i = others ? 0 : holding->lease_room; i <= holding->lease_room; i++) {
		struct lease *lease = i < holding->lease_room ? &holding->leases[i]
							      : &holding->reserve;

		if (lease->state != LEASE_WAITING || lease->usable_ns > fleet->clocks.waiter_ns)
			continue;
		fleet_lease_becomes(fleet, holding, lease, LEASE_HELD);
		changed = true;
	}
	if (holding->before_ns && holding->before_ns <= fleet->clocks.waiter_ns) {
		changed = changed || holding->restricted;
		holding->restricted = false;
		holding->before_ns = 0;
	}
	if (changed)
		fleet_reshare(fleet, holding);
}

/* Whether what is left without @lease were fewer slots than are open. */
static bool is_in_use(const struct holding *holding, const struct lease *lease)
{
	uint32_t index = (uint32_t)(lease - holding->leases), used;

	if (holding->settings->slots.kind != SLOTS_COUNT || lease->state != LEASE_HELD ||
	    index >= holding_count(holding))
		return false;
	used = slots_used(holding->limiter);
	return used && used + holding_slots_of(holding, index) > holding_slots(holding);
}

/* What can be given back: the newest first, or with @oldest those first. NULL: none. */
static struct lease *next_to_give(const struct fleet *fleet, struct holding *holding, bool oldest,
				  uint64_t age_ns)
{
	struct lease *best = NULL;
	uint64_t use = holding_use(holding);

	for (uint32_t i = 0; i < holding->lease_room; i++) {
		struct lease *lease = &holding->leases[i];

		/* A partition that waits is of use to no host yet; the next one would begin anew. */
		if (lease->state != LEASE_HELD || is_read(holding, i) || is_in_use(holding, lease))
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
		drain(fleet, holding, lease);
		given++;
	}
	return given;
}

/* An idle limiter saves up; who gives its partitions back before it is full would lose that. */
static bool is_saving(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	if (!fleet->right || !holding->usable || holding->claimant_count)
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

/* Others may look for what is kept and not wanted: the last search found less that is free. */
static bool is_scarce(const struct holding *holding)
{
	return holding->left_free < holding_kept(holding);
}

/* Then their claims must be seen soon. */
static bool keeps_last(const struct holding *holding)
{
	return !holding->wanted && holding_kept(holding) && is_scarce(holding);
}

static void begin_spare(struct fleet *fleet, struct holding *holding)
{
	uint64_t third_ns = holding->settings->lease_ns / YOUNG_PARTS;

	holding->spare_until_ns = fleet->now_ns +
				  (third_ns < FLEET_SPARE_MAX_NS ? third_ns : FLEET_SPARE_MAX_NS);
	holding->spare_wanted = 0;
}

/* More is kept than was wanted in the last second. */
static void note_spare(struct fleet *fleet, struct holding *holding)
{
	if (!holding->spare) {
		if (holding->wanted && fleet->now_ns - holding->grown_ns < FLEET_VAIN_NS) {
			holding->vain_until_ns = fleet->now_ns + (FLEET_VAIN_NS << holding->vain);
			if (holding->vain < VAIN_DOUBLINGS_MAX)
				holding->vain++;
		} else {
			holding->vain = 0;
		}
		holding->spare = true;
		begin_spare(fleet, holding);
	}
	if (keeps_last(holding) &&
	    holding->next_search_ns > fleet->now_ns + fleet->constants.renewal_ns / 4 * 5)
		choose_next_search(fleet, holding);
	if (holding->spare_wanted < holding->wanted)
		holding->spare_wanted = holding->wanted;
}

/*
 * Demand that comes and goes would cost two writes each time, so what is not wanted is kept for a
 * while where there is plenty, and the last one also where there is not; unless others claim some, or
 * the host has many leases.
 */
static uint32_t to_keep(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t wanted = holding->wanted, kept = holding_kept(holding);
	bool over = fleet->now_ns >= holding->spare_until_ns;

	if (holding->claimant_count || room_is_scarce(fleet))
		return wanted;
	if (is_scarce(holding))
		return wanted || over ? wanted : 1;
	return over && holding->spare_wanted < kept ? holding->spare_wanted : kept;
}

static void give_unwanted(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = holding_kept(holding), count = holding_count(holding), keep;

	if (holding->limiter->removed || !holding_needs_leases(holding)) {
		drain_all(fleet, holding);
		return;
	}
	for (uint32_t i = count; i < holding->lease_room; i++)
		drain(fleet, holding, &holding->leases[i]);
	if (!holding->settings->reserve_hosts ||
	    holding->reserve_index >= holding->settings->reserve_hosts)
		drain(fleet, holding, &holding->reserve);
	if (kept <= holding->wanted) {
		holding->spare = false;
		return;
	}
	note_spare(fleet, holding);
	if (!holding->wanted && is_saving(fleet, holding))
		return;
	keep = to_keep(fleet, holding);
	if (keep < holding->held)
		give(fleet, holding, holding->held - keep, false, 0);
	if (fleet->now_ns >= holding->spare_until_ns)
		begin_spare(fleet, holding);
}

/* Opens no more slots than of @partitions, so that others come free to be given back. */
static void yield(struct fleet *fleet, struct holding *holding, uint32_t partitions)
{
	if (holding->yields == partitions)
		return;
	holding->yields = partitions;
	fleet_reshare(fleet, holding);
}

/* What should be given up by now, but is in use. */
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

/* Somebody saves up for a large take, and not all of that would go with the last partition. */
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

/* How old a lease is when it goes to those who have none: a take that is being saved up is let pass. */
static uint64_t turn_ns(const struct fleet *fleet, const struct holding *holding)
{
	uint64_t lease_ns = holding->settings->lease_ns;

	return is_saving_up(fleet, holding) ? lease_ns + lease_ns / SAVING_PARTS : lease_ns;
}

/*
 * Tells whether there are more hosts than partitions, and a host that went to the end of the line
 * would have to give up one of the @kept.
 */
static bool takes_turns(const struct holding *holding, uint32_t kept)
{
	return holding->starving && kept > holding->target_behind;
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

/* Fairness: what is above our share goes to those who have less than theirs. */
static void give_contended(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = holding_kept(holding), excess, part, given;
	uint64_t lease_ns = holding->settings->lease_ns;

	if (holding->target == UINT32_MAX ||
	    (kept <= holding->target && !takes_turns(holding, kept)))
		yield(fleet, holding, UINT32_MAX);
	if (holding->target == UINT32_MAX || fleet->now_ns < holding->next_give_ns)
		return;
	if ((kept > holding->target || takes_turns(holding, kept)) && is_held_up(fleet, holding))
		yield(fleet, holding, kept > holding->target ? holding->target : kept - 1);
	if (kept <= holding->target) {
		/* A host whose lease is over goes to the end of the line. */
		if (takes_turns(holding, kept) && is_turn_over(fleet, holding) &&
		    give(fleet, holding, 1, true, 0)) {
			yield(fleet, holding, UINT32_MAX);
			holding->reclaim = true;
			holding->next_give_ns = fleet->now_ns + fleet->constants.renewal_ns;
		}
		return;
	}
	excess = kept - holding->target;
	part = (excess + EXCESS_PARTS - 1) / EXCESS_PARTS;
	given = give(fleet, holding, excess, true, lease_ns);
	if (given < part)
		given += give(fleet, holding, part - given, true, lease_ns / YOUNG_PARTS);
	if (given)
		yield(fleet, holding, UINT32_MAX);
	if (given)
		holding->next_give_ns = fleet->now_ns + fleet->constants.renewal_ns;
}

void choose_next_search(struct fleet *fleet, struct holding *holding)
{
	bool soon = holding->lacking || holding->contended || holding->claim ||
		    keeps_last(holding) ||
		    (holding_wants_reserve(holding) && !holding->reserves_gone);
	uint64_t every_ns = FLEET_RESERVE_NS;

	if (soon)
		every_ns = fleet->constants.renewal_ns;
	else if (holding->leased || holding->claim_unknown)
		every_ns = holding->settings->lease_ns / YOUNG_PARTS;
	holding->next_search_ns = fleet->now_ns + fleet_jitter(fleet, every_ns);
}

uint32_t choose_limit(const struct holding *holding)
{
	return holding->wanted < holding->target ? holding->wanted : holding->target;
}

bool holding_wants_reserve(const struct holding *holding)
{
	return holding->settings->reserve_hosts && holding->reserve.state == LEASE_NONE &&
	       holding_needs_leases(holding);
}

bool holding_lacks(const struct holding *holding)
{
	return holding_kept(holding) < holding->wanted || holding_missing(holding);
}

bool choose_has_work(const struct fleet *fleet, const struct holding *holding)
{
	return drain_is_due(fleet, holding) || (holding->search && holding->search->ready) ||
	       claim_is_due(fleet, holding);
}

bool choose_send(struct fleet *fleet, struct holding *holding)
{
	if (drain_send(fleet, holding))
		return true;
	if (holding->search && holding->search->ready && search_send(fleet, holding->search))
		return true;
	return claim_send(fleet, holding);
}

void choose(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept;
	bool lacks, wants_reserve = holding_wants_reserve(holding);

	keep_up(fleet, holding);
	/* Without a connection nothing can go back, and what is wanted shows afterwards. */
	if (fleet->connected)
		give_unwanted(fleet, holding);
	if (fleet->state != FLEET_READY || fleet->leaving)
		return;
	give_contended(fleet, holding);
	kept = holding_kept(holding);
	if (kept >= holding->wanted)
		holding->unmet = false;
	if (!holding->wanted) {
		holding->contended = false;
		holding->starving = false;
		holding->target = UINT32_MAX;
	}
	/* Who begins to lack something looks at once; who found nothing looks again in a while. */
	lacks = holding_lacks(holding);
	if (!lacks)
		holding->lacking = false;
	else if (!holding->lacking && !holding->contended)
		holding->next_search_ns = 0;
	if (wants_reserve && !holding->seeks_reserve)
		holding->next_search_ns = 0;
	holding->seeks_reserve = wants_reserve;
	if (!holding->search && fleet->now_ns >= holding->next_search_ns &&
	    !holding->limiter->removed && holding_needs_leases(holding) &&
	    (lacks || wants_reserve || holding->leased || holding->claim || holding->claim_unknown))
		search_begin(fleet, holding);
	if (choose_has_work(fleet, holding))
		fleet_add_work(fleet, holding);
}
