/* rebalance - each limiter's facts are gathered, and what follows is done, see rebalance.h. */
#include "core/fleet/rebalance.h"
#include "core/fleet/agreed_rate.h"
#include "core/fleet/apportion.h"
#include "core/fleet/balance.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/release.h"
#include "core/fleet/room.h"
#include "core/fleet/round.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/told.h"
#include "core/fleet/transaction.h"
#include "core/fleet/wants.h"
#include "core/limiter/slots.h"

#include <stdlib.h>

bool rebalance_attach(struct holding *holding)
{
	holding->balance = calloc(1, sizeof(*holding->balance));
	if (!holding->balance)
		return false;
	holding->balance->share.target = UINT32_MAX;
	return true;
}

void rebalance_detach(struct holding *holding)
{
	free(holding->balance);
}

static bool has_numbers(const struct holding *holding)
{
	return holding_has_numbers(holding->settings);
}

/* Gathers the facts of @holding but its pieces. */
static void gather(struct fleet *fleet, const struct holding *holding, struct facts *facts)
{
	*facts = (struct facts){
		.now_ns = fleet->now_ns,
		.renewal_ns = fleet->constants.renewal_ns,
		.lease_ns = holding->settings->lease_ns,
		.is_connected = session_is_connected(fleet),
		.is_ready = session_state(fleet) == FLEET_READY,
		.is_leaving = session_is_leaving(fleet),
		.has_little_room = room_is_scarce(fleet),
		.claim_room_ns = room_claims_from_ns(fleet),
		.is_removed = holding->limiter->removed,
		.is_leased = holding_needs_leases(holding),
		.count = holding_count(holding),
		.held = holding->held,
		.kept = leases_kept(holding),
		.has_leases = holding->leased,
		.yields = holding->yields,
		.is_looking = round_is_under_way(holding),
	};
	demand_tell(holding, facts);
	claim_tell(holding, facts);
	facts->parts_differ = facts->claimed && claim_parts_differ(fleet, holding);
}

/*
 * Gathers the facts of tokens that are saved up. The limiter saves up as long as it is not full:
 * its tokens would be lost with its partitions. A reader does that wants more than goes with the
 * last partition.
 */
static void gather_savings(const struct fleet *fleet, const struct holding *holding,
			   struct facts *facts)
{
	const struct limiter *limiter = holding->limiter;
	struct holding_savings savings = holding_savings(holding, fleet->engine->schedule.now_ns, 1,
							 settings_leaf_count(holding->settings));

	savings.is_full &= !keys_count(limiter);
	facts->saves = term_runs(fleet) && holding->usable && !savings.is_full;
	facts->saves_up = limiter->turns.wanted && savings.has_saved;
}

/* Gathers the facts of what is held. Without memory for them nothing goes back this time. */
static void gather_pieces(const struct fleet *fleet, const struct holding *holding,
			  struct facts *facts)
{
	bool has_slots = holding->settings->slots.kind == SLOTS_COUNT;
	uint64_t use = holding_use(holding);

	gather_savings(fleet, holding, facts);
	facts->slots_used = has_slots ? slots_used(holding->limiter) : 0;
	facts->pieces = calloc(holding->held + 1, sizeof(*facts->pieces));
	for (uint32_t i = 0; facts->pieces && i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state != LEASE_HELD || lease->first >= facts->count)
			continue;
		facts->pieces[facts->piece_count++] = (struct piece){
			.index = lease->first,
			.slots = has_slots ? holding_slots_of(holding, lease->first) : 0,
			.age_ns = fleet->now_ns - lease->since_ns,
			.is_read = demand_is_read(holding, lease->first),
			.is_numbered = holding_is_numbered(holding, lease->first, lease->first),
			.is_of_use = use != lease->granted,
		};
	}
}

static void look_in(struct fleet *fleet, struct holding *holding, uint64_t interval_ns)
{
	holding->balance->look_ns = interval_ns == NEVER_NS
					    ? NEVER_NS
					    : fleet->now_ns + fleet_jitter(fleet, interval_ns);
}

