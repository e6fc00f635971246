/* claim - how much others want, and what this host tells them of that, see claim.h. */
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/transaction.h"
#include "core/fleet/wants.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLAIMANTS_MAX = 8 }; /* claims of others that are remembered, to be woken */

/* Of `lease`: claims that are not watched are listed so often. */
enum { UNTOLD_PARTS = 3 };

struct claims {
	char *own;	      /* owned: name of this host's, NULL */
	uint32_t wanted;      /* N of it, 0: there is none */
	uint64_t since_ns;    /* since when there is one or another; 0: there is none */
	bool unknown;	      /* there may be one whose name is not known */
	bool counted;	      /* there may be one: it takes up room ... */
	uint32_t parts_bytes; /* ... with parts of so many bytes ... */
	uint32_t place;	      /* ... and has this place in struct handover_memory, and 1; 0: none */
	uint64_t next_ns;     /* another N not before */
	bool reclaims;	      /* go to the end of the line ... */
	uint32_t given_up;    /* ... and then wake others: so many are theirs */
	bool looking;	      /* their names are being asked for ... */
	bool turned;	      /* ... as a turn is over, and its claim was made anew */
	bool changed;	      /* those of others have, since they were listed */
	uint64_t list_ns;     /* without a watch: not before */
	char *claimants[CLAIMANTS_MAX]; /* owned: names of others' claims, in the order of waking */
	uint32_t claimant_count;
};

static void forget_claimants(struct claims *claims)
{
	while (claims->claimant_count)
		free(claims->claimants[--claims->claimant_count]);
}

bool claim_attach(struct holding *holding)
{
	holding->claims = calloc(1, sizeof(*holding->claims));
	return holding->claims;
}

void claim_detach(struct holding *holding)
{
	if (!holding->claims)
		return;
	free(holding->claims->own);
	forget_claimants(holding->claims);
	free(holding->claims);
}

const char *claim_name(const struct holding *holding)
{
	return holding->claims->own;
}

uint64_t claim_since_ns(const struct holding *holding)
{
	return holding->claims->since_ns;
}

bool claim_may_be(const struct holding *holding)
{
	return holding->claims->own || holding->claims->unknown;
}

void claim_tell(const struct holding *holding, struct facts *facts)
{
	const struct claims *claims = holding->claims;

	facts->has_claimants = claims->claimant_count;
	facts->claimed = claims->wanted;
	facts->claim_is_lost = claims->unknown;
	facts->claims_anew = claims->reclaims;
	facts->claim_at_ns = claims->next_ns;
	facts->claims_are_watched = room_watches_claims(holding);
	facts->claims_have_changed = claims->changed;
}

/* Tells whether claims should be listed: they have changed, or that would not be told. */
static bool is_due(const struct fleet *fleet, const struct holding *holding)
{
	const struct claims *claims = holding->claims;

	return claims->changed ||
	       (!room_watches_claims(holding) && fleet->now_ns >= claims->list_ns);
}

void claim_tell_portion(const struct fleet *fleet, const struct holding *holding,
			struct portion_facts *facts)
{
	const struct claims *claims = holding->claims;

	facts->claims = claims->claimant_count;
	facts->claimed = claims->wanted;
	facts->lost_claim = claims->unknown;
	facts->is_watched = room_watches_claims(holding);
	facts->is_stale = is_due(fleet, holding);
}

/* Without a watch they are listed again later. */
static void list_later(const struct fleet *fleet, struct holding *holding)
{
	holding->claims->list_ns = fleet->now_ns + holding->settings->lease_ns / UNTOLD_PARTS;
}

void claim_watch(struct fleet *fleet, struct holding *holding, struct request *request)
{
	request->watch = room_watch_claims(fleet, holding);
}

void claim_note_unread(struct fleet *fleet, struct holding *holding)
{
	room_unwatch_claims(fleet, holding);
	holding->claims->changed = false;
	list_later(fleet, holding);
}

void claim_changed(struct fleet *fleet, const struct znode *znode)
{
	struct holding *holding = holdings_find(fleet, znode->id);

	if (!holding)
		return;
	room_unwatch_claims(fleet, holding);
	holding->claims->changed = true;
}

