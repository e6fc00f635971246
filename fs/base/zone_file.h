/*
 * zone_file - the system's time zones: files of /usr/share/zoneinfo, see tzif.h.
 *
 * A zone is read once, when it is first named, and stays.
 */
#ifndef RATEFS_FS_BASE_ZONE_FILE_H
#define RATEFS_FS_BASE_ZONE_FILE_H

#include "core/values/zone.h"

extern const struct zones ZONE_FILES;

#endif
