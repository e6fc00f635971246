/* socket - messages with descriptors between keeper and server. */
#include "fs/keeper/socket.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int keeper_socket_send(int control, const void *bytes, size_t size, const int *descriptors,
		       unsigned int count)
{
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SOCKET_DESCRIPTORS_MAX)];
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

void keeper_socket_close(const int *descriptors, unsigned int count)
{
	while (count)
		close(descriptors[--count]);
}

int keeper_socket_receive(int control, void *bytes, size_t size, int *descriptors,
			  unsigned int most)
{
	struct iovec part = {bytes, size};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SOCKET_DESCRIPTORS_MAX)];
		struct cmsghdr align;
	} room = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room.bytes,
				 .msg_controllen = sizeof(room)};
	int got_descriptors[SOCKET_DESCRIPTORS_MAX];
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
		memcpy(got_descriptors, CMSG_DATA(header), sizeof(int) * count);
	}
	/* Some may be missing, of a process that has as many open as it may have. */
	if (message.msg_flags & MSG_CTRUNC)
		got = (ssize_t)size + 1;
	kept = (size_t)got != size ? 0 : count < most ? count : most;
	if (kept)
		memcpy(descriptors, got_descriptors, sizeof(int) * kept);
	keeper_socket_close(got_descriptors + kept, count - kept);
	if (!got)
		return -EPIPE;
	return (size_t)got == size ? (int)kept : -EPROTO;
}
