/* limiter - one rate limiter, see limiter.h. */
#include "core/limiter/holding.h"
#include "core/limiter/learning.h"
#include "core/limiter/own.h"
#include "core/limiter/slots.h"

#include <assert.h>
#include <errno.h>

struct limiter *limiter_of_turn(struct heap_node *node)
{
	return container_of(node, struct limiter, turn);
}

struct limiter *limiter_of_due(struct heap_node *node)
{
	return container_of(node, struct limiter, due);
}

/*
 * Sets aside the tokens saved up for the waiter that is being interrupted, where it was its turn.
 * Takes them back when it is its turn again.
 */
static void move_aside(const struct schedule *schedule, struct limiter *limiter,
		       const struct waiter *current)
{
	const struct waiter *before = limiter->current;
	struct bucket *bucket;

	if (limiter->aside && current && current->ticket == limiter->aside) {
		for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
			bucket_take_back(bucket, current->tokens);
		limiter->aside = 0;
	} else if (schedule->parks && before && before->ticket == schedule->parks) {
		for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
			bucket_set_aside(bucket);
		limiter->aside = before->ticket;
	}
}

/*
 * Makes it the turn of @current (NULL: nobody's). Where an earlier reader comes in between, what was
 * saved up for the one whose turn it was stays: spilled each time, it might never be enough.
 */
static void give_turn(const struct schedule *schedule, struct limiter *limiter,
		      struct waiter *current)
{
	const struct waiter *before = limiter->current;
	bool keep = before && current && current->ticket <= before->ticket;
	uint64_t tokens = current ? current->tokens : 0;

	struct bucket *bucket;

	if (limiter->aside || schedule->parks)
		move_aside(schedule, limiter, current);
	limiter->current = current;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		if (!keep || tokens > bucket->awaited)
			bucket_await(bucket, tokens);
	}
}

/*
 * Takes @tokens for a reader all along the path to the root. One that was put forward may have waited
 * above for long: what came in and found no room since is spilled before the room is made.
 */
static void take_path(const struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		own_refill(schedule, limiter);
		limiter->counters[COUNTER_GRANTED] += tokens;
		if (limiter->settings->enforcement == ENFORCEMENT_SHADOW &&
		    !own_allows(limiter, tokens, schedule->now_ns))
			limiter->counters[COUNTER_SHADOWED] += tokens;
		else
			own_take(limiter, tokens);
	}
}

/* Counts @waiter as one that joins, or as one that leaves, in its limiter and those above. */
static void want(const struct waiter *waiter, bool joins)
{
	uint64_t tokens = joins ? waiter->tokens : -waiter->tokens;
	uint32_t one = joins ? 1 : -1U;

	for (struct limiter *limiter = waiter->limiter; limiter; limiter = limiter->parent) {
		limiter->wanted += tokens;
		limiter->wanting_none += waiter->tokens ? 0 : one;
	}
}

void limiter_leave(struct schedule *schedule, struct waiter *waiter)
{
	queue_remove(&waiter->limiter->queue, waiter);
	want(waiter, false);
	if (waiter->expiry)
		heap_remove(&schedule->expiries, &waiter->expiry->node);
}

void limiter_answer(struct schedule *schedule, struct waiter *waiter, int outcome)
{
	if (waiter->is_poller) {
		poller_answer(schedule, poller_of(waiter), outcome);
		return;
	}
	if (waiter->place)
		parking_free_place(&schedule->parking, waiter);
	waiter->outcome = outcome;
	queue_append(&schedule->done, waiter);
}

static void grant(struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	limiter_leave(schedule, waiter);
	take_path(schedule, limiter, waiter->tokens);
	limiter->counters[COUNTER_SERVED]++;
	limiter->counters[COUNTER_DELAYED] += schedule->now_ns - waiter->asked_ns;
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (l->holding)
			l->holding->delayed_ns += schedule->now_ns - waiter->asked_ns;
	}
	limiter_answer(schedule, waiter, 0);
}

/* The earliest of those who wait here and those whom the children put forward. */
static struct waiter *earliest(const struct limiter *limiter)
{
	struct waiter *own = queue_first(&limiter->queue);
	struct heap_node *turn = limiter->ready.root;

	if (turn && (!own || turn->key < own->ticket))
		return limiter_of_turn(turn)->current;
	return own;
}

/* Sets or clears the time at which @limiter must be settled again. */
static void set_deadline(struct schedule *schedule, struct limiter *limiter, bool ready)
{
	uint64_t at_ns = NEVER_NS, learning_ns;

	if (limiter->current && !ready && !schedule->stopped)
		at_ns = own_when(limiter, limiter->current->tokens, schedule->now_ns);
	/* What is learnt may make it sooner; a look that was due has been had by now. */
	learning_ns = learning_next_ns(limiter);
	if (at_ns != NEVER_NS && learning_ns < at_ns)
		at_ns = learning_ns > schedule->now_ns ? learning_ns : schedule->now_ns + 1;
	assert(at_ns > schedule->now_ns);
	if (at_ns == NEVER_NS)
		heap_remove(&schedule->deadlines, &limiter->due);
	else
		heap_place(&schedule->deadlines, &limiter->due, at_ns);
}

/*
 * Walks from @limiter to the root. A change in a limiter changes nothing in its siblings and
 * children, so only the path needs a look. The root limits nothing: the reader that comes first
 * there is granted, and the walk begins again where that reader waited.
 */
