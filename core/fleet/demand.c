/*
 * demand - how many partitions a host wants of a limiter.
 *
 * What was granted over the last second goes on; who has waited for longer than a period shows that it
 * is not enough, and so do readers that waited nearly all of the last periods at full use, however
 * short each time: then twice as much is wanted. Where nothing is held there is no past to go by, and
 * all who wait count.
 *
 * The number is the most of the last second, so that a pause for a breath gives nothing back.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHING_HOSTS = 2 };

enum {
	TIGHT_PERCENT = 95, /* of a partition's rate: more use than that wants another */
	FIRST_PER_S =
		10, /* each token that is waited for counts as so many a second: at first ... */
	WAITING_PER_S = 2, /* ... and later, when those who wait are what is left over */
	FULL_USE_PERCENT = 97,
	FULL_USE_PERIODS = 3,
	UNMET_SLOTS = 5,
};

/* The same for the rate that was learnt, of which a partition is worth an equal share. */
static uint32_t learnt_most(const struct holding *holding, uint64_t tokens, uint32_t most,
			    uint32_t count)
{
	const struct learning *learning = holding->limiter->learning;
	double wanted;

	if (!learning || !learning->limited)
		return most;
	wanted = ceil((double)tokens * TIGHT_PERCENT / 100 * count / learning->adapted.rate);
	return wanted >= count ? count : wanted > most ? (uint32_t)wanted : most;
}

/* Partitions for @tokens a second, for the limit that needs most. */
static uint32_t partitions_for(const struct holding *holding, uint64_t tokens)
{
	uint32_t most = 0, count = holding_count(holding);
	struct settings share = settings_of_partition(holding->settings, 0);

	for (uint32_t i = 0; i < share.limit_count; i++) {
		struct fraction flow = rate_fraction(&share.limits[i].rate);
		u128 a_second = (u128)flow.num * NSEC_PER_SEC;
		u128 wanted;

		if (!a_second)
			return 0; /* nothing passes, whatever is held */
		/* Tokens are below 2^47, the denominator below 2^63. */
		wanted = ((u128)tokens * flow.den / 100 * TIGHT_PERCENT + a_second - 1) / a_second;
		if (wanted > count)
			wanted = count;
		most = wanted > most ? (uint32_t)wanted : most;
	}
	return learnt_most(holding, tokens, most, count);
}

/* What the reserve gives is wanted from nobody else. */
static uint64_t beyond_reserve(const struct holding *holding, uint64_t tokens)
{
	struct fraction flow;
	u128 a_second;

	if (!holding_has_reserve(holding))
		return tokens;
	flow = rate_fraction(&holding->settings->reserve_rate);
	a_second = (u128)flow.num * NSEC_PER_SEC / flow.den;
	return tokens > a_second ? tokens - (uint64_t)a_second : 0;
}

/* The counters as they were at the end of the period that was @periods before the newest. */
static const struct demand_period *past(const struct holding *holding, unsigned int periods)
{
	return &holding->demand[(holding->period + DEMAND_PERIODS - periods) % DEMAND_PERIODS];
}

static uint64_t bounded(uint64_t tokens)
{
	return tokens < TOKENS_MAX ? tokens : TOKENS_MAX;
}

static bool has_waited(const struct fleet *fleet, const struct limiter *limiter)
{
	return limiter->turns.current &&
	       fleet->now_ns - limiter->turns.current->asked_ns >= DEMAND_PERIOD_NS;
}

/* Somebody waited nearly all of the time. */
static bool is_short(const struct holding *holding)
{
	uint64_t delayed_ns = holding->delayed_ns - past(holding, FULL_USE_PERIODS)->delayed_ns;

	return delayed_ns >= FULL_USE_PERIODS * DEMAND_PERIOD_NS / 100 * FULL_USE_PERCENT;
}