/* Notes that @request has listed the claims of @holding. */
static void note_read(struct fleet *fleet, struct holding *holding, const struct request *request)
{
	holding->claims->changed = false;
	list_later(fleet, holding);
	if (request->watch)
		(void)room_watch_claims(fleet, holding);
}

void claim_anew(struct holding *holding)
{
	holding->claims->reclaims = true;
}

/* There may be a claim, with parts of so many bytes; or there is none. */
static void count_claim(struct fleet *fleet, struct holding *holding, bool there,
			uint32_t parts_bytes)
{
	struct claims *claims = holding->claims;

	if (claims->counted)
		room_count_claim(fleet, holding->id, claims->parts_bytes, false);
	if (there)
		room_count_claim(fleet, holding->id, parts_bytes, true);
	claims->counted = there;
	claims->parts_bytes = parts_bytes;
}

/*
 * Likewise, and a successor has to know. Until it is known which of two claims there is they have
 * the bytes of the longer one.
 */
static void keep(struct fleet *fleet, struct holding *holding, bool there, uint32_t parts_bytes)
{
	count_claim(fleet, holding, there, parts_bytes);
	handover_keep_claim(fleet, holding->id, &holding->claims->place, there, parts_bytes);
}

/* Keeps as much as there may be now. */
static void keep_known(struct fleet *fleet, struct holding *holding)
{
	const struct claims *claims = holding->claims;

	keep(fleet, holding, claim_may_be(holding),
	     claims->own ? znode_claim_parts_bytes(claims->own) : claims->parts_bytes);
}

void claim_resume(struct fleet *fleet, struct holding *holding, uint32_t place,
		  uint32_t parts_bytes)
{
	holding->claims->place = place;
	holding->claims->unknown = true;
	count_claim(fleet, holding, true, parts_bytes);
}

/* Remembers the hosts to wake when something is given back. */
static void remember_claimants(struct holding *holding, const struct claim_line *line)
{
	struct claims *claims = holding->claims;
	struct claim *others = calloc(line->count + 1, sizeof(*others));
	uint32_t all = holding_count(holding),
		 pieces = all / settings_least_leaves(holding->settings);
	/* Where hosts take turns, whose turn is next: each has some by leaves. */
	uint32_t capacity = line->count > pieces ? pieces : all;
	uint32_t count = others ? share_give_way(line, capacity, others) : 0;

	forget_claimants(claims);
	for (uint32_t i = 0; i < count && i < CLAIMANTS_MAX; i++) {
		char *name = strdup(others[i].name);

		if (name)
			claims->claimants[claims->claimant_count++] = name;
	}
	free(others);
	demand_note_contested(holding, claims->claimant_count);
}

/* Tells whether @claim is that of a host that was ended: it stays until the session ends, too. */
static bool is_of_gone(const struct fleet *fleet, const struct claim *claim)
{
	char hid[HID_TEXT];

	snprintf(hid, sizeof(hid), "%s", claim->name);
	return neighbour_is_gone(fleet, hid);
}

/* Returns how many parts the claims that @request lists have at most. */
static size_t count_parts(const struct request *request)
{
	size_t count = PARTS_MAX; /* the last one is read before it is known how many it has */

	for (uint32_t i = 0; i < request->name_count; i++) {
		for (const char *c = request->names[i]; *c; c++)
			count += *c == '+';
	}
	return count;
}

/* Reads the claims of @holding that @request lists into @line. False: there is no memory. */
static bool parse_claims(struct fleet *fleet, const struct holding *holding,
			 const struct request *request, struct claim_line *line)
{
	struct part *parts = calloc(count_parts(request), sizeof(*parts));

	*line = (struct claim_line){
		.claims = calloc(request->name_count + 1, sizeof(*line->claims)),
		.parts = parts,
		.own = UINT64_MAX,
	};
	if (!line->claims || !parts) {
		claim_free_line(line);
		return false;
	}
	for (uint32_t i = 0; i < request->name_count; i++) {
		struct claim *claim = &line->claims[line->count];

		if (!znode_claim_parse(request->names[i], claim, parts) || is_of_gone(fleet, claim))
			continue;
		if (znode_claim_is_of(claim->name, session_hid(fleet)))
			line->own = claim->sequence;
		parts += claim->part_count;
		line->count++;
	}
	claim_settle(fleet, holding, line);
	return true;
}

