/* quota_check - no more than a service said is left, see quota_check.h. */
#include "tests/sim/invariants/quota_check.h"

#include <stdio.h>

void quota_check_report(struct quota_check *check, uint64_t tokens, uint64_t until_ns)
{
	check->reports[check->next++ % QUOTA_REPORTS_MAX] =
		(struct quota_report){.tokens = tokens, .until_ns = until_ns};
}

void quota_check_void(struct quota_check *check)
{
	*check = (struct quota_check){0};
}

bool quota_check_grant(struct quota_check *check, uint64_t tokens, uint64_t now_ns,
		       char why[WHY_TEXT])
{
	quota_check_charge(check, (int64_t)tokens);
	for (uint32_t i = 0; i < QUOTA_REPORTS_MAX; i++) {
		const struct quota_report *report = &check->reports[i];

		if (report->until_ns <= now_ns || report->granted <= (int64_t)report->tokens)
			continue;
		snprintf(why, WHY_TEXT, "%lld tokens since the service said that %llu are left",
			 (long long)report->granted, (unsigned long long)report->tokens);
		return false;
	}
	return true;
}

void quota_check_charge(struct quota_check *check, int64_t tokens)
{
	for (uint32_t i = 0; i < QUOTA_REPORTS_MAX; i++) {
		struct quota_report *report = &check->reports[i];

		report->granted += tokens;
		if (report->granted < 0)
			report->granted = 0;
	}
}
