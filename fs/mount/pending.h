/*
 * pending - requests of the kernel that are not answered yet, by their unique number.
 *
 * The kernel interrupts a request by that number; it is found in O(1). Readers wait for tokens,
 * openers for slots, followers for events, writers for the source, pages of metrics for their thread, lookers for the
 * coordinator. Everything here is under the daemon's lock.
 */
#ifndef RATEFS_FS_MOUNT_PENDING_H
#define RATEFS_FS_MOUNT_PENDING_H

#include "core/limiter/change.h"
#include "fs/mount/caller.h"
#include "fs/mount/viewer.h"

#include <fuse_lowlevel.h>

struct daemon;
struct handle;

enum pending_kind {
	PENDING_READER,
	PENDING_FOLLOWER,
	PENDING_WRITER,
	PENDING_PAGE,
	PENDING_LOOKER,
	PENDING_OPENER,
};

struct pending {
	struct pending *next; /* in its chain; once out of the table: for whoever holds it */
	uint64_t unique;
	fuse_req_t request; /* NULL once it was answered */
	uint8_t kind;
	uint8_t channel; /* that it came by */
	uint32_t uid;	 /* whose it is */
};

/* A reader of token, stream or take; or an opener of slot. */
struct reader {
	struct pending pending;
	/* Borrowed: it is open as long as this is not answered. An opener's is its own until then. */
	struct handle *handle;
	uint32_t size; /* bytes that the kernel can take */
	uint32_t pid;
	struct waiter waiter;
};

/* One of take/N,within=D. */
struct timed_reader {
	struct reader reader;
	struct expiry expiry;
	int refusal; /* errno when the time is up */
};

/* A reader of events. */
struct follower {
	struct pending pending;
	struct handle *handle; /* borrowed, as a reader's */
	uint32_t size;
	uint64_t asked_ns;
	struct follower *next, *previous;
};

/* A reader of a text for which the coordinator is asked first. */
struct looker {
	struct pending pending;
	struct handle *handle; /* borrowed, as a reader's */
	size_t size;
	uint64_t asked_ns;
	uint64_t until_ns; /* then it is shown as it is known */
	struct looker *next;
};

/* A write, mkdir, rmdir, rename or setattr on its way through the source. */
struct writer {
	struct pending pending;
	struct change change;
	struct subject subject; /* what it is about, as it was */
	size_t size;		/* of a write: what to acknowledge */
	uint64_t until_ns;	/* when it is answered with ETIMEDOUT */
	bool awaited;		/* no request: who made it looks at @done, and frees it */
	bool done;
	fuse_ino_t ino;		       /* setattr: whose attributes are the answer; rmdir: the id */
	struct fuse_entry_param entry; /* mkdir and setattr: the answer */
	struct writer *next, *previous;
	char text[];
};

struct pending_table {
	struct pending **chains; /* owned */
	uint32_t size;		 /* a power of two */
	uint32_t count;
	struct users *users; /* borrowed: there they are counted */
	struct follower *followers;
	struct looker *lookers;
	struct writer *writers; /* the oldest first */
	struct writer *last_writer;
};

void follower_append(struct pending_table *table, struct follower *follower);
void follower_leave(struct pending_table *table, struct follower *follower);
void looker_append(struct pending_table *table, struct looker *looker);
void looker_leave(struct pending_table *table, struct looker *looker);
void writer_append(struct pending_table *table, struct writer *writer);
void writer_leave(struct pending_table *table, struct writer *writer);

int pending_init(struct pending_table *table, struct users *users);
void pending_free(struct pending_table *table);

/* Remembers the request of @caller as one that is not answered yet. */
void pending_insert(struct pending_table *table, struct pending *pending,
		    const struct caller *caller, enum pending_kind kind);
void pending_remove(struct pending_table *table, struct pending *pending);

/* NULL when it is not, or no longer, waiting. */
struct pending *pending_find(const struct pending_table *table, uint64_t unique);

#endif
