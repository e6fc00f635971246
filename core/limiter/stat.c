/* stat - the counters and gauges of a limiter, see stat.h. */
#include "core/limiter/stat.h"
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"

#include <math.h>
#include <stdio.h>

static double rate_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct settings *settings = limiter_settings(limiter);

	for (unsigned int i = 0; i < settings->limit_count; i++) {
		double rate = rate_per_second(&settings->limits[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

/* Returns the rate of the buckets: in a fleet, this host's share. */
static double share_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;

	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		double rate = fraction_per_second(&limiter->buckets[i].flow);

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

/*
 * Counts of slots are the slots' own: limiter->counters are about tokens alone.
 */
static uint64_t shadowed_of(const struct limiter *limiter)
{
	return limiter->counters[COUNTER_SHADOWED] +
	       (limiter->slots ? limiter->slots->shadowed : 0);
}

/* The table: counters first, then gauges. */
static const struct {
	const char *name;
	const char *help;
	int counter; /* enum counter, if there is no function */
	uint64_t (*count)(const struct limiter *limiter);
	double (*gauge)(const struct limiter *limiter);
	bool is_time;
	bool of_key; /* shown of a key: counts that it keeps while it is idle, and its bucket */
} STATS[] = {
	{"granted", "Tokens granted, those of children included", .counter = COUNTER_GRANTED,
	 .of_key = true},
	{"served", "Reads answered with tokens", .counter = COUNTER_SERVED, .of_key = true},
	{"refused", "Reads refused: of try, with within or with O_NONBLOCK", .count = refused_of,
	 .of_key = true},
	{"cancelled", "Readers that gave up waiting", .counter = COUNTER_CANCELLED},
	{"delayed_seconds", "Time that served readers waited", .counter = COUNTER_DELAYED,
	 .is_time = true},
	{"shadowed", "Tokens and slots that would have waited if enforced", .count = shadowed_of},
	{"charged", "Tokens charged afterwards", .counter = COUNTER_CHARGED},
	{"returned", "Tokens given back unused", .counter = COUNTER_RETURNED},
	{"slots_opened", "Slots opened, those of children included", .count = slots_opened_of},
	{"ok", "Pieces of work that were reported to have gone through", .counter = COUNTER_OK},
	{"throttled", "Pieces of work that the service throttled", .counter = COUNTER_THROTTLED},
	{"error", "Pieces of work that failed for another reason", .counter = COUNTER_ERROR},
	{"backoff_up", "Times that the delay of backoff grew", .count = ups_of},
	{"backoff_down", "Times that the delay of backoff shrank", .count = downs_of},
	{"backoff_pauses", "Pauses of backoff", .count = pauses_of},
	{"backoff_paused_seconds", "Time in pauses of backoff", .count = paused_of,
	 .is_time = true},
	{"waiting", "Readers blocked now, and pollers", .gauge = waiting_of, .of_key = true},
	{"rate", "Tokens a second that are set", .gauge = rate_of, .of_key = true},
	{"effective_rate", "Tokens a second that are in force", .gauge = effective_rate_of,
	 .of_key = true},
	{"tokens", "Tokens in the bucket, negative in debt", .gauge = limiter_tokens,
	 .of_key = true},
	{"slots", "Slots that may be open now", .gauge = slots_of},
	{"slots_used", "Slots that are open", .gauge = slots_used_of},
	{"keys", "Keys that are remembered", .gauge = keys_of},
	{"backoff_seconds", "The delay of backoff now", .gauge = delay_seconds_of},
	{"partitions_held", "Partitions or pieces that this host holds", .gauge = partitions_of},
	{"share", "Part of the limiter that this host may use now, 0 to 1", .gauge = part_of},
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

size_t stat_print(const struct limiter *limiter, char text[STAT_TEXT])
{
	size_t used = 0;

	for (size_t i = 0; i < stat_count(); i++) {
		struct stat_entry entry = stat_entry(limiter, i);
		char *at = text + used;
		size_t room = STAT_TEXT - used;

		if (limiter->is_key && !STATS[i].of_key)
			continue;
		if (entry.is_whole)
			used += (size_t)snprintf(at, room, "%s %llu\n", entry.name,
						 (unsigned long long)entry.count);
		else if (isinf(entry.value))
			used += (size_t)snprintf(at, room, "%s max\n", entry.name);
		else if (entry.is_counter)
			used += (size_t)snprintf(at, room, "%s %llu.%09llu\n", entry.name,
						 (unsigned long long)(entry.count / NSEC_PER_SEC),
						 (unsigned long long)(entry.count % NSEC_PER_SEC));
		else
			used += (size_t)snprintf(at, room, "%s %.15g\n", entry.name, entry.value);
	}
	return used;
}
