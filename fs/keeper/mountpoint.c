/* mountpoint - what a mount would hide, see mountpoint.h. */
#include "fs/keeper/mountpoint.h"
#include "fs/base/log.h"
#include "fs/mount/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* How often, and how long after each other, the end of the daemon before is looked for. */
enum { CLAIMS = 40 };
static const struct timespec CLAIM_AGAIN = {.tv_nsec = 50000000};

int mountpoint_check(const char *mountpoint)
{
	struct mount_id mount, above;
	char parent[PATH_MAX];

	if (mounts_find(mountpoint, &mount))
		return 0;
	snprintf(parent, sizeof(parent), "%.*s/", (int)(strrchr(mountpoint, '/') - mountpoint),
		 mountpoint);
	if (!mounts_find(parent, &above) && above.number == mount.number)
		log_error("mount point '%s' is in a ratefs", mountpoint);
	else
		log_error("mount point '%s' is a ratefs already: unmount it first", mountpoint);
	return -1;
}

/* Tells whether @path is @above or below it. */
static bool is_within(const char *path, const char *above)
{
	size_t length = strlen(above);

	return !strncmp(path, above, length) &&
	       (!path[length] || path[length] == '/' || above[length - 1] == '/');
}

/* Tells whether @path, or the directory above if there is no such file, is in a ratefs. */
static bool is_in_ratefs(const char *path)
{
	struct mount_id mount;
	int err = mounts_find(path, &mount);
	char above[PATH_MAX];

	if (err && err != -EINVAL) {
		snprintf(above, sizeof(above), "%.*s/", (int)(strrchr(path, '/') - path), path);
		err = mounts_find(above, &mount);
	}
	return !err;
}

int mountpoint_check_settings(const char *mountpoint, const char *directory)
{
	if (is_in_ratefs(directory))
		log_error("directory '%s' is in a ratefs", directory);
	else if (is_within(directory, mountpoint))
		log_error("directory '%s' would be hidden by the mount on '%s'", directory,
			  mountpoint);
	else if (is_within(mountpoint, directory))
		log_error("mount point '%s' is in the directory '%s'", mountpoint, directory);
	else
		return 0;
	return -1;
}

void mountpoint_warn(const char *mountpoint)
{
	DIR *directory = opendir(mountpoint);
	struct dirent *entry;

	if (!directory)
		return;
	do
		entry = readdir(directory);
	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	closedir(directory);
	if (entry)
		log_warning("mount point '%s' is not empty: its content is hidden until it is "
			    "unmounted",
			    mountpoint);
}

void mountpoint_claim(const char *mountpoint)
{
	/* A name that is no file, and free once its last holder has ended. */
	int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct stat place;
	socklen_t length;
	int err = -1;

	if (claim < 0)
		return;
	if (stat(mountpoint, &place)) {
		close(claim);
		return;
	}
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
					      "ratefs/%u:%u/%llu", major(place.st_dev),
					      minor(place.st_dev),
					      (unsigned long long)place.st_ino));
	for (int i = 0; i < CLAIMS && err; i++) {
		if (i)
			nanosleep(&CLAIM_AGAIN, NULL);
		err = bind(claim, (struct sockaddr *)&name, length) ? errno : 0;
		if (err && err != EADDRINUSE)
			break;
	}
	if (err == EADDRINUSE)
		log_warning(
			"another daemon that has mounted on '%s' goes on, for a copy of its mount, "
			"an open file or another namespace: both grant",
			mountpoint);
	if (err)
		close(claim);
}
