/* forget - which keys of a limiter are remembered, and until when; see keys.h. */
#include "core/limiter/keys.h"

#include <assert.h>
#include <stdlib.h>

static struct keys *keys_of_due(struct heap_node *node)
{
	return container_of(node, struct keys, due);
}

void keys_unlist(struct keys *keys, struct key *key)
{
	struct key_list *list = &keys->lists[key->list];

	list_remove(&list->keys, &key->by_use);
	list->count--;
}

void keys_list(struct keys *keys, struct key *key, enum key_list_id id)
{
	struct key_list *list = &keys->lists[id];

	key->list = (uint8_t)id;
	list_append(&list->keys, &key->by_use);
	list->count++;
}

void keys_forget(struct schedule *schedule, struct keys *keys, struct key *key)
{
	keys_unlist(keys, key);
	chains_remove(&keys->by_name, &key->by_name);
	chains_remove(&schedule->keys_by_id, &key->by_id);
	users_drop(schedule->users, key->uid, BOUND_KEYS);
	free(key);
}

/* When @key, which is idle, need not be remembered any more. */
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
 * When to look for what can be forgotten. One that waits behind the oldest is full no later than a
 * whole burst takes after its last use.
 */
void keys_plan(struct schedule *schedule, struct keys *keys, uint64_t least_ns)
{
	const struct key *fresh = keys_oldest(keys, KEYS_FRESH);
	const struct key *used = keys_oldest(keys, KEYS_USED);
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

/* Room for one more, or a key less: of those that lose nothing by it if there are some. */
bool keys_evict(struct schedule *schedule, struct keys *keys)
{
	struct key *key = keys_oldest(keys, KEYS_FRESH);
	struct bucket its, unknown;

	if (key) {
		keys_forget(schedule, keys, key);
		return true;
	}
	key = keys_oldest(keys, KEYS_USED);
	if (!key)
		return false;
	if (tunings_bucket(&keys->tunings, &key->level, schedule->now_ns, &its)) {
		tunings_bucket(&keys->tunings, &keys->unknown, schedule->now_ns, &unknown);
		tunings_rest(&keys->tunings, is_above(&unknown, &its) ? &its : &unknown,
			     schedule->now_ns, &keys->unknown);
	}
	keys_forget(schedule, keys, key);
	return true;
}

/* Forgets up to @most of those that are full, or too many. Whether there may be more. */
bool keys_sweep(struct schedule *schedule, struct keys *keys, unsigned int most)
{
	uint64_t now_ns = schedule->now_ns;

	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		struct key *key;

		while ((key = keys_oldest(keys, id)) && full_ns(keys, key, now_ns) <= now_ns) {
			if (!most--)
				return true;
			keys_forget(schedule, keys, key);
		}
	}
	while (keys->by_name.count > keys->limiter->settings->keys_max) {
		if (!most--)
			return true;
		if (!keys_evict(schedule, keys))
			break;
	}
	return false;
}

/* Frees up to @most of keys whose limiter is gone, then the rest. */
static bool dissolve(struct schedule *schedule, struct keys *keys, unsigned int most)
{
	for (enum key_list_id id = KEYS_FRESH; id <= KEYS_USED; id++) {
		while (keys_oldest(keys, id)) {
			if (!most--)
				return true;
			keys_forget(schedule, keys, keys_oldest(keys, id));
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
	struct heap_node *first;

	for (int i = 0; i < KEYS_SWEEPS; i++) {
		struct keys *keys;

		first = schedule->forgets.root;
		if (!first || first->key > schedule->now_ns)
			return;
		keys = keys_of_due(first);
		if (keys->limiter) {
			bool more = keys_sweep(schedule, keys, KEYS_SWEEP);

			keys_plan(schedule, keys, more ? schedule->now_ns + KEYS_PAUSE_NS : 0);
		} else if (dissolve(schedule, keys, KEYS_SWEEP)) {
			heap_place(&schedule->forgets, &keys->due,
				   schedule->now_ns + KEYS_PAUSE_NS);
		}
	}
}

void keys_free(struct schedule *schedule)
{
	while (schedule->forgets.root)
		(void)dissolve(schedule, keys_of_due(schedule->forgets.root), UINT32_MAX);
	assert(!schedule->keys_by_id.count);
}
