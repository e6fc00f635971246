/*
 * former - what a daemon keeps of its limiters for a successor, as fs/state/state.h does: names,
 * settings, and what is in the buckets. The fleet's part is in struct handover_memory.
 */
#ifndef RATEFS_SIM_FORMER_H
#define RATEFS_SIM_FORMER_H

#include <stddef.h>

struct host;
struct former_limiter;

/* Owned by the host. */
struct former {
	struct former_limiter *limiters;
	size_t count, room;
};

/* Keeps what @host has now. */
void former_keep(struct host *host);

/* The successor's: before fleet_resume(), limiters; after it, what is in their buckets. */
void former_restore(struct host *host);
void former_fill(struct host *host);

void former_free(struct former *former);

#endif
