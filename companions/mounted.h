/*
 * mounted - the limiters of a mounted tree, as its files have them.
 */
#ifndef RATEFS_COMPANIONS_MOUNTED_H
#define RATEFS_COMPANIONS_MOUNTED_H

#include "core/limiter/change.h"

#include <limits.h>
#include <stdbool.h>

/* A limiter as it is now. */
struct mounted {
	struct owner owner;
	struct settings settings; /* of the top: the defaults; with a hold */
};

/*
 * Finds where the only tree of this host is mounted, for commands that were given no MOUNTPOINT.
 * Returns @mountpoint, or NULL after a message, which lists several.
 */
const char *mounted_find(char mountpoint[PATH_MAX]);

/* Tells whether @err of a limiter says that it has been removed meanwhile, also by another host. */
bool mounted_is_gone(int err);

/* Opens the top of the tree at @mountpoint: a descriptor, or -1 after a message. */
int mounted_open(const char *mountpoint);

/*
 * Opens directory @name in @directory: a descriptor or -errno; -EXDEV where something is mounted on
 * it.
 */
int mounted_enter(int directory, const char *name);

/*
 * Reads the limiter whose directory @directory is. 0 or -errno; -EINVAL with a reason in @error
 * where its settings are not understood, which is otherwise "".
 */
int mounted_read(int directory, bool top, struct mounted *mounted, char error[ERROR_TEXT]);

/*
 * Finds the value in the line `NAME VALUE` of @text, a file such as status; it ends with its line.
 * Its length, 0: there is none.
 */
size_t mounted_line(const char *text, const char *name, const char **value);

/*
 * Returns what a line of the file hosts says of all hosts, as since when they are not known; it
 * ends with its line. NULL: the line is of a host, or the headings.
 */
const char *mounted_hosts_note(const char *line);

/* The names of limiters in a directory, sorted; owned. */
struct mounted_names {
	char **all;
	size_t count;
};

/* Lists the limiters. 0 or -errno; then there are none. */
int mounted_list(int directory, struct mounted_names *names);
void mounted_names_free(struct mounted_names *names);

/*
 * Appends @name to @path, with a slash between them. The length that @path had, at which it can be
 * cut again; or -ENAMETOOLONG.
 */
int mounted_append(char path[PATH_TEXT], const char *name);

/* Returns the path of a limiter for messages: `/` for the top. */
const char *mounted_called(const char *path);

#endif
