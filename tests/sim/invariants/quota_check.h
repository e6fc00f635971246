/*
 * quota_check - after a service said that N tokens are left, no more are granted until its reset.
 *
 * Each report counts by itself, until its own end. Tokens that come back are as if they had not
 * been granted, up to N. Tokens that are charged are counted, and need not be there.
 *
 * Of a limiter with units each has its own, and an amount counts in that of its unit.
 *
 * Fed with a log of what happened; knows nothing of the core.
 */
#ifndef RATEFS_SIM_QUOTA_CHECK_H
#define RATEFS_SIM_QUOTA_CHECK_H

#include "tests/sim/invariants/rate_check.h"

enum { QUOTA_REPORTS_MAX = 64 };

struct quota_report {
	uint64_t tokens, until_ns;
	int64_t granted; /* since then, without those that came back */
};

struct quota_check {
	struct quota_report reports[QUOTA_REPORTS_MAX]; /* the latest, from @next on */
	uint32_t next;
};

/* Of a unit by name. */
struct unit_quota_check {
	struct unit_quota_check *next; /* owned */
	char unit[UNIT_TEXT];
	struct quota_check check;
};

/* The service says that @tokens are left until @until_ns. */
void quota_check_report(struct quota_check *check, uint64_t tokens, uint64_t until_ns);

/* No report holds any more. */
void quota_check_void(struct quota_check *check);

/* Tokens are granted at @now_ns. False, and @why, if they must not be. */
bool quota_check_grant(struct quota_check *check, uint64_t tokens, uint64_t now_ns,
		       char why[WHY_TEXT]);

/* Tokens are charged; put back, if negative. */
void quota_check_charge(struct quota_check *check, int64_t tokens);

#endif
