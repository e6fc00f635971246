/* round - leaves of a limiter are looked for, and taken, see round.h. */
#include "core/fleet/round.h"
#include "core/fleet/apportion.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/epoch.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/release.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/take.h"
#include "core/fleet/transaction.h"
#include "core/fleet/wants.h"

#include <stdlib.h>
#include <string.h>

enum {
	REFUSALS_MAX = 6,  /* so many transactions of one round may be refused */
	REFUSED_PARTS = 4, /* one that is refused is followed by one for so much less */
};

/* Tiles that were listed. */
struct listing {
	struct tiles tiles; /* owned */
	bool wanted;	    /* these are listed at all */
};

/* A round that is under way. */
struct search {
	struct holding *holding; /* held */
	uint64_t cut;
	uint32_t pending; /* answers to come */
	bool failed;
	struct listing leaves, reserve;
	bool knows_hosts;	/* which hosts there are was listed since */
	bool knows_ends;	/* so was which hosts were ended */
	uint32_t ends_read;	/* and the caps that so many of these had told */
	struct claim_line line; /* owned */
	uint32_t batch;		/* leaves in one transaction, at most */
	uint32_t refusals;
	bool torn;	   /* it has listed anew, since a list had not all leaves */
	bool again;	   /* something was given back meanwhile */
	bool ready;	   /* there is something to be taken */
	uint64_t retry_ns; /* lists anew then; 0: it does not */
};

struct round {
	struct search *search; /* owned; NULL */
	bool over;	       /* the last one is, and that was not told yet: */
	struct round_result result;
	uint64_t torn_ns;   /* since when leaves are in no tile, or in two; 0: they are not */
	uint32_t torn_leaf; /* the first that is in none, as tiles_hole() has it */
	bool torn_reserve;  /* of the reserve */
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

static void free_lists(struct search *search)
{
	tiles_free(&search->leaves.tiles);
	tiles_free(&search->reserve.tiles);
	claim_free_line(&search->line);
}

static void free_search(struct search *search)
{
	if (!search)
		return;
	holdings_let_go(search->holding);
	free_lists(search);
	free(search);
}

static bool is_free(const struct tile *tile)
{
	return tile_is_clean(tile) || tile->gone;
}

/* Returns how many leaves no host has; those that can be used at once alone with @clean. */
static uint32_t count_free(const struct listing *listing, bool clean)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < listing->tiles.count; i++) {
		const struct tile *tile = &listing->tiles.list[i];

		if (clean ? tile_is_clean(tile) && tile->epoch : is_free(tile))
			count += tile_size(tile);
	}
	return count;
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
		.left_free = count_free(&search->leaves, false),
		.reserves_gone = search->reserve.wanted && search->reserve.tiles.count &&
				 !count_free(&search->reserve, false),
		.again = search->again,
	};
	round->search = NULL;
	holdings_rouse(fleet, holding, false);
	free_search(search);
}

/* Hosts that lease tiles */

/* Tells whether a host has a tile of which it is not known if it is there or gone. */
static bool has_strangers(const struct fleet *fleet, const struct tiles *tiles)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];

		bool known = tile_is_clean(tile) || tile_is_of(tile, session_hid(fleet)) ||
			     neighbour_is_gone(fleet, tile->hid) ||
			     (membership_is_fresh(fleet) && membership_has(fleet, tile->hid));

		if (!known)
			return true;
	}
	return false;
}

static bool has_gone(const struct fleet *fleet, const struct tiles *tiles)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		if (*tiles->list[i].hid && neighbour_is_gone(fleet, tiles->list[i].hid))
			return true;
	}
	return false;
}

/* Rule 8: a host that has a tile, and is not among those that were listed later, is gone. */
static void note_hosts(struct fleet *fleet, const struct tiles *tiles,
		       const struct request *request)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		const char *hid = tiles->list[i].hid;
		bool there = tile_is_of(&tiles->list[i], session_hid(fleet));

		for (uint32_t j = 0; j < request->name_count && !there; j++)
			there = !strcmp(request->names[j], hid);
		if (there)
			epoch_note_there(&fleet->epochs, hid);
		else if (*hid)
			epoch_note_gone(&fleet->epochs, hid, fleet->clocks.waiter_ns);
	}
}

