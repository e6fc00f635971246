/*
 * pages - long pages of `metrics`, made by threads beside the loop, for each user in turn.
 *
 * A page waits in a queue until a thread is free, in the lane of its user (lanes.h).
 */
#ifndef RATEFS_FS_MOUNT_PAGES_H
#define RATEFS_FS_MOUNT_PAGES_H

#include "core/base/lanes.h"
#include "fs/mount/pending.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>

struct handle;
struct read_request;

/* A page that is asked for. */
struct page {
	struct pending pending; /* first; its request is NULL once it was given up */
	struct handle *handle;	/* borrowed as long as the request is not answered */
	off_t offset;
	size_t size;
	struct list_link link; /* in the queue, until it is begun */
	bool begun;
};

/* Of the daemon, under its lock. */
struct pages {
	struct lanes queue;
	uint32_t threads;
	pthread_cond_t ended; /* a thread has */
};

/*
 * Has the page made that @read of @handle asks for, and answered. 0; -EBUSY, which last_error tells
 * of: the user waits for too many; or another error, and it is to be made at once.
 */
int pages_ask(struct daemon *daemon, struct handle *handle, const struct read_request *read);

/* Requests of kind PENDING_PAGE. */
enum pending_end pages_give_up(struct daemon *daemon, struct pending *pending, int err);

/* Waits until no thread runs any more, after all requests were given up. */
void pages_finish(struct daemon *daemon);

#endif
