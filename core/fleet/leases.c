/* leases - the leases of this host, and what they are worth, see leases.h. */
#include "core/fleet/leases.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"

#include <stdlib.h>
#include <string.h>

uint32_t leases_kept(const struct holding *holding)
{
	return holding->leased - holding->draining;
}

/* Counts one more lease of @holding that has a state, or one less. */
static void count(struct fleet *fleet, struct holding *holding, bool there)
{
	if (there) {
		room_count_lease(fleet, true);
		holdings_keep(holding);
		return;
	}
	room_count_lease(fleet, false);
	holdings_let_go(holding);
}

void leases_become(struct fleet *fleet, struct holding *holding, struct lease *lease,
		   enum lease_state to)
{
	enum lease_state from = (enum lease_state)lease->state;
	bool reserve = lease == &holding->reserve;
	uint32_t size = lease_size(lease);

	lease_become(lease, to);
	if (!reserve) {
		holding->held += (to == LEASE_HELD) * size - (from == LEASE_HELD) * size;
		holding->leased += (to != LEASE_NONE) * size - (from != LEASE_NONE) * size;
		holding->draining += (to == LEASE_DRAINING) * size -
				     (from == LEASE_DRAINING) * size;
	}
	if (from == LEASE_NONE)
		count(fleet, holding, true);
	if (to == LEASE_HELD || to == LEASE_WAITING) {
		lease->since_ns = fleet->now_ns;
		lease->granted = holding_use(holding);
	}
	handover_keep_lease(fleet, holding, lease);
	if (fleet->listener && fleet->listener->lease)
		fleet->listener->lease(fleet->listener, holding, lease, from, to);
	if (to == LEASE_NONE)
		count(fleet, holding, false);
}

bool leases_cut(struct fleet *fleet, struct holding *holding, uint32_t leaf)
{
	struct lease *lease = holding_find_lease(holding, leaf), *behind;

	if (!lease || lease->first == leaf || lease->state == LEASE_NONE)
		return true;
	behind = holding_split_lease(holding, leaf);
	if (!behind)
		return false;
	count(fleet, holding, true);
	/* A process that is killed in between leaves two places with a leaf of the same state. */
	handover_keep_lease(fleet, holding, behind);
	handover_keep_lease(fleet, holding, behind - 1);
	return true;
}

/* Tells whether @lease and the one behind it can be one. */
static bool can_join(const struct lease *lease, const struct lease *behind)
{
	return lease->state == behind->state && lease->tile_first == behind->tile_first &&
	       (lease->state == LEASE_HELD ||
		(lease->state == LEASE_WAITING && lease->usable_ns == behind->usable_ns));
}

static void join(struct fleet *fleet, struct holding *holding, struct lease *lease,
		 struct lease *behind)
{
	lease->last = behind->last;
	if (lease->since_ns < behind->since_ns) {
		lease->since_ns = behind->since_ns;
		lease->granted = behind->granted;
	}
	handover_keep_lease(fleet, holding, lease);
	handover_drop_lease(fleet, behind);
	count(fleet, holding, false);
}

void leases_tidy(struct fleet *fleet, struct holding *holding)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_NONE)
			continue;
		if (kept && can_join(&holding->leases[kept - 1], lease))
			join(fleet, holding, &holding->leases[kept - 1], lease);
		else
			holding->leases[kept++] = *lease;
	}
	holding->lease_count = kept;
}

/* Tells whether @lease is in a node of this host's, as far as it is known. */
static bool has_tile(const struct lease *lease)
{
	return lease->state != LEASE_NONE && lease->state != LEASE_TAKING;
}

bool leases_put(const struct fleet *fleet, const struct holding *holding, bool reserve,
		struct tiles *tiles)
{
	const struct lease *leases = reserve ? &holding->reserve : holding->leases;
	uint32_t count = reserve ? 1 : holding->lease_count;
	struct tile tile = {0};

	/* A tile that is listed is replaced where it stands: thousands are not moved each time. */
	tiles_doubt(tiles, session_hid(fleet));
	for (uint32_t i = 0; i < count;) {
		const struct lease *lease = &leases[i++];

		if (!has_tile(lease))
			continue;
		tile = (struct tile){.first = lease->tile_first, .last = lease->tile_last};
		memcpy(tile.hid, session_hid(fleet), HID_TEXT);
		tile.fixed = lease->state != LEASE_HELD;
		for (; i < count && has_tile(&leases[i]) && leases[i].tile_first == tile.first; i++)
			tile.fixed |= leases[i].state != LEASE_HELD;
		if (!tiles_put(tiles, &tile))
			return false;
	}
	tiles_remove_doubtful(tiles, session_hid(fleet));
	return true;
}

