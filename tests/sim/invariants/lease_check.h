/*
 * lease_check - no two hosts are entitled to one leaf at one instant of true time.
 *
 * A host is entitled to leaves from the step in which it could first use them until the step in
 * which it gave them up, or until its right ends, which needs no step. So it suffices to look when
 * an entitlement begins: when a lease becomes usable, and when a right that had ended is there
 * again.
 *
 * Leaves of different cuts are different parts of one rate, so their numbers say nothing. Hosts
 * that are entitled to leaves of a limiter at one instant are so by one cut.
 *
 * Hosts tell when they are entitled. Their grants are judged, too: a grant uses all leaves that its
 * host then holds of the limiter. If another host has used one of them since this host first did
 * with this lease, then both have it.
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

/* Leaves, all of one cut; those of the reserve are others than those with the same numbers. */
struct run {
	uint64_t cut;
	bool reserve;
	uint32_t first, last;
};

/* A run in the hands of a holder. */
struct held {
	struct held *next, **back; /* of the holder */
	struct holder *holder;
	struct lease_check *check;
	struct run run;
	uint32_t rivals; /* runs of other holders that have a leaf of it */
	bool is_used;
	uint64_t first_use_ns, last_use_ns; /* if so */
	const struct holder *user; /* used a leaf of it since then, by a run that has ended */
	uint64_t user_ns;
};

/* A limiter. */
struct lease_check {
	struct held **held; /* owned: in the order of their first leaves */
	uint32_t count, room;
	uint32_t longest; /* leaves that a run ever had */
	uint64_t cut;	  /* the newest ... */
	uint32_t newest;  /* ... and so many are of that */
};

/* @holder may use @run from @now_ns on. False, and @why, if another may, too, or by another cut. */
bool lease_check_begins(struct lease_check *check, struct holder *holder, const struct run *run,
			uint64_t now_ns, char why[WHY_TEXT]);

/* It may not use leaves @run->first to @run->last any more, by whatever cut. */
void lease_check_ends(struct lease_check *check, struct holder *holder, const struct run *run);
void lease_check_ends_all(struct holder *holder);

/* Tells whether @holder may use @leaf of the cut and kind of @run, as long as its right lasts. */
bool lease_check_has(const struct lease_check *check, const struct holder *holder,
		     const struct run *run, uint32_t leaf);

/*
 * Checks a grant of tokens by @holder. False, and @why, if another uses a leaf that it holds, too.
 */
bool lease_check_grants(const struct lease_check *check, struct holder *holder, uint64_t now_ns,
			char why[WHY_TEXT]);

/* The right of @holder ends at @end_ns, as it knows at @now_ns. False, and @why, as above. */
bool lease_check_right(struct holder *holder, uint64_t end_ns, uint64_t now_ns, char why[WHY_TEXT]);

/* Frees what it owns; no run is held any more. */
void lease_check_free(struct lease_check *check);

#endif
