/* replicate - settings as other hosts made them, see replicate.h. */
#include "core/fleet/replicate.h"
#include "core/fleet/apply.h"
#include "core/fleet/baseline.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"

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

struct replicate {
	bool runs;
	bool again;	  /* /g changed meanwhile */
	bool failed;	  /* something of it was not read */
	bool blocked;	  /* a change of this host's is under way */
	bool has_applied; /* not told yet ... */
	bool has_changed; /* ... nor that limiters may be others than they were */
	uint64_t not_before_ns;
	uint64_t made_zxid; /* of the write that made /g */
	uint32_t behind;    /* reads in which /g was older than the one applied */
	int32_t version;    /* of /g, what it said, and the write that made that */
	uint64_t zxid;
	struct globals globals;
	uint64_t *ids; /* owned: limiters to be read, @count of them */
	uint32_t count, sent;
	uint32_t pending;    /* answers to come */
	struct found *found; /* owned: nodes that were read */
	uint32_t found_count;
};

bool replicate_new(struct fleet *fleet)
{
	fleet->replicate = calloc(1, sizeof(*fleet->replicate));
	return fleet->replicate;
}

void replicate_free(struct fleet *fleet)
{
	if (!fleet->replicate)
		return;
	replicate_forget(fleet);
	free(fleet->replicate);
}

bool replicate_runs(const struct fleet *fleet)
{
	return fleet->replicate->runs;
}

void replicate_forget(struct fleet *fleet)
{
	for (uint32_t i = 0; i < fleet->replicate->found_count; i++)
		record_drop(&fleet->replicate->found[i].record);
	free(fleet->replicate->ids);
	free(fleet->replicate->found);
	fleet->replicate->ids = NULL;
	fleet->replicate->found = NULL;
	fleet->replicate->count = 0;
	fleet->replicate->sent = 0;
	fleet->replicate->pending = 0;
	fleet->replicate->found_count = 0;
	fleet->replicate->failed = false;
	fleet->replicate->runs = false;
	fleet->replicate->again = false;
}

/* It came to nothing; it is tried again. */
static void fail(struct fleet *fleet)
{
	replicate_forget(fleet);
	baseline_note_stale(fleet);
	fleet->replicate->not_before_ns = fleet->now_ns + FLEET_FOLLOW_RETRY_NS;
	if (session_state(fleet) == FLEET_LOADING)
		session_retry_at(fleet, fleet->replicate->not_before_ns);
	fleet_wake_at(fleet, fleet->replicate->not_before_ns);
}

/* All that was to be read is there. */
static void finish(struct fleet *fleet)
{
	struct replicate *replicate = fleet->replicate;
	bool again = replicate->again;
	uint32_t found_count = replicate->found_count;

	if (!apply_found(fleet, replicate->found, found_count, &replicate->globals)) {
		fail(fleet);
		return;
	}
	baseline_set(fleet, &replicate->globals, replicate->version, replicate->zxid);
	replicate_forget(fleet);
	if (session_state(fleet) == FLEET_LOADING &&
	    session_timeout_ns(fleet) != fleet->constants.session_ns) {
		session_drop(fleet, "the fleet has another timeout for sessions");
		return;
	}
	if (session_state(fleet) == FLEET_LOADING)
		session_enter(fleet, FLEET_JOINING);
	replicate->has_applied = true;
	replicate->has_changed = replicate->has_changed || found_count;
	replicate->again = again;
}

static void ask(struct fleet *fleet);

static void record_read(struct fleet *fleet, struct request *request)
{
	struct found *found = &fleet->replicate->found[fleet->replicate->found_count];
	char error[ERROR_TEXT];
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	fleet->replicate->pending--;
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
		/* A bad one changes nothing: the known settings stay. */
		if (!found->there)
			fleet_tell(fleet, FLEET_SPOILT,
				   "node of limiter %llu is not understood: %.200s",
				   (unsigned long long)found->id, error);
		found->bad = !found->there;
		found->there = true;
		fleet->replicate->found_count++;
	} else if (request->answer == ANSWER_NO_NODE) {
		fleet->replicate->found_count++;
	} else {
		fleet->replicate->failed = true;
	}
	ask(fleet);
}

/* Asks for more, or is done. */
static void ask(struct fleet *fleet)
{
	char path[ZNODE_TEXT];

	while (fleet->replicate->sent < fleet->replicate->count && !fleet->replicate->failed &&
	       fleet->replicate->pending < READS_MAX) {
		struct request *request;

		znode_path(ZNODE_RECORD, fleet->replicate->ids[fleet->replicate->sent], path);
		request = request_new(REQUEST_GET, path, record_read);
		if (!request) {
			fleet->replicate->failed = true;
			break;
		}
		fleet->replicate->sent++;
		fleet->replicate->pending++;
		request_send(fleet, request);
	}
	if (fleet->replicate->pending)
		return;
	if (fleet->replicate->failed)
		fail(fleet);
	else
		finish(fleet);
}

