/* key_overrides - keys with a rate or a burst of their own, see key_overrides.h. */
#include "core/limiter/key_overrides.h"
#include "core/limiter/holding.h"
#include "core/limiter/key_memory.h"
#include "core/limiter/key_units.h"

#include <string.h>

const struct override *key_overrides_of(const struct keys *keys, const struct key *key,
					struct override *room)
{
	if (!key->overridden)
		return NULL;
	return overrides_find(keys->overrides, key->name, key->name_bytes, room) ? room : NULL;
}

enum key_list_id key_overrides_list(const struct key *key)
{
	if (key->overridden)
		return KEYS_OVERRIDDEN;
	return key->owes || key->rests || key->count.granted ? KEYS_USED : KEYS_FRESH;
}

static void relist(struct keys *keys, struct key *key)
{
	key_memory_unlist(keys, key);
	key_memory_list(keys, key, key_overrides_list(key));
}

/* Leaves in @bucket what a key that is not remembered may have. */
static void leave_unknown(const struct keys *keys, uint64_t now_ns, struct bucket *bucket)
{
	struct bucket unknown;

	if (!tunings_bucket(&keys->tunings, &keys->unknown, NULL, now_ns, &unknown) ||
	    unknown.level >= (int64_t)unknown.burst)
		return;
	bucket_leave(bucket, unknown.level > 0 ? (uint64_t)unknown.level : 0);
}

bool key_overrides_begin(const struct schedule *schedule, struct keys *keys, struct key *key)
{
	uint64_t now_ns = schedule->now_ns;
	const struct override *override;
	struct override room;
	struct bucket bucket;
	bool limited;

	key->overridden = overrides_find(keys->overrides, key->name, key->name_bytes, &room);
	override = key_overrides_of(keys, key, &room);
	if (!override)
		return false;
	limited = tunings_begin(&keys->tunings, override, keys->since_ns, &bucket);
	if (limited && keys->whole)
		bucket_fill(&bucket);
	if (limited) {
		bucket_refill(&bucket, now_ns);
		leave_unknown(keys, now_ns, &bucket);
	}
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, now_ns, &key->level);
	relist(keys, key);
	return true;
}

struct following {
	struct keys *keys;
	const struct overrides *now;
	uint64_t now_ns;
	bool full;
	bool any_open;
};

static bool follow_key(void *argument, const char *name)
{
	struct following *following = argument;
	struct keys *keys = following->keys;
	struct key *key = keys_named(keys, name, strlen(name));
	struct override old_room, room;
	const struct override *old;
	struct bucket bucket;
	bool limited;

	if (!key)
		return true;
	old = key_overrides_of(keys, key, &old_room);
	key->overridden = overrides_find(following->now, name, strlen(name), &room);
	if (key->list == KEYS_OPEN) {
		following->any_open = true;
		return true;
	}
	limited = tunings_override(&keys->tunings, &key->level, old, key->overridden ? &room : NULL,
				   following->full, following->now_ns, &bucket);
	tunings_end_level(&key->level, limited ? &bucket : NULL);
	tunings_rest(&keys->tunings, limited ? &bucket : NULL, following->now_ns, &key->level);
	key_units_override(keys, key, old, key->overridden ? &room : NULL, following->full,
			   following->now_ns);
	relist(keys, key);
	return true;
}

bool key_overrides_follow(const struct schedule *schedule, struct keys *keys, bool full)
{
	struct overrides *now = limiter_settings(keys->limiter)->overrides;
	struct following following = {
		.keys = keys, .now = now, .now_ns = schedule->now_ns, .full = full};

	if (now == keys->overrides)
		return false;
	overrides_compare(keys->overrides, now, follow_key, &following);
	overrides_drop(keys->overrides);
	keys->overrides = overrides_hold(now);
	if (!keys->whole)
		keys_begin_at(keys, schedule->now_ns);
	return following.any_open;
}
