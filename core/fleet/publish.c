/* publish - changes of this host's, see publish.h. */
#include "core/fleet/publish.h"
#include "core/fleet/agreed_rate.h"
#include "core/fleet/apply.h"
#include "core/fleet/baseline.h"
#include "core/fleet/former_names.h"
#include "core/fleet/garbage.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/recut.h"
#include "core/fleet/replicate.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RACE_DOUBLINGS_MAX = 7,
	PAUSE_ANSWERS = 4, /* others read /g and the record, and then renew; one more for luck */
};

struct publish {
	struct change *change; /* the engine's first, NULL */
	uint64_t since_ns;
	uint64_t id;
	uint64_t given;	  /* the id that it gives to a limiter, or to a name that is left; 0 */
	uint32_t tries;	  /* in which others were first */
	uint64_t next_ns; /* not before */
	const struct change *tried; /* the one that the tries are of */
	uint64_t used_id;	    /* the largest that some limiter had */
	uint32_t tile_operation;    /* the first operation of the change that is about tiles */
	uint64_t sent_ns, took_ns;  /* when a change was sent; how long the last one took */
	int32_t seen;		    /* the version of /g that is applied, ... */
	uint64_t moved_ns, row_ns;  /* ... since then; it has moved without a pause since then */
	bool sent;
	bool again;	       /* to be checked anew when the settings of others are applied */
	struct record *record; /* owned */
};

bool publish_new(struct fleet *fleet)
{
	fleet->publish = calloc(1, sizeof(*fleet->publish));
	return fleet->publish;
}

void publish_free(struct fleet *fleet)
{
	if (fleet->publish)
		free(fleet->publish->record);
	free(fleet->publish);
}

static void set_sent(struct fleet *fleet, bool sent)
{
	fleet->publish->sent = sent;
	replicate_block(fleet, sent);
}

uint64_t publish_id(const struct fleet *fleet)
{
	return fleet->publish->id;
}

/* The change is done, or refused. */
static void finish(struct fleet *fleet, int err)
{
	static const struct {
		int err;
		const char *why;
	} words[] = {
		{-EHOSTUNREACH, "no coordinator, or no quorum, just now: nothing has changed"},
		{-ETIMEDOUT, "sent, but not acknowledged: read it back"},
		{-EACCES, "the coordinator denies access"},
		{-E2BIG, "the coordinator refuses it: too large"},
	};
	struct change *change = fleet->publish->change;

	fleet->publish->change = NULL;
	fleet->publish->tried = NULL;
	set_sent(fleet, false);
	fleet->publish->again = false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].err == err && !change->error[0])
			snprintf(change->error, sizeof(change->error), "%s", words[i].why);
	}
	change_stored(fleet->engine, change, err);
}

static uint64_t id_of(const struct limiter *limiter)
{
	return limiter->holding ? limiter->holding->id : 0;
}

/* Does as keeps_savings() for limit @i. Of windows rests say what was used, of however many. */
static bool keeps_limit(const struct settings *old, const struct settings *new, uint32_t i)
{
	const struct rate *before = &old->limits[i].rate, *now = &new->limits[i].rate;

	if (rate_is_window(before) && rate_is_window(now))
		return calendar_is_same(before, now);
	return settings_burst(old, i) == settings_burst(new, i) && rate_limits_alike(before, now);
}

/*
 * Tells whether rests written under @old are as true under @new, both in the tokens that were
 * left and in the limits from which nothing was taken: rule 18. Where nothing was limited nothing
 * was taken from limits, whatever they will be.
 */
static bool keeps_savings(const struct settings *old, const struct settings *new)
{
	if (!old->limit_count)
		return true;
	if (old->limit_count != new->limit_count)
		return false;
	for (uint32_t i = 0; i < old->limit_count; i++) {
		if (!amount_is_of(old->limits[i].unit, new->limits[i].unit) ||
		    !keeps_limit(old, new, i))
			return false;
	}
	return true;
}

