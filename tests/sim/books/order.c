/*
 * order - the waiters of each place, and the order of its siblings.
 *
 * A limiter saves tokens up for one reader at a time, perhaps for a large take. Whichever reader
 * that is, it can be served as soon as the limiter, and each above, has the tokens for the largest
 * take that waits there and below. By then some reader must have been served, and the engine must
 * wake. A sibling that has so many up to its parent is ready, see order_check.h.
 */
#include "tests/sim/books/order.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/learning.h"

#include <stdio.h>

static const struct order_terms OWN = {.weight = ORDER_OWN_WEIGHT, .min = {0, 1}};

static struct order_terms terms_of(const struct place *place)
{
	const struct settings *settings = &place->settings;

	if (place->is_key || place->partition)
		return OWN;
	return (struct order_terms){
		.weight = settings->weight,
		.min = rate_fraction(&settings->min),
		.class = settings->priority,
	};
}

static void follow_terms(struct place *place)
{
	const struct order_terms terms = terms_of(place);

	order_check_tune(&place->order.self, &terms, place->host->sim->now_ns);
	order_check_tune(&place->order.own, &OWN, place->host->sim->now_ns);
}

/* Returns what a grant of @tokens to @reader counts for in the order. */
static uint64_t size_of(const struct reader *reader, uint64_t tokens)
{
	return tokens || !reader->amounts.count ? tokens : reader->amounts.of[0].tokens;
}

/* Notes that a reader waits that wants @amounts. False: none that waits wants as much. */
static bool note_amounts(struct amounts *largest, const struct amounts *amounts)
{
	bool are_less = true;

	for (uint64_t i = 0; i < amounts->count; i++) {
		uint64_t before = amounts_of(largest, amounts->of[i].unit);
		struct amounts more = {.count = 1, .of = {amounts->of[i]}};

		if (amounts->of[i].tokens <= before && amounts_name(largest, amounts->of[i].unit))
			continue;
		more.of[0].tokens -= before;
		amounts_add(largest, &more);
		are_less = false;
	}
	return are_less;
}

void order_waits(struct sim *sim, struct reader *reader)
{
	struct place *place = reader->place;
	uint64_t tokens = size_of(reader, reader->check.tokens);

	reader->check.event = ++sim->events;
	if (place->queue.length == 1) {
		place->order.since = sim->events;
		place->order.own.largest = 0;
		follow_terms(place);
		order_check_join(&place->order.siblings, &place->order.own, sim->now_ns);
	}
	if (tokens > place->order.own.largest)
		place->order.own.largest = tokens;
	for (; place; place = place->parent) {
		if (!place->order.waiting++) {
			place->order.self.largest = 0;
			place->order.largest.count = 0;
			place->order.ranges = false;
			follow_terms(place);
			if (place->parent)
				order_check_join(&place->parent->order.siblings, &place->order.self,
						 sim->now_ns);
		}
		if (!note_amounts(&place->order.largest, &reader->amounts))
			order_check_interrupt(&place->order.self);
		if (tokens > place->order.self.largest) {
			/* It may come first there, and not have so many. */
			order_check_interrupt(&place->order.self);
			place->order.self.largest = tokens;
		}
		place->order.ranges |= reader->most > tokens;
	}
}

void order_leaves(struct reader *reader)
{
	struct place *place = reader->place;

	if (!place->queue.length) {
		order_check_leave(&place->order.own);
		place->order.own.largest = 0;
	}
	for (; place; place = place->parent) {
		order_check_lose(&place->order.siblings, &place->order.self);
		if (--place->order.waiting)
			continue;
		order_check_leave(&place->order.self);
		place->order.self.largest = 0;
	}
}

static void grant(struct sim *sim, struct place *parent, struct sibling_check *sibling,
		  const struct reader *reader)
{
	const struct reader_check *check = &reader->check;
	const struct order_grant grant = {
		.tokens = size_of(reader, reader->granted),
		.since = check->state == READER_WAITS ? check->event : sim->events,
		.number = sim->events,
		.now_ns = sim->now_ns,
		.returned = parent->host->order_changed,
	};
	char why[WHY_TEXT];

	if (!order_check_grant(&parent->order.siblings, sibling, &grant, why))
		sim_fail(sim, INVARIANT_ORDER, parent, why);
}

