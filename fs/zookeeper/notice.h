/*
 * notice - the news of a session with ZooKeeper, collected, and handed over together.
 */
#ifndef RATEFS_FS_ZOOKEEPER_NOTICE_H
#define RATEFS_FS_ZOOKEEPER_NOTICE_H

#include "core/fleet/coordinator.h"

#include <stdint.h>

enum { ZOOKEEPER_NOTICES_MAX = 64 }; /* at once */

enum zookeeper_notice_kind {
	ZOOKEEPER_CONNECTED,	/* and the path is there, if it could be made */
	ZOOKEEPER_DISCONNECTED, /* the session goes on */
	ZOOKEEPER_EXPIRED,	/* the session is gone: nothing is tried until the next open */
	ZOOKEEPER_CHANGED,	/* a watched znode */
	ZOOKEEPER_ANSWERED,
};

struct zookeeper_notice {
	enum zookeeper_notice_kind kind;
	uint32_t opening;	  /* of which open; not for ANSWERED */
	uint64_t session;	  /* CONNECTED: its id */
	struct request *request;  /* ANSWERED */
	char path[NODE_PATH_MAX]; /* CHANGED */
};

/* The thread calls it with all notices there are, in order. It may give orders, but not stop. */
struct zookeeper_receiver {
	void (*receive)(struct zookeeper_receiver *receiver, const struct zookeeper_notice *notices,
			uint32_t count);
};

struct zookeeper_notices {
	struct zookeeper_receiver *receiver; /* borrowed */
	uint32_t opening;		     /* of what is added now */
	uint32_t count;
	struct zookeeper_notice list[ZOOKEEPER_NOTICES_MAX];
};

/* Adds a notice, to be filled in; those before it are handed over if there is no room for more. */
struct zookeeper_notice *zookeeper_notices_add(struct zookeeper_notices *notices,
					       enum zookeeper_notice_kind kind);

/* Hands over all notices. */
void zookeeper_notices_flush(struct zookeeper_notices *notices);

#endif