/* That @limiter has its name no more: rule 16. */
static void record_left(struct record *record, const struct limiter *limiter)
{
	snprintf(record->name, sizeof(record->name), "%s", limiter->name);
	record->parent = id_of(limiter->parent);
	record->generation = 1;
	record->saved = 1;
	record->cut = 1;
	record->removed = id_of(limiter);
	record->owner = (struct owner){limiter->uid, limiter->gid, limiter->access};
	record->settings = SETTINGS_DEFAULT;
}

static void fill_record(struct fleet *fleet, struct record *record)
{
	const struct change *change = fleet->publish->change;
	const struct limiter *limiter = change->limiter;

	*record = (struct record){.settings = change->settings};
	snprintf(record->writer, sizeof(record->writer), "%s", session_hid(fleet));
	if (change->kind == CHANGE_MAKE) {
		snprintf(record->name, sizeof(record->name), "%s", change->name);
		record->parent = id_of(limiter);
		record->generation = 1;
		record->saved = 1;
		record->cut = 1;
		record->owner = change->owner;
		return;
	}
	if (change->kind == CHANGE_REMOVE) {
		record_left(record, limiter);
		record->generation = limiter->holding->generation + 1;
		record->cut = limiter->holding->cut;
		return;
	}
	snprintf(record->name, sizeof(record->name), "%s",
		 change->kind == CHANGE_RENAME ? change->name : limiter->name);
	record->parent = limiter->parent ? id_of(limiter->parent) : 0;
	record->owner = change->kind == CHANGE_OWNER
				? change->owner
				: (struct owner){limiter->uid, limiter->gid, limiter->access};
	record->generation = baseline_root_generation(fleet) + 1;
	record->cut = 1;
	if (!limiter->holding)
		return;
	record->generation = limiter->holding->generation + 1;
	record->settings = *limiter_settings(limiter);
	if (change->kind == CHANGE_SETTINGS)
		record->settings = change->settings;
	record->saved = keeps_savings(limiter->holding->settings, &record->settings)
				? limiter->holding->saved
				: record->generation;
	recut_name(fleet, limiter->holding, record);
}

/* The path that @change gives to a limiter. */
static void path_of(const struct change *change, char path[PATH_TEXT + NAME_BYTES_MAX + 2])
{
	const struct limiter *parent = change->kind == CHANGE_MAKE ? change->limiter
								   : change->limiter->parent;
	size_t length;

	tree_path(parent, path);
	length = strlen(path);
	snprintf(path + length, NAME_BYTES_MAX + 2, "%s%s", length ? "/" : "", change->name);
}

static bool add_making(struct fleet *fleet, struct request *request, const char *text)
{
	static const enum znode_kind nodes[] = {ZNODE_CLAIMS, ZNODE_AGREED_RATE};
	const struct change *change = fleet->publish->change;
	struct recut_tile all = {.rest.saved = fleet->publish->record->saved};
	uint64_t id = fleet->publish->id;
	char path[ZNODE_TEXT], name[PATH_TEXT + NAME_BYTES_MAX + 2];
	bool added;

	znode_path(ZNODE_RECORD, id, path);
	added = request_add(request, OPERATION_CREATE, path, text, 0, 0);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]) && added; i++) {
		znode_path(nodes[i], id, path);
		added = request_add(request, OPERATION_CREATE, path, NULL, 0, 0);
	}
	path_of(change, name);
	if (former_names_permit(fleet, name, id)) /* rule 16 */
		all.epoch = fleet->epochs.newest;
	return added && recut_add_tiles(request, fleet->publish->record, id, &all);
}

