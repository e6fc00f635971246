/*
 * channel - the descriptors of the FUSE device, read in turn.
 *
 * For each reply the kernel looks through the requests that were read from the same descriptor and
 * are unanswered, in 256 chains: with 20,000 readers waiting on one descriptor every other request
 * takes twice as long. So the requests are spread over several clones of it, and each is answered on
 * the one it came from. Needs libfuse 3.14; before that there is one descriptor.
 */
#ifndef RATEFS_FS_CHANNEL_H
#define RATEFS_FS_CHANNEL_H

#include <fuse_lowlevel.h>
#include <stdint.h>

/*
 * Spreads the requests of @session, which is mounted and has been greeted. Where that is not
 * possible the session goes on with its one descriptor.
 */
void channel_spread(struct fuse_session *session);

/* Closes what channel_spread() opened. */
void channel_close(void);

/* The channel of the request that this thread received last, to be kept with it. */
uint8_t channel_current(void);

/* What this thread replies from now on belongs to a request of @channel. */
void channel_reply_to(uint8_t channel);

#endif
