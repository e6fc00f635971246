/* turns - whose turn it is, see turns.h. */
#include "core/limiter/turns.h"
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/slots.h"
#include "core/limiter/units.h"
#include "core/limiter/usage.h"

#include <errno.h>
#include <stdlib.h>

/* Counts @waiter in the own queue. */
static void count_waiting(struct order *order, const struct waiter *waiter, int more)
{
	order_count(order, &order->own, waiter->tokens, units_size(waiter, waiter->tokens), more);
}

/* Counts all waiters of @turns in its order, which is new: all wait in the own queue. */
static void count_own(struct turns *turns)
{
	struct order *order = turns->order;
	struct heap_node *turn = turns->queue.returned.root;
	int more = 1;

	for (const struct waiter *w = list_first(&turns->queue.once, struct waiter, once); w;
	     w = list_next(w, once), more = 0)
		count_waiting(order, w, more);
	for (; turn; turn = heap_next(turn), more = 0)
		count_waiting(order, waiter_of_turn(turn), more);
}

int turns_prepare(struct turns *turns)
{
	if (turns->order)
		return 0;
	turns->order = order_new();
	if (!turns->order)
		return -ENOMEM;
	count_own(turns);
	if (turns->current)
		order_enter(turns->order, &turns->order->own, turns->current, 0);
	return 0;
}

void turns_place(struct turns *turns, struct sibling *sibling, const struct settings *settings)
{
	turns->sibling = sibling;
	order_follow(NULL, sibling, settings, 0, false);
}

void turns_free(struct turns *turns)
{
	if (turns->sibling)
		order_free_sibling(turns->sibling);
	free(turns->order);
	turns->order = NULL;
}

/* Returns the turns of @limiter; NULL: no opener ever came here. */
static struct turns *turns_of(struct limiter *limiter, const struct turn_rules *rules)
{
	if (!rules->of_slots)
		return &limiter->turns;
	return limiter->slots ? &limiter->slots->turns : NULL;
}

/* Returns the place in @order of the child with @below, or of the own queue if that is NULL. */
static struct sibling *place_of(struct order *order, struct turns *below)
{
	return below ? below->sibling : &order->own;
}

/* Notes that @waiter has joined, and may have come while others waited, or has left. */
static void note_stall(const struct schedule *schedule, struct holding *holding,
		       const struct waiter *waiter, bool joins)
{
	bool is_late = schedule->now_ns > holding->stall_ns;

	if (holding->limiter->turns.waiting != joins) {
		if (joins && is_late && !waiter->place)
			holding->behind += waiter->tokens;
		return;
	}
	if (joins)
		holding->stall_ns = schedule->now_ns + HOLDING_CALM_NS;
	else if (is_late)
		holding->stalled_ns += schedule->now_ns - holding->stall_ns;
}

/*
 * Counts the demand of @waiter, which has joined or left, in its limiter and those above, but the
 * root: there nothing is shared.
 */
static void count_waiter(const struct schedule *schedule, const struct turn_rules *rules,
			 const struct waiter *waiter, bool joins)
{
	uint64_t tokens = joins ? waiter->tokens : -waiter->tokens;
	uint64_t size = joins ? units_size(waiter, waiter->tokens) : 0;
	uint32_t length = turns_of(waiter->limiter, rules)->queue.length;
	int one = joins ? 1 : -1, more = length == joins ? one : 0;
	struct turns *below = NULL;

	if (waiter->limiter->is_key)
		keys_count_waiter(waiter->limiter, joins);
	for (struct limiter *l = waiter->limiter; !limiter_is_root(l); l = l->parent) {
		struct turns *turns = turns_of(l, rules);
		struct order *order = turns->order;

		if (order)
			order_count(order, place_of(order, below), tokens, size, more);
		if (order && !joins)
			saving_end(&order->saving, waiter);
		turns->wanted += tokens;
		if (waiter->amounts)
			units_count(l, UNIT_WANTED, waiter->amounts, !joins);
		if (!waiter->tokens)
			turns->wanting_none += (uint32_t)one;
		turns->waiting += (uint32_t)one;
		/* The first waiter has come, or the last one has left: no other one is below. */
		if (turns->waiting == joins)
			usage_stalled(schedule, l);
		else
			more = 0;
		if (l->holding && !rules->of_slots)
			note_stall(schedule, l->holding, waiter, joins);
		below = turns;
	}
}

void turns_join(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules)
{
	struct queue *queue = &turns_of(waiter->limiter, rules)->queue;

	waiter->outcome = -EINPROGRESS;
	if (waiter->place) {
		queue_return(queue, waiter);
	} else {
		waiter->ticket = ++schedule->tickets;
		waiter->asked_ns = schedule->now_ns;
		queue_append(queue, waiter);
	}
	count_waiter(schedule, rules, waiter, true);
	/* A waiter behind others changes nothing for them. */
	if (queue_first(queue) == waiter)
		turns_settle(schedule, waiter->limiter, rules);
}

