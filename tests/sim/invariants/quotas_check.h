/*
 * quotas_check - the hosts of a fleet together grant no more tokens in a window of the calendar
 * than its limit, whatever their clocks show.
 *
 * A grant is of the window that its host is in by its own wall clock: calendar_check.h. Where the
 * number changes in the middle of a window the largest counts. With other windows or limits a new
 * time begins, which the caller numbers; each is counted by itself. Tokens that come back may be
 * granted again.
 *
 * Knows nothing of the core but the shape of settings.
 */
#ifndef RATEFS_SIM_QUOTAS_CHECK_H
#define RATEFS_SIM_QUOTAS_CHECK_H

#include "tests/sim/invariants/calendar_check.h"

/* One window, of all hosts. */
struct quotas_window {
	struct quotas_window *next;
	struct rate rate;
	char unit[UNIT_TEXT];
	int64_t window;
	uint64_t since; /* the time */
	uint64_t granted, most;
};

struct quotas_check {
	struct quotas_window *windows; /* owned */
};

/*
 * @tokens of @unit are granted on the host of @host, whose clocks are at @now_ns, in time @since.
 * Returns the window that is broken, or NULL.
 */
const struct quotas_window *quotas_check_grant(struct quotas_check *check,
					       struct calendar_check *host, const char *unit,
					       uint64_t tokens, uint64_t since, uint64_t now_ns);

/* They come back there. */
void quotas_check_return(struct quotas_check *check, struct calendar_check *host, const char *unit,
			 uint64_t tokens, uint64_t since, uint64_t now_ns);

/* Frees what it owns. */
void quotas_check_free(struct quotas_check *check);

#endif
