/*
 * metrics - the stats of all limiters in the Prometheus text format, version 0.0.4.
 */
#ifndef RATEFS_FS_MOUNT_METRICS_H
#define RATEFS_FS_MOUNT_METRICS_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

/*
 * The file `metrics`. A page of few limiters is made at once; one of many by a thread (pages.h),
 * which holds the lock for a few limiters at a time, so that no token waits for the page.
 */
extern const struct node_kind METRICS_FILE;

struct page;

/*
 * Makes the text of the whole page for @handle, from malloc, or NULL. @page is its request, which
 * may be given up meanwhile; NULL: it cannot. Locks.
 */
char *metrics_text(struct daemon *daemon, const struct page *page, const struct handle *handle,
		   size_t *length);

#endif