/* Amounts */

/* Returns how many leaves are lacking, of those that may be taken. */
static uint32_t lack_of(struct fleet *fleet, const struct search *search)
{
	struct holding *holding = search->holding;

	if (!holding_has_numbers(holding->settings))
		return apportion_lack(fleet, holding);
	return balance_lack(holding->balance, demand_wanted(holding), leases_kept(holding));
}

static bool wants_reserve(const struct search *search)
{
	return search->reserve.wanted && demand_wants_reserve(search->holding);
}

static bool may_go_on(const struct fleet *fleet, const struct search *search)
{
	const struct holding *holding = search->holding;

	return !session_is_leaving(fleet) && !holding->limiter->removed &&
	       holding_needs_leases(holding) && search->cut == holding->cut;
}

/* Tell whether more is lacking than clean tiles have. */
static bool lacks_leaves(struct fleet *fleet, const struct search *search)
{
	return demand_misses_any(search->holding) ||
	       lack_of(fleet, search) > count_free(&search->leaves, true);
}

static bool lacks_reserve(const struct search *search)
{
	return wants_reserve(search) && !count_free(&search->reserve, true);
}

/* Tells whether tiles of other hosts are in the way, and which hosts are gone is not known. */
static bool lacks_hosts(struct fleet *fleet, const struct search *search)
{
	return !search->knows_hosts &&
	       ((lacks_leaves(fleet, search) && has_strangers(fleet, &search->leaves.tiles)) ||
		(lacks_reserve(search) && has_strangers(fleet, &search->reserve.tiles)));
}

/* Tells whether tiles of gone hosts are needed, and which of these were ended is not known. */
static bool lacks_ends(struct fleet *fleet, const struct search *search)
{
	return !search->knows_ends && !neighbour_knows_ends(fleet) &&
	       ((lacks_leaves(fleet, search) && has_gone(fleet, &search->leaves.tiles)) ||
		(lacks_reserve(search) && has_gone(fleet, &search->reserve.tiles)));
}

static bool has_windows(const struct holding *holding)
{
	const struct settings *settings = holding->settings;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (rate_is_window(&settings->limits[i].rate))
			return true;
	}
	return false;
}

/* Returns a tile that is lacking of a host whose end is to be read first; NULL: there is none. */
static const struct tile *tile_to_read(struct fleet *fleet, const struct search *search)
{
	const struct tiles *tiles = &search->leaves.tiles;

	if (search->ends_read >= TILES_GONE_MAX || !has_windows(search->holding) ||
	    !lacks_leaves(fleet, search))
		return NULL;
	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct tile *tile = &tiles->list[i];
		uint32_t epoch = tile_is_clean(tile) ? EPOCH_NONE
						     : neighbour_end_epoch(fleet, tile->hid);

		if (epoch && !neighbour_caps(fleet, tile->hid, epoch))
			return tile;
	}
	return NULL;
}

static void list_hosts(struct fleet *fleet, struct search *search);
static void list_ends(struct fleet *fleet, struct search *search);
static bool read_end(struct fleet *fleet, struct search *search, const struct tile *tile);

/* All that is needed is listed: lets something be taken, if there is something. */
static void judge(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	uint32_t clean = count_free(&search->leaves, true), any;
	const struct tile *tile;

	if (!may_go_on(fleet, search)) {
		end_round(fleet, search);
		return;
	}
	if (lacks_hosts(fleet, search)) {
		list_hosts(fleet, search);
		return;
	}
	if (lacks_ends(fleet, search)) {
		list_ends(fleet, search);
		return;
	}
	tile = tile_to_read(fleet, search);
	if (tile && read_end(fleet, search, tile))
		return;
	take_mark_gone(fleet, &search->leaves.tiles);
	take_mark_gone(fleet, &search->reserve.tiles);
	any = count_free(&search->leaves, false);
	demand_note_unclean(holding, any && !clean);
	search->ready = (any && (lack_of(fleet, search) || demand_misses_any(holding))) ||
			(wants_reserve(search) && count_free(&search->reserve, false));
	if (search->ready)
		holdings_add_work(fleet, holding);
	else
		end_round(fleet, search);
}

