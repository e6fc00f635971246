/* take - the transaction that takes leaves, see take.h. */
#include "core/fleet/take.h"
#include "core/fleet/demand.h"
#include "core/fleet/epoch.h"
#include "core/fleet/leases.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"

#include <string.h>

enum { RESERVE_CHANGES = 4 };

_Static_assert(HEAD_LENGTH + PLAN_CHANGES_MAX + 2 * TILES_GONE_MAX + RESERVE_CHANGES + 2 <=
		       OPERATIONS_MAX,
	       "a take fits a transaction");

void take_mark_gone(const struct fleet *fleet, struct tiles *tiles)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		struct tile *tile = &tiles->list[i];

		tile->gone = !tile_is_clean(tile) && neighbour_is_gone(fleet, tile->hid);
	}
	tiles_limit_gone(tiles);
}

/*
 * Plans to take the leaves whose own tokens are read, whatever else is wanted: no other leaf is of
 * use to such a reader.
 */
static bool plan_read(const struct holding *holding, struct plan *plan, uint32_t *room)
{
	const struct limiter *partition;

	for (uint32_t i = 0; *room && (partition = partition_next(holding->limiter, &i));) {
		uint32_t leaf = partition->partition - 1u;
		int taken = demand_misses(holding, leaf) ? plan_take_leaf(plan, leaf, true) : 0;

		if (taken < 0)
			return false;
		*room -= (uint32_t)taken;
	}
	return true;
}

/* Plans to take the lacking leaves: those that have to wait come last. */
static bool plan_any(struct plan *plan, uint32_t wanted, uint32_t room)
{
	int taken, more;

	if (plan->rules.single && wanted > room)
		wanted = room;
	taken = plan_take(plan, wanted, false);
	if (taken < 0)
		return false;
	more = plan_take(plan, wanted - (uint32_t)taken, true);
	return more >= 0;
}

static bool plan_leaves(const struct holding *holding, struct plan *plan, uint32_t wanted,
			uint32_t room)
{
	if (!plan_read(holding, plan, &room) || (room && !plan_any(plan, wanted, room)))
		return false;
	/* Leases that waited until now may lie beside others. */
	if (plan->gain_count)
		plan_tidy(plan);
	return true;
}

static bool plan_reserve(struct plan *plan)
{
	int taken = plan_take(plan, 1, false);

	if (!taken)
		taken = plan_take(plan, 1, true);
	return taken >= 0;
}

/* Begins an item of @tiles, with this host's tiles as they are known. NULL: there is no memory. */
static struct item *begin_item(struct fleet *fleet, struct holding *holding, bool reserve,
			       struct tiles *tiles)
{
	struct item item = item_of(holding, reserve);

	if (!leases_put(fleet, holding, reserve, tiles) ||
	    !item_begin(&item, tiles, session_hid(fleet), fleet_random(fleet)))
		return NULL;
	return transaction_add(fleet, &item);
}

/* Returns the lease that came with @gain. */
static struct lease *lease_of(const struct item *item, const struct tile *gain)
{
	return item->reserve ? &item->holding->reserve
			     : holding_find_lease(item->holding, gain->first);
}

/* Adds the leases that @item takes. */
static bool add_leases(struct fleet *fleet, const struct item *item)
{
	struct holding *holding = item->holding;

	for (uint32_t i = 0; i < item->plan->gain_count; i++) {
		const struct tile *gain = &item->plan->gains[i];

		if (item->reserve) {
			holding->reserve.first = holding->reserve.last = gain->first;
		} else if (!holding_add_lease(holding, gain->first, gain->last)) {
			return false;
		}
	}
	for (uint32_t i = 0; i < item->plan->gain_count; i++)
		leases_become(fleet, holding, lease_of(item, &item->plan->gains[i]), LEASE_TAKING);
	return true;
}

/* Asserts that host @hid is gone; or by the node of its end in @epoch that its right is over. */
static bool add_assertion(struct request *request, const char *hid, uint32_t epoch)
{
	char path[ZNODE_TEXT], name[ZNODE_TEXT];

	if (epoch) {
		znode_end_print(hid, epoch, name);
		znode_path_named(ZNODE_END, 0, name, path);
		return request_add(request, OPERATION_CHECK, path, NULL, NODE_VERSION_ANY, 0);
	}
	znode_path_named(ZNODE_HOST, 0, hid, path);
	return request_add(request, OPERATION_CREATE, path, NULL, 0, 0) &&
	       request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
}

