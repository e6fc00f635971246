/*
 * key_overrides - keys with a rate or a burst of their own (core/values/overrides.h).
 *
 * An override counts at once, for readers that wait, too; the level of the bucket stays. A new key
 * with overrides begins full, as others do; but with no more than a key that is not remembered may
 * have, and in a fleet with what flowed in since this host's share changed last.
 */
#ifndef RATEFS_CORE_KEY_OVERRIDES_H
#define RATEFS_CORE_KEY_OVERRIDES_H

#include "core/limiter/keys.h"

/* Finds what is overridden of @key, in @room. NULL: nothing is. */
const struct override *key_overrides_of(const struct keys *keys, const struct key *key,
					struct override *room);

/* Returns the list that @key is in while it is idle. */
enum key_list_id key_overrides_list(const struct key *key);

/* Begins @key, which is new and listed, if it has overrides. False: it has none. */
bool key_overrides_begin(const struct schedule *schedule, struct keys *keys, struct key *key);

/*
 * Follows the overrides of the limiter's settings; @full as keys_follow() has it. Tells whether
 * those of a key that is open are others now.
 */
bool key_overrides_follow(const struct schedule *schedule, struct keys *keys, bool full);

#endif
