/*
 * histogram - how long readers waited: exact counts, by powers of two of a millisecond.
 */
#ifndef RATEFS_CORE_HISTOGRAM_H
#define RATEFS_CORE_HISTOGRAM_H

#include <stdint.h>

/* Bounds of 1 ms, 2 ms, 4 ms, ... 4194 s, which is above an hour; and what waited longer. */
enum { HISTOGRAM_BOUNDS = 23, HISTOGRAM_COUNTS = HISTOGRAM_BOUNDS + 1 };

struct histogram {
	uint64_t at_once; /* that did not wait; of those that are counted here */
	uint64_t sum_ns;
	uint64_t counts[HISTOGRAM_COUNTS]; /* that waited, by the first bound that is not below */
};

/* Returns bound @i (below HISTOGRAM_BOUNDS) in ns. */
uint64_t histogram_bound_ns(unsigned int i);

/* Counts one that waited for @ns. */
void histogram_add(struct histogram *histogram, uint64_t ns);

/* Returns how many waited. */
uint64_t histogram_count(const struct histogram *histogram);

/*
 * Returns the time that @percent (1 to 99) of a hundred did not wait longer than, rounded up to a
 * bound; 0: they did not wait, or there were none; NEVER_NS: it is above all bounds.
 */
uint64_t histogram_quantile_ns(const struct histogram *histogram, unsigned int percent);

#endif
