/* limit - one limit of `rate`, or of `key_rate`. */
#ifndef RATEFS_CORE_LIMIT_H
#define RATEFS_CORE_LIMIT_H

#include "core/values/amounts.h"
#include "core/values/quantity.h"

#include <stdint.h>

enum { LIMITS_MAX = 8 }; /* in one `rate`, and the units and windows of `key_rate` among them */

/* `10/s`; with a burst of its own `10/s:20`; with a unit `tpm=10/s`. */
struct limit {
	struct rate rate;
	uint64_t burst;	      /* 0: the limiter's; of windows: the tokens of each */
	char unit[UNIT_TEXT]; /* "": the one without a name; the rest is 0 */
};

/*
 * Tells whether @limit is the one of a key that has @unit and @kind: windows of the calendar of
 * that length, or (0) none. A key has one of each.
 */
static inline bool key_limit_is(const struct limit *limit, const char unit[UNIT_TEXT], uint8_t kind)
{
	return rate_window_kind(&limit->rate) == kind && amount_is_of(limit->unit, unit);
}

#endif
