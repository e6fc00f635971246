/*
 * freeze - ratefs --freeze MOUNTPOINT, which leaves a tracer behind, and --thaw, which ends it; see
 * tracer.h.
 */
#include "fs/keeper/tracer.h"
#include "fs/keeper/keeper.h"
#include "fs/keeper/mount_status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 10000 };

static int refuse_arguments(const char *option)
{
	fprintf(stderr, "ratefs: %s needs a mount point\nTry 'ratefs --help'.\n", option);
	return EXIT_USAGE;
}

int keeper_freeze(int argc, char *argv[])
{
	int ready[2], status;
	pid_t child;
	char byte;

	if (argc != 3)
		return refuse_arguments("--freeze");
	if (pipe(ready) || (child = fork()) < 0) {
		fprintf(stderr, "ratefs: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!child) {
		close(ready[0]);
		return tracer_run(argv[2], ready[1]);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) == 1)
		return EXIT_SUCCESS;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return EXIT_FAILURE;
}

/* Tells whether @name is the file @frozen; no server is asked. */
static bool is_same(int directory, const char *name, const struct statx *frozen)
{
	struct statx file;

	return !statx(directory, name, AT_STATX_DONT_SYNC, STATX_INO, &file) &&
	       file.stx_dev_major == frozen->stx_dev_major &&
	       file.stx_dev_minor == frozen->stx_dev_minor && file.stx_ino == frozen->stx_ino;
}

/*
 * Tells whether process @pid has the file open that freezes. Else it is another one: the number is
 * one of another process namespace, or the process that opened the file has passed it on.
 */
static bool has_it_open(int top, int pid)
{
	char path[64];
	const struct dirent *entry;
	struct statx frozen;
	bool found = false;
	DIR *files;

	if (statx(top, "frozen", AT_SYMLINK_NOFOLLOW, STATX_INO, &frozen))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	files = opendir(path);
	while (files && !found && (entry = readdir(files)))
		found = is_same(dirfd(files), entry->d_name, &frozen);
	if (files)
		closedir(files);
	return found;
}

/* Tells whether @pid runs this program, as the tracer of root does in a tree of another user. */
static bool is_ratefs(int pid)
{
	struct stat ours, file;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat("/proc/self/exe", &ours) && !stat(path, &file) && file.st_dev == ours.st_dev &&
	       file.st_ino == ours.st_ino;
}

/*
 * Ends the tracer @pid, as it is named still by the mount that @top is open in. 0 or -1 after a
 * message.
 */
static int end_tracer(int top, const char *mountpoint, int pid)
{
	struct pollfd tracer = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	struct mount_status status;

	if (mount_status_read_at(top, mountpoint, &status))
		return -1;
	if (status.frozen_by != pid) /* it has just ended */
		return 0;
	if (tracer.fd < 0 || !has_it_open(top, pid) ||
	    (!mount_status_may_name(status.user, pid) && !is_ratefs(pid))) {
		fprintf(stderr,
			"ratefs: %s: process %d is none here that has it frozen: it thaws when no "
			"process has the file frozen open for writing\n",
			mountpoint, pid);
		return -1;
	}
	if (pidfd_send_signal(tracer.fd, SIGTERM, NULL, 0)) {
		fprintf(stderr, "ratefs: process %d: %s\n", pid, strerror(errno));
		return -1;
	}
	if (poll(&tracer, 1, END_MS) == 1)
		return 0;
	fprintf(stderr, "ratefs: process %d does not end: it thaws the tree as soon as it can\n",
		pid);
	return -1;
}

int keeper_thaw(int argc, char *argv[])
{
	struct mount_status status;
	int top, result;

	if (argc != 3)
		return refuse_arguments("--thaw");
	top = mount_status_open(argv[2]);
	if (top < 0)
		return EXIT_FAILURE;
	result = mount_status_read_at(top, argv[2], &status);
	if (!result && status.frozen_by)
		result = end_tracer(top, argv[2], status.frozen_by);
	close(top);
	return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
