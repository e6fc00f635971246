/*
 * search - which partitions are taken: those that are free and clean, at random; then those that
 * nobody gave back.
 *
 * A round lists markers, leases and claims, and takes what it can, several in a transaction; what
 * others took meanwhile is left out, and the rest tried again.
 */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For so long what a marker said is believed. */
static const uint64_t MARKER_FRESH_NS = NSEC_PER_SEC;

/* So many transactions of one round may be refused. */
enum { REFUSALS_MAX = 6 };

/* What may be in names. */
enum { INDEX_MAX = 9999, WEIGHT_MAX = 1000 };
static const uint64_t SEQUENCE_MAX = UINT64_C(9999999999999999);

static void next_items(struct fleet *fleet, struct search *search);

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
	if (!limiter->wanted)
		return;
	if (limiter->queue.first && !fleet->source.may_come(&fleet->source, limiter))
		limiter_hasten(&fleet->engine->schedule, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		hasten(fleet, l);
}

/* The round is over. */
void search_end(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;

	holding_keep(holding);
	holding->left_free = search->clean_count + search->unclean_count;
	holding->search = NULL;
	search_free(search);
	holding->unmet = holding_kept(holding) < holding->wanted;
	holding->lacking = holding_lacks(holding);
	choose_next_search(fleet, holding);
	if (!holding->limiter->removed)
		hasten(fleet, holding->limiter);
	if (choose_has_work(fleet, holding))
		fleet_add_work(fleet, holding);
	holding_let_go(holding);
}

/* Without the folder of a limiter nothing could ever be taken: it was deleted by hand. */
static void folder_made(void *fleet, struct request *request)
{
	(void)fleet;
	(void)request;
}

static void make_folder(struct fleet *fleet, const char *path)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, NULL, folder_made);

	if (request && request_add(request, OPERATION_CREATE, path, NULL, 0, 0))
		fleet_send(fleet, request);
	else if (request)
		request_free(request);
}

/* Digits from *@at on, which moves behind them; false: none, or more than @most. */
static bool parse_digits(const char **at, uint64_t most, uint64_t *number)
{
	const char *from = *at;

	for (*number = 0; **at >= '0' && **at <= '9'; ++*at) {
		*number = *number * 10 + (uint64_t)(**at - '0');
		if (*number > most)
			return false;
	}
	return *at != from;
}

/* A partition's index, or a reserve's with @reserve; false: a name that is none of ours. */
static bool parse_index(const char *name, uint32_t *index, bool *reserve)
{
	uint64_t number;

	*reserve = *name == 'r';
	name += *reserve;
	if ((*name == '0' && name[1]) || !parse_digits(&name, INDEX_MAX, &number) || *name)
		return false;
	*index = (uint32_t)number;
	return true;
}