void order_granted(struct sim *sim, const struct reader *reader)
{
	struct place *place = reader->place;

	if (sim->fleet)
		return;
	sim->events++;
	follow_terms(place);
	grant(sim, place, &place->order.own, reader);
	for (; place->parent; place = place->parent) {
		follow_terms(place);
		grant(sim, place->parent, &place->order.self, reader);
	}
}

/* Notes that @place, and each above, may have fewer tokens now, in the middle of a step. */
static void lessen(struct place *place)
{
	for (; place; place = place->parent) {
		order_check_charge(&place->order.siblings);
		order_check_interrupt(&place->order.self);
	}
}

void order_tuned(struct place *place)
{
	follow_terms(place);
	place->host->order_changed = true;
	lessen(place);
}

void order_charged(struct place *place, const struct charge *charge)
{
	if (charge->tokens > 0 || charge->taken.count)
		lessen(place);
	if (charge->tokens >= 0 && !charge->returned.count)
		return;
	place->host->order_changed = true;
	for (; place; place = place->parent)
		order_check_charge(&place->order.siblings);
}

void order_heard(struct place *place)
{
	while (place && !(place->limiter && place->limiter->learning))
		place = place->parent;
	lessen(place);
}

/* Returns the rate that @place gives its siblings whatever happens; num 0: none. */
static struct fraction sure_rate(const struct place *place)
{
	const struct limiter *limiter = place->limiter;
	struct fraction sure = {0, 1};

	if (place->parent || !limiter || limiter->settings->enforcement != ENFORCEMENT_ENFORCE ||
	    limiter->settings->release_interval_ns || units_counts(limiter) ||
	    (limiter->learning &&
	     (limiter->learning->limited || limiter->learning->pause.until_ns)))
		return sure;
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		const struct bucket *bucket = &limiter->buckets[i];

		if (bucket->level < 0)
			return (struct fraction){0, 1};
		if (!i || fraction_per_second(&bucket->flow) < fraction_per_second(&sure))
			sure = bucket->flow;
	}
	return sure;
}

/*
 * Notes which siblings are ready by the readers that wait in @place. Returns when one of those that
 * wait there or above must have been served.
 */
static uint64_t look_up(struct place *place, uint64_t now_ns)
{
	uint64_t since = place->order.since, at_ns = now_ns;

	order_check_ready(&place->order.own, since);
	for (; place; place = place->parent) {
		if (place->order.due_ns > at_ns)
			at_ns = place->order.due_ns;
		if (at_ns <= now_ns)
			order_check_ready(&place->order.self, since);
	}
	return at_ns;
}

static void check_sleep(struct host *host, const struct place *place, uint64_t at_ns,
			uint64_t now_ns)
{
	uint64_t next_ns = engine_next_ns(&host->engine);
	char why[WHY_TEXT];

	if (at_ns > now_ns && next_ns <= at_ns)
		return;
	snprintf(
		why, sizeof(why),
		"a reader that waits here or above is due in %llu ns; the engine sleeps until %llu",
		(unsigned long long)(at_ns - now_ns), (unsigned long long)next_ns);
	sim_fail(host->sim, INVARIANT_QUEUE, place, why);
}

void order_rest(struct host *host)
{
	struct sim *sim = host->sim;
	uint64_t now_ns = host_now(host);
	struct order_rest rest = {
		.now_ns = sim->now_ns, .event = sim->events, .returned = host->order_changed};
	char why[WHY_TEXT];

	host->order_changed = false;
	for (struct place *p = host->places; p; p = p->next) {
		if (p->order.waiting)
			p->order.due_ns = queue_check_due_ns(p->limiter, p->order.self.largest,
							     &p->order.largest, now_ns);
	}
	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		if (p->queue.length)
			check_sleep(host, p, look_up(p, now_ns), now_ns);
	}
	for (struct place *p = host->places; p && !sim->failed && !sim->fleet; p = p->next) {
		rest.sure = sure_rate(p);
		if (!order_check_rest(&p->order.siblings, &rest, why))
			sim_fail(sim, INVARIANT_ORDER, p, why);
	}
}
