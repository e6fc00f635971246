/* server - the server's side of the socket, see server.h. */
#include "fs/keeper/server.h"
#include "fs/base/log.h"
#include "fs/keeper/socket.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int report_silence(int err)
{
	log_error("the keeper does not answer: %s", strerror(-err));
	return -1;
}

int server_hear(int control, struct keeper_hello *hello, int *state, int *directory)
{
	int descriptors[KEEPER_FILES];
	int got = keeper_socket_receive(control, hello, sizeof(*hello), descriptors, KEEPER_FILES);

	if (got > 0 && hello->kind == KEEPER_HELLO && hello->version == KEEPER_VERSION) {
		*state = descriptors[0];
		*directory = got == KEEPER_FILES ? descriptors[1] : -1;
		return 0;
	}
	if (got > 0)
		keeper_socket_close(descriptors, (unsigned int)got);
	return report_silence(got < 0 ? got : -EPROTO);
}

int server_tell(int control, enum keeper_message message)
{
	uint32_t kind = message;
	int err = keeper_socket_send(control, &kind, sizeof(kind), NULL, 0);

	return err ? report_silence(err) : 0;
}

void server_follow(const struct keeper_hello *hello)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != hello->pid)
		raise(SIGTERM);
}

int server_ask_mount(int control, struct keeper_mount *mount, int devices[KEEPER_DEVICES])
{
	int count;

	if (server_tell(control, KEEPER_LOADED))
		return -1;
	/* No answer: the keeper has said why it cannot mount. */
	count = keeper_socket_receive(control, mount, sizeof(*mount), devices, KEEPER_DEVICES);
	if (count > 0 && mount->kind == KEEPER_MOUNT && mount->init_bytes <= KEEPER_INIT_MAX)
		return count;
	if (count > 0)
		keeper_socket_close(devices, (unsigned int)count);
	return -1;
}
