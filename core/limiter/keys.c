/* keys - per-key buckets of a limiter, see keys.h. */
#include "core/limiter/keys.h"
#include "core/limiter/holding.h"
#include "core/base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A key while files of it are open. */
struct inflated {
	struct limiter limiter; /* first */
	struct bucket bucket;
	struct key *key;	 /* borrowed; NULL once it is gone */
	struct settings *leased; /* owned: its settings once it was leased; or NULL */
	struct key_lease *lease; /* borrowed */
	uint32_t leaves;
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

/* Gives the settings of a key of @limiter of which @leaves are leased. */
static struct settings key_settings(const struct limiter *limiter, uint32_t leaves)
{
	struct settings settings = SETTINGS_DEFAULT;

	settings.enforcement = limiter->settings->enforcement;
	settings.burst = limiter->settings->key_burst;
	settings.limit_count = !rate_is_unlimited(&limiter->settings->key_rate);
	settings.limits[0].rate = limiter->settings->key_rate;
	if (leaves && settings.limit_count && limiter->holding)
		holding_key_share(limiter->holding, leaves, &settings.limits[0].rate,
				  &settings.burst);
	return settings;
}

/* Gets memory for keys of @limiter; with @full unknown ones are full. NULL: there is none. */
static struct keys *begin_keys(struct schedule *schedule, struct limiter *limiter, bool full)
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
	keys->settings = key_settings(limiter, 0);
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

/* The memory of keys: how long each is remembered. */

/* Returns the key that was used first of a list, or NULL. */
static struct key *oldest_key(const struct keys *keys, enum key_list_id id)
{
	return list_first(&keys->lists[id].keys, struct key, by_use);
}

static void unlist_key(struct keys *keys, struct key *key)
{
	struct key_list *list = &keys->lists[key->list];

	list_remove(&list->keys, &key->by_use);
	list->count--;
}

static void list_key(struct keys *keys, struct key *key, enum key_list_id id)
{
	struct key_list *list = &keys->lists[id];

	key->list = (uint8_t)id;
	list_append(&list->keys, &key->by_use);
	list->count++;
}

/* Frees @key, which is in a list. */
static void forget_key(struct schedule *schedule, struct keys *keys, struct key *key)
{
	unlist_key(keys, key);
	chains_remove(&keys->by_name, &key->by_name);
	chains_remove(&schedule->keys_by_id, &key->by_id);
	users_drop(schedule->users, key->uid, BOUND_KEYS);
	free(key);
}

/* Returns when @key, which is idle, need not be remembered any more. */
static uint64_t full_ns(const struct keys *keys, const struct key *key, uint64_t now_ns)
{
	uint64_t lingers_ns = key->level.filled_ns + KEYS_LINGER_NS, at_ns;
	struct bucket bucket;

	if (key->list == KEYS_FRESH ||
	    !tunings_bucket(&keys->tunings, &key->level, now_ns, &bucket))
		return lingers_ns;
	at_ns = bucket_when(&bucket, bucket.burst, now_ns);
	return at_ns > lingers_ns ? at_ns : lingers_ns;
}

/*
 * Sets the time of the next sweep: when a key can be forgotten, and not before @least_ns. A key
 * behind the oldest is full no later than a whole burst takes after its last use.
 */
static void plan_sweep(struct schedule *schedule, struct keys *keys, uint64_t least_ns)
{
	const struct key *fresh = oldest_key(keys, KEYS_FRESH);
	const struct key *used = oldest_key(keys, KEYS_USED);
	uint64_t at_ns = NEVER_NS, used_ns = NEVER_NS;

	if (fresh)
		at_ns = full_ns(keys, fresh, schedule->now_ns);
	if (used)
		used_ns = full_ns(keys, used, schedule->now_ns);
	if (used_ns < at_ns)
		at_ns = used_ns;
	if ((fresh || used) && keys->by_name.count > keys->limiter->settings->keys_max)
		at_ns = schedule->now_ns;
	if (at_ns > NEVER_NS - KEYS_SLACK_NS) {
		heap_remove(&schedule->forgets, &keys->due);
		return;
	}
	at_ns = at_ns < least_ns ? least_ns : at_ns + KEYS_SLACK_NS;
	heap_place(&schedule->forgets, &keys->due, at_ns);
}

static bool is_above(const struct bucket *a, const struct bucket *b)
{
	return a->level > b->level || (a->level == b->level && a->part > b->part);
}

/* Forgets one idle key, of those that lose nothing by it if there are some. False: none is idle. */
static bool evict_key(struct schedule *schedule, struct keys *keys)
{
	struct key *key = oldest_key(keys, KEYS_FRESH);
	struct bucket its, unknown;

	if (key) {
		forget_key(schedule, keys, key);
		return true;
	}
	key = oldest_key(keys, KEYS_USED);
	if (!key)
		return false;
	if (tunings_bucket(&keys->tunings, &key->level, schedule->now_ns, &its)) {
		tunings_bucket(&keys->tunings, &keys->unknown, schedule->now_ns, &unknown);
		tunings_rest(&keys->tunings, is_above(&unknown, &its) ? &its : &unknown,
			     schedule->now_ns, &keys->unknown);
	}
	forget_key(schedule, keys, key);
	return true;
}

/* Forgets up to @most keys that are full, or too many. Tells whether there may be more. */
static bool sweep_keys(struct schedule *schedule, struct keys *keys, unsigned int most)
{
	uint64_t now_ns = schedule->now_ns;

	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		struct key *key;

		while ((key = oldest_key(keys, id)) && full_ns(keys, key, now_ns) <= now_ns) {
			if (!most--)
				return true;
			forget_key(schedule, keys, key);
		}
	}
	while (keys->by_name.count > keys->limiter->settings->keys_max) {
		if (!most--)
			return true;
		if (!evict_key(schedule, keys))
			break;
	}
	return false;
}

