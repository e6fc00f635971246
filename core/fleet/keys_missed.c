/* keys_missed - keys that ran out on this host, see keys_missed.h. */
#include "core/fleet/keys_missed.h"

/* Returns the first of the places that @key may have. Numbers of keys are counted up. */
static struct key_missed *places_of(struct keys_missed *missed, uint64_t key)
{
	return &missed->keys[key % (KEYS_MISSED_MAX / KEYS_MISSED_WAYS) * KEYS_MISSED_WAYS];
}

void keys_missed_note(struct keys_missed *missed, uint64_t key, uint32_t limiter)
{
	struct key_missed *places = places_of(missed, key), *least = places;

	for (int i = 0; i < KEYS_MISSED_WAYS; i++) {
		if (places[i].times && places[i].key == key) {
			if (places[i].times < UINT32_MAX)
				places[i].times++;
			return;
		}
		if (places[i].times < least->times)
			least = &places[i];
	}
	if (least->times && --least->times)
		return;
	missed->count += !least->key;
	*least = (struct key_missed){.key = key, .limiter = limiter, .times = 1};
}

static void forget(struct keys_missed *missed, struct key_missed *place)
{
	*place = (struct key_missed){0};
	missed->count--;
}

bool keys_missed_take(struct keys_missed *missed, struct key_missed *most)
{
	struct key_missed *found = missed->keys;

	if (!missed->count)
		return false;
	for (int i = 1; i < KEYS_MISSED_MAX; i++) {
		if (missed->keys[i].times > found->times)
			found = &missed->keys[i];
	}
	*most = *found;
	forget(missed, found);
	return true;
}

void keys_missed_age(struct keys_missed *missed)
{
	for (int i = 0; missed->count && i < KEYS_MISSED_MAX; i++) {
		struct key_missed *place = &missed->keys[i];

		if (!place->times)
			continue;
		place->times /= 2;
		if (!place->times)
			forget(missed, place);
	}
}
