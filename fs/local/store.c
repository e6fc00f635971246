/* store - settings files in a directory, see store.h. */
#include "fs/local/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char HEADER[] = "ratefs settings 1\n";
static const char FILE_NAME[] = ".config";
static const char NEW_NAME[] = ".config.new";
static const char REMOVED_NAME[] = ".removed";
static const char MAKING_NAME[] = ".making";

/* Computes FNV-1a, 64 bit (Fowler, Noll, Vo), which tells a damaged file, not a forged one. */
static uint64_t checksum(const char *text, size_t length)
{
	uint64_t sum = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < length; i++)
		sum = (sum ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return sum;
}

char *store_print(const struct settings *settings, const struct owner *owner, size_t *length)
{
	size_t size = STORE_TEXT + overrides_length(settings->overrides), used;
	char *text = malloc(size);

	if (!text)
		return NULL;
	used = (size_t)snprintf(text, size, "%suid=%" PRIu32 "\ngid=%" PRIu32 "\naccess=%o\n",
				HEADER, owner->uid, owner->gid, owner->access);
	used += settings_print(settings, text + used, size - used);
	used += (size_t)snprintf(text + used, size - used, "sum=%016" PRIx64 "\n",
				 checksum(text, used));
	*length = used;
	return text;
}

static int refuse_text(char error[ERROR_TEXT], const char *why)
{
	snprintf(error, ERROR_TEXT, "%s", why);
	return -EINVAL;
}

int store_parse(const char *text, struct settings *settings, struct owner *owner,
		char error[ERROR_TEXT])
{
	const char *sum = strstr(text, "\nsum="), *body;
	char *copy;
	uint64_t expected;
	unsigned int access;
	int used = 0, err;

	if (strncmp(text, HEADER, strlen(HEADER)) != 0)
		return refuse_text(error, "it does not begin as a settings file of this version");
	if (!sum || strspn(sum + strlen("\nsum="), "0123456789abcdef") != 16 ||
	    sscanf(sum, "\nsum=%16" SCNx64 "%n", &expected, &used) != 1 ||
	    strcmp(sum + used, "\n") != 0)
		return refuse_text(error, "it does not end with its checksum");
	if (checksum(text, (size_t)(sum + 1 - text)) != expected)
		return refuse_text(error, "its checksum is wrong");
	body = text + strlen(HEADER);
	if (sscanf(body, "uid=%" SCNu32 "\ngid=%" SCNu32 "\naccess=%o\n%n", &owner->uid,
		   &owner->gid, &access, &used) != 3 ||
	    access > 07777)
		return refuse_text(error, "its owner is missing");
	owner->access = (uint16_t)access;
	body += used;
	copy = strndup(body, (size_t)(sum + 1 - body));
	if (!copy)
		return -ENOMEM;
	*settings = SETTINGS_DEFAULT;
	err = settings_parse(copy, settings, error);
	free(copy);
	return err;
}

int store_open(int root, const char *path)
{
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char name[NAME_BYTES_MAX + 1];

	while (at >= 0 && *path) {
		size_t length = strcspn(path, "/");
		int next;

		if (length >= sizeof(name)) {
			close(at);
			return -ENAMETOOLONG;
		}
		memcpy(name, path, length);
		name[length] = '\0';
		path += length + (path[length] == '/');
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
		close(at);
		at = next;
		if (at < 0)
			return at;
	}
	return at < 0 ? -errno : at;
}

int store_read_all(int file, char *text, size_t size)
{
	size_t used = 0;
	ssize_t got;
	int err = 0;

	do {
		got = read(file, text + used, size - used);
		if (got > 0)
			used += (size_t)got;
	} while ((got > 0 && used < size) || (got < 0 && errno == EINTR));
	if (got < 0)
		err = -errno;
	else if (used == size)
		err = -EFBIG;
	else
		text[used] = '\0';
	close(file);
	if (!err && strlen(text) != used)
		err = -EINVAL;
	return err;
}

int store_read(int directory, const char *name, char *text, size_t size)
{
	int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return file < 0 ? -errno : store_read_all(file, text, size);
}

int store_read_given(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return file < 0 ? -errno : store_read_all(file, text, size);
}

static int write_all(int file, const char *text, size_t length)
{
	while (length) {
		ssize_t put = write(file, text, length);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		text += put;
		length -= (size_t)put;
	}
	return 0;
}

static int sync_directory(int directory)
{
	return fsync(directory) ? -errno : 0;
}

