/* release - giving back, see release.h. */
#include "core/fleet/release.h"
#include "core/fleet/claim.h"
#include "core/fleet/handover.h"
#include "core/fleet/epoch.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"
#include "core/limiter/learning.h"
#include "core/limiter/slots.h"

#include <stdlib.h>

static const uint64_t NANO = UINT64_C(1000000000);

enum { GIVE_CHANGES = 4 }; /* of a run in the middle of a tile, with the tile itself */

/* Takes what @lease used of windows out of bucket @i: the reserve has no part in them. */
static void split_use(struct fleet *fleet, const struct holding *holding, const struct lease *lease,
		      uint32_t i, struct rest *rest)
{
	struct bucket *bucket = &holding->limiter->buckets[i];
	struct window_use use = {.begin_s = WINDOW_UNKNOWN};

	bucket_refill(bucket, fleet->engine->schedule.now_ns);
	if (lease != &holding->reserve && lease_size(lease) <= holding->usable)
		use = window_split_use(bucket, lease_size(lease), holding->usable);
	rest_set_use(rest, i, &use);
}

/*
 * Takes the share of @lease out of the buckets, by the settings as they are, but for @kept tokens
 * that stay, from calloc. NULL: nothing goes with it.
 */
static struct rest *split(struct fleet *fleet, const struct holding *holding,
			  const struct lease *lease, uint64_t kept)
{
	struct limiter *limiter = holding->limiter;
	uint32_t leaves = holding_leaves(holding->settings), size = lease_size(lease);
	uint32_t shares = holding->usable + holding->reserve_usable;
	bool single = holding_has_numbers(holding->settings);
	struct rest *rest;

	if (shares < size || limiter->removed || !limiter->bucket_count || holding->degraded)
		return NULL;
	rest = calloc(1, sizeof(*rest));
	if (!rest)
		return NULL;
	*rest = (struct rest){.saved = holding->saved, .count = limiter->bucket_count};
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		u128 whole = (u128)settings_burst(holding->settings, i) * size;
		i128 most = (i128)(whole * (i128)NANO / leaves);
		struct bucket_part part;

		if (bucket_is_window(&limiter->buckets[i])) {
			split_use(fleet, holding, lease, i, rest);
			continue;
		}
		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		part = bucket_split(&limiter->buckets[i], size, shares,
				    (uint64_t)(whole / leaves + 1), kept);
		rest_set_part(rest, i, &part);
		if (single && most < (i128)NANO)
			most = (i128)NANO;
		if (rest->nano[i] > most)
			rest->nano[i] = most;
	}
	return rest;
}

uint32_t release_spare(struct fleet *fleet, const struct holding *holding)
{
	return holding_needs_leases(holding)
		       ? learning_spare(&fleet->engine->schedule, holding->limiter)
		       : UINT32_MAX;
}

/* Rule 21: tells whether @lease has to stay for what was granted of a quota. */
static bool has_to_stay(struct fleet *fleet, const struct holding *holding,
			const struct lease *lease)
{
	return lease != &holding->reserve && lease_size(lease) > release_spare(fleet, holding);
}

/* As release_lease(), but for @kept tokens in each bucket. */
static void let_go(struct fleet *fleet, struct holding *holding, struct lease *lease, uint64_t kept)
{
	if (lease->state != LEASE_HELD || has_to_stay(fleet, holding, lease))
		return;
	if (term_runs(fleet))
		lease->rest = split(fleet, holding, lease, kept);
	if (lease != &holding->reserve)
		learning_lose(holding->limiter, lease_size(lease));
	leases_become(fleet, holding, lease, LEASE_DRAINING);
	if (!lease->rest && !holding->degraded)
		(void)leases_forget_use(holding);
	leases_reshare(fleet, holding);
	holdings_add_work(fleet, holding);
}

void release_lease(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	let_go(fleet, holding, lease, 0);
}

/*
 * Gives back leaves @first to @last, in which leases begin and end. A host that stays with some has
 * room for one token, however few they are: that stays for its next reader.
 */
static void release_run(struct fleet *fleet, struct holding *holding, uint32_t first, uint32_t last,
			bool stays)
{
	for (uint32_t i = 0; i < holding->lease_count; i++) {
		if (holding->leases[i].first >= first && holding->leases[i].last <= last)
			let_go(fleet, holding, &holding->leases[i], stays);
	}
}

