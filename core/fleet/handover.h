/*
 * handover - what a successor of this host has to know of its session, in memory that outlives it.
 *
 * A host may be killed between any two stores, and another process go on in its place: the
 * successor. It is to coordinator and engine what this host would be, had it been stopped for that
 * long, its connection lost, and no answer come to what was under way; the rules of fleet.h hold
 * for both together. So these are written before anything rests on them:
 *
 * - the version of /h, before a transaction is sent with it. One is under way at a time, so the
 *   node has that version or the next;
 * - the end of the right, when a transaction was acknowledged. The successor has the same clocks;
 * - each lease, whenever its state changes: before a take or a give-back is sent, and before what
 *   was taken is used. A lease whose transaction was under way is in doubt;
 * - the hash of each key that is leased, before a transaction is sent for it, and the leaves that
 *   may be used: before some of them are given back. The names of keys are not written.
 *
 * The successor begins with rule 11's barrier, and without the read before it, since a server that
 * has not caught up would answer with a version of before: it sets /h at the version known, and
 * only if that is refused it reads. Meanwhile it uses what was held, for as long as the right goes.
 * Without a session it begins as any host does, with a session of its own.
 *
 * The caller keeps the tokens that are left in the buckets, see fleet_listener.
 */
#ifndef RATEFS_CORE_HANDOVER_H
#define RATEFS_CORE_HANDOVER_H

#include "core/fleet/record.h"
#include "core/values/settings.h"

enum {
	HANDOVER_PLACES = 16384, /* more than leases; the rest is for claims */
	HANDOVER_KEYS = 256,
	HANDOVER_KEY_WORDS = (KEY_LEAVES + 63) / 64,
};

enum handover_kind { HANDOVER_LEASE, HANDOVER_RESERVE, HANDOVER_CLAIM, HANDOVER_KIND_COUNT };

/* A lease, or that the host may have a claim. Where two leases have a leaf, both say as much. */
struct handover_place {
	uint64_t id; /* LID */
	uint64_t cut;
	uint64_t usable_ns;   /* as in struct lease, like the rest */
	uint16_t first, last; /* below PARTITIONS_MAX */
	uint16_t tile_first, tile_last;
	uint16_t parts_bytes; /* of a claim: of its name, below ZNODE_TEXT */
	uint8_t kind;	      /* enum handover_kind */
	uint8_t state;	      /* NONE: the place is free */
	bool sent;
};

/*
 * A key that the host leases, and its leaves that might be used, as bits. Leaves that are waited
 * for are left out, and so are those of a transaction under way: the successor finds them when it
 * lists the folder, and waits for Q.
 */
struct handover_key {
	uint64_t id, cut; /* of its limiter */
	uint64_t hash;	  /* of its name */
	uint64_t leaves[HANDOVER_KEY_WORDS];
	bool used; /* the place is */
};

/* All zero: there is nothing to go on with. Times are those of struct clocks. */
struct handover_memory {
	uint64_t session; /* 0: none that it has joined with */
	uint64_t right_end_ns;
	struct fleet_constants constants;
	int32_t host_version;
	uint32_t epoch; /* of the acknowledgement that extended the right last */
	bool degraded;
	char hid[HID_TEXT];
	struct handover_place places[HANDOVER_PLACES];
	struct handover_key keys[HANDOVER_KEYS];
	bool key_seeded; /* ... the key of the hash is known */
	uint64_t key_seed[2];
};

/* The part of the fleet that writes it. */
struct fleet;
struct holding;
struct lease;

bool handover_new(struct fleet *fleet);
void handover_free(struct fleet *fleet);

/* Writes what is known of the session and its term. */
void handover_keep(struct fleet *fleet);

/* Writes the state of @lease of @holding. Frees its place: its leaves are another lease's now. */
void handover_keep_lease(struct fleet *fleet, const struct holding *holding, struct lease *lease);
void handover_drop_lease(struct fleet *fleet, struct lease *lease);

/*
 * Writes whether there may be a claim of limiter @id, with parts of so many bytes; *@at: its place,
 * and 1, or 0.
 */
void handover_keep_claim(struct fleet *fleet, uint64_t id, uint32_t *at, bool claim,
			 uint32_t parts_bytes);

/*
 * Writes @key; *@at: its place, and 1, or 0: it gets one. Frees its place. Writes the key of the
 * hash of names.
 */
void handover_keep_key(struct fleet *fleet, const struct handover_key *key, uint32_t *at);
void handover_drop_key(struct fleet *fleet, uint32_t *at);
void handover_keep_seed(struct fleet *fleet, const uint64_t seed[2]);

/* The session is gone: there is nothing to go on with. */
void handover_forget(struct fleet *fleet);

/* While a successor reads what is there, nothing is written: a place; it is free again. */
void handover_read(struct fleet *fleet, bool reads);
const struct handover_memory *handover_memory(const struct fleet *fleet);
void handover_free_place(struct fleet *fleet, uint32_t at);

#endif