/* Lists */

static void list_all(struct fleet *fleet, struct search *search);

static bool is_torn(const struct search *search)
{
	return !search->leaves.tiles.whole ||
	       (search->reserve.wanted && !search->reserve.tiles.whole);
}

/*
 * Rule 12: a list may be torn, but not time and again at the same leaf. Where it is, leaves were
 * changed by a foreign hand.
 */
static void watch_leaves(struct fleet *fleet, const struct search *search)
{
	struct round *round = search->holding->round;
	bool reserve = search->leaves.tiles.whole;
	uint32_t hole = tiles_hole(reserve ? &search->reserve.tiles : &search->leaves.tiles);

	if (!is_torn(search)) {
		round->torn_ns = 0;
	} else if (!round->torn_ns || round->torn_leaf != hole || round->torn_reserve != reserve) {
		round->torn_ns = fleet->now_ns;
		round->torn_leaf = hole;
		round->torn_reserve = reserve;
	} else if (!fleet->torn_id &&
		   fleet->now_ns - round->torn_ns >= fleet->constants.renewal_ns) {
		/* One limiter at a time: its id says what the answer is about. */
		round->torn_ns = 0;
		fleet->torn_id = search->holding->id;
	}
}

/* Weighs the claims of @line, and lets children have their places by this host's. */
static void weigh(struct fleet *fleet, struct holding *holding, const struct claim_line *line)
{
	balance_weigh(holding->balance, line, demand_wanted(holding), holding_count(holding));
	for (uint32_t i = 0; i < line->count; i++) {
		if (line->claims[i].sequence == line->own &&
		    holding->balance->share.target != UINT32_MAX)
			wants_follow(fleet, holding, line->claims[i].parts,
				     line->claims[i].part_count, line->claims[i].wanted);
	}
}

static void listed(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;

	if (search->pending)
		return;
	if (search->failed || !may_go_on(fleet, search)) {
		end_round(fleet, search);
		return;
	}
	/* A server may list while it executes a transaction, and soon has the rest. */
	if (is_torn(search) && !search->torn) {
		search->torn = true;
		list_all(fleet, search);
		return;
	}
	watch_leaves(fleet, search);
	if (holding_has_numbers(holding->settings))
		weigh(fleet, holding, &search->line);
	else
		apportion_note_listed(fleet, holding, &search->leaves.tiles, &search->line);
	demand_update(fleet, holding);
	judge(fleet, search);
}

static void hosts_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	search->pending--;
	search->knows_hosts = true;
	if (request->answer == ANSWER_OK) {
		note_hosts(fleet, &search->leaves.tiles, request);
		note_hosts(fleet, &search->reserve.tiles, request);
	}
	judge(fleet, search);
}

static void ends_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	search->pending--;
	search->knows_ends = true;
	neighbour_note_ends(fleet, request);
	judge(fleet, search);
}

static void end_read(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	search->pending--;
	neighbour_note_end(fleet, request);
	judge(fleet, search);
}

/* Reads the end of the host of @tile. False: there is no memory. */
static bool read_end(struct fleet *fleet, struct search *search, const struct tile *tile)
{
	uint32_t epoch = neighbour_end_epoch(fleet, tile->hid);
	struct request *request = neighbour_ask_end(tile->hid, epoch, end_read);

	if (!request)
		return false;
	request->of.search = search;
	search->ends_read++;
	search->pending++;
	request_send(fleet, request);
	return true;
}

static bool read_tiles(const struct search *search, bool reserve, const struct request *request,
		       struct tiles *tiles)
{
	const struct holding *holding = search->holding;
	uint32_t leaves = reserve ? holding->settings->reserve_hosts
				  : holding_leaves(holding->settings);

	return tiles_read(tiles, request->names, request->name_count, leaves ? leaves : 1);
}

/* A folder that is not there was deleted by hand: no leaf is in a tile. */
static void tiles_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;
	struct listing *listing;
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	listing = znode.kind == ZNODE_RESERVES ? &search->reserve : &search->leaves;
	search->pending--;
	if ((request->answer != ANSWER_OK && request->answer != ANSWER_NO_NODE) ||
	    !read_tiles(search, znode.kind == ZNODE_RESERVES, request, &listing->tiles))
		search->failed = true;
	listed(fleet, search);
}

