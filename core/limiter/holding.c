/* holding - what one host of a fleet holds of one limiter, see holding.h. */
#include "core/limiter/holding.h"
#include "core/limiter/bucket.h"
#include "core/limiter/slots.h"
#include "core/limiter/units.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEASES_ROOM = 4 }; /* at first; doubled each time */

struct holding *holding_new(struct limiter *limiter)
{
	struct holding *holding = calloc(1, sizeof(*holding));

	if (!holding)
		return NULL;
	holding->limiter = limiter;
	holding->settings = &SETTINGS_DEFAULT;
	holding->share = SETTINGS_DEFAULT;
	holding->yields = UINT32_MAX;
	return holding;
}

void holding_free(struct holding *holding)
{
	pool_drop(holding->settings);
	if (holding->back)
		*holding->back = holding->next;
	if (holding->next)
		holding->next->back = holding->back;
	for (uint32_t i = 0; i < holding->lease_count; i++)
		free(holding->leases[i].rest);
	free(holding->reserve.rest);
	free(holding->leases);
	if (holding->detach)
		holding->detach(holding);
	free(holding);
}

/* Returns the place of the lease that has @leaf; else that of the next one, or the count. */
static uint32_t place_of(const struct holding *holding, uint32_t leaf)
{
	uint32_t low = 0, high = holding->lease_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (holding->leases[middle].last < leaf)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct lease *holding_find_lease(const struct holding *holding, uint32_t leaf)
{
	uint32_t at = place_of(holding, leaf);

	if (at == holding->lease_count || holding->leases[at].first > leaf)
		return NULL;
	return &holding->leases[at];
}

static bool make_room(struct holding *holding)
{
	uint32_t room = holding->lease_room ? 2 * holding->lease_room : LEASES_ROOM;
	struct lease *leases;

	if (holding->lease_count < holding->lease_room)
		return true;
	leases = realloc(holding->leases, room * sizeof(*leases));
	if (!leases)
		return false;
	holding->leases = leases;
	holding->lease_room = room;
	return true;
}

struct lease *holding_add_lease(struct holding *holding, uint32_t first, uint32_t last)
{
	uint32_t at = place_of(holding, first), end = at;
	struct lease *lease;

	while (end < holding->lease_count && holding->leases[end].first <= last)
		end++;
	if (end == at + 1 && holding->leases[at].first == first && holding->leases[at].last == last)
		return &holding->leases[at];
	for (uint32_t i = at; i < end; i++)
		assert(holding->leases[i].state == LEASE_NONE);
	if (!make_room(holding))
		return NULL;
	lease = &holding->leases[at];
	memmove(lease + 1, holding->leases + end, (holding->lease_count - end) * sizeof(*lease));
	holding->lease_count = holding->lease_count - (end - at) + 1;
	*lease = (struct lease){.first = first, .last = last};
	return lease;
}

uint32_t holding_leaves(const struct settings *settings)
{
	return settings_leaf_count(settings);
}

bool holding_is_cut_alike(const struct settings *a, const struct settings *b)
{
	return holding_leaves(a) == holding_leaves(b) &&
	       holding_has_numbers(a) == holding_has_numbers(b) && a->key_share == b->key_share &&
	       setting_equal(SETTING_PARTITIONS_RESERVE, a, b);
}

struct lease *holding_split_lease(struct holding *holding, uint32_t leaf)
{
	uint32_t at = place_of(holding, leaf);
	struct lease *lease;

	assert(at < holding->lease_count && holding->leases[at].first < leaf);
	if (!make_room(holding))
		return NULL;
	lease = &holding->leases[at];
	memmove(lease + 1, lease, (holding->lease_count - at) * sizeof(*lease));
	holding->lease_count++;
	lease->last = leaf - 1;
	lease[1].first = leaf;
	lease[1].place = 0;
	lease[1].rest = NULL;
	return lease + 1;
}

bool holding_has_numbers(const struct settings *settings)
{
	return settings->partitions;
}

bool holding_needs_leases(const struct holding *holding)
{
	const struct settings *settings = holding->settings;

	return (settings_limit(settings) || settings->slots.kind == SLOTS_COUNT) &&
	       (settings->enforcement == ENFORCEMENT_ENFORCE ||
		settings->enforcement == ENFORCEMENT_SHADOW);
}

/*
 * Tells whether this host has its part of the limiter alone. So it is in one that is closed, too,
 * until it gives its leases back: they are to bring the next host what is left of them, and no
 * more.
 */
static bool has_part_alone(const struct holding *holding)
{
	return holding_needs_leases(holding) ||
	       (holding->settings->enforcement == ENFORCEMENT_CLOSED && holding->usable &&
		!holding->degraded);
}

uint32_t holding_count(const struct holding *holding)
{
	return holding_leaves(holding->settings);
}

uint32_t holding_slots_of(const struct holding *holding, uint32_t index)
{
	return settings_slots_of_leaves(holding->settings, index, index);
}

uint32_t holding_slots(const struct holding *holding)
{
	uint32_t slots = 0;

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD)
			slots += settings_slots_of_leaves(holding->settings, lease->first,
							  lease->last);
	}
	return slots;
}

