/* header_value - values of header fields, see header_value.h. */
#include "companions/header_value.h"
#include "companions/log_time.h"

#include "core/values/quantity.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DIGITS_MOST = 16, DATE_TEXT = 40, CENTURY_TURN = 70 };

/* The least numbers that are us, ms and seconds since 1970, and no seconds from now on. */
static const uint64_t LEAST_US = UINT64_C(100000000000000);
static const uint64_t LEAST_MS = UINT64_C(100000000000);
static const uint64_t LEAST_S = DURATION_MAX_NS / NSEC_PER_SEC + 1;

static const struct {
	const char *name;
	uint64_t ns;
} UNITS[] = {
	{"ms", NSEC_PER_SEC / 1000},
	{"us", NSEC_PER_SEC / 1000000},
	{"\xc2\xb5s", NSEC_PER_SEC / 1000000},
	{"ns", 1},
	{"s", NSEC_PER_SEC},
	{"m", 60 * NSEC_PER_SEC},
	{"h", 3600 * NSEC_PER_SEC},
	{"d", 86400 * NSEC_PER_SEC},
};

/* Reads a decimal at *@at, and goes behind it: whole, and billionths. */
static bool read_decimal(const char **at, uint64_t *whole, uint64_t *billionths)
{
	uint64_t unit = DECIMAL_ONE;
	int digits = 0;

	*whole = 0;
	*billionths = 0;
	for (; isdigit((unsigned char)**at); (*at)++) {
		if (++digits > DIGITS_MOST)
			return false;
		*whole = *whole * 10 + (uint64_t)(**at - '0');
	}
	if (!digits || **at != '.')
		return digits;
	for ((*at)++; isdigit((unsigned char)**at); (*at)++) {
		unit /= 10;
		*billionths += unit * (uint64_t)(**at - '0');
	}
	return true;
}

static bool month_of(const char *name, int *month)
{
	static const char MONTHS[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (*month = 0; *month < 12; (*month)++) {
		if (!strncmp(name, MONTHS + 3 * (size_t)*month, 3))
			return true;
	}
	return false;
}

/* The three forms of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT; with a full name; of asctime(3). */
static bool http_date(const char *text, uint64_t *ns)
{
	struct tm date = {0};
	char month[4] = "";
	int end = 0, day;
	time_t seconds;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT%n", &date.tm_mday, month,
		   &date.tm_year, &date.tm_hour, &date.tm_min, &date.tm_sec, &end) != 6 ||
	    !end) {
		end = 0;
		if (sscanf(text, "%*9[A-Za-z], %2d-%3[A-Za-z]-%2d %2d:%2d:%2d GMT%n", &date.tm_mday,
			   month, &date.tm_year, &date.tm_hour, &date.tm_min, &date.tm_sec,
			   &end) == 6 &&
		    end)
			date.tm_year += date.tm_year < CENTURY_TURN ? 2000 : 1900;
	}
	if (!end &&
	    (sscanf(text, "%*3[A-Za-z] %3[A-Za-z] %2d %2d:%2d:%2d %4d%n", month, &date.tm_mday,
		    &date.tm_hour, &date.tm_min, &date.tm_sec, &date.tm_year, &end) != 6 ||
	     !end))
		return false;
	if (text[end] || !month_of(month, &date.tm_mon) || date.tm_year < 1970 ||
	    date.tm_mday < 1 || date.tm_hour < 0 || date.tm_hour > 23 || date.tm_min < 0 ||
	    date.tm_min > 59 || date.tm_sec < 0 || date.tm_sec > 60)
		return false;
	date.tm_year -= 1900;
	day = date.tm_mday;
	if (date.tm_sec == 60)
		date.tm_sec = 59;
	seconds = timegm(&date);
	if (seconds < 0 || date.tm_mday != day || (uint64_t)seconds > INT64_MAX / NSEC_PER_SEC)
		return false;
	*ns = (uint64_t)seconds * NSEC_PER_SEC;
	return true;
}

bool header_value_date(const char *text, uint64_t *ns)
{
	static const size_t minutes = sizeof("2026-11-23T08:00") - 1;
	char whole[DATE_TEXT], error[ERROR_TEXT];

	if (http_date(text, ns))
		return true;
	if (strlen(text) < minutes || strlen(text) > DATE_TEXT - sizeof(":00") || text[4] != '-')
		return false;
	if (text[minutes] == ':')
		return !log_time_parse(text, ns, error);
	snprintf(whole, sizeof(whole), "%.*s:00%s", (int)minutes, text, text + minutes);
	return !log_time_parse(whole, ns, error);
}

/* Reads numbers with units, as Go prints a duration. */
static bool read_duration(const char *text, uint64_t *ns)
{
	static const size_t unit_count = sizeof(UNITS) / sizeof(UNITS[0]);
	u128 sum = 0;

	do {
		uint64_t whole, billionths;
		size_t i = 0;

		if (!read_decimal(&text, &whole, &billionths))
			return false;
		while (i < unit_count && strncmp(text, UNITS[i].name, strlen(UNITS[i].name)) != 0)
			i++;
		if (i == unit_count)
			return false;
		text += strlen(UNITS[i].name);
		sum += (u128)whole * UNITS[i].ns + (u128)billionths * UNITS[i].ns / DECIMAL_ONE;
		if (sum > DURATION_MAX_NS)
			return false;
	} while (*text);
	*ns = (uint64_t)sum;
	return true;
}

/* Reads a number of seconds: from now on, or since 1970; then @absolute. */
static bool read_number(const char *text, uint64_t *ns, bool *absolute)
{
	uint64_t whole, billionths, unit_ns = NSEC_PER_SEC;
	u128 sum;

	if (!read_decimal(&text, &whole, &billionths) || *text)
		return false;
	*absolute = whole >= LEAST_S;
	if (whole >= LEAST_US)
		unit_ns = NSEC_PER_SEC / 1000000;
	else if (whole >= LEAST_MS)
		unit_ns = NSEC_PER_SEC / 1000;
	sum = (u128)whole * unit_ns + (u128)billionths * unit_ns / DECIMAL_ONE;
	*ns = (uint64_t)sum;
	return sum <= INT64_MAX;
}

bool header_value_wait(const char *text, uint64_t now_ns, uint64_t *wait_ns)
{
	bool absolute = false;
	uint64_t ns;

	if (!read_number(text, &ns, &absolute) && !read_duration(text, &ns)) {
		if (!header_value_date(text, &ns))
			return false;
		absolute = true;
	}
	if (absolute)
		ns = ns > now_ns ? ns - now_ns : 0;
	*wait_ns = ns;
	return ns <= DURATION_MAX_NS;
}

bool header_value_count(const char *text, uint64_t *count)
{
	uint64_t billionths;

	return read_decimal(&text, count, &billionths) && *count <= TOKENS_MAX &&
	       (!*text || strchr(",; ", *text));
}
