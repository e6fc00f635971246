/* transaction - one transaction at a time, see transaction.h. */
#include "core/fleet/transaction.h"
#include "core/fleet/baseline.h"
#include "core/fleet/caps.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/uses.h"
#include "core/fleet/znode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct transaction {
	enum transaction_kind kind;
	enum transaction_kind doubted; /* while the barrier is under way */
	struct item items[ITEMS_MAX];
	uint32_t item_count;
	struct claimed claims[ITEMS_MAX];
	uint32_t claim_count;
	bool says_used, said_used; /* in this host's node: the one under way; the last one done */
	uint64_t denied_ns;	   /* until then access is taken to be denied */
	struct request *answer;	   /* borrowed: not acted on yet; NULL */
};

bool transaction_new(struct fleet *fleet)
{
	fleet->transaction = calloc(1, sizeof(*fleet->transaction));
	return fleet->transaction;
}

void transaction_free(struct fleet *fleet)
{
	free(fleet->transaction);
}

enum transaction_kind transaction_kind(const struct fleet *fleet)
{
	return fleet->transaction->kind;
}

uint32_t transaction_count(const struct fleet *fleet)
{
	return fleet->transaction->item_count;
}

struct item *transaction_item(const struct fleet *fleet, uint32_t at)
{
	return &fleet->transaction->items[at];
}

struct item *transaction_add(struct fleet *fleet, const struct item *item)
{
	struct item *added = &fleet->transaction->items[fleet->transaction->item_count++];

	*added = *item;
	holdings_keep(item->holding);
	return added;
}

void transaction_drop(struct fleet *fleet, uint32_t count)
{
	struct transaction *t = fleet->transaction;

	while (t->item_count > count) {
		struct item *item = &t->items[--t->item_count];

		item_free(item);
		holdings_let_go(item->holding);
	}
}

/* Where the operations of a plan go. */
struct carrying {
	struct request *request;
	const struct item *item;
	bool failed;
};

static void carry(void *of, const struct tile *tile, bool there)
{
	struct carrying *carrying = of;
	const struct item *item = carrying->item;
	char name[TILE_TEXT], path[ZNODE_TEXT];

	if (carrying->failed)
		return;
	tile_print(tile, name);
	znode_path_tile(item->holding->id, item->cut, item->reserve, name, path);
	carrying->failed = !request_add(carrying->request,
					there ? OPERATION_DELETE : OPERATION_CREATE, path, NULL,
					there ? NODE_VERSION_ANY : 0, 0);
}

bool transaction_add_plan(struct request *request, struct item *item)
{
	struct carrying carrying = {.request = request, .item = item};

	plan_changes(item->plan, carry, &carrying);
	item->end = request->operation_count;
	return !carrying.failed;
}

struct holding *transaction_refused(const struct fleet *fleet, const struct request *request)
{
	const struct transaction *t = fleet->transaction;

	for (uint32_t i = 0; request->failed >= HEAD_LENGTH && i < t->item_count; i++) {
		if (request->failed < t->items[i].end)
			return t->items[i].holding;
	}
	for (uint32_t i = 0; request->failed >= HEAD_LENGTH && i < t->claim_count; i++) {
		if (request->failed < t->claims[i].end)
			return t->claims[i].holding;
	}
	return NULL;
}

uint32_t transaction_claim_count(const struct fleet *fleet)
{
	return fleet->transaction->claim_count;
}

const struct claimed *transaction_claim(const struct fleet *fleet, uint32_t at)
{
	return &fleet->transaction->claims[at];
}

void transaction_add_claim(struct fleet *fleet, const struct request *request,
			   struct holding *holding, uint32_t wanted)
{
	fleet->transaction->claims[fleet->transaction->claim_count++] =
		(struct claimed){holding, wanted, request->operation_count};
	holdings_keep(holding);
}