/* Opens no more slots than of @partitions, so that others come free to be given back. */
static void yield(struct fleet *fleet, struct holding *holding, uint32_t partitions)
{
	if (holding->yields == partitions)
		return;
	holding->yields = partitions;
	leases_reshare(fleet, holding);
}

/* Tells whether the claim should be made, changed or deleted now: @claim is then the amount. */
static bool claims(struct fleet *fleet, const struct holding *holding, uint32_t *claim)
{
	struct facts facts;

	if (round_is_under_way(holding))
		return false;
	if (!has_numbers(holding))
		return apportion_claims(fleet, holding, claim);
	gather(fleet, holding, &facts);
	return balance_claims(holding->balance, &facts, claim);
}

/* Tells whether @holding has something to send: to give back, to take or to claim. */
static bool has_work(struct fleet *fleet, const struct holding *holding)
{
	uint32_t claim;

	return release_is_due(fleet, holding) || round_is_ready(holding) ||
	       claims(fleet, holding, &claim);
}

/* Carries out what was decided on @facts. */
static void carry_out(struct fleet *fleet, struct holding *holding, const struct facts *facts,
		      const struct decision *decision)
{
	if (decision->spare_begins)
		demand_note_spare(fleet, holding);
	if (decision->look_in_ns)
		look_in(fleet, holding, decision->look_in_ns);
	for (uint32_t i = 0; i < decision->gives; i++)
		release_lease(fleet, holding, holding_find_lease(holding, facts->pieces[i].index));
	yield(fleet, holding, decision->yields);
	if (decision->turn_ends)
		claim_anew(holding);
	if (decision->is_met)
		demand_note_unmet(holding, false);
	if (decision->looks)
		round_begin(fleet, holding);
	if (facts->is_ready && !facts->is_leaving && has_work(fleet, holding))
		holdings_add_work(fleet, holding);
}

/* Gathers the facts of @holding, and decides on them. */
static void decide(struct fleet *fleet, struct holding *holding, struct facts *facts,
		   struct decision *decision)
{
	gather(fleet, holding, facts);
	if (balance_may_give(holding->balance, facts))
		gather_pieces(fleet, holding, facts);
	balance_decide(holding->balance, facts, decision);
}

static void balance(struct fleet *fleet, struct holding *holding)
{
	struct decision decision;
	struct facts facts;

	decide(fleet, holding, &facts, &decision);
	carry_out(fleet, holding, &facts, &decision);
	if (holding->balance->share.target == UINT32_MAX)
		wants_follow(fleet, holding, NULL, 0, 0);
	free(facts.pieces);
}

/* The same where partitions have no numbers. */
static void apportion(struct fleet *fleet, struct holding *holding)
{
	bool is_looking = round_is_under_way(holding);
	struct portion_decision decision;

	if (session_state(fleet) != FLEET_READY || !session_is_connected(fleet) ||
	    session_is_leaving(fleet))
		return;
	apportion_decide(fleet, holding, is_looking, &decision);
	if (decision.gives)
		release_leaves(fleet, holding, decision.gives);
	yield(fleet, holding, decision.yields);
	if (decision.turn_ends)
		claim_anew(holding);
	if (decision.looks && !holding->limiter->removed && holding_needs_leases(holding))
		round_begin(fleet, holding);
	if (has_work(fleet, holding))
		holdings_add_work(fleet, holding);
}

/* Decides for @holding what goes back and whether more is looked for, and does that. */
static void choose(struct fleet *fleet, struct holding *holding)
{
	/* Rule 17: leases that nothing needs become usable only where they go back at once. */
	if (session_is_connected(fleet) || holding_needs_leases(holding))
		leases_fall_due(fleet, holding);
	if (session_is_connected(fleet))
		release_unfit(fleet, holding);
	if (has_numbers(holding))
		balance(fleet, holding);
	else
		apportion(fleet, holding);
}

/* Tells whether a look may soon bring more of what is not held. */
static bool look_may_bring(const struct fleet *fleet, const struct holding *holding, bool lacks)
{
	const struct balance *balance = holding->balance;

	if (holdings_has_work(holding) || round_is_under_way(holding))
		return true;
	if (!has_numbers(holding))
		return lacks && apportion_may_come(fleet, holding);
	return balance->look_ns <= fleet->now_ns || (lacks && !balance->is_lacking);
}

