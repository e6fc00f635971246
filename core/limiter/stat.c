/* stat - the counters and gauges of a limiter, see stat.h. */
#include "core/limiter/stat.h"
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"
#include "core/limiter/units.h"
#include "core/limiter/usage.h"

#include <math.h>
#include <stdio.h>

enum { STAT_NAME_TEXT = 64 };

static double rate_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct settings *settings = limiter_settings(limiter);

	for (unsigned int i = 0; i < settings_plain_count(settings); i++) {
		double rate = rate_per_second(&settings->limits[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

/* Returns the rate of the buckets: in a fleet, this host's share. */
static double share_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;

	for (unsigned int i = 0; i < limiter->plain_count; i++) {
		double rate = fraction_per_second(&limiter->buckets[i].flow);

		if (bucket_is_window(&limiter->buckets[i]))
			continue;
		least = rate < least ? rate : least;
	}
	return fmin(least, learning_rate(limiter));
}

static double effective_rate_of(const struct limiter *limiter)
{
	switch (limiter->settings->enforcement) {
	case ENFORCEMENT_ENFORCE:
		return share_of(limiter);
	case ENFORCEMENT_CLOSED:
		return 0;
	case ENFORCEMENT_SHADOW:
	case ENFORCEMENT_OPEN:
	case ENFORCEMENT_COUNT:
		break;
	}
	return (double)INFINITY;
}

static double waiting_of(const struct limiter *limiter)
{
	return limiter->turns.queue.length + partition_waiting(limiter) + keys_waiting(limiter) +
	       slots_waiting(limiter);
}

static double waiting_below_of(const struct limiter *limiter)
{
	uint32_t all = limiter->turns.waiting;

	if (limiter->slots)
		all += limiter->slots->turns.waiting;
	return all - waiting_of(limiter);
}

static double keys_of(const struct limiter *limiter)
{
	return keys_count(limiter);
}

static double partitions_of(const struct limiter *limiter)
{
	const struct holding *holding = limiter->holding;
	uint32_t shares, held, next = 0; /* leaf behind the tile that was counted last */

	if (!holding)
		return partition_count(limiter, &shares);
	held = holding->reserve.state == LEASE_HELD;
	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state != LEASE_HELD || lease->tile_first < next)
			continue;
		held++;
		next = lease->tile_last + 1;
	}
	return held;
}

/* Returns the part of the capacity that this host may use now, without that of the reserve. */
static double part_of(const struct limiter *limiter)
{
	const struct holding *holding = limiter->holding;

	if (!holding || !holding_needs_leases(holding))
		return 1;
	return (double)holding->usable / holding_leaves(holding->settings);
}

/* Counts that are there only where there is back-off. */
#define BACKOFF_COUNT(name, member)                                             \
	static uint64_t name(const struct limiter *limiter)                     \
	{                                                                       \
		return limiter->learning ? limiter->learning->pause.member : 0; \
	}

BACKOFF_COUNT(ups_of, ups)
BACKOFF_COUNT(downs_of, downs)
BACKOFF_COUNT(pauses_of, pauses)
BACKOFF_COUNT(paused_of, paused_ns)
BACKOFF_COUNT(delay_of, delay_ns)

static double delay_seconds_of(const struct limiter *limiter)
{
	return (double)delay_of(limiter) / (double)NSEC_PER_SEC;
}

/* Returns the seconds until the next window of the calendar begins. */
static double reset_of(const struct limiter *limiter)
{
	uint64_t ns = limiter_reset_ns(limiter);

	return ns == NEVER_NS ? (double)INFINITY : (double)ns / (double)NSEC_PER_SEC;
}

/* Returns the tokens left of @allowances, which are NULL if the service said nothing. */
static double left_of(const struct allowances *allowances)
{
	const struct allowance *least = allowances ? allowances_least(allowances) : NULL;

	return least ? (double)least->left : (double)INFINITY;
}

/* Returns the seconds until that is over. */
static double left_seconds_of(const struct limiter *limiter, const struct allowances *allowances)
{
	const struct allowance *least = allowances ? allowances_least(allowances) : NULL;
	uint64_t now_ns = least ? limiter->learning->now_ns : 0;

	return least && least->until_ns > now_ns
		       ? (double)(least->until_ns - now_ns) / (double)NSEC_PER_SEC
		       : 0;
}

static const struct allowances *allowances_of(const struct limiter *limiter)
{
	return limiter->learning ? &limiter->learning->allowances : NULL;
}

static double service_left_of(const struct limiter *limiter)
{
	return left_of(allowances_of(limiter));
}