void turns_leave(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules)
{
	queue_remove(&turns_of(waiter->limiter, rules)->queue, waiter);
	count_waiter(schedule, rules, waiter, false);
	if (waiter->expiry)
		heap_remove(&schedule->expiries, &waiter->expiry->node);
}

void turns_answer(struct schedule *schedule, struct waiter *waiter, int outcome)
{
	if (waiter->place)
		parking_free_place(&schedule->parking, waiter);
	waiter->outcome = outcome;
	queue_append(&schedule->done, waiter);
}

void turns_cancel(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules)
{
	const struct turns *turns = turns_of(waiter->limiter, rules);

	turns_leave(schedule, waiter, rules);
	waiter->limiter->counters[COUNTER_CANCELLED]++;
	if (turns->current == waiter || (turns->order && turns->order->own.head == waiter))
		turns_settle(schedule, waiter->limiter, rules);
}

void turns_evict(struct schedule *schedule, struct limiter *limiter, const struct turn_rules *rules)
{
	const struct turns *turns = turns_of(limiter, rules);
	struct waiter *waiter;

	while (turns && (waiter = queue_first(&turns->queue))) {
		turns_leave(schedule, waiter, rules);
		rules->conclude(schedule, waiter, -ENODEV);
	}
	turns_settle(schedule, limiter, rules);
}

/* Returns the waiter whose turn it is now; NULL: no waiter's. */
static struct waiter *choose_waiter(struct turns *turns, uint64_t now_ns)
{
	struct waiter *own = queue_first(&turns->queue);
	struct order *order = turns->order;

	if (!order)
		return own;
	if (own)
		order_enter(order, &order->own, own, now_ns);
	else
		order_leave(order, &order->own);
	return order_first(order, now_ns);
}

/* Counts a grant of @tokens of @limiter in the orders above, or in those where waiters wait. */
static void count_grant(const struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
			bool contested, const struct turn_rules *rules)
{
	struct limiter *child = NULL;

	for (; !limiter_is_root(limiter); child = limiter, limiter = limiter->parent) {
		struct turns *turns = turns_of(limiter, rules);
		struct order *order = turns->order;
		struct turns *below = child ? turns_of(child, rules) : NULL;

		if (!order || (contested && !turns->current))
			continue;
		if (order_grant(order, place_of(order, below), tokens, schedule->now_ns))
			child->counters[COUNTER_GRANTED_MIN] += tokens;
	}
}

static void grant_waiter(struct schedule *schedule, struct waiter *waiter,
			 const struct turn_rules *rules)
{
	turns_leave(schedule, waiter, rules);
	rules->take(schedule, waiter);
	count_grant(schedule, waiter->limiter,
		    waiter->is_opener ? 1 : units_size(waiter, waiter->granted), false, rules);
	rules->conclude(schedule, waiter, 0);
}

bool turns_may_pass(const struct turns *turns, const struct turns *below, uint64_t now_ns)
{
	const struct order *order = turns->order;

	if (!turns->current)
		return true;
	if (!order || (!below && turns->queue.length))
		return false;
	return order_wins(order, below ? below->sibling : &order->own, now_ns);
}

void turns_passed(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		  const struct turn_rules *rules)
{
	count_grant(schedule, limiter, tokens, true, rules);
	turns_settle(schedule, limiter, rules);
}

/* Puts the waiter whose turn it is in @limiter, if it is @ready, forward to the parent, no root. */
static void put_forward(const struct schedule *schedule, struct limiter *limiter, bool ready,
			const struct turn_rules *rules)
{
	struct turns *turns = turns_of(limiter, rules);
	struct turns *above = turns_of(limiter->parent, rules);

	if (ready)
		order_enter(above->order, turns->sibling, turns->current, schedule->now_ns);
	else if (above && above->order)
		order_leave(above->order, turns->sibling);
}

/*
 * Walks from @limiter to the root. A change in a limiter changes nothing in its siblings and
 * children, so only the path needs a look. The root limits nothing: the waiter that comes first
 * below it is granted, and the walk begins again where that waiter waited.
 */
void turns_settle(struct schedule *schedule, struct limiter *limiter,
		  const struct turn_rules *rules)
{
	struct turns *turns;

	while (!limiter_is_root(limiter) && (turns = turns_of(limiter, rules))) {
		bool is_highest = limiter_is_root(limiter->parent);
		struct waiter *current = choose_waiter(turns, schedule->now_ns);
		bool ready = rules->offer(schedule, limiter, current) && !schedule->stopped;

		turns->current = current;
		if (current)
			queue_fetch_next(current);
		if (ready && is_highest && !schedule->gathers && !schedule->frozen) {
			limiter = current->limiter;
			grant_waiter(schedule, current, rules);
			continue;
		}
		if (!is_highest)
			put_forward(schedule, limiter, ready, rules);
		if (rules->plan)
			rules->plan(schedule, limiter, ready);
		limiter = limiter->parent;
	}
}
