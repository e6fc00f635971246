/*
 * calendar - rates of which the period is a window of the calendar: `10000/day@00:00`.
 *
 * Its tokens are there at the beginning of the window, at once, and none flow in until the next.
 *
 *	N/min@:SS	each minute, at a second of it
 *	N/h@:MM		each hour, at a minute of it
 *	N/day@HH:MM	each day, at a time of it
 *	N/week@mon	each week, at 00:00 of a day of it: mon tue wed thu fri sat sun
 *	N/month@D	each month, at 00:00 of a day of it, 1 to 31
 *	N/year@jan-1	each year, at 00:00 of a day of it
 *
 * with a comma and the name of a time zone behind (day and longer): `1M/month@1,Europe/Paris`. So a
 * day there has 23 or 25 hours twice a year. Without one it is UTC. In a month without that day the
 * window begins on its last one. A time that the clocks of a zone skip is the instant at which they
 * do; of one that they show twice it is the first.
 *
 * Times are seconds of UTC since 1970 (without leap seconds), as time() has them.
 */
#ifndef RATEFS_CORE_CALENDAR_H
#define RATEFS_CORE_CALENDAR_H

#include "core/values/quantity.h"
#include "core/values/text.h"

/* The clock on the wall, as an engine knows it. */
struct wall {
	const uint64_t *now_ns; /* borrowed: the time of the engine */
	int64_t offset_ns;	/* it shows the time of the engine and that much more */
	int64_t settled_ns;	/* that, when times that depend on it were planned */
};

/* Windows of a calendar rate, and the one that the wall clock was in when it was looked at last. */
struct window {
	const struct rate *rate; /* borrowed */
	const struct wall *wall; /* borrowed */
	int64_t begin_s, end_s;	 /* end: the beginning of the next */
};

/* Tells whether the word @text, a limit, can only be a calendar rate. */
bool calendar_is_meant(const char *text);

/*
 * Returns the kind of the windows that the word @text of @length bytes is of, as calendar_print()
 * has written it; 0: of none.
 */
uint8_t calendar_kind(const char *text, size_t length);

/*
 * Parses @text as a calendar rate. 0, -EINVAL or -ERANGE with a sentence in @why that does not
 * repeat @text.
 */
int calendar_parse(const char *text, struct rate *rate, char why[ERROR_TEXT]);

enum { CALENDAR_TEXT = 2 * QUANTITY_TEXT };

/* Prints what calendar_parse() reads; and the same without the number: `day@00:00`. */
void calendar_print(const struct rate *rate, char text[CALENDAR_TEXT]);
void calendar_print_period(const struct rate *rate, char text[CALENDAR_TEXT]);

/* Tells whether two rates have the same windows; their numbers may differ. */
bool calendar_is_same(const struct rate *a, const struct rate *b);

/* Return the beginning of the window that @utc_s is in, and that of the next. */
int64_t calendar_begin_s(const struct rate *rate, int64_t utc_s);
int64_t calendar_end_s(const struct rate *rate, int64_t utc_s);

/* Returns what the wall clock shows at @now_ns of the engine. */
int64_t calendar_wall_s(const struct wall *wall, uint64_t now_ns);

/* Brings @window up to @now_ns of the engine. */
void calendar_look(struct window *window, uint64_t now_ns);

/* Returns when the wall clock shows @utc_s, in the engine's time; 0 if that is before it began. */
uint64_t calendar_engine_ns(const struct wall *wall, int64_t utc_s);

#endif
