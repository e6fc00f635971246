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

/* Returns what the time of day, CLOCK_REALTIME, is ahead of clock_ns(), in nanoseconds. */
static inline int64_t clock_wall_offset_ns(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (int64_t)wall.tv_sec * (int64_t)NSEC_PER_SEC + wall.tv_nsec - (int64_t)clock_ns();
}

#endif
