/* barrier - the barrier after an unknown outcome, see barrier.h. */
#include "core/fleet/barrier.h"
#include "core/fleet/baseline.h"
#include "core/fleet/claim.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/publish.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct barrier {
	uint64_t begin_ns; /* when it begins anew; NEVER_NS */
	bool resumes;	   /* a predecessor's session: it goes first, without the read */
	uint32_t left;	   /* looks at what is in doubt that were not answered yet */
};

bool barrier_new(struct fleet *fleet)
{
	fleet->barrier = calloc(1, sizeof(*fleet->barrier));
	if (!fleet->barrier)
		return false;
	fleet->barrier->begin_ns = NEVER_NS;
	return true;
}

void barrier_free(struct fleet *fleet)
{
	free(fleet->barrier);
}

void barrier_resume(struct fleet *fleet)
{
	fleet->barrier->resumes = true;
}

void barrier_forget(struct fleet *fleet)
{
	fleet->barrier->resumes = false;
}

static void leave_doubt(struct fleet *fleet)
{
	if (fleet->barrier->left)
		return;
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		holdings_rouse(fleet, transaction_item(fleet, i)->holding, false);
	transaction_end(fleet);
	session_enter(fleet, FLEET_READY);
	term_renew_at(fleet, 0);
	/* Settings were not followed meanwhile. */
	baseline_note_stale(fleet);
}

/* Begins anew in a while: the coordinator may then grant access that it denies now. */
static void begin_later(struct fleet *fleet)
{
	fleet_tell(fleet, FLEET_DENIED, "access denied by the coordinator");
	fleet->barrier->begin_ns = fleet->now_ns + fleet->constants.renewal_ns;
	fleet_wake_at(fleet, fleet->barrier->begin_ns);
}

/*
 * Tells whether a read came to nothing, and sees to it that the next one begins anew: access is
 * denied, or the connection is gone, or will be. A node that is too large to be read is there, and
 * this host did not write it.
 */
static bool lost(struct fleet *fleet, const struct request *request)
{
	if (request->answer == ANSWER_DENIED)
		begin_later(fleet);
	if (request->answer != ANSWER_UNKNOWN)
		return request->answer == ANSWER_DENIED;
	session_hang_up(fleet);
	return true;
}

/* Learns which tiles of the limiter in doubt are this host's. */
static void tiles_listed(struct fleet *fleet, struct request *request)
{
	const struct item *item = request->of.item;
	struct tiles tiles;

	if (session_state(fleet) != FLEET_IN_DOUBT || lost(fleet, request))
		return;
	/* A folder that is not there is of a limiter that is gone, or of leaves as they were. */
	if (!tiles_read(&tiles, request->names,
			request->answer == ANSWER_OK ? request->name_count : 0, TILE_LEAVES_MAX)) {
		session_drop(fleet, "no memory");
		return;
	}
	leases_resolve(fleet, item, &tiles);
	tiles_free(&tiles);
	fleet->barrier->left--;
	leave_doubt(fleet);
}

static void claims_listed(struct fleet *fleet, struct request *request)
{
	if (session_state(fleet) != FLEET_IN_DOUBT || lost(fleet, request))
		return;
	claim_resolved(fleet, request->of.holding, request);
	fleet->barrier->left--;
	leave_doubt(fleet);
}

static void change_read(struct fleet *fleet, struct request *request)
{
	struct record record;
	char error[ERROR_TEXT];
	bool understood;

	if (session_state(fleet) != FLEET_IN_DOUBT || lost(fleet, request))
		return;
	understood = request->answer == ANSWER_OK && !record_parse(request->data, &record, error);
	fleet->barrier->left--;
	if (understood || request->answer == ANSWER_NO_NODE)
		publish_resolved(fleet, understood ? &record : NULL, request->version,
				 request->zxid);
	else
		publish_unresolved(fleet);
	if (understood)
		record_drop(&record);
	leave_doubt(fleet);
}

/* Sends @request, which is waited for; NULL: there is no memory. */
static void ask(struct fleet *fleet, struct request *request)
{
	fleet->barrier->left++;
	if (request)
		request_send(fleet, request);
	else
		session_drop(fleet, "no memory");
}

static void ask_tiles(struct fleet *fleet, struct item *item)
{
	struct request *request;
	char path[ZNODE_TEXT];

	item_path(item, path);
	request = request_new(REQUEST_LIST, path, tiles_listed);
	if (request)
		request->of.item = item;
	ask(fleet, request);
}

static void ask_claims(struct fleet *fleet, struct holding *holding)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_CLAIMS, holding->id, path);
	request = request_new(REQUEST_LIST, path, claims_listed);
	if (request)
		request->of.holding = holding;
	ask(fleet, request);
}

/* The barrier has passed. */
static void look(struct fleet *fleet)
{
	char path[ZNODE_TEXT];

	fleet->barrier->left = 0;
	for (uint32_t i = 0; i < transaction_count(fleet); i++)
		ask_tiles(fleet, transaction_item(fleet, i));
	for (uint32_t i = 0; i < transaction_claim_count(fleet); i++)
		ask_claims(fleet, transaction_claim(fleet, i)->holding);
	if (transaction_kind(fleet) == TRANSACTION_CHANGE) {
		znode_path(ZNODE_RECORD, publish_id(fleet), path);
		ask(fleet, request_new(REQUEST_GET, path, change_read));
	}
	leave_doubt(fleet);
}

void barrier_answered(struct fleet *fleet, const struct request *request)
{
	transaction_end_barrier(fleet);
	if (request->answer != ANSWER_UNKNOWN)
		fleet->barrier->resumes = false;
	if (request->answer == ANSWER_OK)
		look(fleet);
	else if (request->answer == ANSWER_UNKNOWN)
		fleet->counters.unknown++; /* again with the next connection */
	else if (request->answer == ANSWER_NO_NODE)
		session_drop(fleet, "the host's node is gone");
	else if (request->answer == ANSWER_BAD_VERSION)
		barrier_begin(fleet); /* an older one was executed in between */
	else
		begin_later(fleet);
}

static void send_barrier(struct fleet *fleet)
{
	struct request *barrier = transaction_begin_barrier(fleet);

	if (barrier)
		transaction_send(fleet, barrier);
	else
		session_drop(fleet, "no memory");
}

static void host_read(struct fleet *fleet, struct request *request)
{

	if (session_state(fleet) != FLEET_IN_DOUBT)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		session_drop(fleet, "the host's node is gone");
		return;
	}
	if (lost(fleet, request))
		return;
	/* One request of ours was on its way: any other version is a history that was lost. */
	if (request->answer != ANSWER_OK || (request->version != session_version(fleet) &&
					     request->version != session_version(fleet) + 1)) {
		session_drop(fleet, "lost history, or a foreign hand");
		return;
	}
	session_set_version(fleet, request->version);
	send_barrier(fleet);
}

void barrier_begin(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	fleet->barrier->begin_ns = NEVER_NS;
	if (fleet->barrier->resumes) {
		send_barrier(fleet);
		return;
	}
	znode_path_named(ZNODE_HOST, 0, session_hid(fleet), path);
	request = request_new(REQUEST_GET, path, host_read);
	if (request)
		request_send(fleet, request);
	else
		session_drop(fleet, "no memory");
}

void barrier_watch(struct fleet *fleet)
{
	if (session_state(fleet) != FLEET_IN_DOUBT || !session_is_connected(fleet))
		return;
	if (fleet->now_ns >= fleet->barrier->begin_ns)
		barrier_begin(fleet);
	else
		fleet_wake_at(fleet, fleet->barrier->begin_ns);
}
