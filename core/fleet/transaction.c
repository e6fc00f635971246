/* transaction - requests, and one transaction at a time: rules 2 and 5 of fleet.h. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fleet_add_work(struct fleet *fleet, struct holding *holding)
{
	if (holding->has_work)
		return;
	holding->has_work = true;
	holding->next_work = NULL;
	holding_keep(holding);
	if (fleet->work)
		fleet->work_last->next_work = holding;
	else
		fleet->work = holding;
	fleet->work_last = holding;
	fleet_wake_at(fleet, 0);
}

static struct holding *next_work(struct fleet *fleet)
{
	struct holding *holding = fleet->work;

	fleet->work = holding->next_work;
	holding->has_work = false;
	return holding;
}

struct lease *item_lease(const struct item *item)
{
	return item->reserve ? &item->holding->reserve : &item->holding->leases[item->index];
}

uint32_t item_index(const struct item *item)
{
	return item->reserve ? PARTITIONS_MAX + item->index : item->index;
}

void item_path(const struct item *item, enum znode_kind kind, char path[ZNODE_TEXT])
{
	znode_path_partition(kind, item->holding->id, item->index, item->reserve, path);
}

static bool add_host(const struct fleet *fleet, struct request *request, enum operation_kind kind,
		     unsigned int flags)
{
	struct host_record host = {.weight = fleet->options->weight, .held = fleet->leases};
	char path[ZNODE_TEXT], text[RECORD_TEXT];

	snprintf(host.name, sizeof(host.name), "%s", fleet->options->host);
	host_record_print(&host, text);
	znode_path_named(ZNODE_HOST, 0, fleet->hid, path);
	return request_add(request, kind, path, text, fleet->host_version, flags);
}

struct request *transaction_begin(struct fleet *fleet, enum transaction_kind kind)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, transaction_answered);
	bool done = request;
	char globals[ZNODE_TEXT];

	assert(fleet->transaction.kind == TRANSACTION_NONE);
	fleet_keep(fleet);
	/* The barrier must come through whatever happened to the settings. */
	znode_path(ZNODE_GLOBALS, 0, globals);
	if (done && kind != TRANSACTION_BARRIER)
		done = request_add(request, OPERATION_CHECK, globals, NULL, fleet->applied, 0);
	if (done)
		done = kind == TRANSACTION_JOIN
			       ? add_host(fleet, request, OPERATION_CREATE, NODE_EPHEMERAL)
			       : add_host(fleet, request, OPERATION_SET, 0);
	if (done) {
		fleet->transaction.kind = kind;
		return request;
	}
	if (request)
		request_free(request);
	return NULL;
}

void transaction_send(struct fleet *fleet, struct request *request)
{
	request_send(fleet, request);
}

/* Nothing is under way any more. */
void transaction_end(struct fleet *fleet)
{
	struct transaction *t = &fleet->transaction;
	struct holding *holding = t->holding;
	uint32_t count = t->item_count;

	t->kind = TRANSACTION_NONE;
	t->holding = NULL;
	t->item_count = 0;
	for (uint32_t i = 0; i < count; i++)
		holding_let_go(t->items[i].holding);
	if (holding)
		holding_let_go(holding);
}

static void renew(struct fleet *fleet)
{
	struct request *request = transaction_begin(fleet, TRANSACTION_RENEW);

	fleet->next_renewal_ns = fleet->now_ns + fleet->constants.renewal_ns;
	if (!request)
		return;
	fleet->counters.renewals++;
	transaction_send(fleet, request);
}

void fleet_join(struct fleet *fleet)
{
	uint64_t high = fleet->coordinator->random(fleet->coordinator);
	uint64_t low = fleet->coordinator->random(fleet->coordinator);
	struct request *request;

	znode_hid_print(high, low, fleet->hid);
	fleet->host_version = 0;
	fleet->state = FLEET_JOINING;
	request = transaction_begin(fleet, TRANSACTION_JOIN);
	if (request)
		transaction_send(fleet, request);
	else
		fleet->retry_ns = fleet->now_ns + FLEET_JOIN_RETRY_NS;
}

/* One holding after the other, each once. */
static bool send_work(struct fleet *fleet)
{
	const struct holding *last = fleet->work_last, *holding = NULL;
	bool sent = false;

	while (fleet->work && !sent && holding != last) {
		struct holding *next = next_work(fleet);

		holding = next;
		sent = choose_send(fleet, next);
		if (choose_has_work(fleet, next))
			fleet_add_work(fleet, next);
		holding_let_go(next);
	}
	return sent;
}

void fleet_pump(struct fleet *fleet)
{
	if (fleet->state != FLEET_READY || !fleet->connected || fleet->transaction.kind ||
	    fleet->following)
		return;
	if (fleet->stale) {
		follow_begin(fleet);
		return;
	}
	/*
	 * Many searches must not keep a right from being renewed in time. After trouble only an
	 * acknowledged write shows that there is a quorum again.
	 */
	if ((fleet->leases || fleet->trouble_ns != NEVER_NS) &&
	    fleet->now_ns >= fleet->next_renewal_ns) {
		renew(fleet);
		return;
	}
	/* One that is refused lets in the next, which may be sent from in there. */
	if (fleet->change && publish_send(fleet))
		return;
	if (fleet->transaction.kind || fleet->following || fleet->state != FLEET_READY)
		return;
	if (fleet->now_ns < fleet->denied_until_ns) {
		fleet_wake_at(fleet, fleet->denied_until_ns);
		return;
	}
	if (send_work(fleet))
		return;
	if (!fleet->leaving)
		sweep_send(fleet);
}
