/*
 * loop - one thread that receives requests, and wakes for what is due and for signals.
 */
#ifndef RATEFS_FS_MOUNT_LOOP_H
#define RATEFS_FS_MOUNT_LOOP_H

#include "fs/mount/daemon.h"

/* Takes over signals and makes the timer, in the process that will run the loop. 0 or -errno. */
int loop_init(void);

/* Has the loop call daemon_run() at @at_ns (CLOCK_BOOTTIME; NEVER_NS: not at all). */
void loop_wake_at(uint64_t at_ns);

/* Whether a signal has asked for the end, before or while the loop runs. */
bool loop_is_ending(void);

/* Whether SIGHUP has asked for another server in the place of this one. */
bool loop_is_replaced(void);

/* Serves requests until a signal asks for the end or the mount has ended. */
void loop_run(struct daemon *daemon);

#endif
