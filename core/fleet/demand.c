/* demand - how many partitions, or leaves, a host wants of a limiter, see demand.h. */
#include "core/fleet/demand.h"
#include "core/fleet/appetite.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/session.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"
#include "core/limiter/saving.h"
#include "core/limiter/slots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	TIGHT_PERCENT = 95, /* of a partition's rate: more use than that wants another */
	FIRST_PER_S =
		10, /* each token that is waited for counts as so many a second: at first ... */
	WAITING_PER_S = 2, /* ... and later, when those who wait are what is left over */
	FULL_USE_PERCENT = 97,
	FULL_USE_PERIODS = 3,
	UNMET_PERIODS = 5,
	LACKED_PARTS = 4, /* such a part of a period that a reader of a range waits shows that */
};

/* So few leaves are none: a token in hours. */
static const double NEED_LEAST = 0.01;

static const double ALMOST_ALL = 0.99;

enum { LONG_WAITING_NS = 900000000 };

enum { VAIN_DOUBLINGS_MAX = 5 };

/* Counts of one DEMAND_PERIOD_NS. */
struct demand_period {
	uint32_t wanted;
	bool lacked;			       /* a reader got fewer tokens than it could use */
	uint64_t granted, refused, delayed_ns; /* counts at its end */
};

/* For DEMAND_PERIODS * DEMAND_PERIOD_NS what was asked for is remembered. */
enum { DEMAND_PERIODS = 10 };

struct demand {
	uint32_t wanted; /* partitions: the most in the last periods */
	struct demand_period periods[DEMAND_PERIODS];
	uint64_t period;	/* number of the newest */
	uint64_t grown_ns;	/* when more was asked for because all was used */
	uint8_t vain;		/* how often that was in vain of late */
	uint64_t vain_until_ns; /* to ask for more because all is used would be in vain */
	uint32_t had;		/* partitions that were kept when it last could use some */
	bool unclean_only;	/* the last round found only what no host gave back */
	bool unmet;		/* the last round did not find enough */
	bool contested;		/* other hosts claim partitions */
	bool lacked;		/* in the last period a reader could use more than it got ... */
	uint64_t lacked_ns;	/* ... and so long readers of ranges had waited at its end */

	/* Where partitions have no numbers. */
	bool has_appetite; /* they had none at the last look, either */
	struct appetite appetite;
	struct appetite_facts newest; /* of the last period */
	uint64_t tokens;	      /* granted or refused, as they were counted at its end */
	uint64_t waited_ns;	      /* so long readers had waited by then */
	uint64_t noted_ns;	      /* that was then, ... */
	uint64_t stalled_ns, behind;  /* ... and the counts of holding of that name were so much */
	bool counts_waiting;	      /* tokens that were waited for then were this limiter's */
	uint64_t asked_ns;	      /* a reader has asked then that did not wait; 0: none has */
};

bool demand_attach(struct holding *holding)
{
	holding->demand = calloc(1, sizeof(*holding->demand));
	return holding->demand;
}

void demand_detach(struct holding *holding)
{
	free(holding->demand);
}

uint32_t demand_wanted(const struct holding *holding)
{
	return holding->demand->wanted;
}

void demand_note_unmet(struct holding *holding, bool unmet)
{
	holding->demand->unmet = unmet;
}

void demand_note_unclean(struct holding *holding, bool unclean_only)
{
	holding->demand->unclean_only = unclean_only;
}

void demand_note_contested(struct holding *holding, bool contested)
{
	holding->demand->contested = contested;
}

void demand_note_spare(const struct fleet *fleet, struct holding *holding)
{
	struct demand *demand = holding->demand;

	if (!demand->wanted || fleet->now_ns - demand->grown_ns >= FLEET_VAIN_NS) {
		demand->vain = 0;
		return;
	}
	demand->vain_until_ns = fleet->now_ns + (FLEET_VAIN_NS << demand->vain);
	if (demand->vain < VAIN_DOUBLINGS_MAX)
		demand->vain++;
}

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

/* Returns @tokens less those of the reserve, which no lease need bring. */
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
	const struct demand *demand = holding->demand;

	return &demand->periods[(demand->period + DEMAND_PERIODS - periods) % DEMAND_PERIODS];
}

