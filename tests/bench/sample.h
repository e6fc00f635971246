/*
 * sample - times measured, and their percentiles.
 */
#ifndef RATEFS_BENCH_SAMPLE_H
#define RATEFS_BENCH_SAMPLE_H

#include <stdint.h>

enum { NS_PER_US = 1000, NS_PER_S = 1000000000 };

struct sample {
	int64_t *ns; /* owned; lives as long as the program */
	long count, max;
};

/* CLOCK_MONOTONIC. */
int64_t sample_now_ns(void);

/* Room for @max times; ends the program if there is no memory. */
struct sample sample_make(long max);

/* There must be room. */
void sample_add(struct sample *sample, int64_t ns);

/* Sorts and prints lines p50_us, p99_us, max_us, mean_us, each name after @prefix. */
void sample_print(struct sample *sample, const char *prefix);

#endif
