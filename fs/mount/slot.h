/*
 * slot - the file `slot`: its open waits for a slot, and its close frees it.
 */
#ifndef RATEFS_FS_MOUNT_SLOT_H
#define RATEFS_FS_MOUNT_SLOT_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

extern const struct node_kind SLOT_FILE;

/* Requests of kind PENDING_OPENER: each is a struct reader (read.h). */
void slot_answer(struct daemon *daemon, struct pending *pending);
enum pending_end slot_give_up(struct daemon *daemon, struct pending *pending, int err);

#endif
