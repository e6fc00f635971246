/* claim - how much others want, and what this host tells them of that, see claim.h. */
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HYSTERESIS_PERCENT = 20 };

/* Claims of others that are remembered, to be woken; room for a name: HID-N-W-SEQ. */
enum { CLAIMANTS_MAX = 8, CLAIM_TEXT = 48 };

struct claims {
	char *own;	   /* owned: name of this host's, NULL */
	uint32_t wanted;   /* N of it, 0: there is none */
	bool unknown;	   /* there may be one whose name is not known */
	bool counted;	   /* there may be one: it takes up room ... */
	uint32_t place;	   /* ... and has this place in struct handover_memory, and 1; 0: none */
	uint64_t next_ns;  /* another N not before */
	bool reclaims;	   /* go to the end of the line ... */
	uint32_t given_up; /* ... and then wake others: so many are theirs */
	bool looking;	   /* their names are being asked for ... */
	bool turned;	   /* ... as a turn is over, and its claim was made anew */
	char (*claimants)[CLAIM_TEXT]; /* owned: names of others' claims, in the order of waking */
	uint32_t claimant_count;
	bool contended;		/* all together want more than there is */
	uint32_t target;	/* our share then; UINT32_MAX: there is none */
	uint32_t target_behind; /* our share at the end of the line, if there is a target */
	bool starving;		/* some host's share is 0 */
};

bool claim_attach(struct holding *holding)
{
	holding->claims = calloc(1, sizeof(*holding->claims));
	if (!holding->claims)
		return false;
	holding->claims->target = UINT32_MAX;
	return true;
}

void claim_detach(struct holding *holding)
{
	if (!holding->claims)
		return;
	free(holding->claims->own);
	free(holding->claims->claimants);
	free(holding->claims);
}

const char *claim_name(const struct holding *holding)
{
	return holding->claims->own;
}

bool claim_may_be(const struct holding *holding)
{
	return holding->claims->own || holding->claims->unknown;
}

bool claim_is_unknown(const struct holding *holding)
{
	return holding->claims->unknown;
}

bool claim_is_contended(const struct holding *holding)
{
	return holding->claims->contended;
}

bool claim_has_claimants(const struct holding *holding)
{
	return holding->claims->claimant_count;
}

uint32_t claim_target(const struct holding *holding)
{
	return holding->claims->target;
}

bool claim_takes_turns(const struct holding *holding, uint32_t kept)
{
	return holding->claims->starving && kept > holding->claims->target_behind;
}

void claim_anew(struct holding *holding)
{
	holding->claims->reclaims = true;
}

/* There may be a claim, or there is none. */
static void count(struct fleet *fleet, struct holding *holding, bool there)
{
	if (there != holding->claims->counted)
		room_count_claim(fleet, holding->id, there);
	holding->claims->counted = there;
}

/* Likewise, and a successor has to know. */
static void keep(struct fleet *fleet, struct holding *holding, bool there)
{
	count(fleet, holding, there);
	handover_keep_claim(fleet, holding->id, &holding->claims->place, there);
}

void claim_resume(struct fleet *fleet, struct holding *holding, uint32_t place)
{
	holding->claims->place = place;
	holding->claims->unknown = true;
	count(fleet, holding, true);
}

static int newest_first(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->sequence < y->sequence ? 1 : x->sequence > y->sequence ? -1 : 0;
}

static bool is_own(const struct fleet *fleet, const struct claim *claim)
{
	return znode_claim_is_of(claim->name, session_hid(fleet));
}

/*
 * Divides the partitions among @claims, with this host's at the beginning or the end of the line,
 * and puts the claims of other hosts into @others, the newest first. Returns how many they are.
 */
static uint32_t divide_among_others(const struct fleet *fleet, const struct holding *holding,
				    const struct claim *claims, uint32_t count, bool own_last,
				    struct claim *others)
{
	uint32_t other_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		others[i] = claims[i];
		others[i].sequence++;
		if (is_own(fleet, &claims[i]))
			others[i].sequence = own_last ? UINT64_MAX : 0;
	}
	share_divide(others, count, holding_count(holding));
	for (uint32_t i = 0; i < count; i++) {
		if (!is_own(fleet, &others[i]))
			others[other_count++] = others[i];
	}
	qsort(others, other_count, sizeof(*others), newest_first);
	return other_count;
}

static void remember_claimant(struct holding *holding, const struct claim *claim)
{
	if (holding->claims->claimant_count < CLAIMANTS_MAX)
		snprintf(holding->claims->claimants[holding->claims->claimant_count++], CLAIM_TEXT,
			 "%s", claim->name);
}

/*
 * Remembers the hosts to wake when something is given back: those whose share is larger when this
 * host goes to the end of the line, as it does when its turn is over; then the others that have a
 * share. The newest come first: earlier claimants have more of their shares by now.
 */