/* Tells whether this host can ask for leases now. */
static bool can_lease(const struct fleet *fleet)
{
	return !session_is_leaving(fleet) && session_is_connected(fleet) &&
	       session_state(fleet) >= FLEET_PREPARING && session_state(fleet) != FLEET_REFUSED;
}

bool rebalance_may_come(const struct fleet *fleet, const struct limiter *limiter)
{
	if (!can_lease(fleet))
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    look_may_bring(fleet, h, !h->usable && !h->reserve_usable))
			return true;
	}
	return false;
}

/* Tells whether others were just told, or will be, that this host claims of @holding. */
static bool has_just_claimed(struct fleet *fleet, const struct holding *holding)
{
	uint64_t since_ns = claim_since_ns(holding);
	uint32_t claim;

	return (claims(fleet, holding, &claim) && claim) ||
	       (since_ns && fleet->now_ns - since_ns < FLEET_ANSWER_NS);
}

bool rebalance_slots_may_come(struct fleet *fleet, const struct limiter *limiter)
{
	if (!can_lease(fleet))
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		/* Others give back slots that they do not use as soon as they are told. */
		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    demand_slots(h) > holding_slots(h) &&
		    (look_may_bring(fleet, h, true) || has_just_claimed(fleet, h)))
			return true;
	}
	return false;
}

/*
 * Ends the extra time of readers and openers here and below that waited for the outcome of rounds
 * alone.
 */
static void hasten(struct fleet *fleet, struct limiter *limiter)
{
	struct schedule *schedule = &fleet->engine->schedule;

	if (!limiter->turns.waiting && !(limiter->slots && limiter->slots->turns.waiting))
		return;
	if (limiter->turns.queue.length && !rebalance_may_come(fleet, limiter))
		limiter_hasten(schedule, &limiter->turns.queue);
	if (slots_waiting(limiter) && !rebalance_slots_may_come(fleet, limiter))
		limiter_hasten(schedule, &limiter->slots->turns.queue);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		hasten(fleet, l);
}

/* Acts on the end of a round. */
static void settle_balance(struct fleet *fleet, struct holding *holding,
			   const struct round_result *result)
{
	struct balance *balance = holding->balance;
	struct facts facts;

	gather(fleet, holding, &facts);
	look_in(fleet, holding,
		balance_looked(balance, &facts, result->left_free, result->reserves_gone));
	demand_note_unmet(holding, facts.kept < facts.wanted);
	if (facts.kept < facts.wanted && !result->left_free)
		neighbour_seek(fleet);
	if (result->again && balance->is_lacking && !facts.is_removed && facts.is_connected &&
	    !facts.is_leaving)
		round_begin(fleet, holding);
}

/* The same where partitions have no numbers. */
static void settle_portion(struct fleet *fleet, struct holding *holding,
			   const struct round_result *result)
{
	apportion_looked(fleet, holding, result->reserves_gone);
	if (apportion_is_unmet(holding) && !result->left_free)
		neighbour_seek(fleet);
	if (result->again)
		apportion_note_woken(holding);
	if (!holding->limiter->removed)
		apportion(fleet, holding);
}

/* Likewise, if one is over. */
static void settle(struct fleet *fleet, struct holding *holding)
{
	struct round_result result;

	if (!round_is_over(holding, &result))
		return;
	if (has_numbers(holding))
		settle_balance(fleet, holding, &result);
	else
		settle_portion(fleet, holding, &result);
	if (!holding->limiter->removed)
		hasten(fleet, holding->limiter);
	if (has_work(fleet, holding))
		holdings_add_work(fleet, holding);
}

/* Tells whether nothing can be used, and nothing keeps a round from beginning. */
static bool is_look_due(const struct fleet *fleet, const struct holding *holding)
{
	const struct balance *balance = holding->balance;

	if (holding->usable || round_is_under_way(holding))
		return false;
	if (!has_numbers(holding))
		return apportion_may_come(fleet, holding);
	return !balance->is_lacking || balance->look_ns <= fleet->now_ns;
}