/* ... and nearly all that could be granted was. */
static bool is_saturated(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;
	uint64_t granted = limiter->counters[COUNTER_GRANTED] -
			   past(holding, FULL_USE_PERIODS)->granted;

	/* More was of no use a moment ago. */
	if (fleet->now_ns < holding->vain_until_ns && !has_waited(fleet, limiter))
		return false;
	return holding->usable && is_short(holding) &&
	       partitions_for(holding, granted * DEMAND_PERIODS / FULL_USE_PERIODS) >=
		       holding->usable;
}

static uint32_t fair_share(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t hosts = fleet->host_count ? fleet->host_count : 1;

	return (holding_count(holding) + hosts - 1) / hosts;
}

/*
 * Tells whether readers wait below and cannot use tokens of this limiter yet, while other hosts
 * claim it. A reader needs tokens of each limiter that it is in. Hosts that keep partitions which
 * they cannot use yet may each keep the ones that the next host waits for: so where others claim, a
 * host takes partitions from below upwards, and gives back those above.
 */
static bool is_held_up_below(const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	return holding->claimant_count && turns_demand(&limiter->turns) &&
	       !limiter->turns.current && !holding->asked && !partition_waiting(limiter) &&
	       rate_is_unlimited(&holding->settings->key_rate);
}

/*
 * Tells whether readers use keys that have a rate each. How much a single key needs is not to be
 * told from the sum of all: such a host wants what others leave.
 */
static bool has_limited_keys(const struct holding *holding)
{
	return keys_count(holding->limiter) && !rate_is_unlimited(&holding->settings->key_rate);
}

static uint32_t wanted_for_tokens(const struct fleet *fleet, struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;
	const struct demand_period *then = past(holding, DEMAND_PERIODS - 1);
	uint64_t tokens = bounded(limiter->counters[COUNTER_GRANTED] - then->granted) +
			  bounded(limiter->counters[COUNTER_REFUSED] - then->refused);
	uint32_t wanted, kept = holding_kept(holding);

	/* What was counted since then was so in all periods but one. */
	tokens = tokens * DEMAND_PERIODS / (DEMAND_PERIODS - 1);
	if (!tokens && is_held_up_below(holding))
		return 0;
	if (!holding->usable)
		tokens += bounded(turns_demand(&limiter->turns)) * FIRST_PER_S;
	else if (has_waited(fleet, limiter))
		tokens += bounded(turns_demand(&limiter->turns)) * WAITING_PER_S;
	if (!tokens && (turns_demand(&limiter->turns) || holding->asked))
		tokens = 1;
	if (!tokens)
		return 0;
	if (fleet->alone || has_limited_keys(holding))
		return holding_count(holding);
	wanted = partitions_for(holding, beyond_reserve(holding, tokens));
	/* Nobody who waits for one token needs more than one partition, however slow. */
	if (!holding->usable && wanted > bounded(turns_demand(&limiter->turns)))
		wanted = turns_demand(&limiter->turns)
				 ? (uint32_t)bounded(turns_demand(&limiter->turns))
				 : 1;
	/* What was lost with a session, all hosts want back at once: it takes its time as it is. */
	if (!holding->usable && wanted < holding->had)
		wanted = holding->had;
	/* What has to wait out a quarantine is taken at once, as far as it is this host's share. */
	if (!holding->usable && holding->unclean_only && wanted < fair_share(fleet, holding))
		wanted = fair_share(fleet, holding);
	if (is_short(holding) && wanted < holding->usable)
		wanted = holding->usable;
	if (is_saturated(fleet, holding)) {
		if (kept < holding_count(holding))
			holding->grown_ns = fleet->now_ns;
		/* Those that wait out a quarantine will not be enough either. */
		if (wanted < 2 * kept)
			wanted = 2 * kept;
		/* How much more it could use one that gets none cannot tell: it asks for more and more. */
		if (holding->unmet && holding->period % UNMET_SLOTS == 0 &&
		    wanted < 2 * holding->wanted)
			wanted = 2 * holding->wanted;
	}
	return wanted < holding_count(holding) ? wanted : holding_count(holding);
}

