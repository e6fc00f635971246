/* configure - what a limiter is set to, see limiter.h. */
#include "core/limiter/holding.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/slots.h"

#include <errno.h>
#include <stdlib.h>

struct limiter_extra LIMITER_PLAIN = {
	.keys_max = KEYS_MAX_DEFAULT,
	.key_rate = {UINT64_MAX, NSEC_PER_SEC, 0, 0},
	.key_burst = 1,
};

void limiter_settings(const struct limiter *limiter, struct settings *settings)
{
	if (limiter->holding) {
		*settings = limiter->holding->settings;
		return;
	}
	*settings = (struct settings){
		.limit_count = limiter->bucket_count,
		.partitions = limiter->partition_setting,
		.burst = limiter->burst,
		.release_interval_ns = limiter->release_interval_ns,
		.lease_ns = limiter->lease_ns,
		.reserve_rate = limiter->extra->reserve_rate,
		.reserve_hosts = limiter->extra->reserve_hosts,
		.enforcement = (enum enforcement)limiter->enforcement,
		.offline = limiter->offline,
		.key_rate = limiter->extra->key_rate,
		.key_burst = limiter->extra->key_burst,
		.keys_max = limiter->extra->keys_max,
	};
	if (limiter->learning) {
		settings->adapt = limiter->learning->adapt;
		settings->backoff = limiter->learning->backoff;
	}
	if (limiter->slots)
		settings->slots = limiter->slots->setting;
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		const struct bucket *bucket = &limiter->buckets[i];

		settings->limits[i].rate = bucket->rate;
		settings->limits[i].burst = limiter->own_bursts >> i & 1 ? bucket->burst : 0;
	}
}

static struct limiter_extra extra_of(const struct settings *settings)
{
	return (struct limiter_extra){
		.reserve_rate = settings->reserve_rate,
		.reserve_hosts = settings->reserve_hosts,
		.keys_max = settings->keys_max,
		.key_rate = settings->key_rate,
		.key_burst = settings->key_burst,
	};
}

static bool is_plain(const struct settings *settings)
{
	return !settings->reserve_hosts && settings->keys_max == LIMITER_PLAIN.keys_max &&
	       settings->key_burst == LIMITER_PLAIN.key_burst &&
	       rate_is_unlimited(&settings->key_rate);
}

int limiter_prepare(struct limiter *limiter, const struct settings *settings)
{
	struct limiter_extra *extra;

	if (limiter->extra != &LIMITER_PLAIN || is_plain(settings))
		return 0;
	extra = malloc(sizeof(*extra));
	if (!extra)
		return -ENOMEM;
	*extra = LIMITER_PLAIN;
	limiter->extra = extra;
	return 0;
}

void limiter_configure(struct schedule *schedule, struct limiter *limiter,
		       const struct settings *settings, struct bucket *buckets, bool full)
{
	struct bucket *old = limiter->buckets;
	struct settings share;

	/* In a fleet the buckets know of this host's share alone, and what is in them came with it. */
	if (limiter->holding) {
		limiter->holding->settings = *settings;
		holding_share(limiter->holding, &share);
		settings = &share;
		/* A new limit is full, as far as it is this host's. */
		full = full && limiter->holding->usable;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		uint64_t burst = settings_burst(settings, i);

		if (i < limiter->bucket_count) {
			buckets[i] = old[i];
			bucket_retune(&buckets[i], &limit->rate, burst,
				      settings->release_interval_ns, schedule->now_ns);
			continue;
		}
		bucket_init(&buckets[i], &limit->rate, burst, settings->release_interval_ns,
			    schedule->now_ns);
		if (full)
			bucket_fill(&buckets[i]);
	}
	limiter->own_bursts = 0;
	for (uint32_t i = 0; i < settings->limit_count; i++)
		limiter->own_bursts |= (uint8_t)((settings->limits[i].burst != 0) << i);
	limiter->buckets = buckets;
	limiter->bucket_count = (uint8_t)settings->limit_count;
	limiter->enforcement = (uint8_t)settings->enforcement;
	limiter->offline = settings->offline;
	limiter->partition_setting = (uint16_t)settings->partitions;
	limiter->burst = settings->burst;
	limiter->release_interval_ns = settings->release_interval_ns;
	limiter->lease_ns = settings->lease_ns;
	if (limiter->extra != &LIMITER_PLAIN)
		*limiter->extra = extra_of(settings);
	if (old != buckets)
		free(old);
	learning_configure(schedule, limiter, settings);
	keys_follow(schedule, limiter, full);
	limiter_settle(schedule, limiter);
	poller_end_hopeless(schedule, limiter);
	slots_configure(schedule, limiter, &settings->slots);
}

void limiter_reshare(struct schedule *schedule, struct limiter *limiter)
{
	struct settings settings = limiter->holding->settings;

	limiter_configure(schedule, limiter, &settings, limiter->buckets, false);
}
