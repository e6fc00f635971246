/*
 * node - the files and directories of the mount, and the numbers by which the kernel knows them.
 *
 * THE TABLE, NODES in table.c, has one row per file or directory. Adding a control file is adding a
 * row: its name, where it is, its access, its kind, which says what a read, a write and a poll do,
 * and its line of help, from which README in the mount and the manual's list are made.
 *
 * A node number is computed: limiter id << 24 | partition + 1 << 8 | row, or for keys, with a mark,
 * key id << 8 | row, or for pieces, with another mark, limiter id << 27 | leaves << 3 | the place
 * of the row. Only files with a number in their name, as take/N, are remembered while the
 * kernel knows them. A key, or such a name, may be forgotten before the kernel forgets it, and a
 * piece may be gone; such a number is then stale for ever, and the kernel looks its name up again.
 */
#ifndef RATEFS_FS_MOUNT_NODE_H
#define RATEFS_FS_MOUNT_NODE_H

#include "core/values/settings.h"
#include "fs/mount/caller.h"
#include "fs/state/state.h"

#include <stdio.h>
#include <sys/stat.h>

struct daemon;
struct handle;
struct key;
struct limiter;
struct node;
struct node_row;
struct viewer;

/*
 * Seconds for which the kernel may rely on names and attributes. Without, it would ask for the
 * attributes of every directory on the way at each open, which more than doubles its cost. Changes
 * through this mount are known at once either way.
 */
enum { ENTRY_S = 1, ATTRIBUTES_S = 1 };

/* The kernel sends longer writes in parts of this size. */
enum { MOUNT_WRITE_MAX = 2 * CONFIG_TEXT };

enum node_access {
	ACCESS_DIRECTORY, /* users of the limiter may enter and list it */
	ACCESS_LIMITER,	  /* a directory in which its tuners can make limiters */
	ACCESS_USE,	  /* users of the limiter read it */
	ACCESS_REPORT,	  /* users of the limiter write it */
	ACCESS_WATCH,	  /* they read it, and write what is about their own open file alone */
	ACCESS_TUNE,	  /* users of the limiter read it, its tuners write it */
	ACCESS_PLACE,	  /* the same, of the limiter above: see node_place_keeper() */
	ACCESS_OWNER,	  /* the owner of the limiter reads and writes it */
};

/* The cost of reading a file; README in the mount sorts the files by it. */
enum node_cost {
	COST_NOTHING, /* it ends, and takes nothing */
	COST_TOKENS,  /* it takes tokens, or a slot for as long as the file is open */
	COST_ENDLESS, /* it may never end; no listing shows it */
	COST_WRITE,   /* it cannot be read, but written */
	COST_COUNT
};

/* The rows that others refer to; the others are known by their place in the table alone. */
enum node_id {
	NODE_NONE,
	NODE_ROOT = FUSE_ROOT_ID,
	NODE_LIMITER,
	NODE_TAKE,
	NODE_TAKE_N,
	NODE_TAKE_RANGE,
	NODE_ETA,
	NODE_ETA_N,
	NODE_SLOT_WITHIN,
	NODE_PARTITIONS,
	NODE_PARTITION,
	NODE_PIECE,
	NODE_KEYS,
	NODE_KEY,
	NODE_KEY_TAKE,
	NODE_KEY_TAKE_N,
	NODE_KEY_TAKE_RANGE,
	NODE_KEY_ETA,
	NODE_KEY_ETA_N,
	NODE_KEY_SLOT_WITHIN,
	NODE_FIRST_FILE
};

/* A read, as the kernel asks for it. */
struct read_request {
	const struct caller *caller;
	size_t size;
	off_t offset;
	bool nonblocking;
};

/* A listing of the members of a directory, in the making. */
struct node_listing {
	/* Adds an entry; @next is the position to go on from. False: there is no room for it. */
	bool (*add)(struct node_listing *listing, const char *name, fuse_ino_t ino, mode_t type,
		    uint64_t next);
};

