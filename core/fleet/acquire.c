/* acquire - when partitions are looked for, see acquire.h. */
#include "core/fleet/acquire.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/release.h"
#include "core/fleet/round.h"
#include "core/fleet/session.h"

#include <stdlib.h>

enum { YOUNG_PARTS = 3 };

struct acquire {
	uint64_t next_ns;   /* the next round not before */
	uint32_t left_free; /* partitions that no host had after the last round */
	bool lacking;	    /* it did not find enough, or not those whose own tokens are read */
	bool seeks_reserve; /* wants one of the reserve: a round was due at once ... */
	bool reserves_gone; /* ... and the last one found that all are leased */
};

bool acquire_attach(struct holding *holding)
{
	holding->acquire = calloc(1, sizeof(*holding->acquire));
	return holding->acquire;
}

void acquire_detach(struct holding *holding)
{
	free(holding->acquire);
}

static bool lacks_some(const struct holding *holding)
{
	return leases_kept(holding) < demand_wanted(holding) || demand_missing(holding);
}

/* Others may look for what is kept and not wanted: the last search found less that is free. */
bool acquire_is_scarce(const struct holding *holding)
{
	return holding->acquire->left_free < leases_kept(holding);
}

/* Then their claims must be seen soon. */
static bool keeps_last(const struct holding *holding)
{
	return !demand_wanted(holding) && leases_kept(holding) && acquire_is_scarce(holding);
}

static void look_later(struct fleet *fleet, struct holding *holding)
{
	bool soon = holding->acquire->lacking || claim_is_contended(holding) ||
		    claim_name(holding) || keeps_last(holding) ||
		    (demand_wants_reserve(holding) && !holding->acquire->reserves_gone);
	uint64_t every_ns = FLEET_RESERVE_NS;

	if (soon)
		every_ns = fleet->constants.renewal_ns;
	else if (holding->leased || claim_is_unknown(holding))
		every_ns = holding->settings->lease_ns / YOUNG_PARTS;
	holding->acquire->next_ns = fleet->now_ns + fleet_jitter(fleet, every_ns);
}

/* Whether @limiter or one above it may soon have more than it has. */
bool acquire_may_come(const struct fleet *fleet, const struct limiter *limiter)
{
	if (session_is_leaving(fleet) || !session_is_connected(fleet) ||
	    session_state(fleet) < FLEET_PREPARING || session_state(fleet) == FLEET_REFUSED)
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    (round_is_under_way(h) || h->acquire->next_ns <= fleet->now_ns ||
		     holdings_has_work(h) ||
		     (!h->usable && !h->reserve_usable && !h->acquire->lacking)))
			return true;
	}
	return false;
}

/* Ends the extra time of readers here and below that waited for the outcome of rounds alone. */
static void hasten(struct fleet *fleet, struct limiter *limiter)
{
	if (!turns_demand(&limiter->turns))
		return;
	if (limiter->turns.queue.length && !acquire_may_come(fleet, limiter))
		limiter_hasten(&fleet->engine->schedule, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		hasten(fleet, l);
}

void acquire_settle(struct fleet *fleet, struct holding *holding)
{
	struct acquire *acquire = holding->acquire;
	struct round_result result;

	if (!round_is_over(holding, &result))
		return;
	acquire->left_free = result.left_free;
	acquire->reserves_gone = result.reserves_gone;
	demand_note_unmet(holding, leases_kept(holding) < demand_wanted(holding));
	acquire->lacking = lacks_some(holding);
	look_later(fleet, holding);
	if (result.again && acquire->lacking && !holding->limiter->removed &&
	    session_is_connected(fleet) && !session_is_leaving(fleet))
		round_begin(fleet, holding);
	if (!holding->limiter->removed)
		hasten(fleet, holding->limiter);
	if (acquire_has_work(fleet, holding))
		holdings_add_work(fleet, holding);
}

bool acquire_has_work(const struct fleet *fleet, const struct holding *holding)
{
	return release_is_due(fleet, holding) || round_is_ready(holding) ||
	       (!round_is_under_way(holding) && claim_is_due(fleet, holding));
}

void acquire_forget(struct holding *holding)
{
	round_forget(holding);
	holding->acquire->next_ns = 0;
}

void acquire_wake(struct holding *holding)
{
	round_again(holding);
	holding->acquire->next_ns = 0;
}

void acquire_seek_reserve(struct holding *holding)
{
	if (holding->acquire->reserves_gone)
		holding->acquire->seeks_reserve = false;
}

void acquire_look_sooner(struct fleet *fleet, struct holding *holding)
{
	if (keeps_last(holding) &&
	    holding->acquire->next_ns > fleet->now_ns + fleet->constants.renewal_ns / 4 * 5)
		look_later(fleet, holding);
}

void acquire_choose(struct fleet *fleet, struct holding *holding)
{
	bool lacks = lacks_some(holding), wants_reserve = demand_wants_reserve(holding);

	if (leases_kept(holding) >= demand_wanted(holding))
		demand_note_unmet(holding, false);
	/* A host that begins to lack partitions looks at once; after a vain round it waits. */
	if (!lacks)
		holding->acquire->lacking = false;
	else if (!holding->acquire->lacking && !claim_is_contended(holding))
		holding->acquire->next_ns = 0;
	if (wants_reserve && !holding->acquire->seeks_reserve)
		holding->acquire->next_ns = 0;
	holding->acquire->seeks_reserve = wants_reserve;
	if (!round_is_under_way(holding) && fleet->now_ns >= holding->acquire->next_ns &&
	    !holding->limiter->removed && holding_needs_leases(holding) &&
	    (lacks || wants_reserve || holding->leased || claim_may_be(holding)))
		round_begin(fleet, holding);
}

bool acquire_is_due(const struct fleet *fleet, const struct holding *holding)
{
	return !holding->usable && !round_is_under_way(holding) &&
	       (!holding->acquire->lacking || holding->acquire->next_ns <= fleet->now_ns);
}
