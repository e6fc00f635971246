/* socket - messages with descriptors between keeper and server, and the server's side. */
#include "fs/keeper/socket.h"
#include "fs/base/log.h"
#include "fs/keeper/keeper.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int keeper_socket_send(int control, const void *bytes, size_t size, const int *descriptors,
		       unsigned int count)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * KEEPER_DEVICES)];
		struct cmsghdr align;
	} room = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *header;
	ssize_t sent;

	if (count) {
		message.msg_control = room.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
	}
	do
		sent = sendmsg(control, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void close_all(const int *descriptors, unsigned int count)
{
	while (count)
		close(descriptors[--count]);
}

int keeper_socket_receive(int control, void *bytes, size_t size, int *descriptors,
			  unsigned int most)
{
	struct iovec part = {bytes, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * KEEPER_DEVICES)];
		struct cmsghdr align;
	} room = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room.bytes,
				 .msg_controllen = sizeof(room)};
	int received[KEEPER_DEVICES];
	struct cmsghdr *header;
	unsigned int count = 0, kept;
	ssize_t got;

	do
		got = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS) {
		count = (unsigned int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(received, CMSG_DATA(header), sizeof(int) * count);
	}
	kept = (size_t)got != size ? 0 : count < most ? count : most;
	if (kept)
		memcpy(descriptors, received, sizeof(int) * kept);
	close_all(received + kept, count - kept);
	if (!got)
		return -EPIPE;
	return (size_t)got == size ? (int)kept : -EPROTO;
}

static int broken(int err)
{
	log_error("the keeper does not answer: %s", strerror(-err));
	return -1;
}

int keeper_hear(int control, struct keeper_hello *hello, int *state)
{
	int got = keeper_socket_receive(control, hello, sizeof(*hello), state, 1);

	if (got == 1 && hello->kind == KEEPER_HELLO && hello->version == KEEPER_VERSION)
		return 0;
	if (got == 1)
		close(*state);
	return broken(got < 0 ? got : -EPROTO);
}

int keeper_tell(int control, enum keeper_message message)
{
	uint32_t kind = message;
	int err = keeper_socket_send(control, &kind, sizeof(kind), NULL, 0);

	return err ? broken(err) : 0;
}

void keeper_follow(const struct keeper_hello *hello)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != hello->pid)
		raise(SIGTERM);
}

int keeper_ask_mount(int control, struct keeper_mount *mount, int devices[KEEPER_DEVICES])
{
	int count;

	if (keeper_tell(control, KEEPER_LOADED))
		return -1;
	/* No answer: the keeper has said why it cannot mount. */
	count = keeper_socket_receive(control, mount, sizeof(*mount), devices, KEEPER_DEVICES);
	if (count > 0 && mount->kind == KEEPER_MOUNT && mount->init_bytes <= KEEPER_INIT_MAX)
		return count;
	if (count > 0)
		close_all(devices, (unsigned int)count);
	return -1;
}
