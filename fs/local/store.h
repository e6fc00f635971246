/*
 * store - settings files in a directory, and that they are there after a power loss.
 */
#ifndef RATEFS_FS_LOCAL_STORE_H
#define RATEFS_FS_LOCAL_STORE_H

#include "core/limiter/change.h"

/* Bytes of a settings file at most, and without overrides. */
enum { STORE_TEXT = 8192, STORE_TEXT_MAX = STORE_TEXT + OVERRIDES_TEXT_MAX };

/* Makes the text of a settings file, from malloc, of *@length bytes. NULL: no memory. */
char *store_print(const struct settings *settings, const struct owner *owner, size_t *length);

/*
 * Parses a file. 0, or -EINVAL with a reason when the file is not whole, or -ENOMEM. The settings
 * have a hold, as settings_parse() says.
 */
int store_parse(const char *text, struct settings *settings, struct owner *owner,
		char error[ERROR_TEXT]);

/* All of these return 0 or -errno; @path is a limiter's, from @root on. */
int store_make(int root, const char *path, const char *name, const struct settings *settings,
	       const struct owner *owner);
int store_write(int root, const char *path, const struct settings *settings,
		const struct owner *owner);
int store_remove(int root, const char *path);
int store_rename(int root, const char *path, const char *name);

/* Opens the directory of @path below @root: a descriptor or -errno. */
int store_open(int root, const char *path);

/* Reads file @name of @directory into @text (NUL-terminated). 0, -ENOENT, -EFBIG, … */
int store_read(int directory, const char *name, char *text, size_t size);

/* A file of limiters that the user gives has less. */
enum { SETTINGS_FILE_BYTES = 16 << 20 };

/*
 * Reads the file @path, which the user gives and which may be a link or a pipe. As store_read(); it
 * waits for the end of a pipe.
 */
int store_read_given(const char *path, char *text, size_t size);

/* Reads the rest of the open @file, and closes it. As store_read(). */
int store_read_all(int file, char *text, size_t size);

/* Replaces file @name of @directory, and syncs both. */
int store_replace(int directory, const char *name, const char *text, size_t length);

/* Removes what a power loss left behind in @directory. */
void store_clean(int directory);

#endif
