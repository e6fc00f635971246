/* wants - what each child of a limiter wants of it on this host, see wants.h. */
#include "core/fleet/wants.h"
#include "core/fleet/demand.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"

#include <math.h>
#include <stdlib.h>

enum {
	CHANGE_PERCENT = 20, /* another part is claimed if it differs by more ... */
	CHANGE_PARTS = 128,  /* ... and by such a part of the limiter */
	PLACE_PERCENT = 3,   /* another weight is set if it differs by more */
	AHEAD_PARTS = 16,    /* of the limiter: the slack of all children that come first */
};

/* A want below so many leaves is none. */
static const double WANT_LEAST = 0.25;

/* So much more than a child asks for goes to it beside hungry ones: such a part of all leaves. */
enum { EXTRA_PARTS = 512 };

struct wants {
	struct want child; /* as a child of its parent */
	struct want own;   /* of its own readers */
	uint64_t period;   /* number of the last; 0: it has no children that are looked at */
	double plain;	   /* leaves for children that are not hungry */
	uint32_t behind;   /* the lowest class of which another host is hungry; PRIORITIES: none */
	uint32_t beside;   /* hosts, with this one, that higher classes may be on; 0: not known */
	bool places;	   /* its children have places of this host */
};

bool wants_attach(struct holding *holding)
{
	holding->wants = calloc(1, sizeof(*holding->wants));
	return holding->wants;
}

void wants_detach(struct holding *holding)
{
	free(holding->wants);
}

void wants_note_plain(struct holding *holding, double plain)
{
	holding->wants->plain = plain;
}

static uint64_t tokens_of(const struct limiter *limiter)
{
	return limiter->counters[COUNTER_GRANTED] + limiter->counters[COUNTER_REFUSED];
}

/* Tells whether the own readers of @limiter put a waiter forward. */
static bool own_waits(const struct limiter *limiter)
{
	return limiter->turns.order && limiter->turns.order->own.head;
}

/* Adds tokens that were granted to @granted, of each class. A min comes before all classes. */
static void add_to_class(double granted[PRIORITIES], const struct want *want,
			 const struct settings *settings)
{
	if (!settings->min.amount)
		granted[settings->priority] += want->granted;
}

/* Notes the tokens that siblings of lower classes were granted. */
static void note_left(struct want *want, const double granted[PRIORITIES],
		      const struct settings *settings)
{
	double left = 0;

	for (uint32_t i = 0; i < settings->priority; i++)
		left += granted[i];
	want_note_left(want, left);
}

static void note(struct want *want, const struct want_facts *facts, bool is_first)
{
	if (is_first)
		want_begin(want, facts);
	else
		want_note(want, facts);
}

/* Tells whether hosts share tokens of @holding's limiter, and it has children. */
static bool has_parts(const struct holding *holding)
{
	return holding->limiter->first_child && settings_limit(holding->settings) &&
	       holding_needs_leases(holding);
}

void wants_tick(const struct fleet *fleet, struct holding *holding)
{
	uint64_t number = fleet->now_ns / DEMAND_PERIOD_NS;
	const struct limiter *limiter = holding->limiter;
	struct wants *wants = holding->wants;
	bool is_first = !wants->period;
	struct want_facts own = {
		.tokens = tokens_of(limiter),
		.waiting = turns_demand(&limiter->turns),
		.is_forward = own_waits(limiter),
		.periods = is_first ? 1 : number - wants->period,
	};
	double granted[PRIORITIES] = {0};

	if (!has_parts(holding))
		wants->period = 0;
	if (!has_parts(holding) || !own.periods)
		return;
	wants->period = number;
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		struct want_facts facts = {
			.tokens = tokens_of(l),
			.waiting = turns_demand(&l->turns),
			.is_forward = l->turns.sibling->head,
			.periods = own.periods,
		};

		if (!l->holding || !l->holding->wants)
			continue;
		note(&l->holding->wants->child, &facts, is_first);
		add_to_class(granted, &l->holding->wants->child, l->settings);
		own.tokens -= facts.tokens;
		own.waiting -= facts.waiting;
	}
	note(&wants->own, &own, is_first);
	add_to_class(granted, &wants->own, &SETTINGS_DEFAULT);
	note_left(&wants->own, granted, &SETTINGS_DEFAULT);
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		if (l->holding && l->holding->wants)
			note_left(&l->holding->wants->child, granted, l->settings);
	}
}

static bool is_hungry(const struct holding *holding, const struct want *want, bool waits)
{
	return want_is_hungry(want) || (waits && !holding->usable);
}