void claim_settle(struct fleet *fleet, const struct holding *holding, struct claim_line *line)
{
	for (uint32_t i = 0; i < line->count; i++) {
		for (uint32_t j = 0; j < line->claims[i].part_count; j++)
			wants_settle(fleet, holding, &line->claims[i].parts[j]);
	}
}

void claim_free_line(struct claim_line *line)
{
	free(line->claims);
	free(line->parts);
	line->claims = NULL;
	line->parts = NULL;
	line->count = 0;
}

bool claim_parts_differ(struct fleet *fleet, const struct holding *holding)
{
	const struct claims *claims = holding->claims;
	struct part claimed[PARTS_MAX + 1], wants[PARTS_MAX];
	struct part_list list = {.parts = wants, .wanted = claims->wanted};
	struct claim own;

	if (!claims->own || !holding->limiter->first_child ||
	    !znode_claim_parse(claims->own, &own, claimed))
		return false;
	for (uint32_t i = 0; i < own.part_count; i++)
		wants_settle(fleet, holding, &claimed[i]);
	list.count = wants_of_claim(holding, claims->wanted, wants);
	return wants_differ(&(struct part_list){claimed, own.part_count, own.wanted}, &list,
			    holding_leaves(holding->settings));
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

/* Tells whether a transaction is under way that makes, changes or deletes the claim. */
static bool is_being_changed(const struct fleet *fleet, const struct holding *holding)
{
	for (uint32_t i = 0; i < transaction_claim_count(fleet); i++) {
		if (transaction_claim(fleet, i)->holding == holding)
			return true;
	}
	return false;
}

/*
 * Notes if a foreign hand has deleted the claim: one that was made is in each @line that was asked
 * for later.
 */
static void note_deleted(struct fleet *fleet, struct holding *holding,
			 const struct claim_line *line)
{
	if (!holding->claims->own || line->own != UINT64_MAX || is_being_changed(fleet, holding))
		return;
	forget_own(holding);
	holding->claims->since_ns = 0;
	keep_known(fleet, holding);
}

bool claim_parse_all(struct fleet *fleet, struct holding *holding, const struct request *request,
		     struct claim_line *line)
{
	bool was_unknown = holding->claims->unknown;

	if (!parse_claims(fleet, holding, request, line))
		return false;
	note_read(fleet, holding, request);
	holding->claims->unknown = false;
	for (uint32_t i = 0; i < line->count; i++) {
		if (was_unknown && line->claims[i].sequence == line->own)
			adopt_claim(fleet, holding, &line->claims[i]);
	}
	if (was_unknown)
		keep_known(fleet, holding);
	note_deleted(fleet, holding, line);
	remember_claimants(holding, line);
	return true;
}

/*
 * Wakes the first @count of the remembered claimants by one transaction. If a claim is gone all of
 * them look when it is time to.
 */
static void wake_together(struct fleet *fleet, const struct holding *holding, uint32_t count)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, NULL);
	bool added = request;
	char path[ZNODE_TEXT];

	for (uint32_t i = 0; i < count && added; i++) {
		znode_path_named(ZNODE_CLAIM, holding->id, holding->claims->claimants[i], path);
		added = request_add(request, OPERATION_SET, path, NULL, NODE_VERSION_ANY, 0);
	}
	if (added)
		request_send(fleet, request);
	else if (request)
		request_free(request);
}

/*
 * Wakes as many of the remembered claimants as was given up, from the one after @skipped on; all
 * where partitions have no numbers, since each holder may give a little.
 */
static void wake(struct fleet *fleet, struct holding *holding, uint32_t skipped)
{
	uint32_t count = holding->claims->given_up, claimants = holding->claims->claimant_count;
	char path[ZNODE_TEXT];

	holding->claims->given_up = 0;
	if (!holding_has_numbers(holding->settings)) {
		if (count && claimants)
			wake_together(fleet, holding, claimants);
		return;
	}
	for (uint32_t i = 0; i < count && i < claimants; i++) {
		const char *name = holding->claims->claimants[(skipped + i) % claimants];

		znode_path_named(ZNODE_CLAIM, holding->id, name, path);
		(void)request_send_one(fleet, OPERATION_SET, path, NULL, NODE_VERSION_ANY, NULL);
	}
}

