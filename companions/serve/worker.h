/*
 * worker - a thread that serves a part of the connections: HTTP by libmicrohttpd, and the files
 * that its requests wait for.
 *
 * - A worker shares nothing with the others. It never waits but in epoll_wait(2), and for the
 *   answer of the mount to a read that does not block.
 * - Of its connections CONNECTIONS_MAX at most are open. A new one that is too many takes the place
 *   of the connection that has been longest without a whole request: slow and idle clients are in
 *   nobody's way.
 * - Of these half at most have a request that lasts (request_hold()).
 */
#ifndef RATEFS_COMPANIONS_SERVE_WORKER_H
#define RATEFS_COMPANIONS_SERVE_WORKER_H

#include "companions/serve/batch.h"
#include "companions/serve/held.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
	BODY_MAX = 4095,	  /* bytes, as a write to a file of ratefs */
	HEADERS_MAX = 16384,	  /* likewise, of header fields that become feedback */
	CONNECTION_BYTES = 16384, /* of memory for the header fields of a request */
	CONNECTION_IDLE_S = 75,	  /* without a byte from the client */
	CONNECTIONS_MAX = 4096,	  /* of a worker */
	ANSWERS_FIT = 16,	  /* in a socket that poll(2) has room for */
};

struct route;
struct worker;

/* Something that epoll_wait(2) tells of. */
struct watch {
	void (*ready)(struct worker *worker, struct watch *watch, uint32_t events);
};

struct connection {
	struct list_link link; /* in worker->idle, unless its request lasts */
	struct worker *worker;
	struct MHD_Connection *mhd;
	int socket;
	unsigned int room; /* answers of take for which there is room in the socket for certain */
	bool lasts;
};

/*
 * A request that waits for a file, or for room in its socket, while its connection is suspended.
 */
struct wait {
	struct watch file_ready, client_gone;
	struct list_link link; /* in worker->waits */
	int file;	       /* -1: the wait is over, or it is one for room */
	uint64_t until_ns;
};

enum stage {
	STAGE_BEGIN,
	STAGE_BODY,
	STAGE_BLOCKED,	/* waits for room in its socket; then it is STAGE_BODY again */
	STAGE_TOGETHER, /* in a batch */
	STAGE_ALONE,	/* the batch had no token for it */
	STAGE_WAITING,
	STAGE_DECIDED,
};

struct request {
	struct connection *connection;
	const struct route *route;
	const char *rest; /* of the URI behind the route's path; in @uri */
	const char *host; /* that the URI names, in @uri; NULL: none, so that Host counts */
	enum stage stage;
	struct wait wait;
	struct batch *batch; /* NULL: none */
	struct list_link batch_link;
	int outcome;	  /* of the wait or the batch: 0 or -errno */
	uint64_t granted; /* tokens that the answer tells of; they go back if it cannot be sent */
	uint64_t granted_run; /* of the worker, in which the answer was made; 0: it was not */
	void *own;	      /* of the route; free(3) at the end of the request */
	size_t body_size;
	char *body; /* owned; NUL-terminated */
	char uri[];
};

struct worker {
	struct held_files files;
	struct batches batches;
	struct MHD_Daemon *mhd;
	struct MHD_Response *granted_one; /* the answer of most requests; owned */
	struct list idle; /* connections without a whole request, the longest first */
	struct list waits;
	unsigned int connections_max, lasting;
	atomic_uint connections, given; /* those that are open, and those in the inbox */
	atomic_bool *stopping;		/* borrowed */
	int epoll;
	int inbox[2]; /* a pipe of sockets */
	struct watch mhd_ready, inbox_ready, room_scarce;
	uint64_t runs; /* of libmicrohttpd */
	bool mhd_due;
	pthread_t thread;
};

/* Starts a worker. Borrows @room and @stopping, which all workers have. 0 or -errno. */
int worker_start(struct worker *worker, const char *mountpoint, struct held_room *room,
		 unsigned int connections_max, atomic_bool *stopping);

/* Gives the worker a connection, from any thread. Closes @socket where it cannot take it. */
void worker_give(struct worker *worker, int socket);

/* Tells how many connections the worker has been given that are not closed, to any thread. */
unsigned int worker_connections(const struct worker *worker);

/*
 * Keeps the connection of a request, which is going to last, from being closed in favour of others
 * until the end of the request. False: too many last.
 */
bool worker_hold(struct request *request);

/*
 * Tells whether the answer of @request would get to the socket now. If not, has it wait until there
 * is room, and the route's function is called again: a client that sends requests and reads no
 * answers costs no token. One that reads nothing for CONNECTION_IDLE_S, or that goes away, makes it
 * STAGE_DECIDED with -ECANCELED.
 */
bool worker_has_room(struct request *request);

/*
 * Has @request wait until @file can be read and gives tokens, for @within_ns at most, NEVER_NS: for
 * any time. Owns @file. The route's function is called again with STAGE_DECIDED and the outcome:
 * 0, or -ECANCELED: the client is gone; -EBUSY: it was refused; -ESHUTDOWN; another -errno.
 */
int worker_wait(struct request *request, int file, uint64_t within_ns);

#endif
