/* apportion - this host's portion of limiters without numbers, see apportion.h. */
#include "core/fleet/apportion.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/epoch.h"
#include "core/fleet/leases.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/wants.h"
#include "core/fleet/znode.h"
#include "core/limiter/keys.h"
#include "core/limiter/slots.h"

#include <stdlib.h>
#include <string.h>

struct apportion {
	struct portion portion;
	uint64_t cut; /* of the leaves that this is about */

	/* As of the last look; of limiters with children that is kept, since their wants change. */
	struct claim_line line;	     /* owned; its names are gone */
	struct holder *holders_seen; /* owned, so many: */
	uint32_t holder_count;
	uint32_t own_count;
	struct part own[PARTS_MAX]; /* the children's wants when it was weighed last ... */
	uint64_t weigh_ns;	    /* ... and it is again then */
	struct share share;
	uint32_t holders, free;
	uint64_t listed_ns;
	uint64_t reserve_ns; /* one of the reserve is not looked for before */
	bool is_seen;	     /* @share counts: since other hosts claim some */
	bool is_unmet;	     /* it did not find enough */

	bool woken;	 /* another host gave something back since */
	uint32_t wanted; /* as of the last decision */
	bool claims;	 /* ... and what it says of the claim was not sent yet: */
	uint32_t claim;
};

bool apportion_attach(struct holding *holding)
{
	holding->apportion = calloc(1, sizeof(*holding->apportion));
	if (!holding->apportion)
		return false;
	apportion_forget(holding);
	return true;
}

static void forget_line(struct apportion *apportion)
{
	claim_free_line(&apportion->line);
	free(apportion->holders_seen);
	apportion->holders_seen = NULL;
}

void apportion_detach(struct holding *holding)
{
	if (holding->apportion)
		forget_line(holding->apportion);
	free(holding->apportion);
}

void apportion_forget(struct holding *holding)
{
	forget_line(holding->apportion);
	*holding->apportion = (struct apportion){.share.target = UINT32_MAX, .holders = 1};
}

uint32_t apportion_wanted(const struct holding *holding)
{
	return holding->apportion->wanted;
}

bool apportion_is_unmet(const struct holding *holding)
{
	return holding->apportion->is_unmet;
}

/* Gathers the facts of the leases: when the last was taken, and if something was granted since. */
static void gather_leases(const struct fleet *fleet, const struct holding *holding,
			  struct portion_facts *facts)
{
	const struct lease *last = NULL;

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD && (!last || lease->since_ns >= last->since_ns))
			last = lease;
	}
	if (!last)
		return;
	facts->turn_ns = fleet->now_ns - last->since_ns;
	facts->is_of_use = holding_use(holding) != last->granted;
}

/*
 * Gathers the facts of the buckets. While they are not full, what is held saves up, and leaves that
 * no host holds do not. With keys they never are, and only the last leaves are kept for that.
 */
static void gather_savings(const struct fleet *fleet, const struct holding *holding,
			   struct portion_facts *facts)
{
	const struct limiter *limiter = holding->limiter;
	struct holding_savings savings = holding_savings(holding, fleet->engine->schedule.now_ns,
							 facts->least, facts->leaves);

	savings.is_full &= !keys_count(limiter) || facts->need > 0;
	facts->saves = term_runs(fleet) && holding->usable && !savings.is_full;
	facts->saves_up = limiter->turns.wanted && savings.has_saved;
	facts->room = savings.room;
	facts->token_ns = savings.token_ns;
}

/* Returns the leaves whose slots are open: those with numbers, and as many as hold the others. */
static uint32_t leaves_in_use(const struct holding *holding)
{
	uint32_t used = slots_used(holding->limiter), most = holding_slots(holding);
	struct numbered_leaves numbered;
	uint32_t others;

	if (holding->settings->slots.kind != SLOTS_COUNT || !most)
		return 0;
	numbered = holding_numbered_leaves(holding);
	if (used <= numbered.slots)
		return numbered.leaves;
	used -= numbered.slots;
	most -= numbered.slots;
	others = holding->held - numbered.leaves;
	/* Each has as many slots as another, or one more. */
	return numbered.leaves +
	       (most ? (uint32_t)(((uint64_t)used * others + most - 1) / most) : 0);
}

static void gather(struct fleet *fleet, const struct holding *holding, struct portion_facts *facts)
{
	const struct apportion *apportion = holding->apportion;
	const struct settings *settings = holding->settings;

	*facts = (struct portion_facts){
		.now_ns = fleet->now_ns,
		.renewal_ns = fleet->constants.renewal_ns,
		.lease_ns = settings->lease_ns,
		.leaves = holding_leaves(settings),
		.least = settings_least_leaves(settings),
		.holders = apportion->holders,
		.free = apportion->free,
		.listed_ns = apportion->listed_ns,
		.kept = leases_kept(holding),
		.in_use = leaves_in_use(holding),
		.is_unmet = apportion->is_unmet,
		.is_woken = apportion->woken,
		.share = apportion->share,
	};
	gather_leases(fleet, holding, facts);
	demand_tell_portion(fleet, holding, facts);
	facts->ahead = wants_slack(holding);
	gather_savings(fleet, holding, facts);
	claim_tell_portion(fleet, holding, facts);
	facts->is_seen = apportion->is_seen && facts->claims;
	facts->parts_differ = facts->claimed && claim_parts_differ(fleet, holding);
}

