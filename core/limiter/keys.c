/* keys - per-key buckets of a limiter, see keys.h. */
#include "core/limiter/keys.h"
#include "core/limiter/holding.h"
#include "core/limiter/key_memory.h"
#include "core/limiter/key_overrides.h"
#include "core/limiter/key_units.h"
#include "core/limiter/owing.h"
#include "core/limiter/slots.h"
#include "core/limiter/tree.h"
#include "core/base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A key while files of it are open. */
struct inflated {
	struct limiter limiter; /* first */
	struct sibling sibling; /* of its turns */
	struct bucket bucket;
	struct key *key;	 /* borrowed; NULL once it is gone */
	struct settings *own;	 /* owned: once it was leased, or has overrides; or NULL */
	struct key_lease *lease; /* borrowed */
	uint32_t leaves;
	struct list_link waiting; /* in keys->waiting, while readers or openers wait here */
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

/* Returns the part of what is overridden of a key of which this host leases @leaves. */
static struct key_part part_of(const struct limiter *limiter, uint32_t leaves)
{
	return limiter->holding ? holding_key_part(limiter->holding, leaves)
				: (struct key_part){1, 1};
}

/*
 * Gives the settings of a key of @limiter of which @leaves are leased, and of which is overridden
 * what @override says (NULL: nothing).
 */
static struct settings key_settings(const struct limiter *limiter, uint32_t leaves,
				    const struct override *override)
{
	const struct key_part part = part_of(limiter, leaves);
	struct settings settings = SETTINGS_DEFAULT;

	settings.enforcement = limiter->settings->enforcement;
	settings.queue_max = limiter->settings->queue_max;
	settings.wait_max_ns = limiter->settings->wait_max_ns;
	settings.burst = limiter->settings->key_burst;
	settings.limits[0].rate = limiter->settings->key_rate;
	if (leaves && !rate_is_unlimited(&settings.limits[0].rate) && limiter->holding)
		holding_key_share(limiter->holding, leaves, &settings.limits[0].rate,
				  &settings.burst);
	if (override)
		settings_override(override, &part, &settings.limits[0].rate, &settings.burst);
	settings.limit_count = !rate_is_unlimited(&settings.limits[0].rate);
	key_units_limits(limiter, override, &part, &settings);
	/* Hosts of a fleet cannot have it: see change.c. */
	if (limiter->settings->key_concurrency != UINT32_MAX && !limiter->holding)
		settings.slots = (struct slot_limit){.kind = SLOTS_COUNT,
						     .count = limiter->settings->key_concurrency};
	return settings;
}

static void free_keys(struct keys *keys)
{
	tunings_free(&keys->tunings);
	key_units_free(keys);
	overrides_drop(keys->overrides);
	free(keys);
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
			 part_of(limiter, 0), schedule->now_ns)) {
		free(keys);
		return NULL;
	}
	keys->limiter = limiter;
	keys->wall = &schedule->pool.wall;
	keys->ledger = schedule->ledger;
	keys->settings = key_settings(limiter, 0, NULL);
	keys->overrides = overrides_hold(limiter_settings(limiter)->overrides);
	keys->whole = full;
	keys_begin_at(keys, schedule->now_ns);
	keys->by_name.hash = hash_name;
	keys->by_name.seed = schedule->key_seed;
	keys->unknown.limiter = limiter->id;
	bucket = tunings_now(&keys->tunings)->bucket;
	limited = tunings_now(&keys->tunings)->limited;
	if (limited && full)
		bucket_fill(&bucket);
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &keys->unknown);
	if (key_units_begin(keys, full, schedule->now_ns)) {
		free_keys(keys);
		return NULL;
	}
	schedule->keys_by_id.hash = hash_id;
	limiter->keys = keys;
	return keys;
}

struct key *keys_named(const struct keys *keys, const char *name, size_t length)
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

