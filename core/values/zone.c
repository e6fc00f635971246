/* zone - time zones, which come from outside, see zone.h. */
#include "core/values/zone.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct zones *zones;

void zone_use(const struct zones *source)
{
	zones = source;
}

int zone_find(const char *name, uint16_t *zone)
{
	if (!*name || strlen(name) > ZONE_NAME_MAX)
		return -ENOENT;
	if (!strcmp(name, "UTC")) {
		*zone = ZONE_UTC;
		return 0;
	}
	return zones ? zones->find(name, zone) : -ENOENT;
}

const char *zone_name(uint16_t zone)
{
	return zone == ZONE_UTC ? "" : zones->name(zone);
}

int32_t zone_offset_s(uint16_t zone, int64_t utc_s)
{
	return zone == ZONE_UTC ? 0 : zones->offset_s(zone, utc_s);
}
