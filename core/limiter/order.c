/* order - which sibling comes first, see order.h. */
#include "core/limiter/order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { CLASS_BITS = 4, FLOW_BITS = 48 };

#define TAG_SCALE UINT64_C(10000)
#define TIME_MAX  (UINT64_C(1) << 62)

/* More than ever wait in one limiter; with a debt on top it fits a level. */
#define AHEAD_MAX (UINT64_C(1) << 61)

_Static_assert(PRIORITIES <= 1 << CLASS_BITS, "a class has its bits of an era");

static const struct sibling *sibling_of(const struct heap_node *turn)
{
	return container_of(turn, const struct sibling, turn);
}

static unsigned int class_number(const struct sibling *sibling)
{
	return sibling->era & ((1U << CLASS_BITS) - 1);
}

static struct order_class *class_of(struct order *order, const struct sibling *sibling)
{
	return &order->classes[class_number(sibling)];
}

static bool is_guaranteed(const struct sibling *sibling)
{
	return sibling->guarantee && sibling->guarantee->rate.num;
}

struct order *order_new(void)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return NULL;
	for (uint32_t i = 0; i < PRIORITIES; i++)
		order->classes[i].era = i;
	order_follow(order, &order->own, &SETTINGS_DEFAULT, 0, false);
	return order;
}

int order_prepare(struct sibling *sibling, const struct settings *settings)
{
	if (!settings->min.amount || sibling->guarantee)
		return 0;
	sibling->guarantee = calloc(1, sizeof(*sibling->guarantee));
	if (!sibling->guarantee)
		return -ENOMEM;
	sibling->guarantee->sibling = sibling;
	return 0;
}

void order_free_sibling(struct sibling *sibling)
{
	assert(!heap_holds(&sibling->turn));
	free(sibling->guarantee);
	sibling->guarantee = NULL;
}

static void note_take(struct order *order, struct sibling *sibling, uint64_t tokens)
{
	uint64_t more = tokens - sibling->largest;

	class_of(order, sibling)->takes += more;
	if (is_guaranteed(sibling))
		order->guaranteed_takes += more;
	sibling->largest = tokens;
}

void order_count(struct order *order, struct sibling *sibling, uint64_t tokens, uint64_t size,
		 int more)
{
	struct order_class *class = class_of(order, sibling);

	class->wanted += tokens;
	if (more > 0)
		class->weights += sibling->weight;
	else if (more < 0)
		class->weights -= sibling->weight;
	/* More are wanted: not fewer, which wrap around. */
	if (more < 0)
		note_take(order, sibling, 0);
	else if (size < INT64_MAX && size > sibling->largest)
		note_take(order, sibling, size);
	if (sibling == &order->own)
		order->own_wanted += tokens;
	if (!is_guaranteed(sibling))
		return;
	order->guaranteed_wanted += tokens;
	if (more > 0)
		order->minima += sibling->guarantee->flow;
	else if (more < 0)
		order->minima -= sibling->guarantee->flow;
}

static bool has_place(const struct sibling *sibling, const struct settings *settings,
		      const struct fraction *min)
{
	const struct fraction *rate = sibling->guarantee ? &sibling->guarantee->rate : NULL;

	return sibling->weight == settings->weight && class_number(sibling) == settings->priority &&
	       (!rate || (rate->num == min->num && (!rate->num || rate->den == min->den)));
}

static u128 flow_of(const struct fraction *rate)
{
	return (((u128)rate->num << FLOW_BITS) + rate->den - 1) / rate->den;
}

void order_follow(struct order *order, struct sibling *sibling, const struct settings *settings,
		  uint64_t wanted, bool waits)
{
	struct fraction min = rate_fraction(&settings->min);
	struct guarantee *guarantee = sibling->guarantee;
	uint64_t largest = sibling->largest;

	if (has_place(sibling, settings, &min))
		return;
	if (order) {
		order_leave(order, sibling);
		order_count(order, sibling, -wanted, 0, waits ? -1 : 0);
	}
	/* It begins at V: tags count for what they were made of. */
	sibling->weight = (uint16_t)settings->weight;
	sibling->era = order ? order->classes[settings->priority].era : settings->priority;
	sibling->finish = 0;
	sibling->part = 0;
	if (guarantee)
		*guarantee =
			(struct guarantee){.sibling = sibling, .rate = min, .flow = flow_of(&min)};
	if (order) {
		order_count(order, sibling, wanted, wanted, waits ? 1 : 0);
		/* They are wanted in many takes. */
		note_take(order, sibling, largest);
	}
}

/* The earlier waiter comes first. */
static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
	return sibling_of(a)->head->ticket < sibling_of(b)->head->ticket;
}