bool holding_leases_slots(const struct holding *holding)
{
	return holding->settings->slots.kind == SLOTS_COUNT &&
	       (holding_needs_leases(holding) ||
		holding->settings->enforcement == ENFORCEMENT_CLOSED);
}

/* Returns the number of the first slot of @leaf, which may be one behind the last leaf. */
static uint32_t first_number(const struct holding *holding, uint32_t leaf)
{
	return leaf ? settings_slots_of_leaves(holding->settings, 0, leaf - 1) : 0;
}

uint32_t holding_free_number(const struct holding *holding)
{
	const struct numbers *numbers = &holding->limiter->slots->numbers;

	for (uint32_t i = 0; holding->usable && i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];
		uint32_t end = first_number(holding, lease->last + 1), number;

		if (lease->state != LEASE_HELD)
			continue;
		number = numbers_free_from(numbers, first_number(holding, lease->first), end);
		if (number < end)
			return number;
	}
	return UINT32_MAX;
}

bool holding_owns_number(const struct holding *holding, uint32_t number)
{
	const struct lease *lease;

	if (!holding->usable || number >= holding->settings->slots.count)
		return false;
	lease = holding_find_lease(holding, settings_leaf_of_slot(holding->settings, number));
	return lease && lease->state == LEASE_HELD;
}

uint32_t holding_next_numbered(const struct holding *holding, uint32_t leaf)
{
	const struct settings *settings = holding->settings;
	const struct slots *slots = holding->limiter->slots;
	uint32_t count = holding_count(holding), number;

	if (!slots || settings->slots.kind != SLOTS_COUNT || leaf >= count)
		return count;
	number = numbers_next(&slots->numbers, first_number(holding, leaf), settings->slots.count);
	return number < settings->slots.count ? settings_leaf_of_slot(settings, number) : count;
}

bool holding_is_numbered(const struct holding *holding, uint32_t first, uint32_t last)
{
	return holding_next_numbered(holding, first) <= last;
}

struct numbered_leaves holding_numbered_leaves(const struct holding *holding)
{
	struct numbered_leaves numbered = {0};
	uint32_t count = holding_count(holding);

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];
		uint32_t leaf = lease->first;

		if (lease->state != LEASE_HELD)
			continue;
		while ((leaf = holding_next_numbered(holding, leaf)) <= lease->last &&
		       leaf < count) {
			numbered.leaves++;
			numbered.slots += holding_slots_of(holding, leaf++);
		}
	}
	return numbered;
}

/* Returns the sum of what was granted of units. */
static uint64_t units_granted(const struct limiter *limiter)
{
	uint64_t sum = 0;

	for (uint32_t i = limiter->plain_count; i < limiter->bucket_count; i++)
		sum += units_counts(limiter)->of[i].granted;
	return sum;
}

uint64_t holding_use(const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;

	return limiter->counters[COUNTER_GRANTED] + units_granted(limiter) +
	       (limiter->slots ? limiter->slots->opened : 0);
}

