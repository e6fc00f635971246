/*
 * invariant_calm - the debts of a fleet when nothing goes wrong: capacity is granted again in time
 * and used, equal hosts get equal shares, and the coordinator is asked so often at most.
 *
 * Bounds follow from the rules of fleet.h; each has its derivation beside it. Fed with events;
 * knows nothing of the core but the shape of settings.
 */
#ifndef RATEFS_SIM_INVARIANT_CALM_H
#define RATEFS_SIM_INVARIANT_CALM_H

#include "invariant_rate.h"

#include "core/record.h"

/* Windows in which use, fairness and traffic are measured. */
#define CALM_WINDOW_NS UINT64_C(30000000000)

/* Requests of one host. */
struct traffic {
	uint64_t transactions, reads, lists;
};

/* Tells whether settings of a limiter keep a rate that every host can have a part of. */
bool calm_is_steady(const struct settings *settings);

/* So long after the last fault every host is back, and the partitions of dead ones are free. */
uint64_t calm_settle_ns(const struct fleet_constants *constants);

/*
 * Returns the longest time that a reader of @tokens waits for the first grant of a limiter when
 * nothing goes wrong any more and it holds nothing; NEVER_NS for settings that grant nothing.
 */
uint64_t calm_wait_ns(const struct settings *settings, const struct fleet_constants *constants,
		      uint64_t tokens);

/*
 * Checks use: readers waited for @could tokens all the time, and were granted @did. On @idle hosts
 * that were granted some of them readers did not always wait. False, and @why.
 */
bool calm_check_use(const struct settings *settings, uint32_t idle, double could, double did,
		    char why[WHY_TEXT]);

/*
 * Checks shares: of @hosts hosts that always wanted more, the poorest was granted @least and the
 * richest @most during CALM_WINDOW_NS. False, and @why.
 */
bool calm_check_shares(const struct settings *settings, uint32_t hosts, uint64_t least,
		       uint64_t most, char why[WHY_TEXT]);

/*
 * Checks the requests of one host during CALM_WINDOW_NS, with @limiters limiters at most. False,
 * and @why.
 */
bool calm_check_traffic(const struct traffic *traffic, uint32_t limiters, uint32_t hosts,
			const struct fleet_constants *constants, char why[WHY_TEXT]);

#endif
