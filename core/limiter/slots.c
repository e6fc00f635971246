/* slots - permissions to work on something, see slots.h. */
#include "core/limiter/slots.h"
#include "core/limiter/holding.h"
#include "core/limiter/usage.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int get_slots(struct limiter *limiter)
{
	if (limiter->slots)
		return 0;
	limiter->slots = calloc(1, sizeof(*limiter->slots));
	if (!limiter->slots)
		return -ENOMEM;
	limiter->slots->limiter = limiter;
	turns_place(&limiter->slots->turns, &limiter->slots->sibling, limiter->settings);
	return 0;
}

int slots_prepare(struct limiter *limiter, const struct settings *settings)
{
	return settings->slots.kind == SLOTS_MAX ? 0 : get_slots(limiter);
}

/* Gets slots for @limiter and all above it. */
static int get_path(struct limiter *limiter)
{
	if (get_slots(limiter))
		return -ENOMEM;
	for (limiter = limiter->parent; !limiter_is_root(limiter); limiter = limiter->parent) {
		if (get_slots(limiter) || turns_prepare(&limiter->slots->turns))
			return -ENOMEM;
	}
	return get_slots(limiter);
}

void slots_free(struct limiter *limiter)
{
	if (limiter->slots) {
		turns_free(&limiter->slots->turns);
		numbers_end(&limiter->slots->numbers);
	}
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
	return limiter->slots ? limiter->slots->turns.queue.length : 0;
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
	*slot = (struct slot){.limiter = limiter, .opened_ns = now_ns};
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

static bool offer_turn(const struct schedule *schedule, struct limiter *limiter,
		       const struct waiter *current)
{
	(void)schedule;
	return current && has_free(limiter);
}

static void take_granted(const struct schedule *schedule, struct waiter *waiter)
{
	open_path(waiter->limiter, waiter->slot, schedule->now_ns);
	usage_granted(schedule, waiter);
}

/* A slot comes free when one is closed, and never with time. */
const struct turn_rules SLOTS_TURNS = {true, offer_turn, take_granted, turns_answer, NULL};

/* Opens slots for all openers that are due. */
static void settle_openers(struct schedule *schedule, struct limiter *limiter)
{
	turns_settle(schedule, limiter, &SLOTS_TURNS);
}

/* Opens @slot if it can be had now without overtaking a waiter. */
static bool open_now(struct schedule *schedule, struct limiter *limiter, struct slot *slot)
{
	const struct turns *below = NULL;
	bool passes = false;

	for (struct limiter *l = limiter; l; below = &l->slots->turns, l = l->parent) {
		if (schedule->stopped || schedule->frozen || !has_free(l) ||
		    !turns_may_pass(&l->slots->turns, below, schedule->now_ns))
			return false;
		passes |= l->slots->turns.current != NULL;
	}
	open_path(limiter, slot, schedule->now_ns);
	usage_slot_at_once(schedule, limiter);
	if (passes)
		turns_passed(schedule, limiter, 1, &SLOTS_TURNS);
	return true;
}

int slots_try(struct schedule *schedule, struct limiter *limiter, struct slot *slot)
{
	if (get_path(limiter))
		return -ENOMEM;
	if (open_now(schedule, limiter, slot))
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

/* Returns the limiter in which a slot of @limiter has its number. */
static struct limiter *numbering(struct limiter *limiter)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (l->settings->slots.kind != SLOTS_MAX)
			return l;
	}
	return limiter;
}

static int give_number(struct slot *slot, struct limiter *limiter, uint32_t number)
{
	int err = numbers_add(&limiter->slots->numbers, number);

	if (err)
		return err;
	slot->numbered = limiter;
	slot->number = number;
	return 0;
}

static bool leases_slots(const struct limiter *limiter)
{
	return limiter->holding && holding_leases_slots(limiter->holding);
}

/* Returns a number that is free; where hosts share N, and none is left here, one above those. */
static uint32_t choose_number(const struct limiter *limiter)
{
	uint32_t first = 0;

	if (leases_slots(limiter)) {
		first = holding_free_number(limiter->holding);
		if (first != UINT32_MAX)
			return first;
		first = limiter->holding->settings->slots.count;
	}
	return numbers_free_from(&limiter->slots->numbers, first, NUMBERS_END);
}

