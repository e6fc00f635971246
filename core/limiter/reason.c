/* reason - the causes of a wait, see reason.h. */
#include "core/limiter/reason.h"
#include "core/limiter/forecast.h"
#include "core/limiter/holding.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/slots.h"

/* The reasons as they are found on the way up. */
struct search {
	struct reason *reasons;
	size_t count;
	uint64_t now_ns;
	const struct limiter *below; /* the limiter that the reader comes by; NULL: it waits here */
};

static void add_reason(struct search *search, const struct reason *reason)
{
	if (search->count < REASONS_MAX)
		search->reasons[search->count++] = *reason;
}

/* Returns the child, key or partition of @limiter in which @waiter waits; NULL: its own queue. */
static const struct limiter *sibling_of(const struct limiter *limiter, const struct waiter *waiter)
{
	const struct limiter *at = waiter->limiter;

	if (at == limiter)
		return NULL;
	while (at->parent != limiter)
		at = at->parent;
	return at;
}

/* Adds the sibling that comes first at @limiter by @turns, if one comes before @own. */
static void add_order(struct search *search, const struct limiter *limiter,
		      const struct turns *turns, const struct sibling *own, enum reason_kind kind)
{
	struct reason reason = {.kind = kind, .limiter = limiter, .behind = search->below};
	const struct waiter *first;

	if (!turns->order)
		return;
	first = order_before(turns->order, own, search->now_ns, &reason.cause);
	if (!first)
		return;
	reason.first = sibling_of(limiter, first);
	add_reason(search, &reason);
}

/*
 * Returns how many of @tokens are still to flow into @bucket, which lacks some. The debt of a
 * window of the calendar ends with it.
 */
static uint64_t count_missing(const struct bucket *bucket, uint64_t tokens)
{
	bool has_ending_debt = bucket->level < 0 && bucket_is_window(bucket);
	i128 missing = (i128)tokens - (has_ending_debt ? 0 : bucket->level);

	return missing > 0 ? (uint64_t)missing
			   : 1; /* with an interval they may only be held back */
}

/* Makes @reason the limit with a unit that @current, which has the turn, waits for longest. */
static void note_units(const struct search *search, const struct limiter *limiter,
		       const struct waiter *current, struct reason *reason)
{
	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		const struct bucket *bucket = &limiter->buckets[i];
		uint64_t tokens = amounts_of(current->amounts, limiter->settings->limits[i].unit);
		uint64_t at_ns = bucket_when(bucket, tokens, search->now_ns);
		uint64_t wait_ns = at_ns == NEVER_NS ? NEVER_NS : at_ns - search->now_ns;

		if (!tokens || wait_ns <= reason->wait_ns)
			continue;
		*reason = (struct reason){.kind = REASON_RATE,
					  .limiter = limiter,
					  .limit = i,
					  .reset_ns = window_reset_ns(bucket),
					  .wait_ns = wait_ns,
					  .tokens = count_missing(bucket, tokens)};
	}
}

/* Adds the limit of @limiter that takes longest until it has @tokens. */
static void add_rate(struct search *search, const struct limiter *limiter, uint64_t tokens)
{
	struct reason reason = {.kind = REASON_RATE, .limiter = limiter};
	const struct waiter *current = limiter->turns.current;
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
		uint64_t at_ns = bucket_when(bucket, tokens, search->now_ns);
		uint64_t wait_ns = at_ns == NEVER_NS ? NEVER_NS : at_ns - search->now_ns;

		if (wait_ns <= reason.wait_ns)
			continue;
		reason.kind = i < limiter->plain_count ? REASON_RATE : REASON_LEARNT;
		reason.limit = i;
		reason.reset_ns = window_reset_ns(bucket);
		reason.wait_ns = wait_ns;
		reason.tokens = count_missing(bucket, tokens);
	}
	if (current && current->amounts)
		note_units(search, limiter, current, &reason);
	if (reason.wait_ns)
		add_reason(search, &reason);
}

/* Adds what @allowances of @unit allow, if that is less than @tokens. */
static void add_allowed(struct search *search, const struct limiter *limiter,
			const struct allowances *allowances, const char *unit, uint64_t tokens)
{
	uint64_t at_ns = allowances_when(allowances, tokens);
	struct reason reason = {.kind = REASON_QUOTA, .limiter = limiter, .unit = unit};
	int64_t left;

	if (at_ns <= search->now_ns)
		return;
	left = allowances_least(allowances)->left;
	reason.tokens = left < 0 ? 0 : (uint64_t)left;
	reason.wait_ns = at_ns - search->now_ns;
	add_reason(search, &reason);
}

