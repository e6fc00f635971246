/*
 * told_check - after a service said on one host of a fleet that N tokens are left, all hosts
 * together grant no more until its reset.
 *
 * That is from TOLD_WITHIN_NS after the report on, of hosts that could hear of it, and if the host
 * that it was said to was there for as long: the caller says since when hosts are in touch with the
 * coordinator. Each report counts by itself. Tokens that come back to a host are as if they had not
 * been granted there, up to what was. Charges need no tokens, and are not counted.
 *
 * Knows nothing of the core.
 */
#ifndef RATEFS_SIM_TOLD_CHECK_H
#define RATEFS_SIM_TOLD_CHECK_H

#include "tests/sim/invariants/rate_check.h"

/* Faults make answers slow, and hosts that tell of one limiter wait for each other. */
#define TOLD_WITHIN_NS (30 * NSEC_PER_SEC)

enum { TOLD_HOSTS_MAX = 64 };

struct told_report {
	struct told_report *next;
	char unit[UNIT_TEXT];
	uint64_t tokens, at_ns, until_ns;
	unsigned int host;
	bool is_told; /* the host was there for long enough */
	uint64_t granted[TOLD_HOSTS_MAX];
};

struct told_check {
	struct told_report *reports; /* owned */
};

/* The service says on @host, of TOLD_HOSTS_MAX, that @tokens of @unit are left for @reset_ns. */
void told_check_report(struct told_check *check, unsigned int host, const char *unit,
		       uint64_t tokens, uint64_t reset_ns, uint64_t now_ns);

/* No report of @unit holds any more; NULL: of any. */
void told_check_void(struct told_check *check, const char *unit);

/*
 * Host @host grants @tokens of @unit at @now_ns; hosts are in touch since the times @in_touch_ns.
 * False, and @why, if it must not.
 */
bool told_check_grant(struct told_check *check, unsigned int host, const char *unit,
		      uint64_t tokens, const uint64_t *in_touch_ns, uint64_t now_ns,
		      char why[WHY_TEXT]);

/* They come back there. */
void told_check_return(struct told_check *check, unsigned int host, const char *unit,
		       uint64_t tokens);

void told_check_free(struct told_check *check);

#endif
