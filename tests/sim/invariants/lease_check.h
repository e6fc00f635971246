/*
 * lease_check - no two hosts are entitled to one partition at one instant of true time.
 *
 * A host is entitled to a partition from the step in which it could first use it until the step in
 * which it gave it up, or until its right ends, which needs no step. So it suffices to look when an
 * entitlement begins: when a lease becomes usable, and when a right that had ended is there again.
 *
 * Hosts tell when they are entitled. Their grants are judged, too: a grant uses every partition
 * that its host then holds of the limiter. If another host has used one of them since this host
 * first did with this lease, then both have it.
 *
 * Fed with what happened, in true time; knows nothing of the core.
 */
#ifndef RATEFS_SIM_LEASE_CHECK_H
#define RATEFS_SIM_LEASE_CHECK_H

#include "tests/sim/invariants/rate_check.h"

/* One host, as far as rights are concerned. */
struct holder {
	const char *name;   /* borrowed */
	uint64_t end_ns;    /* its right ends */
	struct held *first; /* its entitlements as long as the right lasts */
};

/* A partition in the hands of a holder. */
struct held {
	struct held *next, **back; /* of the holder */
	struct held *next_of_partition, **back_of_partition;
	struct holder *holder;
	struct partition_check *partition;
	bool is_used;
	uint64_t first_use_ns; /* if so */
};

/* The last use by a holder. */
struct use {
	const struct holder *holder; /* NULL: there was none */
	uint64_t at_ns;
};

struct partition_check {
	const void *limiter; /* borrowed: whose it is */
	uint32_t index;
	struct held *first;
	struct use last, last_by_another;
};

/* @holder may use @partition from @now_ns on. False, and @why, if another may too. */
bool lease_check_begins(struct partition_check *partition, struct holder *holder, uint64_t now_ns,
			char why[WHY_TEXT]);

/* It may not any more. */
void lease_check_ends(struct partition_check *partition, struct holder *holder);
void lease_check_ends_all(struct holder *holder);

/*
 * Checks a grant of tokens of @limiter by @holder. False, and @why, if another uses a partition of
 * it, too.
 */
bool lease_check_grants(struct holder *holder, const void *limiter, uint64_t now_ns,
			char why[WHY_TEXT]);

/* The right of @holder ends at @end_ns, as it knows at @now_ns. False, and @why, as above. */
bool lease_check_right(struct holder *holder, uint64_t end_ns, uint64_t now_ns, char why[WHY_TEXT]);

#endif
