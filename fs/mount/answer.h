/*
 * answer - what comes of steps of the engine: readers, followers, writers and pollers are told.
 */
#ifndef RATEFS_FS_MOUNT_ANSWER_H
#define RATEFS_FS_MOUNT_ANSWER_H

#include "fs/mount/daemon.h"

/* Takes what is done off the pending requests, and tells pollers. Under the lock. */
struct pending *answers_collect(struct daemon *daemon);

/* Answers what was collected, and frees it. Without the lock. */
void answers_send(struct daemon *daemon, struct pending *pending);

#endif
