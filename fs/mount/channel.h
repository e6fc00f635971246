/*
 * channel - the descriptors of the FUSE device, read in turn.
 *
 * For each reply the kernel looks through the requests that were read from the same descriptor and
 * are unanswered, in 256 chains: with 20,000 readers waiting on one descriptor every other request
 * takes twice as long. So requests are spread over several clones of the descriptor, and each is
 * answered on the clone it came from. Needs libfuse 3.14; before that there is one descriptor.
 */
#ifndef RATEFS_FS_MOUNT_CHANNEL_H
#define RATEFS_FS_MOUNT_CHANNEL_H

#include <fuse_lowlevel.h>
#include <stdint.h>

enum { CHANNELS = 16 };

/*
 * Fills @descriptors, at most @most (up to CHANNELS), with @descriptor and clones of it. Returns
 * how many there are.
 */
unsigned int channel_open(int descriptor, int *descriptors, unsigned int most);

/* Spreads the requests of @session, which is mounted, over @descriptors; its own is the first. */
void channel_adopt(struct fuse_session *session, const int *descriptors, unsigned int count);

/* Closes all but the first, which is the session's. */
void channel_close(void);

extern _Thread_local uint8_t channel_of_thread;

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
