/* mount - the mount, from its making to its end, see mount.h. */
#include "fs/mount/mount.h"
#include "fs/base/log.h"
#include "fs/mount/handle.h"
#include "fs/mount/loop.h"
#include "fs/mount/mounts.h"
#include "fs/mount/ops.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_TEXT = 1024 };

/* Logs a message of libfuse, most of which end in a newline. */
__attribute__((format(printf, 2, 0))) static void on_message(enum fuse_log_level level,
							     const char *format, va_list arguments)
{
	char text[MESSAGE_TEXT];

	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = '\0';
	if (level <= FUSE_LOG_ERR)
		log_error("%s", text);
	else if (level == FUSE_LOG_WARNING)
		log_warning("%s", text);
	else
		log_info("%s", text);
}

void mount_stop_waiting(bool background)
{
	fuse_set_log_func(on_message);
	log_stop_waiting(background);
}

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
	events_finish(&daemon->events);
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

bool mount_is_connected(struct fuse_session *session)
{
	struct pollfd device = {.fd = fuse_session_fd(session)};

	return poll(&device, 1, 0) <= 0 || !(device.revents & POLLERR);
}

void mount_end(struct daemon *daemon)
{
	bool is_left = getppid() != daemon->keeper && mount_is_connected(daemon->fuse);

	if (is_left)
		log_error("the keeper is gone: the mount ends");
	loop_close();
	fuse_session_destroy(daemon->fuse);
	daemon->fuse = NULL;
	/* Only now: a path that leads through this tree would wait for an answer. */
	if (is_left)
		mounts_leave(daemon->options->mountpoint, &daemon->mount);
}
