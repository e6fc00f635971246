/* key_lease - a key that this host leases, see key_lease.h. */
#include "core/fleet/key_lease.h"
#include "core/base/siphash.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/limiter/keys.h"

#include <stdlib.h>
#include <string.h>

struct key_lease *key_lease_begin(struct fleet *fleet, struct holding *holding, uint64_t hash)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return NULL;
	lease->holding = holding;
	holdings_keep(holding);
	lease->number = ++leases->last_number;
	lease->cut = holding->cut;
	lease->hash = hash;
	lease->looked_ns = lease->used_ns = fleet->now_ns;
	lease->due_ns = lease->wake_ns = fleet->now_ns + KEY_PERIOD_NS;
	lease->next = leases->first;
	leases->first = lease;
	leases->count++;
	leases->nameless++;
	room_count_key(fleet, true);
	key_lease_wake(fleet, lease, lease->due_ns);
	return lease;
}

struct key_lease *key_lease_find(const struct fleet *fleet, const struct holding *holding,
				 uint64_t hash)
{
	struct key_lease *lease = fleet->key_leases->first;

	while (lease &&
	       (lease->hash != hash || lease->holding != holding || lease->cut != holding->cut))
		lease = lease->next;
	return lease;
}

void key_lease_name(struct fleet *fleet, struct key_lease *lease, struct limiter *key)
{
	fleet->key_leases->nameless--;
	keys_set_lease(key, lease);
	lease->key = key;
	lease->granted = key->counters[COUNTER_GRANTED];
	lease->used_ns = fleet->now_ns;
	lease->missed = true;
	lease->used = 0;
}

struct search {
	const struct fleet *fleet;
	const struct key_lease *lease;
	struct override *override;
	bool found;
};

/* Finds the key with the hash of the lease. */
static bool compare_hash(void *argument, const char *name)
{
	struct search *search = argument;
	const struct key_lease *lease = search->lease;
	size_t length = strlen(name);

	if (siphash(name, length, search->fleet->key_leases->seed) != lease->hash)
		return true;
	search->found = overrides_find(lease->holding->settings->overrides, name, length,
				       search->override);
	return false;
}

void key_lease_find_limit(const struct fleet *fleet, struct key_lease *lease)
{
	const struct settings *settings = lease->holding->settings;
	const struct key_part whole = {1, 1};
	struct override override;
	struct search search = {fleet, lease, &override, false};

	if (lease->limit_generation == lease->holding->generation)
		return;
	lease->limit_generation = lease->holding->generation;
	lease->rate = settings->key_rate;
	lease->burst = settings->key_burst;
	if (lease->key && !lease->key->removed)
		search.found = overrides_find(settings->overrides, keys_key(lease->key)->name,
					      keys_key(lease->key)->name_bytes, &override);
	else
		overrides_compare(NULL, settings->overrides, compare_hash, &search);
	if (search.found)
		settings_override(&override, &whole, &lease->rate, &lease->burst);
}

void key_lease_wake(struct fleet *fleet, struct key_lease *lease, uint64_t at_ns)
{
	if (at_ns < lease->wake_ns)
		lease->wake_ns = at_ns;
	if (at_ns < fleet->key_leases->wake_ns)
		fleet->key_leases->wake_ns = at_ns;
	fleet_wake_at(fleet, at_ns);
}

uint32_t key_lease_kept(const struct key_lease *lease)
{
	uint32_t kept = 0;

	for (int i = 0; i < KEY_LEAVES; i++)
		kept += lease->usable_ns[i] != 0;
	return kept;
}

void key_lease_use(struct fleet *fleet, struct key_lease *lease)
{
	struct handover_key kept = {
		.id = lease->holding->id, .cut = lease->cut, .hash = lease->hash};
	uint64_t now_ns = fleet->clocks.waiter_ns, next_ns = NEVER_NS;
	uint32_t leaves = 0;

	for (int i = 0; i < KEY_LEAVES; i++) {
		uint64_t usable_ns = lease->usable_ns[i];

		if (usable_ns > now_ns && usable_ns < next_ns)
			next_ns = usable_ns;
		if (!usable_ns || usable_ns > now_ns)
			continue;
		kept.leaves[i / 64] |= UINT64_C(1) << i % 64;
		leaves++;
	}
	handover_keep_key(fleet, &kept, &lease->place);
	if (next_ns != NEVER_NS)
		key_lease_wake(fleet, lease, fleet->now_ns + (next_ns - now_ns));
	/* Without memory they stay unused until the next change. */
	if (lease->used != leaves &&
	    (!lease->key || !keys_lease(&fleet->engine->schedule, lease->key, leaves)))
		lease->used = leaves;
}

void key_lease_note_gain(const struct fleet *fleet, struct key_lease *lease, uint64_t usable_ns)
{
	uint64_t now_ns = fleet->clocks.waiter_ns;
	uint64_t at_ns = fleet->now_ns + (usable_ns > now_ns ? usable_ns - now_ns : 0);

	if (at_ns > lease->gained_ns)
		lease->gained_ns = at_ns;
}

void key_lease_note(struct fleet *fleet, struct key_lease *lease, const struct tiles *tiles,
		    uint64_t usable_ns)
{
	uint64_t former_ns[KEY_LEAVES];

	memcpy(former_ns, lease->usable_ns, sizeof(former_ns));
	memset(lease->usable_ns, 0, sizeof(lease->usable_ns));
	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		if (!tile_is_of(tile, session_hid(fleet)))
			continue;
		for (uint32_t leaf = tile->first; leaf <= tile->last; leaf++) {
			lease->usable_ns[leaf] = former_ns[leaf] ? former_ns[leaf] : usable_ns;
			if (!former_ns[leaf])
				key_lease_note_gain(fleet, lease, usable_ns);
		}
	}
	key_lease_use(fleet, lease);
}

void key_lease_look_later(struct fleet *fleet, struct key_lease *lease, uint64_t within_ns)
{
	lease->stale = true;
	lease->has_work = false;
	lease->look_ns = fleet->now_ns + (within_ns ? fleet_random(fleet) % within_ns : 0);
	key_lease_wake(fleet, lease, lease->look_ns);
}