/* Returns the leaves of @holding that bring @min, for the limit that needs most. */
static uint32_t leaves_for(const struct holding *holding, const struct rate *min)
{
	uint32_t leaves = holding_leaves(holding->settings), most = 0;
	double needed = rate_per_second(min) * leaves;
	struct settings whole;

	if (!min->amount)
		return 0;
	settings_of_host(holding->settings, leaves, false, &whole);
	for (uint32_t i = 0; i < settings_plain_count(&whole); i++) {
		double rate = rate_per_second(&whole.limits[i].rate);
		uint32_t part = needed < rate * leaves ? (uint32_t)ceil(needed / rate) : leaves;

		most = part > most ? part : most;
	}
	return most;
}

/* Returns the lowest class of @claim that wants all of it; PRIORITIES: none does. */
static uint32_t lowest_hungry(const struct claim *claim)
{
	uint32_t lowest = claim->part_count ? PRIORITIES : 0;

	for (uint32_t i = 0; i < claim->part_count; i++) {
		const struct part *part = &claim->parts[i];

		if (part->wanted >= claim->wanted && part->priority < lowest)
			lowest = part->priority;
	}
	return lowest;
}

static bool has_above(const struct claim *claim, uint32_t class)
{
	bool has = false;

	for (uint32_t i = 0; i < claim->part_count; i++)
		has |= claim->parts[i].priority > class;
	return has;
}

void wants_note_others(struct holding *holding, const struct claim_line *line, uint32_t silent)
{
	struct wants *wants = holding->wants;

	wants->behind = PRIORITIES;
	wants->beside = 1 + silent;
	for (uint32_t i = 0; i < line->count; i++) {
		uint32_t lowest = lowest_hungry(&line->claims[i]);

		if (line->claims[i].sequence != line->own && lowest < wants->behind)
			wants->behind = lowest;
	}
	for (uint32_t i = 0; i < line->count; i++)
		wants->beside += line->claims[i].sequence != line->own &&
				 has_above(&line->claims[i], wants->behind);
}

/* Tells whether @child, which is not hungry, has all it asks for before a host that is. */
static bool is_ahead(const struct holding *holding, const struct holding *child, double leaf)
{
	const struct wants *wants = holding->wants;
	const struct settings *settings = child->settings;

	if (!wants->beside || wants->behind == PRIORITIES ||
	    is_hungry(holding, &child->wants->child, child->limiter->turns.sibling->head))
		return false;
	return settings->priority > wants->behind ||
	       leaves_for(holding, &settings->min) * leaf > want_asked(&child->wants->child);
}

/* Returns the slack of children that come first, as far as there is room, in tokens a period. */
static double slack_ahead(const struct holding *holding, double leaf)
{
	double slack = 0;

	for (const struct limiter *l = holding->limiter->first_child; l; l = l->next_sibling) {
		if (l->holding && l->holding->wants && is_ahead(holding, l->holding, leaf))
			slack += want_slack(&l->holding->wants->child);
	}
	return slack;
}

double wants_slack(const struct holding *holding)
{
	double leaf = demand_leaf(holding), most;

	if (!has_parts(holding) || !holding->wants->beside || leaf <= 0 || isinf(leaf))
		return 0;
	most = (double)holding_leaves(holding->settings) / AHEAD_PARTS / holding->wants->beside;
	return fmin(slack_ahead(holding, leaf) / leaf, most);
}

/* The measure of wants of children that are not hungry, in leaves. */
struct measure {
	uint32_t all;
	double per_asked, extra;
	double per_slack; /* of children that come first, instead of @extra */
	double leaf;
};

/* The own queue is never ahead: nothing is below its class, and it has no min. */
static uint32_t amount_of(const struct holding *holding, const struct want *want, bool waits,
			  const struct measure *measure, bool ahead)
{
	double amount = want_asked(want) * measure->per_asked;

	if (is_hungry(holding, want, waits))
		return measure->all;
	if (amount < WANT_LEAST)
		return 0;
	amount += ahead ? want_slack(want) * measure->per_slack : measure->extra;
	return amount < measure->all ? (uint32_t)ceil(amount) : measure->all;
}

/*
 * Measures the children of @holding: they have @plain together, in proportion to what they ask for,
 * but for the slack of those that come first. Beside hungry ones they have no more than that: the
 * waits of those are in @plain, too.
 */
