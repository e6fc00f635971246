/*
 * forecast - whether readers wait as long as they were told.
 *
 * `eta` bounds the wait of a reader that asks next, unless something comes after it: other readers,
 * settings, charges, or news of how work went. It is an estimate where several limits on the way up
 * hold the reader up in turn, where tokens are saved up for takes larger than a burst, are released
 * at intervals or are granted as many as there are, where readers take several tokens each of a
 * strict window, and where waiters below lack tokens of their own.
 *
 * `wait_max` and `queue_max` refuse a reader by what is known when it asks, and no other reader.
 */
#include "tests/sim/books/forecast.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>

void forecast_news(struct sim *sim)
{
	sim->news++;
}

/*
 * Tells whether @limiter, which readers of @largest wait for, saves up for none of them. A window
 * that has two tokens left has none for a reader of three, nor for those behind it.
 */
static bool is_plain(const struct limiter *limiter, uint64_t largest)
{
	const struct settings *settings = limiter->settings;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct rate *rate = &settings->limits[i].rate;

		if (largest > settings_burst(settings, i) || rate_is_window(rate) ||
		    (rate_is_strict(rate) && largest > 1))
			return false;
	}
	return !settings->release_interval_ns && !limiter->learning;
}

/* Tells whether all siblings at @place in which readers wait are ready. */
static bool are_ready(const struct place *place)
{
	for (int i = 0; i < ORDER_SIBLINGS_MAX; i++) {
		const struct sibling_check *sibling = place->order.siblings.siblings[i];

		if (sibling && !sibling->ready)
			return false;
	}
	return !place->order.siblings.siblings[ORDER_SIBLINGS_MAX - 1];
}

/* Tells whether `eta` is a bound for a take of @tokens in @place. */
static bool is_bound(const struct place *place, uint64_t tokens)
{
	uint32_t limits = 0;

	for (; place && limits <= 1; place = place->parent) {
		uint64_t waits = place->order.self.largest;

		limits += place->limiter->bucket_count;

		if (place->order.ranges || units_counts(place->limiter) ||
		    !is_plain(place->limiter, tokens > waits ? tokens : waits) || !are_ready(place))
			return false;
	}
	return limits <= 1;
}

void forecast_asks(struct sim *sim, struct reader *reader, uint64_t within_ns)
{
	struct host *host = reader->place->host;

	reader->forecast = (struct forecast){.within_ns = within_ns};
	if (sim->fleet || reader->manner != READ_BLOCKING)
		return;
	reader->forecast.eta_ns = engine_eta(&host->engine, reader->place->limiter, reader->tokens,
					     reader_amounts(reader), sim->now_ns);
	reader->forecast.full = reader->place->queue.length >=
				reader->place->limiter->settings->queue_max;
	reader->forecast.is_bound = !reader->amounts.count &&
				    is_bound(reader->place, reader->tokens);
	reader->forecast.is_known = true;
}

void forecast_waits(struct sim *sim, struct reader *reader)
{
	const struct settings *settings = reader->place->limiter->settings;

	reader->forecast.news = ++sim->news;
	/* A reader that has its place again was let in before. */
	if (!reader->forecast.is_known || reader->absence.thread)
		return;
	if (reader->forecast.full)
		sim_fail(sim, INVARIANT_FORECAST, reader->place,
			 "a reader waits where queue_max readers do");
	if (reader->forecast.eta_ns > settings->wait_max_ns)
		sim_fail(sim, INVARIANT_FORECAST, reader->place,
			 "a reader waits that will wait longer than wait_max");
}

void forecast_refused(struct sim *sim, const struct reader *reader, int err)
{
	const struct forecast *forecast = &reader->forecast;
	const struct limiter *limiter = reader->place->limiter;

	if (!forecast->is_known || err != -EBUSY || forecast->within_ns != NEVER_NS ||
	    forecast->full || forecast->eta_ns > limiter->settings->wait_max_ns)
		return;
	sim_fail(sim, INVARIANT_FORECAST, reader->place,
		 "a reader is refused that wait_max and queue_max let wait");
}

void forecast_granted(struct sim *sim, const struct reader *reader)
{
	const struct forecast *forecast = &reader->forecast;
	uint64_t waited_ns = sim->now_ns - reader->since_ns;
	char why[WHY_TEXT];

	if (!forecast->is_bound || forecast->news != sim->news || waited_ns <= forecast->eta_ns)
		return;
	snprintf(why, sizeof(why),
		 "reader %llu was told that it waits %llu ns, and waits %llu; nothing came since",
		 (unsigned long long)reader->check.number, (unsigned long long)forecast->eta_ns,
		 (unsigned long long)waited_ns);
	sim_fail(sim, INVARIANT_FORECAST, reader->place, why);
}
