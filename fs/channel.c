/* channel - the descriptors of the FUSE device, see channel.h. */
#include "fs/channel.h"
#include "fs/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHANNELS = 16 };

static struct {
	int descriptors[CHANNELS]; /* the first is the session's */
	unsigned int count;
	unsigned int turn;
} channels;

static _Thread_local uint8_t current;

uint8_t channel_current(void)
{
	return current;
}

void channel_reply_to(uint8_t channel)
{
	current = channel;
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)

static ssize_t receive(int descriptor, void *bytes, size_t size, void *userdata)
{
	(void)descriptor;
	(void)userdata;
	current = (uint8_t)(channels.turn++ % channels.count);
	return read(channels.descriptors[current], bytes, size);
}

static ssize_t reply(int descriptor, struct iovec *parts, int count, void *userdata)
{
	(void)descriptor;
	(void)userdata;
	return writev(channels.descriptors[current], parts, count);
}

/* One more descriptor of the connection of @descriptor, or -1. */
static int clone_descriptor(int descriptor)
{
	uint32_t source = (uint32_t)descriptor;
	int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (clone >= 0 && ioctl(clone, FUSE_DEV_IOC_CLONE, &source)) {
		close(clone);
		clone = -1;
	}
	return clone;
}

void channel_spread(struct fuse_session *session)
{
	static const struct fuse_custom_io io = {.read = receive, .writev = reply};
	int descriptor = fuse_session_fd(session);

	channels.descriptors[0] = descriptor;
	for (channels.count = 1; channels.count < CHANNELS; channels.count++) {
		int clone = clone_descriptor(descriptor);

		if (clone < 0)
			break;
		channels.descriptors[channels.count] = clone;
	}
	if (fuse_session_custom_io(session, &io, descriptor))
		log_warning("requests come by one descriptor: %s", strerror(errno));
}

#else

void channel_spread(struct fuse_session *session)
{
	(void)session;
}

#endif

void channel_close(void)
{
	while (channels.count > 1)
		close(channels.descriptors[--channels.count]);
}
