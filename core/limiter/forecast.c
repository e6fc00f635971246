/* forecast - when waiters have their tokens, see forecast.h. */
#include "core/limiter/forecast.h"
#include "core/limiter/holding.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/saving.h"

/* More than ever wait in one limiter; on top of a debt it fits a level. */
#define TOKENS_MOST (UINT64_C(1) << 61)

/* Returns how many tokens @limiter can grant until @at_ns, at most. */
static uint64_t flow_until(const struct limiter *limiter, uint64_t at_ns)
{
	const struct bucket *bucket;
	uint64_t least = TOKENS_MOST;

	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++)
		least = bucket_most_until(bucket, at_ns, least);
	if (limiter->learning)
		least = allowances_until(&limiter->learning->allowances, at_ns, least);
	return least;
}

/* A waiter whose time is to be told. */
struct forecast {
	uint64_t asked;	 /* tokens in its queue: of it, and of the waiters before it */
	uint64_t tokens; /* of it */
	const struct amounts *amounts; /* of it; or NULL */
	bool is_listed;		       /* @amounts has those of waiters before it, too */
	uint64_t now_ns;	       /* all limiters on its path are refilled */
	uint64_t until_ns; /* it is granted then at the latest, if the forecast is no later */
	bool is_leased;	   /* as if this host had all of each limiter of which it holds nothing */
};

/*
 * Returns how many tokens @limiter grants until the waiter of @forecast has its own. @asked of them
 * are below the child that has @below, which puts it forward at @at_ns; NULL: it waits here.
 */
static uint64_t granted_until(const struct limiter *limiter, const struct turns *below,
			      uint64_t asked, uint64_t at_ns, const struct forecast *forecast)
{
	const struct turns *turns = &limiter->turns;
	const struct order *order = turns->order;
	struct prospect prospect = {
		.asked = asked,
		.tokens = forecast->tokens,
		.flow = at_ns > forecast->now_ns ? flow_until(limiter, at_ns) : 0,
		.now_ns = forecast->now_ns,
		.until_ns = forecast->until_ns,
	};

	if (!order)
		return asked < TOKENS_MOST ? asked : TOKENS_MOST;
	prospect.sibling = below ? below->sibling : &order->own;
	prospect.wanted = below ? below->wanted : order->own_wanted;
	prospect.waits = below ? turns_demand(below) : turns->queue.length;
	return order_ahead(order, &prospect);
}

/* Tells whether this host of a fleet holds nothing of @limiter. */
static bool is_without(const struct limiter *limiter)
{
	return limiter->holding && holding_is_without(limiter->holding);
}

