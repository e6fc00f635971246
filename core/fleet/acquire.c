/* acquire - which partitions could be taken, and are, see acquire.h. */
#include "core/fleet/acquire.h"
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
enum { REFUSALS_MAX = 6, YOUNG_PARTS = 3 };

/* A round: partitions of one limiter are looked for, and taken. */
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

struct acquire {
	struct search *search; /* owned; under way, NULL */
	uint64_t next_ns;      /* the next one not before */
	uint32_t left_free;    /* partitions that no host had after the last one */
	bool lacking;	       /* it did not find enough, or not those whose own tokens are read */
	bool seeks_reserve;    /* wants one of the reserve: a round was due at once ... */
	bool reserves_gone;    /* ... and the last one found that all are leased */
};

bool acquire_attach(struct holding *holding)
{
	holding->acquire = calloc(1, sizeof(*holding->acquire));
	return holding->acquire;
}

void acquire_detach(struct holding *holding)
{
	free(holding->acquire);
}

bool acquire_is_under_way(const struct holding *holding)
{
	return holding->acquire->search;
}

static bool misses(const struct holding *holding, uint32_t index)
{
	return demand_is_read(holding, index) && index < holding_count(holding) &&
	       (index >= holding->lease_room || holding->leases[index].state == LEASE_NONE);
}

static uint32_t missing_count(const struct holding *holding)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < holding->limiter->partition_room; i++)
		missing += misses(holding, i);
	return missing;
}

static bool wants_reserve_now(const struct holding *holding)
{
	return holding->settings->reserve_hosts && holding->reserve.state == LEASE_NONE &&
	       holding_needs_leases(holding);
}

static bool lacks_some(const struct holding *holding)
{
	return leases_kept(holding) < demand_wanted(holding) || missing_count(holding);
}

/* Others may look for what is kept and not wanted: the last search found less that is free. */
bool acquire_is_scarce(const struct holding *holding)
{
	return holding->acquire->left_free < leases_kept(holding);
}

/* Then their claims must be seen soon. */
static bool keeps_last(const struct holding *holding)
{
	return !demand_wanted(holding) && leases_kept(holding) && acquire_is_scarce(holding);
}

static void look_later(struct fleet *fleet, struct holding *holding)
{
	bool soon = holding->acquire->lacking || claim_is_contended(holding) ||
		    claim_name(holding) || keeps_last(holding) ||
		    (wants_reserve_now(holding) && !holding->acquire->reserves_gone);
	uint64_t every_ns = FLEET_RESERVE_NS;

	if (soon)
		every_ns = fleet->constants.renewal_ns;
	else if (holding->leased || claim_is_unknown(holding))
		every_ns = holding->settings->lease_ns / YOUNG_PARTS;
	holding->acquire->next_ns = fleet->now_ns + fleet_jitter(fleet, every_ns);
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

/* Whether @limiter or one above it may soon have more than it has. */
bool acquire_may_come(const struct fleet *fleet, const struct limiter *limiter)
{
	if (session_is_leaving(fleet) || !session_is_connected(fleet) ||
	    session_state(fleet) < FLEET_PREPARING || session_state(fleet) == FLEET_REFUSED)
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    (h->acquire->search || h->acquire->next_ns <= fleet->now_ns ||
		     holdings_has_work(h) ||
		     (!h->usable && !h->reserve_usable && !h->acquire->lacking)))
			return true;
	}
	return false;
}

