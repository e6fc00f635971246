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

/* The version before, and while it is turned over; folders of limiters' folders that it had. */
static const char LAYOUT_BEFORE[] = "ratefs 3\n";
static const char LAYOUT_TURNING[] = "ratefs 3 to 4\n";
static const char *const FOLDERS_BEFORE[] = {"/f", "/l"};

/* Its timeout for sessions, unless another one was given: neighbours are to be sooner now. */
#define SESSION_BEFORE_NS (6 * NSEC_PER_SEC)

enum { TRIES_MAX = 3, FOLDERS_BEFORE_COUNT = 2, DELETES_MAX = 90 };

struct layout {
	uint32_t pending; /* nodes that are being made */
	uint32_t tries;

	/* Of a fleet that is turned over: */
	int32_t version; /* of /v */
	bool there[FOLDERS_BEFORE_COUNT];
	uint32_t folder; /* that is emptied: so many are empty */
	char **names;	 /* owned, one block: folders in it ... */
	uint32_t name_count;
	uint32_t name; /* ... of which so many are gone */
};

bool layout_new(struct fleet *fleet)
{
	fleet->layout = calloc(1, sizeof(*fleet->layout));
	return fleet->layout;
}

void layout_free(struct fleet *fleet)
{
	if (fleet->layout)
		free(fleet->layout->names);
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
	char path[ZNODE_TEXT];

	znode_path(kind, 0, path);
	if (request_send_one(fleet, OPERATION_CREATE, path, data, 0, made))
		fleet->layout->pending++;
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

/* Begins anew in a while, from the version on. */
static void look_later(struct fleet *fleet)
{
	session_retry_at(fleet, fleet->now_ns + FLEET_JOIN_RETRY_NS);
}

static void ask_for_path(struct fleet *fleet, enum request_kind kind, const char *path,
			 void (*done)(struct fleet *fleet, struct request *request))
{
	struct request *request = request_new(kind, path, done);

	if (request)
		request_send(fleet, request);
	else
		look_later(fleet);
}

/* Adds to *@request, NULL without memory, which is freed where there is none. */
static void add(struct request **request, enum operation_kind kind, const char *path,
		const char *data, int32_t version)
{
	if (!*request || request_add(*request, kind, path, data, version, 0))
		return;
	request_free(*request);
	*request = NULL;
}

static void turned(struct fleet *fleet, struct request *request)
{
	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_OK)
		layout_look(fleet);
	else if (request->answer == ANSWER_NOT_EMPTY)
		refuse(fleet, "hosts have it mounted whose layout is the version before");
	else if (request->answer == ANSWER_DENIED)
		refuse(fleet, "the coordinator denies access to its nodes");
	else
		look_later(fleet);
}

static void send_or_look_later(struct fleet *fleet, struct request *request)
{
	if (request)
		request_send(fleet, request);
	else
		look_later(fleet);
}

static void globals_before_read(struct fleet *fleet, struct request *request)
{
	struct request *turning;
	struct globals globals;
	char text[RECORD_TEXT];

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer != ANSWER_OK || record_parse_globals(request->data, &globals)) {
		look_later(fleet);
		return;
	}
	if (globals.constants.session_ns == SESSION_BEFORE_NS)
		globals.constants.session_ns = FLEET_SESSION_NS;
	record_print_globals(&globals, text);
	fleet_tell(fleet, FLEET_UNFIT, "the fleet's layout is turned over to this version");
	turning = request_new(REQUEST_TRANSACTION, NULL, turned);
	add(&turning, OPERATION_SET, "/v", LAYOUT_TURNING, fleet->layout->version);
	add(&turning, OPERATION_SET, "/g", text, request->version);
	add(&turning, OPERATION_DELETE, "/h", NULL, NODE_VERSION_ANY);
	send_or_look_later(fleet, turning);
}

static void hosts_before_listed(struct fleet *fleet, struct request *request)
{
	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_OK && request->name_count)
		refuse(fleet, "hosts have it mounted whose layout is the version before");
	else if (request->answer == ANSWER_OK)
		ask_for(fleet, ZNODE_GLOBALS, globals_before_read);
	else
		look_later(fleet);
}

