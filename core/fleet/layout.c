/* layout - the nodes that must be there before a host joins, see layout.h. */
#include "core/fleet/layout.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/replicate.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Differs wherever a host of one version would misread the nodes that a host of the other wrote. */
static const char LAYOUT_VERSION[] = "ratefs 4\n";

enum { TRIES_MAX = 3 };

struct layout {
	uint32_t pending; /* nodes that are being made */
	uint32_t tries;
};

bool layout_new(struct fleet *fleet)
{
	fleet->layout = calloc(1, sizeof(*fleet->layout));
	return fleet->layout;
}

void layout_free(struct fleet *fleet)
{
	free(fleet->layout);
}

static void refuse(struct fleet *fleet, const char *why)
{
	if (session_state(fleet) != FLEET_REFUSED)
		fleet_tell(fleet, FLEET_UNFIT, "cannot join: %s", why);
	session_enter(fleet, FLEET_REFUSED);
	session_retry_at(fleet, fleet->now_ns + FLEET_LAYOUT_RETRY_NS);
}

static void made(struct fleet *fleet, struct request *request)
{

	if (request->answer == ANSWER_DENIED)
		refuse(fleet, "the coordinator denies access to its nodes");
	else if (request->answer != ANSWER_OK && request->answer != ANSWER_EXISTS)
		session_retry_at(fleet, fleet->now_ns + FLEET_JOIN_RETRY_NS);
	if (--fleet->layout->pending)
		return;
	if (session_state(fleet) == FLEET_PREPARING && session_retry_ns(fleet) == NEVER_NS)
		layout_look(fleet);
}

static void make_node(struct fleet *fleet, enum znode_kind kind, const char *data)
{
	struct request *request = request_new(REQUEST_TRANSACTION, NULL, made);
	char path[ZNODE_TEXT];

	znode_path(kind, 0, path);
	if (!request)
		return;
	if (!request_add(request, OPERATION_CREATE, path, data, 0, 0)) {
		request_free(request);
		return;
	}
	fleet->layout->pending++;
	request_send(fleet, request);
}

/* Makes them one by one: it does not matter which host makes the others. */
static void make(struct fleet *fleet)
{
	struct globals globals = {.constants = fleet->constants};
	char text[RECORD_TEXT], seed[KEY_SEED_TEXT];

	if (fleet->layout->tries++ >= TRIES_MAX) {
		refuse(fleet, "its nodes vanish as they are made");
		return;
	}
	record_print_globals(&globals, text);
	key_leases_print_seed(fleet, seed);
	make_node(fleet, ZNODE_KEYS_OF, seed);
	make_node(fleet, ZNODE_RECORDS, NULL);
	make_node(fleet, ZNODE_HOSTS, NULL);
	make_node(fleet, ZNODE_LEASES_OF, NULL);
	make_node(fleet, ZNODE_FREE_OF, NULL);
	make_node(fleet, ZNODE_TILES_OF, NULL);
	make_node(fleet, ZNODE_RESERVES_OF, NULL);
	make_node(fleet, ZNODE_ENDS_OF, NULL);
	make_node(fleet, ZNODE_AGREED_RATES_OF, NULL);
	make_node(fleet, ZNODE_CLAIMS_OF, NULL);
	make_node(fleet, ZNODE_GLOBALS, text);
	make_node(fleet, ZNODE_LAYOUT, LAYOUT_VERSION);
}

static void hosts_found(struct fleet *fleet, struct request *request)
{

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		make(fleet);
	} else if (request->answer == ANSWER_OK) {
		session_enter(fleet, FLEET_LOADING);
		replicate_begin_all(fleet);
	} else if (request->answer == ANSWER_DENIED) {
		refuse(fleet, "the coordinator denies access to its nodes");
	}
}

static void ask_for(struct fleet *fleet, enum znode_kind kind,
		    void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(kind, 0, path);
	request = request_new(REQUEST_GET, path, done);
	if (request)
		request_send(fleet, request);
	else
		session_retry_at(fleet, fleet->now_ns + FLEET_LAYOUT_RETRY_NS);
}

static void globals_found(struct fleet *fleet, struct request *request)
{

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_NO_NODE)
		make(fleet);
	else if (request->answer == ANSWER_OK)
		ask_for(fleet, ZNODE_HOSTS, hosts_found);
	else if (request->answer == ANSWER_DENIED)
		refuse(fleet, "the coordinator denies access to its nodes");
}

static void version_read(struct fleet *fleet, struct request *request)
{

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		make(fleet);
	} else if (request->answer == ANSWER_DENIED) {
		refuse(fleet, "the coordinator denies access to its nodes");
	} else if (request->answer == ANSWER_OK && strcmp(request->data, LAYOUT_VERSION) != 0) {
		refuse(fleet, "the layout below its path is another version's");
	} else if (request->answer == ANSWER_OK) {
		ask_for(fleet, ZNODE_GLOBALS, globals_found);
	} else if (request->answer != ANSWER_UNKNOWN) {
		refuse(fleet, "the coordinator refuses to tell the version of the layout");
	}
}

void layout_look(struct fleet *fleet)
{
	if (session_state(fleet) == FLEET_CONNECTING)
		fleet->layout->tries = 0;
	session_enter(fleet, FLEET_PREPARING);
	fleet->layout->pending = 0;
	replicate_forget(fleet);
	session_retry_at(fleet, NEVER_NS);
	ask_for(fleet, ZNODE_LAYOUT, version_read);
}
