/* fleet_check - the rate over all hosts, see fleet_check.h. */
#include "tests/sim/invariants/fleet_check.h"

#include <stdio.h>
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

static uint64_t burst_of(const struct settings *settings, uint32_t i)
{
	return settings->limits[i].burst ? settings->limits[i].burst : settings->burst;
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

		limit->burst = burst_of(sum, i);
		if (burst_of(other, i) > limit->burst)
			limit->burst = burst_of(other, i);
		if (rate_compare(&other->limits[i].rate, &limit->rate) > 0)
			limit->rate = other->limits[i].rate;
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
		const struct settings *one = &check->versions[i].settings;
		uint64_t count = one->partitions ? one->partitions : check->hosts;

		if (fleet_check_is_free(one))
			continue;
		if (!one->partitions)
			beside = check->hosts;
		parts = count > parts ? count : parts;
		if (any)
			loosen(&sum, one);
		else
			sum = *one;
		any = true;
	}
	check->rate.parts = parts ? parts : 1;
	check->rate.beside = beside;
	if (!check->rate.late_ns)
		check->rate.late_ns = CLOCKS_NS;
	for (uint32_t i = 0; i < check->count; i++) {
		uint64_t one = reserved_by(&check->versions[i].settings, sum.release_interval_ns);

		if (!fleet_check_is_free(&check->versions[i].settings) && one > reserved)
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

void fleet_check_goes(struct fleet_check *check, uint64_t id, uint64_t quarantine_ns,
		      uint64_t now_ns)
{
	for (uint32_t i = 0; i < check->count; i++) {
		struct version *version = &check->versions[i];

		if (version->id == id && version->until_ns == NEVER_NS)
			version->until_ns = now_ns + quarantine_ns;
	}
}

void fleet_check_follow(struct fleet_check *check, uint64_t id, const struct settings *settings,
			uint64_t quarantine_ns, uint64_t now_ns)
{
	bool was_free = check->count &&
			fleet_check_is_free(&check->versions[check->count - 1].settings);

	fleet_check_goes(check, id, quarantine_ns, now_ns);
	forget(check, now_ns);
	if (check->count == VERSIONS_MAX) {
		/* More changes than are worth to be told apart: the oldest two become one. */
		if (fleet_check_is_free(&check->versions[1].settings))
			check->versions[1].settings = check->versions[0].settings;
		else if (!fleet_check_is_free(&check->versions[0].settings))
			loosen(&check->versions[1].settings, &check->versions[0].settings);
		memmove(&check->versions[0], &check->versions[1],
			--check->count * sizeof(check->versions[0]));
	}
	check->versions[check->count++] = (struct version){*settings, id, NEVER_NS};
	if ((id != check->limited || was_free) && !fleet_check_is_free(settings)) {
		check->limited = id;
		memset(check->rate.limits, 0, sizeof(check->rate.limits));
	}
	tune(check, now_ns);
}

void fleet_check_late(struct fleet_check *check, uint64_t late_ns)
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

void fleet_check_asks(struct fleet_check *check, uint64_t tokens, uint64_t *largest,
		      uint64_t *largest_since)
{
	uint64_t before = *largest_since == check->rate.emptied ? *largest : 1;

	if (tokens > before)
		check->rate.extra += tokens - before;
	*largest = tokens > before ? tokens : before;
	*largest_since = check->rate.emptied;
}

bool fleet_check_grant(struct fleet_check *check, uint64_t tokens, uint64_t asked,
		       uint64_t *largest, uint64_t *largest_since, uint64_t now_ns,
		       char why[WHY_TEXT])
{
	bool kept;

	forget(check, now_ns);
	if (!check->count) {
		snprintf(why, WHY_TEXT, "granted of what is not there any more, Q later");
		return false;
	}
	rate_check_flow(&check->rate, now_ns);
	/* The reader that is granted waits until it is. */
	rate_check_waits(&check->rate, asked);
	fleet_check_asks(check, asked, largest, largest_since);
	kept = rate_check_grant(&check->rate, tokens, asked, now_ns, why);
	rate_check_leaves(&check->rate);
	return kept;
}

const struct settings *fleet_check_settings(const struct fleet_check *check)
{
	for (uint32_t i = check->count; i--;) {
		if (check->versions[i].until_ns == NEVER_NS)
			return &check->versions[i].settings;
	}
	return NULL;
}
