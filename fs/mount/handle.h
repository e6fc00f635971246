/*
 * handle - an open file, and what reads and writes of it do.
 */
#ifndef RATEFS_FS_MOUNT_HANDLE_H
#define RATEFS_FS_MOUNT_HANDLE_H

#include "fs/mount/node.h"

#include "core/limiter/slots.h"

struct state_handle;

/* The poller of an open file, however many poll it. */
struct polling {
	struct poller poller; /* first */
	struct expiry expiry; /* of take/N,within= */
	struct handle *handle;
};

/* The polled file of @waiter, which is a poller's (waiter->is_poller). */
static inline const struct polling *polling_of(const struct waiter *waiter)
{
	return (const struct polling *)((const char *)waiter - offsetof(struct poller, waiter));
}

struct handle {
	uint64_t number;	   /* by which the kernel knows it: generation << 32 | index */
	struct state_handle *kept; /* borrowed: for a successor */
	const struct node_row *row;
	struct limiter *limiter; /* held: the partition's for its own token */
	uint32_t partition;	 /* index + 1, or 0 */
	uint64_t tokens;
	uint64_t within_ns;
	_Atomic bool granted;  /* token text is there to be read on; read without the lock */
	bool half;	       /* the end of a token's text was not read yet: a poll is told so */
	bool begun;	       /* events: its head was read */
	uint32_t uid;	       /* who opened it */
	struct viewer *viewer; /* owned; metrics, events: what it may know; NULL: everything */
	uint64_t position;     /* events: what was read */
	char *text;	       /* owned; what a read at offset 0 found */
	size_t length;
	struct slot slot;		/* slot: held while this is open */
	bool lost;			/* slot: no program ever worked with it */
	struct polling *polling;	/* owned; NULL: tokens of it were never polled for */
	struct fuse_pollhandle *poll;	/* owned; who wants to know */
	struct handle *next, *previous; /* all open files */
	bool following;			/* events: in the list of those who poll */
	struct handle *next_follower, *previous_follower;
};

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
struct handle *handle_find(const struct daemon *daemon, uint64_t number);

/* What handle_find() does not find was closed. Under the lock. */
void handle_forget(struct daemon *daemon, uint64_t number);

/*
 * Takes over the files that were open at the predecessor's end. @was_asked tells whether an open with that
 * unique number is yet to be answered: then it is opened anew. 0 or -ENOMEM. Under the lock.
 */
int handle_take_over(struct daemon *daemon, bool (*was_asked)(const void *what, uint64_t unique),
		     const void *what);

/* Has all who poll the files taken over poll again. */
void handle_wake_all(struct daemon *daemon);

/* The kernel's number of who polls @handle from now on. Under the lock. */
void handle_polled(struct handle *handle, uint64_t number);

/* Frees it. Nobody reads or writes through it any more. Under the lock. */
void handle_close(struct daemon *daemon, struct handle *handle);

/* Tells who polls @handle that something may have changed. Under the lock. */
void handle_notify(struct daemon *daemon, struct handle *handle);

/*
 * Identifies the asker of the request @unique: thread @pid of @uid, which reads @handle. NULL: it
 * opens a slot; threads that are unknown are one and the same then.
 */
struct asker handle_asker(const struct handle *handle, uint32_t pid, uint32_t uid, uint64_t unique);

/* A read of @size bytes is about to be answered with what it asked for. Under the lock. */
void handle_granted(struct handle *handle, size_t size);

/* Keeps @text (from malloc) for reads at other offsets. Under the lock. */
void handle_keep_text(struct handle *handle, char *text, size_t length);

/* What `read`, `poll` and `write` of the table's rows are. */
void read_text(struct daemon *daemon, struct handle *handle, const struct read_request *read);
/* Answers with at most @size bytes of the @length bytes of @text, from @offset on. */
void reply_text(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size);
/* Answers user @uid with the text of a file as it is now, from @offset on. Without the lock. */
void show_text(struct daemon *daemon, struct handle *handle, fuse_req_t request, uint32_t uid,
	       off_t offset, size_t size);
void read_tokens(struct daemon *daemon, struct handle *handle, const struct read_request *read);
void read_try(struct daemon *daemon, struct handle *handle, const struct read_request *read);
void read_stream(struct daemon *daemon, struct handle *handle, const struct read_request *read);
void read_events(struct daemon *daemon, struct handle *handle, const struct read_request *read);
/* Of files that tell of all limiters. */
void open_view(struct daemon *daemon, struct handle *handle, const struct caller *caller,
	       int flags);
void open_slot(struct daemon *daemon, struct handle *handle, const struct caller *caller,
	       int flags);
void read_slot(struct daemon *daemon, struct handle *handle, const struct read_request *read);
/* False: nobody is there any more to have what was opened; it is to be closed. */
bool reply_open(struct handle *handle, fuse_req_t request);

/* stream: the newline was read, or not. */
void handle_set_half(struct handle *handle, bool half);

/* Answers an open, closes what nobody has. Without the lock. */
void answer_open(struct daemon *daemon, struct handle *handle, fuse_req_t request);
bool poll_tokens(struct daemon *daemon, struct handle *handle);
bool poll_events(struct daemon *daemon, struct handle *handle);
void write_setting(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		   const char *text, size_t size);
void write_config(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		  const char *text, size_t size);
void write_feedback(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		    const char *text, size_t size);
void write_charge(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		  const char *text, size_t size);

/* Token text for @tokens from @offset on: the length, at most @size, written to @text. */
enum { TOKEN_TEXT = 24, EVENT_READ_MAX = 16384 };
size_t token_text(uint64_t tokens, uint64_t offset, size_t size, char text[TOKEN_TEXT]);

int reply_tokens(fuse_req_t request, uint64_t tokens, uint64_t offset, size_t size);

/* Begins @change, filled in up to its text, on behalf of @request. Without the lock. */
struct writer *writer_new(const char *text, size_t size);
void writer_submit(struct daemon *daemon, struct writer *writer, const struct caller *caller);

#endif
