/*
 * session - the mount, and the thread that receives its requests.
 */
#ifndef RATEFS_FS_SESSION_H
#define RATEFS_FS_SESSION_H

#include "fs/daemon.h"

/* Makes the session and mounts it. 0, or the exit status after a message. */
int session_mount(struct daemon *daemon);

/* Receives and answers until the kernel has greeted; -1 when the mount ended before. */
int session_greet(struct daemon *daemon);

/* Starts the receiver; @ended is an eventfd to be written when the mount has ended. 0 or -errno. */
int session_start(struct daemon *daemon, int ended);

/* Unmounts and frees a session that was not started. */
void session_drop(struct daemon *daemon);

/* Unmounts if that has not happened, stops the receiver and frees the session. */
void session_end(struct daemon *daemon);

#endif