/* Counts the tokens that accrued in @key, which is idle, and makes it the newest. */
static void touch_key(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct override room;
	const struct override *override = key_overrides_of(keys, key, &room);
	struct bucket bucket;
	bool limited = tunings_bucket(&keys->tunings, &key->level, override, schedule->now_ns,
				      &bucket);

	tunings_end_level(&key->level, limited ? &bucket : NULL);
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &key->level);
	if (key->rests)
		key_units_touch(keys, key, override, schedule->now_ns);
	key_memory_unlist(keys, key);
	key_memory_list(keys, key, (enum key_list_id)key->list);
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
	if (key_units_recall(keys, key, schedule->now_ns) ||
	    chains_insert(&keys->by_name, &key->by_name)) {
		key_units_forget(key);
		free(key);
		return -ENOMEM;
	}
	if (chains_insert(&schedule->keys_by_id, &key->by_id)) {
		chains_remove(&keys->by_name, &key->by_name);
		key_units_forget(key);
		free(key);
		return -ENOMEM;
	}
	users_add(schedule->users, uid, BOUND_KEYS);
	key_memory_list(keys, key, key_overrides_list(key));
	if (!key_overrides_begin(schedule, keys, key))
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
	*key = keys_named(*keys, name, length);
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
	(void)key_memory_sweep(schedule, keys, 2);
	if (keys->lists[KEYS_FRESH].count >= KEYS_FRESH_MAX)
		(void)key_memory_evict(schedule, keys);
	if (key_memory_count(keys) >= limiter->settings->keys_max &&
	    !key_memory_evict(schedule, keys))
		return -ENOSPC;
	if (!key_memory_has_room(schedule, keys, uid))
		return -ENOSPC;
	err = make_key(schedule, keys, name, uid, ++schedule->last_key, key);
	if (!heap_holds(&keys->due))
		key_memory_plan(schedule, keys, 0);
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

/* Gives @inflated the settings of its own that count now. False: no memory, and nothing changed. */
static bool set_own(const struct keys *keys, struct inflated *inflated)
{
	struct override room;

	if (!inflated->own)
		inflated->own = malloc(sizeof(*inflated->own));
	if (!inflated->own)
		return false;
	*inflated->own = key_settings(keys->limiter, inflated->leaves,
				      key_overrides_of(keys, inflated->key, &room));
	inflated->limiter.settings = inflated->own;
	return true;
}

uint64_t keys_whole_burst(const struct limiter *inflated, uint32_t i)
{
	const struct settings *whole = inflated->parent->holding->settings;
	const char *unit = inflated->settings->limits[i].unit;
	const struct key *key = keys_key(inflated);
	const struct override *override = NULL;
	const struct limit *limit = NULL;
	struct override room;

	if (key)
		override = key_overrides_of(inflated->parent->keys, key, &room);
	if (*unit && override && override->has_rate)
		limit = key_units_find(override->units, override->unit_count, unit, 0);
	if (*unit && (!limit || !limit->burst))
		limit = key_units_find(settings_key_units(whole), whole->key_unit_count, unit, 0);
	if (limit && limit->burst)
		return limit->burst;
	return override && override->burst ? override->burst : whole->key_burst;
}

/* Returns the memory of the buckets of @inflated, if it can have units. */
static struct key_room *room_of(const struct limiter *limiter)
{
	const struct inflated *inflated = (const struct inflated *)limiter;

	return limiter->buckets == &inflated->bucket ? NULL : (struct key_room *)limiter->buckets;
}

/* Gives @inflated its buckets, @key's, in @room (or NULL). */
static void open_buckets(struct schedule *schedule, struct keys *keys, struct key *key,
			 struct key_room *room, struct inflated *inflated)
{
	struct limiter *l = &inflated->limiter;
	const struct override *override;
	struct override of_key;

	override = key_overrides_of(keys, key, &of_key);
	l->buckets = room ? room->buckets.buckets : &inflated->bucket;
	l->plain_count = tunings_bucket(&keys->tunings, &key->level, override, schedule->now_ns,
					l->buckets);
	/* A log is the bucket's from now on. */
	tunings_end_level(&key->level, l->plain_count ? l->buckets : NULL);
	key_units_open(keys, key, override, room, l, schedule->now_ns);
}

struct limiter *keys_open(struct schedule *schedule, struct limiter *limiter, struct key *key)
{
	struct keys *keys = limiter->keys;
	struct key_room *room = NULL;
	struct inflated *inflated;
	struct limiter *l;
	uint64_t finish;

