/*
 * pending - requests of the kernel that are not answered yet, by their unique number.
 *
 * The kernel interrupts a request by that number; it is found in O(1). A request that waits is of a
 * kind: a row of PENDING_ROWS (table.c), which says how requests of that kind are collected once a
 * step of the engine has decided about them, how they are answered, and how they are given up.
 *
 * Everything here is under the daemon's lock, unless said otherwise.
 */
#ifndef RATEFS_FS_MOUNT_PENDING_H
#define RATEFS_FS_MOUNT_PENDING_H

#include "core/base/list.h"
#include "core/limiter/users.h"
#include "fs/mount/caller.h"

struct daemon;

enum pending_kind {
	PENDING_READER,	 /* of token, stream or take: it waits for tokens */
	PENDING_OPENER,	 /* of slot: it waits for one */
	PENDING_WRITER,	 /* its change is on its way through the source */
	PENDING_AWAITER, /* of any file whose row has `until` */
	PENDING_PAGE,	 /* of metrics: a thread makes the page */
	PENDING_KIND_COUNT
};

struct pending {
	struct pending *next; /* in its chain; once out of the table: in an outbox */
	uint64_t unique;
	fuse_req_t request; /* NULL once it was answered */
	uint8_t kind;
	uint8_t channel; /* that it came by */
	uint32_t uid;	 /* whose it is */
	uint32_t pid;	 /* of the thread; 0: of another process namespace */
};

/* A request of a kind that is kept in a queue of its own, the oldest first. */
struct queued {
	struct pending pending;
	struct list_link link;
	uint64_t asked_ns;
	uint64_t until_ns; /* when it is decided at the latest, the queue's order; or NEVER_NS */
};

/* Decided requests, in the order in which they are to be answered. */
struct outbox {
	struct pending *first;
	struct pending **last;
};

/* The fate of a request that is given up. */
enum pending_end {
	PENDING_STAYS,	  /* it is decided, and about to be answered */
	PENDING_FREED,	  /* it is answered with the error, and freed */
	PENDING_ABANDONED /* it is answered with the error, and freed where it is worked on */
};

struct pending_row {
	/*
	 * Moves requests that are decided out of the table to @outbox, if there may be some, see
	 * collect_answers() in daemon.c. NULL: another row does it.
	 */
	void (*collect)(struct daemon *daemon, struct outbox *outbox);
	/* Answers @pending, which was collected, and frees it. Without the lock. NULL: none is. */
	void (*answer)(struct daemon *daemon, struct pending *pending);
	/*
	 * Takes @pending away from those that work on it, since it is answered with -@err now.
	 * NULL: there are none, and it is freed.
	 */
	enum pending_end (*give_up)(struct daemon *daemon, struct pending *pending, int err);
	/*
	 * Tells since when @pending waits. NULL: it waits for a bounded time, or is queued: since
	 * its asked_ns if its until_ns is NEVER_NS.
	 */
	uint64_t (*since_ns)(const struct daemon *daemon, const struct pending *pending);
	/* Gives up a request that was not decided by its until_ns. NULL: its collect() does. */
	void (*expire)(struct daemon *daemon, struct queued *queued);
	bool queued;   /* its requests are struct queued */
	bool resolute; /* a signal does not interrupt it: its fate would not be known */
};
extern const struct pending_row PENDING_ROWS[PENDING_KIND_COUNT];

struct pending_table {
	struct pending **chains; /* owned */
	uint32_t size;		 /* a power of two */
	uint32_t count;
	uint64_t asked;	     /* requests and polls that had to wait, so far */
	struct users *users; /* borrowed: there they are counted */
	struct list queues[PENDING_KIND_COUNT];
};

int pending_init(struct pending_table *table, struct users *users);
void pending_free(struct pending_table *table);

/* Remembers the request of @caller as one that is not answered yet. */
void pending_insert(struct pending_table *table, struct pending *pending,
		    const struct caller *caller, enum pending_kind kind);
void pending_remove(struct pending_table *table, struct pending *pending);

/* Removes @pending, which is decided, and puts it behind all others in @outbox. */
void pending_decide(struct pending_table *table, struct pending *pending, struct outbox *outbox);

/* Finds a request. NULL: it is not, or no longer, waiting. */
struct pending *pending_find(const struct pending_table *table, uint64_t unique);

/* Finds the oldest request of a kind that is queued, and the one after @queued; NULL: none. */
static inline struct queued *pending_first(const struct pending_table *table,
					   enum pending_kind kind)
{
	return list_first(&table->queues[kind], struct queued, link);
}

static inline struct queued *pending_next(struct queued *queued)
{
	return list_next(queued, link);
}

/* Finds when the first of all queued requests is decided at the latest, or NEVER_NS. */
uint64_t pending_due_ns(const struct pending_table *table);

#endif
