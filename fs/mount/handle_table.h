/*
 * handle_table - the numbers by which the kernel knows open files, and what a successor finds of them.
 */
#ifndef RATEFS_FS_MOUNT_HANDLE_TABLE_H
#define RATEFS_FS_MOUNT_HANDLE_TABLE_H

#include "fs/mount/handle.h"
#include "fs/state/state.h"

/* Gives @handle of @node, which @caller opens, a number. 0, -ENOMEM or -ENFILE. Under the lock. */
int handle_number(struct daemon *daemon, struct handle *handle, const struct node *node,
		  const struct caller *caller);

/* A handle as @kept at @index was of a predecessor's. NULL: no memory. Under the lock. */
struct handle *handle_reopen(struct daemon *daemon, const struct node *node, uint32_t index,
			     struct state_handle *kept);

#endif