static void ask_for(struct fleet *fleet, uint64_t *ids, uint32_t count)
{
	fleet->replicate->ids = ids;
	fleet->replicate->count = count;
	fleet->replicate->found = calloc(count + 1, sizeof(*fleet->replicate->found));
	if (!fleet->replicate->found)
		fail(fleet);
	else
		ask(fleet);
}

static void listed(struct fleet *fleet, struct request *request)
{
	uint64_t *ids;
	uint32_t count = 0;

	if (request->answer == ANSWER_NO_NODE && session_state(fleet) == FLEET_LOADING) {
		fleet->replicate->pending = 0;
		session_retry_at(fleet, fleet->now_ns);
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
	baseline_note_void(fleet);
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
	const struct globals *globals = &fleet->replicate->globals;
	int64_t missing = (int64_t)fleet->replicate->version - baseline_version(fleet);

	uint64_t last_id = baseline_globals(fleet)->last_id;

	*count = 0;
	if (baseline_version(fleet) < 0 || missing < 0 || globals->last_id > last_id + RECENT_MAX)
		return false;
	for (uint32_t i = 0; i < globals->recent_count; i++) {
		if (globals->recent[i].version <= baseline_version(fleet))
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

/* /g was overwritten: writes it again, as this host knew it. */
static void repair(struct fleet *fleet, int32_t version)
{
	struct globals globals = *baseline_globals(fleet);
	char path[ZNODE_TEXT], text[RECORD_TEXT];

	fleet_tell(fleet, FLEET_SPOILT, "the fleet's constants are not understood");
	if (!fleet->constants_known || baseline_version(fleet) < 0) {
		fail(fleet);
		return;
	}
	globals.recent_count = 0;
	record_print_globals(&globals, text);
	znode_path(ZNODE_GLOBALS, 0, path);
	if (!request_send_one(fleet, OPERATION_SET, path, text, version, repaired))
		fail(fleet);
}

static void globals_read(struct fleet *fleet, struct request *request)
{
	uint64_t recent[CHANGED_MAX], *ids;
	uint32_t count;

	if (request->answer == ANSWER_NO_NODE) {
		fail(fleet);
		if (session_state(fleet) == FLEET_READY)
			session_drop(fleet, "the fleet's constants are gone");
		else
			session_retry_at(fleet, fleet->now_ns);
		return;
	}
	if (request->answer != ANSWER_OK && request->answer != ANSWER_REFUSED) {
		fail(fleet);
		return;
	}
	if (request->answer == ANSWER_REFUSED ||
	    record_parse_globals(request->data, &fleet->replicate->globals)) {
		repair(fleet, request->version);
		return;
	}
	/*
	 * In a new session a server may lag, and catches up; a restored backup does not. A node
	 * that was made anew begins at version 0.
	 */
	if (request->made_zxid == fleet->replicate->made_zxid &&
	    request->version < baseline_version(fleet) && ++fleet->replicate->behind < BEHIND_MAX) {
		fail(fleet);
		return;
	}
	fleet->replicate->behind = 0;
	fleet->replicate->made_zxid = request->made_zxid;
	fleet->replicate->version = request->version;
	fleet->replicate->zxid = request->zxid;
	/*
	 * Rule 12: an election may have taken back what was applied, and versions were given again.
	 */
	if (fleet->replicate->zxid >> 32 != baseline_zxid(fleet) >> 32)
		baseline_note_void(fleet);
	if (baseline_is_void(fleet) || !changed_since(fleet, recent, &count)) {
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

void replicate_begin(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (fleet->replicate->runs) {
		fleet->replicate->again = true;
		return;
	}
	if (fleet->now_ns < fleet->replicate->not_before_ns) {
		baseline_note_stale(fleet);
		fleet_wake_at(fleet, fleet->replicate->not_before_ns);
		return;
	}
	/* The outcome of a change that is under way is found out first. */
	if (fleet->replicate->blocked) {
		baseline_note_stale(fleet);
		return;
	}
	znode_path(ZNODE_GLOBALS, 0, path);
	request = request_new(REQUEST_GET, path, globals_read);
	if (!request) {
		fail(fleet);
		return;
	}
	request->watch = true;
	fleet->replicate->runs = true;
	request_send(fleet, request);
}

void replicate_begin_all(struct fleet *fleet)
{
	baseline_note_void(fleet);
	fleet->replicate->not_before_ns = 0;
	replicate_begin(fleet);
}

void replicate_block(struct fleet *fleet, bool blocked)
{
	fleet->replicate->blocked = blocked;
}

bool replicate_has_applied(struct fleet *fleet, bool *changed)
{
	struct replicate *replicate = fleet->replicate;
	bool has_applied = replicate->has_applied;

	*changed = replicate->has_changed;
	replicate->has_applied = false;
	replicate->has_changed = false;
	return has_applied;
}

void replicate_go_on(struct fleet *fleet)
{
	if (!fleet->replicate->again || fleet->replicate->runs)
		return;
	fleet->replicate->again = false;
	replicate_begin(fleet);
}