/* Returns the end of the run of leaves from @leaf on of which open slots have numbers. */
static uint32_t end_of_numbered(const struct holding *holding, uint32_t leaf)
{
	uint32_t count = holding_count(holding);

	while (leaf < count && holding_next_numbered(holding, leaf) == leaf)
		leaf++;
	return leaf;
}

/* Fixes the leaves in @tiles of which open slots have numbers. False: there is no memory. */
static bool fix_numbered(const struct holding *holding, struct tiles *tiles)
{
	uint32_t count = holding_count(holding), leaf = 0, end;

	for (; (leaf = holding_next_numbered(holding, leaf)) < count; leaf = end) {
		uint32_t at = tiles_find(tiles, leaf);

		end = leaf + 1;
		if (at == tiles->count || tiles->list[at].first > leaf)
			continue;
		end = end_of_numbered(holding, leaf);
		end = end <= tiles->list[at].last ? end : tiles->list[at].last + 1;
		if (!tiles_cut(tiles, leaf) || !tiles_cut(tiles, end))
			return false;
		tiles->list[tiles_find(tiles, leaf)].fixed = true;
	}
	return true;
}

void release_leaves(struct fleet *fleet, struct holding *holding, uint32_t amount)
{
	struct item item = item_of(holding, false);
	struct tiles tiles = {0};
	const struct rest none = {.saved = 1};
	uint32_t spare = release_spare(fleet, holding);
	const struct tile *tile;
	bool stays;

	if (amount > spare)
		amount = spare;
	/* Where others come or wait for Q, one of the usable ones stays. */
	if (amount >= holding->usable && amount < leases_kept(holding))
		amount = holding->usable ? holding->usable - 1 : 0;
	stays = amount < holding->usable;
	if (!amount)
		return;

	/* The plan chooses which ones, of those that may go. */
	if (!tiles_read(&tiles, NULL, 0, PARTITIONS_MAX) ||
	    !leases_put(fleet, holding, false, &tiles) || !fix_numbered(holding, &tiles) ||
	    !item_begin(&item, &tiles, session_hid(fleet), 0) ||
	    plan_give(item.plan, amount, EPOCH_NONE, &none) < 0)
		amount = 0;
	for (uint32_t i = 0; amount && i < item.plan->after.count; i++) {
		tile = &item.plan->after.list[i];
		if (tile_is_clean(tile) && leases_cut(fleet, holding, tile->first) &&
		    leases_cut(fleet, holding, tile->last + 1))
			release_run(fleet, holding, tile->first, tile->last, stays);
	}
	item_free(&item);
	tiles_free(&tiles);
}

static uint32_t slots_of(const struct holding *holding, const struct lease *lease)
{
	return settings_slots_of_leaves(holding->settings, lease->first, lease->last);
}

/* Returns the open slots of @holding but for those that leases with numbers of open slots hold. */
static uint32_t open_without_number(const struct holding *holding)
{
	uint32_t open = slots_used(holding->limiter);

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD &&
		    holding_is_numbered(holding, lease->first, lease->last))
			open -= slots_of(holding, lease) < open ? slots_of(holding, lease) : open;
	}
	return open;
}

/*
 * Tells whether slots of @lease are open: one has a number of it, or it has some of @open slots,
 * which count no more then.
 */
static bool has_open(const struct holding *holding, const struct lease *lease, uint32_t *open)
{
	uint32_t slots = slots_of(holding, lease);

	if (lease->state != LEASE_HELD)
		return false;
	if (holding_is_numbered(holding, lease->first, lease->last))
		return true;
	if (!slots || !*open)
		return false;
	*open -= slots < *open ? slots : *open;
	return true;
}

/*
 * Lets @lease be on leaving, and the next host takes it from a host that is gone: one that is not
 * usable yet, one of which some of @open slots are, that programs go on holding, and one that has
 * to stay for a quota.
 */
static void let_be(struct fleet *fleet, struct holding *holding, struct lease *lease,
		   uint32_t *open)
{
	bool has_some = lease == &holding->reserve ? lease->state == LEASE_HELD && *open
						   : has_open(holding, lease, open);

	if (!has_some && lease->state != LEASE_WAITING &&
	    (lease->state != LEASE_HELD || !has_to_stay(fleet, holding, lease)))
		return;
	leases_become(fleet, holding, lease, LEASE_NONE);
}