/* Returns the tokens granted since the end of @then: another rate of a unit may say fewer. */
static uint64_t granted_since(const struct holding *holding, const struct demand_period *then)
{
	uint64_t granted = holding_granted(holding);

	return granted > then->granted ? granted - then->granted : 0;
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

/*
 * Returns the tokens that readers want who wait: of a take of A to B that has the turn it is B.
 * They are tokens of the slowest limit, see holding_waiting().
 */
static uint64_t hoped_for(const struct holding *holding)
{
	const struct waiter *current = holding->limiter->turns.current;
	uint64_t more = current && current->most > current->tokens ? current->most - current->tokens
								   : 0;

	return bounded(holding_waiting(holding)) + more;
}

/* Tells whether readers waited nearly all of the time, or never got as much as they could use. */
static bool is_short(const struct holding *holding)
{
	uint64_t delayed_ns = holding->delayed_ns - past(holding, FULL_USE_PERIODS)->delayed_ns;
	bool lacked = true;

	for (unsigned int i = 0; i < FULL_USE_PERIODS; i++)
		lacked &= past(holding, i)->lacked;
	return lacked || delayed_ns >= FULL_USE_PERIODS * DEMAND_PERIOD_NS / 100 * FULL_USE_PERCENT;
}

/* Tells whether they did, and nearly all that could be granted was. */
static bool is_saturated(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;
	uint64_t granted = granted_since(holding, past(holding, FULL_USE_PERIODS));
	uint64_t used;

	/* More was of no use a moment ago. */
	if (fleet->now_ns < holding->demand->vain_until_ns && !has_waited(fleet, limiter))
		return false;
	/* Tokens of that many partitions are TIGHT_PERCENT of what was granted. */
	used = partitions_for(holding, granted * DEMAND_PERIODS / FULL_USE_PERIODS);
	return holding->usable && is_short(holding) &&
	       used * 100 >= (uint64_t)holding->usable * TIGHT_PERCENT;
}

static uint32_t fair_share(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t hosts = membership_count(fleet);

	return (holding_count(holding) + hosts - 1) / hosts;
}

/* Tells whether readers use keys that have a rate each. */
static bool has_limited_keys(const struct holding *holding)
{
	const struct settings *settings = holding->settings;

	return keys_count(holding->limiter) &&
	       (!rate_is_unlimited(&settings->key_rate) || settings->key_unit_count ||
		overrides_limit(settings->overrides));
}

/*
 * Tells whether keys have the same share as the limiter, or limit alone. How much a single one
 * needs is not to be told from the sum of all: such a host wants what others leave.
 */
static bool wants_share_of_keys(const struct holding *holding)
{
	return has_limited_keys(holding) &&
	       (holding->settings->key_share == KEY_SHARE_PROPORTIONAL ||
		!holding->settings->limit_count);
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

	return holding->demand->contested && holding_waiting(holding) && !limiter->turns.current &&
	       !holding->asked && !partition_waiting(limiter) && !has_limited_keys(holding);
}

static uint32_t wanted_for_tokens(const struct fleet *fleet, struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;
	const struct demand_period *then = past(holding, DEMAND_PERIODS - 1);
	uint64_t tokens = bounded(granted_since(holding, then)) +
			  bounded(limiter->counters[COUNTER_REFUSED] - then->refused);
	uint32_t wanted, kept = leases_kept(holding);

	/* The counters cover all periods but one. */
	tokens = tokens * DEMAND_PERIODS / (DEMAND_PERIODS - 1);
	if (!tokens && is_held_up_below(holding))
		return 0;
	if (!holding->usable)
		tokens += hoped_for(holding) * FIRST_PER_S;
	else if (has_waited(fleet, limiter))
		tokens += bounded(holding_waiting(holding)) * WAITING_PER_S;
	if (!tokens && (holding_waiting(holding) || holding->asked))
		tokens = 1;
	if (!tokens)
		return 0;
	if (membership_is_alone(fleet) || wants_share_of_keys(holding))
		return holding_count(holding);
	wanted = partitions_for(holding, beyond_reserve(holding, tokens));
	/* A reader of one token needs no more than one partition, however slow. */
	if (!holding->usable && wanted > hoped_for(holding))
		wanted = hoped_for(holding) ? (uint32_t)hoped_for(holding) : 1;
	/* All hosts want back at once what a session lost: that takes time enough. */
	if (!holding->usable && wanted < holding->demand->had)
		wanted = holding->demand->had;
	/* Unclean partitions wait for Q: this host's fair share of them is taken at once. */
	if (!holding->usable && holding->demand->unclean_only &&
	    wanted < fair_share(fleet, holding))
		wanted = fair_share(fleet, holding);
	if (is_short(holding) && wanted < holding->usable)
		wanted = holding->usable;
	if (is_saturated(fleet, holding)) {
		if (kept < holding_count(holding))
			holding->demand->grown_ns = fleet->now_ns;
		/* Partitions that wait for Q will not be enough either. */
		if (wanted < 2 * kept)
			wanted = 2 * kept;
		/*
		 * A host that gets none cannot tell how much it could use: it asks for more and
		 * more.
		 */
		if (holding->demand->unmet && holding->demand->period % UNMET_PERIODS == 0 &&
		    wanted < 2 * holding->demand->wanted)
			wanted = 2 * holding->demand->wanted;
	}
	return wanted < holding_count(holding) ? wanted : holding_count(holding);
}

uint32_t demand_slots(const struct holding *holding)
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
	uint32_t demanded = demand_slots(holding), count = holding_count(holding);
	uint32_t least = holding_slots_of(holding, count - 1);

	if (!demanded)
		return 0;
	if (membership_is_alone(fleet) || !least || demanded / least >= count)
		return count;
	return demanded / least + (demanded % least != 0);
}

