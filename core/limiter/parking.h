/*
 * parking - places in the order of arrival that interrupted waiters may take again.
 *
 * A signal that does not end a reader costs it its request, and it asks again at once. So an
 * interrupted waiter leaves its queue and its place is parked: its ticket and the time at which it
 * began to wait.
 *
 * - An asker that asks within PARKING_NS for as many tokens, or a slot, of the same limiter takes
 *   its place again: it stands where its ticket says, and its time counts on from its first asking.
 *   Asking for the same with another limit on the time gives the place up.
 * - A parked place holds up no other waiter, and nothing is granted to it. Waiters behind it that
 *   are due pass it. Tokens saved up for a take larger than the burst are set aside meanwhile
 *   (bucket.h), of one waiter in each limiter; in a fleet they are spilled when the holding of
 *   this host changes.
 * - A thread has at most one parked place: a second one replaces it. Each asking has at most one
 *   place, parked or taken again, and ends with its answer.
 * - While askers cannot come back, as they are frozen with the machine, no place expires.
 * - There are at most as many places as the caller has given memory for. Without room an
 *   interrupted waiter has none.
 */
#ifndef RATEFS_CORE_PARKING_H
#define RATEFS_CORE_PARKING_H

#include "core/base/chain.h"
#include "core/base/list.h"
#include "core/values/quantity.h"

#include <stdbool.h>
#include <stdint.h>

struct waiter;

#define PARKING_NS NSEC_PER_SEC

enum { PARKING_PLACES_MAX = 1 << 20 };

/*
 * The identity of an asker. Where the thread is unknown the file tells askers apart; then several
 * may look the same.
 */
struct asker {
	uint32_t thread; /* 0: unknown */
	uint32_t uid;
	uint64_t file;	 /* any number that an open file is known by */
	uint64_t number; /* of this asking, ascending; kept for the caller, not compared */
};

/* The queue that a place is in. */
struct parking_site {
	uint64_t key;	    /* id; 0: of no key */
	uint32_t limiter;   /* id, of the parent of a key or partition */
	uint32_t partition; /* index + 1, or 0 */
};

enum place_state { PLACE_FREE, PLACE_PARKED, PLACE_TAKEN };

struct parked_place {
	struct chain_link by_asker; /* parked */
	struct list_link by_time;   /* parked: in parking.parked; free: in parking.free */
	struct asker asker;
	struct parking_site site;
	uint64_t tokens, most;
	uint64_t within_ns; /* NEVER_NS: any time */
	uint64_t ticket;
	uint64_t asked_ns;
	uint64_t at_ns; /* parked: until when; taken: since when */
	uint64_t first; /* number of the first asking; that of the last is in @asker */
	bool is_opener;
	_Atomic uint8_t state; /* enum place_state: written last */
};

struct parking {
	struct parked_place *places; /* borrowed */
	uint32_t size;
	uint32_t *used; /* borrowed: so many of @places were ever used */
	struct list free;
	struct list parked;	/* by time */
	struct chains by_asker; /* parked */
	bool frozen;		/* no place expires */
};

/*
 * Gives @parking @size free @places (up to PARKING_PLACES_MAX); *@used is 0. Without that there is
 * no room.
 */
void parking_init(struct parking *parking, struct parked_place *places, uint32_t size,
		  uint32_t *used);

/* Frees what @parking owns. */
void parking_free(struct parking *parking);

/* Tells whether a place is parked, or was not long ago: then askers may have one. */
static inline bool parking_has_any(const struct parking *parking)
{
	return parking->parked.first;
}

/*
 * Parks the place of @waiter, which has left the queue @site, for @asker. False: there is no room,
 * or the waiter waits only until a fleet has looked for partitions.
 */
bool parking_park(struct parking *parking, struct waiter *waiter, const struct parking_site *site,
		  const struct asker *asker, uint64_t now_ns);

/*
 * Gives @waiter, which @asker is about to have ask in @site for at most @within_ns, the place
 * parked for that, with its ticket and the time of the first asking. False: there is none.
 */
bool parking_resume(struct parking *parking, struct waiter *waiter, const struct parking_site *site,
		    const struct asker *asker, uint64_t within_ns, uint64_t now_ns);

/* Has no place expire until parking_thaw(): then those that are parked do at @until_ns. */
static inline void parking_freeze(struct parking *parking)
{
	parking->frozen = true;
}

void parking_thaw(struct parking *parking, uint64_t until_ns);

/* Returns since when @waiter waits for its present asking; waiter->asked_ns is of the first. */
uint64_t parking_since_ns(const struct parking *parking, const struct waiter *waiter);

/* Frees the place of @waiter, which is in no queue. */
void parking_free_place(struct parking *parking, struct waiter *waiter);

/*
 * Parks a copy of @place, which a predecessor of the caller had, as @ticket until @until_ns, if
 * there is room.
 */
void parking_restore(struct parking *parking, const struct parked_place *place, uint64_t ticket,
		     uint64_t until_ns);

#endif
