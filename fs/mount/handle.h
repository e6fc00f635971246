/*
 * handle - open files: their numbers, for the kernel, and their records, for a successor.
 */
#ifndef RATEFS_FS_MOUNT_HANDLE_H
#define RATEFS_FS_MOUNT_HANDLE_H

#include "core/limiter/poller.h"
#include "core/limiter/slots.h"
#include "fs/mount/daemon.h"
#include "fs/mount/node.h"
#include "fs/mount/viewer.h"

/* The poller of an open file, however many poll it. */
struct polling {
	struct poller poller; /* first */
	struct expiry expiry; /* of take/N,within= */
	struct handle *handle;
};

/* Finds the polled file of @waiter, which is a poller's (waiter->is_poller). */
static inline const struct polling *polling_of(const struct waiter *waiter)
{
	return (const struct polling *)((const char *)waiter - offsetof(struct poller, waiter));
}

struct handle {
	uint64_t number;	   /* by which the kernel knows it: generation << 32 | index */
	struct state_handle *kept; /* borrowed: for a successor */
	fuse_ino_t ino;		   /* see node_opened() */
	const struct node_row *row;
	struct limiter *limiter; /* held: the partition's for its own token */
	uint32_t partition;	 /* index + 1, or 0 */
	uint64_t tokens, most;
	struct amounts *amounts; /* owned: of units, beside them; NULL: none */
	uint64_t within_ns;
	_Atomic bool granted;	/* token text is there to be read on; read without the lock */
	_Atomic uint64_t given; /* then: tokens of the last grant, of which the text is */
	bool half;		/* the end of a text was not read yet, and can be: a poll says so;
				   of feedback: the end of a line was not written yet */
	uint32_t uid;		/* the user that opened it */
	struct viewer *viewer;	/* owned; metrics, events: its rights; NULL: it may know all */
	union {
		/* Of events: of the next line; of frozen: pending.asked as listed. */
		uint64_t position;
		uint64_t taken; /* of files that take: tokens that were granted through it */
	};
	char *text; /* owned; as made by a read at offset 0, or NULL */
	size_t length;
	uint32_t text_kib;	      /* for which it counts */
	bool text_is_read;	      /* to its end: in daemon->texts */
	struct list_link text_link;   /* there */
	struct slot slot;	      /* slot: held while this is open */
	bool lost;		      /* slot: no program ever worked with it */
	struct polling *polling;      /* owned; NULL: tokens of it were never polled for */
	struct trigger *trigger;      /* owned; pressure: the threshold, or NULL */
	struct fuse_pollhandle *poll; /* owned; the poll to be told */
	uint32_t poll_pid;	      /* its thread, as it was last asked; 0: it does not wait */
	struct list_link link;	      /* in limiter->files, if tokens or slots are had by it */
	bool watched;		      /* in daemon->watched */
	struct list_link watch;	      /* there; of an open slot: in daemon->slots */
};

/* Tells whether a partition is made as @node is opened. */
bool handle_makes_partition(const struct node *node);

/*
 * Opens @node for @caller: a handle with a reference to its limiter. NULL: no memory, or too many.
 * Under the lock.
 */
struct handle *handle_open(struct daemon *daemon, const struct node *node,
			   const struct caller *caller);

/*
 * Finds the handle with @number. NULL: a predecessor's, whose limiter or partition was gone when
 * files were taken over, or which was given up.
 */
static inline struct handle *handle_find(const struct daemon *daemon, uint64_t number)
{
	uint32_t index = (uint32_t)number;
	struct handle *handle = index < daemon->handles.size ? daemon->handles.at[index] : NULL;

	return handle && handle->number == number ? handle : NULL;
}

/* Forgets @number, closed, which handle_find() does not find. Under the lock. */
void handle_forget(struct daemon *daemon, uint64_t number);

/*
 * Takes over the files that were open at the predecessor's end. @was_asked tells whether an open
 * with that unique number is yet to be answered: then it is opened anew. 0 or -ENOMEM. Under the
 * lock.
 */
int handle_take_over(struct daemon *daemon, bool (*was_asked)(const void *what, uint64_t unique),
		     const void *what);

/* Has all polls of the files taken over ask again. */
void handle_wake_all(struct daemon *daemon);

/* Notes the kernel's number of the poll of @handle from now on. Under the lock. */
void handle_polled(struct handle *handle, uint64_t number);

/* Closes and frees @handle, which no request uses any more. Under the lock. */
void handle_close(struct daemon *daemon, struct handle *handle);

/*
 * Closes what a mount that was aborted left open. The source is closed: the engine takes no step.
 */
void handle_close_all(struct daemon *daemon);

/* Notes whether the end of a text is yet to be read, for a successor, too. Under the lock. */
static inline void handle_set_half(struct handle *handle, bool half)
{
	handle->half = half;
	handle->kept->half = half;
}

/* Lists @handle as one whose poll is to be told when a read does not block. Under the lock. */
void handle_watch(struct daemon *daemon, struct handle *handle);

/* Tells the poll of @handle that something may have changed. Under the lock. */
void handle_notify(struct daemon *daemon, struct handle *handle);

/*
 * Identifies the asker of the request @unique: thread @pid of @uid, which reads @handle. NULL: it
 * opens a slot; threads that are unknown are one and the same then.
 */
static inline struct asker handle_asker(const struct handle *handle, uint32_t pid, uint32_t uid,
					uint64_t unique)
{
	return (struct asker){
		.thread = pid, .uid = uid, .file = handle ? handle->number : 0, .number = unique};
}

/*
 * Drops texts that were read to their end until @uid may keep one more: its own if it has too many,
 * or of all users in turn if these have too many together. 0 or -ENOSPC. Under the lock.
 */
int handle_make_room(struct daemon *daemon, uint32_t uid);

/*
 * Keeps @text (from malloc) for reads at other offsets. 0, or -ENOSPC: the user has as many as it
 * may have that were not read to their end, and this one stays the caller's. Under the lock.
 */
int handle_keep_text(struct daemon *daemon, struct handle *handle, char *text, size_t length);

/*
 * Notes that the text of @handle, which it keeps, was read to its end: a shell that reads line by
 * line comes back, so it goes only to make room, or as 256 others were read since. Under the lock.
 */
void handle_text_read(struct daemon *daemon, struct handle *handle);

/* Answers an open. False: its client is gone; the file is to be closed. */
bool handle_reply_open(struct handle *handle, fuse_req_t request);

/* Answers an open, and closes a file whose client is gone. Without the lock. */
void handle_answer_open(struct daemon *daemon, struct handle *handle, fuse_req_t request);

/* open() and reopen() of files that tell of all limiters: of those that their client may use. */
void handle_open_view(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		      int flags);
int handle_reopen_view(struct daemon *daemon, struct handle *handle,
		       const struct state_handle *kept);

#endif