static int replace_file(int directory, const char *name, const char *new_name, const char *text,
			size_t length)
{
	int file = openat(directory, new_name,
			  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err;

	if (file < 0)
		return -errno;
	err = write_all(file, text, length);
	if (!err && fsync(file))
		err = -errno;
	if (close(file) && !err)
		err = -errno;
	if (!err && renameat(directory, new_name, directory, name))
		err = -errno;
	if (err) {
		unlinkat(directory, new_name, 0);
		return err;
	}
	return sync_directory(directory);
}

int store_replace(int directory, const char *name, const char *text, size_t length)
{
	return replace_file(directory, name, NEW_NAME, text, length);
}

static int write_settings(int directory, const struct settings *settings, const struct owner *owner)
{
	size_t length;
	char *text = store_print(settings, owner, &length);
	int err = text ? store_replace(directory, FILE_NAME, text, length) : -ENOMEM;

	free(text);
	return err;
}

int store_write(int root, const char *path, const struct settings *settings,
		const struct owner *owner)
{
	int directory = store_open(root, path);
	int err;

	if (directory < 0)
		return directory;
	err = write_settings(directory, settings, owner);
	close(directory);
	return err;
}

/* Removes a limiter's directory with its own files; anything else in it stays, and so does it. */
static int remove_directory(int parent, const char *name)
{
	int directory = store_open(parent, name);

	if (directory < 0)
		return directory;
	unlinkat(directory, NEW_NAME, 0);
	unlinkat(directory, FILE_NAME, 0);
	close(directory);
	return unlinkat(parent, name, AT_REMOVEDIR) ? -errno : 0;
}

/*
 * Tells whether @from in @directory is a directory, no link to one, and @to not the same one by a
 * name that differs in case: then rename(2) does nothing. 0, or -errno.
 */
static int check_move(int directory, const char *from, const char *to)
{
	struct stat about, other;

	if (fstatat(directory, from, &about, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISDIR(about.st_mode))
		return -ENOTDIR;
	if (fstatat(directory, to, &other, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return about.st_dev == other.st_dev && about.st_ino == other.st_ino ? -EEXIST : 0;
}

/*
 * Renames the directory @from in @directory to @to, for good. When that cannot be made sure of it
 * is as it was. -EEXIST: something is there. By rename(2), which all file systems have: of a
 * directory it replaces none but an empty one, as an operator leaves who clears damaged settings
 * away.
 */
static int move_directory(int directory, const char *from, const char *to)
{
	int err = check_move(directory, from, to);

	if (!err && renameat(directory, from, directory, to))
		err = errno == ENOTEMPTY || errno == ENOTDIR ? -EEXIST : -errno;
	if (err)
		return err;
	err = sync_directory(directory);
	if (err)
		(void)renameat(directory, to, directory, from);
	return err;
}

/* Makes it under another name first, so that it is there with its settings or not at all. */
int store_make(int root, const char *path, const char *name, const struct settings *settings,
	       const struct owner *owner)
{
	int parent = store_open(root, path), directory, err;

	if (parent < 0)
		return parent;
	remove_directory(parent, MAKING_NAME);
	if (mkdirat(parent, MAKING_NAME, 0700)) {
		err = -errno;
		goto out;
	}
	directory = store_open(parent, MAKING_NAME);
	err = directory < 0 ? directory : write_settings(directory, settings, owner);
	if (directory >= 0)
		close(directory);
	if (!err)
		err = move_directory(parent, MAKING_NAME, name);
	if (err)
		remove_directory(parent, MAKING_NAME);
out:
	close(parent);
	return err;
}

/* Opens the parent of @path; @name is its last name. */
static int open_parent(int root, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_TEXT];

	*name = slash ? slash + 1 : path;
	memcpy(parent, path, (size_t)(*name - path));
	parent[slash ? slash - path : 0] = '\0';
	return store_open(root, parent);
}

/* Tells whether @directory holds anything that is not the limiter's own: 0, or -ENOTEMPTY. */
static int holds_others(int directory)
{
	struct dirent **entries;
	int count = scandirat(directory, ".", &entries, NULL, NULL), others = 0;

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		others += strcmp(name, ".") && strcmp(name, "..") && strcmp(name, FILE_NAME) &&
			  strcmp(name, NEW_NAME);
		free(entries[i]);
	}
	free(entries);
	return others ? -ENOTEMPTY : 0;
}

int store_remove(int root, const char *path)
{
	const char *name;
	int parent = open_parent(root, path, &name), directory, err;

	if (parent < 0)
		return parent;
	directory = store_open(parent, name);
	if (directory >= 0)
		store_clean(directory);
	err = directory < 0 ? directory : holds_others(directory);
	if (directory >= 0)
		close(directory);
	if (!err) {
		remove_directory(parent, REMOVED_NAME);
		err = move_directory(parent, name, REMOVED_NAME);
	}
	if (!err)
		remove_directory(parent, REMOVED_NAME);
	close(parent);
	return err;
}

int store_rename(int root, const char *path, const char *name)
{
	const char *old_name;
	int parent = open_parent(root, path, &old_name), err;

	if (parent < 0)
		return parent;
	err = move_directory(parent, old_name, name);
	close(parent);
	return err;
}

void store_clean(int directory)
{
	unlinkat(directory, NEW_NAME, 0);
	remove_directory(directory, REMOVED_NAME);
	remove_directory(directory, MAKING_NAME);
}
