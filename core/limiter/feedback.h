/*
 * feedback - how work went: one outcome a line.
 *
 *	ok [N]					N pieces of work (default 1) went through
 *	throttled [N] [retry-after=DURATION]	the service said: slow down
 *	error [N]				failed for another reason
 *	STATUS [retry-after=DURATION]		a HTTP status of three digits: 2xx and 3xx are ok, 429
 *						and 503 throttled, all others errors
 *
 *	quota					nothing went: of the service's quota alone
 *
 * and behind each of these, in any order, what the service says of its quota:
 *
 *	remaining=N	so many tokens are left until `reset` from now, or for `window` if there is
 *			no reset; max: no such report holds any more
 *	reset=DURATION	when the quota is whole again
 *	limit=N		tokens that the service gives in a `window`
 *	window=DURATION	above 0
 *	unit=NAME	all of that is of this unit, see units.h
 *
 * Durations may have several parts, as 6m0s, with `m` for min there. In place of one behind
 * retry-after and reset there may be a time since 1970, of ten digits and any decimals in seconds,
 * or of thirteen in milliseconds. As curl prints it, each of these may be nothing. retry-after
 * counts only if the status says throttled; 000 is an error.
 *
 * Behind a status nothing is refused, so that no report is lost: a service wrote it. Words that are
 * not understood count as nothing, and the quota of such a line does not count. A date of HTTP is
 * understood, and counts as nothing, with the five words that follow it, as far as they have no
 * '='.
 */
#ifndef RATEFS_CORE_FEEDBACK_H
#define RATEFS_CORE_FEEDBACK_H

#include "core/values/settings.h"

#include <stdbool.h>

#define OUTCOMES_MAX UINT64_C(1000000000) /* pieces of work in one line */

enum outcome_kind { OUTCOME_OK, OUTCOME_THROTTLED, OUTCOME_ERROR, OUTCOME_NONE, OUTCOME_COUNT };

struct outcome {
	enum outcome_kind kind;
	uint64_t count;
	bool is_status;		 /* it was told by a HTTP status */
	uint64_t retry_after_ns; /* 0: none was named */
	int64_t retry_at_s;	 /* a time was named for it, since 1970; 0: none was */

	/* The quota, as the service told it. */
	bool has_remaining, has_limit;
	uint64_t remaining; /* tokens, up to TOKENS_MAX; UINT64_MAX: all that were said are void */
	uint64_t reset_ns;  /* until when these are meant, from now on */
	int64_t reset_at_s; /* a time was named for it, since 1970; 0: none was */
	uint64_t limit;	    /* tokens, up to TOKENS_MAX, in: */
	uint64_t window_ns; /* 0: not said */
	char unit[UNIT_TEXT]; /* that all this is of; "": the one without a name */
};

/* Tells whether the service said something of its quota. */
static inline bool outcome_tells_quota(const struct outcome *outcome)
{
	return outcome->has_remaining || outcome->has_limit;
}

/*
 * Reads the outcome in the next line of *@text that is not blank; *@text moves on. 0, with a
 * sentence in @error of what is not understood behind a status, or "": all is; -ENOENT when there
 * are no more; -EINVAL or -ERANGE with a sentence in @error.
 */
int feedback_parse(const char **text, struct outcome *outcome, char error[ERROR_TEXT]);

/*
 * Has @outcome, which was read when the wall clock showed @wall_s since 1970, name durations in
 * place of times. A time that is over, or more than ten years away, counts as nothing, and with it
 * what was to be left until then.
 */
void feedback_at(struct outcome *outcome, int64_t wall_s);

/* Has @outcome say nothing of a quota. */
void feedback_void_quota(struct outcome *outcome);

#endif
