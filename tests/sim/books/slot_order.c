/*
 * slot_order - the openers of each place, and the order of its siblings.
 *
 * A sibling is ready for a slot, see order_check.h, as long as an opener waits in it and each
 * limiter from there to it has a free one: only the limiters above keep it waiting. A slot is a
 * take of one. A min is a rate, and of no slots.
 */
#include "tests/sim/books/slot_order.h"
#include "tests/sim/world/sim.h"

#include <stdio.h>

static const struct order_terms OWN = {.weight = ORDER_OWN_WEIGHT, .min = {0, 1}};

static void follow_terms(struct place *place)
{
	const struct order_terms terms = {
		.weight = place->settings.weight,
		.min = {0, 1},
		.class = place->settings.priority,
	};

	order_check_tune(&place->slot_order.self, &terms, place->host->sim->now_ns);
	order_check_tune(&place->slot_order.own, &OWN, place->host->sim->now_ns);
}

static bool is_free(const struct place *place)
{
	if (place->settings.enforcement == ENFORCEMENT_CLOSED)
		return false;
	return place->settings.enforcement != ENFORCEMENT_ENFORCE ||
	       place->slot_order.used < slots_limit(place->limiter);
}

void slot_order_waits(struct sim *sim, struct reader *opener)
{
	struct place *place = opener->place;

	opener->check.event = ++sim->events;
	if (!place->slot_order.here++) {
		place->slot_order.since = sim->events;
		follow_terms(place);
		order_check_join(&place->slot_order.siblings, &place->slot_order.own, sim->now_ns);
	}
	for (; place; place = place->parent) {
		if (place->slot_order.waiting++)
			continue;
		follow_terms(place);
		if (place->parent)
			order_check_join(&place->parent->slot_order.siblings,
					 &place->slot_order.self, sim->now_ns);
	}
}

void slot_order_leaves(struct reader *opener)
{
	struct place *place = opener->place;

	if (!--place->slot_order.here)
		order_check_leave(&place->slot_order.own);
	for (; place; place = place->parent) {
		order_check_lose(&place->slot_order.siblings, &place->slot_order.self);
		if (!--place->slot_order.waiting)
			order_check_leave(&place->slot_order.self);
	}
}

static void grant(struct sim *sim, struct place *parent, struct sibling_check *sibling,
		  const struct reader *opener)
{
	const struct order_grant grant = {
		.tokens = 1,
		.since = opener->check.state == READER_WAITS ? opener->check.event : sim->events,
		.number = sim->events,
		.now_ns = sim->now_ns,
		.returned = parent->host->slots_changed,
	};
	char why[WHY_TEXT];

	if (!order_check_grant(&parent->slot_order.siblings, sibling, &grant, why))
		sim_fail(sim, INVARIANT_ORDER, parent, why);
}

void slot_order_opened(struct sim *sim, struct reader *opener)
{
	struct place *place = opener->place;

	sim->events++;
	if (!sim->fleet) {
		follow_terms(place);
		grant(sim, place, &place->slot_order.own, opener);
	}
	for (; place; place = place->parent) {
		place->slot_order.used++;
		if (sim->fleet)
			continue;
		follow_terms(place);
		if (place->parent)
			grant(sim, place->parent, &place->slot_order.self, opener);
		if (!is_free(place))
			slot_order_tuned(place);
	}
}

void slot_order_closed(struct place *place)
{
	place->host->slots_changed = true;
	for (; place; place = place->parent)
		place->slot_order.used--;
}

void slot_order_tuned(struct place *place)
{
	follow_terms(place);
	place->host->slots_changed = true;
	/* It may have had none free in the middle of a step, and nor had those above. */
	for (; place; place = place->parent)
		order_check_interrupt(&place->slot_order.self);
}

static void look_up(struct place *place)
{
	uint64_t since = place->slot_order.since;

	order_check_ready(&place->slot_order.own, since);
	for (; place && is_free(place); place = place->parent)
		order_check_ready(&place->slot_order.self, since);
}

void slot_order_rest(struct host *host)
{
	struct sim *sim = host->sim;
	const struct order_rest rest = {
		.now_ns = sim->now_ns,
		.event = sim->events,
		.sure = {0, 1},
		.returned = host->slots_changed,
	};
	char why[WHY_TEXT];

	host->slots_changed = false;
	for (struct place *p = host->places; p; p = p->next) {
		if (p->slot_order.here && p->limiter)
			look_up(p);
	}
	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		if (!order_check_rest(&p->slot_order.siblings, &rest, why))
			sim_fail(sim, INVARIANT_ORDER, p, why);
	}
}
