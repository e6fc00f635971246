/*
 * stat - the counters and gauges of a limiter: their names, units and order.
 */
#ifndef RATEFS_CORE_STAT_H
#define RATEFS_CORE_STAT_H

#include "core/limiter/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAT_TEXT = 8192 };

/* One name and value of `stat`. */
struct stat_entry {
	const char *name; /* in stat; metrics adds ratefs_ and, for counters, _total */
	const char *help;
	double value;	/* of a gauge, or seconds */
	uint64_t count; /* of a counter that is no time */
	bool is_counter;
	bool is_whole; /* the value is in count */
};

/* Return the number of entries, and entry @index (below it) of @limiter as of its last step. */
size_t stat_count(void);
struct stat_entry stat_entry(const struct limiter *limiter, size_t index);

/*
 * Tells whether metrics has entry @index of @limiter: no quantile, for which it has more, and
 * nothing of what is off. A counter that was there stays for as long as it is not 0.
 */
bool stat_has_metric(const struct limiter *limiter, size_t index);

/*
 * Likewise of a unit: that of limit @i, which stat_unit() has found from @i on; LIMITS_MAX: there
 * is no more. In `stat` its name follows that of the entry, after a point.
 */
size_t stat_unit_count(void);
struct stat_entry stat_unit_entry(const struct limiter *limiter, uint32_t i, size_t index);
uint32_t stat_unit(const struct limiter *limiter, uint32_t i);
const char *stat_unit_name(const struct limiter *limiter, uint32_t i);

/* Prints the whole of `stat`, of a key the part it has; returns its length (below STAT_TEXT). */
size_t stat_print(const struct limiter *limiter, char text[STAT_TEXT]);

#endif