static uint32_t wanted_now(const struct fleet *fleet, struct holding *holding)
{
	uint32_t tokens, slots;

	if (holding->limiter->removed || session_is_leaving(fleet) ||
	    !holding_needs_leases(holding))
		return 0;
	tokens = settings_limit(holding->settings) && holding_has_numbers(holding->settings)
			 ? wanted_for_tokens(fleet, holding)
			 : 0;
	slots = wanted_for_slots(fleet, holding);
	return tokens > slots ? tokens : slots;
}

static void note_period(struct holding *holding, uint64_t number)
{
	const uint64_t *counters = holding->limiter->counters;
	struct demand_period now = {
		.granted = holding_granted(holding),
		.refused = counters[COUNTER_REFUSED],
		.delayed_ns = holding->delayed_ns,
		.lacked = holding->demand->lacked,
	};
	uint64_t passed = number - holding->demand->period;

	for (uint64_t i = 0; i < passed && i < DEMAND_PERIODS; i++)
		holding->demand->periods[(number - i) % DEMAND_PERIODS] = now;
	holding->demand->period = number;
}

void demand_update(struct fleet *fleet, struct holding *holding)
{
	struct demand_period *newest =
		&holding->demand->periods[holding->demand->period % DEMAND_PERIODS];
	uint32_t wanted = wanted_now(fleet, holding);

	newest->wanted = wanted > newest->wanted ? wanted : newest->wanted;
	if (holding->usable)
		holding->demand->had = leases_kept(holding);
	holding->demand->wanted = 0;
	if (holding->asked)
		holding->demand->asked_ns = fleet->now_ns;
	holding->asked = false;
	for (int i = 0; i < DEMAND_PERIODS; i++) {
		const struct demand_period *period = &holding->demand->periods[i];

		holding->demand->wanted = period->wanted > holding->demand->wanted
						  ? period->wanted
						  : holding->demand->wanted;
	}
	/* Partitions that there are no more are not wanted either. */
	if (holding->demand->wanted > holding_count(holding))
		holding->demand->wanted = holding_count(holding);
}

/* The appetite of readers, where partitions have no numbers */

/* Returns the tokens that a leaf brings in a period, of the limit that needs most leaves. */
double demand_leaf(const struct holding *holding)
{
	const struct learning *learning = holding->limiter->learning;
	uint32_t leaves = holding_leaves(holding->settings);
	double least = INFINITY;
	struct settings all;

	settings_of_host(holding->settings, leaves, false, &all);
	for (uint32_t i = 0; i < all.limit_count; i++) {
		struct fraction flow = rate_fraction(&all.limits[i].rate);

		least = fmin(least, (double)flow.num / (double)flow.den);
	}
	least *= (double)DEMAND_PERIOD_NS;
	if (learning && learning->limited)
		least = fmin(least, learning->adapted.rate * DEMAND_PERIOD_NS / NSEC_PER_SEC);
	return least / leaves;
}

/*
 * Tells whether it is this limiter that readers wait for, which may be below it: its bucket lacks
 * what the reader whose turn it is has asked for.
 */
static bool lacks_tokens(const struct fleet *fleet, struct limiter *limiter)
{
	uint64_t needed;
	bool lacks = false;

	if (!limiter->turns.current)
		return false;
	needed = saving_needed(limiter, limiter->turns.current->tokens);
	limiter_refill(&fleet->engine->schedule, limiter);
	for (uint32_t i = 0; i < limiter->plain_count; i++)
		lacks |= !bucket_has(&limiter->buckets[i], needed);
	if (limiter->turns.current->amounts)
		lacks |= !units_have(limiter, limiter->turns.current->amounts,
				     saving_holds(limiter));
	return lacks || limiter->learning;
}

