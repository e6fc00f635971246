/* place - a limiter or a partition, and the books kept on it, see place.c. */
#ifndef RATEFS_SIM_PLACE_H
#define RATEFS_SIM_PLACE_H

#include "core/limiter/limiter.h"
#include "tests/sim/base/windows.h"
#include "tests/sim/invariants/account_check.h"
#include "tests/sim/invariants/queue_check.h"
#include "tests/sim/invariants/rate_check.h"

struct common;
struct host;
struct service;

/* A limiter or a partition, from its making to the end of the run, with the books kept on it. */
struct place {
	struct place *next; /* of its host, in order of making */
	struct host *host;
	struct common *common; /* in a fleet: the limiter as all hosts know it; or NULL */
	struct place *parent;
	struct place *top;	 /* the one below the root that it is in; itself there */
	struct limiter *limiter; /* held; NULL once it is removed */
	char *path;		 /* owned */
	struct settings settings;
	uint32_t partition;	 /* 1 + its index, or 0 */
	bool is_key;		 /* @limiter is there while it is read */
	bool is_counted;	 /* a key of a load, told with the others */
	uint32_t readers;	 /* of a key */
	struct service *service; /* owned, or NULL */

	uint64_t granted;
	uint64_t grants; /* readers that were granted here or below ... */
	double waited_s; /* ... and how long they had waited, together */
	struct windows windows;
	struct rate_check rate;
	struct queue_check queue;
	struct account_check accounts[LIMITS_MAX];
	bool followed;		       /* a partition that was tuned in this step */
	uint64_t shadowing;	       /* tokens granted in shadow in this step */
	uint64_t shadowed;	       /* the counter, before */
	struct reader_check *oldest;   /* of a top: the oldest reader in it */
	const struct place *oldest_at; /* and where it waits */

	/* Slots that may be open: now, and over time since `slots` was last asked. */
	uint32_t slots;
	double slots_sum;
	uint64_t slots_ns, slots_since_ns;

	/* In a fleet. */
	uint64_t granted_before; /* when the window of calm.c began, and */
	bool waits, looked_at;	 /* in the last look of calm.c */
	uint64_t most_tokens;	 /* of a top: that a reader waits for in it, then */
	bool always_waits;	 /* since then a reader has waited here */
	bool uses_keys;		 /* since then it has had keys with a rate each */
	uint32_t usable;	 /* partitions, after the last step */
	bool exempt;		 /* it keeps no rate by leases: see common_exempts() */
	uint64_t largest;	 /* take of this host since @largest_since */
	uint64_t largest_since;
};

/* A limiter by its path, NULL; one of its partitions, NULL if there is none. */
struct place *place_at(const struct host *host, const char *path);
struct place *place_partition(struct place *place, uint32_t index);
/* Its limiter may have been renamed, with all that is in it. */
void place_follow_name(struct place *place);
struct place *place_add(struct host *host, struct place *parent, struct limiter *limiter,
			const char *path);
/* Limiters that have come get places; those that have gone lose theirs. Of a fleet. */
void place_follow(struct host *host);
void place_forget_removed(struct host *host);
void place_forget_all(struct host *host);
void place_free(struct place *place);
struct service *place_service(const struct place *place);

/*
 * key.c: a key of a limiter as a place, NULL if there is none. It is opened for each reader, as by
 * open(2), and closed when it leaves; key_enter() returns 0 or -errno.
 */
struct place *key_of(struct place *place, const char *key);
int key_enter(struct place *place);
void key_leave(struct place *place);
void key_follow(struct place *key, uint64_t now_ns);

#endif
