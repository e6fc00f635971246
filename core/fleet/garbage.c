/* garbage - nodes of limiters that are gone, see garbage.h. */
#include "core/fleet/garbage.h"
#include "core/base/chain.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DELETES_MAX = 90, TRIES_MAX = 5 };

/* A limiter that is gone, whose nodes are to go too. */
struct swept {
	struct chain_link link; /* by id */
	struct swept *next;
	uint64_t id;
	uint64_t not_before_ns; /* by the waiter's clock */
	uint32_t tries;
	char **names; /* owned, one block: of its markers */
	uint32_t name_count;
	bool ready;
	bool partly; /* more than fit one transaction */
	bool named;  /* its record is there, and says that it is gone */
	bool bare;   /* ... and nothing else is */
};

struct garbage {
	struct swept *first;   /* owned */
	struct chains by_id;   /* the same */
	struct swept *current; /* that is looked at, or deleted; NULL */
};

bool garbage_new(struct fleet *fleet)
{
	fleet->garbage = calloc(1, sizeof(*fleet->garbage));
	return fleet->garbage;
}

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
	struct chain_link *link = chains_find(&fleet->garbage->by_id, hash_id(id));

	while (link && ((struct swept *)link)->id != id)
		link = link->next;
	return link;
}

void garbage_add(struct fleet *fleet, uint64_t id)
{
	struct swept *swept;

	if (is_known(fleet, id))
		return;
	swept = calloc(1, sizeof(*swept));
	/* Without memory it is left to the next host that starts. */
	if (!swept)
		return;
	swept->id = id;
	fleet->garbage->by_id.hash = hash_link;
	if (chains_insert(&fleet->garbage->by_id, &swept->link)) {
		free(swept);
		return;
	}
	swept->next = fleet->garbage->first;
	fleet->garbage->first = swept;
	later(fleet, swept);
}

static void folders_listed(struct fleet *fleet, struct request *request)
{

	for (uint32_t i = 0; i < request->name_count; i++) {
		uint64_t id;

		/*
		 * One that is just being made is looked for once more before anything is deleted.
		 */
		if (znode_id_parse(request->names[i], &id) && id && !holdings_find(fleet, id))
			garbage_add(fleet, id);
	}
}

void garbage_look(struct fleet *fleet)
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
	struct swept **at = &fleet->garbage->first;

	while (*at != swept)
		at = &(*at)->next;
	*at = swept->next;
	chains_remove(&fleet->garbage->by_id, &swept->link);
	free(swept);
	fleet->garbage->current = NULL;
}

static void give_up(struct fleet *fleet)
{
	struct swept *swept = fleet->garbage->current;

	fleet->garbage->current = NULL;
	if (++swept->tries >= TRIES_MAX)
		forget(fleet, swept);
	else
		later(fleet, swept);
}

static void markers_listed(struct fleet *fleet, struct request *request)
{
	struct swept *swept = fleet->garbage->current;

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
	struct swept *swept = fleet->garbage->current;
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
	struct swept *swept = fleet->garbage->current;
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
		if (request)
			transaction_give_up(fleet, request);
		free_names(fleet->garbage->current);
		give_up(fleet);
		return false;
	}
	fleet->garbage->current->partly = fleet->garbage->current->name_count > DELETES_MAX;
	free_names(fleet->garbage->current);
	transaction_send(fleet, request);
	return true;
}

void garbage_answered(struct fleet *fleet, const struct request *request)
{
	struct swept *swept = fleet->garbage->current;

	if (!swept)
		return;
	if (request->answer == ANSWER_OK && !swept->partly) {
		forget(fleet, swept);
	} else if (request->answer == ANSWER_OK) {
		swept->not_before_ns = 0;
		fleet->garbage->current = NULL;
	} else {
		give_up(fleet);
	}
}

bool garbage_send(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (fleet->garbage->current)
		return fleet->garbage->current->ready && send_deletes(fleet);
	for (struct swept *s = fleet->garbage->first; s; s = s->next) {
		if (s->not_before_ns > fleet->clocks.waiter_ns) {
			fleet_wake_at(fleet,
				      fleet->now_ns + s->not_before_ns - fleet->clocks.waiter_ns);
			continue;
		}
		znode_path(ZNODE_RECORD, s->id, path);
		request = request_new(REQUEST_GET, path, looked_up);
		if (!request)
			return false;
		fleet->garbage->current = s;
		request_send(fleet, request);
		return false;
	}
	return false;
}

void garbage_forget(struct fleet *fleet)
{
	if (fleet->garbage->current)
		free_names(fleet->garbage->current);
	fleet->garbage->current = NULL;
}

void garbage_free(struct fleet *fleet)
{
	struct garbage *garbage = fleet->garbage;

	if (!garbage)
		return;
	garbage_forget(fleet);
	while (garbage->first) {
		struct swept *next = garbage->first->next;

		chains_remove(&garbage->by_id, &garbage->first->link);
		free(garbage->first);
		garbage->first = next;
	}
	free(garbage);
}