void limiter_settle(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter) {
		struct waiter *current = earliest(limiter);
		bool ready;

		own_grow(schedule, limiter);
		give_turn(schedule, limiter, current);
		ready = current && !schedule->stopped &&
			own_has(limiter, current->tokens, schedule->now_ns);
		if (ready && limiter_is_root(limiter)) {
			limiter = current->limiter;
			grant(schedule, current);
			continue;
		}
		if (ready)
			heap_place(&limiter->parent->ready, &limiter->turn, current->ticket);
		else if (limiter->parent)
			heap_remove(&limiter->parent->ready, &limiter->turn);
		set_deadline(schedule, limiter, ready);
		limiter = limiter->parent;
	}
}

bool limiter_try(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (l->current)
			return false;
		own_grow(schedule, l);
		if (!own_has(l, tokens, schedule->now_ns))
			return false;
	}
	take_path(schedule, limiter, tokens);
	limiter->counters[COUNTER_SERVED]++;
	return true;
}

void queue_join(struct schedule *schedule, struct queue *queue, struct waiter *waiter)
{
	waiter->outcome = -EINPROGRESS;
	if (waiter->place) {
		queue_return(queue, waiter);
		return;
	}
	waiter->ticket = ++schedule->tickets;
	waiter->asked_ns = schedule->now_ns;
	queue_append(queue, waiter);
}

bool limiter_ask(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns)
{
	struct limiter *limiter = waiter->limiter;

	if (limiter_try(schedule, limiter, waiter->tokens))
		return true;
	queue_join(schedule, &limiter->queue, waiter);
	want(waiter, true);
	if (waiter->expiry) {
		*waiter->expiry = (struct expiry){.waiter = waiter, .at_ns = waiter->expiry->at_ns};
		heap_insert(&schedule->expiries, &waiter->expiry->node, expiry_ns);
	}
	/* One who comes behind others changes nothing for them. */
	if (queue_first(&limiter->queue) == waiter)
		limiter_settle(schedule, limiter);
	return false;
}

void limiter_cancel(struct schedule *schedule, struct waiter *waiter)
{
	limiter_leave(schedule, waiter);
	waiter->limiter->counters[COUNTER_CANCELLED]++;
	if (waiter->limiter->current == waiter)
		limiter_settle(schedule, waiter->limiter);
}

static void hasten(struct schedule *schedule, const struct waiter *waiter)
{
	struct expiry *expiry = waiter->expiry;

	if (expiry && expiry->node.key > expiry->at_ns)
		heap_place(&schedule->expiries, &expiry->node, expiry->at_ns);
}

void limiter_hasten(struct schedule *schedule, struct limiter *limiter)
{
	struct heap_node *turn = limiter->queue.returned.root;

	for (const struct waiter *w = list_first(&limiter->queue.once, struct waiter, once); w;
	     w = list_next(w, once))
		hasten(schedule, w);
	for (; turn; turn = heap_next(turn))
		hasten(schedule, waiter_of_turn(turn));
}

void limiter_expire(struct schedule *schedule, struct waiter *waiter)
{
	limiter_leave(schedule, waiter);
	waiter->limiter->counters[COUNTER_REFUSED]++;
	limiter_answer(schedule, waiter, -EAGAIN);
	limiter_settle(schedule, waiter->limiter);
}

void limiter_refund(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	limiter->counters[COUNTER_SERVED]--;
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_GRANTED] -= tokens;
		own_refill(schedule, l);
		own_put(l, tokens, 0);
	}
	limiter_settle(schedule, limiter);
}

bool limiter_owes(const struct limiter *limiter, uint64_t tokens)
{
	/* Of the root no counters are kept for a successor. */
	for (; limiter && !limiter_is_root(limiter); limiter = limiter->parent) {
		uint64_t taken = limiter->counters[COUNTER_GRANTED] +
				 limiter->counters[COUNTER_CHARGED];

		if (taken < tokens || taken - tokens < limiter->counters[COUNTER_RETURNED])
			return false;
	}
	return true;
}

void limiter_charge(struct schedule *schedule, struct limiter *limiter, int64_t tokens)
{
	enum counter counter = tokens < 0 ? COUNTER_RETURNED : COUNTER_CHARGED;
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[counter] += size;
		own_refill(schedule, l);
		if (tokens < 0)
			own_put(l, size, 0);
		else
			own_take(l, size);
	}
	limiter_settle(schedule, limiter);
}

void limiter_return(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_RETURNED] += tokens;
		own_refill(schedule, l);
		own_put(l, tokens, l->polled);
	}
	limiter_settle(schedule, limiter);
}

void limiter_hear(struct schedule *schedule, struct limiter *limiter, const struct outcome *outcome)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		learning_hear(schedule, l, outcome);
		/* Where a rate is felt for, throttling is answered by that. */
		if (outcome->kind == OUTCOME_THROTTLED &&
		    (!l->learning || l->settings->adapt.kind == ADAPT_NONE))
			slots_throttled(schedule, l);
	}
	limiter_settle(schedule, limiter);
}

void limiter_adopt(struct schedule *schedule, struct limiter *limiter,
		   const struct adapt_state *other)
{
	own_refill(schedule, limiter);
	learning_adopt(schedule, limiter, other);
	limiter_settle(schedule, limiter);
}

void limiter_evict(struct schedule *schedule, struct limiter *limiter)
{
	struct waiter *waiter;

	while ((waiter = queue_first(&limiter->queue))) {
		limiter_leave(schedule, waiter);
		limiter_answer(schedule, waiter, -ENODEV);
	}
	limiter_settle(schedule, limiter);
	poller_forget(limiter);
	heap_remove(&schedule->deadlines, &limiter->due);
	slots_evict(schedule, limiter);
}