static struct measure measure(const struct holding *holding, uint32_t all, double plain)
{
	const struct limiter *limiter = holding->limiter;
	const struct want *own = &holding->wants->own;
	bool hungry = is_hungry(holding, own, own_waits(limiter));
	struct measure measure = {.all = all, .leaf = demand_leaf(holding)};
	double asked = want_asked(own), leaf = measure.leaf;
	double ahead = slack_ahead(holding, leaf), slack = wants_slack(holding);

	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		if (!l->holding || !l->holding->wants)
			continue;
		asked += want_asked(&l->holding->wants->child);
		hungry |= is_hungry(holding, &l->holding->wants->child, l->turns.sibling->head);
	}
	measure.per_slack = ahead > 0 ? slack / ahead : 0;
	measure.per_asked = asked > 0 ? fmax(plain - slack, 0) / asked : 0;
	if (hungry && leaf > 0 && 1 / leaf < measure.per_asked) {
		measure.per_asked = 1 / leaf;
		measure.extra = (double)holding_leaves(holding->settings) / EXTRA_PARTS;
	}
	return measure;
}

static void set_place(const struct holding *holding, const struct settings *settings,
		      struct part *part)
{
	part->weight = settings->weight;
	part->priority = settings->priority;
	part->min = leaves_for(holding, &settings->min);
}

void wants_settle(struct fleet *fleet, const struct holding *holding, struct part *part)
{
	const struct holding *child;

	if (part->child == PART_REST)
		return;
	child = part->child ? holdings_find(fleet, part->child) : NULL;
	if (child && child->limiter->parent == holding->limiter)
		set_place(holding, child->settings, part);
	else
		set_place(holding, &SETTINGS_DEFAULT, part);
}

/* Tells whether @a is listed by itself rather than @b. */
static bool comes_first(const struct part *a, const struct part *b)
{
	if (!a->min != !b->min)
		return a->min;
	return a->wanted != b->wanted ? a->wanted > b->wanted : a->child < b->child;
}

/* The parts of a claim while they are listed. */
struct listing {
	struct part *parts; /* those by themselves */
	uint32_t count, all;
	struct part rest[PRIORITIES];
};

static void add_rest(struct listing *listing, const struct part *part)
{
	struct part *rest = &listing->rest[part->priority];
	uint32_t room = listing->all - rest->wanted;
	uint32_t weight_room = REST_WEIGHT_MAX - rest->weight;

	rest->wanted += part->wanted < room ? part->wanted : room;
	rest->weight += part->weight < weight_room ? part->weight : weight_room;
}

static void add_part(struct listing *listing, const struct part *part)
{
	struct part *last = listing->parts;

	if (!part->wanted)
		return;
	if (listing->count < PARTS_OF_CHILDREN) {
		listing->parts[listing->count++] = *part;
		return;
	}
	for (uint32_t i = 1; i < listing->count; i++)
		last = comes_first(last, &listing->parts[i]) ? &listing->parts[i] : last;
	if (comes_first(part, last)) {
		add_rest(listing, last);
		*last = *part;
	} else {
		add_rest(listing, part);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->child < y->child ? -1 : x->child > y->child;
}

/* Ends the listing: puts all in order. Returns how many parts there are. */
static uint32_t end_listing(struct listing *listing)
{
	qsort(listing->parts, listing->count, sizeof(*listing->parts), by_id);
	for (uint32_t priority = PRIORITIES; priority-- > 0;) {
		struct part *rest = &listing->rest[priority];

		if (!rest->wanted)
			continue;
		rest->child = PART_REST;
		rest->priority = priority;
		listing->parts[listing->count++] = *rest;
	}
	return listing->count;
}

uint32_t wants_gather(const struct holding *holding, uint32_t all, double plain,
		      struct part parts[PARTS_MAX])
{
	const struct limiter *limiter = holding->limiter;
	struct listing listing = {.parts = parts, .all = all};
	struct part part = {.weight = SIBLING_WEIGHT_DEFAULT};
	struct measure by;

	if (!has_parts(holding) || !holding->wants->period)
		return 0;
	by = measure(holding, all, plain);
	part.wanted = amount_of(holding, &holding->wants->own, own_waits(limiter), &by, false);
	add_part(&listing, &part);
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		const struct holding *child = l->holding;

		if (!child || !child->wants || !child->id)
			continue;
		part = (struct part){.child = child->id};
		part.wanted = amount_of(holding, &child->wants->child, l->turns.sibling->head, &by,
					is_ahead(holding, child, by.leaf));
		if (part.wanted)
			set_place(holding, child->settings, &part);
		add_part(&listing, &part);
	}
	return listing.count == 1 && !parts[0].child ? 0 : end_listing(&listing);
}

