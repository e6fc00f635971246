/*
 * ops - FUSE operations: each makes an event, or answers at once.
 */
#ifndef RATEFS_FS_OPS_H
#define RATEFS_FS_OPS_H

#include "fs/daemon.h"

/* The operations; the session's user data is the struct daemon. */
extern const struct fuse_lowlevel_ops OPS;

#endif
