/* slots - who may work on something now, see slots.h. */
#include "core/limiter/slots.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int get(struct limiter *limiter)
{
	if (limiter->slots)
		return 0;
	limiter->slots = calloc(1, sizeof(*limiter->slots));
	if (!limiter->slots)
		return -ENOMEM;
	limiter->slots->limiter = limiter;
	return 0;
}

int slots_prepare(struct limiter *limiter, const struct settings *settings)
{
	return settings->slots.kind == SLOTS_MAX ? 0 : get(limiter);
}

/* All along the path to the root. */
static int get_path(struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		if (get(limiter))
			return -ENOMEM;
	}
	return 0;
}

void slots_free(struct limiter *limiter)
{
	free(limiter->slots);
	limiter->slots = NULL;
}

uint32_t slots_limit(const struct limiter *limiter)
{
	const struct slot_limit *limit = &limiter->settings->slots;

	if (!limiter->slots || limit->kind == SLOTS_MAX)
		return UINT32_MAX;
	return limit->kind == SLOTS_AUTO ? limiter->slots->concurrency.limit : limit->count;
}

uint32_t slots_used(const struct limiter *limiter)
{
	return limiter->slots ? limiter->slots->used : 0;
}

uint32_t slots_waiting(const struct limiter *limiter)
{
	return limiter->slots ? limiter->slots->queue.length : 0;
}

static bool has_free(const struct limiter *limiter)
{
	switch (limiter->settings->enforcement) {
	case ENFORCEMENT_ENFORCE:
		return limiter->slots->used < slots_limit(limiter);
	case ENFORCEMENT_SHADOW:
	case ENFORCEMENT_OPEN:
		return true;
	case ENFORCEMENT_CLOSED:
	case ENFORCEMENT_COUNT:
		break;
	}
	return false;
}

/* Opens @slot all along the path to the root. */
static void open_path(struct limiter *limiter, struct slot *slot, uint64_t now_ns)
{
	*slot = (struct slot){limiter, now_ns};
	for (; limiter; limiter = limiter->parent) {
		struct slots *slots = limiter->slots;

		if (limiter->settings->enforcement == ENFORCEMENT_SHADOW &&
		    slots->used >= slots_limit(limiter))
			slots->shadowed++;
		slots->used++;
		slots->opened++;
		if (limiter->settings->slots.kind == SLOTS_AUTO)
			concurrency_opened(&slots->concurrency, slots->used, now_ns);
	}
}

static void want(struct limiter *limiter, uint32_t more, uint32_t less)
{
	for (; limiter; limiter = limiter->parent)
		limiter->slots->wanted += more - less;
}

static void grant(struct schedule *schedule, struct waiter *waiter)
{
	queue_remove(&waiter->limiter->slots->queue, waiter);
	want(waiter->limiter, 0, 1);
	open_path(waiter->limiter, waiter->slot, schedule->now_ns);
	limiter_answer(schedule, waiter, 0);
}

static struct waiter *earliest(const struct slots *slots)
{
	struct waiter *own = queue_first(&slots->queue);
	struct heap_node *turn = slots->ready.root;

	if (turn && (!own || turn->key < own->ticket))
		return container_of(turn, struct slots, turn)->current;
	return own;
}

/* As limiter_settle(), but that nothing is due later. */
void slots_settle(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter && limiter->slots) {
		struct slots *slots = limiter->slots;
		struct waiter *current = earliest(slots);
		bool ready = current && !schedule->stopped && has_free(limiter);

		slots->current = current;
		if (ready && limiter_is_root(limiter)) {
			limiter = current->limiter;
			grant(schedule, current);
			continue;
		}
		if (ready)
			heap_place(&limiter->parent->slots->ready, &slots->turn, current->ticket);
		else if (heap_holds(&slots->turn))
			heap_remove(&limiter->parent->slots->ready, &slots->turn);
		limiter = limiter->parent;
	}
}

/* Without overtaking anybody. */
static bool take(struct schedule *schedule, struct limiter *limiter, struct slot *slot)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (schedule->stopped || l->slots->current || !has_free(l))
			return false;
	}
	open_path(limiter, slot, schedule->now_ns);
	return true;
}

int slots_try(struct schedule *schedule, struct limiter *limiter, struct slot *slot)
{
	if (get_path(limiter))
		return -ENOMEM;
	if (take(schedule, limiter, slot))
		return 0;
	limiter->slots->refused++;
	return -EAGAIN;
}

int slots_restore(struct schedule *schedule, struct limiter *limiter, struct slot *slot,
		  uint64_t opened_ns)
{
	if (get_path(limiter))
		return -ENOMEM;
	open_path(limiter, slot, schedule->now_ns);
	slot->opened_ns = opened_ns;
	return 0;
}

int slots_open(struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	assert(waiter->is_opener && waiter->slot);
	if (get_path(limiter))
		return -ENOMEM;
	if (take(schedule, limiter, waiter->slot))
		return 0;
	queue_join(schedule, &limiter->slots->queue, waiter);
	want(limiter, 1, 0);
	if (queue_first(&limiter->slots->queue) == waiter)
		slots_settle(schedule, limiter);
	return -EINPROGRESS;
}

void slots_close(struct schedule *schedule, struct slot *slot, bool used)
{
	struct limiter *limiter = slot->limiter;

	for (struct limiter *l = limiter; l; l = l->parent) {
		struct slots *slots = l->slots;

		assert(slots->used);
		slots->used--;
		if (!used)
			slots->opened--;
		else if (l->settings->slots.kind == SLOTS_AUTO)
			concurrency_closed(&slots->concurrency, slot->opened_ns, slots->used,
					   schedule->now_ns);
	}
	slot->limiter = NULL;
	slots_settle(schedule, limiter);
}

void slots_cancel(struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	queue_remove(&limiter->slots->queue, waiter);
	want(limiter, 0, 1);
	limiter->counters[COUNTER_CANCELLED]++;
	if (limiter->slots->current == waiter)
		slots_settle(schedule, limiter);
}

void slots_configure(struct schedule *schedule, struct limiter *limiter,
		     const struct slot_limit *old)
{
	const struct slot_limit *limit = &limiter->settings->slots;
	struct slots *slots = limiter->slots;

	if (!slots)
		return;
	if (limit->kind == SLOTS_AUTO && old->kind != SLOTS_AUTO)
		concurrency_init(&slots->concurrency, limit, schedule->now_ns);
	else if (limit->kind == SLOTS_AUTO && memcmp(limit, old, sizeof(*limit)))
		concurrency_tune(&slots->concurrency, limit, schedule->now_ns);
	slots_settle(schedule, limiter);
}

void slots_evict(struct schedule *schedule, struct limiter *limiter)
{
	struct slots *slots = limiter->slots;
	struct waiter *waiter;

	while (slots && (waiter = queue_shift(&slots->queue))) {
		want(limiter, 0, 1);
		limiter_answer(schedule, waiter, -ENODEV);
	}
	slots_settle(schedule, limiter);
}

void slots_throttled(struct schedule *schedule, struct limiter *limiter)
{
	struct slots *slots = limiter->slots;

	if (!slots || limiter->settings->slots.kind != SLOTS_AUTO)
		return;
	concurrency_throttled(&slots->concurrency, schedule->now_ns);
	/* It may have ended a round in which there were fewer still. */
	slots_settle(schedule, limiter);
}
