/* usage - what a limiter remembers of its readers, see usage.h. */
#include "core/limiter/usage.h"
#include "core/limiter/slots.h"

#include <stdlib.h>

/* Returns the limiter that counts the readers of @limiter: that of a key or a partition. */
static struct limiter *counter_of(const struct limiter *limiter)
{
	bool is_member = limiter->is_key || limiter->partition;

	return is_member ? limiter->parent : (struct limiter *)limiter;
}

/* Returns what @limiter remembers; NULL: no memory. */
static struct usage *get_usage(struct limiter *limiter)
{
	if (!limiter->usage)
		limiter->usage = calloc(1, sizeof(*limiter->usage));
	return limiter->usage;
}

/* Returns what @limiter remembers of waits; NULL: no memory. */
static struct waited *get_waited(const struct schedule *schedule, struct limiter *limiter)
{
	struct usage *usage = limiter->usage;

	if (usage && usage->waited)
		return usage->waited;
	usage = get_usage(limiter);
	if (!usage)
		return NULL;
	usage->waited = calloc(1, sizeof(*usage->waited));
	if (usage->waited)
		pressure_init(&usage->waited->pressure, schedule->now_ns);
	return usage->waited;
}

void usage_granted(const struct schedule *schedule, const struct waiter *waiter)
{
	struct limiter *limiter = counter_of(waiter->limiter);
	struct waited *waited = get_waited(schedule, limiter);

	if (!waited)
		return;
	waited->is_new = true;
	histogram_add(waiter->is_opener ? &waited->slots : &waited->tokens,
		      schedule->now_ns - waiter->asked_ns);
	waited->own_waited += !waiter->is_opener && limiter == waiter->limiter;
}

void usage_slot_at_once(const struct schedule *schedule, struct limiter *limiter)
{
	struct waited *waited = get_waited(schedule, counter_of(limiter));

	if (!waited)
		return;
	waited->is_new = true;
	waited->slots.at_once++;
}

void usage_member_at_once(const struct schedule *schedule, const struct limiter *member)
{
	struct waited *waited = get_waited(schedule, member->parent);

	if (waited)
		waited->tokens.at_once++;
}

void usage_stalled(const struct schedule *schedule, struct limiter *limiter)
{
	bool stalled = limiter->turns.waiting || (limiter->slots && limiter->slots->turns.waiting);
	struct waited *waited;

	/* A key or a partition is a part of its limiter, where the reader counts, too. */
	if (limiter->is_key || limiter->partition)
		return;
	waited = get_waited(schedule, limiter);
	if (!waited)
		return;
	waited->is_new = true;
	pressure_set(&waited->pressure, stalled, schedule->now_ns);
}

struct histogram usage_of_tokens(const struct limiter *limiter)
{
	const struct waited *waited = usage_waited(limiter);
	struct histogram histogram = waited ? waited->tokens : (struct histogram){0};
	uint64_t own = waited ? waited->own_waited : 0;
	uint64_t served = limiter->counters[COUNTER_SERVED];

	/* A read that waited may have been taken back since, as its reader was gone. */
	histogram.at_once += served > own ? served - own : 0;
	return histogram;
}

struct histogram usage_of_slots(const struct limiter *limiter)
{
	const struct waited *waited = usage_waited(limiter);

	return waited ? waited->slots : (struct histogram){0};
}

struct pressure usage_pressure(const struct limiter *limiter, uint64_t now_ns)
{
	const struct waited *waited = usage_waited(limiter);

	return waited ? pressure_at(&waited->pressure, now_ns) : (struct pressure){.at_ns = now_ns};
}

void usage_restore(const struct schedule *schedule, struct limiter *limiter,
		   const struct waited *waited)
{
	struct waited *own = get_waited(schedule, limiter);
	struct pressure *pressure;

	if (!own)
		return;
	*own = *waited;
	pressure = &own->pressure;
	/* A reader that waited at the end has waited since, and is about to ask again. */
	*pressure = pressure_at(pressure, schedule->now_ns);
	pressure->stalled = false;
	pressure->at_ns = schedule->now_ns;
	pressure->sampled_ns = schedule->now_ns;
	pressure->sampled_total_ns = pressure->total_ns;
	for (int i = 0; i < PRESSURE_AVERAGES; i++) {
		if (!(pressure->averages[i] >= 0 && pressure->averages[i] <= 1))
			pressure->averages[i] = 0;
	}
}

void usage_tally(struct limiter *limiter, const struct tally_line *line)
{
	struct usage *usage = get_usage(limiter);

	if (usage)
		(void)tally_add(&usage->tally, line);
}

void usage_free(struct limiter *limiter)
{
	if (!limiter->usage)
		return;
	tally_free(&limiter->usage->tally);
	free(limiter->usage->waited);
	free(limiter->usage);
	limiter->usage = NULL;
}
