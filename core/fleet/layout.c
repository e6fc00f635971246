/* layout - the nodes that must be there before a host joins: see NODES in fleet.h. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Differs wherever a host of one version would misread the nodes that a host of the other wrote. */
static const char LAYOUT_VERSION[] = "ratefs 3\n";

enum { TRIES_MAX = 3 };

static void refuse(struct fleet *fleet, const char *why)
{
	if (fleet->state != FLEET_REFUSED)
		fleet_tell(fleet, FLEET_UNFIT, "cannot join: %s", why);
	fleet->state = FLEET_REFUSED;
	fleet->retry_ns = fleet->now_ns + FLEET_LAYOUT_RETRY_NS;
}

static void made(struct fleet *fleet, struct request *request)
{

	if (request->answer == ANSWER_DENIED)
		refuse(fleet, "the coordinator denies access to its nodes");
	else if (request->answer != ANSWER_OK && request->answer != ANSWER_EXISTS)
		fleet->retry_ns = fleet->now_ns + FLEET_JOIN_RETRY_NS;
	if (--fleet->layout_pending)
		return;
	if (fleet->state == FLEET_PREPARING && fleet->retry_ns == NEVER_NS)
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
	fleet->layout_pending++;
	request_send(fleet, request);
}

/* One by one: who made the others does not matter. */
static void make(struct fleet *fleet)
{
	struct globals globals = {.constants = fleet->constants};
	char text[RECORD_TEXT];

	if (fleet->layout_tries++ >= TRIES_MAX) {
		refuse(fleet, "its nodes vanish as they are made");
		return;
	}
	globals_print(&globals, text);
	make_node(fleet, ZNODE_RECORDS, NULL);
	make_node(fleet, ZNODE_HOSTS, NULL);
	make_node(fleet, ZNODE_LEASES_OF, NULL);
	make_node(fleet, ZNODE_FREE_OF, NULL);
	make_node(fleet, ZNODE_CLAIMS_OF, NULL);
	make_node(fleet, ZNODE_GLOBALS, text);
	make_node(fleet, ZNODE_LAYOUT, LAYOUT_VERSION);
}

static void hosts_found(struct fleet *fleet, struct request *request)
{

	if (fleet->state != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		make(fleet);
	} else if (request->answer == ANSWER_OK) {
		fleet->state = FLEET_LOADING;
		fleet->follow_all = true;
		fleet->follow_ns = 0;
		follow_begin(fleet);
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
		fleet->retry_ns = fleet->now_ns + FLEET_LAYOUT_RETRY_NS;
}

static void globals_found(struct fleet *fleet, struct request *request)
{

	if (fleet->state != FLEET_PREPARING)
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

	if (fleet->state != FLEET_PREPARING)
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
	if (fleet->state == FLEET_CONNECTING)
		fleet->layout_tries = 0;
	fleet->state = FLEET_PREPARING;
	fleet->layout_pending = 0;
	follow_forget(fleet);
	fleet->retry_ns = NEVER_NS;
	ask_for(fleet, ZNODE_LAYOUT, version_read);
}
