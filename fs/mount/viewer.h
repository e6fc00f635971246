/*
 * viewer - the rights of a process that opened a file: it may know of the limiters that it may use.
 * Files at the top, which tell of all limiters, leave the others out.
 *
 * The rights are those of the process that opens, as with any file: an open file that was handed on
 * tells no more and no less.
 */
#ifndef RATEFS_FS_MOUNT_VIEWER_H
#define RATEFS_FS_MOUNT_VIEWER_H

#include "core/limiter/tree.h"
#include "fs/mount/caller.h"

struct viewer;

/*
 * Makes *@viewer, from malloc, of @caller with all its groups. NULL in it: the caller may know
 * everything. @tree is borrowed. 0 or -ENOMEM.
 */
int viewer_new(const struct tree *tree, const struct caller *caller, struct viewer **viewer);

/* Does as viewer_new() of a process whose other groups are not known any more: it may know less. */
int viewer_of(const struct tree *tree, uint32_t uid, uint32_t gid, struct viewer **viewer);

/* Tells whether it may read the files of @limiter, which is in the tree. Under the lock. */
bool viewer_sees(const struct viewer *viewer, const struct limiter *limiter);

/* Tells whether it may write the settings of @limiter, which is in the tree. Under the lock. */
bool viewer_tunes(const struct viewer *viewer, const struct limiter *limiter);

/* The owner and access of a limiter that decide who may hear of it, even when it is gone. */
struct subject {
	uint32_t id, parent;
	uint32_t uid, gid;
	uint16_t access;
	bool public;
};

/* Returns the subject of news about @limiter; NULL: all may hear of it. Under the lock. */
struct subject viewer_subject(const struct limiter *limiter);

/*
 * Tells as viewer_sees(); of a limiter that is gone, whether it could be seen as it was, where it
 * was.
 */
bool viewer_hears(const struct viewer *viewer, const struct subject *subject);

#endif