/* Returns the start tag of @sibling. */
static uint64_t start_of(const struct order *order, const struct sibling *sibling)
{
	const struct order_class *class = &order->classes[class_number(sibling)];

	if (heap_holds(&sibling->turn))
		return sibling->turn.key;
	return sibling->era == class->era && sibling->finish > class->time ? sibling->finish
									   : class->time;
}

/* Returns the class of siblings that have the settings by default. */
static const struct order_class *usual_class(const struct order *order)
{
	return &order->classes[SETTINGS_DEFAULT.priority];
}

uint64_t order_tag(const struct order *order, const struct sibling *sibling)
{
	/* Of the usual weight a token is a whole number of units. */
	return sibling->era == usual_class(order)->era ? sibling->finish : 0;
}

bool order_is_ahead(const struct order *order, uint64_t finish)
{
	const struct order_class *class = usual_class(order);

	/* One beyond the latest tag is of an era before. */
	return class->weights && finish > class->time && finish <= class->last;
}

void order_resume(const struct order *order, struct sibling *sibling, uint64_t finish)
{
	sibling->era = usual_class(order)->era;
	sibling->finish = finish <= usual_class(order)->last ? finish : 0;
}

/* Returns the time by the clock of minima. */
static uint64_t clock_of(const struct order *order, uint64_t now_ns)
{
	return now_ns - order->lag_ns;
}

/* Returns when, by that clock, the min of @sibling is due; NEVER_NS: it has none. */
static uint64_t due_of(const struct order *order, const struct sibling *sibling, uint64_t now_ns)
{
	const struct guarantee *guarantee = sibling->guarantee;
	const struct heap_node *earliest = order->guaranteed.root;
	uint64_t begin_ns = clock_of(order, now_ns);

	if (!is_guaranteed(sibling))
		return NEVER_NS;
	if (heap_holds(&guarantee->due))
		return guarantee->due.key;
	/* It has had a waiter all the time if it was granted one just now. */
	if (guarantee->granted_ns == now_ns)
		return guarantee->due_ns;
	if (earliest && earliest->key < begin_ns)
		begin_ns = earliest->key;
	return guarantee->due_ns > begin_ns ? guarantee->due_ns : begin_ns;
}

/* Tells whether the min of @sibling is due. */
static bool is_due(const struct order *order, const struct sibling *sibling, uint64_t now_ns)
{
	return due_of(order, sibling, now_ns) <= clock_of(order, now_ns);
}

/* Notes that a sibling of @class has a waiter. After a while without one no take is owed. */
static void stay_busy(struct order_class *class, uint64_t now_ns)
{
	bool was_idle = !class->forward.root && class->busy_ns < now_ns;

	if (was_idle && class->last > class->time)
		class->time = class->last;
	class->busy_ns = now_ns;
}

/* Takes @sibling, which puts a waiter forward, out of the heap of @class. */
static void take_out(struct order_class *class, struct sibling *sibling)
{
	heap_remove_by(&class->forward, &sibling->turn, is_before);
	if (class->latest == &sibling->turn)
		class->latest = NULL;
}

void order_enter(struct order *order, struct sibling *sibling, struct waiter *head, uint64_t now_ns)
{
	struct order_class *class = class_of(order, sibling);
	uint64_t start;

	assert(sibling->weight);
	stay_busy(class, now_ns);
	start = start_of(order, sibling);
	if (heap_holds(&sibling->turn)) {
		if (sibling->head == head)
			return;
		take_out(class, sibling);
	}
	sibling->head = head;
	/* Of siblings that are alike each comes after all others. */
	heap_insert_by(&class->forward, &sibling->turn, start, class->latest, is_before);
	class->latest = &sibling->turn;
	order->forward |= 1U << class_number(sibling);
	if (is_guaranteed(sibling) && !heap_holds(&sibling->guarantee->due)) {
		heap_insert_by(&order->guaranteed, &sibling->guarantee->due,
			       due_of(order, sibling, now_ns), order->last_due, NULL);
		order->last_due = &sibling->guarantee->due;
	}
}

void order_leave(struct order *order, struct sibling *sibling)
{
	struct order_class *class = class_of(order, sibling);

	if (!heap_holds(&sibling->turn))
		return;
	take_out(class, sibling);
	if (!class->forward.root)
		order->forward &= ~(1U << class_number(sibling));
	sibling->head = NULL;
	if (!sibling->guarantee)
		return;
	heap_remove(&order->guaranteed, &sibling->guarantee->due);
	if (order->last_due == &sibling->guarantee->due)
		order->last_due = NULL;
}

