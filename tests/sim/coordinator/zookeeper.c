/*
 * zookeeper - the servers: sessions, the order of writes, watches and elections, see zookeeper.h.
 */
#include "tests/sim/coordinator/zookeeper.h"
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"

#include "core/values/quantity.h"

#include <stdlib.h>
#include <string.h>

enum { EPOCH_SHIFT = 32, FIRST_SESSION_SHIFT = 20 };

static uint64_t next_zxid(struct zookeeper *zookeeper)
{
	return zookeeper->epoch << EPOCH_SHIFT | ++zookeeper->counter;
}

void zookeeper_schedule(struct zookeeper *zookeeper, struct moment *moment, uint64_t at_ns)
{
	heap_place(&zookeeper->moments, &moment->node, at_ns);
}

void zookeeper_unschedule(struct zookeeper *zookeeper, struct moment *moment)
{
	heap_remove(&zookeeper->moments, &moment->node);
}

/* Whether @state, which came with @zxid, is what @watch waits for. */
static bool concerns(const struct watch *watch, const struct znode_state *state, uint64_t zxid)
{
	if (!state->there)
		return true;
	return (watch->children ? state->children_zxid : state->changed_zxid) > zxid;
}

static void fire(struct watch *watch, uint64_t at_ns)
{
	struct message *message = message_new(MESSAGE_EVENT);

	*watch->back_of_node = watch->next_of_node;
	if (watch->next_of_node)
		watch->next_of_node->back_of_node = watch->back_of_node;
	watch->node = NULL;
	message->watch = watch;
	watch->connection->link->zookeeper->counts[COUNT_EVENTS]++;
	connection_put_out(watch->connection, message, at_ns + watch->connection->lag_ns);
}

/* Tells the watchers of the nodes that the newest commit has touched. */
static void tell_watchers(struct zookeeper *zookeeper)
{
	const struct commit *commit = zookeeper->znodes.newest;

	for (struct znode_state *s = commit->touched; s; s = s->next_touched) {
		struct watch *watch = s->node->watches, *next;

		for (; watch; watch = next) {
			next = watch->next_of_node;
			if (concerns(watch, s, commit->zxid - 1))
				fire(watch, commit->at_ns);
		}
	}
	if (zookeeper->observe)
		zookeeper->observe(zookeeper, commit);
	if (zookeeper->now_ns > ZOOKEEPER_PAST_NS)
		znodes_forget(&zookeeper->znodes, zookeeper->now_ns - ZOOKEEPER_PAST_NS);
}

static void end_session(struct session *session)
{
	struct zookeeper *zookeeper = session->zookeeper;

	zookeeper_unschedule(zookeeper, &session->expiry);
	znodes_end_session(&zookeeper->znodes, session, next_zxid(zookeeper), zookeeper->now_ns);
	tell_watchers(zookeeper);
}

static void expire_session(struct session *session)
{
	struct connection *connection = session->connection;

	session->zookeeper->counts[COUNT_EXPIRED]++;
	end_session(session);
	if (connection)
		link_abandon(connection, true);
}

static void expire(struct moment *moment)
{
	expire_session((struct session *)((char *)moment - offsetof(struct session, expiry)));
}

void zookeeper_expire(struct link *link)
{
	struct session *session = link->last_session;

	if (session && !session->closed && !link->zookeeper->electing)
		expire_session(session);
}

void zookeeper_orphan(struct link *link)
{
	struct session *session = link->last_session;

	if (!session || session->closed || link->zookeeper->electing)
		return;
	link_cut_requests(link);
	/* Its server does not hear of the end either. */
	if (link->connection && link_now(link) > ZOOKEEPER_PAST_NS)
		link->connection->lag_ns = ZOOKEEPER_PAST_NS;
	session->zookeeper->counts[COUNT_EXPIRED]++;
	end_session(session);
}

static bool is_heard(const struct zookeeper *zookeeper, const struct session *session)
{
	const struct connection *connection = session->connection;

	return connection && !connection->given_up && !connection->abandoned &&
	       !connection->link->cut_up && !connection->link->paused && !zookeeper->electing;
}