/* Adds what the service behind @limiter allows less of than @tokens, or than a waiter needs. */
static void add_quota(struct search *search, const struct limiter *limiter, uint64_t tokens)
{
	const struct unit_quotas *units = limiter->learning->units;
	const struct waiter *current = limiter->turns.current;

	add_allowed(search, limiter, &limiter->learning->allowances, "", tokens);
	if (!units || !current || !current->amounts)
		return;
	for (uint32_t i = 0; i < units->count; i++) {
		const struct unit_quota *quota = &units->of[i];

		if (amounts_name(current->amounts, quota->unit))
			add_allowed(search, limiter, &quota->allowances, quota->unit,
				    amounts_of(current->amounts, quota->unit));
	}
}

/*
 * Returns how long @reason keeps a reader waiting: siblings with a min or a higher class do for as
 * long as readers come there, those of its class have their part beside it.
 */
static uint64_t length_of(const struct reason *reason)
{
	if (reason->kind == REASON_UNLEASED)
		return NEVER_NS;
	if (reason->kind == REASON_ORDER)
		return reason->cause == ORDER_BY_WEIGHT ? 0 : NEVER_NS;
	return reason->wait_ns;
}

/* Puts those reasons first that keep a reader waiting for longest, from the one at @begin on. */
static void sort_reasons(struct search *search, size_t begin)
{
	for (size_t i = begin + 1; i < search->count; i++) {
		struct reason reason = search->reasons[i];
		size_t at = i;

		for (; at > begin && length_of(&search->reasons[at - 1]) < length_of(&reason); at--)
			search->reasons[at] = search->reasons[at - 1];
		search->reasons[at] = reason;
	}
}

/* Adds what keeps @tokens from being granted in @limiter. */
static void add_of_tokens(struct search *search, const struct limiter *limiter, uint64_t tokens)
{
	const struct holding *holding = limiter->holding;
	const struct learning *learning = limiter->learning;
	const struct turns *turns = &limiter->turns;
	size_t before = search->count;

	if (holding && holding_is_without(holding) && holding_needs_leases(holding))
		add_reason(search, &(struct reason){.kind = REASON_UNLEASED, .limiter = limiter});
	else
		add_rate(search, limiter, tokens);
	if (learning && learning->pause.until_ns > search->now_ns)
		add_reason(search,
			   &(struct reason){.kind = REASON_PAUSE,
					    .limiter = limiter,
					    .wait_ns = learning->pause.until_ns - search->now_ns});
	if (learning)
		add_quota(search, limiter, tokens);
	if (search->count > before && turns->current && turns->order)
		add_order(search, limiter, turns,
			  search->below ? search->below->turns.sibling : &turns->order->own,
			  REASON_ORDER);
	sort_reasons(search, before);
}

/* Adds what keeps slots from being opened in @limiter. */
static void add_of_slots(struct search *search, const struct limiter *limiter)
{
	const struct slots *slots = limiter->slots;
	const struct holding *holding = limiter->holding;
	const struct sibling *own = NULL;

	if (!slots || slots->used < slots_limit(limiter))
		return;
	if (holding && holding_is_without(holding) && holding_needs_leases(holding))
		return; /* which is the reason */
	add_reason(search, &(struct reason){.kind = REASON_SLOTS, .limiter = limiter});
	if (!search->below && slots->turns.order)
		own = &slots->turns.order->own;
	else if (search->below && search->below->slots)
		own = &search->below->slots->sibling;
	if (own && slots->turns.current)
		add_order(search, limiter, &slots->turns, own, REASON_SLOT_ORDER);
}

size_t reason_list(const struct schedule *schedule, const struct limiter *limiter,
		   struct reason reasons[REASONS_MAX])
{
	struct search search = {.reasons = reasons, .now_ns = schedule->now_ns};
	uint64_t needs[REASONS_MAX];
	size_t levels = forecast_needs(limiter, 1, needs, REASONS_MAX, schedule->now_ns);

	for (size_t i = 0; i < levels; i++, search.below = limiter, limiter = limiter->parent) {
		switch (limiter->settings->enforcement) {
		case ENFORCEMENT_CLOSED:
			add_reason(&search, &(struct reason){.kind = REASON_CLOSED,
							     .limiter = limiter,
							     .wait_ns = NEVER_NS});
			break;
		case ENFORCEMENT_ENFORCE:
			add_of_tokens(&search, limiter, needs[i]);
			add_of_slots(&search, limiter);
			break;
		case ENFORCEMENT_SHADOW:
		case ENFORCEMENT_OPEN:
		case ENFORCEMENT_COUNT:
			break;
		}
	}
	return search.count;
}
