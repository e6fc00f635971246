/* learning - what a limiter has learnt from feedback, see learning.h. */
#include "core/limiter/learning.h"
#include "core/limiter/holding.h"
#include "core/limiter/saving.h"
#include "core/limiter/shape.h"

#include <math.h>
#include <stdlib.h>

static const double MICRO = 1e-6; /* learnt rates are rounded to millionths of a token a second */
static const double RATE_MOST = 1e11;

struct learning *learning_new(uint64_t seed)
{
	struct learning *learning = calloc(1, sizeof(*learning));

	if (!learning)
		return NULL;
	/* xorshift needs a state that is not 0. */
	learning->pause.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	learning->adapted.rate = (double)INFINITY;
	return learning;
}

void learning_free(struct learning *learning)
{
	if (learning)
		free(learning->units);
	free(learning);
}

bool learning_get_units(struct learning *learning)
{
	if (!learning->units)
		learning->units = calloc(1, sizeof(*learning->units));
	return learning->units;
}

bool learning_is_needed(const struct settings *settings)
{
	return settings->adapt.kind != ADAPT_NONE || settings->backoff.kind != BACKOFF_NONE;
}

static struct adapt_work work_of(const struct limiter *limiter)
{
	const uint64_t *counters = limiter->counters;

	return (struct adapt_work){
		.tokens = counters[COUNTER_GRANTED] + counters[COUNTER_CHARGED] -
			  counters[COUNTER_RETURNED],
		.served = counters[COUNTER_SERVED],
		.outcomes = counters[COUNTER_OK] + counters[COUNTER_THROTTLED] +
			    counters[COUNTER_ERROR],
		.throttled = counters[COUNTER_THROTTLED],
	};
}

static double least_rate(const struct limit *limits, uint32_t count)
{
	double least = (double)INFINITY;

	for (uint32_t i = 0; i < count; i++)
		least = fmin(least, rate_per_second(&limits[i].rate));
	return least;
}

/* Returns the time without pauses: they say nothing of the rate. */
static uint64_t working_ns(const struct learning *learning, uint64_t now_ns)
{
	uint64_t until_ns = learning->pause.until_ns;
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;

	return now_ns - (learning->pause.paused_ns - left_ns);
}

/* Returns the limiter's own rate over all hosts, and the part of it that this host may use. */
static double full_rate(const struct limiter *limiter, double *share)
{
	const struct settings *settings = limiter_settings(limiter);
	double full, own = (double)INFINITY;

	*share = 1;
	full = least_rate(settings->limits, settings_plain_count(settings));
	for (unsigned int i = 0; i < limiter->plain_count; i++)
		own = fmin(own, fraction_per_second(&limiter->buckets[i].flow));
	if (limiter->holding && !isinf(full) && full > 0 && own > 0)
		*share = fmin(own / full, 1);
	return full;
}

/* Gives the bucket the rate that was learnt. */
static void follow_rate(const struct schedule *schedule, struct limiter *limiter, double share)
{
	const struct settings *settings = limiter->settings;
	struct learning *learning = limiter->learning;
	double rate = learning->adapted.rate * share;
	struct rate written = {.period_ns = NSEC_PER_SEC};
	uint64_t burst = settings->burst ? settings->burst : 1;
	bool was = learning->limited;
	u128 num;

	learning->limited = rate < RATE_MOST;
	if (!learning->limited)
		return;
	/* 10^15 parts a nanosecond fit a rate. */
	num = (u128)llround(fmax(rate, MICRO) / MICRO);
	if (rate_from_fraction(num, (u128)NSEC_PER_SEC * 1000000, 1, &written))
		written = (struct rate){.amount = (uint64_t)ceil(rate), .period_ns = NSEC_PER_SEC};
	for (unsigned int i = 0; i < limiter->plain_count; i++) {
		if (settings->limits[i].burst && !rate_is_window(&settings->limits[i].rate) &&
		    limiter->buckets[i].burst > burst)
			burst = limiter->buckets[i].burst;
	}
	if (was) {
		bucket_retune(&learning->bucket, &written, burst, settings->release_interval_ns,
			      schedule->now_ns);
		return;
	}
	/* It begins empty: tokens saved up so far came at a rate that the service does not give. */
	bucket_init(&learning->bucket, &written, burst, settings->release_interval_ns,
		    schedule->now_ns);
	if (limiter->plain_count && !bucket_is_window(&limiter->buckets[0]))
		learning->bucket.grid_ns = limiter->buckets[0].grid_ns;
	if (limiter->turns.current)
		bucket_await(&learning->bucket, limiter->turns.current->tokens);
}