static double service_seconds_of(const struct limiter *limiter)
{
	return left_seconds_of(limiter, allowances_of(limiter));
}

static double service_rate_of(const struct limiter *limiter)
{
	return limiter->learning && limiter->learning->told_limit > 0
		       ? limiter->learning->told_limit
		       : (double)INFINITY;
}

static double slots_of(const struct limiter *limiter)
{
	uint32_t limit = slots_limit(limiter);

	return limit == UINT32_MAX ? (double)INFINITY : limit;
}

static double slots_used_of(const struct limiter *limiter)
{
	return slots_used(limiter);
}

static uint64_t slots_opened_of(const struct limiter *limiter)
{
	return limiter->slots ? limiter->slots->opened : 0;
}

static uint64_t refused_of(const struct limiter *limiter)
{
	return limiter->counters[COUNTER_REFUSED] + (limiter->slots ? limiter->slots->refused : 0);
}

static double quantile_of(const struct histogram *waits, unsigned int percent)
{
	uint64_t ns = histogram_quantile_ns(waits, percent);

	return ns == NEVER_NS ? (double)INFINITY : (double)ns / (double)NSEC_PER_SEC;
}

#define WAIT_QUANTILE(name, waits_of, percent)                    \
	static double name(const struct limiter *limiter)         \
	{                                                         \
		const struct histogram waits = waits_of(limiter); \
                                                                  \
		return quantile_of(&waits, percent);              \
	}

WAIT_QUANTILE(wait_p50_of, usage_of_tokens, 50)
WAIT_QUANTILE(wait_p90_of, usage_of_tokens, 90)
WAIT_QUANTILE(wait_p99_of, usage_of_tokens, 99)
WAIT_QUANTILE(slot_wait_p50_of, usage_of_slots, 50)
WAIT_QUANTILE(slot_wait_p90_of, usage_of_slots, 90)
WAIT_QUANTILE(slot_wait_p99_of, usage_of_slots, 99)

/*
 * Counts of slots are the slots' own: limiter->counters are about tokens alone.
 */
static uint64_t shadowed_of(const struct limiter *limiter)
{
	return limiter->counters[COUNTER_SHADOWED] +
	       (limiter->slots ? limiter->slots->shadowed : 0);
}

/*
 * Whether there is what a part of the table is about, by the settings or by what was counted: then
 * metrics has that part.
 */
static bool has_shadow(const struct limiter *limiter)
{
	return limiter_settings(limiter)->enforcement == ENFORCEMENT_SHADOW || shadowed_of(limiter);
}

static bool has_charges(const struct limiter *limiter)
{
	const struct units *units = units_counts(limiter);
	uint64_t all = limiter->counters[COUNTER_CHARGED] | limiter->counters[COUNTER_RETURNED];

	for (uint32_t i = 0; units && i < LIMITS_MAX; i++)
		all |= units->of[i].charged | units->of[i].returned;
	return all;
}

static bool has_feedback(const struct limiter *limiter)
{
	return learning_is_needed(limiter_settings(limiter)) || limiter->counters[COUNTER_OK] ||
	       limiter->counters[COUNTER_THROTTLED] || limiter->counters[COUNTER_ERROR];
}

static bool has_backoff(const struct limiter *limiter)
{
	return limiter_settings(limiter)->backoff.kind != BACKOFF_NONE || ups_of(limiter) ||
	       downs_of(limiter) || pauses_of(limiter);
}

static bool has_quota(const struct limiter *limiter)
{
	return limiter->learning && limiter->learning->told;
}

static bool has_slots(const struct limiter *limiter)
{
	return limiter->slots || limiter_settings(limiter)->slots.kind != SLOTS_MAX;
}

static bool has_keys(const struct limiter *limiter)
{
	return limiter->keys;
}

static bool has_windows(const struct limiter *limiter)
{
	return settings_have_windows(limiter_settings(limiter));
}

static bool has_min(const struct limiter *limiter)
{
	return limiter_settings(limiter)->min.amount || limiter->counters[COUNTER_GRANTED_MIN];
}

static bool has_queue_max(const struct limiter *limiter)
{
	return limiter_settings(limiter)->queue_max != UINT32_MAX ||
	       limiter->counters[COUNTER_REFUSED_QUEUE];
}

static bool has_wait_max(const struct limiter *limiter)
{
	return limiter_settings(limiter)->wait_max_ns != NEVER_NS ||
	       limiter->counters[COUNTER_REFUSED_WAIT];
}

