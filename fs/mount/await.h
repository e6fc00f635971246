/*
 * await - reads, and looks into directories, that wait for something other than tokens.
 *
 * The member `until` of a row of NODES says what reads of its file wait for, that of a kind what
 * look-ups and listings in its directory do. All else is here, for all such files: the request that
 * is pending, the errors in place of waiting, polls, bounds, the end of the limiter and of the
 * daemon. A successor gets the request again from the kernel, and asks anew.
 *
 * Any step of the engine may be what a reader waits for. Up to LOOKS_AT_ONCE readers are looked at
 * after each step. The more there are above that, the longer is the time to the next look, so
 * tokens do not pay for them. Of polled files of one user POLLS_AT_ONCE are looked at, so that
 * other users do not pay, either.
 */
#ifndef RATEFS_FS_MOUNT_AWAIT_H
#define RATEFS_FS_MOUNT_AWAIT_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

/*
 * Reads a file whose row has `until`: answer() of its kind follows, now or when the reader need not
 * wait any more. Without the lock. Instead of waiting, a read that is not brief fails: EAGAIN with
 * O_NONBLOCK, EBUSY if too many readers wait, ESHUTDOWN, ENOMEM.
 */
void await_read(struct daemon *daemon, struct handle *handle, const struct read_request *read);

/* A look into a directory: for one name, or a listing. */
struct look {
	fuse_ino_t directory;
	const char *name; /* NULL: a listing ... */
	size_t size;	  /* ... of so many bytes */
	off_t offset;
	const struct caller *caller; /* it may wait; NULL: it does not, or has */
	/* Does it, and answers. Without the lock. */
	void (*act)(struct daemon *daemon, fuse_req_t request, uint32_t uid,
		    const struct look *look);
};

/*
 * Has @look wait if it may, and if the kind of @directory, where it looks, says so: its act follows
 * when it need not wait any more. False: it is to go on. Under the lock.
 */
bool await_look(struct daemon *daemon, const struct node *directory, const struct look *look);

/* The poll of kinds with await_read(). Under the lock. */
bool await_poll(struct daemon *daemon, struct handle *handle);

/* Requests of kind PENDING_AWAITER; await_collect() tells those that poll, too. */
void await_collect(struct daemon *daemon, struct outbox *outbox);
void await_answer(struct daemon *daemon, struct pending *pending);

#endif
