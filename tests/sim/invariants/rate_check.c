/* rate_check - at most rate * w + burst over every window w, see rate_check.h. */
#include "tests/sim/invariants/rate_check.h"

#include <stdio.h>
#include <string.h>

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
	for (int i = 0; i < LIMITS_MAX; i++)
		check->limits[i].largest = 0;
	check->extra = 0;
	check->emptied++;
}

static uint64_t capacity(const struct rate_check *check, const struct limit_check *limit)
{
	uint64_t largest = *limit->unit ? limit->largest : check->largest;
	uint64_t saved = limit->batch + largest, burst = limit->burst;

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

/*
 * Finds the limit of @old that goes on as limit @i of @settings: by its place in its unit, where
 * windows of the calendar, which are not in force here, do not count.
 */
static const struct limit_check *find_before(const struct limit_check *old,
					     const struct settings *settings, uint32_t i)
{
	const char *unit = settings->limits[i].unit;
	uint32_t place = 0;

	for (uint32_t j = 0; j < i; j++)
		place += amount_is_of(settings->limits[j].unit, unit) &&
			 !rate_is_window(&settings->limits[j].rate);
	for (uint32_t j = 0; j < LIMITS_MAX; j++) {
		if (old[j].in_force && amount_is_of(old[j].unit, unit) && !place--)
			return &old[j];
	}
	return NULL;
}

void rate_check_tune(struct rate_check *check, const struct settings *settings, uint64_t now_ns)
{
	bool in_force = settings->enforcement == ENFORCEMENT_ENFORCE ||
			settings->enforcement == ENFORCEMENT_CLOSED;
	struct limit_check old[LIMITS_MAX];

	rate_check_flow(check, now_ns);
	window_check_tune(&check->windows, settings, in_force, now_ns);
	calendar_check_tune(&check->calendar, settings, in_force && check->calendar.ahead_ns);
	check->closed = settings->enforcement == ENFORCEMENT_CLOSED;
	memcpy(old, check->limits, sizeof(old));
	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		const struct limit *set = &settings->limits[i];
		struct limit_check *limit = &check->limits[i];
		const struct limit_check *before = NULL;
		uint64_t window_ns = rate_is_strict(&set->rate) ? set->rate.period_ns : 0;

		*limit = (struct limit_check){.in_force = in_force && i < settings->limit_count &&
							  !rate_is_window(&set->rate)};
		if (!limit->in_force)
			continue;
		before = find_before(old, settings, i);
		limit->flow = rate_fraction(&set->rate);
		memcpy(limit->unit, set->unit, sizeof(limit->unit));
		limit->largest = before ? before->largest : check->largest_of_any;
		limit->window_ns = window_ns;
		limit->burst = settings_burst(settings, i);
		if (settings->release_interval_ns && !rate_is_strict(&set->rate))
			limit->batch = rate_check_batch(&limit->flow,
							settings->release_interval_ns);
		limit->tuned.at_ns = now_ns;
		limit->through.at_ns = now_ns;
		/* Through a change of a window more may pass than any burst. */
		if (before && before->window_ns == window_ns) {
			uint64_t den = before->flow.den;

			limit->through = before->through;
			limit->through.units = convert(limit->through.units, den, limit->flow.den);
			limit->through.slack = convert(limit->through.slack, den, limit->flow.den);
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

/* Tells whether @tokens of limit @i may be granted. */
static bool may_grant(struct rate_check *check, int i, uint64_t tokens, char why[WHY_TEXT])
{
	struct limit_check *limit = &check->limits[i];
	struct surplus *over = NULL;

	if (!limit->flow.num && (tokens || !*limit->unit)) {
		snprintf(why, WHY_TEXT, "granted at rate 0, limit %d", i);
		return false;
	}
	if (!add(&limit->through, check, limit, tokens))
		over = &limit->through;
	if (!add(&limit->tuned, check, limit, tokens))
		over = &limit->tuned;
	if (!over)
		return true;
	snprintf(why, WHY_TEXT,
		 "limit %d: %.9f tokens above the rate in a window that ends here, room for %llu",
		 i, (double)over->units / (double)limit->flow.den, (unsigned long long)over->room);
	return false;
}

void rate_check_free(struct rate_check *check)
{
	window_check_free(&check->windows);
}

void rate_check_charge(struct rate_check *check, uint64_t tokens, uint64_t now_ns)
{
	window_check_take(&check->windows, tokens, now_ns);
}

static bool check_windows(struct rate_check *check, uint64_t tokens, uint64_t now_ns,
			  char why[WHY_TEXT])
{
	uint64_t sum = 0;
	int over;

	window_check_take(&check->windows, tokens, now_ns);
	over = tokens ? window_check_over(&check->windows, now_ns, &sum) : -1;
	if (over < 0)
		return true;
	snprintf(why, WHY_TEXT, "limit %d: %llu tokens in a strict window of %llu that ends here",
		 over, (unsigned long long)sum,
		 (unsigned long long)check->windows.limits[over].most);
	return false;
}

/* Tells whether @tokens of @unit may be granted in the windows of the calendar. */
static bool check_calendar(struct rate_check *check, const char *unit, uint64_t tokens,
			   uint64_t now_ns, char why[WHY_TEXT])
{
	int over = calendar_check_grant(&check->calendar, unit, tokens, now_ns);
	const struct calendar_limit *limit = &check->calendar.limits[over < 0 ? 0 : over];

	if (over < 0)
		return true;
	snprintf(why, WHY_TEXT, "limit %d: %llu tokens in a window of the calendar of %llu", over,
		 (unsigned long long)limit->granted, (unsigned long long)limit->most);
	return false;
}

bool rate_check_grant(struct rate_check *check, uint64_t tokens, uint64_t asked, uint64_t now_ns,
		      char why[WHY_TEXT])
{
	if (check->closed) {
		snprintf(why, WHY_TEXT, "granted while enforcement is closed");
		return false;
	}
	if (!check_windows(check, tokens, now_ns, why) ||
	    !check_calendar(check, "", tokens, now_ns, why))
		return false;
	rate_check_flow(check, now_ns);
	if (asked > check->largest)
		check->largest = asked;
	for (int i = 0; i < LIMITS_MAX; i++) {
		const struct limit_check *limit = &check->limits[i];

		if (limit->in_force && !*limit->unit && !may_grant(check, i, tokens, why))
			return false;
	}
	return true;
}

void rate_check_wants(struct rate_check *check, const struct amounts *amounts)
{
	for (uint64_t k = 0; k < amounts->count; k++) {
		uint64_t tokens = amounts->of[k].tokens;

		if (tokens > check->largest_of_any)
			check->largest_of_any = tokens;
		for (int i = 0; i < LIMITS_MAX; i++) {
			struct limit_check *limit = &check->limits[i];

			if (*limit->unit && amount_is_of(limit->unit, amounts->of[k].unit) &&
			    tokens > limit->largest)
				limit->largest = tokens;
		}
	}
}

bool rate_check_units(struct rate_check *check, const struct amounts *amounts, uint64_t now_ns,
		      char why[WHY_TEXT])
{
	rate_check_flow(check, now_ns);
	rate_check_wants(check, amounts);
	for (uint64_t k = 0; k < amounts->count; k++) {
		if (!check_calendar(check, amounts->of[k].unit, amounts->of[k].tokens, now_ns, why))
			return false;
	}
	for (int i = 0; i < LIMITS_MAX; i++) {
		const struct limit_check *limit = &check->limits[i];

		if (limit->in_force && *limit->unit &&
		    !may_grant(check, i, amounts_of(amounts, limit->unit), why))
			return false;
	}
	return true;
}

void rate_check_return_unit(struct rate_check *check, const char unit[UNIT_TEXT], uint64_t tokens,
			    uint64_t now_ns)
{
	rate_check_flow(check, now_ns);
	calendar_check_return(&check->calendar, unit, tokens, now_ns);
	if (!*unit)
		window_check_return(&check->windows, tokens);
	for (int i = 0; i < LIMITS_MAX; i++) {
		struct limit_check *limit = &check->limits[i];
		u128 units = (u128)tokens * limit->flow.den;

		if (!limit->in_force || !amount_is_of(limit->unit, unit))
			continue;
		limit->tuned.units -= units < limit->tuned.units ? units : limit->tuned.units;
		limit->through.units -= units < limit->through.units ? units : limit->through.units;
	}
}

void rate_check_return(struct rate_check *check, uint64_t tokens, uint64_t now_ns)
{
	static const char none[UNIT_TEXT];

	rate_check_return_unit(check, none, tokens, now_ns);
}
