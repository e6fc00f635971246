/* fleet_check - the rate over all hosts, see fleet_check.h. */
#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The promise has a nanosecond on top of a window. Clocks of hosts that are not as fast as one
 * another are read in whole nanoseconds: one more for the reading at either end.
 */
enum { CLOCKS_NS = 3 };

bool fleet_check_is_free(const struct settings *settings)
{
	return settings->enforcement == ENFORCEMENT_OPEN ||
	       settings->enforcement == ENFORCEMENT_SHADOW || !settings->limit_count;
}

/* Returns @settings with the limits of @unit alone, as if they had none. */
static struct settings limits_of(const struct settings *settings, const char unit[UNIT_TEXT])
{
	struct settings its = *settings;

	its.limit_count = 0;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (amount_is_of(settings->limits[i].unit, unit))
			its.limits[its.limit_count++] = settings->limits[i];
	}
	for (uint32_t i = 0; i < its.limit_count; i++)
		*its.limits[i].unit = '\0';
	return its;
}

/* Tells whether @settings keep no rate of @unit. */
static bool is_free_of(const struct settings *settings, const char unit[UNIT_TEXT])
{
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (amount_is_of(settings->limits[i].unit, unit))
			return fleet_check_is_free(settings);
	}
	return true;
}

/* Tells whether version @i keeps no rate of the unit that @check is of. */
static bool is_free(const struct fleet_check *check, uint32_t i)
{
	return is_free_of(&check->versions[i].settings, check->unit);
}

/* @sum becomes the looser of the two. */
static void loosen(struct settings *sum, const struct settings *other)
{
	if (other->enforcement == ENFORCEMENT_ENFORCE)
		sum->enforcement = ENFORCEMENT_ENFORCE;
	if (other->limit_count < sum->limit_count)
		sum->limit_count = other->limit_count;
	for (uint32_t i = 0; i < sum->limit_count; i++) {
		struct limit *limit = &sum->limits[i];
		const struct rate *rate = &other->limits[i].rate;
		bool strict = rate_is_strict(&limit->rate) && rate_is_strict(rate) &&
			      limit->rate.period_ns == rate->period_ns;

		/* Windows of the calendar bound no rate: quotas_check.h. */
		if (rate_is_window(rate))
			limit->rate = *rate;
		if (rate_is_window(&limit->rate))
			continue;
		limit->burst = settings_burst(sum, i);
		if (settings_burst(other, i) > limit->burst)
			limit->burst = settings_burst(other, i);
		if (rate_compare(rate, &limit->rate) > 0)
			limit->rate = *rate;
		limit->rate.kind = strict ? RATE_STRICT : RATE_FLOW;
	}
	if (other->release_interval_ns > sum->release_interval_ns)
		sum->release_interval_ns = other->release_interval_ns;
}

/*
 * Returns the tokens that the hosts that the reserve is set aside for may save up, all together:
 * one each, or a batch.
 */
static uint64_t reserved_by(const struct settings *settings, uint64_t interval_ns)
{
	struct fraction flow;
	uint64_t each;

	if (!settings->reserve_hosts)
		return 0;
	flow = rate_fraction(&settings->reserve_rate);
	each = rate_check_batch(&flow, interval_ns);
	return settings->reserve_hosts * (each > 1 ? each : 1);
}

static void tune(struct fleet_check *check, uint64_t now_ns)
{
	struct settings sum = {.enforcement = ENFORCEMENT_OPEN};
	uint64_t parts = 0, reserved = 0, beside = 0;
	bool any = false;

	for (uint32_t i = check->count; i--;) {
		const struct settings one = limits_of(&check->versions[i].settings, check->unit);
		uint64_t count = one.partitions ? one.partitions : check->hosts;

		if (fleet_check_is_free(&one))
			continue;
		if (!one.partitions)
			beside = check->hosts;
		parts = count > parts ? count : parts;
		if (any)
			loosen(&sum, &one);
		else
			sum = one;
		any = true;
	}
	check->rate.parts = parts ? parts : 1;
	check->rate.beside = beside;
	if (!check->rate.late_ns)
		check->rate.late_ns = CLOCKS_NS;
	check->rate.windows.of_fleet = true;
	check->rate.windows.slack_ns = CLOCKS_NS;
	for (uint32_t i = 0; i < check->count; i++) {
		uint64_t one = reserved_by(&check->versions[i].settings, sum.release_interval_ns);

		if (!is_free(check, i) && one > reserved)
			reserved = one;
	}
	check->rate.reserved = reserved;
	rate_check_tune(&check->rate, &sum, now_ns);
}