/*
 * Wakes hosts that wait for partitions of @holding, which were given up, by setting the data of
 * their claims. They look every R anyway: nothing depends on it.
 */
void claim_wake_others(struct fleet *fleet, struct holding *holding)
{
	if (!holding->claims->looking)
		wake(fleet, holding, 0);
}

static void listed(struct fleet *fleet, struct request *request)
{
	struct claim_line line = {.own = UINT64_MAX};
	struct holding *holding;
	struct znode folder;
	uint32_t behind = 0;

	(void)znode_parse(request->path, &folder);
	holding = holdings_find(fleet, folder.id);
	if (!holding)
		return;
	holding->claims->looking = false;
	if (request->answer == ANSWER_OK && parse_claims(fleet, holding, request, &line)) {
		note_read(fleet, holding, request);
		note_deleted(fleet, holding, &line);
		remember_claimants(holding, &line);
	} else {
		claim_note_unread(fleet, holding);
	}
	if (holding->claims->turned)
		behind = share_count_behind(&line);
	holding->claims->turned = false;
	claim_free_line(&line);
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
	if (!session_is_leaving(fleet))
		claim_watch(fleet, holding, request);
	request_send(fleet, request);
}

void claim_withdraw(struct fleet *fleet, struct holding *holding)
{
	char path[ZNODE_TEXT];

	if (!holding->claims->own)
		return;
	znode_path_named(ZNODE_CLAIM, holding->id, holding->claims->own, path);
	if (request_send_one(fleet, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, NULL))
		forget_own(holding);
}

void claim_woken(struct fleet *fleet, const struct znode *znode)
{
	struct holding *holding = holdings_find(fleet, znode->id);
	char path[ZNODE_TEXT];

	if (!holding || !holding->claims->own || strcmp(holding->claims->own, znode->name) != 0)
		return;
	/* It is being replaced: that was us. */
	if (is_being_changed(fleet, holding))
		return;
	znode_path_named(ZNODE_CLAIM, znode->id, znode->name, path);
	watch_own(fleet, path);
	holdings_wake(fleet, holding);
}

static void print_claim(struct fleet *fleet, const struct holding *holding, uint32_t wanted,
			char name[ZNODE_TEXT])
{
	struct part parts[PARTS_MAX];
	uint32_t count = wants_of_claim(holding, wanted, parts);

	znode_claim_print(session_hid(fleet), wanted, fleet->options->weight, parts, count, name);
}

/* Tells whether there is room for a claim with parts of so many bytes in place of the one now. */
static bool has_room(const struct fleet *fleet, const struct holding *holding, uint32_t parts_bytes)
{
	const struct claims *claims = holding->claims;

	if (!claims->counted)
		return room_for_claim(fleet, holding, parts_bytes);
	return parts_bytes <= claims->parts_bytes ||
	       room_for_claim(fleet, holding, parts_bytes - claims->parts_bytes);
}

bool claim_add(struct fleet *fleet, struct request *request, struct holding *holding,
	       uint32_t wanted)
{
	uint32_t operations = request->operation_count;
	uint32_t bytes = holding->claims->parts_bytes, parts_bytes = 0;
	char path[ZNODE_TEXT], name[ZNODE_TEXT];
	bool added = true;

	if (transaction_claim_count(fleet) == ITEMS_MAX || operations + 2 > OPERATIONS_MAX)
		return false;
	if (wanted) {
		print_claim(fleet, holding, wanted, name);
		parts_bytes = znode_claim_parts_bytes(name);
	}
	if (wanted && !has_room(fleet, holding, parts_bytes)) {
		room_was_missing(fleet);
		return false;
	}
	if (holding->claims->own) {
		znode_path_named(ZNODE_CLAIM, holding->id, holding->claims->own, path);
		added = request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
	}
	if (wanted) {
		znode_path_named(ZNODE_CLAIM, holding->id, name, path);
		added = added && request_add(request, OPERATION_CREATE, path, NULL, 0,
					     NODE_EPHEMERAL | NODE_SEQUENTIAL);
	}
	if (!added) {
		request_cut(request, operations);
		return false;
	}
	transaction_add_claim(fleet, request, holding, wanted);
	keep(fleet, holding, true, bytes > parts_bytes ? bytes : parts_bytes);
	if (wanted && !holding->claims->since_ns)
		holding->claims->since_ns = fleet->now_ns;
	holding->claims->reclaims = false;
	holding->claims->next_ns = fleet->now_ns + fleet->constants.renewal_ns;
	return true;
}