/* Those that are open and those that are waited for; one who would not wait asks again. */
static uint32_t slots_demanded(const struct holding *holding)
{
	const struct slots *slots = holding->limiter->slots;
	uint32_t demanded = slots ? slots->used + slots->turns.wanting_none : 0;
	uint32_t asked = holding->asked ? 1 : 0;

	if (holding->settings->slots.kind != SLOTS_COUNT)
		return 0;
	return demanded ? demanded : asked;
}

static uint32_t wanted_for_slots(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t demanded = slots_demanded(holding), count = holding_count(holding);
	uint32_t least = holding_slots_of(holding, count - 1);

	if (!demanded)
		return 0;
	if (fleet->alone || !least || demanded / least >= count)
		return count;
	return demanded / least + (demanded % least != 0);
}

static uint32_t wanted_now(const struct fleet *fleet, struct holding *holding)
{
	uint32_t tokens, slots;

	if (holding->limiter->removed || fleet->leaving || !holding_needs_leases(holding))
		return 0;
	tokens = settings_limit(holding->settings) ? wanted_for_tokens(fleet, holding) : 0;
	slots = wanted_for_slots(fleet, holding);
	return tokens > slots ? tokens : slots;
}

static void note_period(struct holding *holding, uint64_t number)
{
	const uint64_t *counters = holding->limiter->counters;
	struct demand_period now = {
		.granted = counters[COUNTER_GRANTED],
		.refused = counters[COUNTER_REFUSED],
		.delayed_ns = holding->delayed_ns,
	};
	uint64_t passed = number - holding->period;

	for (uint64_t i = 0; i < passed && i < DEMAND_PERIODS; i++)
		holding->demand[(number - i) % DEMAND_PERIODS] = now;
	holding->period = number;
}

void demand_update(struct fleet *fleet, struct holding *holding)
{
	struct demand_period *newest = &holding->demand[holding->period % DEMAND_PERIODS];
	uint32_t wanted = wanted_now(fleet, holding);

	newest->wanted = wanted > newest->wanted ? wanted : newest->wanted;
	if (holding->usable)
		holding->had = holding_kept(holding);
	holding->wanted = 0;
	holding->asked = false;
	for (int i = 0; i < DEMAND_PERIODS; i++) {
		const struct demand_period *period = &holding->demand[i];

		holding->wanted = period->wanted > holding->wanted ? period->wanted
								   : holding->wanted;
	}
	/* Partitions that there are no more are not wanted either. */
	if (holding->wanted > holding_count(holding))
		holding->wanted = holding_count(holding);
}

static bool is_idle(const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	if (holding->leased || holding->reserve.state != LEASE_NONE || holding->search ||
	    holding->claim)
		return false;
	return limiter->removed || (!holding->claim_unknown && !holding->wanted &&
				    !holding->restricted && !holding->settings->reserve_hosts &&
				    !turns_demand(&limiter->turns) && !slots_demanded(holding));
}

void demand_rouse(struct fleet *fleet, struct holding *holding, bool asked)
{
	uint64_t number = fleet->now_ns / DEMAND_PERIOD_NS;

	if (holding->limiter->removed)
		return;
	if (!holding->active) {
		holding->active = true;
		holding->next_active = fleet->active;
		fleet->active = holding;
		holding_keep(holding);
		memset(holding->demand, 0, sizeof(holding->demand));
		holding->period = number - DEMAND_PERIODS;
		note_period(holding, number);
		holding->asked = asked;
		if (fleet->next_tick_ns == NEVER_NS)
			fleet->next_tick_ns = fleet->now_ns + DEMAND_PERIOD_NS;
		fleet_wake_at(fleet, fleet->next_tick_ns);
	} else if (holding->usable || holding->search ||
		   (holding->lacking && holding->next_search_ns > fleet->now_ns)) {
		return; /* the next tick sees it */
	}
	demand_update(fleet, holding);
	choose(fleet, holding);
}

void demand_resume(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = holding_kept(holding);

	if (!holding->leased && holding->reserve.state == LEASE_NONE && !holding->claim_unknown &&
	    !holding->restricted && !holding->settings->reserve_hosts)
		return;
	demand_rouse(fleet, holding, false);
	for (int i = 0; i < DEMAND_PERIODS; i++)
		holding->demand[i].wanted = kept;
	holding->wanted = kept;
	holding->had = kept;
}

