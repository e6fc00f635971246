/* before - the settings that other hosts may still be under, see before.h. */
#include "core/fleet/before.h"
#include "core/fleet/parts.h"

#include <errno.h>

static bool has_no_more_slots(const struct settings *a, const struct settings *b)
{
	uint32_t count = settings_leaf_count(a), other = settings_leaf_count(b);

	if (a->slots.kind != SLOTS_COUNT || b->slots.kind != SLOTS_COUNT)
		return true;
	for (uint32_t i = 0; i < count && i < other; i++) {
		if (settings_slots_of_leaves(a, i, i) > settings_slots_of_leaves(b, i, i))
			return false;
	}
	return true;
}

/*
 * Tells whether a partition has no more of @burst in @a than of @other in @b; it has a token at
 * least.
 */
static bool is_burst_below(const struct settings *a, uint64_t burst, const struct settings *b,
			   uint64_t other)
{
	uint32_t count = settings_leaf_count(a), other_count = settings_leaf_count(b);
	uint64_t whole = burst > count ? burst : count;
	uint64_t other_whole = other > other_count ? other : other_count;

	return (u128)whole * other_count <= (u128)other_whole * count;
}

/* Tells whether a partition is worth no more in @a than in @b, by any limit. */
static bool is_below(const struct settings *a, const struct settings *b)
{
	struct settings x, y;

	settings_of_host(a, 1, false, &x);
	settings_of_host(b, 1, false, &y);
	if (x.limit_count != y.limit_count || !has_no_more_slots(a, b))
		return false;
	for (uint32_t i = 0; i < x.limit_count; i++) {
		if (rate_compare(&x.limits[i].rate, &y.limits[i].rate) > 0 ||
		    !is_burst_below(a, settings_burst(a, i), b, settings_burst(b, i)))
			return false;
	}
	return rate_compare(&x.key_rate, &y.key_rate) <= 0 &&
	       is_burst_below(a, a->key_burst, b, b->key_burst);
}

/*
 * Tells whether there are no more partitions in @a than in @b, of either kind, and each is worth no
 * more.
 */
static bool is_within(const struct settings *a, const struct settings *b)
{
	if (a->reserve_hosts > b->reserve_hosts ||
	    (a->reserve_hosts && rate_compare(&a->reserve_rate, &b->reserve_rate) > 0))
		return false;
	return settings_leaf_count(a) <= settings_leaf_count(b) && is_below(a, b);
}

/*
 * Tells whether hosts under the old settings and under the new ones might together use too much. A
 * partition is used by one of them, so it is worth at most what it is in either; if that is the
 * same settings for all, the sum is that settings' rate.
 */
static bool restricts(const struct settings *old, const struct settings *new)
{
	bool shared = (settings_limit(old) && settings_limit(new)) ||
		      (old->slots.kind == SLOTS_COUNT && new->slots.kind == SLOTS_COUNT);

	if (!shared || holding_is_cut_alike(old, new))
		return false;
	return !is_within(old, new) && !is_within(new, old);
}

/* Tells whether hosts under @settings use partitions for anything. */
static bool uses_partitions(const struct settings *settings)
{
	return settings_limit(settings) || settings->slots.kind == SLOTS_COUNT;
}

/* The one of @a and @b in which a partition is worth no more; NULL: neither is. */
static const struct settings *lesser(const struct settings *a, const struct settings *b)
{
	if (!uses_partitions(a))
		return b;
	if (!uses_partitions(b))
		return a;
	/* Slots that only one of them counts cannot be told from the other. */
	if ((a->slots.kind == SLOTS_COUNT) != (b->slots.kind == SLOTS_COUNT))
		return NULL;
	if (is_below(a, b))
		return a;
	return is_below(b, a) ? b : NULL;
}

bool before_is_alike(const struct settings *a, const struct settings *b)
{
	static const enum setting_id ids[] = {
		SETTING_RATE,	    SETTING_BURST,     SETTING_PARTITIONS_COUNT,
		SETTING_KEY_RATE,   SETTING_KEY_BURST, SETTING_PARTITIONS_RESERVE,
		SETTING_CONCURRENCY};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!setting_equal(ids[i], a, b))
			return false;
	}
	return settings_leaf_count(a) == settings_leaf_count(b);
}

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Sets what @record says of a change from @now, before which there was no other of late. */
static void name_one(const struct settings *now, struct record *record)
{
	record->before = *now;
	record->before_count = settings_leaf_count(now);
	record->before_is = restricts(now, &record->settings) ? BEFORE_RESTRICTS : 0;
	if (uses_partitions(&record->settings) && !holding_is_cut_alike(now, &record->settings))
		record->before_is |= BEFORE_RECUT;
}

/*
 * ... and of one from @holding's settings, with which earlier ones count. Three settings may use
 * too much of which the first and the last restrict nothing, so they must all have the same
 * partitions if hosts are not to keep to the least.
 */
static void name_several(const struct holding *holding, struct record *record)
{
	const struct settings *now = holding->settings, *old = &holding->before;
	const struct settings *least = lesser(old, now);
	bool uses = uses_partitions(&record->settings);
	uint32_t is = holding->before_is & ~(uint32_t)BEFORE_RESTRICTS;

	if (!least)
		is |= BEFORE_UNCLEAR;
	if ((uses_partitions(now) && !holding_is_cut_alike(old, now)) ||
	    (uses && !holding_is_cut_alike(old, &record->settings)))
		is |= BEFORE_RECUT;
	if (uses && is & BEFORE_RECUT)
		is |= BEFORE_RESTRICTS;
	record->before = least ? *least : *old;
	record->before_count = holding->before_count;
	if (uses_partitions(now))
		record->before_count = fewer(holding->before_count, settings_leaf_count(now));
	record->before_is = is;
}

int before_name(const struct fleet *fleet, const struct holding *holding, struct record *record)
{
	const struct settings *now = holding->settings;
	bool alike = before_is_alike(now, &record->settings);
	bool lately = holding->before_ns > fleet->clocks.waiter_ns;

	record->has_before = lately || (!alike && uses_partitions(now));
	if (!record->has_before)
		return 0;
	if (lately && alike) {
		record->before = holding->before;
		record->before_count = holding->before_count;
		record->before_is = holding->before_is;
		return 0;
	}
	if (lately)
		name_several(holding, record);
	else
		name_one(now, record);
	record->before.partitions = settings_leaf_count(&record->before);
	return (record->before_is & (BEFORE_RESTRICTS | BEFORE_UNCLEAR)) ==
			       (BEFORE_RESTRICTS | BEFORE_UNCLEAR)
		       ? -EBUSY
		       : 0;
}

void before_heed(const struct fleet *fleet, struct holding *holding, const struct record *record)
{
	if (!record->has_before)
		return;
	holding->before = record->before;
	holding->before.partitions = settings_leaf_count(&record->before);
	holding->before_count = record->before_count;
	holding->before_is = record->before_is;
	holding->restricted = record->before_is & BEFORE_RESTRICTS;
	holding->before_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}
