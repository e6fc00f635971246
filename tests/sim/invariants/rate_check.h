/*
 * rate_check - over every window w a limiter grants at most rate * w + burst.
 *
 * Not only windows of a few lengths are checked but all that end at a grant, in O(1) and exactly:
 * with S(i, j) tokens granted from grant i to grant j, the surplus
 *
 *	max over i of S(i, j) - rate * (t_j - t_i)
 *
 * of grant j is that of grant j - 1, less what flowed in since (not below 0), plus the tokens of
 * grant j. It must stay within what a bucket can have saved up, and the nanosecond by which
 * bucket.h allows a deadline to be rounded up:
 *
 *	rate * 1 ns + max(burst, largest take)				without an interval,
 *	rate * 1 ns + max(burst, batch + largest take)			with one,
 *
 * where the largest take is that of the readers that waited or were served since there last was no
 * surplus and no reader waiting, and where tokens given back lower the surplus.
 *
 * Two of these are kept for each limit: one begins anew whenever the limiter is tuned, so that the
 * settings of now are held to account by themselves; the other goes through, with each rate for the
 * time it was in force, against the largest burst and the largest 1 ns since there was no surplus.
 *
 * A strict window keeps this with its limit as the burst, and window_check.h besides.
 *
 * Fed with a log of what happened; knows nothing of the core but the shape of settings.
 */
#ifndef RATEFS_SIM_RATE_CHECK_H
#define RATEFS_SIM_RATE_CHECK_H

#include "tests/sim/invariants/calendar_check.h"
#include "tests/sim/invariants/window_check.h"

enum { WHY_TEXT = 512 };

struct surplus {
	u128 units;    /* of 1 / flow.den token */
	u128 slack;    /* likewise: the inflow of late_ns, at the largest rate since it was 0 */
	uint64_t room; /* largest capacity since it was last 0 */
	uint64_t at_ns;
};

struct limit_check {
	bool in_force;
	struct fraction flow;
	uint64_t burst;
	uint64_t batch;	      /* 0 without an interval */
	uint64_t window_ns;   /* of a strict window, or 0 */
	char unit[UNIT_TEXT]; /* "": the one without a name */
	uint64_t largest;     /* take of that unit, if it has a name, as rate_check.largest */
	struct surplus tuned;
	struct surplus through;
};

struct rate_check {
	struct limit_check limits[LIMITS_MAX];
	struct window_check windows;
	struct calendar_check calendar;
	uint64_t waiting; /* readers that wait here and below */
	uint64_t largest;
	uint64_t largest_of_any; /* take of any unit with a name, ever */
	bool closed;
	/*
	 * So late may be granted what was due: 0 is 1 ns; once a process was stopped, all that is
	 * made up for.
	 */
	uint64_t late_ns;
	/* Of several hosts together, see fleet_check.h. */
	uint64_t parts;	   /* hosts at most, each with a bucket; 0 is one host alone */
	uint64_t beside;   /* tokens beside the burst: shares of it that are rounded up to one */
	uint64_t reserved; /* saved up at most by the hosts of the reserve, beside those */
	uint64_t extra;	   /* tokens above one that their largest takes need */
	uint64_t emptied;  /* counts the times at which there was no surplus and no waiter */
};

/* Returns the tokens of @flow in one interval, and so the room of a bucket: see bucket.h. */
uint64_t rate_check_batch(const struct fraction *flow, uint64_t interval_ns);

/* Frees what it owns. */
void rate_check_free(struct rate_check *check);

/* The limiter has these settings from @now_ns on. */
void rate_check_tune(struct rate_check *check, const struct settings *settings, uint64_t now_ns);

/* A reader begins to wait here or below; or it leaves, granted or not. */
void rate_check_waits(struct rate_check *check, uint64_t tokens);
void rate_check_leaves(struct rate_check *check);

/*
 * Tokens are granted here or below, to a reader that waited for @asked of them and got as many as
 * were there. False, and @why, if they must not be.
 */
bool rate_check_grant(struct rate_check *check, uint64_t tokens, uint64_t asked, uint64_t now_ns,
		      char why[WHY_TEXT]);

/* Likewise of the amounts of units that go with it, before rate_check_grant(). */
bool rate_check_units(struct rate_check *check, const struct amounts *amounts, uint64_t now_ns,
		      char why[WHY_TEXT]);

/* A reader begins to wait that wants @amounts, too. */
void rate_check_wants(struct rate_check *check, const struct amounts *amounts);
/* Tokens are charged. */
void rate_check_charge(struct rate_check *check, uint64_t tokens, uint64_t now_ns);

/* The tokens that have flowed off until now. */
void rate_check_flow(struct rate_check *check, uint64_t now_ns);

/* Tokens are given back, of the unit with that name; "": the one without. */
void rate_check_return_unit(struct rate_check *check, const char unit[UNIT_TEXT], uint64_t tokens,
			    uint64_t now_ns);
void rate_check_return(struct rate_check *check, uint64_t tokens, uint64_t now_ns);

#endif
