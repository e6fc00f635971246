/*
 * zhandle - the handle of a session in ZooKeeper's library, and ways around its faults.
 */
#ifndef RATEFS_FS_ZOOKEEPER_HANDLE_H
#define RATEFS_FS_ZOOKEEPER_HANDLE_H

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

enum { ZOOKEEPER_MESSAGE_TEXT = 200 };

/* The last error message of the library in this thread; it does not tell of which zhandle. */
extern _Thread_local char zhandle_message[ZOOKEEPER_MESSAGE_TEXT];

/*
 * Opens a zhandle for the one server at @address, ADDRESS:PORT in numbers: the library looks names
 * up each time it is asked, and takes two steps at a time through several servers, so that of an
 * even number it never tries one half. @credentials: USER:PASSWORD, or NULL. @session: to go on
 * with, or NULL. NULL when it cannot be made.
 */
zhandle_t *zhandle_open(const char *address, int timeout_ms, const char *credentials,
			const clientid_t *session);

/* Has the next connection go to @address. 0 or -1. While there is no connection. */
int zhandle_aim(zhandle_t *zhandle, const char *address);

/* Tells whether there is a connection, or one is being made. */
bool zhandle_has_socket(zhandle_t *zhandle);

/*
 * Shuts the connection down, whose descriptor is @fd, and has the library notice: answers that have
 * arrived count, and all other requests come back. Not within a call of the library.
 */
void zhandle_drop(zhandle_t *zhandle, int fd);

/*
 * Drops all that is left of a send that failed. After it, which only the state
 * ZOO_NOTCONNECTED_STATE tells of, the library would send everything again on the next connection,
 * from the middle of a message if need be, and take answers for those of other requests. It forgets
 * all that by a connection that is given up at once.
 */
void zhandle_discard(zhandle_t *zhandle);

#endif
