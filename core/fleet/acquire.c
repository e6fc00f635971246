/*
 * acquire - which partitions could be taken: those that are free and clean, at random; then those that
 * nobody gave back. A round lists markers, leases and claims; take.c is its second half.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void search_free(struct search *search)
{
	if (!search)
		return;
	holding_let_go(search->holding);
	free(search->marked);
	free(search->leased);
	free(search->clean);
	free(search->unclean);
	free(search->reserve_leased);
	free(search->reserve_clean);
	free(search->claims);
	free(search);
}

/* Who waits for nothing but the outcome of searches, here and below, has waited enough. */
static void hasten(struct fleet *fleet, struct limiter *limiter)
{
	if (!turns_demand(&limiter->turns))
		return;
	if (limiter->turns.queue.length && !fleet->source.may_come(&fleet->source, limiter))
		limiter_hasten(&fleet->engine->schedule, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		hasten(fleet, l);
}

/*
 * Tells whether all of the reserve are leased, or were a moment ago when this host tried to take
 * them.
 */
static bool reserves_are_gone(const struct search *search)
{
	for (uint32_t i = 0; i < search->reserve_count && search->reserve_leased; i++) {
		if (!search->reserve_leased[i])
			return false;
	}
	return search->reserve_leased;
}

/* The round is over. */
void search_end(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	bool again = search->again;

	holding_keep(holding);
	holding->left_free = search->clean_count + search->unclean_count;
	holding->reserves_gone = reserves_are_gone(search);
	holding->search = NULL;
	search_free(search);
	holding->unmet = holding_kept(holding) < holding->wanted;
	holding->lacking = holding_lacks(holding);
	choose_next_search(fleet, holding);
	if (again && holding->lacking && !holding->limiter->removed && fleet->connected &&
	    !fleet->leaving)
		search_begin(fleet, holding);
	if (!holding->limiter->removed)
		hasten(fleet, holding->limiter);
	if (choose_has_work(fleet, holding))
		fleet_add_work(fleet, holding);
	holding_let_go(holding);
}

static void make_folder(struct fleet *fleet, const char *path)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, NULL);

	if (request && request_add(request, OPERATION_CREATE, path, NULL, 0, 0))
		request_send(fleet, request);
	else if (request)
		request_free(request);
}

/* Puts a list of names into bitmaps. */
static void mark(const struct search *search, const struct request *request, bool *shares,
		 bool *reserves)
{
	for (uint32_t i = 0; i < request->name_count; i++) {
		uint32_t index;
		bool reserve;

		if (!znode_partition_parse(request->names[i], &index, &reserve))
			continue;
		if (!reserve && index < search->count)
			shares[index] = true;
		else if (reserve && index < search->reserve_count)
			reserves[index] = true;
	}
}

/* A lease of ours that is not there any more was lost, or deleted by hand: rule 10. */
static bool lease_is_missing(const struct search *search)
{
	const struct holding *holding = search->holding;

	for (uint32_t i = 0; i <= holding->lease_room; i++) {
		bool reserve = i == holding->lease_room;
		const struct lease *lease = reserve ? &holding->reserve : &holding->leases[i];

		if ((lease->state != LEASE_HELD && lease->state != LEASE_WAITING) ||
		    lease->since_ns >= search->began_ns)
			continue;
		if (!reserve && i < search->count && !search->leased[i])
			return true;
		if (reserve && holding->reserve_index < search->reserve_count &&
		    !search->reserve_leased[holding->reserve_index])
			return true;
	}
	return false;
}

static bool grow(struct search *search)
{
	uint32_t count = search->count ? search->count : 1;

	search->clean = calloc(count, sizeof(*search->clean));
	search->unclean = calloc(count, sizeof(*search->unclean));
	return search->clean && search->unclean && !holding_grow(search->holding, search->count);
}

static void shuffle(struct fleet *fleet, uint32_t *indices, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t j = (uint32_t)(fleet_random(fleet) % i), index = indices[i - 1];

		indices[i - 1] = indices[j];
		indices[j] = index;
	}
}

/* Sorts what is free; @marked says which have markers. */
static void sort_free(struct fleet *fleet, struct search *search, const bool *marked)
{
	const struct holding *holding = search->holding;

	for (uint32_t i = 0; i < search->count; i++) {
		if (holding->leases[i].state != LEASE_NONE || search->leased[i])
			continue;
		if (marked[i])
			search->clean[search->clean_count++] = i;
		else
			search->unclean[search->unclean_count++] = i;
	}
	search->holding->unclean_only = search->unclean_count && !search->clean_count;
	/* Somebody may have died; who is alone then need not share. */
	if (search->unclean_count && !fleet->alone)
		fleet->hosts_ns = 0;
	shuffle(fleet, search->clean, search->clean_count);
	shuffle(fleet, search->unclean, search->unclean_count);
}

/* All three lists are there. */
static void listed(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;

	if (search->pending)
		return;
	if (search->failed || holding->limiter->removed || !grow(search)) {
		search_end(fleet, search);
		return;
	}
	if (lease_is_missing(search)) {
		fleet_drop_session(
			fleet, "a lease of this host's is gone: lost history, or a foreign hand");
		return;
	}
	claims_weigh(search);
	search->batch = ITEMS_MAX;
	sort_free(fleet, search, search->marked);
	demand_update(fleet, holding);
	search_next(fleet, search);
}

static bool list_failed(struct fleet *fleet, struct search *search, const struct request *request)
{
	search->pending--;
	if (request->answer == ANSWER_NO_NODE)
		make_folder(fleet, request->path);
	else if (request->answer != ANSWER_OK)
		search->failed = true;
	return request->answer != ANSWER_OK;
}

static void markers_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	if (!list_failed(fleet, search, request))
		mark(search, request, search->marked, search->reserve_clean);
	listed(fleet, search);
}

static void leases_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	if (!list_failed(fleet, search, request))
		mark(search, request, search->leased, search->reserve_leased);
	listed(fleet, search);
}

static void claims_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	if (!list_failed(fleet, search, request))
		claims_parse(fleet, search, request);
	else
		search->own_claim = UINT64_MAX;
	listed(fleet, search);
}

/* A session that was dropped in between took the search with it. */
static bool list(struct fleet *fleet, struct search *search, enum znode_kind kind,
		 void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(kind, search->holding->id, path);
	request = request_new(REQUEST_LIST, path, done);
	if (!request)
		return false;
	request->of.search = search;
	search->pending++;
	request_send(fleet, request);
	return true;
}

void search_begin(struct fleet *fleet, struct holding *holding)
{
	struct search *search = calloc(1, sizeof(*search));
	uint32_t hosts = holding->settings->reserve_hosts;

	if (!search)
		return;
	search->holding = holding;
	holding_keep(holding);
	search->began_ns = fleet->now_ns;
	search->count = holding_count(holding);
	search->reserve_count = hosts;
	search->marked = calloc(search->count + 1, sizeof(bool));
	search->leased = calloc(search->count + 1, sizeof(bool));
	search->reserve_clean = calloc(hosts + 1, sizeof(bool));
	search->reserve_leased = calloc(hosts + 1, sizeof(bool));
	holding->search = search;
	if (!search->marked || !search->leased || !search->reserve_clean ||
	    !search->reserve_leased) {
		search_end(fleet, search);
		return;
	}
	if (!list(fleet, search, ZNODE_FREE, markers_listed) ||
	    !list(fleet, search, ZNODE_LEASES, leases_listed) ||
	    !list(fleet, search, ZNODE_CLAIMS, claims_listed))
		search->failed = true;
	if (!search->pending)
		search_end(fleet, search);
}