	if (key->list == KEYS_OPEN) {
		key->inflated->references++;
		return key->inflated;
	}
	if (turns_prepare(&limiter->turns))
		return NULL;
	inflated = calloc(1, sizeof(*inflated));
	if (!inflated)
		return NULL;
	l = &inflated->limiter;
	l->parent = limiter;
	l->is_key = true;
	inflated->key = key;
	l->settings = &keys->settings;
	if (keys->units)
		room = key_units_room(keys);
	if ((keys->units && !room) || (key->overridden && !set_own(keys, inflated))) {
		free(room ? room->rest : NULL);
		free(room);
		free(inflated);
		return NULL;
	}
	turns_place(&l->turns, &inflated->sibling, l->settings);
	finish = owing_end(keys, key);
	if (finish)
		order_resume(limiter->turns.order, &inflated->sibling, finish);
	open_buckets(schedule, keys, key, room, inflated);
	l->counters[COUNTER_SERVED] = key->served;
	l->counters[COUNTER_REFUSED] = key->refused;
	l->references = 1;
	key_memory_unlist(keys, key);
	key->inflated = l;
	key_memory_list(keys, key, KEYS_OPEN);
	return l;
}

static void free_inflated(struct limiter *limiter)
{
	if (limiter->holds_parent)
		limiter_drop(limiter->parent);
	slots_free(limiter);
	for (uint32_t i = 0; i < limiter->bucket_count; i++)
		bucket_end(&limiter->buckets[i]);
	if (room_of(limiter))
		key_units_free_room(room_of(limiter));
	turns_free(&limiter->turns);
	free(((struct inflated *)limiter)->own);
	free(limiter);
}

/* Puts @key to rest: the last file of it was closed. */
static void deflate_key(struct schedule *schedule, struct keys *keys, struct key *key)
{
	struct limiter *l = key->inflated;

	assert(!l->turns.queue.length && !heap_holds(&l->turns.sibling->turn));
	assert(!slots_used(l) && !slots_waiting(l));
	heap_remove(&schedule->deadlines, &l->due);
	key_memory_unlist(keys, key);
	for (uint32_t i = 0; i < l->bucket_count; i++)
		bucket_refill(&l->buckets[i], schedule->now_ns);
	tunings_rest(&keys->tunings, key_units_have_flow(l) ? l->buckets : NULL, schedule->now_ns,
		     &key->level);
	key_units_close(keys, key, room_of(l), l, schedule->now_ns);
	l->bucket_count = 0; /* a log is the key's again */
	key->served = saturate_count(l->counters[COUNTER_SERVED]);
	key->refused = saturate_count(l->counters[COUNTER_REFUSED]);
	key_memory_list(keys, key, key_overrides_list(key));
	owing_begin(keys, key, l->turns.sibling);
	free_inflated(l);
	if (!heap_holds(&keys->due))
		key_memory_plan(schedule, keys, 0);
}

int keys_lease(struct schedule *schedule, struct limiter *limiter, uint32_t leaves)
{
	struct inflated *inflated = (struct inflated *)limiter;
	const struct settings old = *limiter->settings;

	if (limiter->removed)
		return 0;
	if (leaves && !inflated->own) {
		inflated->own = malloc(sizeof(*inflated->own));
		if (!inflated->own)
			return -ENOMEM;
	}
	inflated->leaves = leaves;
	if (inflated->own && set_own(limiter->parent->keys, inflated))
		limiter_follow(schedule, limiter, &old, limiter->buckets, false);
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
	return limiter->keys ? limiter->keys->waiters : 0;
}

void keys_count_waiter(struct limiter *inflated, bool joins)
{
	struct list_link *link = &((struct inflated *)inflated)->waiting;
	uint32_t waiters = inflated->turns.queue.length + slots_waiting(inflated);
	struct keys *keys = inflated->parent->keys;

	keys->waiters = joins ? keys->waiters + 1 : keys->waiters - 1;
	if (joins && waiters == 1)
		list_append(&keys->waiting, link);
	else if (!joins && !waiters)
		list_remove(&keys->waiting, link);
}

