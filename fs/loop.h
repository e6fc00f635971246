/*
 * loop - what happens besides requests: time, signals, and the end of the mount.
 */
#ifndef RATEFS_FS_LOOP_H
#define RATEFS_FS_LOOP_H

#include "fs/daemon.h"

/* Keeps the signals that end the daemon for the loop; before any thread starts. 0 or -errno. */
int loop_block_signals(void);

/* Runs until a signal asks for the end, or @ended (an eventfd) says that the mount has. 0 or -errno. */
int loop_run(struct daemon *daemon, int ended);

#endif
