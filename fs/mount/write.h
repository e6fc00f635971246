/*
 * write - files that are written, and changes of the tree on their way through the source.
 */
#ifndef RATEFS_FS_MOUNT_WRITE_H
#define RATEFS_FS_MOUNT_WRITE_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

extern const struct node_kind SETTING_FILE, CONFIG_FILE, OVERRIDE_FILE, CHARGE_FILE;

/* A write, mkdir, rmdir, rename or setattr on its way through the source. */
struct writer {
	struct queued queued;
	struct change change;
	struct subject subject;	    /* of its limiter, as it was */
	const struct node_row *row; /* of a write: its file's; NULL: of a directory */
	size_t size;		    /* of a write, to be acknowledged */
	uint32_t kib;		    /* of memory that counts for its user, until it is done */
	bool again;		    /* a predecessor had the request, and did not answer */
	bool awaited;		    /* no request: its maker looks at @done, and frees it */
	bool done;
	fuse_ino_t ino;		       /* setattr: the node to answer with; rmdir: the id */
	struct fuse_entry_param entry; /* mkdir and setattr: the answer */
	char text[];
};

/* Makes a writer with a copy of the @size bytes of @text, or without. NULL: no memory. */
struct writer *write_new(const char *text, size_t size);

/*
 * Begins its change, filled in up to its text, on behalf of @caller, or answers that the user has
 * too many under way, and frees it. Under the lock.
 */
void write_submit(struct daemon *daemon, struct writer *writer, const struct caller *caller);

/*
 * Tells whether a mkdir that is asked again made @limiter, which is there: in a fleet another host
 * may have, or it is not known. Here the kernel lets no two programs make names in one directory at
 * once, while they wait for their answers.
 */
static inline enum holding_maker write_maker(const struct limiter *limiter)
{
	return limiter->holding ? limiter->holding->maker : MAKER_THIS;
}

/* Refuses a charge or report on a limiter that is gone: 0 or -ENODEV. Under the lock. */
int write_check_limiter(struct daemon *daemon, const struct handle *handle, uint32_t uid);

/* Requests of kind PENDING_WRITER; write_collect() ends changes that no request waits for, too. */
void write_collect(struct daemon *daemon, struct outbox *outbox);
void write_answer(struct daemon *daemon, struct pending *pending);
enum pending_end write_give_up(struct daemon *daemon, struct pending *pending, int err);
void write_expire(struct daemon *daemon, struct queued *queued);

#endif
