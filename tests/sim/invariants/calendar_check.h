/*
 * calendar_check - no window of the calendar has more tokens than its limit.
 *
 * A window is told by the date and the time that the clocks of its zone showed when it began, which
 * the C library works out. The clock may be set: while it shows a time before the latest window
 * that had tokens granted, tokens count for that one. A limiter may have been filled, or not, for a
 * window of which no token was granted before the clock was set back: both pass. Tokens that come
 * back in the first second of a window may be of the one before, and do not count for this.
 *
 * A change of the number alone goes on with the same window; other windows begin anew. A key may
 * have been forgotten once its window is over: it begins anew where the clock is set after that.
 *
 * Knows nothing of the core but the shape of settings.
 */
#ifndef RATEFS_SIM_CALENDAR_CHECK_H
#define RATEFS_SIM_CALENDAR_CHECK_H

#include "core/values/settings.h"

struct calendar_limit {
	bool in_force;
	struct rate rate;
	uint64_t most;
	char unit[UNIT_TEXT];
	int64_t latest; /* window with a grant, as a number of date and time */
	uint64_t granted;
};

struct calendar_check {
	struct calendar_limit limits[LIMITS_MAX];
	bool any;
	bool of_key;		 /* set by its owner */
	const int64_t *ahead_ns; /* borrowed: so far the wall clock is ahead of the check's time */
};

void calendar_check_tune(struct calendar_check *check, const struct settings *settings,
			 bool in_force);

/* The clock is about to be set: it has shown all windows up to now. */
void calendar_check_look(struct calendar_check *check, uint64_t now_ns);

/* Returns the window that tokens of limit @i, which is in force, are of if they are granted now. */
int64_t calendar_check_window(struct calendar_check *check, int i, uint64_t now_ns);

/*
 * @tokens of @unit are granted. Returns the index of a limit that is broken, or -1.
 */
int calendar_check_grant(struct calendar_check *check, const char *unit, uint64_t tokens,
			 uint64_t now_ns);

/* They come back. */
void calendar_check_return(struct calendar_check *check, const char *unit, uint64_t tokens,
			   uint64_t now_ns);

#endif
