/*
 * take - the second half of a search: what was found is taken, several in a transaction; what others
 * took meanwhile is left out, and the rest tried again. Rules 6, 7 and 12 of fleet.h.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many transactions of one round may be refused. */
enum { REFUSALS_MAX = 6 };

static void add_item(struct search *search, uint32_t index, bool reserve, bool clean)
{
	search->items[search->item_count++] = (struct item){
		.holding = search->holding,
		.index = index,
		.reserve = reserve,
		.clean = clean,
	};
}

static void add_reserve(struct fleet *fleet, struct search *search)
{
	uint32_t hosts = search->reserve_count;
	uint32_t first = hosts ? (uint32_t)(fleet_random(fleet) % hosts) : 0, best = hosts;

	for (uint32_t i = 0; i < hosts; i++) {
		uint32_t index = (first + i) % hosts;

		if (search->reserve_leased[index])
			continue;
		if (best == hosts || (search->reserve_clean[index] && !search->reserve_clean[best]))
			best = index;
	}
	if (best == hosts)
		return;
	add_item(search, best, true, search->reserve_clean[best]);
	search->reserve_leased[best] = true; /* not again in this round */
}

static void items_ready(struct fleet *fleet, struct search *search)
{
	if (search->pending)
		return;
	if (search->failed) {
		search_end(fleet, search);
		return;
	}
	if (!search->item_count) {
		search_next(fleet, search);
		return;
	}
	search->ready = true;
	search->ready_ns = fleet->now_ns;
	fleet_add_work(fleet, search->holding);
}

/* What was left in it, and when it was made. One that vanished belongs to another now. */
static void marker_read(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;
	struct znode marker;
	uint32_t i;

	search->pending--;
	(void)znode_parse(request->path, &marker);
	for (i = 0; i < search->item_count; i++) {
		if (search->items[i].index == marker.index &&
		    search->items[i].reserve == marker.reserve)
			break;
	}
	if (request->answer == ANSWER_OK) {
		search->items[i].made_zxid = request->made_zxid;
		marker_parse(request->data, &search->items[i].marker);
	} else if (request->answer == ANSWER_REFUSED) {
		search->items[i].made_zxid = request->made_zxid;
		search->items[i].marker = (struct marker){.count = LIMITS_MAX};
	} else if (request->answer == ANSWER_NO_NODE) {
		search->items[i] = search->items[--search->item_count];
	} else {
		search->failed = true;
	}
	items_ready(fleet, search);
}

static void read_markers(struct fleet *fleet, struct search *search)
{
	char path[ZNODE_TEXT];

	for (uint32_t i = 0; i < search->item_count; i++) {
		const struct item *item = &search->items[i];
		struct request *request;

		if (!item->clean)
			continue;
		item_path(item, ZNODE_MARKER, path);
		request = request_new(REQUEST_GET, path, marker_read);
		if (!request) {
			search->failed = true;
			break;
		}
		request->of.search = search;
		search->pending++;
		request_send(fleet, request);
	}
	items_ready(fleet, search);
}

/*
 * Takes the partitions whose own tokens are read, whatever else is wanted: no other partition is of
 * use to such a reader.
 */
static void add_read(struct search *search, uint32_t *indices, uint32_t *count, bool clean,
		     uint32_t most)
{
	const struct holding *holding = search->holding;

	for (uint32_t i = holding->limiter->partition_room ? *count : 0;
	     i-- > 0 && search->item_count < most;) {
		uint32_t index = indices[i];

		if (!holding_misses(holding, index))
			continue;
		indices[i] = indices[--*count];
		add_item(search, index, false, clean);
	}
}

static void add_any(struct search *search, uint32_t *indices, uint32_t *count, bool clean,
		    uint32_t most)
{
	while (*count && search->item_count < most)
		add_item(search, indices[--*count], false, clean);
}

