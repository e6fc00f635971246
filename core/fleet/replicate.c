/*
 * replicate - settings as other hosts made them.
 *
 * /g is watched. Its version counts changes and it names the last of them, so that as a rule only the
 * limiters that were changed are read; all are when the host starts, was away for long, or finds
 * something changed by hand. What was read is applied together.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads that are under way at once, and bounds on what is believed. */
enum {
	READS_MAX = 128,
	LIMITERS_MAX = 2 * ENGINE_LIMITERS_MAX, /* with names that were left */
	CHANGED_MAX = 2 * RECENT_MAX,
	BEHIND_MAX = 5, /* reads of a /g that is older than the one applied: then it is believed */
};

void follow_forget(struct fleet *fleet)
{
	free(fleet->follow_ids);
	free(fleet->found);
	fleet->follow_ids = NULL;
	fleet->found = NULL;
	fleet->follow_count = 0;
	fleet->follow_sent = 0;
	fleet->follow_pending = 0;
	fleet->found_count = 0;
	fleet->follow_failed = false;
	fleet->following = false;
	fleet->follow_again = false;
}

/* It came to nothing; it is tried again. */
static void fail(struct fleet *fleet)
{
	follow_forget(fleet);
	fleet->stale = true;
	fleet->follow_ns = fleet->now_ns + FLEET_FOLLOW_RETRY_NS;
	if (fleet->state == FLEET_LOADING)
		fleet->retry_ns = fleet->follow_ns;
	fleet_wake_at(fleet, fleet->follow_ns);
}

static void apply(struct fleet *fleet)
{
	/* What was checked against settings that are others now is checked again. */
	bool change_again = fleet->change_again || fleet->found_count;
	bool again = fleet->follow_again;

	apply_found(fleet);
	if (fleet->follow_failed) {
		fail(fleet);
		return;
	}
	fleet->globals = fleet->follow_globals;
	fleet->applied = fleet->follow_version;
	fleet->applied_zxid = fleet->follow_zxid;
	fleet->stale = false;
	fleet->follow_all = false;
	follow_forget(fleet);
	if (fleet->state == FLEET_LOADING && fleet->opened_ns != fleet->constants.session_ns) {
		fleet_drop_session(fleet, "the fleet has another timeout for sessions");
		return;
	}
	if (fleet->state == FLEET_LOADING)
		fleet_join(fleet);
	if (change_again && fleet->change && !fleet->change_sent) {
		struct change *change = fleet->change;

		fleet->change = NULL;
		fleet->change_again = false;
		change_restart(fleet->engine, change);
		if (fleet->change != change)
			fleet->change_tried = NULL;
	}
	if (again)
		follow_begin(fleet);
}

static void ask(struct fleet *fleet);

static void record_read(struct fleet *fleet, struct request *request)
{
	struct found *found = &fleet->found[fleet->found_count];
	char error[ERROR_TEXT];
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	fleet->follow_pending--;
	*found = (struct found){.version = request->version,
				.made_zxid = request->made_zxid,
				.changed_zxid = request->zxid};
	found->id = znode.id;
	if (request->answer == ANSWER_OK || request->answer == ANSWER_REFUSED) {
		snprintf(error, sizeof(error), "it is too large");
		found->there = request->answer == ANSWER_OK &&
			       !record_parse(request->data, &found->record, error);
		if (found->there && found->id && name_check(found->record.name, error))
			found->there = false;
		/* A bad one changes nothing: what was known stays. */
		if (!found->there)
			fleet_tell(fleet, FLEET_SPOILT,
				   "node of limiter %llu is not understood: %.200s",
				   (unsigned long long)found->id, error);
		found->bad = !found->there;
		found->there = true;
		fleet->found_count++;
	} else if (request->answer == ANSWER_NO_NODE) {
		fleet->found_count++;
	} else {
		fleet->follow_failed = true;
	}
	ask(fleet);
}

/* Asks for more, or is done. */
static void ask(struct fleet *fleet)
{
	char path[ZNODE_TEXT];

	while (fleet->follow_sent < fleet->follow_count && !fleet->follow_failed &&
	       fleet->follow_pending < READS_MAX) {
		struct request *request;

		znode_path(ZNODE_RECORD, fleet->follow_ids[fleet->follow_sent], path);
		request = request_new(REQUEST_GET, path, record_read);
		if (!request) {
			fleet->follow_failed = true;
			break;
		}
		fleet->follow_sent++;
		fleet->follow_pending++;
		request_send(fleet, request);
	}
	if (fleet->follow_pending)
		return;
	if (fleet->follow_failed)
		fail(fleet);
	else
		apply(fleet);
}

static void ask_for(struct fleet *fleet, uint64_t *ids, uint32_t count)
{
	fleet->follow_ids = ids;
	fleet->follow_count = count;
	fleet->found = calloc(count + 1, sizeof(*fleet->found));
	if (!fleet->found)
		fail(fleet);
	else
		ask(fleet);
}

