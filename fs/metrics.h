/*
 * metrics - every stat of every limiter in the Prometheus text format, version 0.0.4.
 */
#ifndef RATEFS_FS_METRICS_H
#define RATEFS_FS_METRICS_H

#include "fs/daemon.h"

#include <stdio.h>

/*
 * Under the lock, which is let go of now and then: nobody waits for a page of a hundred thousand
 * limiters.
 */
void metrics_print(FILE *out, struct daemon *daemon);

#endif
