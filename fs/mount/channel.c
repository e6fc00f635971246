/* channel - the descriptors of the FUSE device, see channel.h. */
#include "fs/mount/channel.h"
#include "fs/base/log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
	int descriptors[CHANNELS]; /* the first is the session's */
	unsigned int count;
	unsigned int turn;
} channels;

_Thread_local uint8_t channel_of_thread;

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)

/*
 * Returns memory for a request of @size bytes that is not swapped out, or NULL. A killed process
 * gets no page any more: where the memory for a request has to be paged in, the request that is
 * handed to a killed server fails with EIO, and reaches no successor.
 */
static void *locked_memory(size_t size)
{
	static void *memory;
	static size_t memory_size;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;

	if (size <= memory_size)
		return memory;
	if (memory)
		munmap(memory, memory_size);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_LOCKED, -1, 0);
	if (memory == MAP_FAILED) {
		log_info("memory for requests may be swapped out: %s", strerror(errno));
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	}
	if (memory == MAP_FAILED)
		memory = NULL;
	memory_size = memory ? size : 0;
	return memory;
}

static ssize_t receive_request(int descriptor, void *bytes, size_t size, void *userdata)
{
	void *memory = locked_memory(size);
	ssize_t length;

	(void)descriptor;
	(void)userdata;
	channel_of_thread = (uint8_t)(channels.turn++ % channels.count);
	length = read(channels.descriptors[channel_of_thread], memory ? memory : bytes, size);
	if (memory && length > 0)
		memcpy(bytes, memory, (size_t)length);
	return length;
}

static ssize_t send_reply(int descriptor, struct iovec *parts, int count, void *userdata)
{
	(void)descriptor;
	(void)userdata;
	return writev(channels.descriptors[channel_of_thread], parts, count);
}

/* Opens one more descriptor of the connection of @descriptor, or -1. */
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

void channel_adopt(struct fuse_session *session, const int *descriptors, unsigned int count)
{
	static const struct fuse_custom_io io = {.read = receive_request, .writev = send_reply};

	assert(count && count <= CHANNELS);
	memcpy(channels.descriptors, descriptors, count * sizeof(*descriptors));
	channels.count = count;
	if (fuse_session_custom_io(session, &io, descriptors[0]))
		log_warning("requests come by one descriptor: %s", strerror(errno));
}

unsigned int channel_open(int descriptor, int *descriptors, unsigned int most)
{
	unsigned int count = 1;

	descriptors[0] = descriptor;
	while (count < most && (descriptors[count] = clone_descriptor(descriptor)) >= 0)
		count++;
	return count;
}

#else

void channel_adopt(struct fuse_session *session, const int *descriptors, unsigned int count)
{
	(void)session;
	(void)descriptors;
	(void)count;
}

unsigned int channel_open(int descriptor, int *descriptors, unsigned int most)
{
	(void)most;
	descriptors[0] = descriptor;
	return 1;
}

#endif

void channel_close(void)
{
	while (channels.count > 1)
		close(channels.descriptors[--channels.count]);
}
