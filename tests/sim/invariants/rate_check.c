/* rate_check - at most rate * w + burst over every window w, see rate_check.h. */
#include "tests/sim/invariants/rate_check.h"

#include <stdio.h>

static void flow_off(struct surplus *surplus, const struct fraction *flow, uint64_t now_ns)
{
	u128 units = (u128)flow->num * (now_ns - surplus->at_ns);

	surplus->units -= units < surplus->units ? units : surplus->units;
	surplus->at_ns = now_ns;
}

void rate_check_flow(struct rate_check *check, uint64_t now_ns)
{
	bool any = false;

	for (int i = 0; i < LIMITS_MAX; i++) {
		struct limit_check *limit = &check->limits[i];

		if (!limit->in_force)
			continue;
		flow_off(&limit->tuned, &limit->flow, now_ns);
		flow_off(&limit->through, &limit->flow, now_ns);
		any = any || limit->through.units;
	}
	if (any || check->waiting)
		return;
	check->largest = 0;
	check->extra = 0;
	check->emptied++;
}

static uint64_t capacity(const struct rate_check *check, const struct limit_check *limit)
{
	uint64_t saved = limit->batch + check->largest, burst = limit->burst;

	if (check->parts) {
		burst = burst > check->parts ? burst : check->parts;
		if (burst < limit->burst + check->beside)
			burst = limit->burst + check->beside;
		saved = limit->batch ? limit->batch + 3 * check->parts : 0;
		return (saved > burst ? saved : burst) + check->reserved + check->extra;
	}

	return saved > limit->burst ? saved : limit->burst;
}

uint64_t rate_check_batch(const struct fraction *flow, uint64_t interval_ns)
{
	u128 units = (u128)flow->num * interval_ns;

	return (uint64_t)(units / flow->den) + (units % flow->den ? 2 : 0);
}

/* @units of 1/@from in units of 1/@to, rounded up. */
static u128 convert(u128 units, uint64_t from, uint64_t to)
{
	u128 part = units % from * to;

	return units / from * to + part / from + (part % from != 0);
}

void rate_check_tune(struct rate_check *check, const struct settings *settings, uint64_t now_ns)
{
	bool in_force = settings->enforcement == ENFORCEMENT_ENFORCE ||
			settings->enforcement == ENFORCEMENT_CLOSED;

	rate_check_flow(check, now_ns);
	check->closed = settings->enforcement == ENFORCEMENT_CLOSED;
	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		const struct limit *set = &settings->limits[i];
		struct limit_check *limit = &check->limits[i];
		struct surplus through = limit->through;
		uint64_t den = limit->flow.den;
		bool before = limit->in_force;

		*limit = (struct limit_check){.in_force = in_force && i < settings->limit_count};
		if (!limit->in_force)
			continue;
		limit->flow = rate_fraction(&set->rate);
		limit->burst = set->burst ? set->burst : settings->burst;
		if (settings->release_interval_ns)
			limit->batch = rate_check_batch(&limit->flow,
							settings->release_interval_ns);
		limit->tuned.at_ns = now_ns;
		limit->through.at_ns = now_ns;
		if (before) {
			limit->through = through;
			limit->through.units = convert(through.units, den, limit->flow.den);
			limit->through.slack = convert(through.slack, den, limit->flow.den);
		}
	}
}

void rate_check_waits(struct rate_check *check, uint64_t tokens)
{
	check->waiting++;
	if (tokens > check->largest)
		check->largest = tokens;
}

void rate_check_leaves(struct rate_check *check)
{
	check->waiting--;
}

static bool add(struct surplus *surplus, const struct rate_check *check,
		const struct limit_check *limit, uint64_t tokens)
{
	uint64_t room = capacity(check, limit);
	u128 slack;

	if (!surplus->units || room > surplus->room)
		surplus->room = room;
	slack = (u128)limit->flow.num * (check->late_ns ? check->late_ns : 1);
	if (!surplus->units || slack > surplus->slack)
		surplus->slack = slack;
	surplus->units += (u128)tokens * limit->flow.den;
	return surplus->units <= (u128)surplus->room * limit->flow.den + surplus->slack;
}

bool rate_check_grant(struct rate_check *check, uint64_t tokens, uint64_t asked, uint64_t now_ns,
		      char why[WHY_TEXT])
{
	if (check->closed) {
		snprintf(why, WHY_TEXT, "granted while enforcement is closed");
		return false;
	}
	rate_check_flow(check, now_ns);
	if (asked > check->largest)
		check->largest = asked;
	for (int i = 0; i < LIMITS_MAX; i++) {
		struct limit_check *limit = &check->limits[i];
		struct surplus *over = NULL;

		if (!limit->in_force)
			continue;
		if (!limit->flow.num) {
			snprintf(why, WHY_TEXT, "granted at rate 0, limit %d", i);
			return false;
		}
		if (!add(&limit->through, check, limit, tokens))
			over = &limit->through;
		if (!add(&limit->tuned, check, limit, tokens))
			over = &limit->tuned;
		if (!over)
			continue;
		snprintf(
			why, WHY_TEXT,
			"limit %d: %.9f tokens above the rate in a window that ends here, room for "
			"%llu",
			i, (double)over->units / (double)limit->flow.den,
			(unsigned long long)over->room);
		return false;
	}
	return true;
}

void rate_check_return(struct rate_check *check, uint64_t tokens, uint64_t now_ns)
{
	rate_check_flow(check, now_ns);
	for (int i = 0; i < LIMITS_MAX; i++) {
		struct limit_check *limit = &check->limits[i];
		u128 units = (u128)tokens * limit->flow.den;

		if (!limit->in_force)
			continue;
		limit->tuned.units -= units < limit->tuned.units ? units : limit->tuned.units;
		limit->through.units -= units < limit->through.units ? units : limit->through.units;
	}
}
