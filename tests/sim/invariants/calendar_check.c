/* calendar_check - the tokens in a window of the calendar, see calendar_check.h. */
#include "tests/sim/invariants/calendar_check.h"
#include "tests/sim/base/zones.h"

#include <string.h>
#include <time.h>

enum { DAY_S = 86400, NEW_S = 1 };

static struct tm date_of(int64_t local_s)
{
	time_t time = (time_t)local_s;
	struct tm tm;

	gmtime_r(&time, &tm);
	return tm;
}

static int64_t number_of(const struct tm *tm, bool has_time)
{
	int64_t day = (tm->tm_year + 1900) * INT64_C(10000) + (tm->tm_mon + 1) * 100 + tm->tm_mday;

	return has_time ? (day * 100 + tm->tm_hour) * 100 + tm->tm_min : day;
}

/* Returns the day of @month (from 0) of @year on which a window begins that is to begin on @day. */
static int day_in(int year, int month, int day)
{
	struct tm last = {.tm_year = year, .tm_mon = month + 1, .tm_mday = 0};

	timegm(&last);
	return day < last.tm_mday ? day : last.tm_mday;
}

/* Returns the number of the window of @rate that @utc_s is in. */
static int64_t window_at(const struct rate *rate, int64_t utc_s)
{
	int64_t local_s = utc_s + (rate->zone ? LIBRARY_ZONES.offset_s(rate->zone, utc_s) : 0);
	struct tm tm = date_of(local_s);

	switch ((enum rate_kind)rate->kind) {
	case RATE_MINUTE:
		tm = date_of(utc_s - rate->at);
		return number_of(&tm, true);
	case RATE_HOUR:
		tm = date_of(utc_s - rate->at * 60);
		tm.tm_min = 0;
		return number_of(&tm, true);
	case RATE_DAY:
		if (tm.tm_hour * 60 + tm.tm_min < rate->at)
			tm = date_of(local_s - DAY_S);
		return number_of(&tm, false);
	case RATE_WEEK:
		tm = date_of(local_s - (tm.tm_wday - (rate->at + 1) % 7 + 7) % 7 * DAY_S);
		return number_of(&tm, false);
	case RATE_MONTH:
		if (tm.tm_mday < day_in(tm.tm_year, tm.tm_mon, rate->at))
			tm = (struct tm){.tm_year = tm.tm_year, .tm_mon = tm.tm_mon - 1};
		tm.tm_mday = 1;
		timegm(&tm);
		return number_of(&tm, false);
	case RATE_YEAR:
		if (tm.tm_mon < rate->month - 1 ||
		    (tm.tm_mon == rate->month - 1 &&
		     tm.tm_mday < day_in(tm.tm_year, tm.tm_mon, rate->at)))
			tm.tm_year--;
		return tm.tm_year;
	case RATE_FLOW:
	case RATE_STRICT:
	case RATE_KIND_COUNT:
		break;
	}
	return 0;
}

static bool is_same(const struct calendar_limit *limit, const struct limit *set)
{
	const struct rate *a = &limit->rate, *b = &set->rate;

	return limit->in_force && a->kind == b->kind && a->month == b->month && a->at == b->at &&
	       a->zone == b->zone && !strcmp(limit->unit, set->unit);
}

void calendar_check_tune(struct calendar_check *check, const struct settings *settings,
			 bool in_force)
{
	struct calendar_limit before[LIMITS_MAX];

	memcpy(before, check->limits, sizeof(before));
	memset(check->limits, 0, sizeof(check->limits));
	check->any = false;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *set = &settings->limits[i];
		struct calendar_limit *limit = &check->limits[i];

		if (!in_force || set->rate.kind < RATE_MINUTE)
			continue;
		check->any = true;
		for (int j = 0; j < LIMITS_MAX; j++) {
			if (is_same(&before[j], set))
				*limit = before[j];
		}
		limit->in_force = true;
		limit->rate = set->rate;
		limit->most = set->burst;
		memcpy(limit->unit, set->unit, sizeof(limit->unit));
	}
}

static int64_t utc_of(const struct calendar_check *check, uint64_t now_ns)
{
	return ((int64_t)now_ns + *check->ahead_ns) / (int64_t)NSEC_PER_SEC;
}

/* Begins with the window that @utc_s is in, if that is a later one. */
static void look(struct calendar_limit *limit, int64_t utc_s)
{
	int64_t window = window_at(&limit->rate, utc_s);

	if (window <= limit->latest)
		return;
	limit->latest = window;
	limit->granted = 0;
}

void calendar_check_look(struct calendar_check *check, uint64_t now_ns)
{
	for (int i = 0; i < LIMITS_MAX && check->any; i++) {
		struct calendar_limit *limit = &check->limits[i];

		if (!limit->in_force ||
		    window_at(&limit->rate, utc_of(check, now_ns)) <= limit->latest)
			continue;
		limit->granted = 0;
		if (check->of_key)
			limit->latest = 0;
	}
}

int64_t calendar_check_window(struct calendar_check *check, int i, uint64_t now_ns)
{
	look(&check->limits[i], utc_of(check, now_ns));
	return check->limits[i].latest;
}

int calendar_check_grant(struct calendar_check *check, const char *unit, uint64_t tokens,
			 uint64_t now_ns)
{
	int broken = -1;

	for (int i = 0; i < LIMITS_MAX && check->any; i++) {
		struct calendar_limit *limit = &check->limits[i];

		if (!tokens || !limit->in_force || strcmp(limit->unit, unit) != 0)
			continue;
		look(limit, utc_of(check, now_ns));
		limit->granted += tokens;
		if (limit->granted > limit->most)
			broken = i;
	}
	return broken;
}

void calendar_check_return(struct calendar_check *check, const char *unit, uint64_t tokens,
			   uint64_t now_ns)
{
	for (int i = 0; i < LIMITS_MAX && check->any; i++) {
		struct calendar_limit *limit = &check->limits[i];
		int64_t utc_s;

		if (!limit->in_force || strcmp(limit->unit, unit) != 0)
			continue;
		utc_s = utc_of(check, now_ns);
		look(limit, utc_s);
		if (window_at(&limit->rate, utc_s - NEW_S) != limit->latest &&
		    window_at(&limit->rate, utc_s) == limit->latest)
			continue;
		limit->granted -= tokens < limit->granted ? tokens : limit->granted;
	}
}