struct limiter *keys_next_waiting(const struct limiter *limiter, struct limiter *key)
{
	struct inflated *next;

	if (!limiter->keys)
		return NULL;
	next = key ? list_next((struct inflated *)key, waiting)
		   : list_first(&limiter->keys->waiting, struct inflated, waiting);
	return next ? &next->limiter : NULL;
}

struct limiter *keys_next_open(const struct limiter *limiter, const struct limiter *key)
{
	const struct key *next;

	if (!limiter->keys)
		return NULL;
	next = key ? list_next(keys_key(key), by_use) : key_memory_oldest(limiter->keys, KEYS_OPEN);
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

	for (enum key_list_id id = KEYS_FRESH; id < KEYS_OPEN; id++) {
		const struct key *oldest = key_memory_oldest(keys, id);

		if (oldest && oldest->level.tuning < least)
			least = oldest->level.tuning;
	}
	return least;
}

/* Gives each open key of @keys memory for units and windows. */
static int make_rooms(const struct keys *keys)
{
	int err = 0;

	for (struct key *k = key_memory_oldest(keys, KEYS_OPEN); k && !err;
	     k = list_next(k, by_use))
		err = key_units_make_room(keys, k->inflated, room_of(k->inflated));
	return err;
}

int keys_prepare(const struct schedule *schedule, struct limiter *limiter,
		 const struct settings *settings)
{
	struct override override;

	if (limiter->keys && key_units_are_in(settings) &&
	    (key_units_prepare(limiter->keys, settings, schedule->now_ns) ||
	     make_rooms(limiter->keys)))
		return -ENOMEM;
	if (!limiter->keys || !settings->overrides)
		return 0;
	for (struct key *k = key_memory_oldest(limiter->keys, KEYS_OPEN); k;
	     k = list_next(k, by_use)) {
		struct inflated *inflated = (struct inflated *)k->inflated;

		if (inflated->own ||
		    !overrides_find(settings->overrides, k->name, k->name_bytes, &override))
			continue;
		inflated->own = malloc(sizeof(*inflated->own));
		if (!inflated->own)
			return -ENOMEM;
	}
	return 0;
}

/* Adds a tuning if what counts for keys is another now. Tells whether it is. */
static bool add_tuning(struct schedule *schedule, struct keys *keys, bool full, bool first)
{
	const struct settings *settings = keys->limiter->settings;
	const struct tuning *now = tunings_now(&keys->tunings);
	struct key_part part = part_of(keys->limiter, 0);
	struct bucket bucket;
	bool limited, overrides;

	overrides = keys->overrides || limiter_settings(keys->limiter)->overrides;
	if (!rate_compare(&now->rate, &settings->key_rate) &&
	    rate_limits_alike(&now->rate, &settings->key_rate) &&
	    now->burst == settings->key_burst && (!overrides || key_part_equal(&now->part, &part)))
		return false;
	tunings_add(&keys->tunings, &settings->key_rate, settings->key_burst, part, full,
		    needed_tuning(keys), schedule->now_ns);
	limited = tunings_bucket(&keys->tunings, &keys->unknown, NULL, schedule->now_ns, &bucket);
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, schedule->now_ns, &keys->unknown);
	if (!keys->limiter->holding)
		return true;
	keys->whole = first;
	keys_begin_at(keys, schedule->now_ns);
	return true;
}

/* Has the open @key follow the settings of its limiter; it begins @full. */
static void follow_open(struct schedule *schedule, struct keys *keys, struct key *key, bool full)
{
	struct inflated *inflated = (struct inflated *)key->inflated;
	struct limiter *l = key->inflated;

	/* Without memory, which is got before a change is stored, it follows when it is closed. */
	(void)key_units_make_room(keys, l, room_of(l));
	if (inflated->own || key->overridden)
		(void)set_own(keys, inflated);
	/* Before a token of it can be taken. */
	key_units_fill(keys, l, room_of(l), schedule->now_ns);
	if (!full || !key_units_have_flow(l) || !settings_plain_count(l->settings) ||
	    rate_is_window(&l->settings->limits[0].rate))
		return;
	bucket_retune(&l->buckets[0], &l->settings->limits[0].rate, settings_burst(l->settings, 0),
		      0, schedule->now_ns);
	bucket_fill(&l->buckets[0]);
}

