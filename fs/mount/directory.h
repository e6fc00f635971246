/*
 * directory - FUSE operations on names in directories: to look them up and list them, and to make,
 * rename and remove limiters. No other thing is made, linked or removed.
 */
#ifndef RATEFS_FS_MOUNT_DIRECTORY_H
#define RATEFS_FS_MOUNT_DIRECTORY_H

#include <fuse_lowlevel.h>

/* As the members of struct fuse_lowlevel_ops of those names. */
void directory_lookup(fuse_req_t request, fuse_ino_t parent, const char *name);
void directory_forget(fuse_req_t request, fuse_ino_t ino, uint64_t lookups);
void directory_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets);
void directory_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode);
void directory_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name);
void directory_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name, unsigned int flags);
void directory_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device);
void directory_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *file);
void directory_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name);
void directory_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent, const char *name);
void directory_unlink(fuse_req_t request, fuse_ino_t parent, const char *name);
void directory_read(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *file);

#endif