static void add_shares(struct fleet *fleet, struct search *search, uint32_t room)
{
	struct holding *holding = search->holding;
	uint32_t kept = holding_kept(holding), limit = choose_limit(holding);
	uint32_t enough = search->item_count + (limit > kept ? limit - kept : 0);
	uint32_t most = search->batch < room ? search->batch : room;

	if (room == search->item_count && (limit > kept || holding_missing(holding)) &&
	    search->clean_count + search->unclean_count)
		room_was_missing(fleet);
	add_read(search, search->clean, &search->clean_count, true, most);
	add_read(search, search->unclean, &search->unclean_count, false, most);
	most = enough < most ? enough : most;
	add_any(search, search->clean, &search->clean_count, true, most);
	/* Unclean ones only when the clean ones have run out. */
	add_any(search, search->unclean, &search->unclean_count, false, most);
}

void search_next(struct fleet *fleet, struct search *search)
{
	uint32_t room = room_for_leases(fleet, search->holding);

	search->item_count = 0;
	search->ready = false;
	if (!fleet->leaving) {
		if (holding_wants_reserve(search->holding) && room)
			add_reserve(fleet, search);
		add_shares(fleet, search, room);
	}
	if (search->item_count)
		read_markers(fleet, search);
	else
		search_end(fleet, search);
}

/* Rules 6 and 7. */
static bool add_take(const struct fleet *fleet, struct request *request, struct item *item)
{
	char path[ZNODE_TEXT];
	bool added = true;

	item->operation = request->operation_count;
	item_path(item, ZNODE_MARKER, path);
	if (!item->clean)
		added = request_add(request, OPERATION_CREATE, path, NULL, 0, 0);
	added = added && request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	item_path(item, ZNODE_LEASE, path);
	return added && request_add(request, OPERATION_CREATE, path, fleet->hid, 0, NODE_EPHEMERAL);
}

bool search_send(struct fleet *fleet, struct search *search)
{
	struct transaction *t = &fleet->transaction;
	struct holding *holding = search->holding;
	struct request *request;
	bool added = true;

	uint32_t room = room_for_leases(fleet, holding);

	search->ready = false;
	/* Other searches may have taken the room meanwhile. */
	if (search->item_count > room)
		search->item_count = room;
	/* The settings may be others by now. */
	if (fleet->leaving || holding->limiter->removed || !holding_needs_leases(holding) ||
	    search->count != holding_count(holding) || !search->item_count) {
		search_end(fleet, search);
		return false;
	}
	request = transaction_begin(fleet, TRANSACTION_TAKE);
	if (!request) {
		search_end(fleet, search);
		return false;
	}
	for (uint32_t i = 0; i < search->item_count && added; i++) {
		struct item *item = &t->items[t->item_count++];

		*item = search->items[i];
		/* What was left a while ago may have been used by another since. */
		item->old = fleet->now_ns - search->ready_ns > FLEET_MARKER_FRESH_NS;
		holding_keep(holding);
		if (item->reserve)
			holding->reserve_index = item->index;
		added = add_take(fleet, request, item);
	}
	if (!added) {
		transaction_end(fleet);
		request_free(request);
		search_end(fleet, search);
		return false;
	}
	for (uint32_t i = 0; i < t->item_count; i++)
		fleet_lease_becomes(fleet, holding, item_lease(&t->items[i]), LEASE_TAKING);
	transaction_send(fleet, request);
	return true;
}

void search_taken(struct fleet *fleet, struct search *search, enum answer answer, uint32_t refused)
{
	/* Where others take too, large bites are refused: smaller ones, and not for ever. */
	if (answer != ANSWER_OK) {
		search->batch = search->batch > 1 ? search->batch / 4 + 1 : 1;
		if (++search->refusals > REFUSALS_MAX)
			refused = UINT32_MAX;
	}
	/* What was not refused can be tried again, without the one that was. */
	for (uint32_t i = 0; answer != ANSWER_OK && i < search->item_count; i++) {
		const struct item *item = &search->items[i];

		if (i == refused)
			continue;
		if (item->reserve)
			search->reserve_leased[item->index] = false;
		else if (item->clean)
			search->clean[search->clean_count++] = item->index;
		else
			search->unclean[search->unclean_count++] = item->index;
	}
	if (answer != ANSWER_OK && refused == UINT32_MAX)
		search_end(fleet, search);
	else
		search_next(fleet, search);
}
