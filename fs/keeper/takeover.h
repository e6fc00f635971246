/*
 * takeover - going on where a predecessor ended.
 */
#ifndef RATEFS_FS_KEEPER_TAKEOVER_H
#define RATEFS_FS_KEEPER_TAKEOVER_H

#include "fs/mount/daemon.h"

/*
 * Has the kernel send requests without an answer again, opens the files that were open, and does
 * the requests in the order in which they were made first. Everything else is there. 0 or -errno.
 */
int takeover(struct daemon *daemon);

#endif
