/*
 * window_check - no window of a strict limit has more tokens than the limit.
 *
 * All grants and charges are written down, and those of (t - w, t] summed up at each grant: charges
 * count, but may take more than there is. Tokens that come back are taken off the newest grants,
 * the kindest that can be: no window has more of any other choice, neither has the limiter's own.
 *
 * After a change grants from before it count, if there was a strict limit. In a fleet a host may
 * not know of a change yet, and tokens that were taken under the settings before are known to
 * nobody where a tile lay free: for a window after the last host can have used them the larger
 * limit counts.
 *
 * Limits of a unit with a name are left out.
 *
 * Knows nothing of the core but the shape of settings.
 */
#ifndef RATEFS_SIM_WINDOW_CHECK_H
#define RATEFS_SIM_WINDOW_CHECK_H

#include "core/values/settings.h"

struct window_grant {
	uint64_t at_ns, tokens;
};

struct window_limit {
	uint64_t window_ns; /* 0: it is no strict one */
	uint64_t most;
	uint64_t former, until_ns; /* in a fleet: a larger limit from before counts until then */
};

struct window_check {
	struct window_limit limits[LIMITS_MAX];
	bool any;
	bool of_fleet;		     /* set by its owner, like slack_ns */
	uint64_t slack_ns;	     /* by which clocks read the ends of a window too late */
	uint64_t since_ns;	     /* grants from before do not count */
	struct window_grant *grants; /* owned */
	size_t count, room;
};

void window_check_free(struct window_check *check);

/* These settings are in force from @now_ns on, if they are @in_force. */
void window_check_tune(struct window_check *check, const struct settings *settings, bool in_force,
		       uint64_t now_ns);

/* Tokens are granted or charged; or they come back. */
void window_check_take(struct window_check *check, uint64_t tokens, uint64_t now_ns);
void window_check_return(struct window_check *check, uint64_t tokens);

/* Returns the number of a limit that has more than may be in the window that ends now; or -1. */
int window_check_over(struct window_check *check, uint64_t now_ns, uint64_t *sum);

#endif