static uint64_t tokens_counted(const struct holding *holding)
{
	return holding_granted(holding) + holding->limiter->counters[COUNTER_REFUSED];
}

/* Returns how long readers have waited, also the one whose turn it is. */
static uint64_t waited_so_far_ns(const struct fleet *fleet, const struct holding *holding)
{
	const struct waiter *current = holding->limiter->turns.current;

	return holding->delayed_ns + (current ? fleet->now_ns - current->asked_ns : 0);
}

/* Returns the part of @all_ns that passed from @from_ns to @to_ns: less than all. */
static double part_of(uint64_t to_ns, uint64_t from_ns, uint64_t all_ns)
{
	if (to_ns <= from_ns)
		return 0;
	return fmin((double)(to_ns - from_ns) / (double)all_ns, ALMOST_ALL);
}

/* Returns how long one reader or more has waited, as holding->stalled_ns has it. */
static uint64_t stalled_so_far_ns(const struct fleet *fleet, const struct holding *holding)
{
	bool stalls = holding->limiter->turns.waiting && fleet->now_ns > holding->stall_ns;

	return holding->stalled_ns + (stalls ? fleet->now_ns - holding->stall_ns : 0);
}

/* Adds to @facts, of the last @periods, what was asked for while no reader waited. */
static void tell_calm(const struct fleet *fleet, const struct holding *holding, uint64_t periods,
		      struct appetite_facts *facts)
{
	const struct demand *demand = holding->demand;
	uint64_t ns = fleet->now_ns - demand->noted_ns;
	uint64_t stalled_ns = stalled_so_far_ns(fleet, holding) - demand->stalled_ns;
	double behind = (double)(holding->behind - demand->behind) / (double)periods;

	/*
	 * Of units it is not known, nor while a reader of a range lacks some. Readers that have
	 * tokens at once while others wait below seem to have come while none waited.
	 */
	if (units_counts(holding->limiter) || demand->lacked || stalled_ns > ns)
		return;
	facts->calm = (double)(ns - stalled_ns) / DEMAND_PERIOD_NS / (double)periods;
	facts->asked_calm = fmax(facts->asked - behind, 0);
}

/* Remembers the counts from which the next period goes on. */
static void note_counts(const struct fleet *fleet, struct holding *holding)
{
	struct demand *demand = holding->demand;

	demand->noted_ns = fleet->now_ns;
	demand->tokens = tokens_counted(holding);
	demand->waited_ns = waited_so_far_ns(fleet, holding);
	demand->stalled_ns = stalled_so_far_ns(fleet, holding);
	demand->behind = holding->behind;
}

/* Notes what was asked for in the last @periods. */
static void note_appetite(const struct fleet *fleet, struct holding *holding, uint64_t periods)
{
	struct limiter *limiter = holding->limiter;
	const struct waiter *current = limiter->turns.current;
	struct demand *demand = holding->demand;
	uint64_t tokens = tokens_counted(holding), waited_ns = waited_so_far_ns(fleet, holding);
	bool counts = !limiter->first_child || current, lacks = lacks_tokens(fleet, limiter);
	double waiting = counts ? (double)holding_waiting(holding) : 0;
	double more = counts && demand->counts_waiting ? waiting - demand->newest.waiting : 0;
	uint64_t all_ns = periods * DEMAND_PERIOD_NS / 100 * FULL_USE_PERCENT;
	/* More of this limiter is of no use to readers that wait for a key, or a child. */
	bool waits_below = !current && holding_waiting(holding);

	if (!periods)
		return;
	/* A reader that was granted a part of what it could use asks for the rest again. */
	if (demand->lacked && demand->counts_waiting) {
		waiting = demand->newest.waiting;
		more = 0;
	}
	demand->newest = (struct appetite_facts){
		.asked = fmax(((double)(int64_t)(tokens - demand->tokens) + more) / (double)periods,
			      0),
		.waiting = waiting,
		.long_waiting = lacks && fleet->now_ns - current->asked_ns >= LONG_WAITING_NS,
		.waited = demand->lacked || (lacks && waited_ns >= demand->waited_ns + all_ns),
		.waited_part = waits_below ? 0 : part_of(waited_ns, demand->waited_ns, all_ns),
		.held = holding->usable,
		.leaf = demand_leaf(holding),
		.contended = demand->contested,
		.refused = limiter->counters[COUNTER_REFUSED] != past(holding, 0)->refused,
	};
	tell_calm(fleet, holding, periods, &demand->newest);
	note_counts(fleet, holding);
	demand->counts_waiting = counts;
	appetite_note(&demand->appetite, &demand->newest, periods);
}