/* Notes that @lease of @item is in @tile. */
static void name_lease(struct fleet *fleet, const struct item *item, struct lease *lease,
		       const struct tile *tile)
{
	if (lease->state == LEASE_NONE ||
	    (lease->tile_first == tile->first && lease->tile_last == tile->last))
		return;
	lease->tile_first = tile->first;
	lease->tile_last = tile->last;
	handover_keep_lease(fleet, item->holding, lease);
}

void leases_name(struct fleet *fleet, const struct item *item, const struct tiles *tiles)
{
	uint32_t count, next = 0;
	struct lease *leases = item_leases(item, &count);

	/* Both are in the order of their leaves. */
	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		if (!tile_is_of(tile, session_hid(fleet)))
			continue;
		while (next < count && leases[next].last < tile->first)
			next++;
		for (uint32_t at = next; at < count && leases[at].first <= tile->last; at++)
			name_lease(fleet, item, &leases[at], tile);
	}
}

void leases_wait(struct fleet *fleet, struct lease *lease)
{
	lease->usable_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

void leases_join_use(struct fleet *fleet, struct holding *holding, const struct rest *rest,
		     uint32_t size)
{
	struct limiter *limiter = holding->limiter;

	for (uint32_t i = 0; !limiter->removed && i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];
		struct window_use use = {.begin_s = WINDOW_UNKNOWN};
		struct window_share worth;

		if (!bucket_is_window(bucket))
			continue;
		worth = holding_window(holding, i, size);
		if (i < rest->count && rest_is_window(rest, i))
			use = rest_use(rest, i);
		bucket_refill(bucket, fleet->engine->schedule.now_ns);
		window_join_use(bucket, &use, &worth);
	}
}

void leases_note_unproven(const struct fleet *fleet, struct holding *holding, uint32_t size)
{
	holding->unproven += size;
	if (holding->unproven > holding->held)
		holding->unproven = holding->held;
	holding->unproven_ns = fleet->now_ns;
}

bool leases_forget_use(struct holding *holding)
{
	struct limiter *limiter = holding->limiter;
	bool any = false;

	if (holding->held || limiter->removed || !holding_needs_leases(holding))
		return false;
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		if (!bucket_is_window(&limiter->buckets[i]))
			continue;
		window_forget_use(&limiter->buckets[i]);
		any = true;
	}
	return any;
}

void leases_reshare(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	uint32_t usable = 0;

	if (holding->limiter->removed)
		return;
	for (uint32_t i = 0; term_runs(fleet) && i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD)
			usable += lease_size(lease);
	}
	holding->usable = usable;
	holding->reserve_usable = term_runs(fleet) && holding->reserve.state == LEASE_HELD;
	holding->degraded = term_is_degraded(fleet);
	limiter_reshare(schedule, holding->limiter);
	if (fleet->listener && fleet->listener->reshared)
		fleet->listener->reshared(fleet->listener, holding->limiter);
}

/* Tells that the open slots of @holding are lost: @all, or those that slots_is_lost() finds. */
static void tell_lost(struct fleet *fleet, struct holding *holding, bool all)
{
	if (holding->limiter->removed || !holding_leases_slots(holding) ||
	    !slots_used(holding->limiter))
		return;
	if (fleet->listener && fleet->listener->slots_lost)
		fleet->listener->slots_lost(fleet->listener, holding->limiter, all);
}

void leases_check_numbers(struct fleet *fleet, struct holding *holding)
{
	tell_lost(fleet, holding, false);
}

static void empty(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	struct limiter *limiter = holding->limiter, *partition;

	if (limiter->removed)
		return;
	limiter_empty(schedule, limiter);
	for (uint32_t i = 0; (partition = partition_next(limiter, &i));)
		limiter_empty(schedule, partition);
}

void leases_empty(struct fleet *fleet)
{
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (h->usable || h->reserve_usable)
			empty(fleet, h);
	}
}

/* Rule 3: an election may have taken back that a neighbour ended the right, which lapsed. */
static void revive(struct fleet *fleet, struct holding *holding)
{
	uint64_t usable_ns = fleet->epochs.known_ns + fleet->constants.quarantine_ns;

	for (uint32_t i = 0; i <= holding->lease_count; i++) {
		struct lease *lease = i < holding->lease_count ? &holding->leases[i]
							       : &holding->reserve;

		if (lease->state == LEASE_WAITING && lease->usable_ns < usable_ns) {
			lease->usable_ns = usable_ns;
			handover_keep_lease(fleet, holding, lease);
		}
		if (lease->state == LEASE_HELD ||
		    (lease->state == LEASE_DRAINING && !lease->sent)) {
			lease->usable_ns = usable_ns;
			leases_become(fleet, holding, lease, LEASE_WAITING);
		}
	}
	if (!holding->degraded && leases_forget_use(holding))
		leases_reshare(fleet, holding);
}