void zookeeper_hears(struct zookeeper *zookeeper, struct session *session)
{
	uint64_t contact_ns, ticks;

	if (!session || session->closed || zookeeper->electing)
		return;
	if (is_heard(zookeeper, session)) {
		zookeeper_unschedule(zookeeper, &session->expiry);
		return;
	}
	if (heap_holds(&session->expiry.node))
		return;
	if (zookeeper->hasty) {
		zookeeper_schedule(zookeeper, &session->expiry,
				   zookeeper->now_ns +
					   random_below(&zookeeper->random, session->timeout_ns));
		return;
	}
	/* The last ping was a while ago. */
	contact_ns = random_below(&zookeeper->random, session->timeout_ns / 3);
	contact_ns = zookeeper->now_ns > contact_ns ? zookeeper->now_ns - contact_ns : 0;
	if (contact_ns < session->contact_ns)
		contact_ns = session->contact_ns;
	ticks = (contact_ns + session->timeout_ns) / ZOOKEEPER_TICK_NS + 1;
	zookeeper_schedule(zookeeper, &session->expiry, ticks * ZOOKEEPER_TICK_NS);
}

static struct session *new_session(struct connection *connection)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	struct session *session = memory_get(sizeof(*session));

	session->zookeeper = zookeeper;
	session->id = ++zookeeper->last_session << FIRST_SESSION_SHIFT |
		      random_below(&zookeeper->random, UINT64_C(1) << FIRST_SESSION_SHIFT);
	session->timeout_ns = connection->link->timeout_ns;
	session->expiry.comes = expire;
	session->next = zookeeper->sessions;
	zookeeper->sessions = session;
	zookeeper->counts[COUNT_SESSIONS]++;
	znodes_begin(&zookeeper->znodes, next_zxid(zookeeper), zookeeper->now_ns)->opened = session;
	return session;
}

static void answer_connect(struct connection *connection, enum message_kind kind)
{
	connection_put_out(connection, message_new(kind), connection->link->zookeeper->now_ns);
}

static void receive_connect(struct connection *connection)
{
	struct link *link = connection->link;
	struct zookeeper *zookeeper = link->zookeeper;
	struct session *session = link->session;
	uint64_t view_ns = zookeeper->now_ns - connection->lag_ns;

	/* A server that lags behind what the session saw sends it to another. */
	if (session && connection->lag_ns && view_ns < link->seen_ns) {
		link_abandon(connection, true);
		return;
	}
	if (session && session->closed) {
		answer_connect(connection, MESSAGE_EXPIRED);
		return;
	}
	if (!session)
		session = new_session(connection);
	connection->session = session;
	session->connection = connection;
	session->contact_ns = zookeeper->now_ns;
	answer_connect(connection, MESSAGE_CONNECTED);
	while (link->watches)
		zookeeper_watches(connection, link->watches);
	zookeeper_hears(zookeeper, session);
}

static void count_operations(struct zookeeper *zookeeper, const struct request *request)
{
	static const enum count counts[] = {
		[OPERATION_CHECK] = COUNT_CHECKS,
		[OPERATION_SET] = COUNT_SETS,
		[OPERATION_CREATE] = COUNT_CREATES,
		[OPERATION_DELETE] = COUNT_DELETES,
	};

	zookeeper->counts[COUNT_TRANSACTIONS]++;
	for (uint32_t i = 0; i < request->operation_count; i++)
		zookeeper->counts[counts[request->operations[i].kind]]++;
}

/* The first operation that access rights do not allow; the count: all are allowed. */
static uint32_t find_denied(const struct zookeeper *zookeeper, const struct request *request)
{
	size_t length = strlen(zookeeper->denied);
	uint32_t i = 0;

	while (i < request->operation_count &&
	       (!length || request->operations[i].kind == OPERATION_CHECK ||
		strncmp(request->operations[i].path, zookeeper->denied, length) != 0))
		i++;
	return i;
}

static void count_refused(struct connection *connection)
{
	connection->link->zookeeper->counts[COUNT_REFUSED]++;
	connection->link->sent.refused++;
}

static void transact(struct connection *connection, struct message *message)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	struct request *request = message->request, *result = &message->result;

	count_operations(zookeeper, request);
	result->zxid = next_zxid(zookeeper);
	message->executed = true;
	result->failed = find_denied(zookeeper, request);
	if (result->failed < request->operation_count) {
		result->answer = ANSWER_DENIED;
		count_refused(connection);
		return;
	}
	result->answer = znodes_apply(&zookeeper->znodes, connection->session, request->operations,
				      request->operation_count, result->zxid, zookeeper->now_ns,
				      &result->failed);
	if (result->answer != ANSWER_OK)
		count_refused(connection);
	tell_watchers(zookeeper);
	if (result->answer == ANSWER_OK && !connection->given_up)
		ambush_sees(connection->link, AMBUSH_COMMITS, request);
}

