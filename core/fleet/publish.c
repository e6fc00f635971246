/* publish - changes of this host's: each is one transaction of the limiter's node and /g. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RACE_DOUBLINGS_MAX = 7 };

/* Markers made with a limiter; what does not fit is unclean. */
enum { MARKERS_MAX = 80 };

struct holding *holding_of_id(const struct fleet *fleet, uint64_t id)
{
	struct holding *holding = fleet->by_id[id % FLEET_CHAINS];

	while (holding && holding->id != id)
		holding = holding->next_by_id;
	return holding;
}

void holding_enter(struct fleet *fleet, struct holding *holding, uint64_t id)
{
	struct holding **chain = &fleet->by_id[id % FLEET_CHAINS];

	holding->alone = fleet->alone;
	holding->degraded = fleet->degraded;
	holding->next = fleet->holdings;
	holding->back = &fleet->holdings;
	if (holding->next)
		holding->next->back = &holding->next;
	fleet->holdings = holding;
	holding->id = id;
	holding->next_by_id = *chain;
	*chain = holding;
}

void holding_unname(struct fleet *fleet, struct holding *holding)
{
	struct holding **at = &fleet->by_id[holding->id % FLEET_CHAINS];

	while (*at && *at != holding)
		at = &(*at)->next_by_id;
	if (*at)
		*at = holding->next_by_id;
}