bool leases_extend_term(struct fleet *fleet, uint64_t sent_ns)
{
	bool ran = term_runs(fleet), degraded = term_is_degraded(fleet);
	bool lapsed = !ran || term_is_over(fleet), revives;
	uint32_t epoch = term_epoch(fleet);

	term_extend(fleet, sent_ns);
	revives = lapsed && epoch != term_epoch(fleet);
	for (struct holding *h = holdings_first(fleet); revives && h; h = h->next) {
		if (h->usable)
			tell_lost(fleet, h, true);
		revive(fleet, h);
	}
	/* Slots that `offline` let it open; all others were lost before. */
	for (struct holding *h = holdings_first(fleet); degraded && h; h = h->next)
		tell_lost(fleet, h, true);
	if (degraded)
		fleet_tell(fleet, FLEET_BACK, "the coordinator is back");
	if (ran == term_runs(fleet) && !degraded)
		return revives;
	/* A host without leases has nothing but what `offline` gave. */
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		/* Tokens that `offline` let it save up are no share of any host. */
		if (degraded) {
			empty(fleet, h);
			(void)leases_forget_use(h);
		}
		if (degraded || h->held || h->reserve.state == LEASE_HELD)
			leases_reshare(fleet, h);
	}
	return revives;
}

void leases_check_term(struct fleet *fleet)
{
	if (!term_is_over(fleet))
		return;
	term_lapse(fleet);
	if (!room_leases(fleet))
		return;
	fleet->counters.lapses++;
	fleet_tell(fleet, FLEET_LAPSED, "right lapsed");
	leases_empty(fleet);
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (h->usable)
			tell_lost(fleet, h, true);
		if (h->usable || h->reserve_usable)
			leases_reshare(fleet, h);
	}
}

void leases_watch_reach(struct fleet *fleet)
{
	uint64_t at_ns = term_end_ns(fleet);

	if (session_trouble_ns(fleet) == NEVER_NS || term_is_degraded(fleet))
		return;
	/*
	 * A host with leases does without the coordinator when its right ends; a host without
	 * leases D after the last contact, and so does a successor that was not there when the
	 * right ended.
	 */
	if (!room_leases(fleet) ||
	    (term_is_resumed(fleet) && term_end_ns(fleet) < session_trouble_ns(fleet)))
		at_ns = session_trouble_ns(fleet) + fleet->constants.right_ns;
	if (fleet->clocks.holder_ns < at_ns) {
		fleet_wake_at(fleet, fleet->now_ns + (at_ns - fleet->clocks.holder_ns));
		return;
	}
	term_degrade(fleet);
	handover_keep(fleet);
	fleet_tell(fleet, FLEET_DEGRADED, "degraded: the coordinator is out of reach");
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		leases_reshare(fleet, h);
}

void leases_fall_due(struct fleet *fleet, struct holding *holding)
{
	bool others = holding->leased > holding->held + holding->draining;
	struct rest rest = rest_unknown(holding->settings, holding->saved);
	bool changed = false;

	for (uint32_t i = others ? 0 : holding->lease_count; i <= holding->lease_count; i++) {
		struct lease *lease = i < holding->lease_count ? &holding->leases[i]
							       : &holding->reserve;

		if (lease->state != LEASE_WAITING || lease->usable_ns > fleet->clocks.waiter_ns)
			continue;
		leases_become(fleet, holding, lease, LEASE_HELD);
		if (lease != &holding->reserve) {
			leases_join_use(fleet, holding, &rest, lease_size(lease));
			leases_note_unproven(fleet, holding, lease_size(lease));
		}
		changed = true;
	}
	if (changed)
		leases_reshare(fleet, holding);
}

void leases_forget(struct fleet *fleet, struct holding *holding)
{
	bool forgets;

	if (holding->usable)
		tell_lost(fleet, holding, true);
	for (uint32_t i = 0; i < holding->lease_count; i++) {
		if (holding->leases[i].state != LEASE_NONE)
			leases_become(fleet, holding, &holding->leases[i], LEASE_NONE);
	}
	if (holding->reserve.state != LEASE_NONE)
		leases_become(fleet, holding, &holding->reserve, LEASE_NONE);
	learning_bound(holding->limiter, 0);
	forgets = !holding->degraded && leases_forget_use(holding);
	if (holding->usable || holding->reserve_usable || forgets)
		leases_reshare(fleet, holding);
}

