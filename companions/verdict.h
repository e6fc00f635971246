/*
 * verdict - how a piece of work went, as its command tells and as a limiter's `feedback` takes it.
 */
#ifndef RATEFS_COMPANIONS_VERDICT_H
#define RATEFS_COMPANIONS_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

enum verdict_kind { VERDICT_OK, VERDICT_THROTTLED, VERDICT_ERROR };

struct verdict {
	enum verdict_kind kind;
	uint64_t count;		 /* pieces of work, 0: not told */
	uint64_t retry_after_ns; /* of throttled work, 0: not told */
};

enum { VERDICT_TEXT = 128 };

/*
 * Understands `ok [N]`, `throttled [N]`, `error [N]`, an HTTP status (2xx and 3xx are ok, 429 and 503
 * throttled, others errors) and an HTTP status line, each with `retry-after=DURATION` or
 * `retry-after=SECONDS` after it; a retry-after that is not understood counts as none.
 * False when it is none of these; then @verdict is untouched.
 */
bool verdict_parse(const char *line, struct verdict *verdict);

/* The line for `feedback`, ended by a newline. */
void verdict_print(const struct verdict *verdict, char text[VERDICT_TEXT]);

#endif
