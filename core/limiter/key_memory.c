/* key_memory - how long keys are remembered, see key_memory.h. */
#include "core/limiter/key_memory.h"
#include "core/limiter/key_overrides.h"
#include "core/limiter/key_units.h"
#include "core/limiter/owing.h"

#include <stdlib.h>

void key_memory_unlist(struct keys *keys, struct key *key)
{
	struct key_list *list = &keys->lists[key->list];

	list_remove(&list->keys, &key->by_use);
	list->count--;
}

void key_memory_list(struct keys *keys, struct key *key, enum key_list_id id)
{
	struct key_list *list = &keys->lists[id];

	key->list = id & KEY_LISTS_MASK;
	list_append(&list->keys, &key->by_use);
	list->count++;
}

void key_memory_forget(struct schedule *schedule, struct keys *keys, struct key *key)
{
	(void)owing_end(keys, key);
	key_units_forget(key);
	key_memory_unlist(keys, key);
	chains_remove(&keys->by_name, &key->by_name);
	chains_remove(&schedule->keys_by_id, &key->by_id);
	users_drop(schedule->users, key->uid, BOUND_KEYS);
	tunings_end_level(&key->level, NULL);
	free(key);
}

/* Returns when @key, which is idle, need not be remembered any more. */
static uint64_t full_ns(const struct keys *keys, const struct key *key, uint64_t now_ns)
{
	uint64_t at_ns = key->level.filled_ns + KEYS_LINGER_NS, full_at_ns = 0;
	const struct override *override;
	struct override room;
	struct bucket bucket;

	if (owing_is_ahead(keys, key))
		return now_ns + KEYS_LINGER_NS;
	if (key->list == KEYS_FRESH)
		return at_ns;
	override = key_overrides_of(keys, key, &room);
	if (tunings_bucket(&keys->tunings, &key->level, override, now_ns, &bucket))
		full_at_ns = bucket_when(&bucket, bucket.burst, now_ns);
	at_ns = full_at_ns > at_ns ? full_at_ns : at_ns;
	full_at_ns = key->rests ? key_units_full_ns(keys, key, override, now_ns) : 0;
	return full_at_ns > at_ns ? full_at_ns : at_ns;
}

/* Tells whether a key can be forgotten for another one. */
static bool has_idle(const struct keys *keys)
{
	return keys->lists[KEYS_FRESH].count || keys->lists[KEYS_USED].count;
}

void key_memory_plan(struct schedule *schedule, struct keys *keys, uint64_t least_ns)
{
	uint64_t at_ns = NEVER_NS;

	for (enum key_list_id id = KEYS_FRESH; id < KEYS_OPEN; id++) {
		const struct key *oldest = key_memory_oldest(keys, id);
		uint64_t full_at_ns = oldest ? full_ns(keys, oldest, schedule->now_ns) : NEVER_NS;

		at_ns = full_at_ns < at_ns ? full_at_ns : at_ns;
	}
	if (has_idle(keys) && key_memory_count(keys) > keys->limiter->settings->keys_max)
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

void key_memory_join(const struct tunings *tunings, const struct key_level *level, uint64_t now_ns,
		     struct key_level *unknown)
{
	struct bucket its, others;

	if (!tunings_bucket(tunings, level, NULL, now_ns, &its))
		return;
	tunings_bucket(tunings, unknown, NULL, now_ns, &others);
	tunings_rest_joined(tunings, is_above(&others, &its) ? &its : &others, now_ns, unknown);
}

bool key_memory_evict(struct schedule *schedule, struct keys *keys)
{
	struct key *key = key_memory_oldest(keys, KEYS_FRESH);

	if (key) {
		key_memory_forget(schedule, keys, key);
		return true;
	}
	key = key_memory_oldest(keys, KEYS_USED);
	if (!key)
		return false;
	key_memory_join(&keys->tunings, &key->level, schedule->now_ns, &keys->unknown);
	key_units_join_unknown(keys, key, schedule->now_ns);
	key_memory_forget(schedule, keys, key);
	return true;
}

bool key_memory_sweep(struct schedule *schedule, struct keys *keys, unsigned int most)
{
	uint64_t now_ns = schedule->now_ns;

	for (enum key_list_id id = KEYS_FRESH; id < KEYS_OPEN; id++) {
		struct key *key;

		while ((key = key_memory_oldest(keys, id)) &&
		       full_ns(keys, key, now_ns) <= now_ns) {
			if (!most--)
				return true;
			key_memory_forget(schedule, keys, key);
		}
	}
	while (key_memory_count(keys) > keys->limiter->settings->keys_max) {
		if (!most--)
			return true;
		if (!key_memory_evict(schedule, keys))
			break;
	}
	return false;
}

bool key_memory_has_room(struct schedule *schedule, struct keys *keys, uint32_t uid)
{
	const struct key *oldest;

	if (!users_check(schedule->users, uid, BOUND_KEYS, NULL))
		return true;
	oldest = key_memory_oldest(keys, KEYS_FRESH);
	if (!oldest)
		oldest = key_memory_oldest(keys, KEYS_USED);
	return oldest && oldest->uid == uid && key_memory_evict(schedule, keys);
}
