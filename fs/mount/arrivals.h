/*
 * arrivals - requests that were received and wait to be served: users in turn, and those of one
 * user one after the other. So a hundred threads of a user are a few requests ahead of another
 * user, not a hundred.
 *
 * A user whose request kept the thread for long rests for twice that time, if others were served
 * just before, or wait: so slow requests of one user get a third of the thread, however many there
 * are. Where the thread has nothing to do meanwhile rests end. Of two who ask for what takes long
 * neither has the other rest.
 *
 * The kernel sends them again to the successor of a server that is killed, which takes them for
 * requests that the killed one may have done.
 */
#ifndef RATEFS_FS_MOUNT_ARRIVALS_H
#define RATEFS_FS_MOUNT_ARRIVALS_H

#include "core/base/lanes.h"
#include "core/values/quantity.h"

#include <stdbool.h>

/* No more are received than these, or once there are so many bytes of them. */
enum { ARRIVALS_MAX = 1024, ARRIVALS_BYTES = 1 << 24 };

/*
 * A user rests after a request that took so long, by the clock, for RESTS times that, or
 * REST_MOST_NS; until the thread had nothing to do for REST_IDLE_NS.
 */
#define REST_SLOW_NS UINT64_C(40000)
#define REST_MOST_NS UINT64_C(100000000)
#define REST_IDLE_NS UINT64_C(100000)
enum { RESTS = 2 };

/* Others ask if one of their requests, which was not slow, was served so long ago. */
#define REST_OTHERS_NS UINT64_C(2000000)

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
	uint64_t resting; /* a bit for each lane that rests, until: */
	uint64_t rests_until_ns[LANE_COUNT];
	uint64_t served_ns, other_ns; /* the last that was not slow, and that of another lane */
	uint32_t served;	      /* the lane of the last one */
};

static inline bool arrivals_have_room(const struct arrivals *arrivals)
{
	return arrivals->count < ARRIVALS_MAX && arrivals->bytes < ARRIVALS_BYTES;
}

/*
 * Tells whether a request of the kernel's kind @opcode is of the user that it names: one that
 * closes a file or forgets a name is of none.
 */
bool arrivals_are_of_user(uint32_t opcode);

/*
 * Adds a copy of the request in @size @bytes, which came by @channel. An interrupt comes behind the
 * request that it is for. False: it is to be served at once, since it interrupts none of these, is
 * too short for its kind, or there is no memory; or it closes a file or forgets a name: such
 * requests are of no user, those that come later count on them, and some are never sent again.
 */
bool arrivals_add(struct arrivals *arrivals, const void *bytes, size_t size, uint8_t channel);

/*
 * Takes out the request whose turn it is at @now_ns; the caller frees it. NULL: there is none, or
 * its users rest. NEVER_NS takes them all.
 */
struct arrival *arrivals_take(struct arrivals *arrivals, uint64_t now_ns);

/* Returns when the first of those that rest may go on, or NEVER_NS. */
uint64_t arrivals_next_ns(const struct arrivals *arrivals);

/* Has the user @uid rest if others ask: its request took long, from @from_ns to @now_ns. */
void arrivals_rest(struct arrivals *arrivals, uint32_t uid, uint64_t from_ns, uint64_t now_ns);

/* Has nobody rest: the thread has nothing else to do. */
static inline void arrivals_go_on(struct arrivals *arrivals)
{
	arrivals->resting = 0;
}

/* Notes that a request of @uid that was not slow was served at @now_ns. */
static inline void arrivals_served(struct arrivals *arrivals, uint32_t uid, uint64_t now_ns)
{
	uint32_t lane = lanes_number(uid);

	if (lane != arrivals->served)
		arrivals->other_ns = arrivals->served_ns;
	arrivals->served = lane;
	arrivals->served_ns = now_ns;
}

#endif
