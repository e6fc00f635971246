/*
 * transact - one transaction at a time, and what follows from its outcome: rules 2, 5, 6, 7, 8, 10
 * and 11 of fleet.h.
 */
#include "inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of every transaction but the first: rule 2. */
enum { OPERATION_GLOBALS, OPERATION_HOST, HEAD_LENGTH };

struct request *request_new(enum request_kind kind, const char *path, void *purpose,
			    void (*done)(void *fleet, struct request *request))
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->kind = kind;
	request->purpose = purpose;
	request->done = done;
	if (kind == REQUEST_TRANSACTION)
		request->operations = calloc(OPERATIONS_MAX, sizeof(*request->operations));
	else
		request->path = strdup(path);
	if (request->operations || request->path)
		return request;
	free(request);
	return NULL;
}

void request_free(struct request *request)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		free(request->operations[i].path);
		free(request->operations[i].data);
		free(request->operations[i].made);
	}
	free(request->names);
	free(request->operations);
	free(request->path);
	free(request->data);
	free(request);
}

bool request_add(struct request *request, enum operation_kind kind, const char *path,
		 const char *data, int32_t version, unsigned int flags)
{
	struct operation *operation = &request->operations[request->operation_count];

	assert(request->operation_count < OPERATIONS_MAX);
	*operation = (struct operation){.kind = kind, .version = version, .flags = flags};
	operation->path = strdup(path);
	operation->data = data ? strdup(data) : NULL;
	request->operation_count++;
	return operation->path && (!data || operation->data);
}

void fleet_send(struct fleet *fleet, struct request *request)
{
	if (request->kind == REQUEST_TRANSACTION)
		fleet->counters.transactions++;
	else if (request->kind == REQUEST_LIST)
		fleet->counters.lists++;
	else
		fleet->counters.reads++;
	request->sent_ns = fleet->clocks.holder_ns;
	request->next = NULL;
	if (fleet->outstanding)
		fleet->outstanding_last->next = request;
	else
		fleet->outstanding = request;
	fleet->outstanding_last = request;
	fleet_wake_at(fleet, 0);
	fleet->coordinator->send(fleet->coordinator, request);
}

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

static void host_path(const struct fleet *fleet, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "/h/%s", fleet->hid);
}

static bool add_host(const struct fleet *fleet, struct request *request, enum operation_kind kind,
		     unsigned int flags)
{
	struct host_record host = {.weight = fleet->options->weight, .held = fleet->leases};
	char path[PATH_ROOM], text[RECORD_TEXT];

	snprintf(host.name, sizeof(host.name), "%s", fleet->options->host);
	host_record_print(&host, text);
	host_path(fleet, path);
	return request_add(request, kind, path, text, fleet->host_version, flags);
}

static void answered(void *fleet, struct request *request);

struct request *transaction_begin(struct fleet *fleet, enum transaction_kind kind)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, fleet, answered);
	bool done = request;

	assert(fleet->transaction.kind == TRANSACTION_NONE);
	/* The barrier must come through whatever happened to the settings. */
	if (done && kind != TRANSACTION_BARRIER)
		done = request_add(request, OPERATION_CHECK, "/g", NULL, fleet->applied, 0);
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
	fleet_send(fleet, request);
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
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint64_t high = fleet->coordinator->random(fleet->coordinator);
	uint64_t low = fleet->coordinator->random(fleet->coordinator);
	struct request *request;

	for (int i = 0; i < HID_TEXT - 1; i++) {
		uint64_t *bits = i < 6 ? &high : &low;

		fleet->hid[i] = digits[*bits & 31];
		*bits >>= 5;
	}
	fleet->hid[HID_TEXT - 1] = '\0';
	fleet->host_version = 0;
	fleet->state = FLEET_JOINING;
	request = transaction_begin(fleet, TRANSACTION_JOIN);
	if (request)
		transaction_send(fleet, request);
	else
		fleet->retry_ns = fleet->now_ns + NSEC_PER_SEC;
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
	if (send_work(fleet))
		return;
	if (!fleet->leaving)
		sweep_send(fleet);
}

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

static struct lease *own_lease(struct holding *holding, const char *name)
{
	bool reserve = *name == 'r';
	uint32_t index = (uint32_t)strtoul(name + reserve, NULL, 10);
	struct lease *lease = &holding->reserve;

	if (reserve && index != holding->reserve_index)
		return NULL;
	if (!reserve && index >= holding->slots)
		return NULL;
	if (!reserve)
		lease = &holding->leases[index];
	return lease->state == LEASE_HELD || lease->state == LEASE_WAITING ? lease : NULL;
}

/* The lease of this host's that has the node @path, NULL: none that is not on its way back. */
static struct lease *lease_of_node(struct fleet *fleet, const char *path)
{
	unsigned long long id;
	struct holding *holding;
	char name[16];

