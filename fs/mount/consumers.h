/*
 * consumers - the file `users`: the users and keys of a limiter, and what they have of it.
 */
#ifndef RATEFS_FS_MOUNT_CONSUMERS_H
#define RATEFS_FS_MOUNT_CONSUMERS_H

#include "fs/mount/handle.h"
#include "fs/mount/node.h"

/* Counts what was granted through @handle, which is about to be closed. Under the lock. */
void consumers_note(struct handle *handle);

/* Under the lock. */
void consumers_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);

#endif
