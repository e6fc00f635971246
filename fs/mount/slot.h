/*
 * slot - the files `slot` and `slot,within=D`: their open waits for a slot, and their close frees
 * it.
 */
#ifndef RATEFS_FS_MOUNT_SLOT_H
#define RATEFS_FS_MOUNT_SLOT_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

extern const struct node_kind SLOT_FILE;

/*
 * List @handle, which holds a slot from now on, behind the others; take it out again if it is
 * there. Under the lock.
 */
void slot_note(struct daemon *daemon, struct handle *handle);
void slot_forget(struct daemon *daemon, struct handle *handle);

/* Tells whether @limiter is @above or below it. */
bool slot_is_within(const struct limiter *limiter, const struct limiter *above);

/*
 * Returns the next open file behind @handle, or the first (NULL), that holds a slot of @limiter or
 * below it; NULL: there are no more. Under the lock.
 */
struct handle *slot_next(const struct daemon *daemon, const struct limiter *limiter,
			 struct handle *handle);

/*
 * Other hosts may open the slots of @limiter and below it that are open, @all or those of which
 * slots_is_lost() tells: tells their holders, and `events`. Under the lock.
 */
void slot_lose(struct daemon *daemon, struct limiter *limiter, bool all);

/* All files that were open are again: tells of slots that were lost meanwhile. Under the lock. */
void slot_took_over(struct daemon *daemon);

/* Requests of kind PENDING_OPENER: each is a struct reader (read.h). */
void slot_answer(struct daemon *daemon, struct pending *pending);
enum pending_end slot_give_up(struct daemon *daemon, struct pending *pending, int err);

#endif
