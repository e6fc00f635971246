/* units - the limits of a limiter that have a unit by name, see units.h. */
#include "core/limiter/units.h"
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/partition.h"
#include "core/limiter/saving.h"

/* As in forecast.c: on top of a debt it fits a level. */
#define WANTED_MOST (UINT64_C(1) << 61)

bool units_are_in(const struct settings *settings)
{
	return settings_plain_count(settings) < settings->limit_count;
}

size_t units_bytes(const struct settings *settings)
{
	return units_are_in(settings) ? sizeof(struct unit_buckets)
				      : settings->limit_count * sizeof(struct bucket);
}

/* Tells whether two limits are of one unit, and both of windows of the calendar or neither. */
static bool is_alike(const struct limit *a, const struct limit *b)
{
	return amount_is_of(a->unit, b->unit) &&
	       rate_is_window(&a->rate) == rate_is_window(&b->rate);
}

uint32_t units_before(const struct settings *old, uint32_t count, const struct settings *settings,
		      uint32_t i)
{
	const struct limit *limit = &settings->limits[i];
	uint32_t same = 0;

	for (uint32_t j = 0; j < i; j++)
		same += is_alike(&settings->limits[j], limit);
	for (uint32_t j = 0; j < count; j++) {
		if (is_alike(&old->limits[j], limit) && !same--)
			return j;
	}
	return count;
}

static const char *unit_of(const struct limiter *limiter, uint32_t i)
{
	return limiter->settings->limits[i].unit;
}

/* Counts the amounts that waiters in the queue of @limiter want, in @units of @above. */
static void count_queue(const struct limiter *above, const struct limiter *limiter)
{
	struct heap_node *turn = limiter->turns.queue.returned.root;

	for (uint32_t i = above->plain_count; i < above->bucket_count; i++) {
		uint64_t *wanted = &units_counts(above)->of[i].wanted;

		for (const struct waiter *w =
			     list_first(&limiter->turns.queue.once, struct waiter, once);
		     w; w = list_next(w, once))
			*wanted += amounts_of(w->amounts, unit_of(above, i));
		for (struct heap_node *t = turn; t; t = heap_next(t))
			*wanted += amounts_of(waiter_of_turn(t)->amounts, unit_of(above, i));
	}
}

static void count_below(const struct limiter *above, const struct limiter *limiter)
{
	const struct limiter *partition;

	count_queue(above, limiter);
	for (uint32_t i = 0; (partition = partition_next(limiter, &i));)
		count_queue(above, partition);
	for (struct limiter *key = NULL; (key = keys_next_waiting(limiter, key));)
		count_queue(above, key);
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		if (l->turns.waiting)
			count_below(above, l);
	}
}

void units_recount(struct limiter *limiter)
{
	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++)
		units_counts(limiter)->of[i].wanted = 0;
	if (limiter->turns.waiting)
		count_below(limiter, limiter);
}

bool units_know(const struct limiter *limiter, bool of_key, const char unit[UNIT_TEXT])
{
	const struct settings *settings = limiter_settings(limiter);

	for (uint32_t i = 0; of_key && i < settings->key_unit_count; i++) {
		if (amount_is_of(settings_key_units(settings)[i].unit, unit))
			return true;
	}
	for (; limiter; limiter = limiter->parent) {
		if (settings_have_unit(limiter_settings(limiter), unit))
			return true;
	}
	return false;
}

/* Tells whether @amounts name the unit of limit @i of @limiter, and in *@tokens how many. */
static bool is_named(const struct limiter *limiter, uint32_t i, const struct amounts *amounts,
		     uint64_t *tokens)
{
	if (!amounts_name(amounts, unit_of(limiter, i)))
		return false;
	*tokens = amounts_of(amounts, unit_of(limiter, i));
	return true;
}

/* Returns what the service still allows of the unit of limit @i; NULL: it said nothing. */
static const struct allowances *allowed_of(const struct limiter *limiter, uint32_t i)
{
	const struct unit_quota *quota =
		limiter->learning ? unit_quotas_find(limiter->learning->units, unit_of(limiter, i))
				  : NULL;

	return quota ? &quota->allowances : NULL;
}

/* Tells whether limit @i has @tokens, and the service allows them. */
static bool limit_has(const struct limiter *limiter, uint32_t i, uint64_t tokens)
{
	const struct allowances *allowed = allowed_of(limiter, i);

	return bucket_has(&limiter->buckets[i], tokens) &&
	       (!allowed || allowances_have(allowed, tokens));
}

/* Returns when it does; NEVER_NS. */
static uint64_t limit_when(const struct limiter *limiter, uint32_t i, uint64_t tokens,
			   uint64_t now_ns)
{
	const struct allowances *allowed = allowed_of(limiter, i);
	uint64_t at_ns = bucket_when(&limiter->buckets[i], tokens, now_ns);
	uint64_t allowed_ns = allowed ? allowances_when(allowed, tokens) : 0;

	return allowed_ns > at_ns ? allowed_ns : at_ns;
}

/* Returns what limit @i needs to grant @tokens, as saving_needed() does. */
static uint64_t needed_of(const struct limiter *limiter, uint32_t i, uint64_t tokens,
			  bool is_behind)
{
	const struct order *order = limiter->turns.order;

	if (!is_behind)
		return tokens;
	return saving_beside(tokens, units_counts(limiter)->of[i].kept,
			     amounts_of(order->saving.saver->amounts, unit_of(limiter, i)));
}

