/*
 * room - how many nodes and watches this host may have: their paths have to fit requests of the
 * coordinator.
 */
#ifndef RATEFS_CORE_ROOM_H
#define RATEFS_CORE_ROOM_H

#include "core/fleet/parts.h"

bool room_new(struct fleet *fleet);
void room_free(struct fleet *fleet);

/* Leases in any state but NONE, of all limiters; bytes of the paths of all nodes of the session. */
uint32_t room_leases(const struct fleet *fleet);
uint32_t room_own_bytes(const struct fleet *fleet);

/* Tells whether this host has any lease or claim, or leases a key. */
bool room_is_used(const struct fleet *fleet);

/*
 * Returns how many more leases there may be; tells whether @holding may have one more claim, with
 * @parts_bytes for its parts.
 */
uint32_t room_for_leases(const struct fleet *fleet);
bool room_for_claim(const struct fleet *fleet, const struct holding *holding, uint32_t parts_bytes);

/* Tells whether half of the room is used: then nothing is kept that is not wanted. */
bool room_is_scarce(const struct fleet *fleet);

/*
 * Counts a take or a claim that was left out for want of room, and tells of it the first time; no
 * claim is made before then.
 */
void room_was_missing(struct fleet *fleet);
uint64_t room_claims_from_ns(const struct fleet *fleet);

/* There is a lease or a claim of limiter @id now, as far as is known; or there is none any more. */
void room_count_lease(struct fleet *fleet, bool there);
void room_count_claim(struct fleet *fleet, uint64_t id, uint32_t parts_bytes, bool there);

/* A key more is leased, or one less. */
void room_count_key(struct fleet *fleet, bool there);

/* A predecessor left a claim of limiter @id, which is gone: it goes with the session. */
void room_count_left(struct fleet *fleet, uint64_t id, uint32_t parts_bytes);

/* The session is gone, and all its nodes. */
void room_forget(struct fleet *fleet);

/* Gives /a/LID room to be watched. False: there is none. Then: takes the room back. */
bool room_watch_agreed_rate(struct fleet *fleet, struct holding *holding);
void room_unwatch_agreed_rate(struct fleet *fleet, struct holding *holding);
bool room_watches_agreed_rate(const struct holding *holding);

/* The same of the data of /w/LID. */
bool room_watch_told(struct fleet *fleet, struct holding *holding);
void room_unwatch_told(struct fleet *fleet, struct holding *holding);
bool room_watches_told(const struct holding *holding);

/* The same of the children of /w/LID. */
bool room_watch_claims(struct fleet *fleet, struct holding *holding);
void room_unwatch_claims(struct fleet *fleet, struct holding *holding);
bool room_watches_claims(const struct holding *holding);

#endif
