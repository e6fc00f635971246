/* mounted - the limiters of a mounted tree, see mounted.h. */
#include "companions/mounted.h"
#include "companions/cells.h"

#include "fs/local/store.h"
#include "fs/mount/node.h"

#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_AT_ONCE = 64 };

static const char TYPE[] = "fuse.ratefs";

/* Writes a line for @mount: where it is, and its source. */
static void list_mount(FILE *list, const struct mntent *mount)
{
	char shown[2 * PATH_MAX];

	cells_slice(mount->mnt_dir, 0, UINT_MAX, shown, sizeof(shown));
	fprintf(list, "\n    %s", shown);
	cells_slice(mount->mnt_fsname, 0, UINT_MAX, shown, sizeof(shown));
	fprintf(list, "  (%s)", shown);
}

const char *mounted_find(char mountpoint[PATH_MAX])
{
	FILE *mounts = setmntent("/proc/self/mounts", "re"), *list;
	unsigned int found = 0;
	struct mntent *mount;
	char *listed = NULL;
	size_t length;

	setlocale(LC_CTYPE, ""); /* of the paths that are listed */
	list = open_memstream(&listed, &length);
	while (mounts && list && (mount = getmntent(mounts))) {
		if (strcmp(mount->mnt_type, TYPE) != 0)
			continue;
		if (!found++)
			snprintf(mountpoint, PATH_MAX, "%s", mount->mnt_dir);
		list_mount(list, mount);
	}
	if (mounts)
		endmntent(mounts);
	if (list)
		fclose(list);
	if (!found)
		warnx("no tree is mounted");
	else if (found > 1)
		warnx("more than one tree is mounted: name a MOUNTPOINT, one of%s", listed);
	free(listed);
	return found == 1 ? mountpoint : NULL;
}

/* Tells whether directories @a and @b are of one mount; no server is asked. */
static bool are_together(int a, int b)
{
	struct statx of_a, of_b;

	return !statx(a, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &of_a) &&
	       !statx(b, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &of_b) &&
	       of_a.stx_mnt_id == of_b.stx_mnt_id && of_a.stx_dev_major == of_b.stx_dev_major &&
	       of_a.stx_dev_minor == of_b.stx_dev_minor;
}

int mounted_enter(int directory, const char *name)
{
	int opened = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (opened < 0)
		return -errno;
	if (are_together(directory, opened))
		return opened;
	close(opened);
	return -EXDEV;
}

bool mounted_is_gone(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ESTALE;
}

/* Tells whether the top of a tree is at @directory: it has a status that begins with a version. */
static bool is_tree(int directory)
{
	static const char first[] = "version ";
	char text[CONFIG_TEXT];

	return !store_read(directory, "status", text, sizeof(text)) &&
	       !strncmp(text, first, strlen(first)) && !faccessat(directory, "last_error", F_OK, 0);
}

int mounted_open(const char *mountpoint)
{
	int top = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (top < 0) {
		warn("%s", mountpoint);
		return -1;
	}
	if (!is_tree(top)) {
		warnx("%s: not where a tree of ratefs is mounted", mountpoint);
		close(top);
		return -1;
	}
	return top;
}

int mounted_read(int directory, bool top, struct mounted *mounted, char error[ERROR_TEXT])
{
	struct stat attributes;
	char *text;
	int err;

	error[0] = '\0';
	if (fstat(directory, &attributes))
		return -errno;
	mounted->owner = (struct owner){attributes.st_uid, attributes.st_gid,
					attributes.st_mode & ACCESS_BITS};
	mounted->settings = SETTINGS_DEFAULT;
	if (top)
		return 0;
	text = malloc(CONFIG_TEXT_MAX);
	err = text ? store_read(directory, "config", text, CONFIG_TEXT_MAX) : -ENOMEM;
	if (!err)
		err = settings_parse(text, &mounted->settings, error);
	free(text);
	return err;
}

size_t mounted_line(const char *text, const char *name, const char **value)
{
	size_t length = strlen(name);

	while (text && *text) {
		if (!strncmp(text, name, length) && text[length] == ' ') {
			*value = text + length + 1;
			return strcspn(*value, "\n");
		}
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return 0;
}

const char *mounted_hosts_note(const char *line)
{
	static const char mark[] = "# ", headings[] = "# host ";

	if (strncmp(line, mark, strlen(mark)) != 0 || !strncmp(line, headings, strlen(headings)))
		return NULL;
	return line + strlen(mark);
}

/* Adds a copy of @name. 0 or -ENOMEM. */
static int add_name(struct mounted_names *names, const char *name)
{
	char **more;

	if (names->count % NAMES_AT_ONCE == 0) {
		more = reallocarray(names->all, names->count + NAMES_AT_ONCE, sizeof(*more));
		if (!more)
			return -ENOMEM;
		names->all = more;
	}
	names->all[names->count] = strdup(name);
	if (!names->all[names->count])
		return -ENOMEM;
	names->count++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int mounted_list(int directory, struct mounted_names *names)
{
	/* Of its own, since a copy would share the position. */
	int opened = mounted_enter(directory, ".");
	DIR *list = opened < 0 ? NULL : fdopendir(opened);
	const struct dirent *entry;
	int err = opened < 0 ? opened : list ? 0 : -errno;

	*names = (struct mounted_names){.count = 0};
	if (!list) {
		if (opened >= 0)
			close(opened);
		return err;
	}
	while (!err) {
		errno = 0;
		entry = readdir(list);
		if (!entry) {
			err = -errno;
			break;
		}
		/* No limiter's name begins with a dot. */
		if (entry->d_type == DT_DIR && *entry->d_name != '.' &&
		    !node_name_is_taken(entry->d_name))
			err = add_name(names, entry->d_name);
	}
	closedir(list);
	if (err)
		mounted_names_free(names);
	else if (names->count)
		qsort(names->all, names->count, sizeof(*names->all), compare);
	return err;
}

void mounted_names_free(struct mounted_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->all[i]);
	free(names->all);
	*names = (struct mounted_names){.count = 0};
}

int mounted_append(char path[PATH_TEXT], const char *name)
{
	size_t length = strlen(path), slash = length > 0;

	if (length + slash + strlen(name) >= PATH_TEXT)
		return -ENAMETOOLONG;
	if (slash)
		path[length] = '/';
	strcpy(path + length + slash, name);
	return (int)length;
}

const char *mounted_called(const char *path)
{
	return *path ? path : "/";
}
