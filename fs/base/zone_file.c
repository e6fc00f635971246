/* zone_file - the system's time zones, see zone_file.h. */
#include "fs/base/zone_file.h"
#include "fs/base/tzif.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char DIRECTORY[] = "/usr/share/zoneinfo";

struct zone {
	char name[ZONE_NAME_MAX + 1];
	struct tzif file;
};

static struct zone zones[ZONE_COUNT_MAX + 1]; /* by number; that of UTC is not used */
static _Atomic uint16_t zone_count = 1;

/* Tells whether @name can be that of a file below the directory, and of no other. */
static bool is_name(const char *name)
{
	if (*name == '/' || strstr(name, "..") || strstr(name, "//"))
		return false;
	return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
	       strlen(name);
}

static int read_file(const char *name, unsigned char *bytes, size_t size, size_t *length)
{
	char path[sizeof(DIRECTORY) + ZONE_NAME_MAX + 1];
	ssize_t got;
	int file;

	strcpy(path, DIRECTORY);
	strcat(path, "/");
	strcat(path, name);
	file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (file < 0)
		return -ENOENT;
	*length = 0;
	do {
		got = read(file, bytes + *length, size - *length);
		*length += got > 0 ? (size_t)got : 0;
	} while (got > 0 && *length < size);
	close(file);
	return got < 0 || *length == size ? -ENOENT : 0;
}

static int find_zone(const char *name, uint16_t *number)
{
	unsigned char *bytes;
	size_t length;
	int err;

	for (uint16_t i = 1; i < zone_count; i++) {
		if (!strcmp(zones[i].name, name)) {
			*number = i;
			return 0;
		}
	}
	if (!is_name(name))
		return -ENOENT;
	if (zone_count > ZONE_COUNT_MAX)
		return -ENOSPC;
	bytes = malloc(TZIF_BYTES_MAX);
	if (!bytes)
		return -ENOMEM;
	err = read_file(name, bytes, TZIF_BYTES_MAX, &length);
	if (!err)
		err = tzif_parse(bytes, length, &zones[zone_count].file);
	free(bytes);
	if (err)
		return err == -EINVAL ? -ENOENT : err;
	strcpy(zones[zone_count].name, name);
	*number = zone_count++;
	return 0;
}

static const char *name_of(uint16_t number)
{
	return zones[number].name;
}

static int32_t offset_of(uint16_t number, int64_t utc_s)
{
	return tzif_offset_s(&zones[number].file, utc_s);
}

const struct zones ZONE_FILES = {find_zone, name_of, offset_of};
