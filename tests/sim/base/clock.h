/*
 * clock - the time as a host has it, fast or slow by some millionths of true time.
 *
 * It is told in local nanoseconds that do not go back; a true nanosecond may be none or two of
 * them.
 */
#ifndef RATEFS_SIM_CLOCK_H
#define RATEFS_SIM_CLOCK_H

#include "core/values/quantity.h"

enum { DRIFT_MAX_PPM = 100000 };

struct clock {
	uint64_t since_ns; /* true time from which the drift is what it is */
	uint64_t local_ns; /* then */
	int32_t ppm;
};

static inline uint64_t clock_read(const struct clock *clock, uint64_t true_ns)
{
	u128 elapsed = true_ns - clock->since_ns;

	return clock->local_ns + (uint64_t)(elapsed * (uint32_t)(1000000 + clock->ppm) / 1000000);
}

/* The first true time at which it shows @local_ns; NEVER_NS stays what it is. */
static inline uint64_t clock_when(const struct clock *clock, uint64_t local_ns)
{
	u128 elapsed, speed = (uint32_t)(1000000 + clock->ppm);

	if (local_ns == NEVER_NS)
		return NEVER_NS;
	if (local_ns <= clock->local_ns)
		return clock->since_ns;
	elapsed = ((u128)(local_ns - clock->local_ns) * 1000000 + speed - 1) / speed;
	return elapsed < NEVER_NS - clock->since_ns ? clock->since_ns + (uint64_t)elapsed
						    : NEVER_NS;
}

static inline void clock_drift(struct clock *clock, int32_t ppm, uint64_t true_ns)
{
	clock->local_ns = clock_read(clock, true_ns);
	clock->since_ns = true_ns;
	clock->ppm = ppm;
}

#endif