/* The claim of @wanted was made, as @path. */
static void note_made(struct fleet *fleet, struct holding *holding, uint32_t wanted,
		      const char *path)
{
	if (path)
		holding->claims->own = strdup(strrchr(path, '/') + 1);
	/* Without memory for its name it is found when the claims are listed next. */
	holding->claims->unknown = !holding->claims->own;
	keep_known(fleet, holding);
	if (holding->claims->unknown)
		return;
	holding->claims->wanted = wanted;
	if (session_is_leaving(fleet))
		claim_withdraw(fleet, holding);
	else
		watch_own(fleet, path);
}

/* Tells what the claim @claimed came to; @refused: it was what the transaction was refused for. */
static void answered(struct fleet *fleet, const struct request *request,
		     const struct claimed *claimed, bool refused)
{
	struct holding *holding = claimed->holding;
	bool had_claim = holding->claims->own, done = request->answer == ANSWER_OK;

	/* Where access is denied, or another claim was refused, it is as it was. */
	if (done || (refused && request->answer != ANSWER_DENIED))
		forget_own(holding);
	if (!done || !claimed->wanted)
		keep_known(fleet, holding);
	if (!done) {
		/* The folder is gone: the next search makes it again. */
		if (refused && !had_claim) {
			demand_note_unmet(holding, false);
			balance_end_contention(holding->balance);
			holding->claims->changed = true;
		}
		return;
	}
	if (holding->claims->given_up) {
		holding->claims->turned = true;
		claim_look(fleet, holding);
	}
	if (!claimed->wanted) {
		holding->claims->since_ns = 0;
		return;
	}
	note_made(fleet, holding, claimed->wanted, request->operations[claimed->end - 1].made);
}

void claim_answered(struct fleet *fleet, const struct request *request)
{
	const struct holding *cause = transaction_refused(fleet, request);

	for (uint32_t i = 0; i < transaction_claim_count(fleet); i++) {
		const struct claimed *claimed = transaction_claim(fleet, i);

		answered(fleet, request, claimed, claimed->holding == cause);
	}
}

void claim_resolved(struct fleet *fleet, struct holding *holding, const struct request *request)
{
	struct part parts[PARTS_MAX + 1];
	struct claim claim;

	forget_own(holding);
	holding->claims->unknown = false;
	for (uint32_t i = 0; i < request->name_count; i++) {
		if (znode_claim_parse(request->names[i], &claim, parts) &&
		    znode_claim_is_of(claim.name, session_hid(fleet)))
			adopt_claim(fleet, holding, &claim);
	}
	keep_known(fleet, holding);
}

void claim_forget(struct fleet *fleet, struct holding *holding)
{
	forget_own(holding);
	holding->claims->since_ns = 0;
	holding->claims->changed = false;
	holding->claims->list_ns = 0;
	holding->claims->given_up = 0;
	holding->claims->looking = false;
	holding->claims->turned = false;
	holding->claims->unknown = false;
	count_claim(fleet, holding, false, 0);
	holding->claims->place = 0;
}

void claim_given_back(struct fleet *fleet, struct holding *holding, uint32_t given)
{
	struct claims *claims = holding->claims;

	if (session_is_leaving(fleet) || !claims->claimant_count)
		return;
	claims->given_up += given;
	/* Others are woken when this host is behind them in the line. */
	if (claims->reclaims)
		return;
	if (!holding_has_numbers(holding->settings) && !is_due(fleet, holding))
		claim_wake_others(fleet, holding);
	else
		claim_look(fleet, holding);
}

void claim_note_given(struct holding *holding, uint32_t given)
{
	holding->claims->given_up += given;
}
