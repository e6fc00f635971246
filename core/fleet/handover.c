/* handover - what a successor has to know, written as it changes, see handover.h. */
#include "core/fleet/handover.h"
#include "core/fleet/parts.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct handover {
	struct fleet_kept *kept; /* borrowed; NULL: nothing is kept */
	uint32_t next;		 /* where a free place is looked for */
	bool reads;		 /* a successor reads: nothing is written */
};

bool handover_new(struct fleet *fleet)
{
	fleet->handover = calloc(1, sizeof(*fleet->handover));
	if (!fleet->handover)
		return false;
	fleet->handover->kept = fleet->options->kept;
	return true;
}

void handover_free(struct fleet *fleet)
{
	free(fleet->handover);
}

/* Returns what is written to; NULL: nothing is. */
static struct fleet_kept *kept_of(const struct fleet *fleet)
{
	return fleet->handover->reads ? NULL : fleet->handover->kept;
}

/* Orders stores: those above are in memory before those below, whenever this process is killed. */
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

void handover_keep(struct fleet *fleet)
{
	struct fleet_kept *kept = kept_of(fleet);

	if (!kept ||
	    (session_state(fleet) != FLEET_READY && session_state(fleet) != FLEET_IN_DOUBT))
		return;
	kept->right_end_ns = term_end_ns(fleet);
	kept->constants = fleet->constants;
	kept->degraded = term_is_degraded(fleet);
	kept->host_version = session_version(fleet);
	if (kept->session)
		return;
	memcpy(kept->hid, session_hid(fleet), HID_TEXT);
	set_session(kept, session_id(fleet));
}

void handover_forget(struct fleet *fleet)
{
	struct fleet_kept *kept = kept_of(fleet);

	if (!kept)
		return;
	set_session(kept, 0);
	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		if (kept->places[i].state != LEASE_NONE)
			kept->places[i].state = LEASE_NONE;
	}
}

/* A free place for @index of limiter @id, and 1; 0: there is none. */
static uint32_t take_place(struct fleet *fleet, uint64_t id, uint32_t index)
{
	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		uint32_t at = fleet->handover->next++ % KEPT_MAX;
		struct kept_place *place = &fleet->handover->kept->places[at];

		if (place->state != LEASE_NONE)
			continue;
		*place = (struct kept_place){.id = id, .index = index};
		return at + 1;
	}
	return 0;
}

void handover_keep_lease(struct fleet *fleet, const struct holding *holding, struct lease *lease,
			 uint32_t index)
{
	struct fleet_kept *kept = kept_of(fleet);
	struct kept_place *place;

	if (!kept)
		return;
	if (!lease->kept)
		lease->kept = take_place(fleet, holding->id, index);
	if (!lease->kept)
		return;
	place = &kept->places[lease->kept - 1];
	place->usable_ns = lease->usable_ns;
	/* @sent is set for as long as a give-back can be under way: only then is it in doubt. */
	if (lease->sent)
		*(volatile bool *)&place->sent = true;
	place->unmarked = lease->unmarked;
	set_state(place, (enum lease_state)lease->state);
	*(volatile bool *)&place->sent = lease->sent;
	if (lease->state == LEASE_NONE)
		lease->kept = 0;
}

void handover_keep_claim(struct fleet *fleet, uint64_t id, uint32_t *at, bool claim)
{
	struct fleet_kept *kept = kept_of(fleet);

	if (!kept || claim == (*at != 0))
		return;
	if (claim)
		*at = take_place(fleet, id, KEPT_CLAIM);
	/* Without a place it stays until the session ends. */
	if (*at)
		set_state(&kept->places[*at - 1], claim ? LEASE_HELD : LEASE_NONE);
	if (!claim)
		*at = 0;
}

void handover_read(struct fleet *fleet, bool reads)
{
	fleet->handover->reads = reads;
}

const struct fleet_kept *handover_kept(const struct fleet *fleet)
{
	return fleet->handover->kept;
}

void handover_free_place(struct fleet *fleet, uint32_t at)
{
	set_state(&fleet->handover->kept->places[at], LEASE_NONE);
}
