/*
 * barrier - the barrier after an unknown outcome: rule 9 of fleet.h.
 *
 * The version of /h is read, and a transaction that sets it acknowledged. Every older request of
 * this host checks an older version, so none can be executed any more; only then what was in doubt is
 * looked at. Meanwhile fleet->transaction says what it was.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void leave_doubt(struct fleet *fleet)
{
	struct transaction *t = &fleet->transaction;

	if (t->left)
		return;
	for (uint32_t i = 0; i < t->item_count; i++)
		demand_rouse(fleet, t->items[i].holding, false);
	transaction_end(fleet);
	fleet->state = FLEET_READY;
	fleet->next_renewal_ns = 0;
	fleet_watch_leases(fleet);
	/* Settings were not followed meanwhile. */
	fleet->stale = true;
}

/* Begins anew in a while: the coordinator may then grant access that it denies now. */
static void begin_later(struct fleet *fleet)
{
	fleet_tell(fleet, FLEET_DENIED, "access denied by the coordinator");
	fleet->doubt_ns = fleet->now_ns + fleet->constants.renewal_ns;
	fleet_wake_at(fleet, fleet->doubt_ns);
}

/*
 * Tells whether a read came to nothing, and sees to it that the next one begins anew: access is
 * denied, or the connection is gone, or will be. A node that is too large to be read is there, and
 * this host did not write it.
 */
static bool lost(struct fleet *fleet, const struct request *request)
{
	if (request->answer == ANSWER_DENIED)
		begin_later(fleet);
	if (request->answer != ANSWER_UNKNOWN)
		return request->answer == ANSWER_DENIED;
	if (fleet->connected && !fleet->hung_up) {
		fleet->hung_up = true;
		fleet->coordinator->hang_up(fleet->coordinator);
	}
	return true;
}

/* Whose /l/LID/P is. */
static void lease_read(struct fleet *fleet, struct request *request)
{
	struct item *item = request->of.item;
	struct lease *lease = item_lease(item);
	bool ours = request->answer == ANSWER_OK && !strcmp(request->data, fleet->hid);

	if (fleet->state != FLEET_IN_DOUBT || lost(fleet, request) ||
	    lease->state != LEASE_IN_DOUBT)
		return;
	lease->usable_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
	fleet_lease_becomes(fleet, item->holding, lease, ours ? LEASE_WAITING : LEASE_NONE);
	fleet->transaction.left--;
	leave_doubt(fleet);
}

static void claims_listed(struct fleet *fleet, struct request *request)
{
	struct holding *holding = fleet->transaction.holding;
	char path[ZNODE_TEXT];
	struct claim claim;

	if (fleet->state != FLEET_IN_DOUBT || lost(fleet, request))
		return;
	free(holding->claim);
	holding->claim = NULL;
	holding->claimed = 0;
	for (uint32_t i = 0; i < request->name_count; i++) {
		const char *name = request->names[i];

		if (!znode_claim_parse(name, &claim) || !znode_claim_is_of(name, fleet->hid))
			continue;
		free(holding->claim);
		holding->claim = strdup(name);
		holding->claimed = holding->claim ? claim.wanted : 0;
	}
	fleet_keep_claim(fleet, holding, holding->claim);
	if (holding->claim) {
		znode_path_named(ZNODE_CLAIM, holding->id, holding->claim, path);
		claim_watch(fleet, path);
	}
	fleet->transaction.left--;
	leave_doubt(fleet);
}

static void change_read(struct fleet *fleet, struct request *request)
{
	struct record record;
	char error[ERROR_TEXT];
	bool understood;

	if (fleet->state != FLEET_IN_DOUBT || lost(fleet, request))
		return;
	understood = request->answer == ANSWER_OK && !record_parse(request->data, &record, error);
	fleet->transaction.left--;
	if (understood || request->answer == ANSWER_NO_NODE)
		publish_resolved(fleet, understood ? &record : NULL, request->version,
				 request->zxid);
	else
		publish_unresolved(fleet);
	leave_doubt(fleet);
}

static void ask(struct fleet *fleet, enum request_kind kind, const char *path, struct item *item,
		void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = request_new(kind, path, done);

	fleet->transaction.left++;
	if (!request) {
		fleet_drop_session(fleet, "no memory");
		return;
	}
	request->of.item = item;
	request_send(fleet, request);
}

/* The barrier has passed. */
static void look(struct fleet *fleet)
{
	struct transaction *t = &fleet->transaction;
	char path[ZNODE_TEXT];

	t->left = 0;
	for (uint32_t i = 0; i < t->item_count; i++) {
		struct item *item = &t->items[i];

		if (item_lease(item)->state != LEASE_IN_DOUBT)
			continue;
		item_path(item, ZNODE_LEASE, path);
		ask(fleet, REQUEST_GET, path, item, lease_read);
	}
	if (t->kind == TRANSACTION_CLAIM) {
		znode_path(ZNODE_CLAIMS, t->holding->id, path);
		ask(fleet, REQUEST_LIST, path, NULL, claims_listed);
	}
	if (t->kind == TRANSACTION_CHANGE) {
		znode_path(ZNODE_RECORD, fleet->change_id, path);
		ask(fleet, REQUEST_GET, path, NULL, change_read);
	}
	leave_doubt(fleet);
}

void doubt_barrier_answered(struct fleet *fleet, const struct request *request)
{
	fleet->transaction.kind = fleet->doubted;
	if (request->answer != ANSWER_UNKNOWN)
		fleet->resuming = false;
	if (request->answer == ANSWER_OK)
		look(fleet);
	else if (request->answer == ANSWER_UNKNOWN)
		fleet->counters.unknown++; /* again with the next connection */
	else if (request->answer == ANSWER_NO_NODE)
		fleet_drop_session(fleet, "the host's node is gone");
	else if (request->answer == ANSWER_BAD_VERSION)
		doubt_begin(fleet); /* an older one was executed in between */
	else
		begin_later(fleet);
}

static void send_barrier(struct fleet *fleet)
{
	struct request *barrier;

	fleet->doubted = fleet->transaction.kind;
	fleet->transaction.kind = TRANSACTION_NONE;
	barrier = transaction_begin(fleet, TRANSACTION_BARRIER);
	if (barrier)
		transaction_send(fleet, barrier);
	else
		fleet_drop_session(fleet, "no memory");
}

static void host_read(struct fleet *fleet, struct request *request)
{

	if (fleet->state != FLEET_IN_DOUBT)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		fleet_drop_session(fleet, "the host's node is gone");
		return;
	}
	if (lost(fleet, request))
		return;
	/* One request of ours was on its way: any other version is a history that was lost. */
	if (request->answer != ANSWER_OK || (request->version != fleet->host_version &&
					     request->version != fleet->host_version + 1)) {
		fleet_drop_session(fleet, "lost history, or a foreign hand");
		return;
	}
	fleet->host_version = request->version;
	send_barrier(fleet);
}

void doubt_begin(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	fleet->doubt_ns = NEVER_NS;
	if (fleet->resuming) {
		send_barrier(fleet);
		return;
	}
	znode_path_named(ZNODE_HOST, 0, fleet->hid, path);
	request = request_new(REQUEST_GET, path, host_read);
	if (request)
		request_send(fleet, request);
	else
		fleet_drop_session(fleet, "no memory");
}

void doubt_watch(struct fleet *fleet)
{
	if (fleet->state != FLEET_IN_DOUBT || !fleet->connected)
		return;
	if (fleet->now_ns >= fleet->doubt_ns)
		doubt_begin(fleet);
	else
		fleet_wake_at(fleet, fleet->doubt_ns);
}
