/* stat - the counters and gauges of a limiter, see stat.h. */
#include "stat.h"
#include "holding.h"
#include "limiter.h"
#include "partition.h"
#include "slots.h"

#include <math.h>
#include <stdio.h>

static double rate_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	struct settings settings;

	limiter_settings(limiter, &settings);
	for (unsigned int i = 0; i < settings.limit_count; i++) {
		double rate = rate_per_second(&settings.limits[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

/* What is in the buckets: in a fleet, this host's share. */
static double share_of(const struct limiter *limiter)
{
	double least = (double)INFINITY;

	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		double rate = rate_per_second(&limiter->buckets[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

static double effective_rate_of(const struct limiter *limiter)
{
	switch ((enum limiter_mode)limiter->mode) {
	case MODE_ENFORCE:
		return share_of(limiter);
	case MODE_CLOSED:
		return 0;
	case MODE_SHADOW:
	case MODE_OPEN:
	case MODE_COUNT:
		break;
	}
	return (double)INFINITY;
}

static double waiting_of(const struct limiter *limiter)
{
	return limiter->queue.length + partition_waiting(limiter) + slots_waiting(limiter);
}

static double partitions_of(const struct limiter *limiter)
{
	uint32_t shares;

	if (limiter->holding)
		return limiter->holding->held + (limiter->holding->reserve.state == LEASE_HELD);
	return partition_count(limiter, &shares);
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

/* Not in limiter->counters. */
enum { SLOTS_OPENED = COUNTER_COUNT };

/* The table: counters first, then gauges. */
static const struct {
	const char *name;
	const char *help;
	int counter; /* enum counter, or -1 for a gauge */
	double (*gauge)(const struct limiter *limiter);
} STATS[] = {
	{"granted", "Tokens granted, those of children included", COUNTER_GRANTED, NULL},
	{"served", "Reads answered with tokens", COUNTER_SERVED, NULL},
	{"refused", "Reads refused with EAGAIN", COUNTER_REFUSED, NULL},
	{"cancelled", "Readers that gave up waiting", COUNTER_CANCELLED, NULL},
	{"delayed_seconds", "Time that served readers waited", COUNTER_DELAYED, NULL},
	{"shadowed", "Tokens and slots that would have waited but for mode shadow",
	 COUNTER_SHADOWED, NULL},
	{"charged", "Tokens charged afterwards", COUNTER_CHARGED, NULL},
	{"returned", "Tokens given back unused", COUNTER_RETURNED, NULL},
	{"slots_opened", "Slots opened, those of children included", SLOTS_OPENED, NULL},
	{"waiting", "Readers blocked now", -1, waiting_of},
	{"rate", "Tokens a second that are set", -1, rate_of},
	{"effective_rate", "Tokens a second that are in force", -1, effective_rate_of},
	{"tokens", "Tokens in the bucket, negative in debt", -1, limiter_tokens},
	{"slots", "Slots that may be open now", -1, slots_of},
	{"slots_used", "Slots that are open", -1, slots_used_of},
	{"partitions_held", "Partitions that this host holds", -1, partitions_of},
};

/* What is said of slots is counted beside them: what counters say of tokens is about tokens alone. */
static uint64_t count_of(const struct limiter *limiter, int counter)
{
	const struct slots *slots = limiter->slots;

	if (counter == SLOTS_OPENED)
		return slots ? slots->opened : 0;
	if (counter == COUNTER_REFUSED && slots)
		return limiter->counters[COUNTER_REFUSED] + slots->refused;
	if (counter == COUNTER_SHADOWED && slots)
		return limiter->counters[COUNTER_SHADOWED] + slots->shadowed;
	return limiter->counters[counter];
}

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
	entry.count = count_of(limiter, STATS[index].counter);
	entry.is_whole = STATS[index].counter != COUNTER_DELAYED;
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