void leases_drop(struct fleet *fleet, struct holding *holding)
{
	if (holding->usable)
		tell_lost(fleet, holding, true);
	for (uint32_t i = 0; i <= holding->lease_count; i++) {
		struct lease *lease = i < holding->lease_count ? &holding->leases[i]
							       : &holding->reserve;

		if (lease->state == LEASE_HELD || lease->state == LEASE_WAITING ||
		    (lease->state == LEASE_DRAINING && !lease->sent))
			leases_become(fleet, holding, lease, LEASE_NONE);
	}
	learning_bound(holding->limiter, 0);
	if (!holding->degraded)
		(void)leases_forget_use(holding);
	leases_reshare(fleet, holding);
	holding->cut_ns = fleet->clocks.waiter_ns;
}

/* A limiter is made with cut 1: nothing was granted by leaves before those. */
void leases_know_cut(struct fleet *fleet, struct holding *holding)
{
	holding->cut_ns = holding->cut > 1 ? fleet->clocks.waiter_ns : 0;
}

static bool is_in_doubt(const struct lease *lease)
{
	return lease->state == LEASE_TAKING || (lease->state == LEASE_DRAINING && lease->sent);
}

void leases_doubt(struct fleet *fleet, const struct item *item)
{
	uint32_t count;
	struct lease *leases = item_leases(item, &count);

	for (uint32_t i = 0; i < count; i++) {
		if (is_in_doubt(&leases[i]))
			leases_become(fleet, item->holding, &leases[i], LEASE_IN_DOUBT);
	}
}

/* Tells whether @tiles has a tile of this host's with all leaves of @lease. */
static bool is_listed(const struct fleet *fleet, const struct lease *lease,
		      const struct tiles *tiles)
{
	uint32_t at = tiles_find(tiles, lease->first);

	return at < tiles->count && tiles->list[at].first <= lease->first &&
	       tiles->list[at].last >= lease->last &&
	       tile_is_of(&tiles->list[at], session_hid(fleet));
}

void leases_resolve(struct fleet *fleet, const struct item *item, const struct tiles *tiles)
{
	bool counts = item_counts(item);
	uint32_t count;
	struct lease *leases = item_leases(item, &count);

	if (counts)
		leases_name(fleet, item, tiles);
	for (uint32_t i = 0; i < count; i++) {
		struct lease *lease = &leases[i];

		if (lease->state != LEASE_IN_DOUBT)
			continue;
		leases_wait(fleet, lease);
		leases_become(fleet, item->holding, lease,
			      counts && is_listed(fleet, lease, tiles) ? LEASE_WAITING
								       : LEASE_NONE);
	}
	leases_tidy(fleet, item->holding);
}

/* Which tiles are checked next: so many of all were before. */
struct guard {
	struct request *request;
	uint64_t seen, from, checked;
	bool failed;
};

static void check_tile(struct guard *guard, const struct holding *holding, bool reserve,
		       const struct tile *tile)
{
	char name[TILE_TEXT], path[ZNODE_TEXT];

	if (guard->seen++ < guard->from || guard->checked == LEASES_GUARDED_MAX)
		return;
	guard->checked++;
	tile_print(tile, name);
	znode_path_tile(holding->id, holding->cut, reserve, name, path);
	guard->failed |= !request_add(guard->request, OPERATION_CHECK, path, NULL, NODE_VERSION_ANY,
				      0);
}

static void check_tiles(const struct fleet *fleet, struct guard *guard,
			const struct holding *holding)
{
	for (int reserve = 0; reserve < 2; reserve++) {
		const struct lease *leases = reserve ? &holding->reserve : holding->leases;
		uint32_t count = reserve ? 1 : holding->lease_count;
		const struct lease *before = NULL;

		for (uint32_t i = 0; i < count; i++) {
			struct tile tile = {.first = leases[i].tile_first,
					    .last = leases[i].tile_last};

			if (!has_tile(&leases[i]) || (before && before->tile_first == tile.first))
				continue;
			before = &leases[i];
			memcpy(tile.hid, session_hid(fleet), HID_TEXT);
			check_tile(guard, holding, reserve, &tile);
		}
	}
}

bool leases_guard(struct fleet *fleet, struct request *request)
{
	struct guard guard = {.request = request, .from = fleet->guarded};

	for (const struct holding *h = holdings_first_active(fleet); h; h = h->next_active) {
		if (h->leased || h->reserve.state != LEASE_NONE)
			check_tiles(fleet, &guard, h);
	}
	fleet->guarded += guard.checked;
	if (guard.checked < LEASES_GUARDED_MAX)
		fleet->guarded = 0;
	return !guard.failed;
}
