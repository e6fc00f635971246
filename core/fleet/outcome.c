/* outcome - what follows from the answer to a transaction: rules 3 and 6 to 12 of fleet.h. */
#include "core/fleet/inside.h"

#include <stdlib.h>
#include <string.h>

/* Rule 7: Q from the receipt of the answer, which is this step. */
static void wait_out(struct fleet *fleet, struct lease *lease)
{
	lease->usable_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

/* Rules 6, 7 and 11. */
static void take_item(struct fleet *fleet, const struct item *item, uint64_t zxid)
{
	struct lease *lease = item_lease(item);
	bool clean = item->clean && item->made_zxid >> 32 == zxid >> 32;

	if (clean) {
		fleet->counters.taken_clean++;
		fleet_lease_becomes(fleet, item->holding, lease, LEASE_HELD);
		return;
	}
	fleet->counters.taken_unclean++;
	wait_out(fleet, lease);
	fleet_lease_becomes(fleet, item->holding, lease, LEASE_WAITING);
}

/*
 * Returns the tokens that came with the marker for limit @i, by rule 12. A debt counts whenever the
 * marker was written.
 */
static struct bucket_part part_of(const struct item *item, uint32_t i)
{
	const struct settings *settings = item->holding->settings;
	const struct marker *marker = &item->marker;
	bool counts = !item->old && marker->saved == item->holding->saved;

	if (i < marker->count && (counts || marker->parts[i].tokens < 0))
		return marker->parts[i];
	if (i < marker->count || !counts || item->reserve)
		return (struct bucket_part){0};
	return marker_full(settings_burst(settings, i), settings_partition_count(settings));
}

static void join_parts(struct fleet *fleet, const struct item *item)
{
	struct limiter *limiter = item->holding->limiter;
	uint32_t count = item->holding->settings->limit_count;

	if (item_lease(item)->state != LEASE_HELD || limiter->removed || !fleet->right)
		return;
	for (uint32_t i = 0; i < limiter->bucket_count && i < count; i++) {
		struct bucket_part part = part_of(item, i);

		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		bucket_join(&limiter->buckets[i], &part);
	}
}

static void take_answered(struct fleet *fleet, const struct request *request)
{
	struct transaction *t = &fleet->transaction;
	struct holding *holding = t->items[0].holding;
	uint32_t refused = UINT32_MAX;

	if (request->answer == ANSWER_OK) {
		for (uint32_t i = 0; i < t->item_count; i++) {
			take_item(fleet, &t->items[i], request->zxid);
			fleet_watch_lease(fleet, holding, t->items[i].index, t->items[i].reserve);
		}
		fleet_reshare(fleet, holding);
		for (uint32_t i = 0; i < t->item_count; i++)
			join_parts(fleet, &t->items[i]);
		if (!holding->limiter->removed)
			limiter_settle(&fleet->engine->schedule, holding->limiter);
		if (fleet->leaving)
			drain_all(fleet, holding);
	} else {
		for (uint32_t i = 0; i < t->item_count; i++) {
			fleet_lease_becomes(fleet, holding, item_lease(&t->items[i]), LEASE_NONE);
			if (request->failed >= t->items[i].operation)
				refused = i;
		}
		if (request->failed >= HEAD_LENGTH)
			fleet->counters.conflicts++;
		else
			refused = UINT32_MAX;
	}
	if (holding->search)
		search_taken(fleet, holding->search, request->answer, refused);
	fleet_add_work(fleet, holding);
}

/* Others who want it are woken, when this host is behind them in the line. */
static void given_back(struct fleet *fleet, struct holding *holding, uint32_t count)
{
	if (fleet->leaving || !holding->claimant_count)
		return;
	holding->given_up += count;
	if (!holding->reclaim)
		claims_look(fleet, holding);
}

static void give_answered(struct fleet *fleet, const struct request *request)
{
	struct transaction *t = &fleet->transaction;
	bool mended = false;
	uint32_t given = 0;

	for (uint32_t i = 0; i < t->item_count; i++) {
		struct item *item = &t->items[i];
		struct lease *lease = item_lease(item);
		bool last = i + 1 == t->item_count || t->items[i + 1].holding != item->holding;

		if (request->answer == ANSWER_OK) {
			fleet->counters.given_back++;
			fleet_lease_becomes(fleet, item->holding, lease, LEASE_NONE);
			given++;
			if (last) {
				given_back(fleet, item->holding, given);
				given = 0;
			}
			continue;
		}
		lease->sent = false;
		/* A marker that is there, or cannot be made: it goes back without. */
		if (request->failed > item->operation &&
		    (i + 1 == t->item_count || request->failed < t->items[i + 1].operation))
			mended = lease->unmarked = true;
		fleet_keep_lease(fleet, item->holding, lease, item_index(item));
		fleet_add_work(fleet, item->holding);
	}
	if (mended || request->answer == ANSWER_OK || request->failed < HEAD_LENGTH)
		return;
	for (uint32_t i = 0; i < t->item_count; i++)
		t->items[i].holding->next_drain_ns = fleet->now_ns + fleet->constants.renewal_ns;
}

static void claim_answered(struct fleet *fleet, struct request *request)
{
	struct transaction *t = &fleet->transaction;
	struct holding *holding = t->holding;
	struct operation *last = &request->operations[request->operation_count - 1];
	bool had_claim = holding->claim;

	if (request->answer == ANSWER_DENIED) {
		/* The one that was to be replaced is still there. */
		fleet_keep_claim(fleet, holding, holding->claim);
	} else if (request->answer == ANSWER_OK || request->failed >= HEAD_LENGTH) {
		free(holding->claim);
		holding->claim = NULL;
		holding->claimed = 0;
		fleet_keep_claim(fleet, holding, request->answer == ANSWER_OK && t->claimed);
	}
	if (request->answer != ANSWER_OK) {
		/* The folder is gone: the next search makes it again. */
		if (request->failed >= HEAD_LENGTH && !had_claim) {
			holding->unmet = false;
			holding->contended = false;
		}
		return;
	}
	if (holding->given_up)
		claims_look(fleet, holding);
	if (!t->claimed || !last->made)
		return;
	holding->claim = strdup(strrchr(last->made, '/') + 1);
	if (!holding->claim)
		return;
	holding->claimed = t->claimed;
	if (fleet->leaving)
		claim_withdraw(fleet, holding);
	else
		claim_watch(fleet, last->made);
}

/* The node of our own lease is gone, or one of ours has another's hand on it: rule 10. */
static bool is_foreign(const struct transaction *t, const struct request *request)
{
	const struct operation *refused;

	if (request->answer == ANSWER_DENIED || request->answer == ANSWER_REFUSED)
		return false;
	if (t->kind != TRANSACTION_JOIN && request->failed == OPERATION_HOST)
		return true;
	refused = &request->operations[request->failed];
	return t->kind == TRANSACTION_GIVE && refused->kind == OPERATION_DELETE &&
	       request->answer == ANSWER_NO_NODE;
}

static void joined(struct fleet *fleet, const struct request *request)
{
	transaction_end(fleet);
	if (request->answer != ANSWER_OK) {
		fleet->hid[0] = '\0';
		if (request->answer == ANSWER_DENIED || request->failed != OPERATION_GLOBALS)
			fleet->retry_ns = fleet->now_ns + NSEC_PER_SEC;
		else
			layout_look(fleet);
		return;
	}
	fleet->state = FLEET_READY;
	fleet->hosts_ns = 0;
	fleet->last_ack_ns = fleet->now_ns;
	fleet->trouble_ns = NEVER_NS;
	fleet_tell(fleet, FLEET_JOINED, "joined as %s", fleet->hid);
	sweep_look(fleet);
	fleet_extend_right(fleet, request->sent_ns);
	fleet_keep(fleet);
	for (struct holding *h = fleet->holdings; h; h = h->next)
		demand_rouse(fleet, h, false);
}

/* Rule 9: what it was about is in doubt. */
static void unknown(struct fleet *fleet)
{
	struct transaction *t = &fleet->transaction;

	fleet->counters.unknown++;
	if (t->kind == TRANSACTION_JOIN) {
		fleet_drop_session(fleet, "it is not known whether the host has joined");
		return;
	}
	for (uint32_t i = 0; i < t->item_count; i++)
		fleet_lease_becomes(fleet, t->items[i].holding, item_lease(&t->items[i]),
				    LEASE_IN_DOUBT);
	if (t->kind == TRANSACTION_TAKE && t->items[0].holding->search)
		search_end(fleet, t->items[0].holding->search);
	if (t->kind == TRANSACTION_SWEEP)
		sweep_forget(fleet);
	fleet->state = FLEET_IN_DOUBT;
	if (fleet->connected)
		doubt_begin(fleet);
}

static void finish(struct fleet *fleet, struct request *request)
{
	switch (fleet->transaction.kind) {
	case TRANSACTION_TAKE:
		take_answered(fleet, request);
		break;
	case TRANSACTION_GIVE:
		give_answered(fleet, request);
		break;
	case TRANSACTION_CLAIM:
		claim_answered(fleet, request);
		break;
	case TRANSACTION_SWEEP:
		sweep_answered(fleet, request);
		break;
	case TRANSACTION_CHANGE:
		transaction_end(fleet);
		publish_answered(fleet, request);
		return;
	case TRANSACTION_NONE:
	case TRANSACTION_JOIN:
	case TRANSACTION_BARRIER:
	case TRANSACTION_RENEW:
		break;
	}
	transaction_end(fleet);
}

void transaction_answered(struct fleet *fleet, struct request *request)
{
	struct transaction *t = &fleet->transaction;

	if (request->answer == ANSWER_OK && t->kind != TRANSACTION_JOIN) {
		fleet->host_version++;
		fleet->last_ack_ns = fleet->now_ns;
		/* A barrier does not look at /g: what it proves says nothing of the settings. */
		if (t->kind != TRANSACTION_BARRIER)
			fleet_extend_right(fleet, request->sent_ns);
		fleet_keep(fleet);
	}
	if (t->kind == TRANSACTION_BARRIER) {
		doubt_barrier_answered(fleet, request);
		return;
	}
	if (request->answer == ANSWER_UNKNOWN) {
		unknown(fleet);
		return;
	}
	if (t->kind == TRANSACTION_JOIN) {
		joined(fleet, request);
		return;
	}
	if (request->answer != ANSWER_OK) {
		if (is_foreign(t, request)) {
			fleet_drop_session(fleet, "lost history, or a foreign hand");
			return;
		}
		if (request->failed == OPERATION_GLOBALS && request->answer != ANSWER_DENIED)
			fleet->stale = true;
		if (request->answer == ANSWER_DENIED) {
			fleet_tell(fleet, FLEET_DENIED, "access denied by the coordinator");
			fleet->denied_until_ns = fleet->now_ns + fleet->constants.renewal_ns;
		}
	}
	finish(fleet, request);
}
