/* calendar - rates of which the period is a window of the calendar, see calendar.h. */
#include "core/values/calendar.h"
#include "core/values/zone.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	MINUTE_S = 60,
	HOUR_S = 3600,
	DAY_S = 86400,
	FIRST_MONDAY = 4, /* days after 1 January 1970 */
};

static const char *const WEEKDAYS[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

static const char *const MONTHS[] = {"jan", "feb", "mar", "apr", "may", "jun",
				     "jul", "aug", "sep", "oct", "nov", "dec"};

enum { WEEKDAY_COUNT = 7, MONTH_COUNT = 12 };

static const char GRAMMAR[] =
	"not a window: NUMBER[SUFFIX] and /min@:SS, /h@:MM, /day@HH:MM, /week@mon, /month@1 or "
	"/year@jan-1, and a comma and a time zone if it is not UTC, such as "
	"1000/day@00:00,Europe/Paris";

/* Periods by their names. */
static const struct {
	const char *name;
	uint8_t kind;
	const char *why; /* texts that may come after the @ */
} PERIODS[] = {
	{"min", RATE_MINUTE, "a minute begins at a second of it, @:00 to @:59"},
	{"minute", RATE_MINUTE, "a minute begins at a second of it, @:00 to @:59"},
	{"h", RATE_HOUR, "an hour begins at a minute of it, @:00 to @:59"},
	{"hour", RATE_HOUR, "an hour begins at a minute of it, @:00 to @:59"},
	{"day", RATE_DAY, "a day begins at a time of it, @00:00 to @23:59"},
	{"d", RATE_DAY, "a day begins at a time of it, @00:00 to @23:59"},
	{"week", RATE_WEEK, "a week begins on @mon, @tue, @wed, @thu, @fri, @sat or @sun"},
	{"month", RATE_MONTH,
	 "a month begins on one of its days, @1 to @31, and if it has no such day on its last"},
	{"year", RATE_YEAR,
	 "a year begins on one of its days, @jan-1 to @dec-31, with a day that the month has"},
};

enum { PERIOD_COUNT = sizeof(PERIODS) / sizeof(PERIODS[0]) };

static const uint64_t LENGTHS_S[RATE_KIND_COUNT] = {
	[RATE_MINUTE] = MINUTE_S, [RATE_HOUR] = HOUR_S,	     [RATE_DAY] = DAY_S,
	[RATE_WEEK] = 7 * DAY_S,  [RATE_MONTH] = 30 * DAY_S, [RATE_YEAR] = 365 * DAY_S,
};

/* Dates. Days are counted from 1 January 1970, months from January of the year 0. */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static bool is_leap(int64_t year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Returns how many days @month, 1 to 12, has; of a year that is not given, those of a leap year. */
static int days_of(int64_t year, int month)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

	return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

/* Returns the number of 1 January of @year. */
static int64_t first_day_of(int64_t year)
{
	int64_t before = year - 1;

	return 365 * (year - 1970) + (floor_div(before, 4) - 1969 / 4) -
	       (floor_div(before, 100) - 1969 / 100) + (floor_div(before, 400) - 1969 / 400);
}

/* Returns the number of @day of @month of @year, or of the last day that the month has. */
static int64_t day_number(int64_t year, int month, int day)
{
	int64_t number = first_day_of(year);
	int last = days_of(year, month);

	for (int m = 1; m < month; m++)
		number += days_of(year, m);
	return number + (day < last ? day : last) - 1;
}

/* Returns the year that day @number is in, and the month in *@month. */
static int64_t year_of(int64_t number, int *month)
{
	int64_t year = 1970 + floor_div(number, 366);

	while (first_day_of(year + 1) <= number)
		year++;
	number -= first_day_of(year);
	for (*month = 1; number >= days_of(year, *month); (*month)++)
		number -= days_of(year, *month);
	return year;
}

/*
 * Returns when the clocks of @zone show @local_s, which is counted as if they showed UTC: for the
 * first time, or, if they skip it, when they do.
 */
static int64_t utc_of(uint16_t zone, int64_t local_s)
{
	int64_t before = zone_offset_s(zone, local_s - DAY_S);
	int64_t after = zone_offset_s(zone, local_s + DAY_S);
	int64_t early, late;

	if (zone_offset_s(zone, local_s - before) == before)
		return local_s - before;
	if (zone_offset_s(zone, local_s - after) == after)
		return local_s - after;
	/* Between these two the clocks are put forward. */
	early = local_s - after;
	late = local_s - before;
	while (late - early > 1) {
		int64_t middle = early + (late - early) / 2;

		if (zone_offset_s(zone, middle) == before)
			early = middle;
		else
			late = middle;
	}
	return late;
}

/* Returns the beginning of window @index of @rate, a day or longer; see index_of(). */
static int64_t begin_of(const struct rate *rate, int64_t index)
{
	int64_t day = index, time_s = 0;

	if (rate->kind == RATE_DAY)
		time_s = rate->at * MINUTE_S;
	else if (rate->kind == RATE_WEEK)
		day = index * WEEKDAY_COUNT + FIRST_MONDAY + rate->at;
	else if (rate->kind == RATE_MONTH)
		day = day_number(floor_div(index, MONTH_COUNT),
				 (int)(index - floor_div(index, MONTH_COUNT) * MONTH_COUNT) + 1,
				 rate->at);
	else
		day = day_number(index, rate->month, rate->at);
	return utc_of(rate->zone, day * DAY_S + time_s);
}

/*
 * Returns the number of the window of @rate that begins on day @day or around it: days, weeks since
 * the first Monday, months or years.
 */
static int64_t index_of(const struct rate *rate, int64_t day)
{
	int64_t year;
	int month;

	if (rate->kind == RATE_DAY)
		return day;
	if (rate->kind == RATE_WEEK)
		return floor_div(day - FIRST_MONDAY - rate->at, WEEKDAY_COUNT);
	year = year_of(day, &month);
	return rate->kind == RATE_MONTH ? year * MONTH_COUNT + month - 1 : year;
}

/* Returns the number of the window of @rate, a day or longer, that @utc_s is in. */
static int64_t find_window(const struct rate *rate, int64_t utc_s)
{
	int64_t local_s = utc_s + zone_offset_s(rate->zone, utc_s);
	int64_t index = index_of(rate, floor_div(local_s, DAY_S));

	while (begin_of(rate, index) > utc_s)
		index--;
	while (begin_of(rate, index + 1) <= utc_s)
		index++;
	return index;
}

int64_t calendar_begin_s(const struct rate *rate, int64_t utc_s)
{
	if (rate->kind == RATE_MINUTE)
		return floor_div(utc_s - rate->at, MINUTE_S) * MINUTE_S + rate->at;
	if (rate->kind == RATE_HOUR)
		return floor_div(utc_s - rate->at * MINUTE_S, HOUR_S) * HOUR_S +
		       rate->at * MINUTE_S;
	return begin_of(rate, find_window(rate, utc_s));
}

int64_t calendar_end_s(const struct rate *rate, int64_t utc_s)
{
	if (rate->kind == RATE_MINUTE || rate->kind == RATE_HOUR)
		return calendar_begin_s(rate, utc_s) + (int64_t)LENGTHS_S[rate->kind];
	return begin_of(rate, find_window(rate, utc_s) + 1);
}

int64_t calendar_wall_s(const struct wall *wall, uint64_t now_ns)
{
	return floor_div((int64_t)now_ns + wall->offset_ns, (int64_t)NSEC_PER_SEC);
}

void calendar_look(struct window *window, uint64_t now_ns)
{
	int64_t wall_s = calendar_wall_s(window->wall, now_ns);

	if (wall_s >= window->begin_s && wall_s < window->end_s)
		return;
	window->begin_s = calendar_begin_s(window->rate, wall_s);
	window->end_s = calendar_end_s(window->rate, wall_s);
}

uint64_t calendar_engine_ns(const struct wall *wall, int64_t utc_s)
{
	int64_t at_ns = utc_s * (int64_t)NSEC_PER_SEC - wall->offset_ns;

	return at_ns > 0 ? (uint64_t)at_ns : 0;
}

/* Text. */

bool calendar_is_meant(const char *text)
{
	return strchr(text, '@');
}

/* Reads @count digits at *@text, and moves it behind them. Returns -1 if they are not there. */
static int read_digits(const char **text, int count)
{
	int value = 0;

	for (int i = 0; i < count; i++) {
		if (**text < '0' || **text > '9')
			return -1;
		value = value * 10 + (*(*text)++ - '0');
	}
	return value;
}

/* Reads a day, 1 to @last, of one or two digits without a 0 before. Returns 0 if it is none. */
static uint16_t read_day(const char *text, int last)
{
	int count = (int)strlen(text), day;

	if (count < 1 || count > 2 || *text == '0')
		return 0;
	day = read_digits(&text, count);
	return day > 0 && day <= last ? (uint16_t)day : 0;
}

/* Returns which of @names @text begins with, or -1. All have three letters. */
static int read_name(const char *text, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (!strncmp(text, names[i], 3))
			return i;
	}
	return -1;
}

/* Reads `:SS`, or `:MM`. */
static bool read_part(const char *text, struct rate *rate)
{
	int part = *text++ == ':' ? read_digits(&text, 2) : -1;

	rate->at = (uint16_t)part;
	return part >= 0 && part < 60 && !*text;
}

static bool read_time(const char *text, struct rate *rate)
{
	int hour = read_digits(&text, 2), minute;

	if (hour < 0 || hour > 23 || *text++ != ':')
		return false;
	minute = read_digits(&text, 2);
	rate->at = (uint16_t)(hour * 60 + minute);
	return minute >= 0 && minute < 60 && !*text;
}

/* Reads what comes between the @ and the comma. */
static bool read_beginning(const char *text, struct rate *rate)
{
	int index;

	switch ((enum rate_kind)rate->kind) {
	case RATE_MINUTE:
	case RATE_HOUR:
		return read_part(text, rate);
	case RATE_DAY:
		return read_time(text, rate);
	case RATE_WEEK:
		index = read_name(text, WEEKDAYS, WEEKDAY_COUNT);
		rate->at = (uint16_t)index;
		return index >= 0 && strlen(text) == 3;
	case RATE_MONTH:
		rate->at = read_day(text, 31);
		return rate->at;
	case RATE_YEAR:
		index = read_name(text, MONTHS, MONTH_COUNT);
		if (index < 0 || text[3] != '-')
			return false;
		rate->month = (uint8_t)(index + 1);
		rate->at = read_day(text + 4, days_of(2000, index + 1));
		return rate->at;
	case RATE_FLOW:
	case RATE_STRICT:
	case RATE_KIND_COUNT:
		break;
	}
	return false;
}

static int refuse(char why[ERROR_TEXT], int err, const char *sentence)
{
	snprintf(why, ERROR_TEXT, "%s", sentence);
	return err;
}

static int read_zone(const char *name, struct rate *rate, char why[ERROR_TEXT])
{
	int err;

	if (rate->kind == RATE_MINUTE || rate->kind == RATE_HOUR)
		return refuse(why, -EINVAL,
			      "a zone is for a day and longer: minutes and hours begin at a second "
			      "or minute of UTC");
	err = zone_find(name, &rate->zone);
	if (err == -ENOENT)
		snprintf(why, ERROR_TEXT,
			 "'%.40s' is no time zone of this system: names are such as Europe/Paris, "
			 "or UTC",
			 name);
	else if (err)
		snprintf(why, ERROR_TEXT, "too many time zones are in use: %d at most",
			 ZONE_COUNT_MAX);
	return err ? -EINVAL : 0;
}

/* Returns which period is called @name of @length bytes; PERIOD_COUNT: none is. */
static size_t find_period(const char *name, size_t length)
{
	size_t i = 0;

	while (i < PERIOD_COUNT &&
	       (strlen(PERIODS[i].name) != length || strncmp(PERIODS[i].name, name, length) != 0))
		i++;
	return i;
}

uint8_t calendar_kind(const char *text, size_t length)
{
	const char *slash = memchr(text, '/', length), *at = memchr(text, '@', length);
	size_t i = slash && at > slash ? find_period(slash + 1, (size_t)(at - slash - 1))
				       : PERIOD_COUNT;

	return i < PERIOD_COUNT ? PERIODS[i].kind : 0;
}

int calendar_parse(const char *text, struct rate *rate, char why[ERROR_TEXT])
{
	const char *slash = strchr(text, '/'), *at = slash ? strchr(slash, '@') : NULL;
	struct rate parsed = {0};
	char beginning[16];
	size_t length, i;
	int err;

	if (!at)
		return refuse(why, -EINVAL, GRAMMAR);
	i = find_period(slash + 1, (size_t)(at - slash - 1));
	err = rate_parse_amount(text, (size_t)(slash - text), &parsed);
	if (i == PERIOD_COUNT || err == -EINVAL)
		return refuse(why, -EINVAL, GRAMMAR);
	if (err)
		return refuse(why, err,
			      "out of bounds: a window has 1 to 1e13 tokens, a whole number");
	parsed.kind = PERIODS[i].kind;
	parsed.period_ns = LENGTHS_S[parsed.kind] * NSEC_PER_SEC;
	at++;
	length = strcspn(at, ",");
	snprintf(beginning, sizeof(beginning), "%.*s", (int)length, at);
	if (length >= sizeof(beginning) || !read_beginning(beginning, &parsed))
		return refuse(why, -EINVAL, PERIODS[i].why);
	if (at[length])
		err = read_zone(at + length + 1, &parsed, why);
	if (!err)
		*rate = parsed;
	return err;
}

void calendar_print_period(const struct rate *rate, char text[CALENDAR_TEXT])
{
	const char *zone = zone_name(rate->zone);
	char beginning[QUANTITY_TEXT];

	switch ((enum rate_kind)rate->kind) {
	case RATE_MINUTE:
		snprintf(beginning, sizeof(beginning), "min@:%02u", rate->at);
		break;
	case RATE_HOUR:
		snprintf(beginning, sizeof(beginning), "h@:%02u", rate->at);
		break;
	case RATE_DAY:
		snprintf(beginning, sizeof(beginning), "day@%02u:%02u", rate->at / 60u,
			 rate->at % 60u);
		break;
	case RATE_WEEK:
		snprintf(beginning, sizeof(beginning), "week@%s", WEEKDAYS[rate->at]);
		break;
	case RATE_MONTH:
		snprintf(beginning, sizeof(beginning), "month@%u", rate->at);
		break;
	case RATE_YEAR:
		snprintf(beginning, sizeof(beginning), "year@%s-%u", MONTHS[rate->month - 1],
			 rate->at);
		break;
	case RATE_FLOW:
	case RATE_STRICT:
	case RATE_KIND_COUNT:
		*beginning = '\0';
		break;
	}
	snprintf(text, CALENDAR_TEXT, "%s%s%s", beginning, *zone ? "," : "", zone);
}

void calendar_print(const struct rate *rate, char text[CALENDAR_TEXT])
{
	char amount[QUANTITY_TEXT], period[CALENDAR_TEXT];

	rate_print_amount(rate, amount);
	calendar_print_period(rate, period);
	snprintf(text, CALENDAR_TEXT, "%.40s/%.80s", amount, period);
}

bool calendar_is_same(const struct rate *a, const struct rate *b)
{
	return a->kind == b->kind && a->month == b->month && a->at == b->at && a->zone == b->zone;
}
