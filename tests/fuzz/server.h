/*
 * server - the file system without a kernel: a socket in the place of the FUSE device, for targets
 * that play the kernel's part.
 */
#ifndef RATEFS_TESTS_FUZZ_SERVER_H
#define RATEFS_TESTS_FUZZ_SERVER_H

#include "fs/mount/daemon.h"

#include <linux/fuse.h>

struct local;

/* Set in the unique number of a request that the kernel sends again. */
#define SERVER_RESEND (UINT64_C(1) << 63)

enum {
	SERVER_REQUESTS_MAX = 256, /* of one server */
	SERVER_KNOWN_MAX = 64,	   /* nodes and open files that the kernel's part remembers */
	SERVER_BODY_MAX = 8192,
};

struct server {
	struct options options;
	struct daemon daemon;
	struct state *state;
	struct local *source;
	int kernel;			      /* the kernel's end of the device */
	uint64_t unique;		      /* of the last request */
	bool asked[SERVER_REQUESTS_MAX + 2];  /* by number: not answered yet */
	uint64_t on[SERVER_REQUESTS_MAX + 2]; /* by number: the open file that it is on; 0: none */
	uint64_t nodes[SERVER_KNOWN_MAX]; /* numbers of nodes; a free place is that of the root */
	struct server_file {
		bool open;
		bool directory;
		uint32_t flags;		 /* of its open */
		uint64_t number;	 /* of directories it is the same */
	} files[SERVER_KNOWN_MAX];	 /* open files */
	uint32_t node_count, file_count; /* so far */
};

/*
 * Starts a server whose state is the memory behind @descriptor, taken over, as the successor of
 * @starts servers. False: it refused the state. @resent has @size bytes of requests, one after the
 * other, that the kernel sends again; NULL: none.
 */
bool server_start(struct server *server, int descriptor, uint32_t starts, const void *resent,
		  size_t size);

/*
 * Has the server do a request with @opcode about @node, with @body as it comes from the kernel, and
 * reads its answer. A request of an opcode that is never answered counts as done.
 */
void server_ask(struct server *server, uint32_t opcode, uint64_t node, const void *body,
		size_t size);

/* Ends the server: every request has been answered once. */
void server_stop(struct server *server);

/* Memory for a state, empty. */
int server_memory(void);

/*
 * Plays a script: a byte for the kind of request, one for the node, one for the open file, one for
 * the length of the bytes that follow, those bytes, and so on until the end or for @most requests.
 */
void server_play(struct server *server, const uint8_t *script, size_t size, unsigned int most);

#endif
