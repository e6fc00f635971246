/*
 * ops - FUSE operations: each makes an event, or answers at once.
 */
#ifndef RATEFS_FS_MOUNT_OPS_H
#define RATEFS_FS_MOUNT_OPS_H

#include "fs/mount/daemon.h"

/* The operations; the session's user data is the struct daemon. */
extern const struct fuse_lowlevel_ops OPS;

static inline struct daemon *daemon_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

/* Finds the caller of @request, which the loop received last. */
static inline const struct caller *caller_of(fuse_req_t request)
{
	struct caller *caller = &daemon_of(request)->caller;

	caller->request = request;
	return caller;
}

/* ops_names.c */
void op_lookup(fuse_req_t request, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t request, fuse_ino_t ino, uint64_t lookups);
void op_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets);
void op_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode);
void op_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t request, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	       const char *new_name, unsigned int flags);
void op_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void op_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
	       struct fuse_file_info *file);
void op_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name);
void op_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void op_unlink(fuse_req_t request, fuse_ino_t parent, const char *name);
void op_readdir(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *file);

#endif