static void begin_appetite(const struct fleet *fleet, struct holding *holding)
{
	struct demand *demand = holding->demand;

	demand->has_appetite = true;
	appetite_begin(&demand->appetite, fleet->now_ns / DEMAND_PERIOD_NS - demand->period);
	demand->newest = (struct appetite_facts){.leaf = demand_leaf(holding)};
	note_counts(fleet, holding);
	demand->counts_waiting = !holding->limiter->first_child;
}

/* Tells whether a reader has asked in the last second that did not wait. */
static bool has_asked(const struct fleet *fleet, const struct demand *demand)
{
	return demand->asked_ns && fleet->now_ns - demand->asked_ns < NSEC_PER_SEC;
}

/* Returns the tokens that readers want who wait, or would not wait a moment ago. */
static uint64_t hopes_of(const struct fleet *fleet, const struct holding *holding)
{
	uint64_t waiting = hoped_for(holding);

	return waiting || !has_asked(fleet, holding->demand) ? waiting : 1;
}

/* Returns the leaves that serve readers at once which wait, where nothing is held. */
static uint32_t first_leaves(const struct fleet *fleet, const struct holding *holding)
{
	const struct demand *demand = holding->demand;
	double waiting = (double)hopes_of(fleet, holding), first;
	double leaf = demand->newest.leaf * (double)(NSEC_PER_SEC / DEMAND_PERIOD_NS);
	uint32_t leaves = holding_leaves(holding->settings);

	/* Nothing passes, whatever is held; or all does. */
	if (waiting <= 0 || leaf <= 0 || isinf(leaf))
		return 0;
	first = ceil(fmin(waiting * FIRST_PER_S / leaf, leaves));
	if (holding->usable)
		return (uint32_t)first;
	/* All hosts want back at once what a session lost: that takes time enough. */
	first = fmax(first, demand->had);
	/* Unclean ones wait for Q: this host's fair share of them is taken at once. */
	if (demand->unclean_only)
		first = fmax(first, fair_share(fleet, holding));
	return (uint32_t)fmin(first, leaves);
}

static double need_of(const struct holding *holding)
{
	const struct demand *demand = holding->demand;
	double leaf = demand->newest.leaf, need;

	/* Nothing passes, whatever is held; or all does. */
	if (leaf <= 0 || isinf(leaf))
		return 0;
	need = appetite_need(&demand->appetite, &demand->newest);
	if (holding_has_reserve(holding)) {
		struct fraction flow = rate_fraction(&holding->settings->reserve_rate);

		need -= (double)flow.num / (double)flow.den * DEMAND_PERIOD_NS / leaf;
	}
	return need > NEED_LEAST ? need : 0;
}

void demand_tell_portion(const struct fleet *fleet, const struct holding *holding,
			 struct portion_facts *facts)
{
	const struct demand *demand = holding->demand;
	const struct demand_period *then = past(holding, DEMAND_PERIODS - 1);
	uint64_t granted = granted_since(holding, then);
	bool limits = settings_limit(holding->settings);
	uint64_t waiting = holding_waiting(holding);

	if (!isinf(demand->newest.leaf))
		facts->leaf = demand->newest.leaf * (double)(NSEC_PER_SEC / DEMAND_PERIOD_NS);
	if (holding->limiter->removed || session_is_leaving(fleet) ||
	    !holding_needs_leases(holding))
		return;
	facts->exact = demand->wanted;
	if (limits && (granted || !is_held_up_below(holding))) {
		facts->need = need_of(holding);
		facts->first = first_leaves(fleet, holding);
		facts->waiting = hopes_of(fleet, holding);
		facts->waits_here = holding->limiter->turns.current;
		facts->chance = appetite_chance(&demand->appetite);
		facts->is_rare = appetite_is_rare(&demand->appetite);
		facts->is_even = appetite_is_even(&demand->appetite);
		facts->is_young = appetite_is_young(&demand->appetite);
		facts->hunger = appetite_hunger(&demand->appetite);
		if ((facts->need > 0 || granted || waiting || has_asked(fleet, demand)) &&
		    wants_share_of_keys(holding))
			facts->hunger = facts->leaves;
	}
	if ((facts->need > 0 || facts->first || facts->hunger || facts->exact) &&
	    membership_is_alone(fleet))
		facts->hunger = facts->leaves;
}

