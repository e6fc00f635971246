/*
 * metrics - every stat of every limiter in the Prometheus text format, version 0.0.4.
 */
#ifndef RATEFS_FS_MOUNT_METRICS_H
#define RATEFS_FS_MOUNT_METRICS_H

#include "fs/mount/handle.h"

/*
 * Answers a read of `metrics`. A page of few limiters is made at once; one of many by a thread of its
 * own, which holds the lock for a few limiters at a time, so that no token waits for the page.
 */
void read_metrics(struct daemon *daemon, struct handle *handle, const struct read_request *read);

/* Waits until no such thread runs any more. */
void metrics_finish(struct daemon *daemon);

#endif
