/*
 * call - one request of coordinator.h as a call of ZooKeeper's library, and back.
 *
 * All in the thread that runs the library. An answer is definite only if the server gave it:
 * whatever else the library says of a request, with the connection or without, makes it
 * ANSWER_UNKNOWN.
 */
#ifndef RATEFS_FS_ZOOKEEPER_CALL_H
#define RATEFS_FS_ZOOKEEPER_CALL_H

#include "core/fleet/coordinator.h"

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

struct call;

/* The calls of one zhandle. Its callbacks may be called from within calls of the library. */
struct calls {
	zhandle_t *zhandle; /* borrowed */
	const char *path;   /* borrowed; put before that of each znode; empty for the root */
	const struct ACL_vector *acl; /* borrowed; of znodes that are made */
	struct call *first, **end;    /* that the library has, oldest first */
	int refused;		      /* of calls_prepare(): the code of the znode before */

	/*
	 * The connection may be lost: calls_give_up() then, before the library ends them one by
	 * one.
	 */
	void (*check)(struct calls *calls);
	/* @request is the fleet's again. */
	void (*answered)(struct calls *calls, struct request *request);
	/* A znode that was watched changed; @path as the fleet knows it. */
	void (*changed)(struct calls *calls, const char *path);
	/* The path is there, or will not be: a code of the library. */
	void (*prepared)(struct calls *calls, int code);
};

/* Makes @calls empty; the rest is filled in by the user. */
void calls_init(struct calls *calls);

/* Sends @request, or answers it at once. */
void calls_send(struct calls *calls, struct request *request);

/* Makes the znodes of the path, those that are missing. 0, or -ENOMEM or -EIO. */
int calls_prepare(struct calls *calls);

/*
 * Answers all open requests with ANSWER_UNKNOWN; later words of the library about them are lost.
 */
void calls_give_up(struct calls *calls);

/* Frees the calls that the library never ended. The zhandle is closed. */
void calls_free(struct calls *calls);

/* Returns the answer that a code of the library is. */
enum answer calls_answer(int code);

#endif