/* Notes whether readers of ranges lacked tokens of this limiter in the last @periods. */
static void note_lacked(const struct fleet *fleet, struct holding *holding, uint64_t periods)
{
	struct demand *demand = holding->demand;
	uint64_t since_ns = holding->range_since_ns;
	uint64_t waited_ns = holding->range_waited_ns + (since_ns ? fleet->now_ns - since_ns : 0);

	if (!periods)
		return;
	demand->lacked = holding->lacked || (waited_ns - demand->lacked_ns) * LACKED_PARTS >=
						    periods * DEMAND_PERIOD_NS;
	demand->lacked_ns = waited_ns;
	holding->lacked = false;
}

void demand_begin(struct fleet *fleet, struct holding *holding)
{
	uint64_t number = fleet->now_ns / DEMAND_PERIOD_NS;

	begin_appetite(fleet, holding);
	note_lacked(fleet, holding, DEMAND_PERIODS);
	holding->demand->lacked = false;
	memset(holding->demand->periods, 0, sizeof(holding->demand->periods));
	holding->demand->period = number - DEMAND_PERIODS;
	note_period(holding, number);
}

void demand_resume(struct fleet *fleet, struct holding *holding, bool claims)
{
	uint32_t kept = leases_kept(holding);

	if (!holding->leased && holding->reserve.state == LEASE_NONE && !claims &&
	    !holding->settings->reserve_hosts)
		return;
	holdings_rouse(fleet, holding, false);
	(void)holdings_begins(holding);
	demand_begin(fleet, holding);
	for (int i = 0; i < DEMAND_PERIODS; i++)
		holding->demand->periods[i].wanted = kept;
	holding->demand->wanted = kept;
	holding->demand->had = kept;
}

void demand_tick(struct fleet *fleet, struct holding *holding)
{
	struct demand *demand = holding->demand;
	uint64_t number = fleet->now_ns / DEMAND_PERIOD_NS;

	note_lacked(fleet, holding, number - demand->period);
	if (holding_has_numbers(holding->settings))
		demand->has_appetite = false;
	else if (demand->has_appetite)
		note_appetite(fleet, holding, number - demand->period);
	else
		begin_appetite(fleet, holding);
	note_period(holding, number);
	demand_update(fleet, holding);
}

void demand_forget_wanted(struct holding *holding)
{
	for (int i = 0; i < DEMAND_PERIODS; i++)
		holding->demand->periods[i].wanted = 0;
}

bool demand_is_read(const struct holding *holding, uint32_t index)
{
	const struct limiter *partition = partition_find(holding->limiter, index);

	return partition && partition->turns.queue.length;
}

/* Tells whether the own tokens of partition @index, of @count, are read and it is not held. */
static bool is_missed(const struct holding *holding, uint32_t index, uint32_t count)
{
	const struct lease *lease;

	if (!demand_is_read(holding, index) || index >= count)
		return false;
	lease = holding_find_lease(holding, index);
	return !lease || lease->state == LEASE_NONE;
}

static bool is_any_missed(const struct holding *holding, uint32_t count)
{
	const struct limiter *partition;

	for (uint32_t i = 0; (partition = partition_next(holding->limiter, &i));) {
		if (is_missed(holding, partition->partition - 1u, count))
			return true;
	}
	return false;
}

bool demand_misses(const struct holding *holding, uint32_t index)
{
	return is_missed(holding, index, holding_count(holding));
}

bool demand_misses_any(const struct holding *holding)
{
	return is_any_missed(holding, holding_count(holding));
}

/* Tells whether there is a reserve, and this host has nothing of it. */
static bool lacks_reserve(const struct holding *holding)
{
	return holding->settings->reserve_hosts && holding->reserve.state == LEASE_NONE;
}

bool demand_wants_reserve(const struct holding *holding)
{
	return lacks_reserve(holding) && holding_needs_leases(holding);
}

void demand_tell(const struct holding *holding, struct facts *facts)
{
	facts->wanted = holding->demand->wanted;
	facts->is_unmet = holding->demand->unmet;
	facts->misses_read = is_any_missed(holding, facts->count);
	facts->lacks_reserve = facts->is_leased && lacks_reserve(holding);
}
