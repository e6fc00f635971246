/*
 * why - the file `why` of limiters and keys: the causes for which a reader waits there.
 */
#ifndef RATEFS_FS_MOUNT_WHY_H
#define RATEFS_FS_MOUNT_WHY_H

#include "fs/mount/node.h"

/* Under the lock. */
void why_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);

#endif
