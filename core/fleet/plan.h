/*
 * plan - the tiles that a host takes and gives back: the nodes to delete and to create.
 *
 * A plan is a limiter's tiles before and after. The transaction deletes each node that is in the
 * one only, and creates each that is in the other only. All facts are arguments.
 *
 * A take prefers free leaves beside a tile of its own host, which become one tile with it.
 * Otherwise it takes from any free run that is long enough, at random, and out of its middle where
 * there is room on both sides. So hosts can grow where they are, and rarely want the same node. If
 * no run is long enough the longest ones go whole. Free tiles side by side count as one run. The
 * tiles of hosts that are gone come last, since they cannot be used at once.
 */
#ifndef RATEFS_CORE_PLAN_H
#define RATEFS_CORE_PLAN_H

#include "core/fleet/tile.h"

enum {
	PLAN_CHANGES_MAX = 60, /* nodes that a plan deletes and creates */
	PLAN_OWN_MAX = 64, /* tiles of one host and limiter; with single ones there is no bound */
};

struct plan_rules {
	const char *hid;  /* of this host; borrowed */
	bool single;	  /* leased tiles are single leaves: partitions that have numbers */
	struct rest full; /* the rest of all leaves that were never used */
	uint64_t seed;	  /* for choices among equals */
};

struct plan {
	struct plan_rules rules;
	uint64_t random;
	struct tiles before, after;	     /* owned */
	struct tile gains[PLAN_CHANGES_MAX]; /* pieces that are taken, as they were */
	uint32_t gain_count;
};

/* Begins a plan for @tiles, which changes nothing yet. 0 or -ENOMEM. Frees what it owns. */
int plan_begin(struct plan *plan, const struct plan_rules *rules, const struct tiles *tiles);
void plan_end(struct plan *plan);

/*
 * Takes @wanted leaves: the number of those that it found, or -ENOMEM. Without @unclean only clean
 * tiles are taken; with it those of unknown epoch and of gone hosts, too.
 */
int plan_take(struct plan *plan, uint32_t wanted, bool unclean);

/* Takes leaf @leaf, if it is free. The number of leaves taken, or -ENOMEM. */
int plan_take_leaf(struct plan *plan, uint32_t leaf, bool unclean);

/*
 * Gives back @given leaves of the host's own, the smallest tiles first, and then from the end of
 * one that has free leaves beside it. Each becomes clean, of @epoch and with its share of @rest,
 * which is that of all @given. The number of leaves, or -ENOMEM.
 */
int plan_give(struct plan *plan, uint32_t given, uint32_t epoch, const struct rest *rest);

/* Likewise leaves @first to @last, which are one tile's. */
int plan_give_run(struct plan *plan, uint32_t first, uint32_t last, uint32_t epoch,
		  const struct rest *rest);

/* Merges tiles side by side of this host. */
void plan_tidy(struct plan *plan);

/* Calls @change for each node: those that are deleted (@there), then those that are created. */
void plan_changes(const struct plan *plan,
		  void (*change)(void *of, const struct tile *tile, bool there), void *of);
uint32_t plan_change_count(const struct plan *plan);

#endif
