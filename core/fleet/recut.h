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

/*
 * Adds to @request a tile of all leaves of limiter @id, in a folder of its own, and the same of its
 * reserve: usable at once with @is_free, by what this host knows, and else Q after they were taken.
 * False: there is no memory.
 */
bool recut_add_tiles(const struct fleet *fleet, struct request *request,
		     const struct record *record, uint64_t id, bool is_free);

#endif
