/*
 * garbage - nodes of limiters that are gone, and of names that were left. They go no earlier than Q
 * after the limiter: until then a host that has not heard of it may hold leases of it, and use its
 * name.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DELETES_MAX = 90, TRIES_MAX = 5 };

static void later(struct fleet *fleet, struct swept *swept)
{
	swept->not_before_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
	fleet_wake_at(fleet, fleet->now_ns + fleet->constants.quarantine_ns);
}

static uint64_t hash_id(uint64_t id)
{
	/* Fibonacci hashing (Knuth, 6.4): numbers given one after the other are spread. */
	return (id * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static uint64_t hash_link(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return hash_id(((const struct swept *)link)->id);
}

static bool is_known(const struct fleet *fleet, uint64_t id)
{
	struct chain_link *link = chains_find(&fleet->swept_by_id, hash_id(id));

	while (link && ((struct swept *)link)->id != id)
		link = link->next;
	return link;
}

void sweep_add(struct fleet *fleet, uint64_t id)
{
	struct swept *swept;

	if (is_known(fleet, id))
		return;
	swept = calloc(1, sizeof(*swept));
	/* Without memory it is left to the next host that starts. */
	if (!swept)
		return;
	swept->id = id;
	fleet->swept_by_id.hash = hash_link;
	if (chains_insert(&fleet->swept_by_id, &swept->link)) {
		free(swept);
		return;
	}
	swept->next = fleet->swept;
	fleet->swept = swept;
	later(fleet, swept);
}

static void folders_listed(struct fleet *fleet, struct request *request)
{

	for (uint32_t i = 0; i < request->name_count; i++) {
		uint64_t id;

		/* One that is just being made is looked for once more before anything is deleted. */
		if (znode_id_parse(request->names[i], &id) && id && !holding_of_id(fleet, id))
			sweep_add(fleet, id);
	}
}

void sweep_look(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_FREE_OF, 0, path);
	request = request_new(REQUEST_LIST, path, folders_listed);
	if (request)
		request_send(fleet, request);
}

static void forget(struct fleet *fleet, struct swept *swept)
{
	struct swept **at = &fleet->swept;

	while (*at != swept)
		at = &(*at)->next;
	*at = swept->next;
	chains_remove(&fleet->swept_by_id, &swept->link);
	free(swept);
	fleet->sweeping = NULL;
}

static void give_up(struct fleet *fleet)
{
	struct swept *swept = fleet->sweeping;

	fleet->sweeping = NULL;
	if (++swept->tries >= TRIES_MAX)
		forget(fleet, swept);
	else
		later(fleet, swept);
}

static void markers_listed(struct fleet *fleet, struct request *request)
{
	struct swept *swept = fleet->sweeping;

	if (!swept)
		return;
	/* A name that was left by a rename has no nodes but its own. */
	swept->bare = request->answer == ANSWER_NO_NODE && swept->named;
	if (request->answer != ANSWER_OK && !swept->bare) {
		give_up(fleet);
		return;
	}
	swept->names = request->names;
	swept->name_count = request->name_count;
	request->names = NULL;
	request->name_count = 0;
	swept->ready = true;
	fleet_wake_at(fleet, 0);
}

/* An id is never used twice, so one that is not there any more does not come back. */
static void looked_up(struct fleet *fleet, struct request *request)
{
	struct swept *swept = fleet->sweeping;
	char path[ZNODE_TEXT], error[ERROR_TEXT];
	struct request *list;
	struct record record;

	if (!swept)
		return;
	swept->named = request->answer == ANSWER_OK;
	if (swept->named && (record_parse(request->data, &record, error) || !record.removed)) {
		forget(fleet, swept);
		return;
	}
	znode_path(ZNODE_FREE, swept->id, path);
	list = swept->named || request->answer == ANSWER_NO_NODE
		       ? request_new(REQUEST_LIST, path, markers_listed)
		       : NULL;
	if (list)
		request_send(fleet, list);
	else
		give_up(fleet);
}

static bool add_deletes(struct fleet *fleet, struct request *request)
{
	static const enum znode_kind kinds[] = {ZNODE_FREE, ZNODE_LEASES, ZNODE_CLAIMS,
						ZNODE_RECORD};
	struct swept *swept = fleet->sweeping;
	char path[ZNODE_TEXT];
	bool added = true, last = swept->name_count <= DELETES_MAX;

	for (uint32_t i = 0; i < swept->name_count && i < DELETES_MAX && added; i++) {
		znode_path_named(ZNODE_MARKER, swept->id, swept->names[i], path);
		added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	}
	for (int i = swept->bare ? 3 : 0; i < 3 + swept->named && added && last; i++) {
		znode_path(kinds[i], swept->id, path);
		added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	}
	return added;
}

static void free_names(struct swept *swept)
{
	free(swept->names);
	swept->names = NULL;
	swept->name_count = 0;
	swept->ready = false;
}

static bool send_deletes(struct fleet *fleet)
{
	struct request *request = transaction_begin(fleet, TRANSACTION_SWEEP);

	if (!request || !add_deletes(fleet, request)) {
		if (request) {
			transaction_end(fleet);
			request_free(request);
		}
		free_names(fleet->sweeping);
		give_up(fleet);
		return false;
	}
	fleet->sweeping->partly = fleet->sweeping->name_count > DELETES_MAX;
	free_names(fleet->sweeping);
	transaction_send(fleet, request);
	return true;
}

void sweep_answered(struct fleet *fleet, const struct request *request)
{
	struct swept *swept = fleet->sweeping;

	if (!swept)
		return;
	if (request->answer == ANSWER_OK && !swept->partly) {
		forget(fleet, swept);
	} else if (request->answer == ANSWER_OK) {
		swept->not_before_ns = 0;
		fleet->sweeping = NULL;
	} else {
		give_up(fleet);
	}
}

bool sweep_send(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (fleet->sweeping)
		return fleet->sweeping->ready && send_deletes(fleet);
	for (struct swept *s = fleet->swept; s; s = s->next) {
		if (s->not_before_ns > fleet->clocks.waiter_ns) {
			fleet_wake_at(fleet,
				      fleet->now_ns + s->not_before_ns - fleet->clocks.waiter_ns);
			continue;
		}
		znode_path(ZNODE_RECORD, s->id, path);
		request = request_new(REQUEST_GET, path, looked_up);
		if (!request)
			return false;
		fleet->sweeping = s;
		request_send(fleet, request);
		return false;
	}
	return false;
}

void sweep_forget(struct fleet *fleet)
{
	if (fleet->sweeping)
		free_names(fleet->sweeping);
	fleet->sweeping = NULL;
}

void sweep_free(struct fleet *fleet)
{
	sweep_forget(fleet);
	while (fleet->swept) {
		struct swept *next = fleet->swept->next;

		chains_remove(&fleet->swept_by_id, &fleet->swept->link);
		free(fleet->swept);
		fleet->swept = next;
	}
}
