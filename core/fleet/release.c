/* release - giving back, see release.h. */
#include "core/fleet/release.h"
#include "core/fleet/claim.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void release_lease(struct fleet *fleet, struct holding *holding, struct lease *lease)
{
	bool held = lease->state == LEASE_HELD;

	if (!held && lease->state != LEASE_WAITING)
		return;
	if (held && term_runs(fleet))
		lease->marker = split(fleet, holding);
	lease->unmarked = !held;
	leases_become(fleet, holding, lease, LEASE_DRAINING);
	if (held)
		leases_reshare(fleet, holding);
	holdings_add_work(fleet, holding);
}

void release_all(struct fleet *fleet, struct holding *holding)
{
	for (uint32_t i = 0; i < holding->lease_room; i++)
		release_lease(fleet, holding, &holding->leases[i]);
	release_lease(fleet, holding, &holding->reserve);
}

void release_unfit(struct fleet *fleet, struct holding *holding)
{
	if (holding->limiter->removed || !holding_needs_leases(holding)) {
		release_all(fleet, holding);
		return;
	}
	for (uint32_t i = holding_count(holding); i < holding->lease_room; i++)
		release_lease(fleet, holding, &holding->leases[i]);
	if (holding->reserve_index >= holding->settings->reserve_hosts)
		release_lease(fleet, holding, &holding->reserve);
}

static bool add(struct fleet *fleet, struct request *request, struct holding *holding,
		uint32_t index, bool reserve)
{
	struct item *item = transaction_add(
		fleet, &(struct item){.holding = holding, .index = index, .reserve = reserve});
	const struct marker empty = {.saved = holding->saved,
				     .count = holding->settings->limit_count};
	char path[ZNODE_TEXT], text[MARKER_TEXT];
	struct lease *lease;
	bool added;

	lease = item_lease(item);
	lease->sent = true;
	handover_keep_lease(fleet, holding, lease, item_index(item));
	item->operation = request->operation_count;
	item_path(item, ZNODE_LEASE, path);
	added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	if (!added || holding->limiter->removed || lease->unmarked)
		return added;
	item_path(item, ZNODE_MARKER, path);
	record_print_marker(lease->marker ? lease->marker : &empty, text);
	return request_add(request, OPERATION_CREATE, path, text, 0, 0);
}

static bool is_due(const struct lease *lease)
{
	return lease->state == LEASE_DRAINING && !lease->sent;
}

static bool add_all(struct fleet *fleet, struct request *request, struct holding *holding)
{
	bool added = true;

	for (uint32_t i = 0; holding->draining && i < holding->lease_room &&
			     transaction_count(fleet) < ITEMS_MAX && added;
	     i++) {
		if (is_due(&holding->leases[i]))
			added = add(fleet, request, holding, i, false);
	}
	if (added && transaction_count(fleet) < ITEMS_MAX && is_due(&holding->reserve))
		added = add(fleet, request, holding, holding->reserve_index, true);
	return added;
}

bool release_is_due(const struct fleet *fleet, const struct holding *holding)
{
	if (fleet->now_ns < holding->release_ns)
		return false;
	for (uint32_t i = 0; holding->draining && i < holding->lease_room; i++) {
		if (is_due(&holding->leases[i]))
			return true;
	}
	return is_due(&holding->reserve);
}

/*
 * Wakes the hosts that wait for what a leaving host gives back. It has asked for their names
 * before, and does not wait for the answer.
 */
static void wake_all(struct fleet *fleet)
{
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		claim_note_given(transaction_item(fleet, i)->holding);
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
	added = add_all(fleet, request, holding);
	/* A host that leaves gives back as much as fits at once. */
	for (struct holding *h = holdings_first(fleet); h && added && session_is_leaving(fleet);
	     h = h->next) {
		if (h != holding)
			added = add_all(fleet, request, h);
	}
	if (added) {
		transaction_send(fleet, request);
		if (session_is_leaving(fleet))
			wake_all(fleet);
		return true;
	}
	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		const struct item *item = transaction_item(fleet, i);

		item_lease(item)->sent = false;
		handover_keep_lease(fleet, item->holding, item_lease(item), item_index(item));
	}
	transaction_give_up(fleet, request);
	return false;
}

void release_answered(struct fleet *fleet, const struct request *request)
{
	bool mended = false;
	uint32_t given = 0, count = transaction_count(fleet);

	for (uint32_t i = 0; i < count; i++) {
		struct item *item = transaction_item(fleet, i);
		struct lease *lease = item_lease(item);
		bool last = i + 1 == count ||
			    transaction_item(fleet, i + 1)->holding != item->holding;

		if (request->answer == ANSWER_OK) {
			fleet->counters.given_back++;
			leases_become(fleet, item->holding, lease, LEASE_NONE);
			given++;
			if (last) {
				claim_given_back(fleet, item->holding, given);
				given = 0;
			}
			continue;
		}
		lease->sent = false;
		/* A marker that is there, or cannot be made: it goes back without. */
		if (request->failed > item->operation &&
		    (i + 1 == count || request->failed < transaction_item(fleet, i + 1)->operation))
			mended = lease->unmarked = true;
		handover_keep_lease(fleet, item->holding, lease, item_index(item));
		holdings_add_work(fleet, item->holding);
	}
	if (mended || request->answer == ANSWER_OK || request->failed < HEAD_LENGTH)
		return;
	for (uint32_t i = 0; i < count; i++)
		transaction_item(fleet, i)->holding->release_ns = fleet->now_ns +
								  fleet->constants.renewal_ns;
}