/* Versions that no host can have any more. */
static void forget(struct fleet_check *check, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < check->count; i++) {
		if (check->versions[i].until_ns > now_ns)
			check->versions[kept++] = check->versions[i];
	}
	if (kept == check->count)
		return;
	check->count = kept;
	tune(check, now_ns);
}

/* Does as fleet_check_goes(), for the unit that @check is of. */
static void goes(struct fleet_check *check, uint64_t id, uint64_t quarantine_ns, uint64_t now_ns)
{
	for (uint32_t i = 0; i < check->count; i++) {
		struct version *version = &check->versions[i];

		if (version->id == id && version->until_ns == NEVER_NS)
			version->until_ns = now_ns + quarantine_ns;
	}
}

void fleet_check_goes(struct fleet_check *check, uint64_t id, uint64_t quarantine_ns,
		      uint64_t now_ns)
{
	goes(check, id, quarantine_ns, now_ns);
	for (struct fleet_check *c = check->units; c; c = c->next)
		goes(c, id, quarantine_ns, now_ns);
}

/* More changes than are worth to be told apart: the oldest two versions become one. */
static void join_oldest(struct fleet_check *check)
{
	struct settings *first = &check->versions[0].settings,
			*second = &check->versions[1].settings;
	const struct settings its = limits_of(first, check->unit);

	if (is_free(check, 1)) {
		*second = *first;
	} else if (!is_free(check, 0)) {
		*second = limits_of(second, check->unit);
		loosen(second, &its);
		for (uint32_t i = 0; i < second->limit_count; i++)
			memcpy(second->limits[i].unit, check->unit, sizeof(check->unit));
	}
	memmove(&check->versions[0], &check->versions[1],
		--check->count * sizeof(check->versions[0]));
}

/* Does as fleet_check_follow(), for the unit that @check is of. */
static void follow(struct fleet_check *check, uint64_t id, const struct settings *settings,
		   uint64_t quarantine_ns, uint64_t now_ns)
{
	bool was_free = check->count && is_free(check, check->count - 1);

	goes(check, id, quarantine_ns, now_ns);
	forget(check, now_ns);
	if (check->count == VERSIONS_MAX)
		join_oldest(check);
	check->versions[check->count++] = (struct version){*settings, id, NEVER_NS};
	if ((id != check->limited || was_free) && !is_free(check, check->count - 1)) {
		check->limited = id;
		memset(check->rate.limits, 0, sizeof(check->rate.limits));
		memset(check->rate.windows.limits, 0, sizeof(check->rate.windows.limits));
		check->rate.windows.any = false;
	}
	tune(check, now_ns);
}

/* Has @check check @unit, which is in none of the settings until now. */
static void check_unit(struct fleet_check *check, const char unit[UNIT_TEXT])
{
	struct fleet_check **end = &check->units, *made;
	uint32_t number = 1;

	while (*end && !amount_is_of((*end)->unit, unit)) {
		end = &(*end)->next;
		number++;
	}
	if (*end)
		return;
	if (number > FLEET_UNITS_MAX) {
		fprintf(stderr, "simulate: more than %d units of a limiter\n", FLEET_UNITS_MAX);
		exit(2);
	}
	made = memory_get(sizeof(*made));
	memcpy(made->unit, unit, sizeof(made->unit));
	memcpy(made->versions, check->versions, sizeof(made->versions));
	made->count = check->count;
	made->hosts = check->hosts;
	made->number = number;
	made->rate.waiting = check->rate.waiting;
	*end = made;
}

void fleet_check_follow(struct fleet_check *check, uint64_t id, const struct settings *settings,
			uint64_t quarantine_ns, uint64_t now_ns)
{
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (*settings->limits[i].unit)
			check_unit(check, settings->limits[i].unit);
	}
	follow(check, id, settings, quarantine_ns, now_ns);
	for (struct fleet_check *c = check->units; c; c = c->next)
		follow(c, id, settings, quarantine_ns, now_ns);
}

static void late(struct fleet_check *check, uint64_t late_ns)
{
	u128 most = 0;

	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		const struct limit_check *limit = &check->rate.limits[i];
		u128 tokens;

		if (!limit->in_force || !limit->flow.den)
			continue;
		tokens = ((u128)limit->flow.num * late_ns + limit->flow.den - 1) / limit->flow.den;
		most = tokens > most ? tokens : most;
	}
	check->rate.extra += (uint64_t)most;
}

void fleet_check_late(struct fleet_check *check, uint64_t late_ns)
{
	late(check, late_ns);
	for (struct fleet_check *c = check->units; c; c = c->next)
		late(c, late_ns);
}

