/* unit_quota - what a service said of its quota of a unit, see unit_quota.h. */
#include "core/limiter/unit_quota.h"

#include <assert.h>
#include <string.h>

struct unit_quota *unit_quotas_find(struct unit_quotas *quotas, const char unit[UNIT_TEXT])
{
	for (uint32_t i = 0; quotas && i < quotas->count; i++) {
		if (amount_is_of(quotas->of[i].unit, unit))
			return &quotas->of[i];
	}
	return NULL;
}

struct unit_quota *unit_quotas_get(struct unit_quotas *quotas, const char unit[UNIT_TEXT])
{
	struct unit_quota *quota = unit_quotas_find(quotas, unit);

	if (quota)
		return quota;
	assert(quotas->count < LIMITS_MAX);
	quota = &quotas->of[quotas->count++];
	*quota = (struct unit_quota){.told_limit = 0};
	memcpy(quota->unit, unit, UNIT_TEXT);
	return quota;
}

void unit_quotas_follow(struct unit_quotas *quotas, const struct settings *settings)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; quotas && i < quotas->count; i++) {
		if (settings_have_unit(settings, quotas->of[i].unit))
			quotas->of[kept++] = quotas->of[i];
	}
	if (quotas)
		quotas->count = kept;
}

void unit_quotas_each(struct unit_quotas *quotas,
		      void (*act)(struct allowances *allowances, uint32_t leaves), uint32_t leaves)
{
	for (uint32_t i = 0; quotas && i < quotas->count; i++)
		act(&quotas->of[i].allowances, leaves);
}

void unit_quotas_run(struct unit_quotas *quotas, uint64_t now_ns)
{
	for (uint32_t i = 0; quotas && i < quotas->count; i++)
		allowances_run(&quotas->of[i].allowances, now_ns);
}

void unit_quotas_take(struct unit_quotas *quotas, const struct amounts *amounts)
{
	for (uint32_t i = 0; quotas && i < quotas->count; i++)
		allowances_take(&quotas->of[i].allowances, amounts_of(amounts, quotas->of[i].unit));
}

void unit_quotas_put(struct unit_quotas *quotas, const struct amounts *amounts)
{
	for (uint32_t i = 0; quotas && i < quotas->count; i++)
		allowances_put(&quotas->of[i].allowances, amounts_of(amounts, quotas->of[i].unit));
}
