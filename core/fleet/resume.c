/* resume - going on where a predecessor was: see handover.h and fleet_resume(). */
#include "core/fleet/barrier.h"
#include "core/fleet/claim.h"
#include "core/fleet/former_names.h"
#include "core/fleet/holdings.h"
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
	if (!former->before_ns)
		return;
	holding->before = *former->before;
	holding->before_count = former->before_count;
	holding->before_is = former->before_is;
	holding->before_ns = former->before_ns;
	holding->restricted = former->before_is & BEFORE_RESTRICTS;
}

/* A lease of the predecessor's; rule 9 for one whose take or give-back was under way. */
static void resume_lease(struct fleet *fleet, struct holding *holding,
			 const struct handover_place *place, uint32_t at)
{
	bool reserve = place->index >= PARTITIONS_MAX;
	uint32_t index = place->index - (reserve ? PARTITIONS_MAX : 0);
	struct lease *lease = reserve ? &holding->reserve : holding_find_lease(holding, index);
	enum lease_state state = (enum lease_state)place->state;

	if (reserve)
		holding->reserve_index = index;
	leases_become(fleet, holding, lease, LEASE_TAKING);
	if (state == LEASE_HELD) {
		leases_become(fleet, holding, lease, LEASE_HELD);
	} else if (state == LEASE_WAITING || (state == LEASE_DRAINING && !place->sent)) {
		lease->usable_ns = place->usable_ns;
		leases_become(fleet, holding, lease, LEASE_WAITING);
	} else {
		leases_become(fleet, holding, lease, LEASE_IN_DOUBT);
		transaction_add(
			fleet,
			&(struct item){.holding = holding, .index = index, .reserve = reserve});
	}
	/* The tokens that were to go with it are lost. */
	if (state == LEASE_DRAINING && !place->sent) {
		lease->unmarked = place->unmarked;
		leases_become(fleet, holding, lease, LEASE_DRAINING);
	}
	lease->place = at + 1;
}

static int resume_place(struct fleet *fleet, uint32_t at)
{
	const struct handover_place *place = &handover_memory(fleet)->places[at];
	struct holding *holding = holdings_find(fleet, place->id);

	/* The limiter was about to go; its nodes go with the session. */
	if (!holding) {
		room_count_left(fleet, place->id, place->index == HANDOVER_CLAIM);
		handover_free_place(fleet, at);
		return 0;
	}
	if (place->index == HANDOVER_CLAIM) {
		claim_resume(fleet, holding, at + 1);
		return 0;
	}
	if (place->index < PARTITIONS_MAX &&
	    !holding_add_lease(holding, place->index, place->index))
		return -ENOMEM;
	resume_lease(fleet, holding, place, at);
	return 0;
}

static bool is_resumable(const struct handover_memory *memory)
{
	uint32_t doubts = 0;

	for (uint32_t i = 0; i < HANDOVER_PLACES; i++) {
		const struct handover_place *place = &memory->places[i];

		doubts += place->state == LEASE_TAKING || place->state == LEASE_IN_DOUBT ||
			  (place->state == LEASE_DRAINING && place->sent);
	}
	return memory->session && doubts <= ITEMS_MAX;
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
	term_resume(fleet, memory->right_end_ns, memory->degraded);
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
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		leases_reshare(fleet, h);
	return err;
}
