/*
 * request - what an operation needs of its request: the daemon, and the caller.
 */
#ifndef RATEFS_FS_MOUNT_REQUEST_H
#define RATEFS_FS_MOUNT_REQUEST_H

#include "fs/mount/daemon.h"

static inline struct daemon *request_daemon(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

/* Finds the caller of @request, which the loop received last. */
static inline const struct caller *request_caller(fuse_req_t request)
{
	struct caller *caller = &request_daemon(request)->caller;

	caller->request = request;
	return caller;
}

#endif