/* Puts a list of names into bitmaps. */
static void mark(const struct search *search, const struct request *request, bool *shares,
		 bool *reserves)
{
	for (uint32_t i = 0; i < request->name_count; i++) {
		uint32_t index;
		bool reserve;

		if (!parse_index(request->names[i], &index, &reserve))
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

	for (uint32_t i = 0; i <= holding->slots; i++) {
		bool reserve = i == holding->slots;
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

/* Whom to wake when something is given back. */
static void remember_claimant(struct holding *holding, const char *name)
{
	if (!holding->claimants)
		holding->claimants = calloc(CLAIMANTS_MAX, CLAIM_TEXT);
	if (holding->claimants && holding->claimant_count < CLAIMANTS_MAX)
		snprintf(holding->claimants[holding->claimant_count++], CLAIM_TEXT, "%s", name);
}

/* HID-N-W-SEQ; false: a name that is none of ours. */
static bool parse_claim(const char *name, struct claim *claim)
{
	uint64_t wanted, weight, sequence;

	for (int i = 0; i < HID_TEXT - 1; i++, name++) {
		if ((*name < 'a' || *name > 'z') && (*name < '2' || *name > '7'))
			return false;
	}
	if (*name++ != '-' || !parse_digits(&name, PARTITIONS_MAX, &wanted) || !wanted ||
	    *name++ != '-' || !parse_digits(&name, WEIGHT_MAX, &weight) || !weight ||
	    *name++ != '-' || !parse_digits(&name, SEQUENCE_MAX, &sequence) || *name)
		return false;
	*claim = (struct claim){(uint32_t)wanted, (uint32_t)weight, sequence, 0};
	return true;
}

static void parse_claims(const struct fleet *fleet, struct search *search,
			 const struct request *request)
{
	search->own_claim = UINT64_MAX;
	search->claims = calloc(request->name_count + 1, sizeof(*search->claims));
	if (!search->claims) {
		search->failed = true;
		return;
	}
	search->holding->claimant_count = 0;
	for (uint32_t i = 0; i < request->name_count; i++) {
		struct claim *claim = &search->claims[search->claim_count];
		const char *name = request->names[i];

		if (!parse_claim(name, claim))
			continue;
		search->claim_count++;
		if (!memcmp(name, fleet->hid, HID_TEXT - 1))
			search->own_claim = claim->sequence;
		else
			remember_claimant(search->holding, name);
	}
}

/* What the claims come to: our share, if all together want more than there is. */
static void weigh(struct search *search)
{
	struct holding *holding = search->holding;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < search->claim_count; i++)
		sum += search->claims[i].wanted;
	holding->target = UINT32_MAX;
	holding->starving = false;
	if (search->own_claim == UINT64_MAX) {
		/* Who holds something that others claim joins the claimants. */
		holding->contended = search->claim_count &&
				     sum + holding->wanted > holding_count(holding);
		return;
	}
	holding->contended = search->claim_count > 1 && sum > holding_count(holding);
	if (!holding->contended)
		return;
	share_divide(search->claims, search->claim_count, holding_count(holding));
	for (uint32_t i = 0; i < search->claim_count; i++) {
		if (search->claims[i].sequence == search->own_claim)
			holding->target = search->claims[i].gets;
		holding->starving |= !search->claims[i].gets;
	}
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

/* Those whose own token is read go to the end, which is tried first. */
static void prefer_read(const struct search *search, uint32_t *indices, uint32_t count)
{
	uint32_t last = count;

	for (uint32_t i = count; i-- > 0;) {
		uint32_t index = indices[i];

		if (!holding_misses(search->holding, index))
			continue;
		indices[i] = indices[--last];
		indices[last] = index;
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
	prefer_read(search, search->clean, search->clean_count);
	prefer_read(search, search->unclean, search->unclean_count);
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
	weigh(search);
	search->batch = ITEMS_MAX;
	sort_free(fleet, search, search->marked);
	demand_update(fleet, holding);
	next_items(fleet, search);
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

static void markers_listed(void *fleet, struct request *request)
{
	struct search *search = request->purpose;

	if (!list_failed(fleet, search, request))
		mark(search, request, search->marked, search->reserve_clean);
	listed(fleet, search);
}

static void leases_listed(void *fleet, struct request *request)
{
	struct search *search = request->purpose;

	if (!list_failed(fleet, search, request))
		mark(search, request, search->leased, search->reserve_leased);
	listed(fleet, search);
}

static void claims_listed(void *fleet, struct request *request)
{
	struct search *search = request->purpose;

	if (!list_failed(fleet, search, request))
		parse_claims(fleet, search, request);
	else
		search->own_claim = UINT64_MAX;
	listed(fleet, search);
}

/* A session that was dropped in between took the search with it. */
static bool list(struct fleet *fleet, struct search *search, char folder,
		 void (*done)(void *fleet, struct request *request))
{
	struct request *request;
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/%c/%llu", folder, (unsigned long long)search->holding->id);
	request = request_new(REQUEST_LIST, path, search, done);
	if (!request)
		return false;
	search->pending++;
	fleet_send(fleet, request);
	return true;
}

void search_begin(struct fleet *fleet, struct holding *holding)
{
	struct search *search = calloc(1, sizeof(*search));
	uint32_t hosts = holding->settings.reserve_hosts;

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
	if (!list(fleet, search, 'f', markers_listed) || !list(fleet, search, 'l', leases_listed) ||
	    !list(fleet, search, 'w', claims_listed))
		search->failed = true;
	if (!search->pending)
		search_end(fleet, search);
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
		search_end(fleet, search);
		return;
	}
	if (!search->item_count) {
		next_items(fleet, search);
		return;
	}
	search->ready = true;
	search->ready_ns = fleet->now_ns;
	fleet_add_work(fleet, search->holding);
}

/* What was left in it, and when it was made. One that vanished belongs to another now. */
static void marker_read(void *fleet, struct request *request)
{
	struct search *search = request->purpose;
	const char *name = strrchr(request->path, '/') + 1;
	uint32_t index = 0, i;
	bool reserve;

	search->pending--;
	(void)parse_index(name, &index, &reserve);
	for (i = 0; i < search->item_count; i++) {
		if (search->items[i].index == index && search->items[i].reserve == reserve)
			break;
	}
	if (request->answer == ANSWER_OK) {
		search->items[i].made_zxid = request->made_zxid;
		search->items[i].part_count = marker_parse(request->data, search->items[i].parts);
	} else if (request->answer == ANSWER_NO_NODE) {
		search->items[i] = search->items[--search->item_count];
	} else {
		search->failed = true;
	}
	items_ready(fleet, search);
}

static void read_markers(struct fleet *fleet, struct search *search)
{
	char path[PATH_ROOM];

	for (uint32_t i = 0; i < search->item_count; i++) {
		const struct item *item = &search->items[i];
		struct request *request;

		if (!item->clean)
			continue;
		snprintf(path, sizeof(path), "/f/%llu/%s%u", (unsigned long long)item->holding->id,
			 item->reserve ? "r" : "", item->index);
		request = request_new(REQUEST_GET, path, search, marker_read);
		if (!request) {
			search->failed = true;
			break;
		}
		search->pending++;
		fleet_send(fleet, request);
	}
	items_ready(fleet, search);
}

/* The next ones to be taken, or the end of the round. */
static void next_items(struct fleet *fleet, struct search *search)
{
	struct holding *holding = search->holding;
	uint32_t kept = holding_kept(holding), limit = choose_limit(holding);
	uint32_t need = limit > kept ? limit - kept : 0;
	uint32_t missing = holding_missing(holding);

	search->item_count = 0;
	search->ready = false;
	if (need < missing)
		need = missing;
	if (fleet->leases >= FLEET_LEASES_MAX)
		need = 0;
	if (holding_wants_reserve(holding))
		add_reserve(fleet, search);
	while (need && search->clean_count && search->item_count < search->batch) {
		add_item(search, search->clean[--search->clean_count], false, true);
		need--;
	}
	/* Unclean ones only when the clean ones have run out. */
	while (need && search->unclean_count && search->item_count < search->batch) {
		add_item(search, search->unclean[--search->unclean_count], false, false);
		need--;
	}
	if (search->item_count)
		read_markers(fleet, search);
	else
		search_end(fleet, search);
}

/* Rules 6 and 7. */
static bool add_take(const struct fleet *fleet, struct request *request, struct item *item)
{
	char path[PATH_ROOM];
	bool added = true;

	item->operation = request->operation_count;
	snprintf(path, sizeof(path), "/f/%llu/%s%u", (unsigned long long)item->holding->id,
		 item->reserve ? "r" : "", item->index);
	if (!item->clean)
		added = request_add(request, OPERATION_CREATE, path, NULL, 0, 0);
	added = added && request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	path[1] = 'l';
	return added && request_add(request, OPERATION_CREATE, path, fleet->hid, 0, NODE_EPHEMERAL);
}

bool search_send(struct fleet *fleet, struct search *search)
{
	struct transaction *t = &fleet->transaction;
	struct holding *holding = search->holding;
	struct request *request;
	bool added = true;

	search->ready = false;
	/* The settings may be others by now. */
	if (holding->limiter->removed || !holding_needs_leases(holding) ||
	    search->count != holding_count(holding)) {
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
		if (fleet->now_ns - search->ready_ns > MARKER_FRESH_NS) {
			item->part_count = LIMITS_MAX;
			for (uint32_t j = 0; j < LIMITS_MAX; j++) {
				if (item->parts[j].tokens >= 0)
					item->parts[j] = (struct bucket_part){0};
			}
		}
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
		next_items(fleet, search);
}
