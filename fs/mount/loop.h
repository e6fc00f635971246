/*
 * loop - one thread that receives requests, and wakes for what is due and for signals (wake.h).
 */
#ifndef RATEFS_FS_MOUNT_LOOP_H
#define RATEFS_FS_MOUNT_LOOP_H

#include "fs/mount/daemon.h"

/* Serves requests until a signal asks for the end or the mount has ended. */
void loop_run(struct daemon *daemon);

#endif
