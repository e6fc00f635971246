/*
 * holding - what one host of a fleet holds of one limiter, and what it may use of it.
 *
 * A host has one bucket for all that it holds of a limiter: the summed rate, and room for its share
 * of the burst, at least one token. Over the fleet the burst is therefore max(burst, count).
 *
 * Without limits (rate `max`) and in the modes open and closed nothing is leased.
 */
#ifndef RATEFS_CORE_HOLDING_H
#define RATEFS_CORE_HOLDING_H

#include "lease.h"
#include "limiter.h"

struct request;

/* For DEMAND_SLOTS * DEMAND_SLOT_NS what was asked for is remembered. */
enum { DEMAND_SLOTS = 10 };
#define DEMAND_SLOT_NS UINT64_C(100000000)

struct holding {
	struct limiter *limiter; /* borrowed: the limiter lives longer */
	struct holding *next, *previous; /* all of the fleet */
	struct holding *next_active;	 /* those that are looked at every DEMAND_SLOT_NS */
	bool active;

	struct settings settings; /* as set, for the whole fleet */
	struct settings before;	  /* as they were, if @restricted */
	bool restricted;	  /* until @restricted_ns: a change of the count is not everywhere yet */
	uint64_t restricted_ns;	  /* by the waiter's clock */
	uint64_t id;		  /* LID */
	uint64_t generation;	  /* counts changes */
	int32_t version;	  /* of its node */

	/* Leases: partitions 0 to slots-1, and at most one of the reserve. */
	struct lease *leases; /* owned; NULL until there is one */
	uint32_t slots;
	struct lease reserve;
	uint32_t reserve_index;
	uint32_t held;	 /* leases in state HELD, the reserve's not counted */
	uint32_t leased; /* leases in any state but NONE, the reserve's not counted */

	/* What this host may use, as its buckets know it. */
	uint32_t usable;
	bool reserve_usable;
	uint8_t degraded; /* enum degraded that is in force, or DEGRADED_COUNT */

	/* Demand: see demand.c. */
	uint32_t wanted;		     /* partitions, now */
	uint32_t wanted_slots[DEMAND_SLOTS]; /* the most in each of the last slots */
	uint64_t granted_slots[DEMAND_SLOTS]; /* what had been granted at the end of each */
	uint64_t refused_slots[DEMAND_SLOTS]; /* likewise refused */
	uint64_t slot;			     /* number of the newest slot */

	/* Search and contention: see choose.c. */
	struct search *search;	/* owned; a round of listings under way, or what it found */
	uint64_t next_search_ns; /* not before */
	uint64_t next_give_ns;	 /* under contention */
	uint64_t next_claim_ns;	 /* a new /w node or another number in it */
	uint32_t claimed;	 /* N of our /w node, 0: there is none */
	char *claim;		 /* owned: its name, NULL */
	uint32_t target;	 /* our share under contention; UINT32_MAX: there is none */
	bool starving;		 /* others get nothing: we rotate */
};

/* What of settings and leases may be used now, as settings for the limiter's buckets. */
void holding_share(const struct holding *holding, struct settings *share);

/* Partitions that there are, of both kinds of use: while a change is not everywhere yet, the fewer. */
uint32_t holding_count(const struct holding *holding);

/* The rate of partition @index (count and above: the reserve's) as it may be used now. */
void holding_partition_share(const struct holding *holding, uint32_t index, struct settings *share);

/* Whether capacity must be leased at all. */
bool holding_needs_leases(const struct holding *holding);

/* The lease of partition @index; count and above are the reserve's. NULL: never had one. */
struct lease *holding_lease(struct holding *holding, uint32_t index);

#endif
