/* keys - per-key buckets of a limiter, see keys.h. */
#include "core/limiter/keys.h"
#include "core/limiter/holding.h"
#include "core/base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a key is while files of it are open. */
struct inflated {
	struct limiter limiter; /* first */
	struct bucket bucket;
};

static struct key *key_of_name(struct chain_link *link)
{
	return container_of(link, struct key, by_name);
}

static struct key *key_of_id(struct chain_link *link)
{
	return container_of(link, struct key, by_id);
}

static uint64_t hash_name(const struct chain_link *link, const void *seed)
{
	const struct key *key = container_of(link, const struct key, by_name);

	return siphash(key->name, key->name_bytes, seed);
}

/* Ids are counted up, so each chain gets its turn. */
static uint64_t hash_id(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return container_of(link, const struct key, by_id)->id;
}

void keys_seed(struct schedule *schedule, const uint64_t seed[2])
{
	memcpy(schedule->key_seed, seed, sizeof(schedule->key_seed));
}

/* What a key of @limiter is set to. */
static struct settings settings_of_key(const struct limiter *limiter)
{
	struct settings settings = SETTINGS_DEFAULT;

	settings.enforcement = limiter->settings->enforcement;
	settings.burst = limiter->settings->key_burst;
	settings.limit_count = !rate_is_unlimited(&limiter->settings->key_rate);
	settings.limits[0].rate = limiter->settings->key_rate;
	return settings;
}

/* Memory for keys of @limiter; @full: so are those that are not known. NULL: there is none. */
static struct keys *begin(struct schedule *schedule, struct limiter *limiter, bool full)
{
	struct keys *keys = calloc(1, sizeof(*keys));
	struct bucket bucket;
	bool limited;

	if (!keys)
		return NULL;
	if (tunings_init(&keys->tunings, &limiter->settings->key_rate, limiter->settings->key_burst,
			 schedule->now_ns)) {
		free(keys);
		return NULL;
	}
	keys->limiter = limiter;
	keys->settings = settings_of_key(limiter);
	keys->by_name.hash = hash_name;
	keys->by_name.seed = schedule->key_seed;
	keys->unknown.limiter = limiter->id;
	bucket = tunings_now(&keys->tunings)->bucket;
	limited = tunings_now(&keys->tunings)->limited;
	if (limited && full)
		bucket_fill(&bucket);
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &keys->unknown);
	schedule->keys_by_id.hash = hash_id;
	limiter->keys = keys;
	return keys;
}

static struct key *find_name(const struct keys *keys, const char *name, size_t length)
{
	struct chain_link *link = chains_find(&keys->by_name,
					      siphash(name, length, keys->by_name.seed));

	for (; link; link = link->next) {
		struct key *key = key_of_name(link);

		if (key->name_bytes == length && !memcmp(key->name, name, length))
			return key;
	}
	return NULL;
}

/* @key is idle; what accrued since it was used last is counted, and it is the newest. */
static void touch(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct bucket bucket;
	bool limited = tunings_bucket(&keys->tunings, &key->level, schedule->now_ns, &bucket);

	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &key->level);
	keys_unlist(keys, key);
	keys_list(keys, key, (enum key_list_id)key->list);
}

/* Whether there is room for one more of @uid, or one of its own could be forgotten for it. */
static bool has_room(struct schedule *schedule, struct keys *keys, uint32_t uid)
{
	const struct key *oldest;

	if (!users_check(schedule->users, uid, BOUND_KEYS, NULL))
		return true;
	oldest = keys_oldest(keys, KEYS_FRESH);
	if (!oldest)
		oldest = keys_oldest(keys, KEYS_USED);
	return oldest && oldest->uid == uid && keys_evict(schedule, keys);
}

static int make(struct schedule *schedule, struct keys *keys, const char *name, uint32_t uid,
		uint64_t id, struct key **made)
{
	size_t length = strlen(name);
	/* Not sizeof: names begin where it would be padded. */
	struct key *key = malloc(offsetof(struct key, name) + length + 1);

	if (!key)
		return -ENOMEM;
	memset(key, 0, offsetof(struct key, name));
	key->level = keys->unknown;
	key->uid = uid;
	key->name_bytes = (uint8_t)length;
	key->id = id;
	memcpy(key->name, name, length + 1);
	if (chains_insert(&keys->by_name, &key->by_name)) {
		free(key);
		return -ENOMEM;
	}
	if (chains_insert(&schedule->keys_by_id, &key->by_id)) {
		chains_remove(&keys->by_name, &key->by_name);
		free(key);
		return -ENOMEM;
	}
	users_add(schedule->users, uid, BOUND_KEYS);
	keys_list(keys, key, KEYS_FRESH);
	touch(schedule, keys, key);
	*made = key;
	return 0;
}

