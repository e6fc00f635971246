/* round - partitions of a limiter are looked for, and taken, see round.h. */
#include "core/fleet/round.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/release.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"

#include <stdlib.h>

/* So many transactions of one round may be refused. */
enum { REFUSALS_MAX = 6 };

/* A round that is under way. */
struct search {
	struct holding *holding; /* held */
	uint64_t began_ns;
	uint32_t pending; /* answers to come */
	bool failed;
	bool *marked, *leased; /* owned, by index: as listed; @count of them */
	uint32_t count;
	uint32_t *clean; /* owned: free ones with a marker, in random order; tried from the end */
	uint32_t clean_count;
	uint32_t *unclean; /* owned: those that have neither */
	uint32_t unclean_count;
	uint32_t batch; /* items in one transaction, at most */
	uint32_t refusals;
	bool *reserve_leased, *reserve_clean; /* owned, by index */
	uint32_t reserve_count;
	struct claim_line line;	      /* owned */
	struct item items[ITEMS_MAX]; /* to be taken next */
	uint32_t item_count;
	bool again;	   /* something was given back meanwhile */
	bool ready;	   /* their markers are read ... */
	uint64_t ready_ns; /* ... since then */
};

struct round {
	struct search *search; /* owned; NULL */
	bool over;	       /* the last one is, and that was not told yet: */
	struct round_result result;
};

bool round_attach(struct holding *holding)
{
	holding->round = calloc(1, sizeof(*holding->round));
	return holding->round;
}

void round_detach(struct holding *holding)
{
	free(holding->round);
}

bool round_is_under_way(const struct holding *holding)
{
	return holding->round->search || holding->round->over;
}

static void free_search(struct search *search)
{
	if (!search)
		return;
	holdings_let_go(search->holding);
	free(search->marked);
	free(search->leased);
	free(search->clean);
	free(search->unclean);
	free(search->reserve_leased);
	free(search->reserve_clean);
	free(search->line.claims);
	free(search);
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

/*
 * Notes the result, which is acted on in this step. A limiter that is gone is not roused, and needs
 * no result.
 */
static void end_round(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	struct round *round = holding->round;

	round->over = !holding->limiter->removed;
	round->result = (struct round_result){
		.left_free = search->clean_count + search->unclean_count,
		.reserves_gone = reserves_are_gone(search),
		.again = search->again,
	};
	round->search = NULL;
	holdings_rouse(fleet, holding, false);
	free_search(search);
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

	for (uint32_t i = 0; i <= holding->lease_count; i++) {
		bool reserve = i == holding->lease_count;
		const struct lease *lease = reserve ? &holding->reserve : &holding->leases[i];

		if ((lease->state != LEASE_HELD && lease->state != LEASE_WAITING) ||
		    lease->since_ns >= search->began_ns)
			continue;
		if (!reserve && lease->first < search->count && !search->leased[lease->first])
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
	return search->clean && search->unclean;
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
		const struct lease *lease = holding_find_lease(holding, i);

		if ((lease && lease->state != LEASE_NONE) || search->leased[i])
			continue;
		if (marked[i])
			search->clean[search->clean_count++] = i;
		else
			search->unclean[search->unclean_count++] = i;
	}
	demand_note_unclean(search->holding, search->unclean_count && !search->clean_count);
	/* A host may have died; one that is alone then need not share. */
	if (search->unclean_count && !membership_is_alone(fleet))
		membership_look_soon(fleet);
	shuffle(fleet, search->clean, search->clean_count);
	shuffle(fleet, search->unclean, search->unclean_count);
}

/* All three lists are there. */
static void try_next(struct fleet *fleet, struct search *search);

static void listed(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;

	if (search->pending)
		return;
	if (search->failed || holding->limiter->removed || !grow(search)) {
		end_round(fleet, search);
		return;
	}
	if (lease_is_missing(search)) {
		session_drop(fleet,
			     "a lease of this host's is gone: lost history, or a foreign hand");
		return;
	}
	balance_weigh(holding->balance, &search->line, demand_wanted(holding),
		      holding_count(holding));
	search->batch = ITEMS_MAX;
	sort_free(fleet, search, search->marked);
	demand_update(fleet, holding);
	try_next(fleet, search);
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

	if (list_failed(fleet, search, request)) {
		search->line.own = UINT64_MAX;
		claim_note_unread(fleet, search->holding);
	} else if (!claim_parse_all(fleet, search->holding, request, &search->line)) {
		search->failed = true;
	}
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
	if (kind == ZNODE_CLAIMS)
		claim_watch(fleet, search->holding, request);
	search->pending++;
	request_send(fleet, request);
	return true;
}

void round_begin(struct fleet *fleet, struct holding *holding)
{
	struct search *search = calloc(1, sizeof(*search));
	uint32_t hosts = holding->settings->reserve_hosts;

	if (!search)
		return;
	search->holding = holding;
	holdings_keep(holding);
	search->began_ns = fleet->now_ns;
	search->count = holding_count(holding);
	search->reserve_count = hosts;
	search->marked = calloc(search->count + 1, sizeof(bool));
	search->leased = calloc(search->count + 1, sizeof(bool));
	search->reserve_clean = calloc(hosts + 1, sizeof(bool));
	search->reserve_leased = calloc(hosts + 1, sizeof(bool));
	holding->round->search = search;
	if (!search->marked || !search->leased || !search->reserve_clean ||
	    !search->reserve_leased) {
		end_round(fleet, search);
		return;
	}
	if (!list(fleet, search, ZNODE_FREE, markers_listed) ||
	    !list(fleet, search, ZNODE_LEASES, leases_listed) ||
	    !list(fleet, search, ZNODE_CLAIMS, claims_listed))
		search->failed = true;
	if (!search->pending)
		end_round(fleet, search);
}

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
		end_round(fleet, search);
		return;
	}
	if (!search->item_count) {
		try_next(fleet, search);
		return;
	}
	search->ready = true;
	search->ready_ns = fleet->now_ns;
	holdings_add_work(fleet, search->holding);
}