/* Adds a node with the name that a rename leaves, for hosts that come later: rule 16. */
static bool add_former_name(struct fleet *fleet, struct request *request)
{
	char path[ZNODE_TEXT], *text;
	struct record record = {0};
	bool added;

	record_left(&record, fleet->publish->change->limiter);
	snprintf(record.writer, sizeof(record.writer), "%s", session_hid(fleet));
	text = record_text(&record);
	znode_path(ZNODE_RECORD, fleet->publish->given, path);
	added = text && request_add(request, OPERATION_CREATE, path, text, 0, 0);
	free(text);
	return added;
}

/* Tells whether @record, which @change makes, numbers the leaves of a limiter anew. */
static bool recuts(const struct change *change, const struct record *record)
{
	const struct holding *holding = change->limiter->holding;

	return change->kind == CHANGE_SETTINGS && holding && holding->cut != record->cut;
}

/*
 * Tells whether no host uses leaves of the limiter that is changed, nor of another one that had its
 * path.
 */
static bool are_free(struct fleet *fleet)
{
	const struct limiter *limiter = fleet->publish->change->limiter;
	char path[PATH_TEXT];

	tree_path(limiter, path);
	return recut_is_free(fleet, limiter->holding) &&
	       former_names_permit(fleet, path, fleet->publish->id);
}

/* Rule 17. */
static bool add_recut(struct fleet *fleet, struct request *request)
{
	const struct record *record = fleet->publish->record;
	struct recut_tile all = {.rest.saved = record->saved};

	if (are_free(fleet))
		all.epoch = fleet->epochs.newest;
	else if (recut_merge(fleet, fleet->publish->change->limiter->holding, &all) &&
		 !recut_delete(fleet, request))
		return false;
	return recut_add_tiles(request, record, fleet->publish->id, &all);
}

/* Adds the node that @change makes or sets. */
static bool add_node(struct fleet *fleet, struct request *request)
{
	const struct change *change = fleet->publish->change;
	const struct holding *holding = change->limiter->holding;
	char path[ZNODE_TEXT], *text = record_text(fleet->publish->record);
	int32_t version = holding ? holding->version : baseline_root_version(fleet);
	bool added;

	znode_path(ZNODE_RECORD, fleet->publish->id, path);
	if (!text)
		return false;
	if (change->kind == CHANGE_MAKE)
		added = add_making(fleet, request, text);
	else if (!holding && version < 0)
		added = request_add(request, OPERATION_CREATE, path, text, 0, 0);
	else
		added = request_add(request, OPERATION_SET, path, text, version, 0);
	free(text);
	return added;
}

static bool add_change(struct fleet *fleet, struct request *request)
{
	const struct change *change = fleet->publish->change;
	struct globals globals = *baseline_globals(fleet);
	char path[ZNODE_TEXT], text[RECORD_TEXT];
	bool added = add_node(fleet, request);

	if (change->kind == CHANGE_RENAME)
		added = added && add_former_name(fleet, request);
	record_add_change(&globals, baseline_version(fleet), fleet->publish->id);
	if (fleet->publish->given > globals.last_id)
		globals.last_id = fleet->publish->given;
	record_print_globals(&globals, text);
	znode_path(ZNODE_GLOBALS, 0, path);
	added = added &&
		request_add(request, OPERATION_SET, path, text, baseline_version(fleet), 0);
	fleet->publish->tile_operation = request->operation_count;
	return added && (!recuts(change, fleet->publish->record) || add_recut(fleet, request));
}

/*
 * Rule 16: the limiter has its partitions, and cannot wait as a new one does. Its own former name
 * is free for it, unless limiters are in it: others may have had their paths.
 */
static bool may_rename(struct fleet *fleet, struct change *change)
{
	uint64_t own = change->limiter->first_child ? 0 : id_of(change->limiter);
	char path[PATH_TEXT + NAME_BYTES_MAX + 2];

	path_of(change, path);
	if (former_names_permit(fleet, path, own))
		return true;
	snprintf(change->error, sizeof(change->error),
		 "'%.200s' was a limiter's name a moment ago: try again in some seconds",
		 change->name);
	return false;
}

