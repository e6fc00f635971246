/* resume - going on where a predecessor was: see handover.h and fleet_resume(). */
#include "core/fleet/barrier.h"
#include "core/fleet/caps.h"
#include "core/fleet/claim.h"
#include "core/fleet/former_names.h"
#include "core/fleet/holdings.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/leases.h"
#include "core/fleet/parts.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"

#include <errno.h>

void fleet_restored(struct fleet *fleet, struct limiter *limiter,
		    const struct former_holding *former)
{
	struct holding *holding = limiter->holding;

	holdings_enter(fleet, holding, former->id);
	holding->version = former->version;
	holding->generation = former->generation;
	holding->saved = former->saved;
	holding->cut = former->cut;
	leases_know_cut(fleet, holding);
	holding->used_ns = former->used_ns;
	holding->maker = former->maker;
}

/* Tells whether the transaction of this place's lease was under way. */
static bool is_in_doubt(const struct handover_place *place)
{
	return place->state == LEASE_TAKING || place->state == LEASE_IN_DOUBT ||
	       (place->state == LEASE_DRAINING && place->sent);
}

/* Notes that tiles of @holding, or of its reserve, are in doubt. */
static void note_doubt(struct fleet *fleet, struct holding *holding, bool reserve)
{
	struct item item = item_of(holding, reserve);

	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		const struct item *other = transaction_item(fleet, i);

		if (other->holding == holding && other->reserve == reserve)
			return;
	}
	transaction_add(fleet, &item);
}

/* A lease of the predecessor's; rule 11 for one whose take or give-back was under way. */
static void resume_lease(struct fleet *fleet, struct holding *holding, struct lease *lease,
			 const struct handover_place *place)
{
	enum lease_state state = (enum lease_state)place->state;

	leases_become(fleet, holding, lease, LEASE_TAKING);
	if (is_in_doubt(place)) {
		leases_become(fleet, holding, lease, LEASE_IN_DOUBT);
		note_doubt(fleet, holding, lease == &holding->reserve);
	} else if (state == LEASE_WAITING) {
		lease->usable_ns = place->usable_ns;
		leases_become(fleet, holding, lease, LEASE_WAITING);
	} else {
		leases_become(fleet, holding, lease, LEASE_HELD);
	}
	/* Its rest is lost. */
	if (state == LEASE_DRAINING && !place->sent)
		leases_become(fleet, holding, lease, LEASE_DRAINING);
}

/* Adds the lease of @place, but for leaves that another one has. NULL: there are none left. */
static struct lease *add_lease(struct holding *holding, const struct handover_place *place,
			       int *err)
{
	uint32_t first = place->first, last = place->last;
	struct lease *lease;

	while (first <= last && (lease = holding_find_lease(holding, first)))
		first = lease->last + 1;
	while (first <= last && (lease = holding_find_lease(holding, last)) && lease->first)
		last = lease->first - 1;
	if (first > last)
		return NULL;
	lease = holding_add_lease(holding, first, last);
	if (!lease)
		*err = -ENOMEM;
	return lease;
}

static int resume_place(struct fleet *fleet, uint32_t at)
{
	const struct handover_place *place = &handover_memory(fleet)->places[at];
	struct holding *holding = holdings_find(fleet, place->id);
	struct lease *lease;
	int err = 0;

	/* The limiter was about to go; its claim goes with the session. */
	if (!holding && place->kind == HANDOVER_CLAIM)
		room_count_left(fleet, place->id, place->parts_bytes);
	if (!holding || (place->kind != HANDOVER_CLAIM && place->cut != holding->cut)) {
		handover_free_place(fleet, at);
		return 0;
	}
	if (place->kind == HANDOVER_CLAIM) {
		claim_resume(fleet, holding, at + 1, place->parts_bytes);
		return 0;
	}
	lease = &holding->reserve;
	if (place->kind == HANDOVER_RESERVE && lease->state == LEASE_NONE)
		lease->first = lease->last = place->first;
	else
		lease = add_lease(holding, place, &err);
	if (!lease) {
		handover_free_place(fleet, at);
		return err;
	}
	lease->tile_first = place->tile_first;
	lease->tile_last = place->tile_last;
	resume_lease(fleet, holding, lease, place);
	lease->place = at + 1;
	return 0;
}

/* Until it is told what was used of windows of the calendar, they are worth nothing now. */
static void resume_share(struct fleet *fleet, struct holding *holding)
{
	struct rest rest = rest_unknown(holding->settings, holding->saved);

	leases_reshare(fleet, holding);
	leases_join_use(fleet, holding, &rest, holding->held);
	caps_resume(fleet, holding);
}

static bool is_resumable(const struct handover_memory *memory)
{
	const struct handover_place *items[ITEMS_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < HANDOVER_PLACES; i++) {
		const struct handover_place *place = &memory->places[i];
		uint32_t at = 0;

		if (place->kind == HANDOVER_CLAIM || !is_in_doubt(place))
			continue;
		while (at < count && (items[at]->id != place->id || items[at]->kind != place->kind))
			at++;
		if (at == ITEMS_MAX)
			return false;
		items[at] = place;
		count += at == count;
	}
	return memory->session;
}

int fleet_resume(struct fleet *fleet, uint64_t now_ns)
{
	const struct handover_memory *memory = handover_memory(fleet);
	int err = 0;

	fleet->now_ns = now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	if (!is_resumable(memory))
		return 0;
	fleet->constants = memory->constants;
	fleet->constants_known = true;
	session_enter(fleet, FLEET_IN_DOUBT);
	session_resume(fleet, memory->session, memory->hid, memory->host_version);
	term_resume(fleet, memory->right_end_ns, memory->epoch, memory->degraded);
	barrier_resume(fleet);
	transaction_resume(fleet);
	former_names_note_unknown(fleet);
	/* The block has its final contents already. */
	handover_read(fleet, true);
	for (uint32_t i = 0; i < HANDOVER_PLACES && !err; i++) {
		if (memory->places[i].state != LEASE_NONE)
			err = resume_place(fleet, i);
	}
	handover_read(fleet, false);
	if (!err)
		err = key_leases_resume(fleet);
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		resume_share(fleet, h);
	return err;
}
