/*
 * loop - one thread that receives requests, and wakes for what is due and for signals (wake.h).
 */
#ifndef RATEFS_FS_MOUNT_LOOP_H
#define RATEFS_FS_MOUNT_LOOP_H

#include "fs/mount/daemon.h"

/*
 * Spreads the requests of @session, which is mounted, over @count @descriptors (1 to CHANNELS);
 * its own is the first. The others are the loop's, until loop_close().
 */
void loop_adopt(struct fuse_session *session, const int *descriptors, unsigned int count);
void loop_close(void);

/* Does the request in @buffer, received at @now_ns. */
void loop_process(struct daemon *daemon, const struct fuse_buf *buffer, uint64_t now_ns);

/*
 * Serves requests until a signal asks for the end or the mount has ended. If the keeper asks
 * whether this goes on, @answer(@what) is called.
 */
void loop_run(struct daemon *daemon, void (*answer)(void *what), void *what);

#endif
