/*
 * garbage - nodes of limiters that are gone, of names that were left, and of leaves that have other
 * numbers now. They go no earlier than Q after that: until then a host that has not heard of it may
 * hold leases of them, and use the name. Folders of leased keys go first (K6 of keys.md).
 *
 * The end of a host goes after 25 hours, which is longer than a day of the calendar. A tile of that
 * host that is left makes its next taker wait, and the rest of windows is lost, but no host has
 * wanted it for that long.
 */
#ifndef RATEFS_CORE_GARBAGE_H
#define RATEFS_CORE_GARBAGE_H

#include "core/fleet/parts.h"

bool garbage_new(struct fleet *fleet);
void garbage_free(struct fleet *fleet);

/*
 * Notes that limiter @id has no leaves any more that are numbered since generation @cut; if it is
 * gone, that no node of it is needed. Likewise the end of host @hid, with @epoch in its name: one
 * that this host made, or that it finds where it lists them for another reason.
 */
void garbage_add(struct fleet *fleet, uint64_t id, uint64_t cut);
void garbage_add_end(struct fleet *fleet, const char *hid, uint32_t epoch);

/* Looks for tiles that no host deleted. */
void garbage_look(struct fleet *fleet);

/* Sends what is due; tells whether that is a transaction. Then: it was answered. */
bool garbage_send(struct fleet *fleet);
void garbage_answered(struct fleet *fleet, const struct request *request);

/* Gives up what is under way: the session is gone, or its outcome is not known. */
void garbage_forget(struct fleet *fleet);

#endif