/* Refuses a change with more overrides than a node holds. */
static bool has_room(struct fleet *fleet, struct change *change)
{
	size_t length = overrides_length(fleet->publish->record->settings.overrides);

	static_assert(RECORD_OVERRIDES_MAX + RECORD_TEXT <= NODE_DATA_MAX, "a record fits");
	if (length <= RECORD_OVERRIDES_MAX)
		return true;
	snprintf(change->error, sizeof(change->error),
		 "the lines of overrides have %zu bytes: in a fleet they have at most %d", length,
		 RECORD_OVERRIDES_MAX);
	return false;
}

/* Returns how long /g stands still in a pause, so that all hosts can renew their rights in it. */
static uint64_t pause_ns(const struct fleet *fleet)
{
	uint64_t renewal_ns = fleet->constants.renewal_ns;
	uint64_t ns = fleet->publish->took_ns * PAUSE_ANSWERS;

	if (ns < renewal_ns / FLEET_PAUSE_PARTS)
		return renewal_ns / FLEET_PAUSE_PARTS;
	return ns < renewal_ns / FLEET_ROW_PARTS ? ns : renewal_ns / FLEET_ROW_PARTS;
}

/* Notes that another version of /g is applied, of a change of whatever host. */
static void note_move(struct fleet *fleet)
{
	struct publish *publish = fleet->publish;

	if (publish->seen == baseline_version(fleet))
		return;
	if (fleet->now_ns - publish->moved_ns >= pause_ns(fleet))
		publish->row_ns = fleet->now_ns;
	publish->seen = baseline_version(fleet);
	publish->moved_ns = fleet->now_ns;
}

/*
 * Returns when the next change may be sent. Each change refuses what others send that have not
 * applied it yet, also their renewals: after many in a row, of whatever hosts, there is a pause.
 * No change waits for longer than one: hosts nearer to the coordinator may have shorter ones.
 */
static uint64_t next_ns(const struct fleet *fleet)
{
	const struct publish *publish = fleet->publish;
	uint64_t row_ns = publish->moved_ns - publish->row_ns, paused_ns = 0;
	uint64_t from_ns = publish->moved_ns < publish->since_ns ? publish->moved_ns
								 : publish->since_ns;

	if (row_ns >= fleet->constants.renewal_ns / FLEET_ROW_PARTS && !membership_is_alone(fleet))
		paused_ns = from_ns + pause_ns(fleet);
	return publish->next_ns > paused_ns ? publish->next_ns : paused_ns;
}

bool publish_send(struct fleet *fleet)
{
	struct request *request;
	bool gives;

	if (!fleet->publish->change || fleet->publish->sent || fleet->publish->again)
		return false;
	if (fleet->now_ns < next_ns(fleet)) {
		fleet_wake_at(fleet, next_ns(fleet));
		return false;
	}
	if (!fleet->publish->record)
		fleet->publish->record = malloc(sizeof(*fleet->publish->record));
	if (!fleet->publish->record) {
		finish(fleet, -ENOMEM);
		return false;
	}
	if (fleet->publish->used_id < baseline_globals(fleet)->last_id)
		fleet->publish->used_id = baseline_globals(fleet)->last_id;
	gives = fleet->publish->change->kind == CHANGE_MAKE ||
		fleet->publish->change->kind == CHANGE_RENAME;
	fleet->publish->given = gives ? fleet->publish->used_id + 1 : 0;
	fleet->publish->id = fleet->publish->change->kind == CHANGE_MAKE
				     ? fleet->publish->given
				     : id_of(fleet->publish->change->limiter);
	if (fleet->publish->change->kind == CHANGE_RENAME &&
	    !may_rename(fleet, fleet->publish->change)) {
		finish(fleet, -EBUSY);
		return false;
	}
	fill_record(fleet, fleet->publish->record);
	if (!has_room(fleet, fleet->publish->change)) {
		finish(fleet, -ENOSPC);
		return false;
	}
	if (recuts(fleet->publish->change, fleet->publish->record) && !are_free(fleet) &&
	    !recut_has_looked(fleet, fleet->publish->change->limiter->holding))
		return false;
	request = transaction_begin(fleet, TRANSACTION_CHANGE);
	if (request && add_change(fleet, request)) {
		set_sent(fleet, true);
		fleet->publish->sent_ns = fleet->now_ns;
		transaction_send(fleet, request);
		return true;
	}
	if (request)
		transaction_give_up(fleet, request);
	finish(fleet, -ENOMEM);
	return false;
}

