/*
 * key_memory - how long keys of a limiter are remembered, see keys.h.
 *
 * A key without overrides is forgotten when it is full, or for another one. A key that has some is
 * forgotten when it is full alone: the bucket `unknown` does not tell its level. Idle ones are not
 * counted in keys_max: there are no more than there are overrides.
 */
#ifndef RATEFS_CORE_KEY_MEMORY_H
#define RATEFS_CORE_KEY_MEMORY_H

#include "core/limiter/keys.h"

/* Returns the key that was used first of a list, or NULL. */
static inline struct key *key_memory_oldest(const struct keys *keys, enum key_list_id id)
{
	return list_first(&keys->lists[id].keys, struct key, by_use);
}

/* Returns the number of keys as keys_max counts them. */
static inline uint32_t key_memory_count(const struct keys *keys)
{
	return keys->by_name.count - keys->lists[KEYS_OVERRIDDEN].count;
}

/* Takes @key out of its list, and puts it last into another. */
void key_memory_unlist(struct keys *keys, struct key *key);
void key_memory_list(struct keys *keys, struct key *key, enum key_list_id id);

/* Frees @key, which is in a list. */
void key_memory_forget(struct schedule *schedule, struct keys *keys, struct key *key);

/*
 * Sets the time of the next sweep: when a key can be forgotten, and not before @least_ns. A key
 * behind the oldest is full no later than a whole burst takes after its last use.
 */
void key_memory_plan(struct schedule *schedule, struct keys *keys, uint64_t least_ns);

/*
 * Leaves in @unknown, a level by @tunings, no more than @level has, which is of a key that is about
 * to be forgotten.
 */
void key_memory_join(const struct tunings *tunings, const struct key_level *level, uint64_t now_ns,
		     struct key_level *unknown);

/* Forgets one idle key, of those that lose nothing by it if there are some. False: none is idle. */
bool key_memory_evict(struct schedule *schedule, struct keys *keys);

/* Forgets up to @most keys that are full, or too many. Tells whether there may be more. */
bool key_memory_sweep(struct schedule *schedule, struct keys *keys, unsigned int most);

/* Tells whether there is room for a key more of @uid, or one of its own was forgotten for it. */
bool key_memory_has_room(struct schedule *schedule, struct keys *keys, uint32_t uid);

#endif
