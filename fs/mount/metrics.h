/*
 * metrics - every stat of every limiter in the Prometheus text format, version 0.0.4.
 */
#ifndef RATEFS_FS_MOUNT_METRICS_H
#define RATEFS_FS_MOUNT_METRICS_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

/*
 * The file `metrics`. A page of few limiters is made at once; one of many by a thread of its own,
 * which holds the lock for a few limiters at a time, so that no token waits for the page.
 */
extern const struct node_kind METRICS_FILE;

/* Requests of kind PENDING_PAGE. */
enum pending_end metrics_give_up(struct daemon *daemon, struct pending *pending, int err);

/* Waits until no such thread runs any more. */
void metrics_finish(struct daemon *daemon);

#endif
