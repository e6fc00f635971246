/* handle - see handle.h. */
#include "fs/zookeeper/handle.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { DROP_STEPS_MAX = 1000 }; /* messages that had arrived */

_Thread_local char zookeeper_handle_message[ZOOKEEPER_MESSAGE_TEXT];

/* Keeps the text of a message "TIME:PID:LEVEL@FUNCTION@LINE: TEXT". */
static void on_log(const char *message)
{
	const char *text = strrchr(message, '@');

	text = text ? strchr(text, ' ') : NULL;
	snprintf(zookeeper_handle_message, sizeof(zookeeper_handle_message), "%s",
		 text ? text + 1 : message);
}

/*
 * Ignores events: the state is looked at after each call, and watches have functions of their own.
 */
static void ignore_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
	(void)handle;
	(void)type;
	(void)state;
	(void)path;
	(void)context;
}

zhandle_t *zookeeper_handle_open(const char *address, int timeout_ms, const char *credentials,
				 const clientid_t *session)
{
	zhandle_t *handle;

	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	handle = zookeeper_init2(address, ignore_event, timeout_ms, session, NULL,
				 ZOO_NO_LOG_CLIENTENV, on_log);
	if (!handle)
		return NULL;
	zoo_set_servers_resolution_delay(handle, -1);
	if (!credentials || zoo_add_auth(handle, "digest", credentials, (int)strlen(credentials),
					 NULL, NULL) == ZOK)
		return handle;
	zookeeper_close(handle);
	return NULL;
}

int zookeeper_handle_aim(zhandle_t *handle, const char *address)
{
	/*
	 * Servers that differ in their ports alone are the same to it: an unused address in
	 * between.
	 */
	return zoo_set_servers(handle, "255.255.255.255:1") == ZOK &&
			       zoo_set_servers(handle, address) == ZOK
		       ? 0
		       : -1;
}

bool zookeeper_handle_has_socket(zhandle_t *handle)
{
	int state = zoo_state(handle);

	return state == ZOO_CONNECTED_STATE || state == ZOO_CONNECTING_STATE ||
	       state == ZOO_ASSOCIATING_STATE;
}

void zookeeper_handle_drop(zhandle_t *handle, int fd)
{
	int steps = 0;

	if (!zookeeper_handle_has_socket(handle))
		return; /* the descriptor is somebody else's by now */
	shutdown(fd, SHUT_RDWR);
	while (zookeeper_process(handle, ZOOKEEPER_READ | ZOOKEEPER_WRITE) == ZOK &&
	       steps++ < DROP_STEPS_MAX)
		;
}

void zookeeper_handle_discard(zhandle_t *handle)
{
	struct timeval wait;
	int fd = -1, interest;

	if (zookeeper_interest(handle, &fd, &interest, &wait) == ZOK)
		zookeeper_handle_drop(handle, fd);
}
