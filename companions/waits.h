/*
 * waits - how long readers waited: exact sum, number and maximum, and quantiles.
 *
 * Quantiles come from a histogram, as HdrHistogram's: WAITS_PARTS buckets to each power of two of
 * nanoseconds. So one is at most 1/WAITS_PARTS too large and never too small, in constant memory.
 */
#ifndef RATEFS_COMPANIONS_WAITS_H
#define RATEFS_COMPANIONS_WAITS_H

#include <stdint.h>

enum {
	WAITS_PARTS = 128,
	WAITS_BUCKETS = (64 - 6) * WAITS_PARTS,
};

struct waits {
	uint64_t count;
	uint64_t most_ns;
	double sum_s;
	uint64_t *buckets; /* owned; NULL until there is a wait */
};

/* Adds one. 0 or -ENOMEM. */
int waits_add(struct waits *waits, uint64_t ns);

/* Returns the least ns within which @percent (1 to 100) of all waits were over; 0 of none. */
uint64_t waits_quantile_ns(const struct waits *waits, unsigned int percent);

void waits_free(struct waits *waits);

#endif