/* It is done, and the node has @version now, by write @zxid. */
static void apply(struct fleet *fleet, int32_t version, uint64_t zxid)
{
	struct change *change = fleet->publish->change;
	struct limiter *limiter = change->limiter;
	struct holding *holding = limiter->holding;
	uint64_t id = fleet->publish->id, given = fleet->publish->given;
	uint64_t cut = holding ? holding->cut : 0;
	bool removes = change->kind == CHANGE_REMOVE, renames = change->kind == CHANGE_RENAME;
	bool renumbers = recuts(change, fleet->publish->record);
	bool learns_anew = change->kind == CHANGE_SETTINGS && holding &&
			   holding->settings->adapt.kind != change->settings.adapt.kind;

	if (change->kind == CHANGE_MAKE)
		holding = change->made->holding;
	if (change->kind == CHANGE_SETTINGS && holding &&
	    holding->cut != fleet->publish->record->cut)
		leases_drop(fleet, holding);
	if (holding) {
		holding->generation = fleet->publish->record->generation;
		holding->saved = fleet->publish->record->saved;
		holding->cut = fleet->publish->record->cut;
		holding->version = version;
		holding->changed_zxid = zxid;
	} else {
		baseline_set_root_generation(fleet, fleet->publish->record->generation);
		baseline_set_root_version(fleet, version);
	}
	if (change->kind == CHANGE_MAKE) {
		holding->made_zxid = zxid;
		holding->maker = MAKER_THIS;
		holdings_enter(fleet, holding, id);
	}
	if (removes || renames) {
		char path[PATH_TEXT];

		tree_path(limiter, path);
		former_names_add(fleet, id, path);
	}
	if (removes)
		apply_gone(fleet, holding);
	if (holding)
		recut_heed(fleet, holding, fleet->publish->record);
	limiter_hold(limiter);
	finish(fleet, 0);
	if (learns_anew)
		agreed_rate_void(fleet, holding);
	if (holding && !limiter->removed) {
		leases_reshare(fleet, holding);
		leases_check_numbers(fleet, holding);
		holdings_rouse(fleet, holding, false);
	}
	if (removes || renumbers)
		garbage_add(fleet, id, cut);
	else if (renames)
		garbage_add(fleet, given, 1);
	limiter_drop(limiter);
}

void publish_answered(struct fleet *fleet, const struct request *request)
{
	const struct change *change = fleet->publish->change;
	int32_t version = change->limiter->holding ? change->limiter->holding->version + 1
						   : baseline_root_version(fleet) + 1;

	set_sent(fleet, false);
	recut_forget(fleet);
	if (request->answer == ANSWER_OK) {
		baseline_advance(fleet, fleet->publish->id, fleet->publish->given, request->zxid);
		fleet->publish->took_ns = fleet->now_ns - fleet->publish->sent_ns;
		note_move(fleet);
		apply(fleet, change->kind == CHANGE_MAKE ? 0 : version, request->zxid);
	} else if (request->answer == ANSWER_DENIED) {
		finish(fleet, -EACCES);
	} else if (request->answer == ANSWER_REFUSED) {
		finish(fleet, -E2BIG);
	} else {
		uint32_t doublings = fleet->publish->tries < RACE_DOUBLINGS_MAX
					     ? fleet->publish->tries
					     : RACE_DOUBLINGS_MAX;

		fleet->publish->tries++;
		fleet->publish->next_ns = fleet->now_ns +
					  fleet_random(fleet) % (FLEET_RACE_NS << doublings);
		/* Others were first; if not with /g or a tile, nodes were changed by hand. */
		if (request->failed && request->failed < fleet->publish->tile_operation)
			baseline_note_void(fleet);
		if (request->answer == ANSWER_EXISTS &&
		    fleet->publish->given > fleet->publish->used_id)
			fleet->publish->used_id = fleet->publish->given;
		fleet->publish->again = true;
		baseline_note_stale(fleet);
	}
}

