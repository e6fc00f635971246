/*
 * follow - the file `events`, whose readers follow what happens.
 */
#ifndef RATEFS_FS_MOUNT_FOLLOW_H
#define RATEFS_FS_MOUNT_FOLLOW_H

#include "fs/mount/node.h"

extern const struct node_kind EVENTS_FILE;

#endif