/* Copies @line, with room for @more claims. False: there is no memory. */
static bool copy_line(const struct claim_line *line, uint32_t more, struct claim_line *copy)
{
	uint32_t parts = 0;

	for (uint32_t i = 0; i < line->count; i++)
		parts += line->claims[i].part_count;
	*copy = (struct claim_line){
		.claims = calloc(line->count + more + 1, sizeof(*copy->claims)),
		.parts = calloc(parts + 1, sizeof(*copy->parts)),
		.own = line->own,
	};
	if (!copy->claims || !copy->parts) {
		claim_free_line(copy);
		return false;
	}
	for (parts = 0; copy->count < line->count; copy->count++) {
		struct claim *claim = &copy->claims[copy->count];

		*claim = line->claims[copy->count];
		claim->name = NULL;
		if (claim->part_count)
			memcpy(copy->parts + parts, claim->parts,
			       claim->part_count * sizeof(*claim->parts));
		claim->parts = copy->parts + parts;
		parts += claim->part_count;
	}
	return true;
}

/* Notes what the others want, with holders that have no claim. */
static void note_others(struct holding *holding)
{
	const struct apportion *apportion = holding->apportion;
	uint32_t silent = 0;

	for (uint32_t i = 0; apportion->holders_seen && i < apportion->holder_count; i++)
		silent += !apportion->holders_seen[i].claims;
	wants_note_others(holding, &apportion->line, silent);
}

/* Weighs the line with what this host's children want, and what they get is their place. */
static void weigh(struct fleet *fleet, struct holding *holding)
{
	struct apportion *apportion = holding->apportion;
	uint32_t leaves = holding_leaves(holding->settings);
	struct part parts[PARTS_MAX];
	struct claim own = {
		.weight = fleet->options->weight,
		.parts = parts,
		.part_count = apportion->own_count,
	};
	struct claim_line line;

	memcpy(parts, apportion->own, sizeof(parts));
	if (!copy_line(&apportion->line, apportion->holder_count + 1, &line))
		return;
	apportion->weigh_ns = fleet->now_ns + fleet->constants.renewal_ns;
	apportion->share = portion_weigh(&line, apportion->holders_seen, apportion->holder_count,
					 &own, leaves, settings_least_leaves(holding->settings));
	claim_free_line(&line);
	/* Wants may have been rounded up to pieces. Of the rest only proportions count. */
	for (uint32_t i = 0; i < apportion->own_count; i++)
		parts[i].wanted = apportion->own[i].wanted;
	wants_follow(fleet, holding, parts,
		     apportion->share.target == UINT32_MAX ? 0 : own.part_count, leaves);
}

/* Notes what the children want. Tells whether that is another thing than when it was weighed. */
static bool note_wants(struct holding *holding, const struct portion_facts *facts)
{
	struct apportion *apportion = holding->apportion;
	struct part_list before = {apportion->own, apportion->own_count, facts->leaves};
	struct part parts[PARTS_MAX];
	struct part_list now = {parts, 0, facts->leaves};
	bool differs;

	wants_note_plain(holding, portion_plain(facts));
	now.count = wants_gather(holding, facts->leaves, portion_most(facts), parts);
	differs = wants_differ(&before, &now, facts->leaves);
	memcpy(apportion->own, parts, sizeof(parts));
	apportion->own_count = now.count;
	return differs;
}

/* Weighs the claims anew where what this host's children want, or their places, may be others. */
static void weigh_again(struct fleet *fleet, struct holding *holding, struct portion_facts *facts)
{
	struct apportion *apportion = holding->apportion;
	bool differs = note_wants(holding, facts);

	if (!facts->claims) {
		forget_line(apportion);
		note_others(holding);
		wants_follow(fleet, holding, NULL, 0, 0);
	}
	if (!apportion->line.claims || (!differs && fleet->now_ns < apportion->weigh_ns))
		return;
	claim_settle(fleet, holding, &apportion->line);
	note_others(holding);
	weigh(fleet, holding);
	facts->share = apportion->share;
}

void apportion_decide(struct fleet *fleet, struct holding *holding, bool is_looking,
		      struct portion_decision *decision)
{
	struct apportion *apportion = holding->apportion;
	struct portion_facts facts;
	uint32_t claim;

