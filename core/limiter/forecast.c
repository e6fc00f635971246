/* forecast - when a limiter will have how many tokens, see limiter.h. */
#include "core/limiter/holding.h"
#include "core/limiter/own.h"

uint64_t limiter_when(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	static const uint64_t most = UINT64_C(1) << 61; /* more, on top of a debt, does not fit */
	uint64_t at_ns = schedule->now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t ahead = 0, own_ns;

		/* If it is nobody's turn, those who wait below are out of tokens of their own. */
		if (limiter->current)
			ahead = limiter->wanted < most ? limiter->wanted : most;

		own_refill(schedule, limiter);
		own_ns = own_when(limiter, ahead + tokens, schedule->now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

uint64_t limiter_when_ahead(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns = own_when(limiter, tokens, now_ns);

		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* When the whole limiter would have @tokens, if nothing of it was taken. */
static uint64_t when_whole(const struct settings *settings, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct bucket bucket;
		uint64_t own_ns;

		bucket_init(&bucket, &limit->rate, limit->burst ? limit->burst : settings->burst,
			    settings->release_interval_ns, now_ns);
		bucket_fill(&bucket);
		own_ns = bucket_when(&bucket, tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Whether this host of a fleet holds nothing of @limiter. */
static bool is_without(const struct limiter *limiter)
{
	const struct holding *holding = limiter->holding;

	return holding && !holding->usable && !holding->reserve_usable;
}

uint64_t limiter_when_leased(struct schedule *schedule, const struct limiter *limiter,
			     uint64_t tokens)
{
	uint64_t at_ns = schedule->now_ns, now_ns = at_ns, ahead = 0;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns;

		ahead = limiter->wanted < TOKENS_MAX ? limiter->wanted : TOKENS_MAX;
		if (is_without(limiter) && limiter->settings->enforcement == ENFORCEMENT_ENFORCE)
			own_ns = when_whole(&limiter->holding->settings, ahead + tokens, now_ns);
		else
			own_ns = own_when(limiter, ahead + tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* The burst of limit @i of @limiter, in a fleet that of all hosts together. */
static uint64_t whole_burst(const struct limiter *limiter, uint32_t i)
{
	const struct holding *holding = limiter->holding;

	if (holding && i < holding->settings.limit_count)
		return settings_burst(&holding->settings, i);
	return limiter->buckets[i].burst;
}

bool limiter_can_hold(const struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < limiter->bucket_count; i++) {
			if (tokens > whole_burst(limiter, i) && tokens > limiter->buckets[i].batch)
				return false;
		}
	}
	return true;
}
