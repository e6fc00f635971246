/*
 * coordinator - INTERFACE to what the hosts of a fleet share: a tree of small nodes.
 *
 * Its guarantees are ZooKeeper's, and fleet.h rests on no others: all writes are in one order; a
 * transaction happens whole or not at all; the requests of one connection are executed in the order
 * in which they were sent; reads of a session never go back in time, but may be old; a node
 * that is ephemeral is deleted when the session that made it is closed, in one write with all the
 * others of that session.
 *
 * The fleet calls the functions below, from within a step of the engine. The coordinator answers by
 * calling fleet_connected() and its kin (fleet.h), never from within such a call but later, after
 * an engine_run(). Another coordinator is another implementation of this struct in fs/NAME/.
 */
#ifndef RATEFS_CORE_COORDINATOR_H
#define RATEFS_CORE_COORDINATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet;
struct holding;
struct item;
struct search;
struct survey;

enum {
	OPERATIONS_MAX = 100, /* of one transaction */
	/*
	 * Bytes of a node that are read; more is ANSWER_REFUSED, without data. ZooKeeper's bound
	 * for a request or an answer is jute.maxbuffer, 1048575 bytes by default.
	 */
	NODE_DATA_MAX = 786432,
	NODE_PATH_MAX = 512, /* bytes of a path, with the zero at its end */
	NODE_VERSION_ANY = -1,
};

enum operation_kind {
	OPERATION_CHECK,  /* the node is there and has this version */
	OPERATION_SET,	  /* its data are replaced, its version grows by one */
	OPERATION_CREATE, /* there is none, and now there is, with version 0 */
	OPERATION_DELETE, /* it is there, with this version and without children, and is deleted */
};

/* The end of the node's name is made by the coordinator: ten digits that grow. */
enum { NODE_EPHEMERAL = 1, NODE_SEQUENTIAL = 2 };

struct operation {
	enum operation_kind kind;
	unsigned int flags; /* CREATE: NODE_EPHEMERAL | ... */
	int32_t version;    /* CHECK, SET, DELETE: or NODE_VERSION_ANY */
	char *path; /* owned by the request; begins with a slash, relative to the fleet's PATH */
	char *data; /* SET, CREATE: owned by the request, NUL-terminated; NULL is empty */
	char *made; /* CREATE with NODE_SEQUENTIAL: the path it got; owned by the request */
};

enum request_kind {
	REQUEST_TRANSACTION,
	REQUEST_GET,  /* a node's data */
	REQUEST_LIST, /* the names of a node's children, in any order */
};

/* All but OK and UNKNOWN say for certain that nothing was done. */
enum answer {
	ANSWER_OK,
	ANSWER_NO_NODE,
	ANSWER_EXISTS,
	ANSWER_BAD_VERSION,
	ANSWER_NOT_EMPTY,
	ANSWER_DENIED,	/* no authority */
	ANSWER_REFUSED, /* another reason that is definite: too large, not understood */
	ANSWER_UNKNOWN, /* it may have been done, may be done later, or never */
};

/*
 * One request. The memory is the fleet's; the coordinator has it from send() until it answers, and
 * fills in the second part, in memory from malloc().
 */
struct request {
	enum request_kind kind;
	bool watch; /* GET, LIST: fleet_changed() is told once of the next change of this node */
	char *path; /* GET, LIST: owned */
	struct operation *operations; /* TRANSACTION: owned, @operation_count of them */
	uint32_t operation_count;

	enum answer answer;
	uint32_t failed; /* TRANSACTION not OK: the operation that was refused first */
	uint64_t zxid;	 /* TRANSACTION: its place in the order of writes, if it has a SET; GET: of
			      the last change of the data */
	uint64_t made_zxid; /* GET: of the write that made the node */
	int64_t changed_ms; /* GET: time of the last change, by the coordinator's clock */
	int32_t version;    /* GET */
	char *data;	    /* GET: NUL-terminated */
	size_t length;	    /* GET: bytes of data, without the NUL */
	char **names; /* LIST: @name_count of them; the texts are in the same block of memory */
	uint32_t name_count;

	/* The fleet's: its subject, and the function that hears the answer; NULL: none does. */
	union {
		struct search *search;
		struct survey *survey;
		struct item *item;
		struct holding *holding;
		uint64_t number;
	} of;
	void (*done)(struct fleet *fleet, struct request *request);
	uint64_t sent_ns; /* by the holder's clock, before it was sent */
	uint64_t late_ns; /* for how long the host had not run by then, in all */
	struct request *next;
};

/* Readings of the two clocks, for rights and for waiting: see fleet.h. Neither goes back. */
struct clocks {
	uint64_t holder_ns; /* never slower than true time, but for 0.5 % */
	uint64_t waiter_ns; /* never faster than true time, but for 0.5 % */
};

struct coordinator {
	/*
	 * Opens a new session that ends after @session_ns without contact; fleet_connected()
	 * follows once it is there. It is tried for as long as it takes.
	 */
	void (*open)(struct coordinator *coordinator, uint64_t session_ns);
	/* The same for the session @session, which a predecessor of this process had. */
	void (*resume)(struct coordinator *coordinator, uint64_t session, uint64_t session_ns);
	/*
	 * Ends the session: it is told to the servers if there is a connection. Requests that were
	 * not answered yet come back with ANSWER_UNKNOWN.
	 */
	void (*close)(struct coordinator *coordinator);
	/* Sends @request, in the order of calls. Without a connection it comes back UNKNOWN. */
	void (*send)(struct coordinator *coordinator, struct request *request);
	/*
	 * Gives up the connection, not the session, and connects again, to another server if there
	 * is.
	 */
	void (*hang_up)(struct coordinator *coordinator);
	void (*clocks)(struct coordinator *coordinator, struct clocks *clocks);
	/* 64 bits that cannot be guessed, and that no two hosts share. */
	uint64_t (*random)(struct coordinator *coordinator);
	/* Bytes that it puts before each path: those of PATH. */
	uint32_t prefix_bytes;
};

#endif
