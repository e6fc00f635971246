/*
 * recut - the leaves of a limiter, as they are made with it and as they are numbered anew: rule 17
 * of fleet.h.
 *
 * Other leaves are other nodes, which no host uses for Q if leaves as they were before may be in
 * use. So hosts under settings of one `cut` share them, each leaf is used by one of these hosts,
 * and all together they use no more than the largest rate and burst that any of them knows.
 */
#ifndef RATEFS_CORE_RECUT_H
#define RATEFS_CORE_RECUT_H

#include "core/fleet/record.h"
#include "core/fleet/rest.h"

struct fleet;
struct holding;
struct request;

/*
 * Says in @record, which has the new settings of @holding, since when leaves are numbered so, and
 * whether hosts may use leaves that do not know these settings yet, though these settings use none.
 */
void recut_name(const struct fleet *fleet, const struct holding *holding, struct record *record);

/* Keeps in mind for Q what @record says of that. */
void recut_heed(const struct fleet *fleet, struct holding *holding, const struct record *record);

/* Tells whether no host uses leaves of @holding, as far as settings let any. */
bool recut_is_free(const struct fleet *fleet, const struct holding *holding);

/* All leaves as one clean tile, however they are numbered; an epoch of 0: usable Q after a take. */
struct recut_tile {
	uint32_t epoch;
	struct rest rest;
};

/*
 * Tells whether the tiles of @holding are listed, as its leaves are numbered now. If not, lists
 * them: there is another step when they are. Then: forgets them.
 */
bool recut_has_looked(struct fleet *fleet, const struct holding *holding);
void recut_forget(struct fleet *fleet);

/*
 * If the tiles that were listed are all clean, gives what they come to as one, and true. A
 * transaction that deletes them by their names asserts that no host leases any.
 */
bool recut_merge(const struct fleet *fleet, const struct holding *holding, struct recut_tile *all);
bool recut_delete(const struct fleet *fleet, struct request *request);

/*
 * Adds to @request the tile @all of limiter @id, in a folder of its own, and the same of its
 * reserve, which is empty. False: there is no memory.
 */
bool recut_add_tiles(struct request *request, const struct record *record, uint64_t id,
		     const struct recut_tile *all);

bool recut_new(struct fleet *fleet);
void recut_free(struct fleet *fleet);

#endif