/* The change is done, or refused. */
void publish_finish(struct fleet *fleet, int err)
{
	static const struct {
		int err;
		const char *why;
	} words[] = {
		{-EBUSY,
		 "partitions, reserve and limits changed a moment ago: try again in some seconds"},
		{-EHOSTUNREACH, "no coordinator, or no quorum, just now: nothing has changed"},
		{-ETIMEDOUT, "sent, but not acknowledged: read it back"},
		{-EACCES, "the coordinator denies access"},
		{-E2BIG, "the coordinator refuses it: too large"},
	};
	struct change *change = fleet->change;

	fleet->change = NULL;
	fleet->change_tried = NULL;
	fleet->change_sent = false;
	fleet->change_again = false;
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

/*
 * Tells whether markers written under @old are as true under @new, both in the tokens that were
 * left and in the limits from which nothing was taken: rule 12. Where nothing was limited nothing
 * was taken from limits, whatever they will be.
 */
static bool keeps_savings(const struct settings *old, const struct settings *new)
{
	if (!old->limit_count)
		return true;
	if (old->limit_count != new->limit_count ||
	    settings_partition_count(old) != settings_partition_count(new))
		return false;
	for (uint32_t i = 0; i < old->limit_count; i++) {
		if (settings_burst(old, i) != settings_burst(new, i))
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
	record->removed = id_of(limiter);
	record->owner = (struct owner){limiter->uid, limiter->gid, limiter->access};
	record->settings = SETTINGS_DEFAULT;
}

static int fill_record(struct fleet *fleet, struct record *record)
{
	const struct change *change = fleet->change;
	const struct limiter *limiter = change->limiter;

	*record = (struct record){.settings = change->settings};
	snprintf(record->writer, sizeof(record->writer), "%s", fleet->hid);
	if (change->kind == CHANGE_MAKE) {
		snprintf(record->name, sizeof(record->name), "%s", change->name);
		record->parent = id_of(limiter);
		record->generation = 1;
		record->saved = 1;
		record->owner = change->owner;
		return 0;
	}
	if (change->kind == CHANGE_REMOVE) {
		record_left(record, limiter);
		record->generation = limiter->holding->generation + 1;
		return 0;
	}
	snprintf(record->name, sizeof(record->name), "%s",
		 change->kind == CHANGE_RENAME ? change->name : limiter->name);
	record->parent = limiter->parent ? id_of(limiter->parent) : 0;
	record->owner = change->kind == CHANGE_OWNER
				? change->owner
				: (struct owner){limiter->uid, limiter->gid, limiter->access};
	record->generation = fleet->root_generation + 1;
	if (!limiter->holding)
		return 0;
	record->generation = limiter->holding->generation + 1;
	record->settings = *limiter_settings(limiter);
	if (change->kind == CHANGE_SETTINGS)
		record->settings = change->settings;
	record->saved = keeps_savings(limiter->holding->settings, &record->settings)
				? limiter->holding->saved
				: record->generation;
	return before_name(fleet, limiter->holding, record);
}

/* Rule 14. */
static bool add_markers(struct request *request, const struct settings *settings, uint64_t id)
{
	uint32_t count = settings_partition_count(settings);
	char path[ZNODE_TEXT];
	bool added = true;

	for (uint32_t i = 0; i < count && i < MARKERS_MAX && added; i++) {
		znode_path_partition(ZNODE_MARKER, id, i, false, path);
		added = request_add(request, OPERATION_CREATE, path, NULL, 0, 0);
	}
	return added;
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
	static const enum znode_kind folders[] = {ZNODE_LEASES, ZNODE_FREE, ZNODE_CLAIMS};
	const struct change *change = fleet->change;
	uint64_t id = fleet->change_id;
	char path[ZNODE_TEXT], name[PATH_TEXT + NAME_BYTES_MAX + 2];
	bool added;

	znode_path(ZNODE_RECORD, id, path);
	added = request_add(request, OPERATION_CREATE, path, text, 0, 0);
	for (int i = 0; i < 3 && added; i++) {
		znode_path(folders[i], id, path);
		added = request_add(request, OPERATION_CREATE, path, NULL, 0, 0);
	}
	path_of(change, name);
	/* Rule 16: as if they had been used by a host that is gone. */
	if (!names_are_free(fleet, name, id))
		return added;
	return added && add_markers(request, &change->settings, id);
}

/* Adds a node with the name that a rename leaves, for hosts that come later: rule 16. */
static bool add_left_name(struct fleet *fleet, struct request *request)
{
	char path[ZNODE_TEXT], text[RECORD_TEXT];
	struct record record = {0};

	record_left(&record, fleet->change->limiter);
	snprintf(record.writer, sizeof(record.writer), "%s", fleet->hid);
	record_print(&record, text);
	znode_path(ZNODE_RECORD, fleet->change_given, path);
	return request_add(request, OPERATION_CREATE, path, text, 0, 0);
}

static bool add_change(struct fleet *fleet, struct request *request)
{
	const struct change *change = fleet->change;
	const struct holding *holding = change->limiter->holding;
	struct globals globals = fleet->globals;
	char path[ZNODE_TEXT], text[RECORD_TEXT];
	bool added;

	record_print(fleet->change_record, text);
	znode_path(ZNODE_RECORD, fleet->change_id, path);
	if (change->kind == CHANGE_MAKE)
		added = add_making(fleet, request, text);
	else if (!holding && fleet->root_version < 0)
		added = request_add(request, OPERATION_CREATE, path, text, 0, 0);
	else
		added = request_add(request, OPERATION_SET, path, text,
				    holding ? holding->version : fleet->root_version, 0);
	if (change->kind == CHANGE_RENAME)
		added = added && add_left_name(fleet, request);
	globals_add(&globals, fleet->applied, fleet->change_id);
	if (fleet->change_given > globals.last_id)
		globals.last_id = fleet->change_given;
	globals_print(&globals, text);
	znode_path(ZNODE_GLOBALS, 0, path);
	return added && request_add(request, OPERATION_SET, path, text, fleet->applied, 0);
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
	if (names_are_free(fleet, path, own))
		return true;
	snprintf(change->error, sizeof(change->error),
		 "'%.200s' was a limiter's name a moment ago: try again in some seconds",
		 change->name);
	return false;
}

bool publish_send(struct fleet *fleet)
{
	struct request *request;
	bool gives;

	if (fleet->change_sent || fleet->change_again)
		return false;
	if (fleet->now_ns < fleet->change_next_ns) {
		fleet_wake_at(fleet, fleet->change_next_ns);
		return false;
	}
	if (!fleet->change_record)
		fleet->change_record = malloc(sizeof(*fleet->change_record));
	if (!fleet->change_record) {
		publish_finish(fleet, -ENOMEM);
		return false;
	}
	if (fleet->used_id < fleet->globals.last_id)
		fleet->used_id = fleet->globals.last_id;
	gives = fleet->change->kind == CHANGE_MAKE || fleet->change->kind == CHANGE_RENAME;
	fleet->change_given = gives ? fleet->used_id + 1 : 0;
	fleet->change_id = fleet->change->kind == CHANGE_MAKE ? fleet->change_given
							      : id_of(fleet->change->limiter);
	if (fleet->change->kind == CHANGE_RENAME && !may_rename(fleet, fleet->change)) {
		publish_finish(fleet, -EBUSY);
		return false;
	}
	if (fill_record(fleet, fleet->change_record)) {
		publish_finish(fleet, -EBUSY);
		return false;
	}
	request = transaction_begin(fleet, TRANSACTION_CHANGE);
	if (request && add_change(fleet, request)) {
		fleet->change_sent = true;
		transaction_send(fleet, request);
		return true;
	}
	if (request) {
		transaction_end(fleet);
		request_free(request);
	}
	publish_finish(fleet, -ENOMEM);
	return false;
}

/* The limiter is about to go: what is held of it goes back. */
void holding_gone(struct fleet *fleet, struct holding *holding)
{
	drain_all(fleet, holding);
	room_unwatch_learnt(fleet, holding);
	holding_unname(fleet, holding);
}

/* It is done, and the node has @version now, by write @zxid. */
static void apply(struct fleet *fleet, int32_t version, uint64_t zxid)
{
	struct change *change = fleet->change;
	struct limiter *limiter = change->limiter;
	struct holding *holding = limiter->holding;
	uint64_t id = fleet->change_id, given = fleet->change_given;
	bool removes = change->kind == CHANGE_REMOVE, renames = change->kind == CHANGE_RENAME;
	bool learns_anew = change->kind == CHANGE_SETTINGS && holding &&
			   holding->settings->adapt.kind != change->settings.adapt.kind;

	if (change->kind == CHANGE_MAKE)
		holding = change->made->holding;
	if (holding) {
		holding->generation = fleet->change_record->generation;
		holding->saved = fleet->change_record->saved;
		holding->version = version;
		holding->changed_zxid = zxid;
	} else {
		fleet->root_generation = fleet->change_record->generation;
		fleet->root_version = version;
	}
	if (change->kind == CHANGE_MAKE) {
		holding->made_zxid = zxid;
		holding_enter(fleet, holding, id);
	}
	if (removes || renames) {
		char path[PATH_TEXT];

		tree_path(limiter, path);
		names_leave(fleet, id, path);
	}
	if (removes)
		holding_gone(fleet, holding);
	if (holding)
		before_heed(fleet, holding, fleet->change_record);
	limiter_hold(limiter);
	publish_finish(fleet, 0);
	if (learns_anew)
		learnt_void(fleet, holding);
	if (holding && !limiter->removed) {
		fleet_reshare(fleet, holding);
		demand_rouse(fleet, holding, false);
	}
	if (removes)
		sweep_add(fleet, id);
	else if (renames)
		sweep_add(fleet, given);
	limiter_drop(limiter);
}

void publish_answered(struct fleet *fleet, const struct request *request)
{
	const struct change *change = fleet->change;
	int32_t version = change->limiter->holding ? change->limiter->holding->version + 1
						   : fleet->root_version + 1;

	fleet->change_sent = false;
	if (request->answer == ANSWER_OK) {
		globals_add(&fleet->globals, fleet->applied, fleet->change_id);
		if (fleet->change_given > fleet->globals.last_id)
			fleet->globals.last_id = fleet->change_given;
		fleet->applied++;
		fleet->applied_zxid = request->zxid;
		apply(fleet, change->kind == CHANGE_MAKE ? 0 : version, request->zxid);
	} else if (request->answer == ANSWER_DENIED) {
		publish_finish(fleet, -EACCES);
	} else if (request->answer == ANSWER_REFUSED) {
		publish_finish(fleet, -E2BIG);
	} else {
		uint32_t doublings = fleet->change_tries < RACE_DOUBLINGS_MAX ? fleet->change_tries
									      : RACE_DOUBLINGS_MAX;

		fleet->change_tries++;
		fleet->change_next_ns = fleet->now_ns +
					fleet_random(fleet) % (FLEET_RACE_NS << doublings);
		/* Others were first; if not with /g, somebody changed nodes by hand. */
		if (request->failed)
			fleet->follow_all = true;
		if (request->answer == ANSWER_EXISTS && fleet->change_given > fleet->used_id)
			fleet->used_id = fleet->change_given;
		fleet->change_again = true;
		fleet->stale = true;
	}
}

void publish_resolved(struct fleet *fleet, const struct record *record, int32_t version,
		      uint64_t zxid)
{
	const struct record *ours = fleet->change_record;
	enum change_kind kind;
	bool same;

	if (!fleet->change)
		return;
	fleet->change_sent = false;
	kind = fleet->change->kind;
	same = record && record->generation == ours->generation &&
	       !strcmp(record->writer, ours->writer);
	if (same || (kind == CHANGE_REMOVE && !record))
		apply(fleet, version, zxid);
	else if (record && record->generation > ours->generation)
		publish_finish(fleet, -ETIMEDOUT); /* it may have been ours before */
	else
		fleet->change_again = true;
}

void publish_unresolved(struct fleet *fleet)
{
	if (fleet->change)
		publish_finish(fleet, -ETIMEDOUT);
}

void publish_expire(struct fleet *fleet)
{
	struct change *change = fleet->change;
	bool races = fleet->change_tries && fleet->connected && fleet->state == FLEET_READY;
	uint64_t until_ns = fleet->change_since_ns + (races ? FLEET_RACES_NS : FLEET_PATIENCE_NS);

	if (!change || fleet->change_sent)
		return;
	if (fleet->now_ns < until_ns) {
		fleet_wake_at(fleet, until_ns);
		return;
	}
	if (races)
		snprintf(
			change->error, sizeof(change->error), "%s",
			"other hosts changed settings first, again and again: nothing has changed");
	publish_finish(fleet, races ? -EBUSY : -EHOSTUNREACH);
}

void publish_store(struct source *source, struct change *change)
{
	struct fleet *fleet = (struct fleet *)source;

	if (change != fleet->change_tried) {
		fleet->change_since_ns = fleet->now_ns;
		fleet->change_tries = 0;
		fleet->change_next_ns = 0;
	}
	fleet->change = change;
	fleet->change_tried = change;
	fleet->change_sent = false;
	fleet->change_again = false;
	/* Who has waited for long knows that it is in vain. */
	if (fleet->leaving || fleet->state == FLEET_CLOSED) {
		publish_finish(fleet, -EHOSTUNREACH);
		return;
	}
	if ((fleet->state != FLEET_READY || !fleet->connected) && fleet->trouble_ns != NEVER_NS &&
	    fleet->clocks.holder_ns - fleet->trouble_ns > FLEET_PATIENCE_NS) {
		publish_finish(fleet, -EHOSTUNREACH);
		return;
	}
	fleet_wake_at(fleet, 0);
	fleet_pump(fleet);
}
