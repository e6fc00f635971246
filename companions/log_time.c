/* log_time - the time of a line of a log, see log_time.h. */
#include "companions/log_time.h"

#include "core/values/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	YEAR_LAST = 2500,
	SECONDS_DIGITS = 11,
	FRACTION_DIGITS = 9,
};

static const char MONTHS[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
				 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const int MONTH_COUNT = sizeof(MONTHS) / sizeof(MONTHS[0]);

/* Reads exactly @digits digits at *@at, and goes behind them. */
static bool read_number(const char **at, int digits, int *number)
{
	*number = 0;
	for (int i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)**at))
			return false;
		*number = *number * 10 + (*(*at)++ - '0');
	}
	return true;
}

static bool read_character(const char **at, const char *choice)
{
	if (!**at || !strchr(choice, **at))
		return false;
	(*at)++;
	return true;
}

/* Reads the name of a month, from 0. */
static bool read_month(const char **at, int *month)
{
	for (*month = 0; *month < MONTH_COUNT; (*month)++) {
		if (!strncmp(*at, MONTHS[*month], 3)) {
			*at += 3;
			return true;
		}
	}
	return false;
}

/* Reads a point and what follows it, if there is one: ns. */
static bool read_fraction(const char **at, const char *points, uint64_t *ns)
{
	uint64_t unit = NSEC_PER_SEC;
	int digits = 0;

	*ns = 0;
	if (!read_character(at, points))
		return true;
	for (; isdigit((unsigned char)**at); (*at)++, digits++) {
		unit /= 10;
		*ns += unit * (uint64_t)(**at - '0');
	}
	return digits && digits <= FRACTION_DIGITS;
}

/* Reads Z, +01:00, -0100, or nothing, which is UTC too: seconds east of it. */
static bool read_zone(const char **at, long *east_s)
{
	int hours, minutes, sign = **at == '-' ? -1 : 1;

	*east_s = 0;
	if (!**at || read_character(at, "Zz"))
		return true;
	if (!read_character(at, "+-") || !read_number(at, 2, &hours))
		return false;
	(void)read_character(at, ":");
	if (!read_number(at, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*east_s = sign * (hours * 3600L + minutes * 60L);
	return true;
}

static bool read_clock(const char **at, struct tm *time)
{
	return read_number(at, 2, &time->tm_hour) && read_character(at, ":") &&
	       read_number(at, 2, &time->tm_min) && read_character(at, ":") &&
	       read_number(at, 2, &time->tm_sec) && time->tm_hour < 24 && time->tm_min < 60 &&
	       time->tm_sec <= 60;
}

static bool read_web_date(const char **at, struct tm *time)
{
	return read_number(at, 2, &time->tm_mday) && read_character(at, "/") &&
	       read_month(at, &time->tm_mon) && read_character(at, "/") &&
	       read_number(at, 4, &time->tm_year) && read_character(at, ":");
}

static bool read_iso_date(const char **at, struct tm *time)
{
	if (!read_number(at, 4, &time->tm_year) || !read_character(at, "-") ||
	    !read_number(at, 2, &time->tm_mon) || !read_character(at, "-") ||
	    !read_number(at, 2, &time->tm_mday) || !read_character(at, "Tt "))
		return false;
	time->tm_mon--;
	return time->tm_mon >= 0 && time->tm_mon < MONTH_COUNT;
}

/* Returns the seconds since 1970 of @time, a date of UTC; -1: there is no such day, or too late. */
static time_t seconds_of(struct tm *time)
{
	int day = time->tm_mday, year = time->tm_year;
	time_t seconds;

	time->tm_year -= 1900;
	if (!day || year < 1970 || year > YEAR_LAST)
		return -1;
	/* A leap second is the first of the next minute, which must not pass for another day. */
	if (time->tm_sec == 60)
		time->tm_sec = 59;
	seconds = timegm(time);
	return time->tm_mday == day ? seconds : -1;
}

static bool read_date(const char *text, uint64_t *ns)
{
	bool web = isdigit((unsigned char)text[0]) && isdigit((unsigned char)text[1]) &&
		   text[2] == '/';
	struct tm time = {.tm_sec = 0};
	const char *at = text;
	time_t seconds;
	uint64_t part;
	long east_s;

	if (!(web ? read_web_date : read_iso_date)(&at, &time) || !read_clock(&at, &time) ||
	    !read_fraction(&at, ".,", &part))
		return false;
	(void)read_character(&at, " ");
	if (!read_zone(&at, &east_s) || *at)
		return false;
	seconds = seconds_of(&time);
	if (seconds < 0 || seconds < east_s)
		return false;
	*ns = (uint64_t)(seconds - east_s) * NSEC_PER_SEC + part;
	return true;
}

/* A number of seconds: of up to 11 digits, in the years up to YEAR_LAST. */
static bool read_seconds(const char *text, uint64_t *ns)
{
	static const uint64_t last_s = (uint64_t)(YEAR_LAST - 1970) * 366 * 86400;
	const char *at = text;
	uint64_t seconds = 0, part;
	int digits = 0;

	for (; isdigit((unsigned char)*at) && digits <= SECONDS_DIGITS; at++, digits++)
		seconds = seconds * 10 + (uint64_t)(*at - '0');
	if (!digits || seconds > last_s || !read_fraction(&at, ".", &part) || *at)
		return false;
	*ns = seconds * NSEC_PER_SEC + part;
	return true;
}

int log_time_parse(const char *text, uint64_t *ns, char error[ERROR_TEXT])
{
	const char *at = text;
	int month;

	if (read_seconds(text, ns) || read_date(text, ns))
		return 0;
	if (read_month(&at, &month) && read_character(&at, " "))
		snprintf(error, ERROR_TEXT, "a time without a year: '%.40s'", text);
	else
		snprintf(error, ERROR_TEXT,
			 "not a time: '%.40s', such as 1795312937.25, 2026-11-22T03:42:17Z or "
			 "22/Nov/2026:03:42:17 +0000, from 1970 to %d",
			 text, YEAR_LAST);
	return -EINVAL;
}