static bool has_children(const struct limiter *limiter)
{
	return limiter->first_child;
}

static bool has_fleet(const struct limiter *limiter)
{
	return limiter->holding;
}

/* The table: counters first, then gauges. */
static const struct {
	const char *name;
	const char *help;
	int counter; /* enum counter, if there is no function */
	uint64_t (*count)(const struct limiter *limiter);
	double (*gauge)(const struct limiter *limiter);
	bool (*is_on)(const struct limiter *limiter); /* metrics has it then; NULL: always */
	bool is_time;
	bool is_summary; /* metrics has a histogram in its place */
	bool of_key;	 /* shown of a key: counts that it keeps while it is idle, and its bucket */
	bool of_key_slots;   /* shown of a key that has slots */
	bool of_key_windows; /* shown of a key that has windows of the calendar */
} STATS[] = {
	{"granted", "Tokens granted, those of children included", .counter = COUNTER_GRANTED,
	 .of_key = true},
	{"served", "Reads answered with tokens", .counter = COUNTER_SERVED, .of_key = true},
	{"refused", "Reads refused: of try, with within or with O_NONBLOCK", .count = refused_of,
	 .of_key = true},
	{"cancelled", "Readers that gave up waiting", .counter = COUNTER_CANCELLED},
	{"delayed_seconds", "Seconds that served readers waited", .counter = COUNTER_DELAYED,
	 .is_time = true},
	{"shadowed", "Tokens and slots that would have waited if enforced", .count = shadowed_of,
	 .is_on = has_shadow},
	{"charged", "Tokens charged afterwards", .counter = COUNTER_CHARGED, .is_on = has_charges},
	{"returned", "Tokens given back unused", .counter = COUNTER_RETURNED, .is_on = has_charges},
	{"slots_opened", "Slots opened, those of children included", .count = slots_opened_of,
	 .is_on = has_slots},
	{"ok", "Pieces of work that were reported to have gone through", .counter = COUNTER_OK,
	 .is_on = has_feedback},
	{"throttled", "Pieces of work that the service throttled", .counter = COUNTER_THROTTLED,
	 .is_on = has_feedback},
	{"error", "Pieces of work that failed for another reason", .counter = COUNTER_ERROR,
	 .is_on = has_feedback},
	{"backoff_up", "Times that the delay of backoff grew", .count = ups_of,
	 .is_on = has_backoff},
	{"backoff_down", "Times that the delay of backoff shrank", .count = downs_of,
	 .is_on = has_backoff},
	{"backoff_pauses", "Pauses of backoff", .count = pauses_of, .is_on = has_backoff},
	{"backoff_paused_seconds", "Seconds in pauses of backoff", .count = paused_of,
	 .is_on = has_backoff, .is_time = true},
	{"granted_min", "Tokens granted under min, before its siblings",
	 .counter = COUNTER_GRANTED_MIN, .is_on = has_min},
	{"refused_queue_max", "Reads, and opens of slot, refused as queue_max readers waited",
	 .counter = COUNTER_REFUSED_QUEUE, .is_on = has_queue_max},
	{"refused_wait_max", "Reads refused as they would have waited longer than wait_max",
	 .counter = COUNTER_REFUSED_WAIT, .is_on = has_wait_max},
	{"waiting", "Readers blocked now, and pollers", .gauge = waiting_of, .of_key = true},
	{"waiting_below", "Readers blocked now in the limiters below, and pollers",
	 .gauge = waiting_below_of, .is_on = has_children},
	{"rate", "Tokens a second that are set", .gauge = rate_of, .of_key = true},
	{"effective_rate", "Tokens a second that are in force", .gauge = effective_rate_of,
	 .of_key = true},
	{"tokens", "Tokens in the bucket, negative in debt", .gauge = limiter_tokens,
	 .of_key = true},
	{"reset", "Seconds until the next window of the calendar begins", .gauge = reset_of,
	 .is_on = has_windows, .of_key_windows = true},
	{"slots", "Slots that may be open now", .gauge = slots_of, .is_on = has_slots,
	 .of_key_slots = true},
	{"slots_used", "Slots that are open", .gauge = slots_used_of, .is_on = has_slots,
	 .of_key_slots = true},
	{"keys", "Keys that are remembered", .gauge = keys_of, .is_on = has_keys},
	{"backoff_seconds", "Seconds of the delay of backoff now", .gauge = delay_seconds_of,
	 .is_on = has_backoff},
	{"service_left", "Tokens that the service said are left, without those granted since",
	 .gauge = service_left_of, .is_on = has_quota},
	{"service_left_seconds", "Seconds until what the service left is over",
	 .gauge = service_seconds_of, .is_on = has_quota},
	{"service_rate", "Tokens a second that the service said it gives", .gauge = service_rate_of,
	 .is_on = has_quota},
	{"partitions_held", "Partitions or pieces that this host holds", .gauge = partitions_of,
	 .is_on = has_fleet},
	{"share", "Part of the limiter that this host may use now, 0 to 1", .gauge = part_of,
	 .is_on = has_fleet},
	{"wait_p50_seconds", "Seconds within which 50 % of the reads had tokens",
	 .gauge = wait_p50_of, .is_summary = true},
	{"wait_p90_seconds", "Seconds within which 90 % of the reads had tokens",
	 .gauge = wait_p90_of, .is_summary = true},
	{"wait_p99_seconds", "Seconds within which 99 % of the reads had tokens",
	 .gauge = wait_p99_of, .is_summary = true},
	{"slot_wait_p50_seconds", "Seconds within which 50 % of the openers had a slot",
	 .gauge = slot_wait_p50_of, .is_summary = true},
	{"slot_wait_p90_seconds", "Seconds within which 90 % of the openers had a slot",
	 .gauge = slot_wait_p90_of, .is_summary = true},
	{"slot_wait_p99_seconds", "Seconds within which 99 % of the openers had a slot",
	 .gauge = slot_wait_p99_of, .is_summary = true},
};

