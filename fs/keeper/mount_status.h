/* mount_status - what the file `status` of a mount tells to the commands for it. */
#ifndef RATEFS_FS_KEEPER_MOUNT_STATUS_H
#define RATEFS_FS_KEEPER_MOUNT_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

struct mount_status {
	int keeper, server;
	int frozen_by; /* the process that froze it, or 0 */
	bool outlives;
	uid_t user; /* that mounted it, as the kernel says; all else is the daemon's word */
};

/*
 * Opens the top of the ratefs at @mountpoint, with O_PATH; the caller closes it. -1 after a
 * message, also if there is another file system.
 */
int mount_status_open(const char *mountpoint);

/*
 * Opens file @name of the mount that @top is open in, with @flags, and follows no link. The
 * descriptor is the caller's; or -errno.
 */
int mount_status_open_file(int top, const char *name, int flags);

/* Reads @status from the mount at @mountpoint that @top is open in. 0 or -1 after a message. */
int mount_status_read_at(int top, const char *mountpoint, struct mount_status *status);

/* Does both: opens the top and reads @status. 0 or -1 after a message. */
int mount_status_read(const char *mountpoint, struct mount_status *status);

/*
 * Tells whether @user, which mounted a ratefs, may have a command of root act on @process, or on a
 * thread: it runs for that user, which then could do as much by itself. Root's mounts may have a
 * daemon of another user, and all processes are theirs.
 */
bool mount_status_may_name(uid_t user, int process);

#endif
