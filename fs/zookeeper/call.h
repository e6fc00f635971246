/*
 * call - one request of coordinator.h as a call of ZooKeeper's library, and back.
 *
 * All in the thread that runs the library. An answer is definite only if the server gave it: whatever
 * else the library says of a request, with the connection or without, makes it ANSWER_UNKNOWN.
 */
#ifndef RATEFS_FS_ZOOKEEPER_CALL_H
#define RATEFS_FS_ZOOKEEPER_CALL_H

#include "core/fleet/coordinator.h"

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

struct call;

/* The calls of one handle. What it calls back may be called from within calls of the library. */
struct calls {
	zhandle_t *handle; /* borrowed */
	const char *path;  /* borrowed; put before that of each node; empty for the root */
	const struct ACL_vector *acl; /* borrowed; of nodes that are made */
	struct call *first, **end;    /* that the library has, oldest first */
	int refused;		      /* of calls_prepare(): the code of the node before */

	/* The connection may be lost: calls_give_up() then, before the library ends them one by one. */
	void (*check)(struct calls *calls);
	/* @request is the fleet's again. */
	void (*answered)(struct calls *calls, struct request *request);
	/* The node that was watched changed; @path as the fleet knows it. */
	void (*changed)(struct calls *calls, const char *path);
	/* The path is there, or will not be: a code of the library. */
	void (*prepared)(struct calls *calls, int code);
};

/* Without calls; the rest is filled in by the caller. */
void calls_init(struct calls *calls);

/* Sends @request, or answers it at once. */
void calls_send(struct calls *calls, struct request *request);

/* Makes the nodes of the path, those that are missing. 0, or -ENOMEM or -EIO. */
int calls_prepare(struct calls *calls);

/* Answers what is not answered yet with ANSWER_UNKNOWN; what the library says of it later is lost. */
void calls_give_up(struct calls *calls);

/* Frees what the library never ended. The handle is closed. */
void calls_free(struct calls *calls);

/* The answer that a code of the library is. */
enum answer calls_answer(int code);

/* The rest is for the files that make calls. */

struct call {
	struct calls *calls;
	struct call *next,
		**back;		 /* those that the library has: where the one before points here */
	struct request *request; /* NULL: answered, or part of calls_prepare() */
	bool given_up;
	bool is_last;		  /* of calls_prepare() */
	bool has_set;		  /* TRANSACTION */
	struct Stat stat;	  /* TRANSACTION: of the first SET */
	zoo_op_t *operations;	  /* TRANSACTION: owned */
	zoo_op_result_t *results; /* TRANSACTION: owned */
	char text[];		  /* paths as the servers know them */
};

/* A call with room for @text_size bytes of text; NULL when there is no memory. */
struct call *call_make(struct calls *calls, struct request *request, size_t text_size);
void call_drop(struct call *call);

/*
 * The library ends @call: its request, if it still is to be answered. A connection that was lost is
 * noticed first, so that whoever is answered knows.
 */
struct request *call_end(struct call *call, int code);

void call_answer(struct calls *calls, struct request *request, enum answer outcome);

/* Whether the library and the servers take @path; it may end with a slash if a number is added. */
bool call_takes_path(const char *path, bool sequential);

/* Puts the servers' path of the node at @path to @text; where the text ends. And bytes for it. */
char *call_write_path(const struct calls *calls, const char *path, char *text);
size_t call_path_size(const struct calls *calls, const char *path);

/* The path as the fleet knows it, of the servers' @path; NULL if it is not below theirs. */
const char *call_relative(const struct calls *calls, const char *path);

/* A code of the library. */
int call_send_transaction(struct calls *calls, struct request *request);

#endif
