/* relay - leaves that foreign hands have changed are numbered anew, see relay.h. */
#include "core/fleet/relay.h"
#include "core/fleet/baseline.h"
#include "core/fleet/garbage.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/recut.h"
#include "core/fleet/replicate.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>

/* The record as it is, with the next generation, which numbers the leaves. */
static struct record next_record(const struct fleet *fleet, const struct holding *holding)
{
	const struct limiter *limiter = holding->limiter;
	const struct holding *above = limiter->parent->holding;
	struct record record = {
		.parent = above ? above->id : 0,
		.generation = holding->generation + 1,
		.saved = holding->saved,
		.owner = {limiter->uid, limiter->gid, limiter->access},
		.settings = *holding->settings,
	};

	snprintf(record.name, sizeof(record.name), "%s", limiter->name);
	snprintf(record.writer, sizeof(record.writer), "%s", session_hid(fleet));
	recut_name(fleet, holding, &record);
	record.cut = record.generation;
	return record;
}

static bool add_set(struct request *request, enum znode_kind kind, uint64_t id, const char *text,
		    int32_t version)
{
	char path[ZNODE_TEXT];

	znode_path(kind, id, path);
	return request_add(request, OPERATION_SET, path, text, version, 0);
}

static bool add_record(const struct fleet *fleet, struct request *request,
		       const struct holding *holding)
{
	struct record record = next_record(fleet, holding);
	struct globals globals = *baseline_globals(fleet);
	const struct recut_tile all = {.epoch = EPOCH_NONE, .rest.saved = record.saved};
	char text[RECORD_TEXT], *whole = record_text(&record);
	bool added = whole && add_set(request, ZNODE_RECORD, holding->id, whole, holding->version);

	free(whole);
	if (!added || !recut_add_tiles(request, &record, holding->id, &all))
		return false;
	record_add_change(&globals, baseline_version(fleet), holding->id);
	record_print_globals(&globals, text);
	return add_set(request, ZNODE_GLOBALS, 0, text, baseline_version(fleet));
}

bool relay_send(struct fleet *fleet)
{
	const struct holding *holding = fleet->torn_id ? holdings_find(fleet, fleet->torn_id)
						       : NULL;
	struct request *request;

	if (!holding || holding->limiter->removed) {
		fleet->torn_id = 0;
		return false;
	}
	request = transaction_begin(fleet, TRANSACTION_RELAY);
	if (request && add_record(fleet, request, holding)) {
		/* Its outcome comes before what others changed. */
		replicate_block(fleet, true);
		transaction_send(fleet, request);
		return true;
	}
	if (request)
		transaction_give_up(fleet, request);
	fleet->torn_id = 0;
	return false;
}

/* It is done, by write @zxid. */
static void apply(struct fleet *fleet, struct holding *holding, uint64_t zxid)
{
	fleet_tell(fleet, FLEET_SPOILT,
		   "nodes of limiter %llu were changed by hand: its partitions begin anew",
		   (unsigned long long)holding->id);
	garbage_add(fleet, holding->id, holding->cut);
	leases_drop(fleet, holding);
	holding->generation++;
	holding->cut = holding->generation;
	holding->version++;
	holding->changed_zxid = zxid;
	if (fleet->listener && fleet->listener->changed)
		fleet->listener->changed(fleet->listener, holding->limiter, false);
	holdings_rouse(fleet, holding, false);
}

void relay_answered(struct fleet *fleet, const struct request *request)
{
	struct holding *holding = holdings_find(fleet, fleet->torn_id);

	relay_forget(fleet);
	if (request->answer == ANSWER_OK && holding) {
		baseline_advance(fleet, holding->id, 0, request->zxid);
		apply(fleet, holding, request->zxid);
	} else {
		/* Others were first; if not with /g, nodes were changed by hand. */
		if (request->failed)
			baseline_note_void(fleet);
		baseline_note_stale(fleet);
	}
}

void relay_forget(struct fleet *fleet)
{
	fleet->torn_id = 0;
	replicate_block(fleet, false);
}