	if (sscanf(path, "/l/%llu/%15s", &id, name) != 2)
		return NULL;
	holding = holding_of_id(fleet, id);
	return holding ? own_lease(holding, name) : NULL;
}

static void lease_seen(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct lease *lease = lease_of_node(fleet, request->path);

	if (!lease)
		return;
	if (request->answer == ANSWER_OK && !strcmp(request->data, fleet->hid))
		lease->watched = true;
	else if (request->answer == ANSWER_OK || request->answer == ANSWER_NO_NODE)
		fleet_drop_session(fleet, "a lease of this host's is another's: a foreign hand");
}

static void watch_lease(struct fleet *fleet, const struct holding *holding, uint32_t index,
			bool reserve)
{
	struct request *request;
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/l/%llu/%s%u", (unsigned long long)holding->id,
		 reserve ? "r" : "", index);
	request = request_new(REQUEST_GET, path, NULL, lease_seen);
	if (!request)
		return;
	request->watch = true;
	fleet_send(fleet, request);
}

/*
 * Nobody but its holder deletes a lease, unless by hand, or it was never really committed. The holder
 * watches it: a server tells of the deletion before it acknowledges a later transaction, so the right
 * ends in time. A watch that was lost with a connection is set by the next one.
 */
void fleet_watch_leases(struct fleet *fleet)
{
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		for (uint32_t i = 0; h->leased && i < h->slots; i++) {
			const struct lease *lease = &h->leases[i];

			if (!lease->watched &&
			    (lease->state == LEASE_HELD || lease->state == LEASE_WAITING))
				watch_lease(fleet, h, i, false);
		}
		if (!h->reserve.watched &&
		    (h->reserve.state == LEASE_HELD || h->reserve.state == LEASE_WAITING))
			watch_lease(fleet, h, h->reserve_index, true);
	}
}

void fleet_lease_changed(struct fleet *fleet, const char *path)
{
	if (lease_of_node(fleet, path))
		fleet_drop_session(fleet, "a lease of this host's was changed by a foreign hand");
}

/* Rule 12: what came with the markers. */
static void join_parts(struct fleet *fleet, const struct item *item)
{
	struct limiter *limiter = item->holding->limiter;
	const struct settings *settings = &item->holding->settings;
	uint32_t count = settings_partition_count(settings);

	if (item_lease(item)->state != LEASE_HELD || limiter->removed || !fleet->right)
		return;
	for (uint32_t i = 0; i < limiter->bucket_count && i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct bucket_part part = item->parts[i];

		if (i >= item->part_count && item->reserve)
			continue;
		if (i >= item->part_count)
			part = marker_full(limit->burst ? limit->burst : settings->burst, count);
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
			watch_lease(fleet, holding, t->items[i].index, t->items[i].reserve);
		}
		fleet_reshare(fleet, holding);
		for (uint32_t i = 0; i < t->item_count; i++)
			join_parts(fleet, &t->items[i]);
		if (!holding->limiter->removed)
			limiter_settle(&fleet->engine->schedule, holding->limiter);
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
			if (last && fleet->leaving) {
				drain_wake(fleet, item->holding, given);
				given = 0;
			}
			continue;
		}
		lease->sent = false;
		/* A marker that is there, or cannot be made: it goes back without. */
		if (request->failed > item->operation &&
		    (i + 1 == t->item_count || request->failed < t->items[i + 1].operation))
			mended = lease->unmarked = true;
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

	if (request->answer == ANSWER_OK || request->failed >= HEAD_LENGTH) {
		free(holding->claim);
		holding->claim = NULL;
		holding->claimed = 0;
	}
	if (request->answer != ANSWER_OK || !t->claimed || !last->made)
		return;
	holding->claim = strdup(strrchr(last->made, '/') + 1);
	if (!holding->claim)
		return;
	holding->claimed = t->claimed;
	choose_watch(fleet, last->made);
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
	fleet_event(fleet, "joined as %s", fleet->hid);
	sweep_look(fleet);
	fleet_extend_right(fleet, request->sent_ns);
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

static void answered(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct transaction *t = &fleet->transaction;

	if (request->answer == ANSWER_OK && t->kind != TRANSACTION_JOIN) {
		fleet->host_version++;
		fleet->last_ack_ns = fleet->now_ns;
		/* A barrier does not look at /g: what it proves says nothing of the settings. */
		if (t->kind != TRANSACTION_BARRIER)
			fleet_extend_right(fleet, request->sent_ns);
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
		if (request->answer == ANSWER_DENIED)
			fleet_event(fleet, "access denied by the coordinator");
	}
	finish(fleet, request);
}
