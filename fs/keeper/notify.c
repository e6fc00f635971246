/* notify - tells a service manager how the daemon is, see notify.h. */
#include "fs/keeper/notify.h"
#include "fs/base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MAX_S = 5 };

/*
 * Sends a datagram to the socket in the environment; a name that begins with @ is an abstract one.
 */
static void notify_manager(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval most = {.tv_sec = WAIT_MAX_S};
	size_t length = name ? strlen(name) : 0;
	int file;

	if (!length)
		return;
	if (length >= sizeof(address.sun_path)) {
		log_warning("cannot notify '%s': the name is too long", name);
		return;
	}
	memcpy(address.sun_path, name, length);
	if (*name == '@')
		address.sun_path[0] = '\0';
	file = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (file < 0 || setsockopt(file, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) ||
	    TEMP_FAILURE_RETRY(sendto(
		    file, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length))) < 0)
		log_warning("cannot notify '%s': %s", name, strerror(errno));
	if (file >= 0)
		close(file);
}

void notify_ready(void)
{
	notify_manager("READY=1");
}

void notify_stopping(void)
{
	notify_manager("STOPPING=1");
}
