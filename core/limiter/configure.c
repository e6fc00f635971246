/* configure - what a limiter is set to, see limiter.h. */
#include "core/limiter/holding.h"
#include "core/limiter/key_units.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"
#include "core/limiter/strict.h"
#include "core/limiter/units.h"
#include "core/limiter/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint32_t limiter_changed_s(const struct limiter *limiter, enum setting_id setting)
{
	return limiter->changed_s ? limiter->changed_s[setting] : limiter->made_s;
}

int limiter_set_times(struct limiter *limiter, uint32_t made_s, const uint32_t *changed_s)
{
	size_t bytes = SETTING_COUNT * sizeof(*changed_s);

	if (changed_s && !limiter->changed_s)
		limiter->changed_s = malloc(bytes);
	if (changed_s && !limiter->changed_s)
		return -ENOMEM;
	limiter->made_s = made_s;
	if (changed_s)
		memcpy(limiter->changed_s, changed_s, bytes);
	return 0;
}

/* Returns the window of limit @i of @limiter, in the pool's settings or the key's memory. */
static struct window *window_of(const struct schedule *schedule, const struct limiter *limiter,
				uint32_t i)
{
	struct key_window *of_key;

	if (!limiter->is_key)
		return pool_window(limiter_settings(limiter->partition ? limiter->parent : limiter),
				   i);
	of_key = key_units_window(limiter, i);
	of_key->rate = limiter->settings->limits[i].rate;
	of_key->window = (struct window){.rate = &of_key->rate, .wall = &schedule->pool.wall};
	return &of_key->window;
}

/*
 * Returns which of the @count buckets @before, of @old, goes on as limit @i of @settings, which is
 * of windows: that of its unit and the same windows, or else @j. @count: none does.
 */
static uint32_t former_of(const struct settings *old, const struct bucket *before, uint32_t count,
			  const struct settings *settings, uint32_t i, uint32_t j)
{
	const struct limit *limit = &settings->limits[i];

	for (uint32_t k = 0; k < count; k++) {
		if (bucket_is_window(&before[k]) &&
		    amount_is_of(old->limits[k].unit, limit->unit) &&
		    calendar_is_same(before[k].window->rate, &limit->rate))
			return k;
	}
	return j;
}

/* Returns what is this host's of limit @i of windows. */
static struct window_share share_of_window(const struct limiter *limiter, uint32_t i)
{
	if (limiter->holding)
		return holding_window_share(limiter->holding, i);
	return (struct window_share){settings_burst(limiter->settings, i), 0, 1, 0};
}

/* Brings @bucket, limit @i of windows, to its rate from @former; NULL: begins it. */
static void set_window(const struct schedule *schedule, const struct limiter *limiter, uint32_t i,
		       const struct bucket *former, struct bucket *bucket, bool full)
{
	struct window *window = window_of(schedule, limiter, i);
	struct window_share share = share_of_window(limiter, i);

	if (former) {
		*bucket = *former;
		window_retune(bucket, window, &share, schedule->now_ns);
		return;
	}
	window_init(bucket, window, &share, schedule->now_ns);
	/* The limiter bounds the use of a partition: it knows how many tokens were used. */
	if (full || limiter->partition)
		bucket_fill(bucket);
	if (full && limiter->is_key)
		key_units_begin_window(limiter, i, schedule->now_ns, bucket);
}

/*
 * Gives the units of @limiter their counts: those @before, of the limits of @old, which had @count.
 * Waiters that wait may want amounts of a new one.
 */
static void set_units(struct limiter *limiter, const struct settings *old, uint32_t count,
		      const struct units *before)
{
	const struct settings *settings = limiter->settings;
	struct units *units = units_counts(limiter);
	bool any_new = false;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++) {
		uint32_t j = units_before(old, count, settings, i);

		units->of[i] = j < count ? before->of[j] : (struct unit_count){0};
		any_new |= j == count;
	}
	if (any_new)
		units_recount(limiter);
}

/*
 * Brings limit @i from its rate before to that of the settings. Unless @full, others may have taken
 * what it gains of a strict window.
 */
static void retune_limit(struct schedule *schedule, const struct limiter *limiter, uint32_t i,
			 struct bucket *bucket, bool full)
{
	const struct settings *settings = limiter->settings;
	const struct rate *rate = &settings->limits[i].rate;
	bool was_strict = bucket_is_strict(bucket);
	uint64_t window_ns = bucket->interval_ns;
	int64_t level;

	bucket_refill(bucket, schedule->now_ns);
	level = bucket->level;
	bucket_retune(bucket, rate, settings_burst(settings, i), settings->release_interval_ns,
		      schedule->now_ns);
	if (!full && was_strict && bucket_is_strict(bucket) && bucket->interval_ns == window_ns)
		strict_hold_level(bucket, level);
}

/* Frees what @buckets own that do not @stay. */
static void end_others(struct bucket *buckets, uint32_t count, const bool *stay)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!stay[i])
			bucket_end(&buckets[i]);
	}
}

