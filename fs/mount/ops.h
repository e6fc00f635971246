/*
 * ops - FUSE operations: each makes a step of the engine, or answers at once.
 */
#ifndef RATEFS_FS_MOUNT_OPS_H
#define RATEFS_FS_MOUNT_OPS_H

#include <fuse_lowlevel.h>

/* The operations; the session's user data is the struct daemon. */
extern const struct fuse_lowlevel_ops OPS;

#endif