/*
 * Returns @tokens of the unit without a name, or the count of a unit that is @at its place if that
 * is more, in tokens of the slowest limit.
 */
static uint64_t in_slowest(const struct holding *holding, uint64_t tokens, size_t at)
{
	const struct limiter *limiter = holding->limiter;
	const struct settings *settings = holding->settings;
	double slowest = (double)INFINITY, most = 0;

	if (!units_counts(limiter) || settings->limit_count != limiter->bucket_count)
		return tokens;
	for (uint32_t i = 0; i < settings->limit_count; i++)
		slowest = fmin(slowest, rate_per_second(&settings->limits[i].rate));
	if (slowest <= 0)
		return tokens;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const char *count = (const char *)&units_counts(limiter)->of[i] + at;
		uint64_t own = i < limiter->plain_count ? tokens : *(const uint64_t *)count;

		most = fmax(most,
			    (double)own * slowest / rate_per_second(&settings->limits[i].rate));
	}
	return (uint64_t)ceil(most);
}

uint64_t holding_granted(const struct holding *holding)
{
	return in_slowest(holding, holding->limiter->counters[COUNTER_GRANTED],
			  offsetof(struct unit_count, granted));
}

uint64_t holding_waiting(const struct holding *holding)
{
	uint64_t demand = turns_demand(&holding->limiter->turns);
	uint64_t waiting = in_slowest(holding, demand, offsetof(struct unit_count, wanted));

	return demand && !waiting ? 1 : waiting;
}

struct holding_savings holding_savings(const struct holding *holding, uint64_t now_ns,
				       uint32_t part, uint32_t whole)
{
	const struct limiter *limiter = holding->limiter;
	struct holding_savings savings = {.is_full = true, .room = UINT64_MAX};
	uint64_t token_ns, room;

	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		u128 most = (u128)settings_burst(holding->settings, i) * part / whole;
		struct bucket *bucket = &limiter->buckets[i];

		bucket_refill(bucket, now_ns);
		if (bucket->flow.num && !bucket_is_window(bucket) &&
		    bucket->level < (int64_t)bucket_capacity(bucket))
			savings.is_full = false;
		if (bucket->level >= (int64_t)(most ? most : 1))
			savings.has_saved = true;
		room = bucket_is_window(bucket) || bucket_is_strict(bucket)
			       ? 0
			       : bucket_capacity(bucket);
		savings.room = room < savings.room ? room : savings.room;
		token_ns = bucket_when(bucket, 1, now_ns);
		savings.token_ns = token_ns > savings.token_ns ? token_ns : savings.token_ns;
	}
	return savings;
}

/* Returns the slots that may be opened now: of partitions that others are to have none is. */
static uint32_t slots_to_open(const struct holding *holding)
{
	uint32_t slots = holding->usable ? holding_slots(holding) : 0;

	if (holding->yields >= holding->usable)
		return slots;
	return (uint32_t)((uint64_t)slots * holding->yields / holding->usable);
}

bool holding_has_reserve(const struct holding *holding)
{
	/* If the settings have changed since it was taken it is on its way back. */
	return holding->reserve_usable && holding->reserve.first < holding->settings->reserve_hosts;
}

/* Returns by how many the limiter above divides what it has, as its `offline` is in force. */
static uint32_t offline_above(const struct holding *holding)
{
	const struct limiter *parent = holding->limiter->parent;
	const struct holding *above = parent ? parent->holding : NULL;

	if (!above || !holding_needs_leases(above) || above->settings->offline == OFFLINE_BLOCK ||
	    above->settings->offline == OFFLINE_OPEN)
		return 1;
	return above->settings->offline;
}

/* Gives it the weight and the part of the min that it has on this host. */
static void apply_place(const struct holding *holding, struct settings *share)
{
	const struct holding_place *place = &holding->place;
	uint32_t hosts = offline_above(holding);

	/* Cut off, nothing is known of other hosts: its min is divided as what it is a part of. */
	if (holding->degraded) {
		if (hosts > 1)
			share->min = settings_part_of_min(holding->settings, hosts, 1);
		return;
	}
	if (place->weight)
		share->weight = place->weight;
	if (place->min_all)
		share->min = settings_part_of_min(holding->settings, place->min_all,
						  place->min_part);
}

