/* mount - the mount, from its making to its end, see mount.h. */
#include "fs/mount/mount.h"
#include "fs/base/log.h"
#include "fs/mount/handle.h"
#include "fs/mount/loop.h"
#include "fs/mount/ops.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

int mount_init(struct daemon *daemon, struct options *options, struct source *source,
	       struct state *state, const struct owner *root)
{
	int err = daemon_init(daemon, options, source, state, root);

	if (err)
		return err;
	err = node_init(daemon);
	if (err)
		daemon_free(daemon);
	return err;
}

void mount_free(struct daemon *daemon)
{
	handle_close_all(daemon);
	node_free(daemon);
	daemon_free(daemon);
}

int mount_session(struct fuse_session **session, struct options *options, struct daemon *daemon)
{
	*session = fuse_session_new(&options->fuse, &OPS, sizeof(OPS), daemon);
	return *session ? 0 : EXIT_USAGE; /* libfuse has named the option it does not know */
}

int mount_adopt(struct daemon *daemon, const void *init, size_t size, const int *devices,
		unsigned int count)
{
	struct fuse_buf buffer = {.mem = (void *)(uintptr_t)init, .size = size};
	char path[32];

	if (mount_session(&daemon->fuse, daemon->options, daemon))
		return -1;
	snprintf(path, sizeof(path), "/dev/fd/%d", devices[0]);
	if (fuse_session_mount(daemon->fuse, path)) {
		fuse_session_destroy(daemon->fuse);
		daemon->fuse = NULL;
		return -1;
	}
	loop_adopt(daemon->fuse, devices, count);
	/* A predecessor has answered this message: the kernel drops the answer. */
	loop_process(daemon, &buffer, clock_ns());
	if (!fuse_session_exited(daemon->fuse))
		return 0;
	log_error("the mount ended before it began");
	mount_end(daemon);
	return -1;
}

/* Tells whether the mount is still there. */
static bool is_connected(const struct daemon *daemon)
{
	struct pollfd device = {.fd = fuse_session_fd(daemon->fuse)};

	return poll(&device, 1, 0) <= 0 || !(device.revents & POLLERR);
}

/* Unmounts as libfuse does for the process that has mounted. */
static void unmount_path(const char *mountpoint)
{
	pid_t child;

	if (!umount2(mountpoint, MNT_DETACH) || errno != EPERM)
		return;
	child = fork();
	if (!child) {
		execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", mountpoint, NULL);
		_exit(EXIT_FAILURE);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

void mount_end(struct daemon *daemon)
{
	if (getppid() != daemon->keeper && is_connected(daemon)) {
		log_error("the keeper is gone: the mount ends");
		unmount_path(daemon->options->mountpoint);
	}
	loop_close();
	fuse_session_destroy(daemon->fuse);
	daemon->fuse = NULL;
}