static const struct sibling *first_sibling(const struct order *order, uint64_t now_ns)
{
	const struct heap_node *due = order->guaranteed.root;
	unsigned int highest;

	if (due && due->key <= clock_of(order, now_ns))
		return container_of(due, const struct guarantee, due)->sibling;
	if (!order->forward)
		return NULL;
	highest = 31 - (unsigned int)__builtin_clz(order->forward);
	return sibling_of(order->classes[highest].forward.root);
}

struct waiter *order_first(const struct order *order, uint64_t now_ns)
{
	const struct sibling *first = first_sibling(order, now_ns);

	return first ? first->head : NULL;
}

uint64_t order_next_ns(const struct order *order, uint64_t now_ns)
{
	const struct heap_node *due = order->guaranteed.root;

	return due && due->key > clock_of(order, now_ns) ? due->key + order->lag_ns : NEVER_NS;
}

bool order_precedes(const struct order *order, const struct contender *a, const struct contender *b,
		    uint64_t now_ns)
{
	const struct sibling *one = a->sibling, *other = b->sibling;
	uint64_t due_ns = due_of(order, one, now_ns), other_ns = due_of(order, other, now_ns);

	if (is_due(order, one, now_ns) || is_due(order, other, now_ns))
		return due_ns != other_ns ? due_ns < other_ns : a->ticket < b->ticket;
	if (class_number(one) != class_number(other))
		return class_number(one) > class_number(other);
	if (start_of(order, one) != start_of(order, other))
		return start_of(order, one) < start_of(order, other);
	return a->ticket < b->ticket;
}

bool order_wins(const struct order *order, const struct sibling *sibling, uint64_t now_ns)
{
	const struct sibling *first = first_sibling(order, now_ns);
	struct contender newcomer = {sibling, LATEST_TICKET}, holder;

	if (!first || first == sibling)
		return true;
	holder = (struct contender){first, first->head->ticket};
	return order_precedes(order, &newcomer, &holder, now_ns);
}

/*
 * Holds the clock of minima back if @sibling was further behind it than a second and the time of a
 * take of each, @behind_ns, as it was granted @tokens: while all minima can be had none is.
 */
static void hold_back(struct order *order, const struct sibling *sibling, uint64_t tokens,
		      uint64_t behind_ns)
{
	/* Its last waiter is not counted any more. */
	bool waits = sibling->largest;
	u128 takes = order->guaranteed_takes + (waits ? 0 : (u128)tokens);
	u128 minima = order->minima + (waits ? 0 : sibling->guarantee->flow);
	u128 most_ns = NSEC_PER_SEC + (takes << FLOW_BITS) / minima;

	if (behind_ns > most_ns)
		order->lag_ns += behind_ns - (uint64_t)most_ns;
}

const struct waiter *order_before(const struct order *order, const struct sibling *sibling,
				  uint64_t now_ns, enum order_cause *cause)
{
	const struct sibling *first = first_sibling(order, now_ns);
	const struct heap_node *due = order->guaranteed.root;

	if (order_wins(order, sibling, now_ns))
		return NULL;
	if (due && due->key <= clock_of(order, now_ns))
		*cause = ORDER_BY_MIN;
	else if (class_number(first) != class_number(sibling))
		*cause = ORDER_BY_PRIORITY;
	else
		*cause = ORDER_BY_WEIGHT;
	return first->head;
}

/* Counts @tokens for the min of @sibling, if it is due; tells whether it was. */
static bool count_for_min(struct order *order, struct sibling *sibling, uint64_t tokens,
			  uint64_t now_ns)
{
	struct guarantee *guarantee = sibling->guarantee;
	uint64_t due_ns = due_of(order, sibling, now_ns), behind_ns, span_ns;
	u128 units;

	if (due_ns > clock_of(order, now_ns))
		return false;
	units = (u128)tokens * guarantee->rate.den + guarantee->part;
	guarantee->part = (uint64_t)(units % guarantee->rate.num);
	units /= guarantee->rate.num;
	span_ns = units < DURATION_MAX_NS ? (uint64_t)units : DURATION_MAX_NS;
	behind_ns = clock_of(order, now_ns) - due_ns;
	if (behind_ns > NSEC_PER_SEC)
		hold_back(order, sibling, tokens, behind_ns);
	guarantee->due_ns = due_ns + span_ns;
	guarantee->granted_ns = now_ns;
	return true;
}

/* Lets the tags of @class begin anew at 0. */
static void begin_era(struct order_class *class)
{
	struct heap_node *turn = class->forward.root;

	for (; turn; turn = heap_next(turn))
		turn->key -= class->time;
	class->last -= class->last < class->time ? class->last : class->time;
	class->time = 0;
	class->era += 1U << CLASS_BITS;
}