bool units_have(const struct limiter *limiter, const struct amounts *amounts, bool is_behind)
{
	uint64_t tokens;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		if (is_named(limiter, i, amounts, &tokens) &&
		    !limit_has(limiter, i, needed_of(limiter, i, tokens, is_behind)))
			return false;
	}
	return true;
}

uint64_t units_when(const struct limiter *limiter, const struct amounts *amounts, bool is_behind,
		    uint64_t now_ns)
{
	uint64_t at_ns = now_ns, tokens;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint64_t own_ns;

		if (!is_named(limiter, i, amounts, &tokens))
			continue;
		own_ns = limit_when(limiter, i, needed_of(limiter, i, tokens, is_behind), now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

bool units_can_hold(const struct limiter *limiter, const struct amounts *amounts)
{
	uint64_t tokens;

	for (; limiter; limiter = limiter->parent) {
		if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
			if (is_named(limiter, i, amounts, &tokens) &&
			    tokens > limiter_whole_burst(limiter, i) &&
			    tokens > bucket_batch(&limiter->buckets[i]))
				return false;
		}
	}
	return true;
}

void units_take(const struct schedule *schedule, struct limiter *limiter,
		const struct amounts *amounts)
{
	uint64_t tokens;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		if (is_named(limiter, i, amounts, &tokens))
			bucket_take(&limiter->buckets[i], tokens, schedule->step_ns);
	}
	if (limiter->learning)
		unit_quotas_take(limiter->learning->units, amounts);
}

void units_put(struct limiter *limiter, const struct amounts *amounts, bool beside_polled)
{
	uint64_t tokens;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		if (is_named(limiter, i, amounts, &tokens))
			bucket_put(&limiter->buckets[i], tokens,
				   beside_polled ? units_counts(limiter)->of[i].polled : 0);
	}
	if (limiter->learning)
		unit_quotas_put(limiter->learning->units, amounts);
}

static uint64_t *sum_of(struct unit_count *count, enum unit_sum sum)
{
	switch (sum) {
	case UNIT_GRANTED:
		return &count->granted;
	case UNIT_CHARGED:
		return &count->charged;
	case UNIT_RETURNED:
		return &count->returned;
	case UNIT_WANTED:
		return &count->wanted;
	case UNIT_POLLED:
		break;
	}
	return &count->polled;
}

void units_count(struct limiter *limiter, enum unit_sum sum, const struct amounts *amounts,
		 bool less)
{
	uint64_t tokens;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint64_t *count = sum_of(&units_counts(limiter)->of[i], sum);

		if (!is_named(limiter, i, amounts, &tokens))
			continue;
		/* Grants of before there was the unit are not among them. */
		if (less)
			*count -= tokens < *count ? tokens : *count;
		else
			*count += tokens;
	}
}

bool units_owe(const struct limiter *limiter, const struct amounts *amounts)
{
	uint64_t tokens;

	for (; limiter && !limiter_is_root(limiter); limiter = limiter->parent) {
		for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
			const struct unit_count *count = &units_counts(limiter)->of[i];
			uint64_t taken = count->granted + count->charged;

			if (is_named(limiter, i, amounts, &tokens) &&
			    (taken < tokens || taken - tokens < count->returned))
				return false;
		}
	}
	return true;
}

static uint64_t amount_for(const struct waiter *waiter, const char unit[UNIT_TEXT])
{
	return waiter ? amounts_of(waiter->amounts, unit) : 0;
}

void units_turn(struct limiter *limiter, const struct waiter *current, bool keep)
{
	const struct order *order = limiter->turns.order;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];
		const char *unit = unit_of(limiter, i);
		uint64_t tokens = amount_for(current, unit);

		if (order) {
			uint64_t largest = amount_for(order->saving.largest, unit);
			uint64_t saved = amount_for(order->saving.saver, unit);

			tokens = largest > tokens ? largest : tokens;
			tokens = saved > tokens ? saved : tokens;
		} else if (keep && tokens < bucket->awaited) {
			tokens = bucket->awaited;
		}
		bucket_await(bucket, tokens);
	}
}

void units_keep(struct limiter *limiter, bool begins, const struct waiter *saver)
{
	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint64_t *kept = &units_counts(limiter)->of[i].kept;
		uint64_t tokens = bucket_tokens(&limiter->buckets[i]);
		uint64_t all = amount_for(saver, unit_of(limiter, i));

		tokens = tokens < all ? tokens : all;
		if (begins || tokens < *kept)
			*kept = tokens;
	}
}

void units_move_aside(struct limiter *limiter, const struct waiter *current, bool back)
{
	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint64_t tokens = amount_for(current, unit_of(limiter, i));

		if (back)
			bucket_take_back(&limiter->buckets[i], tokens);
		else
			bucket_set_aside(&limiter->buckets[i], tokens);
	}
}

uint64_t units_forecast(const struct limiter *limiter, const struct amounts *amounts,
			bool is_contested, bool is_behind, uint64_t now_ns)
{
	const struct waiter *current = is_contested ? limiter->turns.current : NULL;
	uint64_t at_ns = now_ns;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint64_t tokens = 0, none, own_ns;
		bool is_asked = is_named(limiter, i, amounts, &tokens);

		if (is_contested)
			tokens += units_counts(limiter)->of[i].wanted;
		tokens = tokens < WANTED_MOST ? tokens : WANTED_MOST;
		/* A waiter that comes first may want none, and waits for the end of a debt. */
		is_asked |= current && is_named(limiter, i, current->amounts, &none);
		if (!is_asked && !tokens)
			continue;
		own_ns = limit_when(limiter, i, needed_of(limiter, i, tokens, is_behind), now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}