/* Finds @name in *@keys of @limiter. 0 or -ENOMEM; *@key is NULL if there is no such key. */
static int look_up(struct schedule *schedule, struct limiter *limiter, const char *name,
		   struct keys **keys, struct key **key)
{
	size_t length = strlen(name);

	assert(length && length <= UINT8_MAX);
	*keys = limiter->keys;
	if (!*keys)
		*keys = begin(schedule, limiter, !limiter->holding || limiter->holding->alone);
	if (!*keys)
		return -ENOMEM;
	*key = find_name(*keys, name, length);
	return 0;
}

int keys_get(struct schedule *schedule, struct limiter *limiter, const char *name, uint32_t uid,
	     struct key **key)
{
	struct keys *keys;
	int err = look_up(schedule, limiter, name, &keys, key);

	if (err)
		return err;
	if (*key) {
		if ((*key)->list != KEYS_OPEN)
			touch(schedule, keys, *key);
		return 0;
	}
	/* Two for one: where many are made, as many are forgotten. */
	(void)keys_sweep(schedule, keys, 2);
	if (keys->lists[KEYS_FRESH].count >= KEYS_FRESH_MAX)
		(void)keys_evict(schedule, keys);
	if (keys->by_name.count >= limiter->settings->keys_max && !keys_evict(schedule, keys))
		return -ENOSPC;
	if (!has_room(schedule, keys, uid))
		return -ENOSPC;
	err = make(schedule, keys, name, uid, ++schedule->last_key, key);
	if (!heap_holds(&keys->due))
		keys_plan(schedule, keys, 0);
	return err;
}

int keys_restore(struct schedule *schedule, struct limiter *limiter, const char *name, uint32_t uid,
		 uint64_t id, struct key **key)
{
	struct keys *keys;
	int err = look_up(schedule, limiter, name, &keys, key);

	return err || *key ? err : make(schedule, keys, name, uid, id, key);
}

struct key *keys_find(const struct schedule *schedule, uint64_t id)
{
	struct chain_link *link = chains_find(&schedule->keys_by_id, id);

	while (link && key_of_id(link)->id != id)
		link = link->next;
	return link ? key_of_id(link) : NULL;
}

static uint32_t saturated(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

struct limiter *keys_open(struct schedule *schedule, struct limiter *limiter, struct key *key)
{
	struct keys *keys = limiter->keys;
	struct inflated *inflated;
	struct limiter *l;

	if (key->list == KEYS_OPEN) {
		key->inflated->references++;
		return key->inflated;
	}
	inflated = calloc(1, sizeof(*inflated));
	if (!inflated)
		return NULL;
	l = &inflated->limiter;
	l->parent = limiter;
	l->is_key = true;
	l->key = key;
	l->settings = &keys->settings;
	l->buckets = &inflated->bucket;
	l->bucket_count = tunings_bucket(&keys->tunings, &key->level, schedule->now_ns,
					 &inflated->bucket);
	l->counters[COUNTER_GRANTED] = key->granted;
	l->counters[COUNTER_SERVED] = key->served;
	l->counters[COUNTER_REFUSED] = key->refused;
	l->references = 1;
	keys_unlist(keys, key);
	key->inflated = l;
	keys_list(keys, key, KEYS_OPEN);
	return l;
}

/* The last file of it was closed. */
static void deflate(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct limiter *l = key->inflated;

	assert(!l->queue.length && !heap_holds(&l->turn));
	heap_remove(&schedule->deadlines, &l->due);
	keys_unlist(keys, key);
	if (l->bucket_count)
		bucket_refill(l->buckets, schedule->now_ns);
	tunings_rest(&keys->tunings, l->bucket_count ? l->buckets : NULL, schedule->now_ns,
		     &key->level);
	key->granted = l->counters[COUNTER_GRANTED];
	key->served = saturated(l->counters[COUNTER_SERVED]);
	key->refused = saturated(l->counters[COUNTER_REFUSED]);
	keys_list(keys, key, key->granted ? KEYS_USED : KEYS_FRESH);
	free(l);
	if (!heap_holds(&keys->due))
		keys_plan(schedule, keys, 0);
}

void keys_close(struct schedule *schedule, struct limiter *inflated)
{
	assert(inflated->references);
	if (--inflated->references)
		return;
	if (inflated->removed)
		free(inflated);
	else
		deflate(schedule, inflated->parent->keys, inflated->key);
}

uint32_t keys_count(const struct limiter *limiter)
{
	return limiter->keys ? limiter->keys->by_name.count : 0;
}

uint32_t keys_waiting(const struct limiter *limiter)
{
	uint32_t waiting = 0;

	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		waiting += key->queue.length;
	return waiting;
}

struct limiter *keys_next_open(const struct limiter *limiter, const struct limiter *key)
{
	const struct key *next;

	if (!limiter->keys)
		return NULL;
	next = key ? list_next(key->key, by_use) : keys_oldest(limiter->keys, KEYS_OPEN);
	return next ? next->inflated : NULL;
}

struct key *keys_from(const struct limiter *limiter, uint64_t *place)
{
	struct chain_link *link = limiter->keys ? chains_from(&limiter->keys->by_name, place)
						: NULL;

	return link ? key_of_name(link) : NULL;
}

/* The least number of a tuning that an idle key needs. */
static uint32_t needed(const struct keys *keys)
{
	uint32_t least = tunings_number(&keys->tunings);

	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		const struct key *oldest = keys_oldest(keys, id);

		if (oldest && oldest->level.tuning < least)
			least = oldest->level.tuning;
	}
	return least;
}