size_t stat_count(void)
{
	return sizeof(STATS) / sizeof(STATS[0]);
}

struct stat_entry stat_entry(const struct limiter *limiter, size_t index)
{
	struct stat_entry entry = {.name = STATS[index].name, .help = STATS[index].help};

	if (STATS[index].gauge) {
		entry.value = STATS[index].gauge(limiter);
		return entry;
	}
	entry.is_counter = true;
	entry.count = STATS[index].count ? STATS[index].count(limiter)
					 : limiter->counters[STATS[index].counter];
	entry.is_whole = !STATS[index].is_time;
	entry.value = (double)entry.count / (double)NSEC_PER_SEC;
	return entry;
}

bool stat_has_metric(const struct limiter *limiter, size_t index)
{
	return !STATS[index].is_summary && (!STATS[index].is_on || STATS[index].is_on(limiter));
}

/* Tells whether the statistic is shown of the key @limiter. */
static bool is_of_key(const struct limiter *limiter, size_t index)
{
	return STATS[index].of_key || (STATS[index].of_key_slots && has_slots(limiter)) ||
	       (STATS[index].of_key_windows && settings_have_windows(limiter->settings));
}

/* Returns the first limit of the unit of limit @i. */
static uint32_t first_of_unit(const struct settings *settings, uint32_t i)
{
	uint32_t first = 0;

	while (!amount_is_of(settings->limits[first].unit, settings->limits[i].unit))
		first++;
	return first;
}

uint32_t stat_unit(const struct limiter *limiter, uint32_t i)
{
	const struct settings *settings = limiter->settings;

	if (!units_counts(limiter))
		return LIMITS_MAX;
	i = i < limiter->plain_count ? limiter->plain_count : i;
	for (; i < limiter->bucket_count; i++) {
		if (first_of_unit(settings, i) == i)
			return i;
	}
	return LIMITS_MAX;
}

const char *stat_unit_name(const struct limiter *limiter, uint32_t i)
{
	return limiter->settings->limits[i].unit;
}

static double unit_rate_of(const struct limiter *limiter, uint32_t i)
{
	return rate_per_second(&limiter_settings(limiter)->limits[i].rate);
}

static double unit_flow_of(const struct limiter *limiter, uint32_t i)
{
	switch (limiter->settings->enforcement) {
	case ENFORCEMENT_ENFORCE:
		return fraction_per_second(&limiter->buckets[i].flow);
	case ENFORCEMENT_CLOSED:
		return 0;
	case ENFORCEMENT_SHADOW:
	case ENFORCEMENT_OPEN:
	case ENFORCEMENT_COUNT:
		break;
	}
	return (double)INFINITY;
}

static double unit_tokens_of(const struct limiter *limiter, uint32_t i)
{
	const struct bucket *bucket = &limiter->buckets[i];

	return (double)bucket_level(bucket) + (double)bucket->part / (double)bucket->flow.den;
}

/* Returns what the service said of the unit of limit @i; NULL: nothing. */
static const struct unit_quota *unit_quota_of(const struct limiter *limiter, uint32_t i)
{
	return limiter->learning ? unit_quotas_find(limiter->learning->units,
						    limiter->settings->limits[i].unit)
				 : NULL;
}

