/*
 * shape - what a limiter is made of, and what all limiters of one engine share.
 *
 * The parts of a limiter, such as its turns or what it has learnt, work on this and on each other;
 * limiter.h puts them together.
 */
#ifndef RATEFS_CORE_SHAPE_H
#define RATEFS_CORE_SHAPE_H

#include "core/base/chain.h"
#include "core/base/heap.h"
#include "core/limiter/parking.h"
#include "core/limiter/queue.h"
#include "core/limiter/turns.h"
#include "core/values/pool.h"

struct bucket;
struct holding;
struct keys;
struct learning;
struct slots;
struct usage;
struct users;

/* Counters of a limiter, from its making on. */
enum counter {
	COUNTER_GRANTED,       /* tokens, also of children */
	COUNTER_SERVED,	       /* reads answered with tokens */
	COUNTER_REFUSED,       /* reads that got none: of try, within and O_NONBLOCK */
	COUNTER_CANCELLED,     /* readers that gave up waiting */
	COUNTER_DELAYED,       /* ns that served readers waited */
	COUNTER_SHADOWED,      /* tokens that would have waited if enforced */
	COUNTER_CHARGED,       /* tokens charged afterwards */
	COUNTER_RETURNED,      /* tokens given back unused */
	COUNTER_OK,	       /* pieces of work that went through, as was reported */
	COUNTER_THROTTLED,     /* ... that the service throttled */
	COUNTER_ERROR,	       /* ... that failed for another reason */
	COUNTER_GRANTED_MIN,   /* tokens granted under the min, while waiters waited */
	COUNTER_REFUSED_QUEUE, /* readers and openers refused by queue_max */
	COUNTER_REFUSED_WAIT,  /* readers refused by wait_max */
	COUNTER_COUNT
};

/* State that all limiters of one engine share: the time of the step, deadlines, results. */
struct schedule {
	uint64_t now_ns;
	uint64_t step_ns;      /* now, also while readers are served as of when they were due */
	uint64_t tickets;      /* given out so far */
	struct heap deadlines; /* limiters, by when the waiter whose turn it is can be served */
	struct heap gathered;  /* limiters below the root that were ready while @gathers */
	struct heap expiries;  /* of waiters that have one */
	struct queue done;     /* waiters that were granted or refused, for the caller to collect */
	struct list called;    /* pollers whose tokens are kept for them, by time */
	struct parking parking; /* places of waiters that were interrupted */
	uint64_t parks;		/* ticket of the waiter that is being interrupted, or 0 */
	bool stopped;		/* no waiter is granted any more */
	bool frozen;		/* no waiter is granted until engine_go_on() */
	bool gathers; /* more is due at this instant, or is to follow: no grant before that */
	struct heap forgets; /* keys of limiters, by when some of them can be forgotten */
	struct chains keys_by_id;
	uint64_t last_key;
	uint64_t key_seed[2];
	struct pool pool;      /* of the limiters' settings */
	struct users *users;   /* borrowed */
	struct ledger *ledger; /* borrowed, see key_windows.h; NULL: there is none */
};

struct limiter {
	/* Place in the tree, kept by tree.c. */
	struct limiter *parent; /* NULL for the root, which limits nothing */
	struct limiter *first_child;
	/*
	 * In order of making: ids ascend. The one before the first is the last; NULL is after it.
	 */
	struct limiter *next_sibling, *previous_sibling;
	struct limiter *next_by_name, *next_by_id; /* hash chains */
	struct limiter ***partitions;		   /* owned, in blocks: partition_find() */
	char *name;	     /* owned, see tree.c; "" for the root and partitions */
	uint32_t *changed_s; /* owned: last change of each setting, as @made_s; NULL: made so */
	uint32_t id;	     /* never used twice */
	uint32_t references; /* held by callers: the memory stays until they are gone */
	uint32_t made_s;     /* seconds since the engine began */
	uint32_t uid, gid;   /* of a partition: the user that it counts for */
	struct list files;   /* the caller's: open ones through which it is used */
	uint32_t unit;	     /* the caller's: of what it keeps for a successor */
	uint32_t pollers;    /* in the queues of this limiter and its descendants */
	uint16_t partition;  /* as partition @partition - 1 of the parent, or 0 */
	uint16_t partition_room;
	uint16_t access; /* permission bits of the directory */
	bool removed;
	bool holds_parent; /* removed, but not gone */
	bool is_key;	   /* of the parent, see keys.h: it is freed there */
	bool is_gathered;
	uint8_t bucket_count; /* 0: rate `max` */
	uint8_t plain_count;  /* of those that have no unit: the first ones */

	/*
	 * The settings that count on this host: a reference of the pool's. In a fleet they are its
	 * share, in the holding; those of a partition or a key belong to it or to the keys.
	 */
	const struct settings *settings;
	struct bucket *buckets;	   /* owned: one for each limit; see units_counts(), too */
	struct holding *holding;   /* owned: its leases in a fleet; NULL on one host alone */
	struct learning *learning; /* owned: from feedback; NULL: it never learns */
	struct slots *slots;	   /* owned; NULL until there is something to say of slots */
	struct keys *keys;	   /* owned; NULL until there is one */
	struct usage *usage;	   /* owned; NULL until there is something to remember */

	/* Waiters. */
	struct turns turns;
	struct heap_node due; /* in the schedule's deadlines, or those gathered if @is_gathered */
	uint64_t aside;	 /* ticket of the waiter whose tokens the buckets have set aside, or 0 */
	uint64_t polled; /* tokens kept for pollers of this limiter and its descendants */
	uint64_t counters[COUNTER_COUNT];
};

static inline bool limiter_is_root(const struct limiter *limiter)
{
	return !limiter->parent;
}

#endif
