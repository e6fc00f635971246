/*
 * log_time - the time of a line of a log.
 *
 * One of: seconds, since 1970 or since anything (1795312937.250); RFC 3339, with a blank for the T
 * and a comma for the point if need be (2026-11-22T03:42:17.250+01:00), of UTC without a zone; the
 * time of web servers (22/Nov/2026:03:42:17 +0100).
 */
#ifndef RATEFS_COMPANIONS_LOG_TIME_H
#define RATEFS_COMPANIONS_LOG_TIME_H

#include "core/values/text.h"

#include <stdint.h>

/*
 * Parses @text: ns since 1970, or since what its seconds count from; up to the year 2500. 0, or
 * -EINVAL with a reason, also of a time without a year.
 */
int log_time_parse(const char *text, uint64_t *ns, char error[ERROR_TEXT]);

#endif
