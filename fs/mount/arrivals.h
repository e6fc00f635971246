/*
 * arrivals - requests that were received and wait to be served: users in turn, and those of one
 * user one after the other. So a hundred threads of a user are a few requests ahead of another
 * user, not a hundred.
 *
 * The kernel sends them again to the successor of a server that is killed, which takes them for
 * requests that the killed one may have done.
 */
#ifndef RATEFS_FS_MOUNT_ARRIVALS_H
#define RATEFS_FS_MOUNT_ARRIVALS_H

#include "core/base/lanes.h"

#include <stdbool.h>

/* No more are received than these, or once there are so many bytes of them. */
enum { ARRIVALS_MAX = 1024, ARRIVALS_BYTES = 1 << 24 };

/* Set in the unique number of a request that the kernel sends again. */
#define FUSE_RESEND (UINT64_C(1) << 63)

struct arrival {
	struct list_link link;
	uint32_t uid; /* of the lane that it is in */
	uint32_t size;
	uint8_t channel;
	_Alignas(uint64_t) char bytes[]; /* as the kernel wrote them */
};

/* Zeros are none. */
struct arrivals {
	struct lanes lanes;
	uint32_t count;
	size_t bytes;
};

static inline bool arrivals_have_room(const struct arrivals *arrivals)
{
	return arrivals->count < ARRIVALS_MAX && arrivals->bytes < ARRIVALS_BYTES;
}

/*
 * Adds a copy of the request in @size @bytes, which came by @channel. An interrupt comes behind the
 * request that it is for. False: it is to be served at once, since it interrupts none of these, is
 * too short for its kind, or there is no memory; or it closes a file or forgets a name: such
 * requests are of no user, those that come later count on them, and some are never sent again.
 */
bool arrivals_add(struct arrivals *arrivals, const void *bytes, size_t size, uint8_t channel);

/* Takes out the request whose turn it is; the caller frees it. NULL: there is none. */
struct arrival *arrivals_take(struct arrivals *arrivals);

#endif
