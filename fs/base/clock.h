/*
 * clock - the time of the daemon.
 */
#ifndef RATEFS_FS_BASE_CLOCK_H
#define RATEFS_FS_BASE_CLOCK_H

#include <stdint.h>

/* Reads CLOCK_BOOTTIME, in nanoseconds: time passes for a service while the machine sleeps, too. */
uint64_t clock_ns(void);

#endif