static void remember_claimants(const struct fleet *fleet, struct holding *holding,
			       const struct claim *claims, uint32_t count)
{
	struct claim *before = calloc(count + 1, sizeof(*before));
	struct claim *after = calloc(count + 1, sizeof(*after));
	uint32_t other_count = 0;

	holding->claims->claimant_count = 0;
	if (before && after) {
		other_count = divide_among_others(fleet, holding, claims, count, false, before);
		(void)divide_among_others(fleet, holding, claims, count, true, after);
	}
	if (other_count && !holding->claims->claimants)
		holding->claims->claimants = calloc(CLAIMANTS_MAX, CLAIM_TEXT);
	for (uint32_t i = 0; holding->claims->claimants && i < other_count; i++) {
		if (after[i].gets > before[i].gets)
			remember_claimant(holding, &after[i]);
	}
	for (uint32_t i = 0; holding->claims->claimants && i < other_count; i++) {
		if (after[i].gets && after[i].gets <= before[i].gets)
			remember_claimant(holding, &after[i]);
	}
	free(before);
	free(after);
	demand_note_contested(holding, holding->claims->claimant_count);
}

/*
 * The claims that @request lists, owned by the caller, their names by it; NULL when there is no
 * memory.
 */
static struct claim *parse(const struct request *request, uint32_t *count)
{
	struct claim *claims = calloc(request->name_count + 1, sizeof(*claims));

	*count = 0;
	for (uint32_t i = 0; claims && i < request->name_count; i++) {
		if (znode_claim_parse(request->names[i], &claims[*count]))
			++*count;
	}
	return claims;
}

/* This host has no claim any more, as far as it is known. */
static void forget_own(struct holding *holding)
{
	free(holding->claims->own);
	holding->claims->own = NULL;
	holding->claims->wanted = 0;
}

/* Watches this host's own claim, so that a host that gives something back can wake it. */
static void watch_own(struct fleet *fleet, const char *claim)
{
	struct request *request = request_new(REQUEST_GET, claim, NULL);

	if (!request)
		return;
	request->watch = true;
	request_send(fleet, request);
}

/* A claim of this host's that was listed. Without memory it stays unknown until the next list. */
static void adopt_claim(struct fleet *fleet, struct holding *holding, const struct claim *claim)
{
	char path[ZNODE_TEXT];

	forget_own(holding);
	holding->claims->own = strdup(claim->name);
	holding->claims->unknown = !holding->claims->own;
	if (holding->claims->unknown)
		return;
	holding->claims->wanted = claim->wanted;
	znode_path_named(ZNODE_CLAIM, holding->id, claim->name, path);
	watch_own(fleet, path);
}

bool claim_parse_all(struct fleet *fleet, struct holding *holding, const struct request *request,
		     struct claim_line *line)
{
	bool was_unknown = holding->claims->unknown;

	line->own = UINT64_MAX;
	line->claims = parse(request, &line->count);
	if (!line->claims)
		return false;
	holding->claims->unknown = false;
	for (uint32_t i = 0; i < line->count; i++) {
		const struct claim *claim = &line->claims[i];

		if (!is_own(fleet, claim))
			continue;
		line->own = claim->sequence;
		if (was_unknown && !holding->claims->own)
			adopt_claim(fleet, holding, claim);
	}
	if (was_unknown)
		keep(fleet, holding, claim_may_be(holding));
	remember_claimants(fleet, holding, line->claims, line->count);
	return true;
}

/* Wakes as many of the remembered claimants as was given up, from the one after @skipped on. */
static void wake(struct fleet *fleet, struct holding *holding, uint32_t skipped)
{
	uint32_t count = holding->claims->given_up, claimants = holding->claims->claimant_count;
	char path[ZNODE_TEXT];

	holding->claims->given_up = 0;
	for (uint32_t i = 0; i < count && i < claimants; i++) {
		const char *name = holding->claims->claimants[(skipped + i) % claimants];
		struct request *request = request_new(REQUEST_TRANSACTION, NULL, NULL);

		if (!request)
			return;
		znode_path_named(ZNODE_CLAIM, holding->id, name, path);
		if (request_add(request, OPERATION_SET, path, NULL, NODE_VERSION_ANY, 0))
			request_send(fleet, request);
		else
			request_free(request);
	}
}

/*
 * Wakes hosts that wait for partitions of @holding, one for each that was given up, by setting the
 * data of their claims. They look every R anyway: nothing depends on it.
 */
void claim_wake_others(struct fleet *fleet, struct holding *holding)
{
	if (!holding->claims->looking)
		wake(fleet, holding, 0);
}

/*
 * Returns how many of @claims are behind this host's, which was made just now: those of hosts whose
 * turns end at the same time. As each of them leaves so many claimants to the others, no two of
 * them wake the same host.
 */