/* The acts of files or directories of one kind. Each may be NULL. */
struct node_kind {
	/*
	 * Of a directory whose members are not rows. find() finds @name, which is of @row, for user
	 * @uid, as node_find() does. list() adds the members from @first on. Under the lock.
	 */
	int (*find)(struct daemon *daemon, const struct node *parent, const struct node_row *row,
		    const char *name, uint32_t uid, struct node *node);
	void (*list)(struct daemon *daemon, const struct node *node, uint64_t first,
		     struct node_listing *listing);
	/*
	 * Returns until when a look-up of @name in the directory of @limiter, or with NULL a
	 * listing, waits that began at @asked_ns, as `until` of a row does. NULL: none waits.
	 */
	uint64_t (*until)(struct daemon *daemon, const struct limiter *limiter, const char *name,
			  uint64_t asked_ns);

	/* Of a file. */
	bool takes;	   /* a read takes tokens */
	bool tries;	   /* ... and never waits for them */
	bool is_setting;   /* it is the setting of its row */
	bool open_waits;   /* open() may answer later */
	bool ends_in_zero; /* a write may end with a zero byte, as a string of C */
	size_t write_max;  /* 0: 4095 bytes; up to MOUNT_WRITE_MAX */
	/* The size for stat(2); without it a file that can be read has that of a text. */
	off_t (*size)(const struct node *node);
	/* Answers an open, now or later; NULL: at once. Without the lock. */
	void (*open)(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		     int flags);
	/* Restores what open() made, as @kept has it. 0 or -ENOMEM. Under the lock. */
	int (*reopen)(struct daemon *daemon, struct handle *handle,
		      const struct state_handle *kept);
	/* Answers a read, now or later. Without the lock. */
	void (*read)(struct daemon *daemon, struct handle *handle, const struct read_request *read);
	/*
	 * Answers a read that need not wait, of a row with `until`. Without the lock, and
	 * without a step of the engine.
	 */
	void (*answer)(struct daemon *daemon, struct handle *handle,
		       const struct read_request *read);
	/* Answers a write, now or later. Without the lock; @text is NUL-terminated. */
	void (*write)(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		      const char *text, size_t size);
	/* Ends what was begun through @handle, which a program has closed. Under the lock. */
	void (*close)(struct daemon *daemon, struct handle *handle);
	/*
	 * Tells whether a read would not block. If it would, @handle is told later. Under the lock.
	 */
	bool (*poll)(struct daemon *daemon, struct handle *handle);
	/* Returns what else a poll is told, such as POLLPRI. Under the lock. */
	unsigned int (*poll_more)(struct daemon *daemon, struct handle *handle);
};

