/*
 * former_names - paths that limiters had until less than Q ago, when they were removed or renamed:
 * rule 16 of fleet.h.
 *
 * A path that lies below another one goes with it.
 */
#ifndef RATEFS_CORE_FORMER_NAMES_H
#define RATEFS_CORE_FORMER_NAMES_H

#include "core/fleet/parts.h"

bool former_names_new(struct fleet *fleet);
void former_names_free(struct fleet *fleet);

/* Adds @path, which was that of limiter @id until now. */
void former_names_add(struct fleet *fleet, uint64_t id, const char *path);

/* Notes that other names may have been given up in the last Q that are not known here. */
void former_names_note_unknown(struct fleet *fleet);

/* Returns the path that limiter @id had; NULL: not known. */
const char *former_names_of(const struct fleet *fleet, uint64_t id);

/*
 * Tells whether @path may be that of limiter @id (0: of a new one): no host can still know another
 * limiter by it, or by a path above it.
 */
bool former_names_permit(struct fleet *fleet, const char *path, uint64_t id);

#endif
