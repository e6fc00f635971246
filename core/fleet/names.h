/*
 * names - paths of limiters that were removed or renamed less than Q ago: rule 16 of fleet.h.
 *
 * A path that lies below another one goes with it.
 */
#ifndef RATEFS_CORE_NAMES_H
#define RATEFS_CORE_NAMES_H

#include "core/fleet/parts.h"

bool names_new(struct fleet *fleet);
void names_free(struct fleet *fleet);

/* @path was that of limiter @id until now. */
void names_leave(struct fleet *fleet, uint64_t id, const char *path);

/* Other names may have been left in the last Q that are not known here. */
void names_lose(struct fleet *fleet);

/* The path that limiter @id had; NULL: not known. */
const char *names_of(const struct fleet *fleet, uint64_t id);

/*
 * Tells whether no host can still know a limiter other than @id (0: any) by @path, or one above it.
 */
bool names_are_free(struct fleet *fleet, const char *path, uint64_t id);

#endif
