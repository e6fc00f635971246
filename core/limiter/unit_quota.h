/*
 * unit_quota - what the service behind a limiter said of its quota of a unit by name.
 *
 * Its reports hold as those of the unit without a name do, see allowance.h. The limit that it said
 * is shown and not learnt: `adapt` knows the unit without a name alone.
 */
#ifndef RATEFS_CORE_UNIT_QUOTA_H
#define RATEFS_CORE_UNIT_QUOTA_H

#include "core/limiter/allowance.h"
#include "core/values/settings.h"

struct unit_quota {
	char unit[UNIT_TEXT];
	struct allowances allowances;
	double told_limit; /* tokens a second that the service said it gives; 0: it did not */
};

/* Of units that the limiter's settings have, each of them once. Begins as zeros. */
struct unit_quotas {
	uint32_t count;
	struct unit_quota of[LIMITS_MAX];
};

/* Returns that of @unit; NULL: the service said nothing of it. @quotas may be NULL. */
struct unit_quota *unit_quotas_find(struct unit_quotas *quotas, const char unit[UNIT_TEXT]);

/* Does likewise, and adds it if it is not there. @unit is of the limiter's settings. */
struct unit_quota *unit_quotas_get(struct unit_quotas *quotas, const char unit[UNIT_TEXT]);

/* Drops what was said of units that @settings do not have. */
void unit_quotas_follow(struct unit_quotas *quotas, const struct settings *settings);

/* Calls @act for the allowances of each unit. @quotas may be NULL. */
void unit_quotas_each(struct unit_quotas *quotas,
		      void (*act)(struct allowances *allowances, uint32_t leaves), uint32_t leaves);

/* Take @amounts of what is left, as far as something was said of their units, or put them back. */
void unit_quotas_take(struct unit_quotas *quotas, const struct amounts *amounts);
void unit_quotas_put(struct unit_quotas *quotas, const struct amounts *amounts);

/* Drops reports that are over. */
void unit_quotas_run(struct unit_quotas *quotas, uint64_t now_ns);

#endif