/* Makes leases of their own of the leaves of which open slots have numbers. */
static void cut_out_numbered(struct fleet *fleet, struct holding *holding)
{
	uint32_t count = holding_count(holding), leaf = 0, end;

	for (; (leaf = holding_next_numbered(holding, leaf)) < count; leaf = end) {
		const struct lease *lease = holding_find_lease(holding, leaf);

		end = leaf + 1;
		if (!lease || lease->state != LEASE_HELD)
			continue;
		end = end_of_numbered(holding, leaf);
		end = end <= lease->last ? end : lease->last + 1;
		/* Without memory a lease stays whole. */
		(void)leases_cut(fleet, holding, leaf);
		(void)leases_cut(fleet, holding, end);
	}
}

void release_all(struct fleet *fleet, struct holding *holding)
{
	bool counts = holding->settings->slots.kind == SLOTS_COUNT;
	uint32_t open;

	if (session_is_leaving(fleet) && counts)
		cut_out_numbered(fleet, holding);
	open = counts ? open_without_number(holding) : 0;
	/* As much as may go does, of a lease that would have to stay whole. */
	if (session_is_leaving(fleet) && release_spare(fleet, holding) < holding->held)
		release_leaves(fleet, holding, holding->held);
	for (uint32_t i = 0; i <= holding->lease_count; i++) {
		struct lease *lease = i < holding->lease_count ? &holding->leases[i]
							       : &holding->reserve;

		if (session_is_leaving(fleet))
			let_be(fleet, holding, lease, &open);
		release_lease(fleet, holding, lease);
	}
}

/* Gives back the leases of a closed limiter, but for those whose slots are open. */
static void release_closed(struct fleet *fleet, struct holding *holding)
{
	uint32_t open = open_without_number(holding);

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		struct lease *lease = &holding->leases[i];

		if (!has_open(holding, lease, &open))
			release_lease(fleet, holding, lease);
	}
	release_lease(fleet, holding, &holding->reserve);
}

void release_unfit(struct fleet *fleet, struct holding *holding)
{
	const struct settings *settings = holding->settings;

	if (holding_needs_leases(holding))
		return;
	if (settings->enforcement == ENFORCEMENT_CLOSED && settings->slots.kind == SLOTS_COUNT)
		release_closed(fleet, holding);
	else
		release_all(fleet, holding);
}

static bool is_due(const struct lease *lease)
{
	return lease->state == LEASE_DRAINING && !lease->sent;
}

/* Returns what goes with @lease. */
static struct rest rest_of(const struct holding *holding, const struct lease *lease)
{
	const struct limiter *limiter = holding->limiter;
	struct rest rest = rest_unknown(holding->settings, holding->saved);

	if (lease->rest)
		return *lease->rest;
	for (uint32_t i = 0; i < rest.count && i < limiter->bucket_count; i++) {
		struct window_share worth;
		struct window_use use;

		if (!rest_is_window(&rest, i) || !bucket_is_window(&limiter->buckets[i]))
			continue;
		worth = holding_window(holding, i, lease_size(lease));
		use = window_spent(&limiter->buckets[i], &worth);
		rest_set_use(&rest, i, &use);
	}
	return rest;
}

/* Plans to give back what is due of @item, as much as there is room for in @request. */
static bool plan_all(struct fleet *fleet, const struct request *request, struct item *item)
{
	uint32_t room = OPERATIONS_MAX - request->operation_count, count;
	struct lease *leases = item_leases(item, &count);

	if (room > PLAN_CHANGES_MAX)
		room = PLAN_CHANGES_MAX;
	for (uint32_t i = 0; i < count; i++) {
		struct rest rest;

		if (!is_due(&leases[i]))
			continue;
		if (plan_change_count(item->plan) + GIVE_CHANGES > room)
			break;
		rest = rest_of(item->holding, &leases[i]);
		if (plan_give_run(item->plan, leases[i].first, leases[i].last, term_epoch(fleet),
				  &rest) < 0)
			return false;
		leases[i].sent = true;
		handover_keep_lease(fleet, item->holding, &leases[i]);
	}
	return true;
}

/* Adds the give-back of what is due of @holding, or of its reserve. */
static bool add(struct fleet *fleet, struct request *request, struct holding *holding, bool reserve)
{
	struct item *item = NULL, begun = item_of(holding, reserve);
	struct tiles tiles = {0};
	uint32_t count, due = 0;
	const struct lease *leases = item_leases(&begun, &count);
	bool added;

	for (uint32_t i = 0; i < count; i++)
		due += is_due(&leases[i]);
	if (!due || transaction_count(fleet) == ITEMS_MAX)
		return true;
	added = tiles_read(&tiles, NULL, 0, PARTITIONS_MAX) &&
		leases_put(fleet, holding, reserve, &tiles) &&
		item_begin(&begun, &tiles, session_hid(fleet), 0);
	if (added)
		item = transaction_add(fleet, &begun);
	tiles_free(&tiles);
	return added && plan_all(fleet, request, item) && transaction_add_plan(request, item);
}

