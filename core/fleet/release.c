/* release - giving back: rules 8, 12 and 15 of fleet.h. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t holding_kept(const struct holding *holding)
{
	return holding->leased - holding->draining;
}

/*
 * Splits the share of one partition off the buckets, by the settings as they are, into a marker
 * from calloc. NULL: no tokens go with the partition.
 */
static struct marker *split(struct fleet *fleet, const struct holding *holding)
{
	struct limiter *limiter = holding->limiter;
	uint32_t count = settings_partition_count(holding->settings);
	uint32_t shares = holding->usable + holding->reserve_usable;
	struct marker *marker;

	if (!shares || limiter->removed || !limiter->bucket_count || holding->degraded)
		return NULL;
	marker = calloc(1, sizeof(*marker));
	if (!marker)
		return NULL;
	marker->saved = holding->saved;
	marker->count = limiter->bucket_count;
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		uint64_t burst = settings_burst(holding->settings, i);

		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		marker->parts[i] = bucket_split(&limiter->buckets[i], shares,
						burst / count ? burst / count : 1);
	}
	return marker;
}

void drain(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	bool held = lease->state == LEASE_HELD;

	if (!held && lease->state != LEASE_WAITING)
		return;
	if (held && fleet->right)
		lease->marker = split(fleet, holding);
	lease->unmarked = !held;
	fleet_lease_becomes(fleet, holding, lease, LEASE_DRAINING);
	if (held)
		fleet_reshare(fleet, holding);
	fleet_add_work(fleet, holding);
}

void drain_all(struct fleet *fleet, struct holding *holding)
{
	for (uint32_t i = 0; i < holding->lease_room; i++)
		drain(fleet, holding, &holding->leases[i]);
	drain(fleet, holding, &holding->reserve);
}

static bool add(struct fleet *fleet, struct request *request, struct holding *holding,
		uint32_t index, bool reserve)
{
	struct transaction *t = &fleet->transaction;
	struct item *item = &t->items[t->item_count++];
	const struct marker empty = {.saved = holding->saved,
				     .count = holding->settings->limit_count};
	char path[ZNODE_TEXT], text[MARKER_TEXT];
	struct lease *lease;
	bool added;

	*item = (struct item){.holding = holding, .index = index, .reserve = reserve};
	holding_keep(holding);
	lease = item_lease(item);
	lease->sent = true;
	fleet_keep_lease(fleet, holding, lease, item_index(item));
	item->operation = request->operation_count;
	item_path(item, ZNODE_LEASE, path);
	added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	if (!added || holding->limiter->removed || lease->unmarked)
		return added;
	item_path(item, ZNODE_MARKER, path);
	marker_print(lease->marker ? lease->marker : &empty, text);
	return request_add(request, OPERATION_CREATE, path, text, 0, 0);
}

static bool is_due(const struct lease *lease)
{
	return lease->state == LEASE_DRAINING && !lease->sent;
}

static bool add_all(struct fleet *fleet, struct request *request, struct holding *holding)
{
	const struct transaction *t = &fleet->transaction;
	bool added = true;

	for (uint32_t i = 0;
	     holding->draining && i < holding->lease_room && t->item_count < ITEMS_MAX && added;
	     i++) {
		if (is_due(&holding->leases[i]))
			added = add(fleet, request, holding, i, false);
	}
	if (added && t->item_count < ITEMS_MAX && is_due(&holding->reserve))
		added = add(fleet, request, holding, holding->reserve_index, true);
	return added;
}

/*
 * Those who wait for partitions of @holding look every R; setting the data of their claims wakes them
 * at once. As many are woken as there was something given up, and nothing depends on it.
 */
void drain_wake(struct fleet *fleet, struct holding *holding)
{
	uint32_t count = holding->given_up;
	char path[ZNODE_TEXT];

	if (holding->looking)
		return;
	holding->given_up = 0;
	for (uint32_t i = 0; i < count && i < holding->claimant_count; i++) {
		struct request *request = request_new(REQUEST_TRANSACTION, NULL, NULL);

		if (!request)
			return;
		znode_path_named(ZNODE_CLAIM, holding->id, holding->claimants[i], path);
		if (request_add(request, OPERATION_SET, path, NULL, NODE_VERSION_ANY, 0))
			request_send(fleet, request);
		else
			request_free(request);
	}
}

bool drain_is_due(const struct fleet *fleet, const struct holding *holding)
{
	if (fleet->now_ns < holding->next_drain_ns)
		return false;
	for (uint32_t i = 0; holding->draining && i < holding->lease_room; i++) {
		if (is_due(&holding->leases[i]))
			return true;
	}
	return is_due(&holding->reserve);
}

/*
 * Who leaves has asked before who waits, and does not wait for the answer to what it gives back: they
 * are told after that.
 */
static void wake_all(struct fleet *fleet)
{
	const struct transaction *t = &fleet->transaction;

	for (uint32_t i = 0; i < t->item_count; i++)
		t->items[i].holding->given_up++;
	for (uint32_t i = 0; i < t->item_count; i++)
		drain_wake(fleet, t->items[i].holding);
}

bool drain_send(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	bool added;

	if (!drain_is_due(fleet, holding))
		return false;
	request = transaction_begin(fleet, TRANSACTION_GIVE);
	if (!request)
		return false;
	added = add_all(fleet, request, holding);
	/* Who leaves gives back what it can at once. */
	for (struct holding *h = fleet->holdings; h && added && fleet->leaving; h = h->next) {
		if (h != holding)
			added = add_all(fleet, request, h);
	}
	if (added) {
		transaction_send(fleet, request);
		if (fleet->leaving)
			wake_all(fleet);
		return true;
	}
	for (uint32_t i = 0; i < fleet->transaction.item_count; i++) {
		const struct item *item = &fleet->transaction.items[i];

		item_lease(item)->sent = false;
		fleet_keep_lease(fleet, item->holding, item_lease(item), item_index(item));
	}
	transaction_end(fleet);
	request_free(request);
	return false;
}