static void asks_for(struct fleet_check *check, uint64_t tokens, struct fleet_asks *asks)
{
	struct fleet_asked *asked = &asks->of[check->number];
	bool counts = asked->largest && asked->since == check->rate.emptied;
	uint64_t before = counts ? asked->largest : 1;

	if (tokens > before)
		check->rate.extra += tokens - before;
	asked->largest = tokens > before ? tokens : before;
	asked->since = check->rate.emptied;
}

static void waits(struct fleet_check *check, uint64_t tokens, struct fleet_asks *asks)
{
	rate_check_waits(&check->rate, tokens);
	asks_for(check, tokens, asks);
}

void fleet_check_waits(struct fleet_check *check, uint64_t tokens, const struct amounts *amounts,
		       struct fleet_asks *asks)
{
	waits(check, tokens, asks);
	for (struct fleet_check *c = check->units; c; c = c->next)
		waits(c, amounts_of(amounts, c->unit), asks);
}

void fleet_check_leaves(struct fleet_check *check)
{
	rate_check_leaves(&check->rate);
	for (struct fleet_check *c = check->units; c; c = c->next)
		rate_check_leaves(&c->rate);
}

static bool grant(struct fleet_check *check, uint64_t tokens, uint64_t asked,
		  struct fleet_asks *asks, uint64_t now_ns, char why[WHY_TEXT])
{
	bool kept;

	/* No tokens are of no rate. */
	if (!tokens)
		return true;
	forget(check, now_ns);
	if (!check->count) {
		snprintf(why, WHY_TEXT, "granted of what is not there any more, Q later");
		return false;
	}
	rate_check_flow(&check->rate, now_ns);
	/* The reader that is granted waits until it is. */
	waits(check, asked, asks);
	kept = rate_check_grant(&check->rate, tokens, asked, now_ns, why);
	rate_check_leaves(&check->rate);
	return kept;
}

uint32_t fleet_check_keeps(const struct fleet_check *check, const struct settings *settings)
{
	uint32_t keeps = !is_free_of(settings, check->unit);

	for (const struct fleet_check *c = check->units; c; c = c->next) {
		if (!is_free_of(settings, c->unit))
			keeps |= UINT32_C(1) << c->number;
	}
	return keeps;
}

uint32_t fleet_check_concerns(const struct fleet_check *check, uint32_t keeps, uint64_t tokens,
			      const struct amounts *amounts)
{
	uint32_t concerns = tokens ? keeps & 1 : 0;

	for (const struct fleet_check *c = check->units; c; c = c->next) {
		if (amounts_of(amounts, c->unit))
			concerns |= keeps & UINT32_C(1) << c->number;
	}
	return concerns;
}

bool fleet_check_grant(struct fleet_check *check, uint32_t keeps, uint64_t tokens, uint64_t asked,
		       const struct amounts *amounts, struct fleet_asks *asks, uint64_t now_ns,
		       char why[WHY_TEXT])
{
	char what[WHY_TEXT - UNIT_TEXT - 8];

	if (keeps & 1 && !grant(check, tokens, asked, asks, now_ns, why))
		return false;
	for (struct fleet_check *c = check->units; c; c = c->next) {
		uint64_t its = amounts_of(amounts, c->unit);

		if (!(keeps >> c->number & 1) || grant(c, its, its, asks, now_ns, why))
			continue;
		snprintf(what, sizeof(what), "%s", why);
		snprintf(why, WHY_TEXT, "unit %s: %s", c->unit, what);
		return false;
	}
	return true;
}

void fleet_check_return(struct fleet_check *check, const char unit[UNIT_TEXT], uint64_t tokens,
			uint64_t now_ns)
{
	if (!*unit) {
		rate_check_return(&check->rate, tokens, now_ns);
		return;
	}
	for (struct fleet_check *c = check->units; c; c = c->next) {
		if (amount_is_of(c->unit, unit))
			rate_check_return(&c->rate, tokens, now_ns);
	}
}

void fleet_check_free(struct fleet_check *check)
{
	while (check->units) {
		struct fleet_check *next = check->units->next;

		rate_check_free(&check->units->rate);
		free(check->units);
		check->units = next;
	}
	rate_check_free(&check->rate);
}

const struct settings *fleet_check_settings(const struct fleet_check *check)
{
	for (uint32_t i = check->count; i--;) {
		if (check->versions[i].until_ns == NEVER_NS)
			return &check->versions[i].settings;
	}
	return NULL;
}
