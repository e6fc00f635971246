/* tzif - a time zone as its file says, see tzif.h. */
#include "fs/base/tzif.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	DAY_S = 86400,
	HEADER_BYTES = 44,
	TYPE_BYTES = 6,
	FOOTER_TEXT = 128,
	RULE_HOURS_MAX = 167,
};

/* Numbers of a file. */

static int64_t read_number(const unsigned char *bytes, int size)
{
	uint64_t value = bytes[0] & 0x80 ? UINT64_MAX : 0;

	for (int i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return (int64_t)value;
}

/* The header's counts. */
struct counts {
	uint32_t utc, standard, leap, time, type, chars;
};

/* Reads a header; false: it is none. */
static bool read_header(const unsigned char *bytes, size_t size, struct counts *counts)
{
	uint32_t numbers[6];

	if (size < HEADER_BYTES || memcmp(bytes, "TZif", 4) != 0)
		return false;
	for (int i = 0; i < 6; i++) {
		numbers[i] = (uint32_t)read_number(bytes + 20 + 4 * i, 4);
		if (numbers[i] > TZIF_BYTES_MAX)
			return false;
	}
	*counts = (struct counts){numbers[0], numbers[1], numbers[2],
				  numbers[3], numbers[4], numbers[5]};
	return counts->type;
}

/* Returns the bytes of the block behind a header, whose times have @time_bytes. */
static size_t block_bytes(const struct counts *counts, size_t time_bytes)
{
	return counts->time * (time_bytes + 1) + counts->type * TYPE_BYTES + counts->chars +
	       counts->leap * (time_bytes + 4) + counts->standard + counts->utc;
}

static bool is_offset(int32_t offset_s)
{
	return offset_s >= -TZIF_OFFSET_MAX_S && offset_s <= TZIF_OFFSET_MAX_S;
}

/* Reads the times of a block and the offsets from them on. 0, -EINVAL or -ENOMEM. */
static int read_times(struct tzif *zone, const unsigned char *block, const struct counts *counts)
{
	const unsigned char *indices = block + 8 * (size_t)counts->time;
	const unsigned char *types = indices + counts->time;

	zone->at = calloc(counts->time + 1, sizeof(*zone->at));
	zone->offset = calloc(counts->time + 1, sizeof(*zone->offset));
	if (!zone->at || !zone->offset)
		return -ENOMEM;
	zone->count = counts->time;
	zone->offset[0] = (int32_t)read_number(types, 4);
	for (uint32_t i = 0; i < counts->time; i++) {
		zone->at[i] = read_number(block + 8 * (size_t)i, 8);
		if (indices[i] >= counts->type || (i && zone->at[i] <= zone->at[i - 1]))
			return -EINVAL;
		zone->offset[i + 1] = (int32_t)read_number(types + TYPE_BYTES * indices[i], 4);
	}
	for (uint32_t i = 0; i <= counts->time; i++) {
		if (!is_offset(zone->offset[i]))
			return -EINVAL;
	}
	return 0;
}

/* The footer. Each function reads at *@text and moves it on; false: its part is not there. */

static bool read_digits(const char **text, int most, int *value)
{
	*value = 0;
	if (!isdigit((unsigned char)**text))
		return false;
	for (; isdigit((unsigned char)**text); (*text)++) {
		*value = *value * 10 + (**text - '0');
		if (*value > most)
			return false;
	}
	return true;
}

static bool skip_name(const char **text)
{
	const char *begin = *text;

	if (**text == '<') {
		*text += strcspn(*text, ">");
		return *(*text)++ == '>';
	}
	while (isalpha((unsigned char)**text))
		(*text)++;
	return *text - begin >= 3;
}

/* HOURS[:MINUTES[:SECONDS]] with a sign. */
static bool read_time(const char **text, int32_t *time_s)
{
	bool negative = **text == '-';
	int hours, minutes = 0, seconds = 0;

	if (negative || **text == '+')
		(*text)++;
	if (!read_digits(text, RULE_HOURS_MAX, &hours))
		return false;
	if (**text == ':') {
		(*text)++;
		if (!read_digits(text, 59, &minutes))
			return false;
	}
	if (**text == ':') {
		(*text)++;
		if (!read_digits(text, 59, &seconds))
			return false;
	}
	*time_s = hours * 3600 + minutes * 60 + seconds;
	if (negative)
		*time_s = -*time_s;
	return true;
}

static bool read_rule(const char **text, struct tzif_rule *rule)
{
	*rule = (struct tzif_rule){.time_s = 7200};
	if (*(*text)++ != ',')
		return false;
	if (**text == 'M') {
		rule->kind = *(*text)++;
		if (!read_digits(text, 12, &rule->month) || *(*text)++ != '.' ||
		    !read_digits(text, 5, &rule->week) || *(*text)++ != '.' ||
		    !read_digits(text, 6, &rule->day) || !rule->month || !rule->week)
			return false;
	} else {
		if (**text == 'J')
			rule->kind = *(*text)++;
		if (!read_digits(text, 365, &rule->day) || (rule->kind && !rule->day))
			return false;
	}
	if (**text != '/')
		return true;
	(*text)++;
	return read_time(text, &rule->time_s);
}

/* Reads a footer that is not empty, such as `CET-1CEST,M3.5.0,M10.5.0/3`. */
static bool read_rules(const char *text, struct tzif *zone)
{
	if (!skip_name(&text) || !read_time(&text, &zone->winter_s))
		return false;
	zone->winter_s = -zone->winter_s;
	zone->has_rules = true;
	if (!*text)
		return true;
	zone->has_summer = true;
	zone->summer_s = zone->winter_s + 3600;
	if (!skip_name(&text))
		return false;
	if (*text != ',') {
		if (!read_time(&text, &zone->summer_s))
			return false;
		zone->summer_s = -zone->summer_s;
	}
	return read_rule(&text, &zone->begin) && read_rule(&text, &zone->end) && !*text;
}

void tzif_free(struct tzif *zone)
{
	free(zone->at);
	free(zone->offset);
	*zone = (struct tzif){0};
}

int tzif_parse(const unsigned char *bytes, size_t size, struct tzif *zone)
{
	const unsigned char *block, *end = bytes + size;
	struct counts counts;
	char footer[FOOTER_TEXT] = "";
	size_t length;
	int err;

	*zone = (struct tzif){0};
	/* Times of four bytes come first; version 1 has no others. */
	if (!read_header(bytes, size, &counts) || bytes[4] < '2' ||
	    block_bytes(&counts, 4) > size - HEADER_BYTES)
		return -EINVAL;
	block = bytes + HEADER_BYTES + block_bytes(&counts, 4);
	if (!read_header(block, (size_t)(end - block), &counts) || counts.leap ||
	    block_bytes(&counts, 8) > (size_t)(end - block) - HEADER_BYTES)
		return -EINVAL;
	err = read_times(zone, block + HEADER_BYTES, &counts);
	block += HEADER_BYTES + block_bytes(&counts, 8);
	length = (size_t)(end - block);
	if (length < 2 || length > sizeof(footer) || block[0] != '\n' || end[-1] != '\n')
		err = err ? err : -EINVAL;
	else
		memcpy(footer, block + 1, length - 2);
	if (!err && *footer && !read_rules(footer, zone))
		err = -EINVAL;
	if (!err && !(is_offset(zone->winter_s) && is_offset(zone->summer_s)))
		err = -EINVAL;
	if (err)
		tzif_free(zone);
	return err;
}

/* Returns the day, counted from 1 January 1970, on which @year begins. */
static int64_t first_day_of(int64_t year)
{
	int64_t before = year - 1;

	return 365 * (year - 1970) + before / 4 - before / 100 + before / 400 - 477;
}

static bool is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t day_of_rule(const struct tzif_rule *rule, int64_t year)
{
	static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
	int64_t first = first_day_of(year), last;

	if (rule->kind == 'J')
		return first + rule->day - 1 + (is_leap(year) && rule->day > 59);
	if (!rule->kind)
		return first + rule->day;
	last = first + before[rule->month] + (is_leap(year) && rule->month >= 2);
	first += before[rule->month - 1] + (is_leap(year) && rule->month > 2);
	/* 1 January 1970 was a Thursday, day 4 of its week. */
	first += ((rule->day - (first + 4)) % 7 + 7) % 7 + 7 * (rule->week - 1);
	while (first >= last)
		first -= 7;
	return first;
}

/* Returns the offset that the rules give for @utc_s. */
static int32_t offset_by_rules(const struct tzif *zone, int64_t utc_s)
{
	int64_t days = (utc_s + zone->winter_s) / DAY_S, year = 1970 + days / 366, begin_s, end_s;

	if (!zone->has_summer)
		return zone->winter_s;
	while (first_day_of(year + 1) <= days)
		year++;
	begin_s = day_of_rule(&zone->begin, year) * DAY_S + zone->begin.time_s - zone->winter_s;
	end_s = day_of_rule(&zone->end, year) * DAY_S + zone->end.time_s - zone->summer_s;
	if (begin_s < end_s)
		return utc_s >= begin_s && utc_s < end_s ? zone->summer_s : zone->winter_s;
	return utc_s >= end_s && utc_s < begin_s ? zone->winter_s : zone->summer_s;
}

int32_t tzif_offset_s(const struct tzif *zone, int64_t utc_s)
{
	uint32_t low = 0, high = zone->count;

	if (zone->has_rules && utc_s >= 0 && (!high || utc_s >= zone->at[high - 1]))
		return offset_by_rules(zone, utc_s);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (zone->at[middle] <= utc_s)
			low = middle + 1;
		else
			high = middle;
	}
	return zone->offset[low];
}
