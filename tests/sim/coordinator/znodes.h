/*
 * znodes - the tree of nodes that the simulated coordinator keeps, and what it was a while ago.
 *
 * All writes are commits in one order. A commit happens whole or not at all. The former states of a
 * node stay known until znodes_forget(), so that a server that lags can be asked, and the last
 * commits can be lost.
 */
#ifndef RATEFS_SIM_ZNODES_H
#define RATEFS_SIM_ZNODES_H

#include "core/fleet/coordinator.h"
#include "core/base/heap.h"

/* Something that happens at a time. */
struct moment {
	struct heap_node node; /* first */
	void (*comes)(struct moment *moment);
};

/* Text that several states of a node share. */
struct blob {
	uint32_t references;
	char text[];
};

/* The names of a node's children; request->names is a copy. */
struct listing {
	uint64_t zxid; /* of the last child that came or went */
	uint32_t count;
	size_t size;
	char *names[]; /* and then the texts */
};

struct session;
struct watch;

/* The state of a node from one commit to the next. */
struct znode_state {
	struct znode_state *older;	  /* owned */
	struct znode_state *next_touched; /* in the commit, in order of operations */
	struct znode *node;
	uint64_t at_ns;
	uint64_t made_zxid, changed_zxid; /* of the node, of its data */
	uint64_t children_zxid;		  /* of the last child that came or went */
	int64_t changed_ms;
	int32_t version;
	uint32_t sequence; /* children that ever came, for the names of sequential ones */
	uint32_t children;
	bool there;
	struct session *owner; /* of an ephemeral node, NULL */
	struct blob *data;     /* NULL is empty */
};

struct znode {
	struct znode *next_by_path;
	struct znode *parent;
	struct znode *first_child, *next_sibling, *previous_sibling;
	struct znode *next_owned, *previous_owned; /* of the session that owns it now */
	struct znode_state *newest;
	struct watch *watches;
	struct listing *listing; /* owned: the last that was asked for, NULL */
	char *name;		 /* in @path */
	char path[];
};

/* One write. */
struct commit {
	struct commit *newer, *older;
	uint64_t zxid;
	uint64_t at_ns;
	struct znode_state *touched, *last_touched;
	struct session *opened, *closed; /* its other changes */
	const struct session *session;	 /* that asked for it, or NULL */
};

struct znodes {
	struct znode **by_path; /* owned, @size chains */
	uint32_t size, count;
	struct znode *root;
	struct commit *oldest, *newest; /* that are still known */
};

/* A session, as far as nodes are concerned. */
struct session {
	struct session *next; /* all of them, in order of opening backwards */
	uint64_t id;
	struct znode *owned;
	bool closed;
	/* The servers': see zookeeper.c. */
	struct zookeeper *zookeeper;
	struct connection *connection; /* the last that was accepted for it, NULL */
	struct moment expiry;	       /* in no heap while it is heard of */
	uint64_t timeout_ns;
	uint64_t contact_ns; /* the last request */
};

void znodes_open(struct znodes *znodes);
void znodes_close(struct znodes *znodes);

/* Begins a commit, to which what follows belongs. */
struct commit *znodes_begin(struct znodes *znodes, uint64_t zxid, uint64_t now_ns);

/* Takes the newest commit back. */
void znodes_undo(struct znodes *znodes);

/*
 * Executes @operations for @session in a commit of their own; if not OK, nothing was done but the
 * commit stands, empty. The path that a sequential node got is left in operation->made.
 */
enum answer znodes_apply(struct znodes *znodes, struct session *session,
			 struct operation *operations, uint32_t count, uint64_t zxid,
			 uint64_t now_ns, uint32_t *failed);

/* Deletes what @session owns, in one commit. */
void znodes_end_session(struct znodes *znodes, struct session *session, uint64_t zxid,
			uint64_t now_ns);

/* The node at @path, though it may not be there (any more); NULL if it never was. */
struct znode *znodes_find(const struct znodes *znodes, const char *path);

/* The path of the @number-th (over and over) leaf that begins with @prefix; NULL: there is none. */
const char *znodes_any(const struct znodes *znodes, const char *prefix, uint64_t number);

/* Returns how many nodes are below that at @path. */
uint32_t znodes_below(const struct znodes *znodes, const char *path);

/*
 * Returns the state of @node at @at_ns, when all commits of that instant had been made; NULL: not
 * there yet.
 */
const struct znode_state *znode_at(const struct znode *node, uint64_t at_ns);

/*
 * The children that @state's node had at @at_ns, when it was so; good until the next such call or
 * commit.
 */
const struct listing *znode_list(const struct znode_state *state, uint64_t at_ns);

/* The states of nodes before @before_ns are not asked for any more. */
void znodes_forget(struct znodes *znodes, uint64_t before_ns);

#endif