static uint32_t count_behind(const struct fleet *fleet, const struct claim *claims, uint32_t count)
{
	uint32_t behind = 0, own = count;

	for (uint32_t i = 0; i < count; i++)
		own = is_own(fleet, &claims[i]) ? i : own;
	for (uint32_t i = 0; own < count && i < count; i++)
		behind += claims[i].sequence > claims[own].sequence;
	return behind;
}

static void listed(struct fleet *fleet, struct request *request)
{
	struct holding *holding;
	struct claim *claims;
	struct znode folder;
	uint32_t count, behind = 0;

	(void)znode_parse(request->path, &folder);
	holding = holdings_find(fleet, folder.id);
	if (!holding)
		return;
	holding->claims->looking = false;
	claims = request->answer == ANSWER_OK ? parse(request, &count) : NULL;
	if (claims)
		remember_claimants(fleet, holding, claims, count);
	if (claims && holding->claims->turned)
		behind = count_behind(fleet, claims, count);
	holding->claims->turned = false;
	free(claims);
	wake(fleet, holding, behind);
}

void claim_look(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (holding->claims->looking)
		return;
	znode_path(ZNODE_CLAIMS, holding->id, path);
	request = request_new(REQUEST_LIST, path, listed);
	if (!request)
		return;
	holding->claims->looking = true;
	request_send(fleet, request);
}

void claim_withdraw(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (!holding->claims->own)
		return;
	request = request_new(REQUEST_TRANSACTION, NULL, NULL);
	if (!request)
		return;
	znode_path_named(ZNODE_CLAIM, holding->id, holding->claims->own, path);
	if (request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0))
		request_send(fleet, request);
	else
		request_free(request);
	forget_own(holding);
}

/* Divides the partitions with this host's claim at @sequence in the line, and returns its share. */
static uint32_t own_share(const struct holding *holding, struct claim_line *line, uint64_t sequence)
{
	struct claim *own = line->claims;

	while (own->sequence != line->own)
		own++;
	own->sequence = sequence;
	share_divide(line->claims, line->count, holding_count(holding));
	own = line->claims;
	while (own->sequence != sequence)
		own++;
	own->sequence = line->own;
	return own->gets;
}

void claim_weigh(struct holding *holding, struct claim_line *line)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < line->count; i++)
		sum += line->claims[i].wanted;
	holding->claims->target = UINT32_MAX;
	holding->claims->starving = false;
	if (line->own == UINT64_MAX) {
		/* A host that holds what others claim joins the claimants. */
		holding->claims->contended = line->count &&
					     sum + demand_wanted(holding) > holding_count(holding);
		return;
	}
	holding->claims->contended = line->count > 1 && sum > holding_count(holding);
	if (!holding->claims->contended)
		return;
	holding->claims->target_behind = own_share(holding, line, UINT64_MAX);
	holding->claims->target = own_share(holding, line, line->own);
	for (uint32_t i = 0; i < line->count; i++)
		holding->claims->starving |= !line->claims[i].gets;
}

uint32_t claim_limit(const struct holding *holding)
{
	return demand_wanted(holding) < holding->claims->target ? demand_wanted(holding)
								: holding->claims->target;
}

/* N of the /w node that there should be; 0: none. */
static uint32_t claim_for(const struct holding *holding)
{
	if (holding->limiter->removed || !demand_wanted(holding) ||
	    (!demand_is_unmet(holding) && !holding->claims->contended))
		return 0;
	return demand_wanted(holding);
}

/* Tells whether a claim of @wanted could change a share: else it lost its place for nothing. */
static bool changes_share(const struct holding *holding, uint32_t wanted)
{
	uint32_t less = wanted < holding->claims->wanted ? wanted : holding->claims->wanted;

	/*
	 * With more hosts than partitions, a host that has 0 or 1 gains nothing by claiming more.
	 */
	return holding->claims->target >= less &&
	       !(holding->claims->starving && holding->claims->target <= 1);
}

bool claim_is_due(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t now = holding->claims->wanted, wanted = claim_for(holding);
	uint32_t more = wanted > now ? wanted - now : now - wanted;

	if (session_is_leaving(fleet) || holding->claims->unknown ||
	    (fleet->now_ns < holding->claims->next_ns && now))
		return false;
	if (wanted && !now && fleet->now_ns < room_claims_from_ns(fleet))
		return false;
	if (!wanted || !now)
		return wanted != now;
	return holding->claims->reclaims ||
	       (changes_share(holding, wanted) &&
		(uint64_t)more * 100 > (uint64_t)now * HYSTERESIS_PERCENT);
}

