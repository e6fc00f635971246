/*
 * clock - the time of the daemon.
 */
#ifndef RATEFS_FS_BASE_CLOCK_H
#define RATEFS_FS_BASE_CLOCK_H

#include "core/values/quantity.h"

#include <stdint.h>
#include <time.h>

/* Reads CLOCK_BOOTTIME, in nanoseconds: time passes for a service while the machine sleeps, too. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

#endif