/* Keeps the learnt rate above `min`; where it reaches the limiter's own there is none. */
static void bound_rate(const struct limiter *limiter, double full)
{
	const struct adapt *adapt = &limiter->settings->adapt;
	struct adapt_state *state = &limiter->learning->adapted;

	if (adapt->kind != ADAPT_NONE)
		state->rate = fmax(state->rate, rate_per_second(&adapt->min));
	if (state->rate >= full)
		state->rate = (double)INFINITY;
}

/* Tells whether hosts share what the service behind @limiter allows. */
static bool is_shared(const struct limiter *limiter)
{
	return limiter->holding && holding_needs_leases(limiter->holding);
}

/* Has the allowances follow the settings of @limiter. */
static void share_allowances(struct limiter *limiter)
{
	uint32_t whole = is_shared(limiter) ? holding_leaves(limiter->holding->settings) : 0;

	allowances_set_whole(&limiter->learning->allowances, whole);
	unit_quotas_each(limiter->learning->units, allowances_set_whole, whole);
}

void learning_share(struct limiter *limiter)
{
	share_allowances(limiter);
	if (is_shared(limiter))
		learning_bound(limiter, limiter->holding->held);
}

void learning_gain(struct limiter *limiter, uint32_t leaves)
{
	if (!limiter->learning)
		return;
	allowances_gain(&limiter->learning->allowances, leaves);
	unit_quotas_each(limiter->learning->units, allowances_gain, leaves);
}

void learning_lose(struct limiter *limiter, uint32_t leaves)
{
	if (!limiter->learning)
		return;
	allowances_lose(&limiter->learning->allowances, leaves);
	unit_quotas_each(limiter->learning->units, allowances_lose, leaves);
}

void learning_bound(struct limiter *limiter, uint32_t leaves)
{
	if (!limiter->learning)
		return;
	allowances_bound(&limiter->learning->allowances, leaves);
	unit_quotas_each(limiter->learning->units, allowances_bound, leaves);
}