void zookeeper_receives(struct connection *connection, struct message *message)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	struct session *session = connection->session;
	bool alive = session && !session->closed;

	if (message->kind == MESSAGE_CONNECT) {
		receive_connect(connection);
		message_free(message);
		return;
	}
	if (message->kind == MESSAGE_CLOSE) {
		if (alive)
			end_session(session);
		message_free(message);
		return;
	}
	if (connection->given_up) {
		if (alive) {
			zookeeper->counts[COUNT_STRAYS]++;
			transact(connection, message);
		}
		message_free(message);
		return;
	}
	session->contact_ns = zookeeper->now_ns;
	message->kind = MESSAGE_ANSWER;
	if (message->request->kind == REQUEST_TRANSACTION) {
		transact(connection, message);
		connection_put_out(connection, message, zookeeper->now_ns + connection->lag_ns);
		return;
	}
	zookeeper->counts[message->request->kind == REQUEST_GET ? COUNT_GETS : COUNT_LISTS]++;
	connection_put_out(connection, message, zookeeper->now_ns);
}

void zookeeper_watches(struct connection *connection, struct watch *watch)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	uint64_t view_ns = zookeeper->now_ns - connection->lag_ns;
	struct znode *node = znodes_find(&zookeeper->znodes, watch->path);
	const struct znode_state *state = node ? node->newest : NULL;
	uint64_t at_ns = NEVER_NS;

	if (!node) {
		/* Long gone. */
		struct message *message = message_new(MESSAGE_EVENT);

		watch_link(watch, &connection->watches);
		watch->connection = connection;
		watch->node = NULL;
		message->watch = watch;
		connection_put_out(connection, message, zookeeper->now_ns);
		return;
	}
	watch_link(watch, &connection->watches);
	watch->connection = connection;
	watch->node = node;
	watch->next_of_node = node->watches;
	watch->back_of_node = &node->watches;
	if (node->watches)
		node->watches->back_of_node = &watch->next_of_node;
	node->watches = watch;
	/*
	 * The sessions known here already, and those that this server will know when it has caught
	 * up.
	 */
	for (; state && state->at_ns > view_ns; state = state->older) {
		if (concerns(watch, state, watch->zxid))
			at_ns = state->at_ns;
	}
	if (state && concerns(watch, state, watch->zxid))
		at_ns = view_ns;
	if (at_ns != NEVER_NS)
		fire(watch, at_ns);
}

static void add_watch(struct connection *connection, const struct request *request, uint64_t zxid)
{
	struct watch *watch;
	bool children = request->kind == REQUEST_LIST;

	for (watch = connection->watches; watch; watch = watch->next) {
		if (watch->node && watch->children == children &&
		    !strcmp(watch->path, request->path))
			return;
	}
	watch = memory_get(sizeof(*watch));
	watch->children = children;
	watch->zxid = zxid;
	strncpy(watch->path, request->path, sizeof(watch->path) - 1);
	zookeeper_watches(connection, watch);
}

static void get(const struct znode_state *state, struct request *result)
{
	const char *text = state->data ? state->data->text : "";

	result->zxid = state->changed_zxid;
	result->made_zxid = state->made_zxid;
	result->changed_ms = state->changed_ms;
	result->version = state->version;
	result->length = strlen(text);
	if (result->length > NODE_DATA_MAX)
		result->answer = ANSWER_REFUSED;
	else
		result->data = memory_text(text, result->length);
}

static void list(const struct znode_state *state, uint64_t view_ns, struct request *result)
{
	const struct listing *listing = znode_list(state, view_ns);

	result->names = memory_copy(listing->names, listing->size);
	result->name_count = listing->count;
	for (uint32_t i = 0; i < listing->count; i++)
		result->names[i] = (char *)result->names +
				   (listing->names[i] - (const char *)listing->names);
}

void zookeeper_sends(struct connection *connection, struct message *message)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	const struct request *request = message->request;
	const struct znode_state *state;
	struct znode *node;
	bool torn = false;

	message->view_ns = zookeeper->now_ns - connection->lag_ns;
	if (message->kind != MESSAGE_ANSWER || message->executed)
		return;
	message->executed = true;
	node = znodes_find(&zookeeper->znodes, request->path);
	state = node ? znode_at(node, message->view_ns) : NULL;
	if (!state || !state->there) {
		message->result.answer = ANSWER_NO_NODE;
		return;
	}
	if (request->kind == REQUEST_GET)
		get(state, &message->result);
	else if (!(torn = torn_list(connection, state, message->view_ns, &message->result)))
		list(state, message->view_ns, &message->result);
	/* The rest of a torn list is told as a change. */
	if (request->watch && message->result.answer == ANSWER_OK)
		add_watch(connection, request,
			  request->kind == REQUEST_GET ? state->changed_zxid
						       : state->children_zxid - torn);
}

