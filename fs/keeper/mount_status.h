/* mount_status - what the file `status` of a mount tells to the commands for it. */
#ifndef RATEFS_FS_KEEPER_MOUNT_STATUS_H
#define RATEFS_FS_KEEPER_MOUNT_STATUS_H

#include <stdbool.h>

struct mount_status {
	int keeper, server;
	int frozen_by; /* the process that froze it, or 0 */
	bool outlives;
};

/* Reads @status from the mount at @mountpoint. 0 or -1 after a message. */
int mount_status_read(const char *mountpoint, struct mount_status *status);

#endif
