/*
 * mount - the mount, from its making to its end.
 */
#ifndef RATEFS_FS_MOUNT_MOUNT_H
#define RATEFS_FS_MOUNT_MOUNT_H

#include "fs/mount/daemon.h"

/*
 * Makes the daemon of a mount, which is not mounted yet; mount_free() when its session has ended.
 * @options, @source and @state are borrowed. 0 or -errno.
 */
int mount_init(struct daemon *daemon, struct options *options, struct source *source,
	       struct state *state, const struct owner *root);
void mount_free(struct daemon *daemon);

/*
 * Begins to lose messages rather than to wait, see log_stop_waiting(): ours and those of libfuse.
 */
void mount_stop_waiting(bool background);

/* Makes a session for @options that is not mounted. 0, or the exit status after a message. */
int mount_session(struct fuse_session **session, struct options *options, struct daemon *daemon);

/*
 * Takes over a mount: its @count @devices, which belong to the session then, and the @size bytes of
 * @init, the kernel's first message. 0 or -1.
 */
int mount_adopt(struct daemon *daemon, const void *init, size_t size, const int *devices,
		unsigned int count);

/* Tells whether the kernel has not ended the mount of @session. */
bool mount_is_connected(struct fuse_session *session);

/* Frees the session; unmounts if there is no keeper any more to do that. */
void mount_end(struct daemon *daemon);

#endif
