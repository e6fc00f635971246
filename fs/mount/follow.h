/*
 * follow - the file `events`, whose readers follow what happens.
 */
#ifndef RATEFS_FS_MOUNT_FOLLOW_H
#define RATEFS_FS_MOUNT_FOLLOW_H

#include "fs/mount/handle.h"
#include "fs/mount/pending.h"

extern const struct node_kind EVENTS_FILE;

/* Requests of kind PENDING_FOLLOWER; follow_collect() tells those that poll, too. */
void follow_collect(struct daemon *daemon, struct outbox *outbox);
void follow_answer(struct daemon *daemon, struct pending *pending);

#endif