	/* Leaves that are numbered anew are others: nothing is known of them. */
	if (apportion->cut != holding->cut)
		apportion_forget(holding);
	apportion->cut = holding->cut;
	gather(fleet, holding, &facts);
	facts.is_looking = is_looking;
	facts.is_claiming = apportion_claims(fleet, holding, &claim);
	apportion->is_seen = facts.is_seen;
	weigh_again(fleet, holding, &facts);
	portion_decide(&apportion->portion, &facts, decision);
	if (!facts.is_seen)
		apportion->share.target = UINT32_MAX;
	if (!is_looking && demand_wants_reserve(holding) && fleet->now_ns >= apportion->reserve_ns)
		decision->looks = true;
	apportion->wanted = decision->wanted;
	apportion->is_unmet &= facts.kept < decision->wanted || decision->takes;
	apportion->claims |= decision->claims;
	apportion->claim = decision->claim;
}

uint32_t apportion_lack(struct fleet *fleet, struct holding *holding)
{
	struct portion_decision decision;
	struct portion_facts facts;
	struct portion copy = holding->apportion->portion;

	gather(fleet, holding, &facts);
	facts.is_looking = true;
	portion_decide(&copy, &facts, &decision);
	holding->apportion->portion.is_first = copy.is_first;
	return decision.takes;
}

/*
 * Notes the hosts that hold some of @tiles, in holders_seen, which has room for all tiles, and how
 * much they hold in their claims. Returns how many they are.
 */
static uint32_t find_holders(const struct fleet *fleet, const struct tiles *tiles,
			     const struct claim_line *line, struct apportion *apportion)
{
	struct holder *holders = apportion->holders_seen;
	struct tile_holder *seen = calloc(tiles->count + 1, sizeof(*seen));
	uint32_t count = seen ? tiles_holders(tiles, seen) : 0, found = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool claims = !strcmp(seen[i].hid, session_hid(fleet));

		if (epoch_is_gone(&fleet->epochs, seen[i].hid))
			continue;
		for (uint32_t j = 0; j < line->count && !claims; j++) {
			claims = znode_claim_is_of(line->claims[j].name, seen[i].hid);
			if (claims)
				apportion->line.claims[j].held = seen[i].leaves;
		}
		holders[found++] = (struct holder){.leaves = seen[i].leaves, .claims = claims};
	}
	free(seen);
	return found;
}

void apportion_note_listed(struct fleet *fleet, struct holding *holding, const struct tiles *tiles,
			   const struct claim_line *line)
{
	struct apportion *apportion = holding->apportion;
	struct portion_facts facts;

	apportion->woken = false;
	apportion->listed_ns = fleet->now_ns;
	forget_line(apportion);
	apportion->holders_seen = calloc(tiles->count + 1, sizeof(struct holder));
	if (!apportion->holders_seen || !copy_line(line, 0, &apportion->line))
		return;
	apportion->holder_count = find_holders(fleet, tiles, line, apportion);
	apportion->holders = apportion->holder_count ? apportion->holder_count : 1;
	apportion->free = holding_leaves(holding->settings);
	for (uint32_t i = 0; i < apportion->holder_count; i++)
		apportion->free -= apportion->holders_seen[i].leaves;
	note_others(holding);
	gather(fleet, holding, &facts);
	(void)note_wants(holding, &facts);
	weigh(fleet, holding);
	apportion->is_seen = true;
	if (!holding->limiter->first_child)
		forget_line(apportion);
}

void apportion_seek_reserve(struct holding *holding)
{
	holding->apportion->reserve_ns = 0;
}

void apportion_looked(struct fleet *fleet, struct holding *holding, bool reserves_gone)
{
	struct apportion *apportion = holding->apportion;
	struct portion_facts facts;
	uint64_t in_ns;

	gather(fleet, holding, &facts);
	in_ns = portion_looked(&apportion->portion, &facts);
	apportion->portion.look_ns = in_ns == NEVER_NS ? NEVER_NS
						       : fleet->now_ns + fleet_jitter(fleet, in_ns);
	/* Some that nobody holds cannot be taken yet. */
	apportion->is_unmet = facts.kept < apportion->wanted || apportion_lack(fleet, holding);
	apportion->reserve_ns = fleet->now_ns + fleet_jitter(fleet, reserves_gone
									    ? FLEET_RESERVE_NS
									    : facts.renewal_ns);
}

void apportion_note_woken(struct holding *holding)
{
	holding->apportion->woken = true;
}

void apportion_end_spare(struct holding *holding)
{
	holding->apportion->portion.excess_ns = 1;
}

bool apportion_may_come(const struct fleet *fleet, const struct holding *holding)
{
	const struct apportion *apportion = holding->apportion;

	return !apportion->is_unmet || apportion->woken ||
	       apportion->portion.look_ns <= fleet->now_ns;
}

bool apportion_claims(const struct fleet *fleet, const struct holding *holding, uint32_t *claim)
{
	const struct apportion *apportion = holding->apportion;

	*claim = apportion->claim;
	if (!apportion->claims || session_is_leaving(fleet))
		return false;
	/* One that may be there is found first; there may be no room for one. */
	return claim_name(holding) ||
	       (!claim_may_be(holding) && *claim && fleet->now_ns >= room_claims_from_ns(fleet));
}

void apportion_note_claimed(struct holding *holding)
{
	holding->apportion->claims = false;
}
