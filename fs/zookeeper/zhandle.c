/* zhandle - the handle of a session in ZooKeeper's library, see zhandle.h. */
#include "fs/zookeeper/zhandle.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { DROP_STEPS_MAX = 1000 }; /* messages that had arrived */

_Thread_local char zhandle_message[ZOOKEEPER_MESSAGE_TEXT];

/* Keeps the text of a message "TIME:PID:LEVEL@FUNCTION@LINE: TEXT". */
static void on_log(const char *message)
{
	const char *text = strrchr(message, '@');

	text = text ? strchr(text, ' ') : NULL;
	snprintf(zhandle_message, sizeof(zhandle_message), "%s", text ? text + 1 : message);
}

/*
 * Ignores events: the state is looked at after each call, and watches have functions of their own.
 */
static void ignore_event(zhandle_t *zhandle, int type, int state, const char *path, void *context)
{
	(void)zhandle;
	(void)type;
	(void)state;
	(void)path;
	(void)context;
}

zhandle_t *zhandle_open(const char *address, int timeout_ms, const char *credentials,
			const clientid_t *session)
{
	zhandle_t *zhandle;

	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	zhandle = zookeeper_init2(address, ignore_event, timeout_ms, session, NULL,
				  ZOO_NO_LOG_CLIENTENV, on_log);
	if (!zhandle)
		return NULL;
	zoo_set_servers_resolution_delay(zhandle, -1);
	if (!credentials || zoo_add_auth(zhandle, "digest", credentials, (int)strlen(credentials),
					 NULL, NULL) == ZOK)
		return zhandle;
	zookeeper_close(zhandle);
	return NULL;
}

int zhandle_aim(zhandle_t *zhandle, const char *address)
{
	/*
	 * Servers that differ in their ports alone are the same to it: an unused address in
	 * between.
	 */
	return zoo_set_servers(zhandle, "255.255.255.255:1") == ZOK &&
			       zoo_set_servers(zhandle, address) == ZOK
		       ? 0
		       : -1;
}

bool zhandle_has_socket(zhandle_t *zhandle)
{
	int state = zoo_state(zhandle);

	return state == ZOO_CONNECTED_STATE || state == ZOO_CONNECTING_STATE ||
	       state == ZOO_ASSOCIATING_STATE;
}

void zhandle_drop(zhandle_t *zhandle, int fd)
{
	int steps = 0;

	if (!zhandle_has_socket(zhandle))
		return; /* the descriptor is somebody else's by now */
	shutdown(fd, SHUT_RDWR);
	while (zookeeper_process(zhandle, ZOOKEEPER_READ | ZOOKEEPER_WRITE) == ZOK &&
	       steps++ < DROP_STEPS_MAX)
		;
}

void zhandle_discard(zhandle_t *zhandle)
{
	struct timeval wait;
	int fd = -1, interest;

	if (zookeeper_interest(zhandle, &fd, &interest, &wait) == ZOK)
		zhandle_drop(zhandle, fd);
}