uint32_t wants_of_claim(const struct holding *holding, uint32_t wanted,
			struct part parts[PARTS_MAX])
{
	double plain = holding_has_numbers(holding->settings) ? demand_wanted(holding)
							      : holding->wants->plain;

	return wants_gather(holding, wanted, plain, parts);
}

static bool is_same(const struct part *a, const struct part *b)
{
	return a->child == b->child && (a->child != PART_REST || a->priority == b->priority);
}

/* Returns what @part's child wants in @list, at most @most: more than that is all the same. */
static uint32_t amount_in(const struct part_list *list, const struct part *part, uint32_t most)
{
	uint32_t wanted = list->count || part->child ? 0 : list->wanted;

	for (uint32_t i = 0; i < list->count; i++)
		wanted = is_same(&list->parts[i], part) ? list->parts[i].wanted : wanted;
	return wanted < most ? wanted : most;
}

/* Returns the highest class of @list, and 1; 0: nothing is wanted. */
static uint32_t highest_in(const struct part_list *list)
{
	uint32_t highest = list->wanted > 0;

	for (uint32_t i = 0; i < list->count; i++)
		highest = list->parts[i].priority + 1 > highest ? list->parts[i].priority + 1
								: highest;
	return highest;
}

/* Tells whether what the children of @list want differs much from what they want in @other. */
static bool differ_much(const struct part_list *list, const struct part_list *other, uint32_t least)
{
	uint32_t most = list->wanted < other->wanted ? list->wanted : other->wanted;

	for (uint32_t i = 0; i < list->count; i++) {
		uint32_t a = amount_in(list, &list->parts[i], most);
		uint32_t b = amount_in(other, &list->parts[i], most);
		uint32_t more = a > b ? a - b : b - a, larger = a > b ? a : b;

		if (more <= least)
			continue;
		if ((a < most) != (b < most) ||
		    (uint64_t)more * 100 > (uint64_t)larger * CHANGE_PERCENT)
			return true;
	}
	return false;
}

bool wants_differ(const struct part_list *claimed, const struct part_list *wants, uint32_t leaves)
{
	uint32_t least = leaves / CHANGE_PARTS;

	return highest_in(wants) > highest_in(claimed) || differ_much(claimed, wants, least) ||
	       differ_much(wants, claimed, least);
}

/* Places on this host */

/*
 * Returns the tokens of weight that a leaf stands for, so that hungry children keep the sum of
 * their weights, and children that are not hungry theirs. The own queue's weight is fixed.
 */
static double weight_of_leaf(const struct part *parts, uint32_t count, uint32_t all)
{
	double weights = 0, leaves = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (parts[i].child == PART_REST || parts[i].wanted < all || !parts[i].gets)
			continue;
		if (!parts[i].child)
			return (double)parts[i].weight / parts[i].gets;
		weights += parts[i].weight;
		leaves += parts[i].gets;
	}
	return leaves > 0 ? weights / leaves : 0;
}

/* Sets the place of @child on this host. */
static void place(struct fleet *fleet, struct holding *child, const struct holding_place *place)
{
	uint32_t before = child->place.weight, now = place->weight;
	uint32_t more = now > before ? now - before : before - now;

	if (more * 100 <= before * PLACE_PERCENT && !before == !now &&
	    place->min_part == child->place.min_part && place->min_all == child->place.min_all)
		return;
	child->place = *place;
	leases_reshare(fleet, child);
}

static const struct part *find_part(const struct part *parts, uint32_t count, uint64_t id)
{
	for (uint32_t i = 0; i < count; i++) {
		if (parts[i].child == id)
			return &parts[i];
	}
	return NULL;
}

void wants_follow(struct fleet *fleet, struct holding *holding, const struct part *parts,
		  uint32_t count, uint32_t all)
{
	double leaf = weight_of_leaf(parts, count, all);

	if (!count && !holding->wants->places)
		return;
	holding->wants->places = count;
	for (struct limiter *l = holding->limiter->first_child; l; l = l->next_sibling) {
		struct holding_place here = {0};
		const struct part *part;

		if (!l->holding || !l->holding->wants || l->removed)
			continue;
		part = find_part(parts, count, l->holding->id);
		if (part && part->wanted >= all) {
			double weight = fmin(fmax(part->gets * leaf, 1), SIBLING_WEIGHT_MAX);

			here.weight = part->gets ? (uint32_t)lround(weight) : 0;
			here.min_part = part->least;
			here.min_all = part->min;
		}
		place(fleet, l->holding, &here);
	}
}
