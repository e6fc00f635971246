/*
 * mounts - which ratefs a path leads to, and the end of one: of that mount, and of no other that
 * has taken its place.
 *
 * Nothing here sends a request to the mount that a path leads to, so one that hangs or is dead, or
 * is another user's, holds up nobody.
 */
#ifndef RATEFS_FS_MOUNT_MOUNTS_H
#define RATEFS_FS_MOUNT_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Each number may be another's once its mount has ended; the two together are of one mount. */
struct mount_id {
	uint64_t device; /* number of the file system; 0: not known */
	uint64_t number; /* of the mount */
};

/*
 * Finds the ratefs that the absolute @path leads to. 0; -EINVAL: it leads to another file system;
 * or -errno.
 */
int mounts_find(const char *path, struct mount_id *id);

/*
 * Finds the user that mounted the ratefs that @place is open in: 0 is root. 0; -EINVAL: it is open
 * in another file system, or in a mount of another namespace; or -errno.
 */
int mounts_find_user(int place, uid_t *user);

/* Tells whether the ratefs @id is mounted on another one. */
bool mounts_covers_another(const struct mount_id *id);

/*
 * Unmounts @id, which was mounted at @mountpoint, from there or from where it has been moved to;
 * its open files stay open. It stays if it is not known, or if another mount covers it. An
 * ordinary user's fusermount3 looks at the path once more.
 */
void mounts_leave(const char *mountpoint, const struct mount_id *id);

#endif