/* Rule 8: asserts it of the hosts whose tiles @item takes, and notes the epochs of their ends. */
static bool add_assertions(const struct fleet *fleet, struct request *request,
			   const struct item *item)
{
	struct plan *plan = item->plan;

	for (uint32_t i = 0; i < plan->gain_count; i++) {
		const char *hid = plan->gains[i].hid;
		bool again = !*hid;

		if (*hid)
			plan->gains[i].epoch = neighbour_end_epoch(fleet, hid);
		for (uint32_t j = 0; j < i && !again; j++)
			again = tile_is_of(&plan->gains[j], hid);
		if (!again && !add_assertion(request, hid, plan->gains[i].epoch))
			return false;
	}
	return true;
}

/* Ends the leases that the items from @first on were to take and have not. */
static void end_takes(struct fleet *fleet, uint32_t first)
{
	for (uint32_t i = first; i < transaction_count(fleet); i++) {
		const struct item *item = transaction_item(fleet, i);
		uint32_t count;
		struct lease *leases = item_leases(item, &count);

		for (uint32_t j = 0; j < count; j++) {
			if (leases[j].state == LEASE_TAKING)
				leases_become(fleet, item->holding, &leases[j], LEASE_NONE);
		}
		leases_tidy(fleet, item->holding);
	}
}

/* Plans what is taken of the leaves, and of the reserve if @reserve is not NULL. */
static bool plan_all(struct fleet *fleet, struct holding *holding, struct tiles *tiles,
		     uint32_t wanted, struct tiles *reserve)
{
	uint32_t room = room_for_leases(fleet);
	struct item *item;

	if (reserve && room) {
		item = begin_item(fleet, holding, true, reserve);
		if (!item || !plan_reserve(item->plan))
			return false;
		room -= item->plan->gain_count;
	}
	if (!room && wanted)
		room_was_missing(fleet);
	item = begin_item(fleet, holding, false, tiles);
	return item && plan_leaves(holding, item->plan, wanted, room);
}

/* Tells whether the operations of the items from @first on fit @request. */
static bool fits(const struct fleet *fleet, const struct request *request, uint32_t first)
{
	uint32_t count = request->operation_count;

	for (uint32_t i = first; i < transaction_count(fleet); i++) {
		const struct plan *plan = transaction_item(fleet, i)->plan;
		uint32_t gains = plan->gain_count;

		if (gains > TILES_GONE_MAX)
			gains = TILES_GONE_MAX;
		count += plan_change_count(plan) + 2 * gains;
	}
	return count <= OPERATIONS_MAX;
}

/* Fills in @request by the plans from @first on. False: there is no memory. */
static bool fill(struct fleet *fleet, struct request *request, uint32_t first)
{
	for (uint32_t i = first; i < transaction_count(fleet); i++) {
		struct item *item = transaction_item(fleet, i);

		if (!transaction_add_plan(request, item) || !add_assertions(fleet, request, item) ||
		    !add_leases(fleet, item))
			return false;
		item->end = request->operation_count;
	}
	return true;
}

bool take_add(struct fleet *fleet, struct request *request, struct holding *holding,
	      struct tiles *tiles, uint32_t wanted, struct tiles *reserve)
{
	uint32_t first = transaction_count(fleet), operations = request->operation_count;

	if (first + 2 <= ITEMS_MAX && plan_all(fleet, holding, tiles, wanted, reserve) &&
	    fits(fleet, request, first) && fill(fleet, request, first) &&
	    request->operation_count > operations)
		return true;
	end_takes(fleet, first);
	transaction_drop(fleet, first);
	request_cut(request, operations);
	return false;
}

/* Rules 7 and 8: has the lease that came with @gain. */
static void take_gain(struct fleet *fleet, const struct item *item, const struct tile *gain)
{
	uint64_t now_ns = fleet->clocks.waiter_ns;
	struct lease *lease = lease_of(item, gain);

	lease->usable_ns = epoch_usable_ns(&fleet->epochs, gain, now_ns,
					   fleet->constants.quarantine_ns);
	if (lease->usable_ns <= now_ns) {
		fleet->counters.taken_clean++;
		leases_become(fleet, item->holding, lease, LEASE_HELD);
	} else {
		fleet->counters.taken_unclean++;
		leases_become(fleet, item->holding, lease, LEASE_WAITING);
	}
}

