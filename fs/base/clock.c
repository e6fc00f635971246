/* clock - the time of the daemon, see clock.h. */
#include "fs/base/clock.h"

#include <time.h>

#define NSEC_PER_SEC UINT64_C(1000000000)

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}
