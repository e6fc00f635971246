/* place - a limiter or a partition, and the books kept on it, see place.c. */
#ifndef RATEFS_SIM_PLACE_H
#define RATEFS_SIM_PLACE_H

#include "core/limiter/limiter.h"
#include "tests/sim/base/windows.h"
#include "tests/sim/invariants/account_check.h"
#include "tests/sim/invariants/order_check.h"
#include "tests/sim/invariants/queue_check.h"
#include "tests/sim/invariants/quota_check.h"
#include "tests/sim/invariants/rate_check.h"

struct common;
struct host;
struct service;

/* The waiters of a place and the order of its siblings, see order.c. */
struct order_book {
	struct order_check siblings; /* its children, and its own readers */
	struct sibling_check own;    /* these */
	struct sibling_check self;   /* among the siblings of its parent */
	uint32_t waiting;	     /* readers here and below */
	uint64_t since;		     /* event since which readers wait here */
	uint64_t due_ns;	     /* when it has all that any of them may want */
	struct amounts largest;	     /* amounts of units that one of them wants */
	bool ranges;		     /* one of them takes as many as there are */
};

/* The openers of a place and the order of its siblings, see slot_order.c. */
struct slot_book {
	struct order_check siblings; /* its children, and its own openers */
	struct sibling_check own;    /* these */
	struct sibling_check self;   /* among the siblings of its parent */
	uint32_t here;		     /* openers that wait here */
	uint32_t waiting;	     /* here and below */
	uint32_t used;		     /* slots, likewise */
	uint64_t since;		     /* event since which openers wait here */
};

/* The demand of the readers of a place, without those below it, see dues.c. */
struct demand_book {
	uint64_t granted; /* tokens, ever */
	uint64_t waiting; /* tokens that are waited for */
	uint32_t again;	  /* waiting readers that ask again as soon as they are served */

	/* Since the window began: */
	uint64_t granted_before; /* ever, until then */
	uint64_t largest;	 /* take that began to wait */
	bool breaks;		 /* no such reader waited at some time */
};

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
	uint64_t grants;  /* readers that were granted here or below ... */
	double waited_s;  /* ... and how long they had waited, together */
	double longest_s; /* the longest of these waits */
	struct windows windows;
	struct rate_check rate;
	struct quota_check quota;
	struct unit_quota_check *unit_quotas; /* owned: a list of those of units; NULL: none */
	struct queue_check queue;
	struct order_book order;
	struct slot_book slot_order;
	struct demand_book demand;
	struct account_check accounts[LIMITS_MAX];
	bool followed;	    /* a partition that was tuned in this step */
	uint64_t shadowing; /* tokens granted in shadow in this step */
	uint64_t shadowed;  /* the counter, before */

	/* Slots that may be open: now, and over time since `slots` was last asked. */
	uint32_t slots;
	double slots_sum;
	uint64_t slots_ns, slots_since_ns;

	/* In a fleet. */
	uint64_t granted_before; /* when the window of calm.c began, and */
	bool waits, looked_at;	 /* in the last look of calm.c */
	uint64_t most_tokens;	 /* of a top: that a reader waits for in it, then */
	bool always_waits;	 /* since then readers here have lacked tokens */
	bool uses_keys;		 /* since then it has had keys with a rate each */
	uint64_t saved, time;	 /* its limits are of that generation, see truth_time(), ... */
	uint64_t changed_zxid;	 /* ... as its host has known them since that write */
	uint32_t usable;	 /* partitions, after the last step */
	uint32_t keeps;		 /* after the last step, or all: see common_keeps() */
	struct fleet_asks asks;	 /* of readers of this host */
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