uint32_t learning_spare(const struct schedule *schedule, struct limiter *limiter)
{
	struct learning *learning = limiter->learning;
	uint32_t spare;

	if (!learning || limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
		return UINT32_MAX;
	learning_refill(schedule, limiter);
	spare = allowances_spare(&learning->allowances);
	for (uint32_t i = 0; learning->units && i < learning->units->count; i++) {
		uint32_t of = allowances_spare(&learning->units->of[i].allowances);

		spare = of < spare ? of : spare;
	}
	return spare;
}

void learning_configure(const struct schedule *schedule, struct limiter *limiter)
{
	const struct settings *settings = limiter->settings;
	struct learning *learning = limiter->learning;
	struct adapt_work work;
	double share, full;

	if (!learning)
		return;
	if (learning->kind != settings->adapt.kind) {
		work = work_of(limiter);
		adapt_init(&learning->adapted, &work, schedule->now_ns);
		learning->adapted.then_ns = working_ns(learning, schedule->now_ns);
		learning->proposes = false;
		learning->lowered = false;
	}
	learning->kind = settings->adapt.kind;
	backoff_retune(&learning->pause, &settings->backoff, schedule->now_ns);
	unit_quotas_follow(learning->units, limiter_settings(limiter));
	share_allowances(limiter);
	full = full_rate(limiter, &share);
	bound_rate(limiter, full);
	follow_rate(schedule, limiter, share);
}

/* Tells whether a reader waits for nothing but the learnt rate. */
static bool is_starved(const struct limiter *limiter)
{
	uint64_t needed;

	if (!limiter->turns.current)
		return false;
	needed = saving_needed(limiter, limiter->turns.current->tokens);
	if (bucket_has(&limiter->learning->bucket, needed))
		return false;
	for (unsigned int i = 0; i < limiter->plain_count; i++) {
		if (!bucket_has(&limiter->buckets[i], needed))
			return false;
	}
	return true;
}

void learning_refill(const struct schedule *schedule, struct limiter *limiter)
{
	struct learning *learning = limiter->learning;

	if (learning->limited)
		bucket_refill(&learning->bucket, schedule->now_ns);
	allowances_run(&learning->allowances, schedule->now_ns);
	unit_quotas_run(learning->units, schedule->now_ns);
	learning->now_ns = schedule->now_ns;
}

void learning_run(const struct schedule *schedule, struct limiter *limiter)
{
	const struct adapt *adapt = &limiter->settings->adapt;
	struct learning *learning = limiter->learning;
	struct adapt_state *state = &learning->adapted;
	uint64_t now_ns = schedule->now_ns;
	struct adapt_state before;
	bool grows;
	struct adapt_work work;
	double share, full;

	learning_refill(schedule, limiter);
	if (adapt->kind == ADAPT_NONE)
		return;
	grows = now_ns >= adapt_next_ns(state, adapt, learning->shared);
	if (!grows && !adapt_measures(state, working_ns(learning, now_ns)))
		return;
	work = work_of(limiter);
	full = full_rate(limiter, &share);
	adapt_measure(state, &work, share, working_ns(learning, now_ns));
	if (!grows)
		return;
	before = *state;
	if (!adapt_grow(state, adapt, &work, share, full, is_starved(limiter), now_ns))
		return;
	if (!learning->shared) {
		follow_rate(schedule, limiter, share);
		return;
	}
	learning->proposal = *state;
	learning->proposes = true;
	state->rate = before.rate;
}

void learning_adopt(const struct schedule *schedule, struct limiter *limiter,
		    const struct adapt_state *other)
{
	struct adapt_work work = work_of(limiter);
	double share, full = full_rate(limiter, &share);

	adapt_adopt(&limiter->learning->adapted, other, &work, schedule->now_ns);
	bound_rate(limiter, full);
	follow_rate(schedule, limiter, share);
}

void learning_restore(const struct schedule *schedule, struct limiter *limiter,
		      const struct adapt_state *adapted, const struct backoff_state *pause)
{
	struct learning *learning = limiter->learning;
	double share, full = full_rate(limiter, &share);

	learning->pause = *pause;
	backoff_retune(&learning->pause, &limiter->settings->backoff, schedule->now_ns);
	if (limiter->settings->adapt.kind != ADAPT_NONE)
		learning->adapted = *adapted;
	bound_rate(limiter, full);
	follow_rate(schedule, limiter, share);
}

void learning_hear(const struct schedule *schedule, struct limiter *limiter,
		   const struct outcome *outcome)
{
	static const enum counter counters[OUTCOME_COUNT] = {
		[OUTCOME_OK] = COUNTER_OK,
		[OUTCOME_THROTTLED] = COUNTER_THROTTLED,
		[OUTCOME_ERROR] = COUNTER_ERROR,
	};
	const struct settings *settings = limiter->settings;
	struct learning *learning = limiter->learning;
	uint64_t now_ns = schedule->now_ns;
	struct adapt_work work;
	double share, full;

	if (outcome->kind == OUTCOME_NONE)
		return;
	limiter->counters[counters[outcome->kind]] += outcome->count;
	if (!learning || outcome->kind == OUTCOME_ERROR)
		return;
	learning_run(schedule, limiter);
	if (settings->backoff.kind != BACKOFF_NONE) {
		if (outcome->kind == OUTCOME_THROTTLED)
			backoff_throttled(&learning->pause, &settings->backoff, outcome->count,
					  outcome->retry_after_ns, now_ns);
		else
			backoff_succeeded(&learning->pause, &settings->backoff, outcome->count,
					  now_ns);
	}
	if (settings->adapt.kind == ADAPT_NONE || outcome->kind != OUTCOME_THROTTLED)
		return;
	work = work_of(limiter);
	full = full_rate(limiter, &share);
	adapt_measure(&learning->adapted, &work, share, working_ns(learning, now_ns));
	if (!adapt_throttled(&learning->adapted, &settings->adapt, full, learning->shared, now_ns))
		return;
	learning->lowered = true;
	learning->proposes = false;
	learning->adapted.looked = work;
	follow_rate(schedule, limiter, share);
}

/* Learns the rate that the service said it gives, if `adapt` learns and that is lower. */
static void learn_limit(const struct schedule *schedule, struct limiter *limiter)
{
	struct learning *learning = limiter->learning;
	struct adapt_work work;
	double share, full;

	if (limiter->settings->adapt.kind == ADAPT_NONE)
		return;
	full = full_rate(limiter, &share);
	work = work_of(limiter);
	if (!adapt_told(&learning->adapted, &limiter->settings->adapt, learning->told_limit, full,
			&work, schedule->now_ns))
		return;
	learning->lowered = true;
	learning->proposes = false;
	follow_rate(schedule, limiter, share);
}

void learning_hear_quota(const struct schedule *schedule, struct limiter *limiter,
			 const struct outcome *outcome)
{
	struct learning *learning = limiter->learning;
	struct unit_quota *unit = NULL;
	struct allowances *allowances;

	learning_run(schedule, limiter);
	learning->told = true;
	if (*outcome->unit)
		unit = unit_quotas_get(learning->units, outcome->unit);
	share_allowances(limiter);
	if (outcome->has_limit)
		*(unit ? &unit->told_limit : &learning->told_limit) =
			(double)outcome->limit /
			((double)outcome->window_ns / (double)NSEC_PER_SEC);
	if (outcome->has_limit && !unit)
		learn_limit(schedule, limiter);
	if (!outcome->has_remaining)
		return;
	allowances = unit ? &unit->allowances : &learning->allowances;
	if (outcome->remaining == UINT64_MAX) {
		allowances->count = 0;
		allowances->voided = is_shared(limiter);
	} else if (outcome->reset_ns) {
		allowances_add(allowances, outcome->remaining, schedule->now_ns + outcome->reset_ns,
			       is_shared(limiter) ? limiter->holding->held : 0, ALLOWANCE_UNTOLD);
	}
}

struct allowances *learning_allowances(struct learning *learning, const char unit[UNIT_TEXT])
{
	struct unit_quota *quota;

	if (!*unit)
		return &learning->allowances;
	quota = unit_quotas_find(learning->units, unit);
	return quota ? &quota->allowances : NULL;
}

bool learning_allow(const struct schedule *schedule, struct limiter *limiter,
		    const char unit[UNIT_TEXT], uint64_t tokens, uint64_t until_ns, uint32_t part,
		    uint64_t id)
{
	struct learning *learning = limiter->learning;

	if (*unit && !settings_have_unit(limiter_settings(limiter), unit))
		return true;
	if (*unit && !learning_get_units(learning))
		return false;
	learning_run(schedule, limiter);
	if (*unit)
		(void)unit_quotas_get(learning->units, unit);
	share_allowances(limiter);
	learning->told = true;
	allowances_add(learning_allowances(learning, unit), tokens, until_ns, part, id);
	return true;
}

bool learning_allows(const struct learning *learning, uint64_t tokens, uint64_t now_ns)
{
	return learning->pause.until_ns <= now_ns && allowances_have(&learning->allowances, tokens);
}

uint64_t learning_when(const struct learning *learning, uint64_t tokens)
{
	uint64_t at_ns = allowances_when(&learning->allowances, tokens);

	return at_ns > learning->pause.until_ns ? at_ns : learning->pause.until_ns;
}

uint64_t learning_next_ns(const struct limiter *limiter)
{
	const struct learning *learning = limiter->learning;

	if (!learning->limited)
		return NEVER_NS;
	return adapt_next_ns(&learning->adapted, &limiter->settings->adapt, learning->shared);
}

double learning_rate(const struct limiter *limiter)
{
	if (!limiter->learning || !limiter->learning->limited)
		return (double)INFINITY;
	return fraction_per_second(&limiter->learning->bucket.flow);
}