/* Notes a marker's tokens, and when it was made. One that vanished is another host's now. */
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
		record_parse_marker(request->data, &search->items[i].marker);
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

		if (!demand_misses(holding, index))
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
	uint32_t lack = balance_lack(holding->balance, demand_wanted(holding),
				     leases_kept(holding));
	uint32_t enough = search->item_count + lack;
	uint32_t most = search->batch < room ? search->batch : room;

	if (room == search->item_count && (lack || demand_misses_any(holding)) &&
	    search->clean_count + search->unclean_count)
		room_was_missing(fleet);
	add_read(search, search->clean, &search->clean_count, true, most);
	add_read(search, search->unclean, &search->unclean_count, false, most);
	most = enough < most ? enough : most;
	add_any(search, search->clean, &search->clean_count, true, most);
	/* Unclean ones only when the clean ones have run out. */
	add_any(search, search->unclean, &search->unclean_count, false, most);
}

static void try_next(struct fleet *fleet, struct search *search)
{
	uint32_t room = room_for_leases(fleet, search->holding);

	search->item_count = 0;
	search->ready = false;
	if (!session_is_leaving(fleet)) {
		if (demand_wants_reserve(search->holding) && room)
			add_reserve(fleet, search);
		add_shares(fleet, search, room);
	}
	if (search->item_count)
		read_markers(fleet, search);
	else
		end_round(fleet, search);
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
	return added &&
	       request_add(request, OPERATION_CREATE, path, session_hid(fleet), 0, NODE_EPHEMERAL);
}

static bool send_take(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	struct request *request;
	bool added = true;

	uint32_t room = room_for_leases(fleet, holding);

	search->ready = false;
	/* Other searches may have taken the room meanwhile. */
	if (search->item_count > room)
		search->item_count = room;
	/* The settings may be others by now. */
	if (session_is_leaving(fleet) || holding->limiter->removed ||
	    !holding_needs_leases(holding) || search->count != holding_count(holding) ||
	    !search->item_count) {
		end_round(fleet, search);
		return false;
	}
	request = transaction_begin(fleet, TRANSACTION_TAKE);
	if (!request) {
		end_round(fleet, search);
		return false;
	}
	for (uint32_t i = 0; i < search->item_count && added; i++) {
		struct item *item = transaction_add(fleet, &search->items[i]);

		/* Tokens that were left a while ago may have been used by another host since. */
		item->old = fleet->now_ns - search->ready_ns > FLEET_MARKER_FRESH_NS;
		if (item->reserve)
			holding->reserve_index = item->index;
		added = (item->reserve || holding_add_lease(holding, item->index, item->index)) &&
			add_take(fleet, request, item);
	}
	if (!added) {
		transaction_give_up(fleet, request);
		end_round(fleet, search);
		return false;
	}
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		leases_become(fleet, holding, item_lease(transaction_item(fleet, i)), LEASE_TAKING);
	transaction_send(fleet, request);
	return true;
}

