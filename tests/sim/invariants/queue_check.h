/*
 * queue_check - no reader is lost, served twice, or served out of order within its limiter.
 *
 * Keeps its own list of waiters, in order of asking, and compares.
 */
#ifndef RATEFS_SIM_QUEUE_CHECK_H
#define RATEFS_SIM_QUEUE_CHECK_H

#include "core/limiter/limiter.h"
#include "tests/sim/invariants/rate_check.h"

enum reader_state { READER_NEW, READER_WAITS, READER_GONE };

/* One reading, from asking to its end. */
struct reader_check {
	struct reader_check *older, *newer;
	uint64_t number; /* in order of asking, over all limiters */
	uint64_t event;	 /* since which it waits */
	uint64_t tokens;
	enum reader_state state;
};

/* The waiters of one limiter. */
struct queue_check {
	struct reader_check *oldest, *newest;
	uint32_t length;
};

/* Each is false, with @why, when it must not be. */
bool queue_check_waits(struct queue_check *check, struct reader_check *reader, char why[WHY_TEXT]);
bool queue_check_granted(struct queue_check *check, struct reader_check *reader,
			 char why[WHY_TEXT]);
bool queue_check_left(struct queue_check *check, struct reader_check *reader, char why[WHY_TEXT]);

/* As many wait in @limiter as should. */
bool queue_check_length(const struct queue_check *check, const struct limiter *limiter,
			char why[WHY_TEXT]);

/* Returns when @limiter by itself lets @tokens, and @amounts (or NULL), pass; NEVER_NS. */
uint64_t queue_check_due_ns(const struct limiter *limiter, uint64_t tokens,
			    const struct amounts *amounts, uint64_t now_ns);

#endif