/* Who waits for nothing but the outcome of searches, here and below, has waited enough. */
static void hasten(struct fleet *fleet, struct limiter *limiter)
{
	if (!turns_demand(&limiter->turns))
		return;
	if (limiter->turns.queue.length && !acquire_may_come(fleet, limiter))
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

/* Tells whether there is something to be taken now. */
static bool is_ready(const struct holding *holding)
{
	return holding->acquire->search && holding->acquire->search->ready;
}

static void begin_round(struct fleet *fleet, struct holding *holding);

/* The round is over. */
static void end_round(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	bool again = search->again;

	holdings_keep(holding);
	holding->acquire->left_free = search->clean_count + search->unclean_count;
	holding->acquire->reserves_gone = reserves_are_gone(search);
	holding->acquire->search = NULL;
	free_search(search);
	demand_note_unmet(holding, leases_kept(holding) < demand_wanted(holding));
	holding->acquire->lacking = lacks_some(holding);
	look_later(fleet, holding);
	if (again && holding->acquire->lacking && !holding->limiter->removed &&
	    session_is_connected(fleet) && !session_is_leaving(fleet))
		begin_round(fleet, holding);
	if (!holding->limiter->removed)
		hasten(fleet, holding->limiter);
	if (acquire_has_work(fleet, holding))
		holdings_add_work(fleet, holding);
	holdings_let_go(holding);
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
	demand_note_unclean(search->holding, search->unclean_count && !search->clean_count);
	/* Somebody may have died; who is alone then need not share. */
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
	claim_weigh(holding, &search->line);
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

	if (list_failed(fleet, search, request))
		search->line.own = UINT64_MAX;
	else if (!claim_parse_all(fleet, search->holding, request, &search->line))
		search->failed = true;
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

static void begin_round(struct fleet *fleet, struct holding *holding)
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
	holding->acquire->search = search;
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

		if (!misses(holding, index))
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
	uint32_t kept = leases_kept(holding), limit = claim_limit(holding);
	uint32_t enough = search->item_count + (limit > kept ? limit - kept : 0);
	uint32_t most = search->batch < room ? search->batch : room;

	if (room == search->item_count && (limit > kept || missing_count(holding)) &&
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
		if (wants_reserve_now(search->holding) && room)
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

		/* What was left a while ago may have been used by another since. */
		item->old = fleet->now_ns - search->ready_ns > FLEET_MARKER_FRESH_NS;
		if (item->reserve)
			holding->reserve_index = item->index;
		added = add_take(fleet, request, item);
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
	return marker_full(settings_burst(settings, i), settings_partition_count(settings));
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

void acquire_answered(struct fleet *fleet, const struct request *request)
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
	if (holding->acquire->search)
		go_on(fleet, holding->acquire->search, request->answer, refused);
	holdings_add_work(fleet, holding);
}

bool acquire_has_work(const struct fleet *fleet, const struct holding *holding)
{
	return release_is_due(fleet, holding) || is_ready(holding) ||
	       (!holding->acquire->search && claim_is_due(fleet, holding));
}

bool acquire_send(struct fleet *fleet, struct holding *holding)
{
	return is_ready(holding) && send_take(fleet, holding->acquire->search);
}

void acquire_stop(struct fleet *fleet, struct holding *holding)
{
	if (holding->acquire->search)
		end_round(fleet, holding->acquire->search);
}

void acquire_forget(struct holding *holding)
{
	free_search(holding->acquire->search);
	holding->acquire->search = NULL;
	holding->acquire->next_ns = 0;
}

void acquire_wake(struct holding *holding)
{
	acquire_again(holding);
	holding->acquire->next_ns = 0;
}

void acquire_again(struct holding *holding)
{
	if (holding->acquire->search)
		holding->acquire->search->again = true;
}

void acquire_seek_reserve(struct holding *holding)
{
	if (holding->acquire->reserves_gone)
		holding->acquire->seeks_reserve = false;
}

void acquire_look_sooner(struct fleet *fleet, struct holding *holding)
{
	if (keeps_last(holding) &&
	    holding->acquire->next_ns > fleet->now_ns + fleet->constants.renewal_ns / 4 * 5)
		look_later(fleet, holding);
}

void acquire_choose(struct fleet *fleet, struct holding *holding)
{
	bool lacks = lacks_some(holding), wants_reserve = wants_reserve_now(holding);

	if (leases_kept(holding) >= demand_wanted(holding))
		demand_note_unmet(holding, false);
	/* Who begins to lack something looks at once; who found nothing looks again in a while. */
	if (!lacks)
		holding->acquire->lacking = false;
	else if (!holding->acquire->lacking && !claim_is_contended(holding))
		holding->acquire->next_ns = 0;
	if (wants_reserve && !holding->acquire->seeks_reserve)
		holding->acquire->next_ns = 0;
	holding->acquire->seeks_reserve = wants_reserve;
	if (!holding->acquire->search && fleet->now_ns >= holding->acquire->next_ns &&
	    !holding->limiter->removed && holding_needs_leases(holding) &&
	    (lacks || wants_reserve || holding->leased || claim_may_be(holding)))
		begin_round(fleet, holding);
}

bool acquire_is_due(const struct fleet *fleet, const struct holding *holding)
{
	return !holding->usable && !holding->acquire->search &&
	       (!holding->acquire->lacking || holding->acquire->next_ns <= fleet->now_ns);
}
