/*
 * zone - time zones, which come from outside: this folder reads no files.
 *
 * A zone has a number that is told once and stays. Zone 0 is UTC, and is there without any source.
 */
#ifndef RATEFS_CORE_ZONE_H
#define RATEFS_CORE_ZONE_H

#include <stdint.h>

enum {
	ZONE_UTC = 0,
	ZONE_NAME_MAX = 40,    /* bytes of a name, such as Europe/Paris */
	ZONE_COUNT_MAX = 2048, /* numbers that are told; the world has some 600 zones, twice */
};

/* The source of zones, filled in from outside. */
struct zones {
	/* Finds the number of zone @name. 0, -ENOENT: there is none, or -ENOSPC. */
	int (*find)(const char *name, uint16_t *zone);
	/* Returns the name of a zone whose number was told. */
	const char *(*name)(uint16_t zone);
	/* Returns the seconds by which clocks of @zone are ahead of UTC at @utc_s. */
	int32_t (*offset_s)(uint16_t zone, int64_t utc_s);
};

/* Has the zones of this process come from @source, which stays; before the first is asked for. */
void zone_use(const struct zones *source);

/* As those of the source; UTC has the name "". Without a source there are no others: -ENOENT. */
int zone_find(const char *name, uint16_t *zone);
const char *zone_name(uint16_t zone);
int32_t zone_offset_s(uint16_t zone, int64_t utc_s);

#endif
