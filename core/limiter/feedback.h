/*
 * feedback - how work went: one outcome a line.
 *
 *	ok [N]					N pieces of work (default 1) went through
 *	throttled [N] [retry-after=DURATION]	the service said: slow down
 *	error [N]				failed for another reason
 *	STATUS [retry-after=DURATION]		a HTTP status of three digits: 2xx and 3xx are ok, 429
 *						and 503 throttled, all others errors
 *
 * As curl prints it, retry-after may be nothing, and counts only if the status says throttled; 000
 * is an error. Behind a status a date of HTTP counts as nothing, with all that follows it.
 */
#ifndef RATEFS_CORE_FEEDBACK_H
#define RATEFS_CORE_FEEDBACK_H

#include "core/values/settings.h"

#define OUTCOMES_MAX UINT64_C(1000000000) /* pieces of work in one line */

enum outcome_kind { OUTCOME_OK, OUTCOME_THROTTLED, OUTCOME_ERROR, OUTCOME_COUNT };

struct outcome {
	enum outcome_kind kind;
	uint64_t count;
	uint64_t retry_after_ns; /* 0: none was named */
};

/*
 * Reads the outcome in the next line of *@text that is not blank; *@text moves on. 0; -ENOENT when
 * there are no more; -EINVAL or -ERANGE with a sentence in @error.
 */
int feedback_parse(const char **text, struct outcome *outcome, char error[ERROR_TEXT]);

#endif