/* Returns when the whole limiter would have @tokens, and @amounts, if none were taken. */
static uint64_t when_whole(const struct settings *settings, uint64_t tokens,
			   const struct amounts *amounts, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct bucket bucket;
		uint64_t own_ns, own = *limit->unit ? amounts_of(amounts, limit->unit) : tokens;

		if (rate_is_window(&limit->rate)) {
			const struct window_share all = {limit->burst, 0, 1, 0};

			window_init(&bucket, pool_window(settings, i), &all, now_ns);
			bucket_fill(&bucket);
			bucket_refill(&bucket, now_ns);
			own_ns = bucket_when(&bucket, tokens, now_ns);
			at_ns = own_ns > at_ns ? own_ns : at_ns;
			continue;
		}
		bucket_init(&bucket, &limit->rate, limit->burst ? limit->burst : settings->burst,
			    settings->release_interval_ns, now_ns);
		bucket_fill(&bucket);
		own_ns = bucket_when(&bucket, own, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Returns when a waiter in @limiter has its tokens, if @forecast holds of it. */
static uint64_t when_granted(const struct limiter *limiter, const struct forecast *forecast)
{
	const struct limiter *waits_in = limiter;
	const struct turns *below = NULL;
	uint64_t at_ns = forecast->now_ns, asked = forecast->asked;

	for (; limiter; below = &limiter->turns, limiter = limiter->parent) {
		bool is_lent = forecast->is_leased && is_without(limiter) &&
			       limiter->settings->enforcement == ENFORCEMENT_ENFORCE;
		uint64_t own_ns, needed;

		/* While it is no waiter's turn, the waiters below lack tokens of their own. */
		if (limiter->turns.current || forecast->is_leased)
			asked = granted_until(limiter, below, asked, at_ns, forecast);
		/* Waiters that come before it have no tokens that are kept for another one. */
		needed = turns_may_pass(&limiter->turns, below, forecast->now_ns)
				 ? saving_needed_by(limiter, waits_in, asked, forecast->now_ns)
				 : saving_needed(limiter, asked);
		own_ns = is_lent ? when_whole(limiter->holding->settings, asked, forecast->amounts,
					      forecast->now_ns)
				 : limiter_own_when(limiter, needed, forecast->now_ns);
		if (is_lent && limiter->learning && limiter->learning->pause.until_ns > own_ns)
			own_ns = limiter->learning->pause.until_ns;
		at_ns = own_ns > at_ns ? own_ns : at_ns;
		if (is_lent || !units_counts(limiter) ||
		    limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		own_ns = units_forecast(
			limiter, forecast->amounts,
			!forecast->is_listed && (limiter == waits_in || limiter->turns.current),
			saving_holds_from(limiter, waits_in, forecast->now_ns), forecast->now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Tells whether siblings with a min may come before a waiter of @limiter. */
static bool are_minima_wanted(const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		if (limiter->turns.order && limiter->turns.order->guaranteed_wanted)
			return true;
	}
	return false;
}

/*
 * Returns when a waiter in @limiter has its tokens, as @forecast says. Minima bring the more tokens
 * to siblings the longer it waits: it searches for a time at which the forecast holds, so the
 * waiter has its tokens at that time at the latest.
 */
static uint64_t foresee(const struct limiter *limiter, struct forecast forecast)
{
	uint64_t early_ns = forecast.now_ns, late_ns, step_ns = 1;

	forecast.until_ns = NEVER_NS;
	if (!limiter_can_ever(limiter, forecast.tokens,
			      forecast.is_listed ? NULL : forecast.amounts))
		return NEVER_NS;
	if (!are_minima_wanted(limiter))
		return when_granted(limiter, &forecast);
	for (late_ns = early_ns;; late_ns += step_ns) {
		uint64_t at_ns;

		forecast.until_ns = late_ns;
		at_ns = when_granted(limiter, &forecast);
		if (at_ns <= late_ns || at_ns - forecast.now_ns > DURATION_MAX_NS)
			break;
		early_ns = late_ns;
		step_ns = at_ns - late_ns > 2 * step_ns ? at_ns - late_ns : 2 * step_ns;
	}
	for (uint64_t span_ns = late_ns - early_ns; span_ns > NSEC_PER_SEC / 1000; span_ns /= 2) {
		forecast.until_ns = early_ns + (late_ns - early_ns) / 2;
		if (when_granted(limiter, &forecast) <= forecast.until_ns)
			late_ns = forecast.until_ns;
		else
			early_ns = forecast.until_ns;
	}
	forecast.until_ns = late_ns;
	return when_granted(limiter, &forecast);
}

/* Returns the forecast for a waiter for @tokens that came to @limiter now. */
static struct forecast forecast_for(const struct limiter *limiter, uint64_t tokens,
				    const struct amounts *amounts, uint64_t now_ns)
{
	const struct turns *turns = &limiter->turns;
	uint64_t wanted = turns->order ? turns->order->own_wanted : turns->wanted;

	return (struct forecast){.asked = wanted < TOKENS_MOST ? wanted + tokens : TOKENS_MOST,
				 .tokens = tokens,
				 .amounts = amounts,
				 .now_ns = now_ns};
}

uint64_t forecast_newcomer(const struct limiter *limiter, uint64_t tokens,
			   const struct amounts *amounts, uint64_t now_ns)
{
	return foresee(limiter, forecast_for(limiter, tokens, amounts, now_ns));
}

uint64_t forecast_waiter(const struct limiter *limiter, uint64_t asked, uint64_t tokens,
			 const struct amounts *amounts, uint64_t now_ns)
{
	return foresee(limiter,
		       (struct forecast){.asked = asked < TOKENS_MOST ? asked : TOKENS_MOST,
					 .tokens = tokens,
					 .amounts = amounts,
					 .is_listed = true,
					 .now_ns = now_ns});
}

size_t forecast_needs(const struct limiter *limiter, uint64_t tokens, uint64_t needs[], size_t most,
		      uint64_t now_ns)
{
	struct forecast forecast = forecast_for(limiter, tokens, NULL, now_ns);
	const struct limiter *waits_in = limiter;
	const struct turns *below = NULL;
	uint64_t asked = forecast.asked;
	size_t count = 0;

	forecast.until_ns = foresee(limiter, forecast);
	for (; limiter && count < most; below = &limiter->turns, limiter = limiter->parent) {
		if (limiter->turns.current)
			asked = granted_until(limiter, below, asked, now_ns, &forecast);
		needs[count++] = saving_needed_by(limiter, waits_in, asked, now_ns);
	}
	return count;
}

uint64_t forecast_leased(const struct limiter *limiter, uint64_t tokens,
			 const struct amounts *amounts, uint64_t now_ns)
{
	struct forecast forecast = forecast_for(limiter, tokens, amounts, now_ns);

	forecast.is_leased = true;
	return foresee(limiter, forecast);
}