void publish_resolved(struct fleet *fleet, const struct record *record, int32_t version,
		      uint64_t zxid)
{
	const struct record *ours = fleet->publish->record;
	enum change_kind kind;
	bool same;

	if (!fleet->publish->change)
		return;
	set_sent(fleet, false);
	kind = fleet->publish->change->kind;
	same = record && record->generation == ours->generation &&
	       !strcmp(record->writer, ours->writer);
	if (same || (kind == CHANGE_REMOVE && !record))
		apply(fleet, version, zxid);
	else if (record && record->generation > ours->generation)
		finish(fleet, -ETIMEDOUT); /* it may have been ours before */
	else
		fleet->publish->again = true;
}

void publish_unresolved(struct fleet *fleet)
{
	if (fleet->publish->change)
		finish(fleet, -ETIMEDOUT);
}

void publish_expire(struct fleet *fleet)
{
	struct change *change = fleet->publish->change;
	bool races = fleet->publish->tries && session_is_connected(fleet) &&
		     session_state(fleet) == FLEET_READY;
	uint64_t until_ns = fleet->publish->since_ns + (races ? FLEET_RACES_NS : FLEET_PATIENCE_NS);

	if (!change || fleet->publish->sent)
		return;
	if (fleet->now_ns < until_ns) {
		fleet_wake_at(fleet, until_ns);
		return;
	}
	if (races)
		snprintf(
			change->error, sizeof(change->error), "%s",
			"other hosts changed settings first, again and again: nothing has changed");
	finish(fleet, races ? -EBUSY : -EHOSTUNREACH);
}

void publish_store(struct fleet *fleet, struct change *change)
{
	if (change != fleet->publish->tried) {
		fleet->publish->since_ns = fleet->now_ns;
		fleet->publish->tries = 0;
		fleet->publish->next_ns = 0;
	}
	fleet->publish->change = change;
	fleet->publish->tried = change;
	set_sent(fleet, false);
	fleet->publish->again = false;
	/* After trouble for so long a wait would be in vain. */
	if (session_is_leaving(fleet) || session_state(fleet) == FLEET_CLOSED) {
		finish(fleet, -EHOSTUNREACH);
		return;
	}
	if ((session_state(fleet) != FLEET_READY || !session_is_connected(fleet)) &&
	    session_trouble_ns(fleet) != NEVER_NS &&
	    fleet->clocks.holder_ns - session_trouble_ns(fleet) > FLEET_PATIENCE_NS) {
		finish(fleet, -EHOSTUNREACH);
		return;
	}
	fleet_wake_at(fleet, 0);
}

void publish_recheck(struct fleet *fleet, bool changed)
{
	struct publish *publish = fleet->publish;
	struct change *change = publish->change;

	note_move(fleet);
	if ((!publish->again && !changed) || !change || publish->sent)
		return;
	publish->change = NULL;
	publish->again = false;
	change_restart(fleet->engine, change);
	if (publish->change != change)
		publish->tried = NULL;
}

void publish_forget(struct fleet *fleet)
{
	struct publish *publish = fleet->publish;

	recut_forget(fleet);
	while (publish->change && (publish->sent || session_is_leaving(fleet)))
		finish(fleet, publish->sent ? -ETIMEDOUT : -EHOSTUNREACH);
}