/* Tells whether no other host can have the number of @slot. */
static bool is_number_here(const struct slot *slot)
{
	const struct limiter *limiter = slot->numbered;

	return !leases_slots(limiter) || slot->number >= limiter->holding->settings->slots.count ||
	       holding_owns_number(limiter->holding, slot->number);
}

bool slots_is_lost(const struct slot *slot)
{
	return slot->lost || (slot->numbered && !is_number_here(slot));
}

int slots_number(struct slot *slot, uint32_t *number)
{
	int err = slots_is_lost(slot) ? -ENODEV : 0;

	if (!err && !slot->numbered) {
		struct limiter *limiter = numbering(slot->limiter);

		err = give_number(slot, limiter, choose_number(limiter));
	}
	*number = slot->number;
	return err;
}

bool slots_are_ours(const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		const struct holding *holding = limiter->holding;

		/* In shadow slots are opened without a lease, too. */
		if (leases_slots(limiter) && !holding->usable &&
		    holding->settings->enforcement != ENFORCEMENT_SHADOW &&
		    !(holding->degraded && holding->settings->offline != OFFLINE_BLOCK))
			return false;
	}
	return true;
}

uint32_t slots_numbered_above(const struct slot *slot)
{
	uint32_t above = 0;

	for (const struct limiter *l = slot->limiter; l != slot->numbered; l = l->parent)
		above++;
	return above;
}

int slots_restore_number(struct slot *slot, uint32_t above, uint32_t number)
{
	struct limiter *limiter = slot->limiter;
	int err = 0;

	while (limiter && above--)
		limiter = limiter->parent;
	if (limiter)
		err = give_number(slot, limiter, number);
	return err == -ENOMEM ? err : 0;
}

int slots_open(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns)
{
	struct expiry *expiry = waiter->expiry;
	struct limiter *limiter = waiter->limiter;

	assert(waiter->is_opener && waiter->slot);
	if (get_path(limiter))
		return -ENOMEM;
	if (open_now(schedule, limiter, waiter->slot))
		return 0;
	if (expiry) {
		*expiry = (struct expiry){.waiter = waiter, .at_ns = expiry->at_ns};
		heap_insert(&schedule->expiries, &expiry->node, expiry_ns);
	}
	turns_join(schedule, waiter, &SLOTS_TURNS);
	return -EINPROGRESS;
}

void slots_refuse(struct schedule *schedule, struct waiter *waiter)
{
	turns_leave(schedule, waiter, &SLOTS_TURNS);
	waiter->limiter->slots->refused++;
	settle_openers(schedule, waiter->limiter);
}

void slots_close(struct schedule *schedule, struct slot *slot, bool used)
{
	struct limiter *limiter = slot->limiter;

	if (slot->numbered)
		numbers_remove(&slot->numbered->slots->numbers, slot->number);
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
	settle_openers(schedule, limiter);
}

/* Returns the order that the slots of @limiter have a place in; NULL: none, or none yet. */
static struct order *order_above(const struct limiter *limiter)
{
	const struct limiter *parent = limiter->parent;

	return parent && parent->slots ? parent->slots->turns.order : NULL;
}

void slots_configure(struct schedule *schedule, struct limiter *limiter,
		     const struct slot_limit *old)
{
	const struct slot_limit *limit = &limiter->settings->slots;
	struct slots *slots = limiter->slots;

	if (!slots)
		return;
	order_follow(order_above(limiter), &slots->sibling, limiter->settings, slots->turns.wanted,
		     turns_demand(&slots->turns));
	if (limit->kind == SLOTS_AUTO && old->kind != SLOTS_AUTO)
		concurrency_init(&slots->concurrency, limit, schedule->now_ns);
	else if (limit->kind == SLOTS_AUTO && memcmp(limit, old, sizeof(*limit)))
		concurrency_tune(&slots->concurrency, limit, schedule->now_ns);
	settle_openers(schedule, limiter);
}

void slots_throttled(struct schedule *schedule, struct limiter *limiter)
{
	struct slots *slots = limiter->slots;

	if (!slots || limiter->settings->slots.kind != SLOTS_AUTO)
		return;
	concurrency_throttled(&slots->concurrency, schedule->now_ns);
	/* It may have ended a round with fewer slots still: then some come free. */
	settle_openers(schedule, limiter);
}