/* A join sets the node that it creates, too: its answer has an epoch then (epoch.h). */
static bool add_host(struct fleet *fleet, struct request *request, bool joins, bool used)
{
	struct host_record host = {
		.weight = fleet->options->weight, .held = room_leases(fleet), .renews = used};
	char path[ZNODE_TEXT], text[RECORD_TEXT];

	snprintf(host.name, sizeof(host.name), "%s", fleet->options->host);
	uses_enter(fleet, &host);
	record_print_host(&host, text);
	znode_path_named(ZNODE_HOST, 0, session_hid(fleet), path);
	if (joins && !request_add(request, OPERATION_CREATE, path, text, 0, NODE_EPHEMERAL))
		return false;
	return request_add(request, OPERATION_SET, path, text, session_version(fleet), 0);
}

static void transaction_answered(struct fleet *fleet, struct request *request)
{
	fleet->transaction->answer = request;
}

struct request *transaction_begin(struct fleet *fleet, enum transaction_kind kind)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, transaction_answered);
	/* One that is to bring the first lease or claim says so itself. */
	bool used = room_is_used(fleet) || kind == TRANSACTION_TAKE || kind == TRANSACTION_CLAIM;
	bool done = request;
	char globals[ZNODE_TEXT];

	assert(fleet->transaction->kind == TRANSACTION_NONE);
	handover_keep(fleet);
	/* The barrier must come through whatever happened to the settings. */
	znode_path(ZNODE_GLOBALS, 0, globals);
	if (done && kind != TRANSACTION_BARRIER)
		done = request_add(request, OPERATION_CHECK, globals, NULL, baseline_version(fleet),
				   0);
	if (done)
		done = add_host(fleet, request, kind == TRANSACTION_JOIN, used);
	if (done) {
		fleet->transaction->kind = kind;
		fleet->transaction->says_used = used;
		return request;
	}
	if (request)
		request_free(request);
	return NULL;
}

/* Tells whether a transaction of @kind tells the caps: one that changes no settings. */
static bool tells_caps(enum transaction_kind kind)
{
	return kind == TRANSACTION_RENEW || kind == TRANSACTION_TAKE || kind == TRANSACTION_GIVE ||
	       kind == TRANSACTION_CLAIM || kind == TRANSACTION_SWEEP || kind == TRANSACTION_KEY ||
	       kind == TRANSACTION_END;
}

void transaction_send(struct fleet *fleet, struct request *request)
{
	char text[HOST_CAPS_TEXT];

	/* By then the leaves that it is about are not settled. */
	if (!tells_caps(fleet->transaction->kind)) {
		caps_leave_out(fleet);
	} else {
		caps_enter(fleet, fleet->transaction->kind == TRANSACTION_RENEW, text);
		if (!request_append(request, OPERATION_HOST, text))
			caps_leave_out(fleet);
	}
	request_send(fleet, request);
}

void transaction_give_up(struct fleet *fleet, struct request *request)
{
	transaction_end(fleet);
	request_free(request);
}

void transaction_resume(struct fleet *fleet)
{
	/* But for its items nothing is in doubt. */
	fleet->transaction->kind = TRANSACTION_RENEW;
	fleet->transaction->said_used = true;
}

const struct request *transaction_answer(struct fleet *fleet)
{
	const struct request *answer = fleet->transaction->answer;

	fleet->transaction->answer = NULL;
	return answer;
}

void transaction_acknowledge(struct fleet *fleet)
{
	fleet->transaction->said_used = fleet->transaction->says_used;
}

bool transaction_says_used(const struct fleet *fleet)
{
	return fleet->transaction->said_used;
}

void transaction_end(struct fleet *fleet)
{
	struct transaction *t = fleet->transaction;

	t->kind = TRANSACTION_NONE;
	transaction_drop(fleet, 0);
	while (t->claim_count)
		holdings_let_go(t->claims[--t->claim_count].holding);
}

struct request *transaction_begin_barrier(struct fleet *fleet)
{
	fleet->transaction->doubted = fleet->transaction->kind;
	fleet->transaction->kind = TRANSACTION_NONE;
	return transaction_begin(fleet, TRANSACTION_BARRIER);
}

void transaction_end_barrier(struct fleet *fleet)
{
	fleet->transaction->kind = fleet->transaction->doubted;
}

void transaction_deny(struct fleet *fleet)
{
	fleet->transaction->denied_ns = fleet->now_ns + fleet->constants.renewal_ns;
}

uint64_t transaction_denied_ns(const struct fleet *fleet)
{
	return fleet->transaction->denied_ns;
}
