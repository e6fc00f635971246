/*
 * backoff_setting - the setting `backoff`: how long to pause after throttling; see
 * core/limiter/backoff.h.
 */
#ifndef RATEFS_CORE_BACKOFF_SETTING_H
#define RATEFS_CORE_BACKOFF_SETTING_H

#include "core/values/quantity.h"

#define BACKOFF_TIME_MAX_NS (UINT64_C(24) * 3600 * NSEC_PER_SEC) /* of each time in it */

enum backoff_kind { BACKOFF_NONE, BACKOFF_EXPONENTIAL, BACKOFF_LINEAR };

/* The setting. */
struct backoff {
	enum backoff_kind kind; /* BACKOFF_NONE: all others are 0 */
	uint64_t initial_ns;	/* 1 ns to max_ns */
	uint64_t max_ns;
	uint64_t step_ns; /* linear */
	uint64_t up;	  /* exponential, as down and jitter: billionths */
	uint64_t down;
	uint64_t after; /* successes, at least 1 */
	uint64_t jitter;
	uint64_t jitter_max_ns;
	uint64_t retry_max_ns; /* of a pause that the service asks for; 0: none of these */
};

/*
 * Parses or prints `none`, or the kind and parameters; parameters that are not given have their
 * defaults. 0, -EINVAL or -ERANGE with a sentence in @error, which has room for ERROR_TEXT bytes.
 * At most SETTING_TEXT bytes are printed.
 */
int backoff_setting_parse(const char *text, struct backoff *backoff, char *error);
void backoff_setting_print(const struct backoff *backoff, char *text);

#endif
