/*
 * leases - the leases of this host, and what they are worth: rules 3, 4, 6, 11, 12, 18 and
 * 19 of fleet.h.
 *
 * A lease is a run of leaves in one state, and lies in one tile of this host's; a tile may have
 * several leases, since what was taken last may have to wait, and a part of it may be on its way
 * back. Only its host changes a tile, unless a foreign hand does, or an election takes back that it
 * was made. The version of /h shows the election. For foreign hands each renewal checks some tiles,
 * all in turn: so nothing is watched, and nothing is concluded from lists.
 */
#ifndef RATEFS_CORE_LEASES_H
#define RATEFS_CORE_LEASES_H

#include "core/fleet/item.h"
#include "core/fleet/parts.h"

enum { LEASES_GUARDED_MAX = 8 }; /* tiles that a renewal checks */

/* Leases of @holding that are not on their way back. */
uint32_t leases_kept(const struct holding *holding);

/* @lease of @holding goes over to state @to. */
void leases_become(struct fleet *fleet, struct holding *holding, struct lease *lease,
		   enum lease_state to);

/*
 * Splits the lease of @holding that has @leaf and the leaf before it. False: there is no memory.
 * Merges leases side by side that have one tile and one state, and forgets those that have none.
 * Both move leases.
 */
bool leases_cut(struct fleet *fleet, struct holding *holding, uint32_t leaf);
void leases_tidy(struct fleet *fleet, struct holding *holding);

/*
 * Puts the tiles that this host has of @holding, or of its reserve, into @tiles, in place of all
 * that are there of it or of their leaves: a list may be old. False: there is no memory.
 */
bool leases_put(const struct fleet *fleet, const struct holding *holding, bool reserve,
		struct tiles *tiles);

/* The tiles of @item are @tiles now: notes which ones its leases are in. */
void leases_name(struct fleet *fleet, const struct item *item, const struct tiles *tiles);

/*
 * Rule 11: the outcome of @item is not known, and its leases are in doubt. Then: @tiles, listed
 * after the barrier, say which of them are this host's.
 */
void leases_doubt(struct fleet *fleet, const struct item *item);
void leases_resolve(struct fleet *fleet, const struct item *item, const struct tiles *tiles);

/* Rule 12: adds checks of some tiles to a renewal. False: there is no memory. */
bool leases_guard(struct fleet *fleet, struct request *request);

/* Lets @lease, which is to wait, be usable Q from this step on. */
void leases_wait(struct fleet *fleet, struct lease *lease);

/* Holds the leases of @holding that have waited for Q. */
void leases_fall_due(struct fleet *fleet, struct holding *holding);

/*
 * Rule 19: @size leaves of @holding are about to be usable, of whose windows @rest says what was
 * used. leases_reshare() has to follow.
 */
void leases_join_use(struct fleet *fleet, struct holding *holding, const struct rest *rest,
		     uint32_t size);

/* Rule 21: likewise, and it is not known what was granted of quotas by their host before. */
void leases_note_unproven(const struct fleet *fleet, struct holding *holding, uint32_t size);

/*
 * Forgets what was used of windows if no leaf of @holding is held, of which it can have been. Tells
 * whether there was any; then leases_reshare() has to follow.
 */
bool leases_forget_use(struct holding *holding);

/* This host's share of @holding's limiter changed: reconfigures its buckets. */
void leases_reshare(struct fleet *fleet, struct holding *holding);

/* The settings of @holding changed: open slots whose numbers are no more of its leaves are lost. */
void leases_check_numbers(struct fleet *fleet, struct holding *holding);

/*
 * Rule 18: empties the buckets of all that is usable, before any of it is reshared: the first
 * limiter that is reshared may serve readers of limiters above or below it.
 */
void leases_empty(struct fleet *fleet);

/*
 * Rule 3: a transaction that was sent at @sent_ns was acknowledged. Tells whether everything held
 * is usable Q after the new epoch was known, and no sooner.
 */
bool leases_extend_term(struct fleet *fleet, uint64_t sent_ns);

/* Rule 4: before anything is granted in a step. */
void leases_check_term(struct fleet *fleet);

/* Whether it is time to do without the coordinator. */
void leases_watch_reach(struct fleet *fleet);

/*
 * The session is gone: there are no leases of @holding any more. The limiter is, or its leaves are
 * numbered anew: only what a transaction is under way for is left.
 */
void leases_forget(struct fleet *fleet, struct holding *holding);
void leases_drop(struct fleet *fleet, struct holding *holding);

/* Notes that this host knows the `cut` of @holding from now on. */
void leases_know_cut(struct fleet *fleet, struct holding *holding);

#endif