/* Returns the furthest that the finish tag of @sibling, with a min, may be after a take. */
static uint64_t finish_max(const struct order_class *class, const struct sibling *sibling,
			   uint64_t tokens)
{
	const struct fraction *rate = &sibling->guarantee->rate;
	uint64_t a_second = (uint64_t)((u128)rate->num * NSEC_PER_SEC / rate->den);

	return class->time + (a_second + 2 * tokens) * TAG_SCALE / sibling->weight;
}

bool order_grant(struct order *order, struct sibling *sibling, uint64_t tokens, uint64_t now_ns)
{
	struct order_class *class = class_of(order, sibling);
	const struct heap_node *first = class->forward.root;
	uint64_t start, least, units, most;
	bool under = is_guaranteed(sibling) && count_for_min(order, sibling, tokens, now_ns);

	stay_busy(class, now_ns);
	start = least = start_of(order, sibling);
	if (first && first->key < least)
		least = first->key;
	order_leave(order, sibling);
	if (least > class->time)
		class->time = least;
	if (class->time > TIME_MAX) {
		start -= class->time;
		begin_era(class);
	}
	units = tokens * TAG_SCALE + sibling->part;
	sibling->era = class->era;
	sibling->finish = start + units / sibling->weight;
	sibling->part = (uint16_t)(units % sibling->weight);
	if (is_guaranteed(sibling) && sibling->finish > (most = finish_max(class, sibling, tokens)))
		sibling->finish = most > start ? most : start;
	if (sibling->finish > class->last)
		class->last = sibling->finish;
	return under;
}

/* Returns the tokens of other siblings of the class of @prospect that may come before. */
static u128 fair_ahead(const struct order *order, const struct prospect *prospect)
{
	const struct sibling *sibling = prospect->sibling;
	const struct order_class *class = &order->classes[class_number(sibling)];
	uint64_t others = class->weights - (prospect->waits ? sibling->weight : 0);
	/* The start tag that the waiter will have, from V on, rounded up. */
	u128 span = (u128)(prospect->asked - prospect->tokens) * TAG_SCALE / sibling->weight + 1 +
		    (start_of(order, sibling) - class->time);

	/* Each sibling begins takes until then: the last one may end after it. */
	return span * others / TAG_SCALE + class->takes - sibling->largest;
}

static u128 lesser(u128 a, u128 b)
{
	return a < b ? a : b;
}

/*
 * Returns the tokens that siblings other than that of @prospect may have under their minima until
 * its until_ns: each what its min brings, a second and a take that it may be behind, and a take
 * that begins then.
 */
static uint64_t guaranteed_ahead(const struct order *order, const struct prospect *prospect)
{
	const struct sibling *sibling = prospect->sibling;
	bool is_among = is_guaranteed(sibling);
	uint64_t wanted = order->guaranteed_wanted - (is_among ? prospect->wanted : 0);
	uint64_t takes = order->guaranteed_takes - (is_among ? sibling->largest : 0);
	u128 minima = order->minima - (is_among && prospect->waits ? sibling->guarantee->flow : 0);
	u128 tokens;

	if (prospect->until_ns - prospect->now_ns > DURATION_MAX_NS || minima >> 64)
		return wanted;
	tokens = minima * (prospect->until_ns - prospect->now_ns + NSEC_PER_SEC);
	return (uint64_t)lesser(wanted, (tokens >> FLOW_BITS) + 1 + 2 * (u128)takes);
}

uint64_t order_ahead(const struct order *order, const struct prospect *prospect)
{
	const struct sibling *sibling = prospect->sibling;
	unsigned int number = class_number(sibling);
	uint64_t others = order->classes[number].wanted - prospect->wanted, higher = 0, lower = 0;
	uint64_t guaranteed = guaranteed_ahead(order, prospect);
	u128 before;

	for (unsigned int i = 0; i < number; i++)
		lower += order->classes[i].wanted;
	for (unsigned int i = number + 1; i < PRIORITIES; i++)
		higher += order->classes[i].wanted;
	if (!prospect->waits && order_wins(order, sibling, prospect->now_ns)) {
		/* Minima that fall due after its own are behind it. */
		before = is_due(order, sibling, prospect->now_ns) ? 0 : guaranteed;
	} else {
		before = fair_ahead(order, prospect) + guaranteed;
		before = higher + lesser(others, before) + lesser(lower, guaranteed);
	}
	before = lesser(before + prospect->flow, (u128)higher + others + lower);
	before += prospect->asked;
	return before < AHEAD_MAX ? (uint64_t)before : AHEAD_MAX;
}
