/* mount_status - what the file `status` of a mount tells, see mount_status.h. */
#include "fs/keeper/mount_status.h"
#include "fs/mount/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void say_no_mount(const char *mountpoint)
{
	fprintf(stderr, "ratefs: %s: not a mount of ratefs\n", mountpoint);
}

int mount_status_open(const char *mountpoint)
{
	int top = open(mountpoint, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int err = top < 0 ? -errno : 0;
	uid_t user;

	if (!err)
		err = mounts_find_user(top, &user);
	if (!err)
		return top;
	if (err == -EINVAL)
		say_no_mount(mountpoint);
	else
		fprintf(stderr, "ratefs: %s: %s\n", mountpoint, strerror(-err));
	if (top >= 0)
		close(top);
	return -1;
}

int mount_status_open_file(int top, const char *name, int flags)
{
	int file = openat(top, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return file < 0 ? -errno : file;
}

/* Finds the real user of @process. False: it is not to be seen. */
static bool find_user(int process, uid_t *user)
{
	char path[64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", process);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Uid: %u", user) == 1;
	if (file)
		fclose(file);
	return found;
}

bool mount_status_may_name(uid_t user, int process)
{
	uid_t real;

	return !user || (find_user(process, &real) && real == user);
}

/* Tells whether @process is there and is one that the mount may not name. */
static bool is_foreign(const struct mount_status *status, int process)
{
	uid_t real;

	return find_user(process, &real) && !mount_status_may_name(status->user, process);
}

static void read_line(const char *line, struct mount_status *status)
{
	char answer[8];

	(void)sscanf(line, "keeper %d", &status->keeper);
	(void)sscanf(line, "server %d", &status->server);
	(void)sscanf(line, "frozen_by %d", &status->frozen_by);
	if (sscanf(line, "outlives_server %7s", answer) == 1)
		status->outlives = !strcmp(answer, "yes");
}

int mount_status_read_at(int top, const char *mountpoint, struct mount_status *status)
{
	int descriptor = mount_status_open_file(top, "status", O_RDONLY);
	FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
	char line[PATH_MAX];

	*status = (struct mount_status){0};
	if (!file) {
		fprintf(stderr, "ratefs: %s/status: %s\n", mountpoint,
			strerror(descriptor < 0 ? -descriptor : errno));
		if (descriptor >= 0)
			close(descriptor);
		return -1;
	}
	while (fgets(line, sizeof(line), file))
		read_line(line, status);
	fclose(file);
	if (status->keeper > 0 && status->server > 1 && !mounts_find_user(top, &status->user) &&
	    !is_foreign(status, status->keeper) && !is_foreign(status, status->server))
		return 0;
	say_no_mount(mountpoint);
	return -1;
}

int mount_status_read(const char *mountpoint, struct mount_status *status)
{
	int top = mount_status_open(mountpoint), result;

	if (top < 0)
		return -1;
	result = mount_status_read_at(top, mountpoint, status);
	close(top);
	return result;
}
