/*
 * apply - what was read of other hosts' settings takes effect here, all of it together: first those
 * that are gone, then names, then the rest in order of ids, since a parent is older than its
 * children.
 */
#ifndef RATEFS_CORE_APPLY_H
#define RATEFS_CORE_APPLY_H

#include "core/fleet/parts.h"

/* A node of the settings, as it was read. */
struct found {
	uint64_t id;
	bool there;
	bool bad; /* not understood */
	int32_t version;
	uint64_t made_zxid, changed_zxid; /* of its node, as in struct holding */
	struct record record;
};

/*
 * Applies @count of @found, which it puts in order, and @globals, whose last id it corrects. False:
 * there was no memory for some.
 */
bool apply_found(struct fleet *fleet, struct found *found, uint32_t count, struct globals *globals);

/* The limiter of @holding is about to go: gives back all that is held of it. */
void apply_gone(struct fleet *fleet, struct holding *holding);

#endif