/* Counts the tokens that accrued in @key, which is idle, and makes it the newest. */
static void touch_key(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct bucket bucket;
	bool limited = tunings_bucket(&keys->tunings, &key->level, schedule->now_ns, &bucket);

	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &key->level);
	unlist_key(keys, key);
	list_key(keys, key, (enum key_list_id)key->list);
}

/* Tells whether there is room for a key more of @uid, or one of its own was forgotten for it. */
static bool has_room(struct schedule *schedule, struct keys *keys, uint32_t uid)
{
	const struct key *oldest;

	if (!users_check(schedule->users, uid, BOUND_KEYS, NULL))
		return true;
	oldest = oldest_key(keys, KEYS_FRESH);
	if (!oldest)
		oldest = oldest_key(keys, KEYS_USED);
	return oldest && oldest->uid == uid && evict_key(schedule, keys);
}

static int make_key(struct schedule *schedule, struct keys *keys, const char *name, uint32_t uid,
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
	list_key(keys, key, KEYS_FRESH);
	touch_key(schedule, keys, key);
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
		*keys = begin_keys(schedule, limiter, !limiter->holding || limiter->holding->alone);
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
			touch_key(schedule, keys, *key);
		return 0;
	}
	/* Two for one: where many are made, more are forgotten. */
	(void)sweep_keys(schedule, keys, 2);
	if (keys->lists[KEYS_FRESH].count >= KEYS_FRESH_MAX)
		(void)evict_key(schedule, keys);
	if (keys->by_name.count >= limiter->settings->keys_max && !evict_key(schedule, keys))
		return -ENOSPC;
	if (!has_room(schedule, keys, uid))
		return -ENOSPC;
	err = make_key(schedule, keys, name, uid, ++schedule->last_key, key);
	if (!heap_holds(&keys->due))
		plan_sweep(schedule, keys, 0);
	return err;
}

int keys_restore(struct schedule *schedule, struct limiter *limiter, const char *name, uint32_t uid,
		 uint64_t id, struct key **key)
{
	struct keys *keys;
	int err = look_up(schedule, limiter, name, &keys, key);

	return err || *key ? err : make_key(schedule, keys, name, uid, id, key);
}

struct key *keys_find(const struct schedule *schedule, uint64_t id)
{
	struct chain_link *link = chains_find(&schedule->keys_by_id, id);

	while (link && key_of_id(link)->id != id)
		link = link->next;
	return link ? key_of_id(link) : NULL;
}