static void go_on(struct fleet *fleet, struct search *search, enum answer answer, uint32_t refused)
{
	/*
	 * Where other hosts take, too, large transactions are refused: a few smaller ones follow.
	 */
	if (answer != ANSWER_OK) {
		search->batch = search->batch > 1 ? search->batch / 4 + 1 : 1;
		if (++search->refusals > REFUSALS_MAX)
			refused = UINT32_MAX;
	}
	/* Items that were not refused can be tried again, without the one that was. */
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
		end_round(fleet, search);
	else
		try_next(fleet, search);
}

/* Rules 6, 7 and 11. */
static void take_item(struct fleet *fleet, const struct item *item, uint64_t zxid)
{
	struct lease *lease = item_lease(item);
	bool clean = item->clean && item->made_zxid >> 32 == zxid >> 32;

	if (clean) {
		fleet->counters.taken_clean++;
		leases_become(fleet, item->holding, lease, LEASE_HELD);
		return;
	}
	fleet->counters.taken_unclean++;
	leases_wait(fleet, lease);
	leases_become(fleet, item->holding, lease, LEASE_WAITING);
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
	return record_full_part(settings_burst(settings, i), settings_partition_count(settings));
}

static void join_parts(struct fleet *fleet, const struct item *item)
{
	struct limiter *limiter = item->holding->limiter;
	uint32_t count = item->holding->settings->limit_count;

	if (item_lease(item)->state != LEASE_HELD || limiter->removed || !term_runs(fleet))
		return;
	for (uint32_t i = 0; i < limiter->bucket_count && i < count; i++) {
		struct bucket_part part = part_of(item, i);

		bucket_refill(&limiter->buckets[i], fleet->engine->schedule.now_ns);
		bucket_join(&limiter->buckets[i], &part);
	}
}

void round_answered(struct fleet *fleet, const struct request *request)
{
	struct holding *holding = transaction_item(fleet, 0)->holding;
	uint32_t refused = UINT32_MAX, count = transaction_count(fleet);

	if (request->answer == ANSWER_OK) {
		for (uint32_t i = 0; i < count; i++) {
			const struct item *item = transaction_item(fleet, i);

			take_item(fleet, item, request->zxid);
			leases_watch(fleet, holding, item->index, item->reserve);
		}
		leases_reshare(fleet, holding);
		for (uint32_t i = 0; i < count; i++)
			join_parts(fleet, transaction_item(fleet, i));
		if (!holding->limiter->removed)
			limiter_settle(&fleet->engine->schedule, holding->limiter);
		if (session_is_leaving(fleet))
			release_all(fleet, holding);
	} else {
		for (uint32_t i = 0; i < count; i++) {
			const struct item *item = transaction_item(fleet, i);

			leases_become(fleet, holding, item_lease(item), LEASE_NONE);
			if (request->failed >= item->operation)
				refused = i;
		}
		if (request->failed >= HEAD_LENGTH)
			fleet->counters.conflicts++;
		else
			refused = UINT32_MAX;
	}
	if (holding->round->search)
		go_on(fleet, holding->round->search, request->answer, refused);
	holdings_add_work(fleet, holding);
}

bool round_is_ready(const struct holding *holding)
{
	return holding->round->search && holding->round->search->ready;
}

bool round_send(struct fleet *fleet, struct holding *holding)
{
	return round_is_ready(holding) && send_take(fleet, holding->round->search);
}

void round_stop(struct fleet *fleet, struct holding *holding)
{
	if (holding->round->search)
		end_round(fleet, holding->round->search);
}

void round_forget(struct holding *holding)
{
	free_search(holding->round->search);
	holding->round->search = NULL;
	holding->round->over = false;
}

void round_again(struct holding *holding)
{
	if (holding->round->search)
		holding->round->search->again = true;
}

bool round_is_over(struct holding *holding, struct round_result *result)
{
	bool over = holding->round->over;

	*result = holding->round->result;
	holding->round->over = false;
	return over;
}
