/*
 * pressure - the part of the time in which a reader waited, as PSI (pressure stall information) of
 * Linux tells it: averages over 10 s, 60 s and 300 s, and a sum.
 *
 * An average over T is one in which time that is t ago has the weight exp(-t/T)/T. PSI computes it
 * from samples of 2 s; here it is the same, except that the last stretch without a change is not
 * cut into samples. Between two samples a change costs an addition.
 */
#ifndef RATEFS_CORE_PRESSURE_H
#define RATEFS_CORE_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

enum { PRESSURE_AVERAGES = 3 };

struct pressure {
	unsigned int stalled : 1;	    /* a reader waits ... */
	uint64_t at_ns;			    /* ... since this time, or none does */
	uint64_t total_ns;		    /* in which one waited, until @at_ns */
	double averages[PRESSURE_AVERAGES]; /* 0 to 1, as of @sampled_ns */
	uint64_t sampled_ns, sampled_total_ns;
};

/* Begins at @now_ns, without a reader that waits. */
void pressure_init(struct pressure *pressure, uint64_t now_ns);

/* Notes that a reader waits from @now_ns on, or that none does. Time does not go back. */
void pressure_set(struct pressure *pressure, bool stalled, uint64_t now_ns);

/* Returns the time in which a reader waited, until @now_ns. */
static inline uint64_t pressure_total_ns(const struct pressure *pressure, uint64_t now_ns)
{
	bool counts = pressure->stalled && now_ns > pressure->at_ns;

	return pressure->total_ns + (counts ? now_ns - pressure->at_ns : 0);
}

/* Returns @pressure as of @now_ns: with averages and the sum until then. */
struct pressure pressure_at(const struct pressure *pressure, uint64_t now_ns);

#endif