static double unit_left_of(const struct limiter *limiter, uint32_t i)
{
	const struct unit_quota *quota = unit_quota_of(limiter, i);

	return left_of(quota ? &quota->allowances : NULL);
}

static double unit_left_seconds_of(const struct limiter *limiter, uint32_t i)
{
	const struct unit_quota *quota = unit_quota_of(limiter, i);

	return left_seconds_of(limiter, quota ? &quota->allowances : NULL);
}

static double unit_told_rate_of(const struct limiter *limiter, uint32_t i)
{
	const struct unit_quota *quota = unit_quota_of(limiter, i);

	return quota && quota->told_limit > 0 ? quota->told_limit : (double)INFINITY;
}

/* The table of what is told of a unit; of a gauge the least of its limits. */
static const struct {
	const char *name;
	const char *help;
	size_t count; /* offset in struct unit_count, if there is no function */
	double (*gauge)(const struct limiter *limiter, uint32_t i);
} UNIT_STATS[] = {
	{"granted", "Tokens granted, those of children included",
	 .count = offsetof(struct unit_count, granted)},
	{"charged", "Tokens charged afterwards", .count = offsetof(struct unit_count, charged)},
	{"returned", "Tokens given back unused", .count = offsetof(struct unit_count, returned)},
	{"rate", "Tokens a second that are set", .gauge = unit_rate_of},
	{"effective_rate", "Tokens a second that are in force", .gauge = unit_flow_of},
	{"tokens", "Tokens in the bucket, negative in debt", .gauge = unit_tokens_of},
	{"service_left", "Tokens that the service said are left, without those granted since",
	 .gauge = unit_left_of},
	{"service_left_seconds", "Seconds until what the service left is over",
	 .gauge = unit_left_seconds_of},
	{"service_rate", "Tokens a second that the service said it gives",
	 .gauge = unit_told_rate_of},
};

size_t stat_unit_count(void)
{
	return sizeof(UNIT_STATS) / sizeof(UNIT_STATS[0]);
}

struct stat_entry stat_unit_entry(const struct limiter *limiter, uint32_t i, size_t index)
{
	struct stat_entry entry = {.name = UNIT_STATS[index].name, .help = UNIT_STATS[index].help};

	if (!UNIT_STATS[index].gauge) {
		entry.is_counter = true;
		entry.is_whole = true;
		entry.count = *(const uint64_t *)((const char *)&units_counts(limiter)->of[i] +
						  UNIT_STATS[index].count);
		return entry;
	}
	entry.value = (double)INFINITY;
	for (uint32_t j = i; j < limiter->bucket_count; j++) {
		if (first_of_unit(limiter->settings, j) == i)
			entry.value = fmin(entry.value, UNIT_STATS[index].gauge(limiter, j));
	}
	return entry;
}

/* Prints the line of @entry, of @unit after a point; "": of none. */
static size_t print_entry(const struct stat_entry *entry, const char *unit, char *at, size_t room)
{
	char name[STAT_NAME_TEXT];

	snprintf(name, sizeof(name), "%s%s%s", entry->name, *unit ? "." : "", unit);
	if (entry->is_whole)
		return (size_t)snprintf(at, room, "%s %llu\n", name,
					(unsigned long long)entry->count);
	if (isinf(entry->value))
		return (size_t)snprintf(at, room, "%s max\n", name);
	if (entry->is_counter)
		return (size_t)snprintf(at, room, "%s %llu.%09llu\n", name,
					(unsigned long long)(entry->count / NSEC_PER_SEC),
					(unsigned long long)(entry->count % NSEC_PER_SEC));
	return (size_t)snprintf(at, room, "%s %.15g\n", name, entry->value);
}

size_t stat_print(const struct limiter *limiter, char text[STAT_TEXT])
{
	size_t used = 0;

	for (size_t i = 0; i < stat_count(); i++) {
		struct stat_entry entry = stat_entry(limiter, i);

		if (!limiter->is_key || is_of_key(limiter, i))
			used += print_entry(&entry, "", text + used, STAT_TEXT - used);
	}
	for (uint32_t i = 0; (i = stat_unit(limiter, i)) < LIMITS_MAX; i++) {
		for (size_t k = 0; k < stat_unit_count(); k++) {
			struct stat_entry entry = stat_unit_entry(limiter, i, k);

			used += print_entry(&entry, stat_unit_name(limiter, i), text + used,
					    STAT_TEXT - used);
		}
	}
	return used;
}