/*
 * The last commits are lost; sessions opened by them were never there, sessions closed by them
 * still are.
 */
static void lose_commits(struct zookeeper *zookeeper)
{
	struct znodes *znodes = &zookeeper->znodes;
	bool loses = zookeeper->lose;

	for (; zookeeper->lose && znodes->newest; zookeeper->lose--) {
		struct session *opened = znodes->newest->opened, *closed = znodes->newest->closed;

		znodes_undo(znodes);
		if (opened)
			opened->closed = true;
		if (closed)
			closed->closed = false;
	}
	zookeeper->lose = 0;
	if (loses && zookeeper->observe)
		zookeeper->observe(zookeeper, NULL);
}

static void elected(struct moment *moment)
{
	struct zookeeper *zookeeper =
		(struct zookeeper *)((char *)moment - offsetof(struct zookeeper, elected));

	zookeeper->electing = false;
	zookeeper->epoch++;
	zookeeper->counter = 0;
	lose_commits(zookeeper);
	for (struct session *s = zookeeper->sessions; s; s = s->next) {
		s->contact_ns = zookeeper->now_ns;
		zookeeper_hears(zookeeper, s);
	}
}

void zookeeper_elect(struct zookeeper *zookeeper, uint64_t for_ns)
{
	zookeeper->electing = true;
	zookeeper_schedule(zookeeper, &zookeeper->elected, zookeeper->now_ns + for_ns);
	for (struct session *s = zookeeper->sessions; s; s = s->next)
		zookeeper_unschedule(zookeeper, &s->expiry);
	for (struct link *link = zookeeper->links; link; link = link->next) {
		/* Some servers close their connections, some just hang. */
		if (link->connection)
			link_abandon(link->connection, random_below(&zookeeper->random, 2));
	}
}

void zookeeper_lag(struct zookeeper *zookeeper, uint64_t most_ns)
{
	zookeeper->lag_ns = most_ns;
	for (struct link *link = zookeeper->links; link; link = link->next) {
		for (struct connection *c = link->connections; c; c = c->next)
			c->lag_ns = c->lag_ns < most_ns ? c->lag_ns : most_ns;
	}
}

void zookeeper_lose(struct zookeeper *zookeeper, uint32_t commits)
{
	zookeeper->lose = commits;
}

enum answer zookeeper_operate(struct zookeeper *zookeeper, enum operation_kind kind,
			      const char *path, const char *data)
{
	struct operation operation = {.kind = kind, .version = NODE_VERSION_ANY};
	enum answer answer;
	uint32_t failed;

	operation.path = memory_text(path, strlen(path));
	operation.data = data ? memory_text(data, strlen(data)) : NULL;
	answer = znodes_apply(&zookeeper->znodes, NULL, &operation, 1, next_zxid(zookeeper),
			      zookeeper->now_ns, &failed);
	tell_watchers(zookeeper);
	free(operation.path);
	free(operation.data);
	return answer;
}

uint64_t zookeeper_next_ns(const struct zookeeper *zookeeper)
{
	return zookeeper->moments.root ? zookeeper->moments.root->key : NEVER_NS;
}

void zookeeper_run_one(struct zookeeper *zookeeper)
{
	struct moment *moment = (struct moment *)zookeeper->moments.root;

	heap_remove(&zookeeper->moments, &moment->node);
	moment->comes(moment);
}

void zookeeper_run(struct zookeeper *zookeeper, uint64_t now_ns)
{
	zookeeper->now_ns = now_ns;
	while (zookeeper_next_ns(zookeeper) <= now_ns)
		zookeeper_run_one(zookeeper);
}

void zookeeper_open(struct zookeeper *zookeeper, uint64_t seed)
{
	*zookeeper = (struct zookeeper){.random = {seed}, .epoch = 1};
	zookeeper->latency.delay_ns = ZOOKEEPER_LATENCY_NS;
	zookeeper->elected.comes = elected;
	znodes_open(&zookeeper->znodes);
}

void zookeeper_close(struct zookeeper *zookeeper)
{
	while (zookeeper->links) {
		struct link *link = zookeeper->links;

		zookeeper->links = link->next;
		while (link->connections)
			connection_free(link->connections);
		while (link->watches)
			watch_free(link->watches);
		free(link);
	}
	while (zookeeper->sessions) {
		struct session *next = zookeeper->sessions->next;

		free(zookeeper->sessions);
		zookeeper->sessions = next;
	}
	znodes_close(&zookeeper->znodes);
}