static void claims_listed(struct fleet *fleet, struct request *request)
{
	struct search *search = request->of.search;

	search->pending--;
	if (request->answer == ANSWER_NO_NODE)
		(void)request_send_one(fleet, OPERATION_CREATE, request->path, NULL, 0, NULL);
	if (request->answer == ANSWER_OK) {
		if (!claim_parse_all(fleet, search->holding, request, &search->line))
			search->failed = true;
	} else {
		search->failed |= request->answer != ANSWER_NO_NODE;
		search->line.own = UINT64_MAX;
		claim_note_unread(fleet, search->holding);
	}
	listed(fleet, search);
}

/* A session that was dropped in between took the search with it. */
static void list(struct fleet *fleet, struct search *search, const char *path,
		 void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = request_new(REQUEST_LIST, path, done);

	if (!request) {
		search->failed = true;
		return;
	}
	request->of.search = search;
	if (done == claims_listed)
		claim_watch(fleet, search->holding, request);
	request->watch |= done == ends_listed;
	search->pending++;
	request_send(fleet, request);
}

static void list_hosts(struct fleet *fleet, struct search *search)
{
	char path[ZNODE_TEXT];

	znode_path(ZNODE_HOSTS, 0, path);
	list(fleet, search, path, hosts_listed);
	if (!search->pending)
		end_round(fleet, search);
	/* A host may have died; one that is alone then need not share. */
	else if (!membership_is_alone(fleet))
		membership_look_soon(fleet);
}

static void list_ends(struct fleet *fleet, struct search *search)
{
	char path[ZNODE_TEXT];

	znode_path(ZNODE_ENDS_OF, 0, path);
	list(fleet, search, path, ends_listed);
	if (!search->pending)
		end_round(fleet, search);
}

static void list_tiles(struct fleet *fleet, struct search *search, bool reserve)
{
	char path[ZNODE_TEXT];

	znode_path_tile(search->holding->id, search->cut, reserve, NULL, path);
	list(fleet, search, path, tiles_listed);
}

static void list_all(struct fleet *fleet, struct search *search)
{
	char path[ZNODE_TEXT];

	free_lists(search);
	search->retry_ns = 0;
	search->knows_hosts = false;
	search->knows_ends = false;
	search->ends_read = 0;
	search->reserve.wanted = search->holding->settings->reserve_hosts;
	list_tiles(fleet, search, false);
	if (search->reserve.wanted)
		list_tiles(fleet, search, true);
	znode_path(ZNODE_CLAIMS, search->holding->id, path);
	list(fleet, search, path, claims_listed);
	if (!search->pending)
		end_round(fleet, search);
}

void round_begin(struct fleet *fleet, struct holding *holding)
{
	struct search *search = calloc(1, sizeof(*search));

	if (!search)
		return;
	search->holding = holding;
	holdings_keep(holding);
	search->cut = holding->cut;
	search->batch = UINT32_MAX;
	holding->round->search = search;
	list_all(fleet, search);
}

/* The transaction */

/* Adds to @request what @search is for. False: nothing of it. */
static bool add_take(struct fleet *fleet, struct request *request, struct search *search)
{
	uint32_t lack;

	/* The settings may be others by now. */
	if (!may_go_on(fleet, search))
		return false;
	lack = lack_of(fleet, search);
	return take_add(fleet, request, search->holding, &search->leaves.tiles,
			lack < search->batch ? lack : search->batch,
			wants_reserve(search) ? &search->reserve.tiles : NULL);
}

/*
 * Adds what other limiters lack, as much as fits: the rest has its own turn. One that another
 * host was first at has the whole transaction refused. So a refusal halves the number of limiters
 * in the next one, and one that is done doubles it.
 */
static void add_others(struct fleet *fleet, struct request *request)
{
	uint32_t count = 1;

	for (struct holding *h = holdings_first_work(fleet); h && count < fleet->take_most;
	     h = h->next_work) {
		if (!round_is_ready(h) || release_is_due(fleet, h) ||
		    !add_take(fleet, request, h->round->search))
			continue;
		h->round->search->ready = false;
		count++;
	}
}

