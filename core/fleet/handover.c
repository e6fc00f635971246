/* handover - what a successor has to know, written as it changes; and going on with it; see handover.h. */
#include "core/fleet/inside.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* What is above is in memory before what is below, whenever this process is killed. */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void set_state(struct kept_place *place, enum lease_state state)
{
	in_order();
	*(volatile uint8_t *)&place->state = (uint8_t)state;
	in_order();
}

static void set_session(struct fleet_kept *kept, uint64_t session)
{
	in_order();
	*(volatile uint64_t *)&kept->session = session;
	in_order();
}

void fleet_keep(struct fleet *fleet)
{
	struct fleet_kept *kept = fleet->kept;

	if (!kept || (fleet->state != FLEET_READY && fleet->state != FLEET_IN_DOUBT))
		return;
	kept->right_end_ns = fleet->right_end_ns;
	kept->constants = fleet->constants;
	kept->degraded = fleet->degraded;
	kept->host_version = fleet->host_version;
	if (kept->session)
		return;
	memcpy(kept->hid, fleet->hid, HID_TEXT);
	set_session(kept, fleet->session);
}

void fleet_keep_nothing(struct fleet *fleet)
{
	if (!fleet->kept)
		return;
	set_session(fleet->kept, 0);
	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		if (fleet->kept->places[i].state != LEASE_NONE)
			fleet->kept->places[i].state = LEASE_NONE;
	}
}

/* A free place for @index of limiter @id, and 1; 0: there is none. */
static uint32_t take_place(struct fleet *fleet, uint64_t id, uint32_t index)
{
	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		uint32_t at = fleet->kept_next++ % KEPT_MAX;
		struct kept_place *place = &fleet->kept->places[at];

		if (place->state != LEASE_NONE)
			continue;
		*place = (struct kept_place){.id = id, .index = index};
		return at + 1;
	}
	return 0;
}

void fleet_keep_lease(struct fleet *fleet, const struct holding *holding, struct lease *lease,
		      uint32_t index)
{
	struct kept_place *place;

	if (!fleet->kept)
		return;
	if (!lease->kept)
		lease->kept = take_place(fleet, holding->id, index);
	if (!lease->kept)
		return;
	place = &fleet->kept->places[lease->kept - 1];
	place->usable_ns = lease->usable_ns;
	/* As long as it can be under way, it says so: of what is DRAINING and was not sent there is no doubt. */
	if (lease->sent)
		*(volatile bool *)&place->sent = true;
	place->unmarked = lease->unmarked;
	set_state(place, (enum lease_state)lease->state);
	*(volatile bool *)&place->sent = lease->sent;
	if (lease->state == LEASE_NONE)
		lease->kept = 0;
}

void fleet_keep_claim(struct fleet *fleet, struct holding *holding, bool claim)
{
	uint32_t *at = &holding->claim_kept;

	room_count_claim(fleet, holding, claim);
	if (!fleet->kept || claim == (*at != 0))
		return;
	if (claim)
		*at = take_place(fleet, holding->id, KEPT_CLAIM);
	/* Without a place it stays until the session ends. */
	if (*at)
		set_state(&fleet->kept->places[*at - 1], claim ? LEASE_HELD : LEASE_NONE);
	if (!claim)
		*at = 0;
}

void fleet_restored(struct fleet *fleet, struct limiter *limiter,
		    const struct former_holding *former)
{
	struct holding *holding = limiter->holding;

	holding_enter(fleet, holding, former->id);
	holding->version = former->version;
	holding->generation = former->generation;
	holding->saved = former->saved;
	if (!former->before_ns)
		return;
	holding->before = *former->before;
	holding->before_count = former->before_count;
	holding->before_is = former->before_is;
	holding->before_ns = former->before_ns;
	holding->restricted = former->before_is & BEFORE_RESTRICTS;
}

static void doubt(struct fleet *fleet, struct holding *holding, uint32_t index, bool reserve)
{
	struct transaction *t = &fleet->transaction;
	struct item *item = &t->items[t->item_count++];

	*item = (struct item){.holding = holding, .index = index, .reserve = reserve};
	holding_keep(holding);
}

