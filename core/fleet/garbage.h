/*
 * garbage - nodes of limiters that are gone, and of names that were left. They go no earlier than Q
 * after the limiter: until then a host that has not heard of it may hold leases of it, and use its
 * name.
 */
#ifndef RATEFS_CORE_GARBAGE_H
#define RATEFS_CORE_GARBAGE_H

#include "core/fleet/parts.h"

bool garbage_new(struct fleet *fleet);
void garbage_free(struct fleet *fleet);

/* The nodes of limiter @id are to go. */
void garbage_add(struct fleet *fleet, uint64_t id);

/* Looks for nodes of limiters that are gone, which no host deleted. */
void garbage_look(struct fleet *fleet);

/* Sends what is due; tells whether that is a transaction. Then: it was answered. */
bool garbage_send(struct fleet *fleet);
void garbage_answered(struct fleet *fleet, const struct request *request);

/* Gives up what is under way: the session is gone, or its outcome is not known. */
void garbage_forget(struct fleet *fleet);

#endif
