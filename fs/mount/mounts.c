/* mounts - which ratefs a path leads to, and the end of one, see mounts.h. */
#include "fs/mount/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* One line of the kernel's list. */
struct entry {
	struct mount_id id;
	uint64_t parent; /* number of the mount that it is on */
	bool is_ratefs;
	uid_t user;	   /* that mounted it, if it is a ratefs */
	const char *place; /* borrowed: the field of the mount point, and more */
};

/* Reads the user from @rest, which is a type, a source, and options of a file system. */
static bool read_user(const char *rest, uid_t *user)
{
	static const char option[] = ",user_id=";
	int options = 0;

	(void)sscanf(rest, "%*s %*s %n", &options);
	rest = options ? strstr(rest + options, option) : NULL;
	return rest && sscanf(rest + strlen(option), "%u", user) == 1;
}

static bool read_entry(const char *line, struct entry *entry)
{
	static const char before_type[] = " - ", type[] = "fuse.ratefs ";
	const char *rest = strstr(line, before_type);
	unsigned long long number, parent;
	unsigned int major, minor;
	int place = 0;

	if (!rest ||
	    sscanf(line, "%llu %llu %u:%u %*s %n", &number, &parent, &major, &minor, &place) != 4 ||
	    !place)
		return false;
	*entry = (struct entry){
		.id = {.device = makedev(major, minor), .number = number},
		.parent = parent,
		.is_ratefs = !strncmp(rest + strlen(before_type), type, strlen(type)),
		.place = line + place,
	};
	return !entry->is_ratefs || read_user(rest + strlen(before_type), &entry->user);
}

/*
 * Returns the path of a mount point, which the caller frees; blanks are octal numbers in @field.
 * NULL: no memory.
 */
static char *read_place(const char *field)
{
	char *place = strndup(field, strcspn(field, " ")), *to = place;
	unsigned int byte;

	if (!place)
		return NULL;
	for (const char *from = place; *from; to++) {
		if (sscanf(from, "\\%3o", &byte) == 1) {
			*to = (char)byte;
			from += strlen("\\040");
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
	return place;
}

/*
 * Looks for the mount of that number, which has to be a ratefs, and fills in @found. Its place, if
 * @place is not NULL, goes there, and the caller frees it. 0; -EINVAL: it is none; or -errno.
 */
static int look_up(uint64_t number, struct entry *found, char **place)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	int err = mounts ? -EINVAL : -errno;
	struct entry entry;
	char *line = NULL;
	size_t size = 0;

	while (err == -EINVAL && mounts && getline(&line, &size, mounts) > 0) {
		if (!read_entry(line, &entry) || entry.id.number != number)
			continue;
		if (!entry.is_ratefs)
			break;
		*found = entry;
		found->place = NULL;
		if (place)
			*place = read_place(entry.place);
		err = !place || *place ? 0 : -ENOMEM;
	}
	free(line);
	if (mounts)
		fclose(mounts);
	return err;
}

/* Finds the ratefs that @place is open in. As look_up(). */
static int find_open(int place, struct entry *found)
{
	unsigned long long number = 0;
	char name[64], line[256];
	FILE *about;

	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", place);
	about = fopen(name, "re");
	if (!about)
		return -errno;
	while (fgets(line, sizeof(line), about) && sscanf(line, "mnt_id: %llu", &number) != 1)
		;
	fclose(about);
	return look_up(number, found, NULL);
}

bool mounts_covers_another(const struct mount_id *id)
{
	struct entry upper, lower;

	return !look_up(id->number, &upper, NULL) && !look_up(upper.parent, &lower, NULL);
}

int mounts_find(const char *path, struct mount_id *id)
{
	int place = open(path, O_PATH | O_CLOEXEC), err;
	struct entry found;

	if (place < 0)
		return -errno;
	err = find_open(place, &found);
	close(place);
	if (!err)
		*id = found.id;
	return err;
}

int mounts_find_user(int place, uid_t *user)
{
	struct entry found;
	int err = find_open(place, &found);

	if (!err)
		*user = found.user;
	return err;
}

/* Unmounts as libfuse does for a user that is not root. */
static void ask_fusermount(const char *path)
{
	pid_t child = fork();

	if (!child) {
		execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", path, NULL);
		_exit(EXIT_FAILURE);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* Unmounts @path if @id is there. Returns whether it is. */
static bool leave_at(const char *path, const struct mount_id *id)
{
	int place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[64]; /* to that mount, whatever @path leads to meanwhile */
	struct entry there;
	bool is_there;

	if (place < 0)
		return false;
	is_there = !find_open(place, &there) && there.id.number == id->number &&
		   there.id.device == id->device;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	if (is_there && umount2(link, MNT_DETACH) && errno == EPERM)
		ask_fusermount(path);
	close(place);
	return is_there;
}

void mounts_leave(const char *mountpoint, const struct mount_id *id)
{
	struct entry there;
	char *place;

	if (!id->device || leave_at(mountpoint, id) || look_up(id->number, &there, &place))
		return;
	if (there.id.device == id->device)
		(void)leave_at(place, id);
	free(place);
}