/* A lease of the predecessor's; rule 9 for one whose take or give-back was under way. */
static void resume_lease(struct fleet *fleet, struct holding *holding,
			 const struct kept_place *place)
{
	bool reserve = place->index >= PARTITIONS_MAX;
	uint32_t index = place->index - (reserve ? PARTITIONS_MAX : 0);
	struct lease *lease = reserve ? &holding->reserve : &holding->leases[index];
	enum lease_state state = (enum lease_state)place->state;

	if (reserve)
		holding->reserve_index = index;
	fleet_lease_becomes(fleet, holding, lease, LEASE_TAKING);
	if (state == LEASE_HELD) {
		fleet_lease_becomes(fleet, holding, lease, LEASE_HELD);
	} else if (state == LEASE_WAITING || (state == LEASE_DRAINING && !place->sent)) {
		lease->usable_ns = place->usable_ns;
		fleet_lease_becomes(fleet, holding, lease, LEASE_WAITING);
	} else {
		fleet_lease_becomes(fleet, holding, lease, LEASE_IN_DOUBT);
		doubt(fleet, holding, index, reserve);
	}
	/* What was to go with it is lost: it goes back as it is. */
	if (state == LEASE_DRAINING && !place->sent) {
		lease->unmarked = place->unmarked;
		fleet_lease_becomes(fleet, holding, lease, LEASE_DRAINING);
	}
	lease->kept = (uint32_t)(place - fleet->options->kept->places) + 1;
}

static int resume_place(struct fleet *fleet, struct kept_place *place)
{
	struct holding *holding = holding_of_id(fleet, place->id);

	/* The limiter was about to go; its nodes go with the session. */
	if (!holding) {
		room_count_left(fleet, place->id, place->index == KEPT_CLAIM);
		set_state(place, LEASE_NONE);
		return 0;
	}
	if (place->index == KEPT_CLAIM) {
		holding->claim_kept = (uint32_t)(place - fleet->options->kept->places) + 1;
		holding->claim_unknown = true;
		room_count_claim(fleet, holding, true);
		return 0;
	}
	if (place->index < PARTITIONS_MAX && holding_grow(holding, place->index + 1))
		return -ENOMEM;
	resume_lease(fleet, holding, place);
	return 0;
}

static bool is_resumable(const struct fleet_kept *kept)
{
	uint32_t doubts = 0;

	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		const struct kept_place *place = &kept->places[i];

		doubts += place->state == LEASE_TAKING || place->state == LEASE_IN_DOUBT ||
			  (place->state == LEASE_DRAINING && place->sent);
	}
	return kept->session && doubts <= ITEMS_MAX;
}

int fleet_resume(struct fleet *fleet, uint64_t now_ns)
{
	struct fleet_kept *kept = fleet->kept;
	int err = 0;

	fleet->now_ns = now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	if (!is_resumable(kept))
		return 0;
	fleet->resuming = true;
	fleet->resumed = true;
	fleet->state = FLEET_IN_DOUBT;
	fleet->session = kept->session;
	fleet->constants = kept->constants;
	fleet->constants_known = true;
	fleet->host_version = kept->host_version;
	memcpy(fleet->hid, kept->hid, HID_TEXT);
	fleet->right_end_ns = kept->right_end_ns;
	fleet->degraded = kept->degraded;
	fleet->right = fleet->clocks.holder_ns < fleet->right_end_ns;
	fleet->transaction.kind = TRANSACTION_RENEW; /* but for its items nothing is in doubt */
	names_lose(fleet);
	fleet->kept = NULL; /* the block has its final contents already */
	for (uint32_t i = 0; i < KEPT_MAX && !err; i++) {
		if (kept->places[i].state != LEASE_NONE)
			err = resume_place(fleet, &kept->places[i]);
	}
	fleet->kept = kept;
	for (struct holding *h = fleet->holdings; h; h = h->next)
		fleet_reshare(fleet, h);
	return err;
}
