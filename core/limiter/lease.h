/*
 * lease - the life of a lease on one host: of a run of a limiter's leaves, or of a reserve.
 *
 *	NONE --take--> TAKING --acknowledged, clean--> HELD
 *	               TAKING --acknowledged, not known to be free for Q--> WAITING --> HELD
 *	               TAKING --refused--> NONE
 *	               TAKING --unknown--> IN_DOUBT
 *	HELD --give back--> DRAINING --acknowledged--> NONE
 *	                    DRAINING --refused: not sent again yet--> DRAINING
 *	                    DRAINING --unknown--> IN_DOUBT
 *	HELD, DRAINING and not sent --the right revives in a later epoch--> WAITING
 *	IN_DOUBT --barrier, ours--> WAITING
 *	IN_DOUBT --barrier, not ours--> NONE
 *	any --session lost, limiter gone, leaves numbered anew--> NONE
 *
 * The right to use what is HELD is the host's, in fleet.h: it ends for all at once.
 */
#ifndef RATEFS_CORE_LEASE_H
#define RATEFS_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

struct rest;

enum lease_state {
	LEASE_NONE,
	LEASE_TAKING,
	LEASE_WAITING,
	LEASE_HELD,
	LEASE_DRAINING,
	LEASE_IN_DOUBT,
	LEASE_STATE_COUNT
};

struct lease {
	uint32_t first, last;		/* leaves; of the reserve: its part, twice */
	uint32_t tile_first, tile_last; /* leaves of its node, which may have several leases */
	uint8_t state;			/* enum lease_state */
	bool sent;			/* DRAINING: the give-back is under way */
	uint32_t place;			/* its place in struct handover_memory, and 1; 0: none */
	uint64_t since_ns;		/* HELD: since when, by the engine's clock */
	uint64_t usable_ns;		/* WAITING: until when, by the waiter's clock */
	uint64_t granted;		/* HELD: tokens the limiter had granted when it came */
	struct rest *rest; /* DRAINING: owned, what goes with it; NULL: nothing is left */
};

/* Returns the number of its leaves. */
uint32_t lease_size(const struct lease *lease);

/* Tells whether a lease may go from @from to @to. */
bool lease_may_become(enum lease_state from, enum lease_state to);

/* Takes that step; asserts that it may: another one is a broken promise of our own. */
void lease_become(struct lease *lease, enum lease_state to);

/* Returns one word: free, taking, waiting, held, draining, in_doubt. */
const char *lease_state_name(enum lease_state state);

#endif