void demand_tick(struct fleet *fleet)
{
	uint64_t number = fleet->now_ns / DEMAND_PERIOD_NS;
	struct holding **at = &fleet->active;

	while (*at) {
		struct holding *holding = *at;

		note_period(holding, number);
		demand_update(fleet, holding);
		choose(fleet, holding);
		learnt_tick(fleet, holding);
		if (!is_idle(holding)) {
			at = &holding->next_active;
			continue;
		}
		*at = holding->next_active;
		holding->active = false;
		holding_let_go(holding);
	}
	fleet->next_tick_ns = fleet->active ? fleet->now_ns + DEMAND_PERIOD_NS : NEVER_NS;
}

void demand_forget(struct fleet *fleet)
{
	while (fleet->active) {
		struct holding *holding = fleet->active;

		fleet->active = holding->next_active;
		holding->active = false;
		holding_let_go(holding);
	}
	while (fleet->work) {
		struct holding *holding = fleet->work;

		fleet->work = holding->next_work;
		holding->has_work = false;
		holding_let_go(holding);
	}
	fleet->next_tick_ns = NEVER_NS;
}

/* All is wanted at once, also by a search that is under way. */
static void begin_alone(struct fleet *fleet, struct holding *holding)
{
	if (!holding->active || holding->limiter->removed)
		return;
	if (holding->search)
		holding->search->again = true;
	demand_update(fleet, holding);
	choose(fleet, holding);
}

static void become_alone(struct fleet *fleet, bool alone)
{
	if (fleet->alone == alone)
		return;
	fleet->alone = alone;
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		h->alone = alone;
		/* What was wanted for being alone is not wanted any more. */
		for (int i = 0; i < DEMAND_PERIODS && !alone; i++)
			h->demand[i].wanted = 0;
		if (alone) {
			begin_alone(fleet, h);
			continue;
		}
		h->spare = true;
		h->spare_until_ns = 0;
		h->spare_wanted = 0;
	}
}

/*
 * Lets the next search for a reserve begin at once: a host has gone, and its reserves may be free.
 */
static void seek_reserves(struct fleet *fleet)
{
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (h->reserves_gone)
			h->seeks_reserve = false;
	}
}

static void ask_for_hosts(struct fleet *fleet, bool watch);

static void hosts_listed(struct fleet *fleet, struct request *request)
{

	fleet->hosts_asked = false;
	fleet->hosts_ns = fleet->now_ns + fleet_jitter(fleet, FLEET_HOSTS_NS);
	if (request->answer != ANSWER_OK)
		return;
	if (request->name_count < fleet->host_count)
		seek_reserves(fleet);
	fleet->host_count = request->name_count;
	fleet->hosts_watched = request->watch;
	fleet->hosts_known = request->name_count > 1 || request->watch;
	if (request->name_count <= WATCHING_HOSTS && !request->watch)
		ask_for_hosts(fleet, true);
	if (request->name_count > 1)
		become_alone(fleet, false);
	else if (request->watch)
		become_alone(fleet, true);
}

static void ask_for_hosts(struct fleet *fleet, bool watch)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_HOSTS, 0, path);
	request = request_new(REQUEST_LIST, path, hosts_listed);
	if (!request)
		return;
	request->watch = watch;
	fleet->hosts_asked = true;
	request_send(fleet, request);
}

/*
 * A host that is alone takes all it can get, and is told when another comes, or the other one leaves.
 * Where there are more they do not watch, so that nobody's coming wakes many.
 */
void demand_look_for_hosts(struct fleet *fleet)
{
	if (fleet->state != FLEET_READY || fleet->hosts_asked || fleet->leaving ||
	    fleet->hosts_watched)
		return;
	if (fleet->now_ns >= fleet->hosts_ns)
		ask_for_hosts(fleet, fleet->host_count && fleet->host_count <= WATCHING_HOSTS);
	else if (fleet->active)
		fleet_wake_at(fleet, fleet->hosts_ns);
}