static uint32_t saturate_count(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

struct key *keys_key(const struct limiter *inflated)
{
	return ((const struct inflated *)inflated)->key;
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
	inflated->key = key;
	l->settings = &keys->settings;
	l->buckets = &inflated->bucket;
	l->bucket_count = tunings_bucket(&keys->tunings, &key->level, schedule->now_ns,
					 &inflated->bucket);
	l->counters[COUNTER_GRANTED] = key->granted;
	l->counters[COUNTER_SERVED] = key->served;
	l->counters[COUNTER_REFUSED] = key->refused;
	l->references = 1;
	unlist_key(keys, key);
	key->inflated = l;
	list_key(keys, key, KEYS_OPEN);
	return l;
}

static void free_inflated(struct limiter *limiter)
{
	free(((struct inflated *)limiter)->leased);
	free(limiter);
}

/* Puts @key to rest: the last file of it was closed. */
static void deflate_key(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct limiter *l = key->inflated;

	assert(!l->turns.queue.length && !heap_holds(&l->turns.turn));
	heap_remove(&schedule->deadlines, &l->due);
	unlist_key(keys, key);
	if (l->bucket_count)
		bucket_refill(l->buckets, schedule->now_ns);
	tunings_rest(&keys->tunings, l->bucket_count ? l->buckets : NULL, schedule->now_ns,
		     &key->level);
	key->granted = l->counters[COUNTER_GRANTED];
	key->served = saturate_count(l->counters[COUNTER_SERVED]);
	key->refused = saturate_count(l->counters[COUNTER_REFUSED]);
	list_key(keys, key, key->granted ? KEYS_USED : KEYS_FRESH);
	free_inflated(l);
	if (!heap_holds(&keys->due))
		plan_sweep(schedule, keys, 0);
}

int keys_lease(struct schedule *schedule, struct limiter *limiter, uint32_t leaves)
{
	struct inflated *inflated = (struct inflated *)limiter;
	const struct settings old = *limiter->settings;

	if (limiter->removed)
		return 0;
	if (leaves && !inflated->leased) {
		inflated->leased = malloc(sizeof(*inflated->leased));
		if (!inflated->leased)
			return -ENOMEM;
	}
	inflated->leaves = leaves;
	if (inflated->leased) {
		*inflated->leased = key_settings(limiter->parent, leaves);
		limiter->settings = inflated->leased;
		limiter_follow(schedule, limiter, &old, limiter->buckets, false);
	}
	return 0;
}

struct key_lease *keys_lease_of(const struct limiter *limiter)
{
	return ((const struct inflated *)limiter)->lease;
}

void keys_set_lease(struct limiter *limiter, struct key_lease *lease)
{
	((struct inflated *)limiter)->lease = lease;
}

void keys_bring(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	if (!limiter->bucket_count)
		return;
	bucket_refill(limiter->buckets, schedule->now_ns);
	bucket_put(limiter->buckets, tokens, 0);
	limiter_settle(schedule, limiter);
}

void keys_close(struct schedule *schedule, struct limiter *inflated)
{
	assert(inflated->references);
	if (--inflated->references)
		return;
	if (inflated->removed)
		free_inflated(inflated);
	else
		deflate_key(schedule, inflated->parent->keys, keys_key(inflated));
}

uint32_t keys_count(const struct limiter *limiter)
{
	return limiter->keys ? limiter->keys->by_name.count : 0;
}

uint32_t keys_waiting(const struct limiter *limiter)
{
	uint32_t waiting = 0;

	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		waiting += key->turns.queue.length;
	return waiting;
}

struct limiter *keys_next_open(const struct limiter *limiter, const struct limiter *key)
{
	const struct key *next;

	if (!limiter->keys)
		return NULL;
	next = key ? list_next(keys_key(key), by_use) : oldest_key(limiter->keys, KEYS_OPEN);
	return next ? next->inflated : NULL;
}

struct key *keys_from(const struct limiter *limiter, uint64_t *place)
{
	struct chain_link *link = limiter->keys ? chains_from(&limiter->keys->by_name, place)
						: NULL;

	return link ? key_of_name(link) : NULL;
}

/* Returns the least number of a tuning that an idle key needs. */
static uint32_t needed_tuning(const struct keys *keys)
{
	uint32_t least = tunings_number(&keys->tunings);

	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		const struct key *oldest = oldest_key(keys, id);

		if (oldest && oldest->level.tuning < least)
			least = oldest->level.tuning;
	}
	return least;
}

