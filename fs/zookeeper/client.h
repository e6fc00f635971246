/*
 * client - a session with ZooKeeper, in a thread of its own.
 *
 * ZooKeeper's library blocks when it closes a session, and has to be called often; so one thread
 * runs it and does nothing else. Orders reach that thread through a queue, and it hands notices to
 * a receiver. Nothing else is shared.
 */
#ifndef RATEFS_FS_ZOOKEEPER_CLIENT_H
#define RATEFS_FS_ZOOKEEPER_CLIENT_H

#include "fs/zookeeper/notice.h"

#include <stdbool.h>

struct addresses;
struct zookeeper_client;
struct zookeeper_handover;

/*
 * Makes a client. @addresses become its own, even if that fails. All paths are below @path, empty
 * or /NAME..., which is copied. @credentials, USER:PASSWORD or NULL, is copied; with it znodes are
 * its user's only. @handover is borrowed: the session for a successor, or NULL. NULL when there is
 * no memory.
 */
struct zookeeper_client *zookeeper_client_new(struct addresses *addresses, const char *path,
					      const char *credentials,
					      struct zookeeper_handover *handover,
					      struct zookeeper_receiver *receiver);

/* Starts the thread. 0 or -errno. */
int zookeeper_client_start(struct zookeeper_client *client);

/*
 * Ends the session and the thread, within 5 s; every request is answered by then, and none may be
 * sent any more.
 */
void zookeeper_client_stop(struct zookeeper_client *client);
void zookeeper_client_free(struct zookeeper_client *client);

/*
 * Never block. coordinator.h says what they do; zookeeper_client_resume() resumes the session of
 * the handover.
 */
void zookeeper_client_open(struct zookeeper_client *client, uint64_t timeout_ns);
void zookeeper_client_resume(struct zookeeper_client *client, uint64_t timeout_ns);
void zookeeper_client_close(struct zookeeper_client *client);
void zookeeper_client_send(struct zookeeper_client *client, struct request *request);
void zookeeper_client_hang_up(struct zookeeper_client *client);

/* Tells whether events of @opening still count: nothing was opened or closed since. */
bool zookeeper_client_is_current(struct zookeeper_client *client, uint32_t opening);

#endif
