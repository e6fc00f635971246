/* zones - time zones as the C library knows them, see zones.h. */
#include "tests/sim/base/zones.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char names[ZONE_COUNT_MAX + 1][ZONE_NAME_MAX + 1];
static uint16_t count = 1, current;

static void enter(uint16_t zone)
{
	char value[ZONE_NAME_MAX + 2];

	if (zone == current)
		return;
	snprintf(value, sizeof(value), ":%s", names[zone]);
	setenv("TZ", value, 1);
	tzset();
	current = zone;
}

static int find(const char *name, uint16_t *zone)
{
	char path[ZONE_NAME_MAX + 32];

	for (uint16_t i = 1; i < count; i++) {
		if (!strcmp(names[i], name)) {
			*zone = i;
			return 0;
		}
	}
	snprintf(path, sizeof(path), "/usr/share/zoneinfo/%s", name);
	if (*name == '.' || access(path, R_OK))
		return -ENOENT;
	if (count > ZONE_COUNT_MAX)
		return -ENOSPC;
	strcpy(names[count], name);
	*zone = count++;
	return 0;
}

static const char *name_of(uint16_t zone)
{
	return names[zone];
}

static int32_t offset_s(uint16_t zone, int64_t utc_s)
{
	time_t time = (time_t)utc_s;
	struct tm local;

	enter(zone);
	localtime_r(&time, &local);
	return (int32_t)local.tm_gmtoff;
}

const struct zones LIBRARY_ZONES = {find, name_of, offset_s};