bool keys_follow(struct schedule *schedule, struct limiter *limiter, bool full,
		 struct settings *old)
{
	struct keys *keys = limiter->keys;
	const struct tuning *now;
	struct bucket bucket;
	bool limited, tuned, first, leased = false;

	if (limiter->partition)
		return false;
	/* Where keys do not begin full, that counts from now on, even without a key. */
	if (!keys && !full && !rate_is_unlimited(&limiter->settings->key_rate))
		keys = begin_keys(schedule, limiter, false);
	if (!keys)
		return false;
	*old = keys->settings;
	keys->settings = key_settings(limiter, 0);
	now = tunings_now(&keys->tunings);
	first = full && tunings_are_new(&keys->tunings);
	tuned = rate_compare(&now->rate, &limiter->settings->key_rate) ||
		now->burst != limiter->settings->key_burst;
	if (tuned) {
		tunings_add(&keys->tunings, &limiter->settings->key_rate,
			    limiter->settings->key_burst, full, needed_tuning(keys),
			    schedule->now_ns);
		limited = tunings_bucket(&keys->tunings, &keys->unknown, schedule->now_ns, &bucket);
		tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns,
			     &keys->unknown);
	}
	for (struct key *k = oldest_key(keys, KEYS_OPEN); k; k = list_next(k, by_use)) {
		const struct inflated *inflated = (struct inflated *)k->inflated;

		if (inflated->leased) {
			*inflated->leased = key_settings(limiter, inflated->leaves);
			leased = true;
		}
		/* Before a token of it can be taken. */
		if (first && tuned && k->inflated->bucket_count &&
		    !rate_is_unlimited(&limiter->settings->key_rate)) {
			bucket_retune(&k->inflated->buckets[0], &limiter->settings->key_rate,
				      limiter->settings->key_burst, 0, schedule->now_ns);
			bucket_fill(&k->inflated->buckets[0]);
		}
	}
	plan_sweep(schedule, keys, 0);
	return tuned || leased || old->enforcement != keys->settings.enforcement;
}

void keys_remove(struct schedule *schedule, struct limiter *limiter)
{
	struct keys *keys = limiter->keys;
	struct key *key;

	if (!keys)
		return;
	while ((key = oldest_key(keys, KEYS_OPEN))) {
		struct limiter *l = key->inflated;

		limiter_evict(schedule, l);
		l->removed = true;
		l->settings = &SETTINGS_DEFAULT; /* the keys' own go before the last reference */
		((struct inflated *)l)->key = NULL;
		forget_key(schedule, keys, key);
		if (!l->references)
			free_inflated(l);
	}
	keys->limiter = NULL;
	limiter->keys = NULL;
	heap_place(&schedule->forgets, &keys->due, schedule->now_ns);
}

static struct keys *keys_of_due(struct heap_node *node)
{
	return container_of(node, struct keys, due);
}

/* Frees up to @most of keys whose limiter is gone, then the rest. Tells whether keys are left. */
static bool dissolve_keys(struct schedule *schedule, struct keys *keys, unsigned int most)
{
	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		while (oldest_key(keys, id)) {
			if (!most--)
				return true;
			forget_key(schedule, keys, oldest_key(keys, id));
		}
	}
	assert(!keys->by_name.count);
	heap_remove(&schedule->forgets, &keys->due);
	tunings_free(&keys->tunings);
	free(keys);
	return false;
}

void keys_run(struct schedule *schedule)
{
	for (int i = 0; i < KEYS_SWEEPS && keys_next_ns(schedule) <= schedule->now_ns; i++) {
		struct keys *keys = keys_of_due(schedule->forgets.root);

		if (keys->limiter) {
			bool more = sweep_keys(schedule, keys, KEYS_SWEEP);

			plan_sweep(schedule, keys, more ? schedule->now_ns + KEYS_PAUSE_NS : 0);
		} else if (dissolve_keys(schedule, keys, KEYS_SWEEP)) {
			heap_place(&schedule->forgets, &keys->due,
				   schedule->now_ns + KEYS_PAUSE_NS);
		}
	}
}

void keys_free(struct schedule *schedule)
{
	while (schedule->forgets.root)
		(void)dissolve_keys(schedule, keys_of_due(schedule->forgets.root), UINT32_MAX);
	assert(!schedule->keys_by_id.count);
}
