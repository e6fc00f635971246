/* told_check - hosts together keep to what a service said on one of them, see told_check.h. */
#include "tests/sim/invariants/told_check.h"

#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Clocks of hosts are ahead of true time by less than a part of this. */
enum { FAST_PART = 100 };

void told_check_report(struct told_check *check, unsigned int host, const char *unit,
		       uint64_t tokens, uint64_t reset_ns, uint64_t now_ns)
{
	struct told_report *report = memory_get(sizeof(*report));

	*report = (struct told_report){.next = check->reports,
				       .tokens = tokens,
				       .at_ns = now_ns,
				       .until_ns = now_ns + reset_ns - reset_ns / FAST_PART,
				       .host = host};
	snprintf(report->unit, UNIT_TEXT, "%s", unit);
	check->reports = report;
}

/* Tells whether @report is over, or was never told to others. */
static bool is_over(struct told_report *report, const uint64_t *in_touch_ns, uint64_t now_ns)
{
	if (now_ns >= report->until_ns)
		return true;
	if (!report->is_told && now_ns - report->at_ns >= TOLD_WITHIN_NS) {
		if (in_touch_ns[report->host] > report->at_ns)
			return true;
		report->is_told = true;
	}
	return false;
}

static void drop(struct told_report **at)
{
	struct told_report *report = *at;

	*at = report->next;
	free(report);
}

void told_check_void(struct told_check *check, const char *unit)
{
	for (struct told_report **at = &check->reports; *at;) {
		if (!unit || !strcmp((*at)->unit, unit))
			drop(at);
		else
			at = &(*at)->next;
	}
}

static uint64_t sum_of(const struct told_report *report)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < TOLD_HOSTS_MAX; i++)
		sum += report->granted[i];
	return sum;
}

bool told_check_grant(struct told_check *check, unsigned int host, const char *unit,
		      uint64_t tokens, const uint64_t *in_touch_ns, uint64_t now_ns,
		      char why[WHY_TEXT])
{
	for (struct told_report **at = &check->reports; *at;) {
		struct told_report *report = *at;

		if (is_over(report, in_touch_ns, now_ns)) {
			drop(at);
			continue;
		}
		at = &report->next;
		if (!report->is_told || strcmp(report->unit, unit) != 0 ||
		    now_ns - in_touch_ns[host] < TOLD_WITHIN_NS || now_ns < in_touch_ns[host])
			continue;
		report->granted[host] += tokens;
		if (sum_of(report) <= report->tokens)
			continue;
		snprintf(why, WHY_TEXT,
			 "%llu tokens of all hosts since each had heard that %llu are left",
			 (unsigned long long)sum_of(report), (unsigned long long)report->tokens);
		return false;
	}
	return true;
}

void told_check_return(struct told_check *check, unsigned int host, const char *unit,
		       uint64_t tokens)
{
	for (struct told_report *r = check->reports; r; r = r->next) {
		if (!strcmp(r->unit, unit))
			r->granted[host] -= tokens < r->granted[host] ? tokens : r->granted[host];
	}
}

void told_check_free(struct told_check *check)
{
	told_check_void(check, NULL);
}
