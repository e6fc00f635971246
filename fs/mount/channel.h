/*
 * channel - the descriptor of the FUSE device by which a request came, and its reply goes.
 *
 * For each reply the kernel looks through the requests that were read from the same descriptor and
 * are unanswered, in 256 chains: with 20,000 readers waiting on one descriptor every other request
 * takes twice as long. So the loop reads in turn from several clones of the descriptor, and each
 * request is answered on the clone it came from. Needs libfuse 3.14; before that there is one.
 */
#ifndef RATEFS_FS_MOUNT_CHANNEL_H
#define RATEFS_FS_MOUNT_CHANNEL_H

#include <stdint.h>

enum { CHANNELS = 16 }; /* at most */

extern _Thread_local uint8_t channel_of_thread; /* the loop's, see loop.c */

/* Returns the channel of the request that this thread received last. */
static inline uint8_t channel_current(void)
{
	return channel_of_thread;
}

/* Has replies of this thread go to requests of @channel from now on. */
static inline void channel_reply_to(uint8_t channel)
{
	channel_of_thread = channel;
}

#endif