/* Tells whether the rest of @gain does. */
static bool counts(const struct fleet *fleet, const struct item *item, const struct tile *gain)
{
	return lease_of(item, gain)->state == LEASE_HELD && !item->holding->limiter->removed &&
	       term_runs(fleet) && epoch_rest_counts(&fleet->epochs, gain);
}

/*
 * Rule 20: returns what was used at most of limit @cap->limit by the leaves of @gain, a part of
 * those that @cap is of.
 */
static struct window_use use_under(const struct host_cap *cap, const struct tile *gain)
{
	const i128 billion = 1000000000;
	i128 all = (i128)cap->tokens * billion * tile_size(gain);

	return (struct window_use){cap->begin_s, (all + cap->leaves - 1) / cap->leaves};
}

/*
 * Lets @rest say what the host of @gain, which was ended, told of windows, if no election lies
 * between that and the take.
 */
static void add_caps(struct fleet *fleet, const struct item *item, const struct tile *gain,
		     struct rest *rest)
{
	const struct holding *holding = item->holding;
	const struct host_caps *caps = *gain->hid ? neighbour_caps(fleet, gain->hid, gain->epoch)
						  : NULL;

	if (!caps || gain->epoch != fleet->epochs.newest || holding->limiter->removed ||
	    !term_runs(fleet))
		return;
	for (uint32_t i = 0; i < caps->count; i++) {
		const struct host_cap *cap = &caps->list[i];
		struct window_use use = use_under(cap, gain);

		if (cap->id == holding->id && cap->cut == item->cut &&
		    cap->saved == holding->saved && cap->epoch == gain->epoch &&
		    cap->limit < rest->count && rest_is_window(rest, cap->limit) &&
		    tile_size(gain) <= cap->leaves)
			rest_set_use(rest, cap->limit, &use);
	}
}

/* Notes what was used of windows and quotas of @gain, before its leaves count. */
static void join_use(struct fleet *fleet, const struct item *item, const struct tile *gain)
{
	struct holding *holding = item->holding;
	const struct plan *plan = item->plan;
	struct rest rest = rest_unknown(holding->settings, holding->saved);

	if (item->reserve || lease_of(item, gain)->state != LEASE_HELD)
		return;
	if (counts(fleet, item, gain)) {
		rest = rest_now(&gain->rest, &plan->rules.full, gain->first, gain->last,
				plan->before.leaves);
		learning_gain(holding->limiter, tile_size(gain));
	} else {
		add_caps(fleet, item, gain, &rest);
		leases_note_unproven(fleet, holding, tile_size(gain));
	}
	leases_join_use(fleet, holding, &rest, tile_size(gain));
}

/* Lets the rest of @gain join the buckets, if it counts. */
static void join_rest(struct fleet *fleet, const struct item *item, const struct tile *gain)
{
	struct limiter *limiter = item->holding->limiter;
	const struct plan *plan = item->plan;
	struct rest rest;

	if (!counts(fleet, item, gain))
		return;
	rest = rest_now(&gain->rest, &plan->rules.full, gain->first, gain->last,
			plan->before.leaves);
	for (uint32_t i = 0; i < limiter->bucket_count && i < rest.count; i++) {
		struct bucket_part part = rest_part(&rest, i);

		if (bucket_is_window(&limiter->buckets[i]))
			continue;
		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		bucket_join(&limiter->buckets[i], &part);
	}
}

/* @item was taken. */
static void taken(struct fleet *fleet, const struct item *item)
{
	const struct plan *plan = item->plan;
	struct holding *holding = item->holding;

	leases_name(fleet, item, &plan->after);
	for (uint32_t i = 0; i < plan->gain_count; i++)
		take_gain(fleet, item, &plan->gains[i]);
	for (uint32_t i = 0; i < plan->gain_count; i++)
		join_use(fleet, item, &plan->gains[i]);
	leases_reshare(fleet, holding);
	for (uint32_t i = 0; i < plan->gain_count; i++)
		join_rest(fleet, item, &plan->gains[i]);
	leases_tidy(fleet, holding);
}

void take_answered(struct fleet *fleet, const struct request *request)
{
	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		const struct item *item = transaction_item(fleet, i);

		if (request->answer == ANSWER_OK && item_counts(item))
			taken(fleet, item);
	}
	end_takes(fleet, 0);
}