struct node_row {
	const char *name;  /* NULL: the name is not fixed */
	const char *label; /* its name in documents then */
	enum node_id place;
	enum node_access access;
	enum node_cost cost;
	const struct node_kind *kind;
	enum setting_id setting; /* of a settings file */
	/* Writes the text of the file as user @uid reads it. Under the lock. */
	void (*show)(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
	/*
	 * Returns when a reader that asked at @asked_ns need not wait any more, as things stand: 0:
	 * now; NEVER_NS: not until something changes. It is called after each step, see await.h.
	 * Under the lock. NULL: no read waits, or the kind sees to it.
	 */
	uint64_t (*until)(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);
	bool own;	     /* each user has its own, from its last refusal */
	bool brief;	     /* such a wait is short: O_NONBLOCK and polls do not count */
	const char *columns; /* of a table: its headings; NULL: the file is none */
	const char *help;    /* NULL: a directory that says nothing by itself */
};

/* Kinds of directories; those of files stand beside what they do. */
extern const struct node_kind PLAIN_DIRECTORY;	    /* all its members are rows */
extern const struct node_kind LIMITERS_DIRECTORY;   /* the root, or a limiter */
extern const struct node_kind TAKES_DIRECTORY;	    /* take */
extern const struct node_kind ETAS_DIRECTORY;	    /* eta */
extern const struct node_kind PARTITIONS_DIRECTORY; /* partitions */
extern const struct node_kind KEYS_DIRECTORY;	    /* keys */
extern const struct node_kind KEY_DIRECTORY;	    /* a key */

/* The table; enum node_id and what follows are its indices. */
enum { NODE_ROWS_MAX = STATE_ROWS_MAX };
extern const struct node_row NODES[];
extern const unsigned int NODE_COUNT;

/* A file or directory: its row, and its owner. */
struct node {
	const struct node_row *row;
	struct limiter *limiter;       /* borrowed; the root's for files at the top */
	uint32_t partition;	       /* index + 1, of a piece partitions_piece() + 1; or 0 */
	uint64_t tokens;	       /* of take/N, eta/N; 1 for token, try and stream */
	uint64_t most;		       /* of take/A-B; else @tokens */
	uint64_t within_ns;	       /* of take/N,within=D and slot,within=D; else NEVER_NS */
	const struct amounts *amounts; /* of take/N,UNIT=M: borrowed, see node_find(); else NULL */
	struct key *key;	       /* borrowed: in or below keys/KEY; else NULL */
	/* Of a file that is read: the rights of its reader; NULL: it may know everything. */
	const struct viewer *viewer;
};

/* All of these under the lock. */

/* Finds the node with number @ino. 0, or -ESTALE when it is gone. */
int node_decode(struct daemon *daemon, fuse_ino_t ino, struct node *node);

struct node node_of_limiter(struct limiter *limiter);

/* Makes a node of @row, with @partition as in struct node. */
struct node node_of(const struct node_row *row, struct limiter *limiter, uint32_t partition);

/*
 * Finds the node called @name in @parent for user @uid. 0, -ENOENT, -ENAMETOOLONG, -ERANGE for too
 * large a number, or -ENOSPC and -ENOMEM for a key that is new. The amounts of @node are there
 * until the next call.
 */
int node_find(struct daemon *daemon, const struct node *parent, const char *name, uint32_t uid,
	      struct node *node);

/*
 * Fills in @entry for a node that the kernel will know, asked for by user @uid. With it the kernel
 * holds one reference more; node_forget() gives @lookups of them back. 0, -ENOSPC or -ENOMEM.
 */
int node_entry(struct daemon *daemon, const struct node *node, uint32_t uid,
	       struct fuse_entry_param *entry);
void node_forget(struct daemon *daemon, fuse_ino_t ino, uint64_t lookups);

/*
 * Count the open files of @node. A name with a number in it is not forgotten while there are any,
 * since fstat(2), unlike stat(2), does not look a stale one up again. node_opened() returns the
 * number that node_closed() needs.
 */
fuse_ino_t node_opened(struct daemon *daemon, const struct node *node);
void node_closed(struct daemon *daemon, fuse_ino_t ino);

/*
 * Returns the limiter whose tuners say what @limiter has among its siblings: the one above it. At
 * the top, where limiters have nothing to share, it is @limiter itself.
 */
const struct limiter *node_place_keeper(const struct limiter *limiter);

/* Finds the attributes of @node as user @uid sees them. */
void node_attributes(struct daemon *daemon, const struct node *node, uint32_t uid,
		     struct stat *attributes);

/*
 * Makes the kernel ask anew for the attributes of @limiter's files. Without pages to be dropped it
 * waits for nothing. Files of single partitions and numbers follow within ATTRIBUTES_S.
 */
void node_owner_changed(struct daemon *daemon, const struct limiter *limiter);

/* Tells whether a control file in a directory of limiters is called @name. */
bool node_name_is_taken(const char *name);

/*
 * Lists entry number @position of directory @node and those that follow, but for files whose
 * reading never ends.
 */
void node_list(struct daemon *daemon, const struct node *node, uint64_t position,
	       struct node_listing *listing);

/* For list() of a kind: adds @member, called @name, at position @i among the members. */
bool node_add_member(struct node_listing *listing, const struct daemon *daemon, const char *name,
		     const struct node *member, uint64_t i);

/* Tells whether @row is in the directory @id, or in one below it. */
bool node_is_below(const struct node_row *row, enum node_id id);

/* The row's path as documents write it, such as LIMITER/take/N. */
enum { NODE_PATH_TEXT = STATE_ROW_TEXT };
void node_path(const struct node_row *row, char path[NODE_PATH_TEXT]);

/*
 * Prints the path below the mount of the file of @row of @limiter; names of keys, partitions and
 * numbers are as documents have them, such as orders/keys/KEY/rate.
 */
enum { NODE_FILE_TEXT = PATH_TEXT + NODE_PATH_TEXT };
void node_file(const struct limiter *limiter, const struct node_row *row,
	       char file[NODE_FILE_TEXT]);

/* Makes the numbers of rows, and of names with a number, once the engine is there. 0 or -ENOMEM. */
int node_init(struct daemon *daemon);
void node_free(struct daemon *daemon);

#endif
