/* restrict - what of settings counts while not all hosts have them, see restrict.h. */
#include "core/fleet/restrict.h"

#include <errno.h>

static bool has_no_more_slots(const struct settings *a, const struct settings *b)
{
	uint32_t count = settings_partition_count(a), other = settings_partition_count(b);

	if (a->slots.kind != SLOTS_COUNT || b->slots.kind != SLOTS_COUNT)
		return true;
	for (uint32_t i = 0; i < count && i < other; i++) {
		if (settings_slots_of_partition(a, i) > settings_slots_of_partition(b, i))
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
	uint32_t count = settings_partition_count(a), other_count = settings_partition_count(b);
	uint64_t whole = burst > count ? burst : count;
	uint64_t other_whole = other > other_count ? other : other_count;

	return (u128)whole * other_count <= (u128)other_whole * count;
}

/* Whether a partition is worth no more in @a than in @b, by any limit. */
static bool is_below(const struct settings *a, const struct settings *b)
{
	struct settings x = settings_of_partition(a, 0), y = settings_of_partition(b, 0);

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

/* Whether there are no more partitions in @a than in @b, of either kind, and each is worth no more. */
static bool is_within(const struct settings *a, const struct settings *b)
{
	if (a->reserve_hosts > b->reserve_hosts ||
	    (a->reserve_hosts && rate_compare(&a->reserve_rate, &b->reserve_rate) > 0))
		return false;
	return settings_partition_count(a) <= settings_partition_count(b) && is_below(a, b);
}

/* Tells whether a limiter is cut into the same partitions in both: no piece is used twice then. */
static bool is_cut_alike(const struct settings *a, const struct settings *b)
{
	return settings_partition_count(a) == settings_partition_count(b) &&
	       setting_equal(SETTING_PARTITIONS_RESERVE, a, b);
}

/*
 * Whether hosts under the old settings and under the new ones might together use too much. A partition
 * is used by one of them, so it is worth at most what it is in either; if that is the same settings
 * for all, the sum is that settings' rate.
 */
static bool restricts(const struct settings *old, const struct settings *new)
{
	bool shared = (settings_limit(old) && settings_limit(new)) ||
		      (old->slots.kind == SLOTS_COUNT && new->slots.kind == SLOTS_COUNT);

	if (!shared || is_cut_alike(old, new))
		return false;
	return !is_within(old, new) && !is_within(new, old);
}

bool restrict_keeps_savings(const struct settings *old, const struct settings *new)
{
	if (!old->limit_count)
		return true;
	if (old->limit_count != new->limit_count ||
	    settings_partition_count(old) != settings_partition_count(new))
		return false;
	for (uint32_t i = 0; i < old->limit_count; i++) {
		if (settings_burst(old, i) != settings_burst(new, i))
			return false;
	}
	return true;
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

static bool is_altered(const struct fleet *fleet, const struct holding *holding)
{
	return holding->altered && holding->restricted_ns > fleet->clocks.waiter_ns;
}

/* Tells whether the use that hosts make of partitions differs between @a and @b. */
static bool is_used_alike(const struct settings *a, const struct settings *b)
{
	static const enum setting_id ids[] = {
		SETTING_RATE,	    SETTING_BURST,     SETTING_PARTITIONS_COUNT,
		SETTING_KEY_RATE,   SETTING_KEY_BURST, SETTING_PARTITIONS_RESERVE,
		SETTING_CONCURRENCY};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		if (!setting_equal(ids[i], a, b))
			return false;
	}
	return settings_partition_count(a) == settings_partition_count(b);
}

static uint32_t fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void restrict_alter(struct fleet *fleet, struct holding *holding, const struct settings *settings)
{
	struct settings now = holding->settings;
	const struct settings *least = &now;

	if (holding->restricted || is_used_alike(&now, settings) ||
	    (!uses_partitions(&now) && !is_altered(fleet, holding)))
		return;
	now.partitions = settings_partition_count(&now);
	if (is_altered(fleet, holding)) {
		least = lesser(&holding->before, &now);
		holding->unclear = holding->unclear || !least;
		holding->before_count = fewer(holding->before_count, now.partitions);
	} else {
		holding->unclear = false;
		holding->recut = false;
		holding->before_count = now.partitions;
	}
	holding->recut = holding->recut || !is_cut_alike(&now, settings);
	if (least && least != &holding->before)
		holding->before = *least;
	holding->altered = true;
	holding->restricted_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

void restrict_to(struct fleet *fleet, struct holding *holding, const struct settings *before,
		 uint32_t count)
{
	holding->before = *before;
	holding->before_count = count;
	holding->before.partitions = settings_partition_count(before);
	holding->restricted = true;
	holding->altered = false;
	holding->restricted_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

int restrict_name_before(const struct fleet *fleet, const struct holding *holding,
			 struct record *record)
{
	const struct settings *now = &holding->settings, *old = &holding->before, *least = now;
	bool lately = holding->restricted || is_altered(fleet, holding);
	bool unclear = lately && !holding->restricted && holding->unclear;
	bool changes = restricts(now, &record->settings);

	/* Where all are cut alike it does not matter which is the least. */
	if (unclear)
		changes = !is_used_alike(now, &record->settings) &&
			  (holding->recut || !is_cut_alike(now, &record->settings));
	else if (lately && !holding->restricted)
		changes = changes || restricts(old, &record->settings);
	if (!changes && !holding->restricted)
		return 0;
	if (lately)
		least = changes ? lesser(now, old) : old;
	if (!least || unclear)
		return -EBUSY;
	record->has_before = true;
	record->before = *least;
	record->before_count = settings_partition_count(now);
	if (lately && changes && uses_partitions(now))
		record->before_count = fewer(holding->before_count, record->before_count);
	else if (lately)
		record->before_count = holding->before_count;
	record->before.partitions = settings_partition_count(&record->before);
	return 0;
}