static void empty_next(struct fleet *fleet);

/* Another host may empty the same one. */
static void emptied(struct fleet *fleet, struct request *request)
{
	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_OK || request->answer == ANSWER_NO_NODE)
		empty_next(fleet);
	else
		look_later(fleet);
}

/* Deletes a folder of a limiter, or as many nodes in it as fit. */
static void nodes_before_listed(struct fleet *fleet, struct request *request)
{
	struct layout *layout = fleet->layout;
	struct request *emptying;
	char path[ZNODE_TEXT];

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer != ANSWER_OK) {
		layout->name += request->answer == ANSWER_NO_NODE;
		emptied(fleet, request);
		return;
	}
	emptying = request_new(REQUEST_TRANSACTION, NULL, emptied);
	for (uint32_t i = 0; i < request->name_count && i < DELETES_MAX; i++) {
		snprintf(path, sizeof(path), "%.60s/%.60s", request->path, request->names[i]);
		add(&emptying, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY);
	}
	if (request->name_count <= DELETES_MAX) {
		layout->name++;
		add(&emptying, OPERATION_DELETE, request->path, NULL, NODE_VERSION_ANY);
	}
	send_or_look_later(fleet, emptying);
}

static void folders_before_listed(struct fleet *fleet, struct request *request)
{
	struct layout *layout = fleet->layout;

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer != ANSWER_OK && request->answer != ANSWER_NO_NODE) {
		look_later(fleet);
		return;
	}
	layout->there[layout->folder] = request->answer == ANSWER_OK;
	free(layout->names);
	layout->names = request->names;
	layout->name_count = request->name_count;
	layout->name = 0;
	request->names = NULL;
	request->name_count = 0;
	layout->folder += !layout->name_count;
	empty_next(fleet);
}

/* Empties the next folder of what the version before had; after the last one all is turned over. */
static void empty_next(struct fleet *fleet)
{
	struct layout *layout = fleet->layout;
	struct request *last;
	char path[ZNODE_TEXT];

	if (layout->name < layout->name_count) {
		snprintf(path, sizeof(path), "%s/%.60s", FOLDERS_BEFORE[layout->folder],
			 layout->names[layout->name]);
		ask_for_path(fleet, REQUEST_LIST, path, nodes_before_listed);
		return;
	}
	layout->name_count = 0;
	if (layout->folder < FOLDERS_BEFORE_COUNT) {
		ask_for_path(fleet, REQUEST_LIST, FOLDERS_BEFORE[layout->folder],
			     folders_before_listed);
		return;
	}
	last = request_new(REQUEST_TRANSACTION, NULL, turned);
	for (uint32_t i = 0; i < FOLDERS_BEFORE_COUNT; i++) {
		if (layout->there[i])
			add(&last, OPERATION_DELETE, FOLDERS_BEFORE[i], NULL, NODE_VERSION_ANY);
	}
	add(&last, OPERATION_SET, "/v", LAYOUT_VERSION, layout->version);
	send_or_look_later(fleet, last);
}

static void version_read(struct fleet *fleet, struct request *request)
{

	if (session_state(fleet) != FLEET_PREPARING)
		return;
	if (request->answer == ANSWER_NO_NODE) {
		make(fleet);
	} else if (request->answer == ANSWER_DENIED) {
		refuse(fleet, "the coordinator denies access to its nodes");
	} else if (request->answer == ANSWER_OK && !strcmp(request->data, LAYOUT_BEFORE)) {
		fleet->layout->version = request->version;
		ask_for_path(fleet, REQUEST_LIST, "/h", hosts_before_listed);
	} else if (request->answer == ANSWER_OK && !strcmp(request->data, LAYOUT_TURNING)) {
		fleet->layout->version = request->version;
		fleet->layout->folder = 0;
		fleet->layout->name_count = 0;
		fleet->layout->name = 0;
		empty_next(fleet);
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