static void listed(struct fleet *fleet, struct request *request)
{
	uint64_t *ids;
	uint32_t count = 0;

	if (request->answer == ANSWER_NO_NODE && fleet->state == FLEET_LOADING) {
		fleet->follow_pending = 0;
		layout_look(fleet);
		return;
	}
	ids = request->answer == ANSWER_OK && request->name_count <= LIMITERS_MAX
		      ? calloc(request->name_count + 1, sizeof(*ids))
		      : NULL;
	if (!ids) {
		fail(fleet);
		return;
	}
	for (uint32_t i = 0; i < request->name_count; i++) {
		if (znode_id_parse(request->names[i], &ids[count]))
			count++;
	}
	ask_for(fleet, ids, count);
}

static void list_all(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_RECORDS, 0, path);
	request = request_new(REQUEST_LIST, path, listed);
	fleet->follow_all = true;
	if (request)
		request_send(fleet, request);
	else
		fail(fleet);
}

/* Adds @id to those that are to be read. */
static void add_id(uint64_t ids[CHANGED_MAX], uint32_t *count, uint64_t id)
{
	for (uint32_t i = 0; i < *count; i++) {
		if (ids[i] == id)
			return;
	}
	ids[(*count)++] = id;
}

/*
 * The limiters that the versions after the applied one changed, and the ids that they gave to names
 * that were left; false if that is not known.
 */
static bool changed_since(struct fleet *fleet, uint64_t ids[CHANGED_MAX], uint32_t *count)
{
	const struct globals *globals = &fleet->follow_globals;
	int64_t missing = (int64_t)fleet->follow_version - fleet->applied;

	uint64_t last_id = fleet->globals.last_id;

	*count = 0;
	if (fleet->applied < 0 || missing < 0 || globals->last_id > last_id + RECENT_MAX)
		return false;
	for (uint32_t i = 0; i < globals->recent_count; i++) {
		if (globals->recent[i].version <= fleet->applied)
			continue;
		missing--;
		add_id(ids, count, globals->recent[i].id);
	}
	for (uint64_t id = last_id + 1; id <= globals->last_id; id++)
		add_id(ids, count, id);
	return !missing;
}

static void repaired(struct fleet *fleet, struct request *request)
{

	(void)request;
	fail(fleet);
}

/* /g was overwritten: those who knew what it said say it again. */
static void repair(struct fleet *fleet, int32_t version)
{
	struct request *request;
	struct globals globals = fleet->globals;
	char path[ZNODE_TEXT], text[RECORD_TEXT];

	fleet_tell(fleet, FLEET_SPOILT, "the fleet's constants are not understood");
	if (!fleet->constants_known || fleet->applied < 0) {
		fail(fleet);
		return;
	}
	globals.recent_count = 0;
	globals_print(&globals, text);
	znode_path(ZNODE_GLOBALS, 0, path);
	request = request_new(REQUEST_TRANSACTION, NULL, repaired);
	if (request && request_add(request, OPERATION_SET, path, text, version, 0)) {
		request_send(fleet, request);
		return;
	}
	if (request)
		request_free(request);
	fail(fleet);
}

static void globals_read(struct fleet *fleet, struct request *request)
{
	uint64_t recent[CHANGED_MAX], *ids;
	uint32_t count;

	if (request->answer == ANSWER_NO_NODE) {
		fail(fleet);
		if (fleet->state == FLEET_READY)
			fleet_drop_session(fleet, "the fleet's constants are gone");
		else
			layout_look(fleet);
		return;
	}
	if (request->answer != ANSWER_OK && request->answer != ANSWER_REFUSED) {
		fail(fleet);
		return;
	}
	if (request->answer == ANSWER_REFUSED ||
	    globals_parse(request->data, &fleet->follow_globals)) {
		repair(fleet, request->version);
		return;
	}
	/*
	 * In a new session a server may lag, and catches up; a restored backup does not. A node
	 * that was made anew begins at version 0.
	 */
	if (request->made_zxid == fleet->globals_zxid && request->version < fleet->applied &&
	    ++fleet->follow_behind < BEHIND_MAX) {
		fail(fleet);
		return;
	}
	fleet->follow_behind = 0;
	fleet->globals_zxid = request->made_zxid;
	fleet->follow_version = request->version;
	fleet->follow_zxid = request->zxid;
	/* Rule 10: an election may have taken back what was applied, and versions were given again. */
	if (fleet->follow_zxid >> 32 != fleet->applied_zxid >> 32)
		fleet->follow_all = true;
	if (fleet->follow_all || !changed_since(fleet, recent, &count)) {
		list_all(fleet);
		return;
	}
	ids = calloc(count + 1, sizeof(*ids));
	if (!ids) {
		fail(fleet);
		return;
	}
	memcpy(ids, recent, count * sizeof(*ids));
	ask_for(fleet, ids, count);
}

void follow_begin(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (fleet->following) {
		fleet->follow_again = true;
		return;
	}
	if (fleet->now_ns < fleet->follow_ns) {
		fleet->stale = true;
		fleet_wake_at(fleet, fleet->follow_ns);
		return;
	}
	/* What is ours and under way is found out first. */
	if (fleet->change_sent) {
		fleet->stale = true;
		return;
	}
	znode_path(ZNODE_GLOBALS, 0, path);
	request = request_new(REQUEST_GET, path, globals_read);
	if (!request) {
		fail(fleet);
		return;
	}
	request->watch = true;
	fleet->following = true;
	request_send(fleet, request);
}