struct window_share holding_window(const struct holding *holding, uint32_t i, uint32_t leaves)
{
	uint32_t count = holding_count(holding);
	u128 whole = (u128)settings_burst(holding->settings, i) * (leaves < count ? leaves : count);

	if (!has_part_alone(holding))
		return (struct window_share){settings_burst(&holding->share, i), 0, count, 0};
	return (struct window_share){(uint64_t)(whole / count), (uint32_t)(whole % count), count,
				     leaves < count ? leaves : count};
}

struct window_share holding_window_share(const struct holding *holding, uint32_t i)
{
	if (holding->degraded)
		return (struct window_share){settings_burst(&holding->share, i), 0,
					     holding_count(holding), 0};
	return holding_window(holding, i, holding->usable);
}

void holding_share(const struct holding *holding, struct settings *share)
{
	uint32_t count = holding_count(holding);
	uint32_t usable = holding->usable < count ? holding->usable : count;

	const struct settings *whole = holding->settings;

	*share = *whole;
	if (!has_part_alone(holding)) {
		apply_place(holding, share);
		return;
	}
	if (holding->degraded && whole->offline != OFFLINE_BLOCK) {
		settings_apply_offline(share);
		apply_place(holding, share);
		return;
	}
	settings_of_host(whole, usable, holding_has_reserve(holding), share);
	if (whole->slots.kind == SLOTS_COUNT)
		share->slots.count = slots_to_open(holding);
	apply_place(holding, share);
}

void holding_key_share(const struct holding *holding, uint32_t leaves, struct rate *rate,
		       uint64_t *burst)
{
	uint32_t count = holding_count(holding);
	uint32_t usable = holding->usable < count ? holding->usable : count;

	*rate = holding->share.key_rate;
	*burst = holding->share.key_burst;
	/* By `offline` the parts are others than of leases. */
	if (leaves && usable && !holding->degraded && has_part_alone(holding))
		settings_key_share(holding->settings, usable, leaves, rate, burst);
}

struct key_part holding_key_part(const struct holding *holding, uint32_t leaves)
{
	const struct settings *whole = holding->settings;
	uint32_t count = holding_count(holding);
	uint32_t usable = holding->usable < count ? holding->usable : count;

	if (!has_part_alone(holding))
		return (struct key_part){1, 1};
	if (holding->degraded && whole->offline != OFFLINE_BLOCK)
		return (struct key_part){1, whole->offline == OFFLINE_OPEN ? 1 : whole->offline};
	if (!usable || holding->degraded)
		leaves = 0;
	return settings_key_part(whole, usable, leaves);
}

void holding_partition_share(const struct holding *holding, uint32_t index, struct settings *share)
{
	const struct settings *whole = holding->settings;
	const struct lease *lease;
	bool usable;

	*share = settings_of_partition(whole, index);
	if (!has_part_alone(holding))
		return;
	if (index < PARTITIONS_MAX) {
		lease = holding_find_lease(holding, index);
		usable = holding->usable && lease && lease->state == LEASE_HELD;
	} else {
		usable = holding_has_reserve(holding) &&
			 holding->reserve.first == index - PARTITIONS_MAX;
	}
	if (holding->degraded && whole->offline != OFFLINE_BLOCK)
		usable = true; /* its limiter alone limits then */
	for (uint32_t i = 0; i < share->limit_count && !usable; i++) {
		if (rate_is_window(&share->limits[i].rate))
			share->limits[i].burst = 0;
		else
			share->limits[i].rate = (struct rate){.period_ns = NSEC_PER_SEC};
	}
}

struct lease *holding_lease(struct holding *holding, uint32_t leaf, bool reserve)
{
	if (!reserve)
		return holding_find_lease(holding, leaf);
	if (holding->reserve.state == LEASE_NONE || holding->reserve.first != leaf)
		return NULL;
	return &holding->reserve;
}
