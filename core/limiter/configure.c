/* configure - what a limiter is set to, see limiter.h. */
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/slots.h"

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

/* Brings limits that were there before to the new rates, and begins those that are new. */
static void set_buckets(struct schedule *schedule, struct limiter *limiter, struct bucket *buckets,
			bool full)
{
	const struct settings *settings = limiter->settings;
	struct bucket *old = limiter->buckets;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct rate *rate = &settings->limits[i].rate;
		uint64_t burst = settings_burst(settings, i);

		if (i < limiter->bucket_count) {
			buckets[i] = old[i];
			bucket_retune(&buckets[i], rate, burst, settings->release_interval_ns,
				      schedule->now_ns);
			continue;
		}
		bucket_init(&buckets[i], rate, burst, settings->release_interval_ns,
			    schedule->now_ns);
		if (full)
			bucket_fill(&buckets[i]);
	}
	limiter->buckets = buckets;
	limiter->bucket_count = (uint8_t)settings->limit_count;
	if (old != buckets)
		free(old);
}

static void follow_keys(struct schedule *schedule, struct limiter *limiter, bool full)
{
	struct settings old;

	/* No other host can have taken tokens of a key. */
	if (limiter->holding && limiter->holding->alone)
		full = true;
	if (!keys_follow(schedule, limiter, full, &old))
		return;
	/* At once, for readers that wait in them. */
	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		limiter_follow(schedule, key, &old, key->buckets, full);
}

/* Does as end_hopeless(), for pollers of @limiter itself. */
static void end_hopeless_own(struct schedule *schedule, struct limiter *limiter)
{
	struct waiter *next;
	bool any = false;

	for (struct waiter *w = list_first(&limiter->turns.queue.once, struct waiter, once); w;
	     w = next) {
		next = list_next(w, once);
		if (!w->is_poller || limiter_can_hold(limiter, w->tokens))
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
	if (!limiter->pollers)
		return;
	end_hopeless_own(schedule, limiter);
	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (limiter->partitions[i])
			end_hopeless_own(schedule, limiter->partitions[i]);
	}
	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		end_hopeless_own(schedule, key);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		end_hopeless(schedule, l);
}

void limiter_follow(struct schedule *schedule, struct limiter *limiter, const struct settings *old,
		    struct bucket *buckets, bool full)
{
	set_buckets(schedule, limiter, buckets, full);
	learning_configure(schedule, limiter);
	follow_keys(schedule, limiter, full);
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
