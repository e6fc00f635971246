/* handover - what a successor has to know, written as it changes, see handover.h. */
#include "core/fleet/handover.h"
#include "core/fleet/parts.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct handover {
	struct handover_memory *memory; /* borrowed; NULL: there will be no successor */
	uint32_t next;			/* where a free place is looked for */
	bool reads;			/* a successor reads: nothing is written */
};

bool handover_new(struct fleet *fleet)
{
	fleet->handover = calloc(1, sizeof(*fleet->handover));
	if (!fleet->handover)
		return false;
	fleet->handover->memory = fleet->options->handover;
	return true;
}

void handover_free(struct fleet *fleet)
{
	free(fleet->handover);
}

/* Returns what is written to; NULL: nothing is. */
static struct handover_memory *memory_of(const struct fleet *fleet)
{
	return fleet->handover->reads ? NULL : fleet->handover->memory;
}

/* Orders stores: those above are in memory before those below, whenever this process is killed. */
static void in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void set_state(struct handover_place *place, enum lease_state state)
{
	in_order();
	*(volatile uint8_t *)&place->state = (uint8_t)state;
	in_order();
}

static void set_session(struct handover_memory *memory, uint64_t session)
{
	in_order();
	*(volatile uint64_t *)&memory->session = session;
	in_order();
}

void handover_keep(struct fleet *fleet)
{
	struct handover_memory *memory = memory_of(fleet);

	if (!memory ||
	    (session_state(fleet) != FLEET_READY && session_state(fleet) != FLEET_IN_DOUBT))
		return;
	memory->right_end_ns = term_end_ns(fleet);
	memory->epoch = term_epoch(fleet);
	memory->constants = fleet->constants;
	memory->degraded = term_is_degraded(fleet);
	memory->host_version = session_version(fleet);
	if (memory->session)
		return;
	memcpy(memory->hid, session_hid(fleet), HID_TEXT);
	set_session(memory, session_id(fleet));
}

void handover_forget(struct fleet *fleet)
{
	struct handover_memory *memory = memory_of(fleet);

	if (!memory)
		return;
	set_session(memory, 0);
	for (uint32_t i = 0; i < HANDOVER_PLACES; i++) {
		if (memory->places[i].state != LEASE_NONE)
			memory->places[i].state = LEASE_NONE;
	}
	for (uint32_t i = 0; i < HANDOVER_KEYS; i++)
		memory->keys[i].used = false;
	memory->key_seeded = false;
}

/* A free place for a @kind of limiter @id, and 1; 0: there is none. */
static uint32_t take_place(struct fleet *fleet, uint64_t id, enum handover_kind kind)
{
	for (uint32_t i = 0; i < HANDOVER_PLACES; i++) {
		uint32_t at = fleet->handover->next++ % HANDOVER_PLACES;
		struct handover_place *place = &fleet->handover->memory->places[at];

		if (place->state != LEASE_NONE)
			continue;
		*place = (struct handover_place){.id = id, .kind = (uint8_t)kind};
		return at + 1;
	}
	return 0;
}

void handover_keep_lease(struct fleet *fleet, const struct holding *holding, struct lease *lease)
{
	struct handover_memory *memory = memory_of(fleet);
	struct handover_place *place;

	if (!memory)
		return;
	if (!lease->place)
		lease->place = take_place(fleet, holding->id,
					  lease == &holding->reserve ? HANDOVER_RESERVE
								     : HANDOVER_LEASE);
	if (!lease->place)
		return;
	place = &memory->places[lease->place - 1];
	place->cut = holding->cut;
	place->usable_ns = lease->usable_ns;
	place->first = (uint16_t)lease->first;
	*(volatile uint16_t *)&place->last = (uint16_t)lease->last;
	place->tile_first = (uint16_t)lease->tile_first;
	place->tile_last = (uint16_t)lease->tile_last;
	/* @sent is set for as long as a give-back can be under way: only then is it in doubt. */
	if (lease->sent)
		*(volatile bool *)&place->sent = true;
	set_state(place, (enum lease_state)lease->state);
	*(volatile bool *)&place->sent = lease->sent;
	if (lease->state == LEASE_NONE)
		lease->place = 0;
}

void handover_drop_lease(struct fleet *fleet, struct lease *lease)
{
	if (lease->place)
		handover_free_place(fleet, lease->place - 1);
	lease->place = 0;
}

void handover_keep_claim(struct fleet *fleet, uint64_t id, uint32_t *at, bool claim,
			 uint32_t parts_bytes)
{
	struct handover_memory *memory = memory_of(fleet);

	if (!memory || (!claim && !*at))
		return;
	if (!*at)
		*at = take_place(fleet, id, HANDOVER_CLAIM);
	/* Without a place it stays until the session ends. */
	if (*at) {
		memory->places[*at - 1].parts_bytes = (uint16_t)parts_bytes;
		set_state(&memory->places[*at - 1], claim ? LEASE_HELD : LEASE_NONE);
	}
	if (!claim)
		*at = 0;
}

static void set_used(struct handover_key *place, bool used)
{
	in_order();
	*(volatile bool *)&place->used = used;
	in_order();
}

void handover_keep_key(struct fleet *fleet, const struct handover_key *key, uint32_t *at)
{
	struct handover_memory *memory = memory_of(fleet);

	if (!memory)
		return;
	for (uint32_t i = 0; !*at && i < HANDOVER_KEYS; i++) {
		if (!memory->keys[i].used)
			*at = i + 1;
	}
	if (!*at)
		return;
	memory->keys[*at - 1].id = key->id;
	memory->keys[*at - 1].cut = key->cut;
	memory->keys[*at - 1].hash = key->hash;
	for (int i = 0; i < HANDOVER_KEY_WORDS; i++)
		*(volatile uint64_t *)&memory->keys[*at - 1].leaves[i] = key->leaves[i];
	set_used(&memory->keys[*at - 1], true);
}

void handover_drop_key(struct fleet *fleet, uint32_t *at)
{
	if (*at && memory_of(fleet))
		set_used(&memory_of(fleet)->keys[*at - 1], false);
	*at = 0;
}

void handover_keep_seed(struct fleet *fleet, const uint64_t seed[2])
{
	struct handover_memory *memory = memory_of(fleet);

	if (!memory)
		return;
	memory->key_seeded = false;
	in_order();
	memcpy(memory->key_seed, seed, sizeof(memory->key_seed));
	in_order();
	memory->key_seeded = true;
}

void handover_read(struct fleet *fleet, bool reads)
{
	fleet->handover->reads = reads;
}

const struct handover_memory *handover_memory(const struct fleet *fleet)
{
	return fleet->handover->memory;
}

void handover_free_place(struct fleet *fleet, uint32_t at)
{
	set_state(&fleet->handover->memory->places[at], LEASE_NONE);
}
