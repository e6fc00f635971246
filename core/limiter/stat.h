/*
 * stat - the counters and gauges of a limiter: their names, units and order.
 */
#ifndef RATEFS_CORE_STAT_H
#define RATEFS_CORE_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limiter;

/* Counters of a limiter, from its making on. */
enum counter {
	COUNTER_GRANTED,   /* tokens, also of children */
	COUNTER_SERVED,	   /* reads answered with tokens */
	COUNTER_REFUSED,   /* reads that got none: of try, within and O_NONBLOCK */
	COUNTER_CANCELLED, /* readers that gave up waiting */
	COUNTER_DELAYED,   /* ns that served readers waited */
	COUNTER_SHADOWED,  /* tokens that would have waited if enforced */
	COUNTER_CHARGED,   /* tokens charged afterwards */
	COUNTER_RETURNED,  /* tokens given back unused */
	COUNTER_OK,	   /* pieces of work that went through, as was reported */
	COUNTER_THROTTLED, /* ... that the service throttled */
	COUNTER_ERROR,	   /* ... that failed for another reason */
	COUNTER_COUNT
};

enum { STAT_TEXT = 2048 };

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

/* Prints the whole of `stat`, of a key the part it has; returns its length (below STAT_TEXT). */
size_t stat_print(const struct limiter *limiter, char text[STAT_TEXT]);

#endif