bool keys_follow(struct schedule *schedule, struct limiter *limiter, bool full,
		 struct settings *old)
{
	struct keys *keys = limiter->keys;
	bool tuned, units_tuned, first, overridden, own = false;

	if (limiter->partition)
		return false;
	/* Where keys do not begin full, that counts from now on, even without a key. */
	if (!keys && !full &&
	    (!rate_is_unlimited(&limiter->settings->key_rate) ||
	     limiter->settings->key_unit_count || limiter_settings(limiter)->overrides))
		keys = begin_keys(schedule, limiter, false);
	if (!keys)
		return false;
	*old = keys->settings;
	keys->settings = key_settings(limiter, 0, NULL);
	first = full && tunings_are_new(&keys->tunings);
	tuned = add_tuning(schedule, keys, full, first);
	units_tuned = key_units_follow(keys, full, schedule->now_ns);
	overridden = key_overrides_follow(schedule, keys, full);
	key_memory_plan(schedule, keys, 0);
	/* Without a share of a fleet keys that are open depend on nothing else. */
	if (!limiter->holding && !tuned && !units_tuned && !overridden &&
	    !memcmp(old, &keys->settings, sizeof(*old)))
		return false;
	for (struct key *k = key_memory_oldest(keys, KEYS_OPEN); k; k = list_next(k, by_use)) {
		follow_open(schedule, keys, k, first && tuned);
		own |= ((struct inflated *)k->inflated)->own != NULL;
	}
	return tuned || units_tuned || own ||
	       memcmp(old->limits, keys->settings.limits, sizeof(old->limits)) != 0 || overridden ||
	       old->enforcement != keys->settings.enforcement ||
	       memcmp(&old->slots, &keys->settings.slots, sizeof(old->slots)) != 0;
}

bool keys_can_follow(const struct limiter *key)
{
	const struct limit *first = key->settings->limits;
	uint32_t count = key->settings->limit_count;

	return room_of(key) ||
	       (count <= 1 && !(count && (*first->unit || rate_is_window(&first->rate))));
}

struct settings keys_former(struct limiter *key, const struct settings *old)
{
	struct settings its = *old;

	key_units_former(key, room_of(key), &its);
	return its;
}

void keys_end_windows(const struct limiter *limiter)
{
	const struct keys *keys = limiter->keys;

	if (keys && keys->number)
		keys->ledger->end(keys->ledger, keys->number);
}

void keys_remove(struct schedule *schedule, struct limiter *limiter)
{
	struct keys *keys = limiter->keys;
	struct key *key;

	if (!keys)
		return;
	while ((key = key_memory_oldest(keys, KEYS_OPEN))) {
		struct limiter *l = key->inflated;

		limiter_evict(schedule, l);
		l->removed = true;
		l->settings = &SETTINGS_DEFAULT; /* the keys' own go before the last reference */
		((struct inflated *)l)->key = NULL;
		/* In a fleet its slots may be open still, and are those of the limiter, too. */
		if (slots_used(l)) {
			limiter_hold(limiter);
			l->holds_parent = true;
		}
		key_memory_forget(schedule, keys, key);
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
	for (enum key_list_id id = KEYS_FRESH; id < KEYS_OPEN; id++) {
		while (key_memory_oldest(keys, id)) {
			if (!most--)
				return true;
			key_memory_forget(schedule, keys, key_memory_oldest(keys, id));
		}
	}
	assert(!keys->by_name.count);
	heap_remove(&schedule->forgets, &keys->due);
	free_keys(keys);
	return false;
}

void keys_run(struct schedule *schedule)
{
	for (int i = 0; i < KEYS_SWEEPS && keys_next_ns(schedule) <= schedule->now_ns; i++) {
		struct keys *keys = keys_of_due(schedule->forgets.root);

		if (keys->limiter) {
			bool more = key_memory_sweep(schedule, keys, KEYS_SWEEP);

			key_memory_plan(schedule, keys,
					more ? schedule->now_ns + KEYS_PAUSE_NS : 0);
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