static void note_outcome(struct fleet *fleet, bool done, bool conflict)
{
	uint32_t most = fleet->take_most;

	if (done)
		fleet->take_most = most < ITEMS_MAX ? most * 2 : most;
	else if (conflict)
		fleet->take_most = most > 1 ? most / 2 : most;
	fleet->counters.conflicts += conflict;
}

/* Goes on with the tiles as they are after a take. */
static void take_over(struct search *search, const struct item *item)
{
	struct listing *listing = item->reserve ? &search->reserve : &search->leaves;

	tiles_free(&listing->tiles);
	listing->tiles = item->plan->after;
	item->plan->after = (struct tiles){0};
}

/* Other hosts take, too: lists anew in a moment. */
static void try_again(struct fleet *fleet, struct search *search)
{
	uint32_t lack = lack_of(fleet, search), tried = lack < search->batch ? lack : search->batch;

	if (++search->refusals > REFUSALS_MAX) {
		end_round(fleet, search);
		return;
	}
	/* Without numbers a run is one node, however many leaves are taken of it. */
	if (holding_has_numbers(search->holding->settings))
		search->batch = tried / REFUSED_PARTS + 1;
	search->retry_ns = fleet->now_ns + 1 + fleet_random(fleet) % FLEET_HERD_NS;
	holdings_rouse_at(fleet, search->holding, search->retry_ns);
}

/* All that @holding lacked was taken, or a part of it. */
static void taken(struct fleet *fleet, struct holding *holding)
{
	if (!holding->limiter->removed)
		limiter_settle(&fleet->engine->schedule, holding->limiter);
	if (session_is_leaving(fleet))
		release_all(fleet, holding);
	if (holding->round->search)
		judge(fleet, holding->round->search);
}

/*
 * The transaction was refused for the leaves of @cause; NULL: for its head. Those of another one
 * are there still, as far as it is known.
 */
static void refused(struct fleet *fleet, struct holding *holding, const struct holding *cause)
{
	struct search *search = holding->round->search;

	if (!search)
		return;
	if (!cause || !may_go_on(fleet, search))
		end_round(fleet, search);
	else if (holding == cause)
		try_again(fleet, search);
	else
		search->ready = true;
}

void round_answered(struct fleet *fleet, const struct request *request)
{
	const struct holding *cause = transaction_refused(fleet, request), *last = NULL;

	take_answered(fleet, request);
	for (uint32_t i = 0; request->answer == ANSWER_OK && i < transaction_count(fleet); i++) {
		const struct item *item = transaction_item(fleet, i);

		if (item->holding->round->search)
			take_over(item->holding->round->search, item);
	}
	note_outcome(fleet, request->answer == ANSWER_OK, cause);
	/* The items of one limiter are beside one another. */
	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		struct holding *holding = transaction_item(fleet, i)->holding;

		if (holding == last)
			continue;
		if (request->answer == ANSWER_OK)
			taken(fleet, holding);
		else
			refused(fleet, holding, cause);
		holdings_add_work(fleet, holding);
		last = holding;
	}
}

bool round_is_ready(const struct holding *holding)
{
	return holding->round->search && holding->round->search->ready;
}

bool round_send(struct fleet *fleet, struct holding *holding)
{
	struct search *search = holding->round->search;
	struct request *request;

	if (!round_is_ready(holding))
		return false;
	search->ready = false;
	request = transaction_begin(fleet, TRANSACTION_TAKE);
	if (request && add_take(fleet, request, search)) {
		add_others(fleet, request);
		transaction_send(fleet, request);
		return true;
	}
	if (request)
		transaction_give_up(fleet, request);
	end_round(fleet, search);
	return false;
}

void round_go_on(struct fleet *fleet, struct holding *holding)
{
	struct search *search = holding->round->search;

	if (!search || !search->retry_ns || fleet->now_ns < search->retry_ns)
		return;
	if (may_go_on(fleet, search))
		list_all(fleet, search);
	else
		end_round(fleet, search);
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
