/*
 * frozen - the file `frozen`, by which all that wait are frozen and thawed.
 *
 * As long as one file is open for writing nothing is granted, see engine_freeze(): its opener stops
 * the threads that the file lists, so that none is in the kernel's queue. A read lists those that
 * wait, and a poll, or a read, tells the opener of more. The open file is all there is to know: a
 * successor finds it with the others, and it is closed when the opener dies.
 */
#ifndef RATEFS_FS_MOUNT_FROZEN_H
#define RATEFS_FS_MOUNT_FROZEN_H

#include "fs/mount/handle.h"

extern const struct node_kind FROZEN_FILE;

/* Writes the threads whose requests wait, or who wait in a poll, a line each. */
void frozen_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);

/* Returns the process that freezes; 0: none does. Under the lock. */
uint32_t frozen_by(const struct daemon *daemon);

/* Ends the freeze: daemon->freezer is about to be closed. Under the lock. */
void frozen_end(struct daemon *daemon);

#endif
