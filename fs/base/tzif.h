/*
 * tzif - a time zone as its file says, in the format of tzfile(5) and RFC 9636: versions 2 and up,
 * times of 64 bits and the rules of the footer, for the years to come.
 *
 * The C library has one zone for a process, which all threads share. That of GLib reads its files
 * without looking at their size, or, before 2.68, takes a name that is none for UTC.
 */
#ifndef RATEFS_FS_BASE_TZIF_H
#define RATEFS_FS_BASE_TZIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TZIF_BYTES_MAX = 1 << 17,  /* of a file; those of the system have less than 4 KiB */
	TZIF_OFFSET_MAX_S = 86400, /* from UTC, either way */
};

/* When clocks are put forward or back each year: POSIX's TZ. */
struct tzif_rule {
	char kind; /* M: weekday @day of week @week of @month; J: day, never 29 February; 0: day */
	int month, week, day;
	int32_t time_s; /* on the clocks as they are before */
};

struct tzif {
	int64_t *at;	 /* owned, ascending: from each on ... */
	int32_t *offset; /* owned: ... it is this; the first is that before all */
	uint32_t count;
	/* After the last. */
	bool has_rules, has_summer;
	int32_t winter_s, summer_s;  /* offsets */
	struct tzif_rule begin, end; /* of summer */
};

/*
 * Parses the @size bytes of a file, at most TZIF_BYTES_MAX, into @zone, to be freed. 0, -ENOMEM, or
 * -EINVAL: it is none, or one that counts leap seconds, as the clocks of no system do.
 */
int tzif_parse(const unsigned char *bytes, size_t size, struct tzif *zone);

void tzif_free(struct tzif *zone);

/* Returns the seconds by which clocks of @zone are ahead of UTC at @utc_s. */
int32_t tzif_offset_s(const struct tzif *zone, int64_t utc_s);

#endif
