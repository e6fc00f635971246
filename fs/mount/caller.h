/*
 * caller - the maker of a request of the kernel, and the request itself.
 *
 * The loop fills it in when it receives the request, and each operation passes it on. It is valid
 * until the next request is received: a request that waits copies the members it needs.
 */
#ifndef RATEFS_FS_MOUNT_CALLER_H
#define RATEFS_FS_MOUNT_CALLER_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

struct caller {
	fuse_req_t request;
	uint64_t unique; /* number of the request, without FUSE_UNIQUE_RESEND */
	uint64_t at_ns;	 /* CLOCK_BOOTTIME when it was received */
	uint64_t poll;	 /* of a poll: the kernel's number of the poller */
	uint32_t uid, gid;
	uint32_t pid; /* of the thread; 0: of another process namespace */
	bool again;   /* a predecessor had the request, and did not answer */
};

#endif
