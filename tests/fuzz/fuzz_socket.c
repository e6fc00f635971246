/*
 * fuzz_socket - any messages with descriptors on the socket between keeper and server, as the
 * server hears them: taken whole or refused, and no descriptor is left open.
 */
#include "fuzz.h"

#include "fs/base/log.h"
#include "fs/keeper/server.h"
#include "fs/keeper/socket.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGES_MAX = 4, HEAD = 3 };

/* How many descriptors are open. */
static int open_descriptors(void)
{
	enum { HIGHEST = 128 };
	int count = 0;

	for (int descriptor = 0; descriptor < HIGHEST; descriptor++)
		count += fcntl(descriptor, F_GETFD) >= 0;
	return count;
}

/*
 * Sends a message as told by @input: a byte for the number of descriptors, two for the size, and
 * the bytes.
 */
static size_t say(int control, const uint8_t *input, size_t size)
{
	static uint8_t bytes[UINT16_MAX];
	int descriptors[KEEPER_DEVICES];
	unsigned int count = input[0] % (KEEPER_DEVICES + 1);
	size_t length = input[1] | (size_t)input[2] << 8, given = size - HEAD;

	for (unsigned int i = 0; i < count; i++)
		descriptors[i] = STDIN_FILENO;
	given = given < length ? given : length;
	memset(bytes, 0, length);
	memcpy(bytes, input + HEAD, given);
	FUZZ_CHECK(!keeper_socket_send(control, bytes, length, descriptors, count));
	return HEAD + given;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct keeper_hello hello;
	struct keeper_mount mount;
	int sockets[2], devices[KEEPER_DEVICES], state = -1, directory = -1,
						 before = open_descriptors(), count;

	log_set_level(LOG_LEVEL_ERROR);
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets));
	for (int i = 0; i < MESSAGES_MAX && size >= HEAD; i++) {
		size_t used = say(sockets[0], input, size);

		input += used;
		size -= used;
	}
	shutdown(sockets[0], SHUT_WR);
	if (!server_hear(sockets[1], &hello, &state, &directory)) {
		FUZZ_CHECK(hello.kind == KEEPER_HELLO && hello.version == KEEPER_VERSION);
		FUZZ_CHECK(state >= 0);
		close(state);
		if (directory >= 0)
			close(directory);
	}
	count = server_ask_mount(sockets[1], &mount, devices);
	FUZZ_CHECK(count <= KEEPER_DEVICES);
	for (int i = 0; i < count; i++)
		close(devices[i]);
	if (count > 0)
		FUZZ_CHECK(mount.kind == KEEPER_MOUNT && mount.init_bytes <= KEEPER_INIT_MAX);
	close(sockets[0]);
	close(sockets[1]);
	FUZZ_CHECK(open_descriptors() == before);
	return 0;
}
