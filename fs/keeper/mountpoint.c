/* mountpoint - what a mount would hide, see mountpoint.h. */
#include "fs/keeper/mountpoint.h"
#include "fs/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Returns the number that the kernel gives to the mount of @path, or -1. */
static int mount_of(const char *path)
{
	int directory = open(path, O_PATH | O_CLOEXEC), mount = -1;
	char name[64], line[256];
	FILE *about;

	if (directory < 0)
		return -1;
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", directory);
	about = fopen(name, "re");
	while (about && fgets(line, sizeof(line), about) && sscanf(line, "mnt_id: %d", &mount) != 1)
		;
	if (about)
		fclose(about);
	close(directory);
	return mount;
}

static bool is_ratefs(int mount)
{
	static const char before_type[] = " - ", type[] = "fuse.ratefs ";
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	int number;

	while (mounts && !found && getline(&line, &size, mounts) > 0) {
		const char *rest = strstr(line, before_type);

		found = rest && sscanf(line, "%d", &number) == 1 && number == mount &&
			!strncmp(rest + strlen(before_type), type, strlen(type));
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

int mountpoint_check(const char *mountpoint)
{
	int mount = mount_of(mountpoint);
	char parent[PATH_MAX];

	if (mount < 0 || !is_ratefs(mount))
		return 0;
	snprintf(parent, sizeof(parent), "%.*s/", (int)(strrchr(mountpoint, '/') - mountpoint),
		 mountpoint);
	if (mount_of(parent) == mount)
		log_error("mount point '%s' is in a ratefs", mountpoint);
	else
		log_error("mount point '%s' is a ratefs already: unmount it first", mountpoint);
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