void claim_woken(struct fleet *fleet, const struct znode *znode)
{
	struct holding *holding = holdings_find(fleet, znode->id);
	char path[ZNODE_TEXT];

	if (!holding || !holding->claims->own || strcmp(holding->claims->own, znode->name) != 0)
		return;
	/* It is being replaced: that was us. */
	if (transaction_kind(fleet) == TRANSACTION_CLAIM && transaction_holding(fleet) == holding)
		return;
	znode_path_named(ZNODE_CLAIM, znode->id, znode->name, path);
	watch_own(fleet, path);
	holdings_wake(fleet, holding);
}

bool claim_send(struct fleet *fleet, struct holding *holding)
{
	uint32_t wanted = claim_for(holding);
	char path[ZNODE_TEXT], name[ZNODE_TEXT];
	struct request *request;
	bool added = true;

	if (!claim_is_due(fleet, holding))
		return false;
	if (wanted && !holding->claims->counted && !room_for_claim(fleet, holding)) {
		room_was_missing(fleet);
		return false;
	}
	request = transaction_begin(fleet, TRANSACTION_CLAIM);
	if (!request)
		return false;
	transaction_set_claim(fleet, holding, wanted);
	if (holding->claims->own) {
		znode_path_named(ZNODE_CLAIM, holding->id, holding->claims->own, path);
		added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	}
	if (wanted) {
		znode_claim_print(session_hid(fleet), wanted, fleet->options->weight, name);
		znode_path_named(ZNODE_CLAIM, holding->id, name, path);
		added = added && request_add(request, OPERATION_CREATE, path, NULL, 0,
					     NODE_EPHEMERAL | NODE_SEQUENTIAL);
	}
	if (!added) {
		transaction_give_up(fleet, request);
		return false;
	}
	keep(fleet, holding, true);
	holding->claims->reclaims = false;
	holding->claims->next_ns = fleet->now_ns + fleet->constants.renewal_ns;
	transaction_send(fleet, request);
	return true;
}

void claim_answered(struct fleet *fleet, const struct request *request)
{
	struct holding *holding = transaction_holding(fleet);
	const struct operation *last = &request->operations[request->operation_count - 1];
	bool had_claim = holding->claims->own;

	if (request->answer == ANSWER_DENIED) {
		/* The one that was to be replaced is still there. */
		keep(fleet, holding, holding->claims->own);
	} else if (request->answer == ANSWER_OK || request->failed >= HEAD_LENGTH) {
		forget_own(holding);
		keep(fleet, holding, request->answer == ANSWER_OK && transaction_claimed(fleet));
	}
	if (request->answer != ANSWER_OK) {
		/* The folder is gone: the next search makes it again. */
		if (request->failed >= HEAD_LENGTH && !had_claim) {
			demand_note_unmet(holding, false);
			holding->claims->contended = false;
		}
		return;
	}
	if (holding->claims->given_up) {
		holding->claims->turned = true;
		claim_look(fleet, holding);
	}
	if (!transaction_claimed(fleet))
		return;
	if (last->made)
		holding->claims->own = strdup(strrchr(last->made, '/') + 1);
	/* Without memory for its name it is found when the claims are listed next. */
	holding->claims->unknown = !holding->claims->own;
	if (holding->claims->unknown)
		return;
	holding->claims->wanted = transaction_claimed(fleet);
	if (session_is_leaving(fleet))
		claim_withdraw(fleet, holding);
	else
		watch_own(fleet, last->made);
}

void claim_resolved(struct fleet *fleet, struct holding *holding, const struct request *request)
{
	struct claim claim;

	forget_own(holding);
	holding->claims->unknown = false;
	for (uint32_t i = 0; i < request->name_count; i++) {
		if (znode_claim_parse(request->names[i], &claim) && is_own(fleet, &claim))
			adopt_claim(fleet, holding, &claim);
	}
	keep(fleet, holding, claim_may_be(holding));
}

void claim_forget(struct fleet *fleet, struct holding *holding)
{
	forget_own(holding);
	holding->claims->given_up = 0;
	holding->claims->looking = false;
	holding->claims->turned = false;
	holding->claims->unknown = false;
	count(fleet, holding, false);
	holding->claims->place = 0;
	holding->claims->target = UINT32_MAX;
}

void claim_end_contention(struct holding *holding)
{
	holding->claims->contended = false;
	holding->claims->starving = false;
	holding->claims->target = UINT32_MAX;
}

void claim_given_back(struct fleet *fleet, struct holding *holding, uint32_t given)
{
	struct claims *claims = holding->claims;

	if (session_is_leaving(fleet) || !claims->claimant_count)
		return;
	claims->given_up += given;
	/* Others are woken when this host is behind them in the line. */
	if (!claims->reclaims)
		claim_look(fleet, holding);
}

void claim_note_given(struct holding *holding)
{
	holding->claims->given_up++;
}