void keys_follow(struct schedule *schedule, struct limiter *limiter, bool full)
{
	struct keys *keys = limiter->keys;
	const struct tuning *now;
	struct settings old;
	struct bucket bucket;
	bool limited, tuned, first;

	if (limiter->partition)
		return;
	/* Nobody else can have taken of a key. */
	if (limiter->holding && limiter->holding->alone)
		full = true;
	/* Where keys do not begin full it counts from when they did not. */
	if (!keys && !full && !rate_is_unlimited(&limiter->settings->key_rate))
		keys = begin(schedule, limiter, false);
	if (!keys)
		return;
	old = keys->settings;
	keys->settings = settings_of_key(limiter);
	now = tunings_now(&keys->tunings);
	first = full && tunings_are_new(&keys->tunings);
	tuned = rate_compare(&now->rate, &limiter->settings->key_rate) ||
		now->burst != limiter->settings->key_burst;
	if (tuned) {
		tunings_add(&keys->tunings, &limiter->settings->key_rate,
			    limiter->settings->key_burst, full, needed(keys), schedule->now_ns);
		limited = tunings_bucket(&keys->tunings, &keys->unknown, schedule->now_ns, &bucket);
		tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns,
			     &keys->unknown);
	}
	for (struct key *k = keys_oldest(keys, KEYS_OPEN); k; k = list_next(k, by_use)) {
		/* Before it may be taken from. */
		if (first && tuned && k->inflated->bucket_count &&
		    !rate_is_unlimited(&limiter->settings->key_rate)) {
			bucket_retune(&k->inflated->buckets[0], &limiter->settings->key_rate,
				      limiter->settings->key_burst, 0, schedule->now_ns);
			bucket_fill(&k->inflated->buckets[0]);
		}
		/* At once, so that readers that wait in it feel it. */
		if (tuned || old.enforcement != keys->settings.enforcement)
			limiter_follow(schedule, k->inflated, &old, k->inflated->buckets, full);
	}
	keys_plan(schedule, keys, 0);
}

void keys_remove(struct schedule *schedule, struct limiter *limiter)
{
	struct keys *keys = limiter->keys;
	struct key *key;

	if (!keys)
		return;
	while ((key = keys_oldest(keys, KEYS_OPEN))) {
		struct limiter *l = key->inflated;

		limiter_evict(schedule, l);
		l->removed = true;
		l->settings = &SETTINGS_DEFAULT; /* the keys' own go before the last reference */
		l->key = NULL;
		keys_forget(schedule, keys, key);
		if (!l->references)
			free(l);
	}
	keys->limiter = NULL;
	limiter->keys = NULL;
	heap_place(&schedule->forgets, &keys->due, schedule->now_ns);
}
