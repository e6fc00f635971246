/* holdings - what this host holds of limiters, see holdings.h. */
#include "core/fleet/holdings.h"
#include "core/fleet/term.h"

#include <stdlib.h>

enum { CHAINS = 4096 }; /* of holdings by id */

struct holdings {
	struct holding *first; /* of all */
	bool alone;	       /* no other host was seen yet */
	struct holding *by_id[CHAINS];
	struct holding *active; /* those in use */
	uint64_t look_ns;	/* when they are looked at; NEVER_NS */
	struct holding *roused, *last_roused;
	struct holding *work, *last_work;
	struct holding *later;
};

bool holdings_new(struct fleet *fleet)
{
	fleet->holdings = calloc(1, sizeof(*fleet->holdings));
	if (!fleet->holdings)
		return false;
	fleet->holdings->look_ns = NEVER_NS;
	return true;
}

void holdings_free(struct fleet *fleet)
{
	free(fleet->holdings);
}

struct holding *holdings_first(const struct fleet *fleet)
{
	return fleet->holdings->first;
}

struct holding *holdings_first_active(const struct fleet *fleet)
{
	return fleet->holdings->active;
}

struct holding *holdings_find(const struct fleet *fleet, uint64_t id)
{
	struct holding *holding = fleet->holdings->by_id[id % CHAINS];

	while (holding && holding->id != id)
		holding = holding->next_by_id;
	return holding;
}

void holdings_enter(struct fleet *fleet, struct holding *holding, uint64_t id)
{
	struct holding **chain = &fleet->holdings->by_id[id % CHAINS];

	holding->alone = fleet->holdings->alone;
	holding->degraded = term_is_degraded(fleet);
	holding->next = fleet->holdings->first;
	holding->back = &fleet->holdings->first;
	if (holding->next)
		holding->next->back = &holding->next;
	fleet->holdings->first = holding;
	holding->id = id;
	holding->next_by_id = *chain;
	*chain = holding;
}

void holdings_unname(struct fleet *fleet, struct holding *holding)
{
	struct holding **at = &fleet->holdings->by_id[holding->id % CHAINS];

	while (*at && *at != holding)
		at = &(*at)->next_by_id;
	if (*at)
		*at = holding->next_by_id;
}

void holdings_set_alone(struct fleet *fleet, bool alone)
{
	fleet->holdings->alone = alone;
	for (struct holding *h = fleet->holdings->first; h; h = h->next)
		h->alone = alone;
}

void holdings_keep(struct holding *holding)
{
	limiter_hold(holding->limiter);
}

void holdings_let_go(struct holding *holding)
{
	limiter_drop(holding->limiter);
}

void holdings_rouse(struct fleet *fleet, struct holding *holding, bool asked)
{
	struct holdings *holdings = fleet->holdings;

	if (holding->limiter->removed)
		return;
	if (!holding->active) {
		holding->active = true;
		holding->next_active = holdings->active;
		holdings->active = holding;
		holdings_keep(holding);
		holding->begins = true;
		holding->asked = asked;
		if (holdings->look_ns == NEVER_NS)
			holdings->look_ns = fleet->now_ns + DEMAND_PERIOD_NS;
	}
	if (holding->roused)
		return;
	holding->roused = true;
	holding->next_roused = NULL;
	holdings_keep(holding);
	if (holdings->roused)
		holdings->last_roused->next_roused = holding;
	else
		holdings->roused = holding;
	holdings->last_roused = holding;
	fleet_wake_at(fleet, 0);
}

void holdings_rouse_at(struct fleet *fleet, struct holding *holding, uint64_t at_ns)
{
	bool is_there = holding->later_ns;

	holding->later_ns = at_ns;
	if (is_there)
		return;
	holding->next_later = fleet->holdings->later;
	fleet->holdings->later = holding;
	holdings_keep(holding);
	fleet_wake_at(fleet, at_ns);
}

void holdings_rouse_due(struct fleet *fleet)
{
	struct holding **at = &fleet->holdings->later, *holding;

	while ((holding = *at)) {
		if (holding->later_ns > fleet->now_ns) {
			fleet_wake_at(fleet, holding->later_ns);
			at = &holding->next_later;
			continue;
		}
		*at = holding->next_later;
		holding->later_ns = 0;
		holdings_rouse(fleet, holding, false);
		holdings_let_go(holding);
	}
}

struct holding *holdings_next_roused(struct fleet *fleet)
{
	struct holding *holding = fleet->holdings->roused;

	if (!holding)
		return NULL;
	fleet->holdings->roused = holding->next_roused;
	holding->roused = false;
	return holding;
}

void holdings_look(struct fleet *fleet, bool (*look)(struct fleet *fleet, struct holding *holding))
{
	struct holding **at = &fleet->holdings->active;

	while (*at) {
		struct holding *holding = *at;

		if (look(fleet, holding)) {
			at = &holding->next_active;
			continue;
		}
		*at = holding->next_active;
		holding->active = false;
		holdings_let_go(holding);
	}
	fleet->holdings->look_ns = fleet->holdings->active ? fleet->now_ns + DEMAND_PERIOD_NS
							   : NEVER_NS;
}

uint64_t holdings_look_ns(const struct fleet *fleet)
{
	return fleet->holdings->look_ns;
}

void holdings_add_work(struct fleet *fleet, struct holding *holding)
{
	struct holdings *holdings = fleet->holdings;

	if (holding->has_work)
		return;
	holding->has_work = true;
	holding->next_work = NULL;
	holdings_keep(holding);
	if (holdings->work)
		holdings->last_work->next_work = holding;
	else
		holdings->work = holding;
	holdings->last_work = holding;
	fleet_wake_at(fleet, 0);
}

struct holding *holdings_next_work(struct fleet *fleet)
{
	struct holding *holding = fleet->holdings->work;

	if (!holding)
		return NULL;
	fleet->holdings->work = holding->next_work;
	holding->has_work = false;
	return holding;
}

struct holding *holdings_first_work(const struct fleet *fleet)
{
	return fleet->holdings->work;
}

struct holding *holdings_last_work(const struct fleet *fleet)
{
	return fleet->holdings->last_work;
}

void holdings_forget(struct fleet *fleet)
{
	struct holding *holding;

	while ((holding = fleet->holdings->active)) {
		fleet->holdings->active = holding->next_active;
		holding->active = false;
		holdings_let_go(holding);
	}
	while ((holding = fleet->holdings->later)) {
		fleet->holdings->later = holding->next_later;
		holding->later_ns = 0;
		holdings_let_go(holding);
	}
	while ((holding = holdings_next_roused(fleet)) || (holding = holdings_next_work(fleet)))
		holdings_let_go(holding);
	fleet->holdings->look_ns = NEVER_NS;
}

void holdings_wake(struct fleet *fleet, struct holding *holding)
{
	holding->woken = true;
	holdings_rouse(fleet, holding, false);
}

bool holdings_begins(struct holding *holding)
{
	bool begins = holding->begins;

	holding->begins = false;
	return begins;
}

bool holdings_is_woken(struct holding *holding)
{
	bool woken = holding->woken;

	holding->woken = false;
	return woken;
}

bool holdings_is_active(const struct holding *holding)
{
	return holding->active;
}

bool holdings_has_work(const struct holding *holding)
{
	return holding->has_work;
}
