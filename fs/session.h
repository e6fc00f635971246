/*
 * session - the mount, and its requests.
 */
#ifndef RATEFS_FS_SESSION_H
#define RATEFS_FS_SESSION_H

#include "fs/daemon.h"

/* Makes the session and mounts it. 0, or the exit status after a message. */
int session_mount(struct daemon *daemon);

/* Receives and answers until the kernel has greeted; -1 when the mount ended before. */
int session_greet(struct daemon *daemon);

/* Does what the request in @buffer, received at @now_ns, asks for. */
void session_process(struct daemon *daemon, const struct fuse_buf *buffer, uint64_t now_ns);

/* Unmounts if that has not happened, and frees the session. */
void session_unmount(struct daemon *daemon);

#endif