/* Acts on what is noted of @holding, which was roused. */
static void act_on(struct fleet *fleet, struct holding *holding)
{
	bool begins = holdings_begins(holding), woken = holdings_is_woken(holding);

	round_go_on(fleet, holding);
	settle(fleet, holding);
	if (holding->limiter->removed)
		return;
	if (begins) {
		demand_begin(fleet, holding);
		/* Leaves that are taken next count for the quotas that are known by then. */
		told_tick(fleet, holding);
	}
	if (woken) {
		/* The next round follows the one that is under way, or begins at once. */
		round_again(holding);
		balance_look_soon(holding->balance);
		apportion_note_woken(holding);
	} else if (!begins && !is_look_due(fleet, holding)) {
		return; /* the next look sees it */
	}
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
		balance_end_spare(holding->balance);
		apportion_end_spare(holding);
		if (told_has_news(fleet, holding))
			holdings_rouse(fleet, holding, false);
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
static bool is_idle(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	if (holding->leased || holding->reserve.state != LEASE_NONE ||
	    round_is_under_way(holding) || claim_name(holding) || told_has_news(fleet, holding))
		return false;
	return limiter->removed ||
	       (!claim_may_be(holding) && !demand_wanted(holding) && !apportion_wanted(holding) &&
		!holding->settings->reserve_hosts && !turns_demand(&limiter->turns) &&
		!demand_slots(holding));
}

/* One look at a holding that is in use; false: it is no longer. */
static bool look(struct fleet *fleet, struct holding *holding)
{
	demand_tick(fleet, holding);
	wants_tick(fleet, holding);
	choose(fleet, holding);
	agreed_rate_tick(fleet, holding);
	told_tick(fleet, holding);
	return !is_idle(fleet, holding);
}

/* A host has gone, or was ended: limiters that lack something look for its leaves. */
static void look_for_more(struct fleet *fleet)
{
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		balance_seek_reserve(h->balance);
		apportion_seek_reserve(h);
		if (holdings_is_active(h) &&
		    (h->balance->is_lacking || apportion_is_unmet(h) || claim_may_be(h)))
			holdings_wake(fleet, h);
	}
}

void rebalance_step(struct fleet *fleet)
{
	bool shrunk = membership_has_shrunk(fleet), ended = neighbour_has_ended(fleet);
	struct holding *holding;

	if (shrunk || ended)
		look_for_more(fleet);
	if (membership_has_turned(fleet)) {
		for (struct holding *h = holdings_first(fleet); h; h = h->next)
			turn(fleet, h, membership_is_alone(fleet));
	}
	holdings_rouse_due(fleet);
	while ((holding = holdings_next_roused(fleet))) {
		act_on(fleet, holding);
		holdings_let_go(holding);
	}
	membership_watch(fleet);
	told_step(fleet);
	if (fleet->now_ns >= holdings_look_ns(fleet))
		holdings_look(fleet, look);
	fleet_wake_at(fleet, holdings_look_ns(fleet));
}

/* Adds the claim of @holding to @request, if there is one to be made, changed or deleted. */
static bool add_claim(struct fleet *fleet, struct request *request, struct holding *holding)
{
	uint32_t claim;

	if (!claims(fleet, holding, &claim) || !claim_add(fleet, request, holding, claim))
		return false;
	apportion_note_claimed(holding);
	return true;
}

/* Sends the claim of @holding, and those of other limiters that have nothing else to send. */
static bool send_claims(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	uint32_t claim;

	if (!claims(fleet, holding, &claim))
		return false;
	request = transaction_begin(fleet, TRANSACTION_CLAIM);
	if (!request)
		return false;
	if (!add_claim(fleet, request, holding)) {
		transaction_give_up(fleet, request);
		return false;
	}
	for (struct holding *h = holdings_first_work(fleet); h; h = h->next_work) {
		if (!release_is_due(fleet, h))
			(void)add_claim(fleet, request, h);
	}
	transaction_send(fleet, request);
	return true;
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
		       send_claims(fleet, holding);
		if (has_work(fleet, holding))
			holdings_add_work(fleet, holding);
		holdings_let_go(holding);
	}
	return sent;
}

void rebalance_forget(struct holding *holding)
{
	round_forget(holding);
	balance_forget(holding->balance);
	apportion_forget(holding);
}