/* Brings limits that were there before to the new rates, and begins those that are new. */
static void set_buckets(struct schedule *schedule, struct limiter *limiter,
			const struct settings *old, struct bucket *buckets, bool full)
{
	const struct settings *settings = limiter->settings;
	struct bucket *owned = limiter->buckets, before[LIMITS_MAX];
	uint32_t count = limiter->bucket_count;
	bool was_strict = false, stay[LIMITS_MAX] = {false};
	struct key_window former[LIMITS_MAX];
	struct units counts = units_counts(limiter) ? *units_counts(limiter) : (struct units){0};

	if (count)
		memcpy(before, owned, count * sizeof(*owned));
	if (limiter->is_key)
		key_windows_move(before, count, former);
	for (uint32_t i = 0; i < count; i++)
		was_strict = was_strict || bucket_is_strict(&before[i]);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		uint32_t j = units_before(old, count, settings, i);

		if (rate_is_window(&settings->limits[i].rate)) {
			j = former_of(old, before, count, settings, i, j);
			set_window(schedule, limiter, i, j < count ? &before[j] : NULL, &buckets[i],
				   full);
			continue;
		}
		if (j < count) {
			buckets[i] = before[j];
			stay[j] = true;
			if (j != i)
				buckets[i].account = NULL;
			retune_limit(schedule, limiter, i, &buckets[i], full);
			continue;
		}
		bucket_init(&buckets[i], &settings->limits[i].rate, settings_burst(settings, i),
			    settings->release_interval_ns, schedule->now_ns);
		/* Of a window beside others it is not known what was taken in it before. */
		if (full && !(was_strict && bucket_is_strict(&buckets[i])))
			bucket_fill(&buckets[i]);
	}
	end_others(before, count, stay);
	limiter->buckets = buckets;
	limiter->bucket_count = (uint8_t)settings->limit_count;
	limiter->plain_count = (uint8_t)settings_plain_count(settings);
	if (units_counts(limiter))
		set_units(limiter, old, count, &counts);
	if (owned != buckets)
		free(owned);
}

static void follow_keys(struct schedule *schedule, struct limiter *limiter, bool full)
{
	struct settings old;

	/* No other host can have taken tokens of a key, but this one before it was started anew. */
	if (limiter->holding && limiter->holding->alone &&
	    !settings_have_strict_keys(limiter_settings(limiter)))
		full = true;
	if (!keys_follow(schedule, limiter, full, &old))
		return;
	/* At once, for readers that wait in them. Nothing is granted before the last follows. */
	schedule->gathers = true;
	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));) {
		const struct settings its = keys_former(key, &old);

		if (keys_can_follow(key))
			limiter_follow(schedule, key, &its, key->buckets, full);
	}
	schedule->gathers = false;
}

/* Does as end_hopeless(), for pollers of @limiter itself. */
static void end_hopeless_own(struct schedule *schedule, struct limiter *limiter)
{
	struct waiter *next;
	bool any = false;

	for (struct waiter *w = list_first(&limiter->turns.queue.once, struct waiter, once); w;
	     w = next) {
		next = list_next(w, once);
		if (!w->is_poller || limiter_can_hold(limiter, w->tokens, w->amounts))
			continue;
		turns_leave(schedule, w, &LIMITER_TURNS);
		poller_answer(schedule, poller_of(w), -EINVAL);
		any = true;
	}
	if (any)
		limiter_settle(schedule, limiter);
}

/*
 * Answers pollers of @limiter and below it that want more than limiter_can_hold(), with -EINVAL.
 */
static void end_hopeless(struct schedule *schedule, struct limiter *limiter)
{
	struct limiter *partition;

	if (!limiter->pollers)
		return;
	end_hopeless_own(schedule, limiter);
	for (uint32_t i = 0; (partition = partition_next(limiter, &i));)
		end_hopeless_own(schedule, partition);
	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		end_hopeless_own(schedule, key);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		end_hopeless(schedule, l);
}

/* Takes the place among its siblings that its settings say; limiter_settle() has to follow. */
static void follow_order(struct limiter *limiter)
{
	struct turns *turns = &limiter->turns;
	struct order *order = limiter->parent ? limiter->parent->turns.order : NULL;

	if (turns->sibling)
		order_follow(order, turns->sibling, limiter->settings, turns->wanted,
			     turns_demand(turns));
}

void limiter_follow(struct schedule *schedule, struct limiter *limiter, const struct settings *old,
		    struct bucket *buckets, bool full)
{
	set_buckets(schedule, limiter, old, buckets, full);
	follow_order(limiter);
	learning_configure(schedule, limiter);
	follow_keys(schedule, limiter, full);
	partition_follow(schedule, limiter);
	limiter_settle(schedule, limiter);
	end_hopeless(schedule, limiter);
	slots_configure(schedule, limiter, &old->slots);
}

/* The buckets know of this host's share alone, and what is in them came with it. */
static void follow_share(struct schedule *schedule, struct limiter *limiter, struct bucket *buckets,
			 bool full)
{
	struct holding *holding = limiter->holding;
	const struct settings old = holding->share;

	holding_share(holding, &holding->share);
	/* A new limit is full, as far as it is this host's. */
	limiter_follow(schedule, limiter, &old, buckets, full && holding->usable);
}

void limiter_configure(struct schedule *schedule, struct limiter *limiter,
		       const struct settings *settings, struct bucket *buckets, bool full)
{
	const struct settings *old = limiter_settings(limiter);

	if (limiter->holding) {
		limiter->holding->settings = settings;
		follow_share(schedule, limiter, buckets, full);
	} else {
		limiter->settings = settings;
		limiter_follow(schedule, limiter, old, buckets, full);
	}
	pool_drop(old);
}

void limiter_reshare(struct schedule *schedule, struct limiter *limiter)
{
	follow_share(schedule, limiter, limiter->buckets, false);
}
