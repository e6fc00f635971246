/*
 * takeover - going on where a predecessor ended.
 */
#ifndef RATEFS_FS_KEEPER_TAKEOVER_H
#define RATEFS_FS_KEEPER_TAKEOVER_H

#include "fs/mount/daemon.h"

/*
 * Has the kernel send again what was not answered, opens what was open, and does what is asked, in the
 * order in which it was asked first. The session is there, and so is everything else. 0 or -errno.
 */
int takeover(struct daemon *daemon);

#endif