/* Tells whether what is due of another limiter, and of its reserve, may fit. */
static bool has_room(const struct fleet *fleet, const struct request *request)
{
	return transaction_count(fleet) + 2 <= ITEMS_MAX &&
	       request->operation_count + 2 * GIVE_CHANGES <= OPERATIONS_MAX;
}

static bool add_all(struct fleet *fleet, struct request *request, struct holding *holding)
{
	return (!holding->draining || add(fleet, request, holding, false)) &&
	       add(fleet, request, holding, true);
}

bool release_is_due(const struct fleet *fleet, const struct holding *holding)
{
	if (fleet->now_ns < holding->release_ns)
		return false;
	for (uint32_t i = 0; holding->draining && i < holding->lease_count; i++) {
		if (is_due(&holding->leases[i]))
			return true;
	}
	return is_due(&holding->reserve);
}

/* Adds what else is due, as much as fits: a host that leaves has all of its limiters looked at. */
static bool add_others(struct fleet *fleet, struct request *request, const struct holding *holding)
{
	bool leaves = session_is_leaving(fleet), added = true;
	struct holding *h = leaves ? holdings_first(fleet) : holdings_first_work(fleet);

	for (; h && added && has_room(fleet, request); h = leaves ? h->next : h->next_work) {
		if (h != holding && (leaves || release_is_due(fleet, h)))
			added = add_all(fleet, request, h);
	}
	return added;
}

/* Calls @act for each lease of @item that the transaction gives back. Returns their leaves. */
static uint32_t for_sent(struct fleet *fleet, const struct item *item,
			 void (*act)(struct fleet *fleet, struct holding *holding,
				     struct lease *lease))
{
	uint32_t count, given = 0;
	struct lease *leases = item_leases(item, &count);

	for (uint32_t i = 0; i < count; i++) {
		if (leases[i].state != LEASE_DRAINING || !leases[i].sent)
			continue;
		given += lease_size(&leases[i]);
		act(fleet, item->holding, &leases[i]);
	}
	return given;
}

static void keep_lease(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	lease->sent = false;
	handover_keep_lease(fleet, holding, lease);
}

static void end_lease(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	fleet->counters.given_back++;
	leases_become(fleet, holding, lease, LEASE_NONE);
}

static void leave_lease(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	(void)fleet;
	claim_note_given(holding, lease_size(lease));
}

/*
 * Wakes the hosts that wait for what a leaving host gives back. It has asked for their names
 * before, and does not wait for the answer.
 */
static void wake_all(struct fleet *fleet)
{
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		for_sent(fleet, transaction_item(fleet, i), leave_lease);
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		claim_wake_others(fleet, transaction_item(fleet, i)->holding);
}

bool release_send(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	bool added;

	if (!release_is_due(fleet, holding))
		return false;
	request = transaction_begin(fleet, TRANSACTION_GIVE);
	if (!request)
		return false;
	added = add_all(fleet, request, holding) && add_others(fleet, request, holding);
	if (added) {
		transaction_send(fleet, request);
		if (session_is_leaving(fleet))
			wake_all(fleet);
		return true;
	}
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		for_sent(fleet, transaction_item(fleet, i), keep_lease);
	transaction_give_up(fleet, request);
	return false;
}

/* The leases of @item are given back: they are none any more. */
static void given(struct fleet *fleet, const struct item *item)
{
	uint32_t leaves;

	if (item_counts(item))
		leases_name(fleet, item, &item->plan->after);
	leaves = for_sent(fleet, item, end_lease);
	leases_tidy(fleet, item->holding);
	claim_given_back(fleet, item->holding, leaves);
}

/* It is tried again, if it is still there; later if it was what the transaction was refused for. */
static void refused(struct fleet *fleet, const struct item *item, bool later)
{
	for_sent(fleet, item, item_counts(item) ? keep_lease : end_lease);
	if (later)
		item->holding->release_ns = fleet->now_ns + fleet->constants.renewal_ns;
	holdings_add_work(fleet, item->holding);
}

void release_answered(struct fleet *fleet, const struct request *request)
{
	const struct holding *cause = transaction_refused(fleet, request);

	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		const struct item *item = transaction_item(fleet, i);

		if (request->answer == ANSWER_OK)
			given(fleet, item);
		else
			refused(fleet, item, item->holding == cause);
	}
}
