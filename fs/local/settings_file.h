/*
 * settings_file - the limiters of `-o config=FILE`, made at mount.
 */
#ifndef RATEFS_FS_LOCAL_SETTINGS_FILE_H
#define RATEFS_FS_LOCAL_SETTINGS_FILE_H

#include "fs/mount/daemon.h"

/*
 * Makes the limiters of @file that are not there yet; those that the source knows stay as they are.
 * 0 or -errno after a message that names the line.
 */
int settings_file_load(const char *file, struct daemon *daemon);

#endif
