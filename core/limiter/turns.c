/* turns - whose turn it is, see turns.h. */
#include "core/limiter/turns.h"
#include "core/limiter/shape.h"

#include <errno.h>

/* Counts the demand of @waiter, which joins or leaves, in its limiter and those above. */
static void count_waiter(const struct turn_rules *rules, const struct waiter *waiter, bool joins)
{
	uint64_t tokens = joins ? waiter->tokens : -waiter->tokens;
	uint32_t one = joins ? 1 : -1U;

	for (struct limiter *limiter = waiter->limiter; limiter; limiter = limiter->parent) {
		struct turns *turns = rules->turns_of(limiter);

		turns->wanted += tokens;
		turns->wanting_none += waiter->tokens ? 0 : one;
	}
}

void turns_join(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules)
{
	struct queue *queue = &rules->turns_of(waiter->limiter)->queue;

	waiter->outcome = -EINPROGRESS;
	if (waiter->place) {
		queue_return(queue, waiter);
	} else {
		waiter->ticket = ++schedule->tickets;
		waiter->asked_ns = schedule->now_ns;
		queue_append(queue, waiter);
	}
	count_waiter(rules, waiter, true);
	/* A waiter behind others changes nothing for them. */
	if (queue_first(queue) == waiter)
		turns_settle(schedule, waiter->limiter, rules);
}

void turns_leave(struct schedule *schedule, struct waiter *waiter, const struct turn_rules *rules)
{
	queue_remove(&rules->turns_of(waiter->limiter)->queue, waiter);
	count_waiter(rules, waiter, false);
	if (!waiter->is_opener && waiter->expiry)
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
	turns_leave(schedule, waiter, rules);
	waiter->limiter->counters[COUNTER_CANCELLED]++;
	if (rules->turns_of(waiter->limiter)->current == waiter)
		turns_settle(schedule, waiter->limiter, rules);
}

void turns_evict(struct schedule *schedule, struct limiter *limiter, const struct turn_rules *rules)
{
	const struct turns *turns = rules->turns_of(limiter);
	struct waiter *waiter;

	while (turns && (waiter = queue_first(&turns->queue))) {
		turns_leave(schedule, waiter, rules);
		rules->conclude(schedule, waiter, -ENODEV);
	}
	turns_settle(schedule, limiter, rules);
}

/* Returns the earliest of the waiters in the own queue and those that children put forward. */
static struct waiter *earliest_of(const struct turns *turns)
{
	struct waiter *own = queue_first(&turns->queue);
	struct heap_node *turn = turns->ready.root;

	if (turn && (!own || turn->key < own->ticket))
		return container_of(turn, struct turns, turn)->current;
	return own;
}

static void grant_waiter(struct schedule *schedule, struct waiter *waiter,
			 const struct turn_rules *rules)
{
	turns_leave(schedule, waiter, rules);
	rules->take(schedule, waiter);
	rules->conclude(schedule, waiter, 0);
}

/*
 * Walks from @limiter to the root. A change in a limiter changes nothing in its siblings and
 * children, so only the path needs a look. The root limits nothing: the waiter that comes first
 * there is granted, and the walk begins again where that waiter waited.
 */
void turns_settle(struct schedule *schedule, struct limiter *limiter,
		  const struct turn_rules *rules)
{
	struct turns *turns;

	while (limiter && (turns = rules->turns_of(limiter))) {
		struct waiter *current = earliest_of(turns);
		bool ready = rules->offer(schedule, limiter, current) && !schedule->stopped;

		turns->current = current;
		if (ready && limiter_is_root(limiter)) {
			limiter = current->limiter;
			grant_waiter(schedule, current, rules);
			continue;
		}
		if (ready)
			heap_place(&rules->turns_of(limiter->parent)->ready, &turns->turn,
				   current->ticket);
		else if (heap_holds(&turns->turn))
			heap_remove(&rules->turns_of(limiter->parent)->ready, &turns->turn);
		if (rules->plan)
			rules->plan(schedule, limiter, ready);
		limiter = limiter->parent;
	}
}
