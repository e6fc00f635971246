/* link - a host's way to the servers, with its client library, see zookeeper.h and connection.h. */
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/coordinator/zookeeper.h"

#include "core/values/quantity.h"

#include <stdlib.h>
#include <string.h>

#define BACK_OFF_FIRST_NS UINT64_C(100000000)
#define BACK_OFF_MAX_NS	  UINT64_C(1000000000)

uint64_t link_now(const struct link *link)
{
	return link->zookeeper->now_ns;
}

uint64_t link_below(struct link *link, uint64_t most)
{
	return random_below(&link->zookeeper->random, most);
}

void link_say(struct link *link, struct message *message)
{
	if (link->local)
		link->last_local->next = message;
	else
		link->local = message;
	link->last_local = message;
	if (!link->paused)
		zookeeper_schedule(link->zookeeper, &link->saying, link_now(link));
}

void link_say_unknown(struct link *link, struct message *message)
{
	struct message *answer = message_new(MESSAGE_ANSWER);

	answer->request = message->request;
	answer->result.answer = ANSWER_UNKNOWN;
	/* An execution that is over already is not told. */
	for (uint32_t i = 0; i < message->request->operation_count; i++) {
		free(message->request->operations[i].made);
		message->request->operations[i].made = NULL;
	}
	link_say(link, answer);
}

static struct link *link_of(struct coordinator *coordinator)
{
	return (struct link *)coordinator;
}

static enum fate any_fate(struct link *link)
{
	return (enum fate)link_below(link, FATE_COUNT);
}

static void try_later(struct link *link)
{
	uint64_t most_ns = BACK_OFF_FIRST_NS;

	for (unsigned int i = 0; i < link->attempts && most_ns < BACK_OFF_MAX_NS; i++)
		most_ns *= 2;
	link->attempts++;
	zookeeper_schedule(link->zookeeper, &link->attempt,
			   link_now(link) + most_ns / 2 + link_below(link, most_ns / 2));
}

static void disconnect(struct link *link)
{
	bool first = link_below(link, 2);

	if (link->state == LINK_CONNECTED) {
		link->state = LINK_CONNECTING;
		if (first)
			link_say(link, message_new(MESSAGE_DISCONNECTED));
		stray_give_up(link, any_fate(link));
		if (!first)
			link_say(link, message_new(MESSAGE_DISCONNECTED));
	}
	stray_give_up(link, FATE_LOST);
	try_later(link);
}

static void arrive_down(struct moment *moment);

/*
 * Returns how long an attempt takes: longer after the first one, up to the time that the library
 * gives it.
 */
static uint64_t attempt_ns(const struct link *link)
{
	uint64_t most_ns = link->timeout_ns / 3 * 2, ns = CONNECTING_NS << (link->tries ? 1 : 0);

	return ns < most_ns || most_ns < CONNECTING_NS ? ns : most_ns;
}

static void attempt(struct moment *moment)
{
	struct link *link = (struct link *)((char *)moment - offsetof(struct link, attempt));
	struct zookeeper *zookeeper = link->zookeeper;
	struct connection *connection;

	if (link->paused || link->state != LINK_CONNECTING)
		return;
	stray_give_up(link, FATE_LOST);
	if (link->cut_up || link->cut_down || zookeeper->electing) {
		try_later(link);
		return;
	}
	connection = memory_get(sizeof(*connection));
	connection->link = link;
	connection->lag_ns = zookeeper->lag_ns ? link_below(link, zookeeper->lag_ns + 1) : 0;
	if (connection->lag_ns > link_now(link))
		connection->lag_ns = 0;
	connection->up.moment.comes = connection_arrives_up;
	connection->out.moment.comes = connection_sends_out;
	connection->down.moment.comes = arrive_down;
	connection->next = link->connections;
	link->connections = connection;
	link->connection = connection;
	connection_put_up(connection, message_new(MESSAGE_CONNECT));
	zookeeper_schedule(zookeeper, &link->attempt, link_now(link) + attempt_ns(link));
	link->tries++;
}

static void silent(struct moment *moment)
{
	struct link *link = (struct link *)((char *)moment - offsetof(struct link, silence));

	if (link->connection && !link->paused &&
	    (link->cut_up || link->cut_down || link->connection->abandoned))
		disconnect(link);
}

/* From now on nothing is heard: the library notices after two thirds of the session's timeout. */
static void expect_silence(struct link *link)
{
	uint64_t third_ns = link->timeout_ns / 3;

	if (link->state != LINK_CONNECTED || heap_holds(&link->silence.node))
		return;
	zookeeper_schedule(link->zookeeper, &link->silence,
			   link_now(link) + third_ns + link_below(link, third_ns));
}

void link_abandon(struct connection *connection, bool tell)
{
	connection->abandoned = true;
	if (connection->given_up)
		return;
	connection_schedule_up(connection);
	connection_schedule_out(connection);
	if (tell)
		connection_put_down(connection, message_new(MESSAGE_CLOSED));
	expect_silence(connection->link);
}

/* Answers of the server are the host's now. */
static void answer(struct link *link, struct message *message)
{
	struct request *request = message->request, *result = &message->result;

	request->answer = result->answer;
	request->failed = result->failed;
	request->zxid = result->zxid;
	request->made_zxid = result->made_zxid;
	request->changed_ms = result->changed_ms;
	request->version = result->version;
	request->length = result->length;
	request->data = memory_give(result->data, link->memory);
	request->names = memory_give(result->names, link->memory);
	request->name_count = result->name_count;
	for (uint32_t i = 0; i < request->operation_count; i++)
		memory_give(request->operations[i].made, link->memory);
	*result = (struct request){0};
	if (message->view_ns > link->seen_ns)
		link->seen_ns = message->view_ns;
	if (request->answer == ANSWER_OK)
		ambush_sees(link, AMBUSH_HEARS, request);
	link->client->answered(link->client, request);
}

static void confirm_watches(struct connection *connection, const struct request *request)
{
	for (struct watch *w = connection->watches; w; w = w->next) {
		if (w->children == (request->kind == REQUEST_LIST) &&
		    !strcmp(w->path, request->path))
			w->confirmed = true;
	}
}

static void connected(struct link *link)
{
	link->state = LINK_CONNECTED;
	link->session = link->connection->session;
	link->last_session = link->session;
	link->attempts = 0;
	link->tries = 0;
	zookeeper_unschedule(link->zookeeper, &link->attempt);
	if (link->cut_up || link->connection->abandoned)
		expect_silence(link);
	link->client->connected(link->client, link->session->id);
}

static void forget_session(struct link *link)
{
	link->state = LINK_CLOSED;
	link->session = NULL;
	link->seen_ns = 0;
	zookeeper_unschedule(link->zookeeper, &link->attempt);
	while (link->watches)
		watch_free(link->watches);
}

static void event(struct link *link, struct message *message)
{
	char path[NODE_PATH_MAX];
	struct watch *watch = message->watch;
	bool confirmed = watch->confirmed;

	memcpy(path, watch->path, sizeof(path));
	watch_free(watch);
	if (message->view_ns > link->seen_ns)
		link->seen_ns = message->view_ns;
	if (confirmed)
		link->client->changed(link->client, path);
}

static void arrive_down(struct moment *moment)
{
	struct connection *connection =
		(struct connection *)((char *)moment - offsetof(struct connection, down.moment));
	struct link *link = connection->link;
	struct message *message = pipe_shift(&connection->down);

	connection_schedule_down(connection);
	switch (message->kind) {
	case MESSAGE_CONNECTED:
		connected(link);
		break;
	case MESSAGE_EXPIRED:
		stray_give_up(link, FATE_LOST);
		forget_session(link);
		link->client->expired(link->client);
		break;
	case MESSAGE_ANSWER:
		if (message->request->watch)
			confirm_watches(connection, message->request);
		answer(link, message);
		break;
	case MESSAGE_EVENT:
		event(link, message);
		break;
	case MESSAGE_CLOSED:
		disconnect(link);
		break;
	case MESSAGE_CONNECT:
	case MESSAGE_CLOSE:
	case MESSAGE_REQUEST:
	case MESSAGE_DISCONNECTED:
		break;
	}
	message_free(message);
}

static void say_next(struct moment *moment)
{
	struct link *link = (struct link *)((char *)moment - offsetof(struct link, saying));
	struct message *message = link->local;

	if (link->paused)
		return;
	link->local = message->next;
	if (link->local)
		zookeeper_schedule(link->zookeeper, &link->saying, link_now(link));
	if (message->kind == MESSAGE_DISCONNECTED)
		link->client->disconnected(link->client);
	else
		answer(link, message);
	message_free(message);
}

/* Calls of the host: memory allocated here is not the host's. */

static void open(struct coordinator *coordinator, uint64_t session_ns)
{
	struct link *link = link_of(coordinator);
	struct memory *memory = memory_enter(NULL);

	if (!link->dead) {
		forget_session(link);
		link->state = LINK_CONNECTING;
		link->timeout_ns = session_ns;
		link->attempts = 0;
		zookeeper_schedule(link->zookeeper, &link->attempt, link_now(link));
	}
	memory_enter(memory);
}

/* The client library knows no more of the session than its number. */
static void resume(struct coordinator *coordinator, uint64_t session, uint64_t session_ns)
{
	struct link *link = link_of(coordinator);
	struct session *s = link->zookeeper->sessions;

	open(coordinator, session_ns);
	while (s && s->id != session)
		s = s->next;
	link->session = s;
	if (s)
		zookeeper_schedule(link->zookeeper, &link->attempt, link_now(link) + 1);
}

static void close(struct coordinator *coordinator)
{
	struct link *link = link_of(coordinator);
	struct memory *memory = memory_enter(NULL);

	if (link->state == LINK_CONNECTED)
		connection_put_up(link->connection, message_new(MESSAGE_CLOSE));
	stray_give_up(link, FATE_IN_TIME);
	forget_session(link);
	memory_enter(memory);
}

static void count_transaction(struct traffic *sent, const struct request *request)
{
	uint32_t tiles;
	int64_t gain = ambush_gain(request, &tiles);

	sent->transactions++;
	sent->changes += ambush_is(request, AMBUSH_CHANGE);
	if (gain > 0)
		sent->leases += tiles;
	else
		sent->given += (uint64_t)-gain;
}

static void count_sent(struct link *link, const struct request *request)
{
	if (request->kind == REQUEST_TRANSACTION)
		count_transaction(&link->sent, request);
	else if (request->kind == REQUEST_LIST)
		link->sent.lists++;
	else
		link->sent.reads++;
}

static void send(struct coordinator *coordinator, struct request *request)
{
	struct link *link = link_of(coordinator);
	struct memory *memory = memory_enter(NULL);
	struct message *message = message_new(MESSAGE_REQUEST);

	message->request = request;
	if (link->state == LINK_CONNECTED) {
		count_sent(link, request);
		connection_put_up(link->connection, message);
		ambush_sees(link, AMBUSH_SENDS, request);
	} else {
		link_say_unknown(link, message);
		message_free(message);
	}
	memory_enter(memory);
}

static void hang_up(struct coordinator *coordinator)
{
	struct link *link = link_of(coordinator);
	struct memory *memory = memory_enter(NULL);

	link->zookeeper->counts[COUNT_GIVEN_UP]++;
	if (link->state != LINK_CLOSED)
		disconnect(link);
	memory_enter(memory);
}

static void clocks(struct coordinator *coordinator, struct clocks *clocks)
{
	struct link *link = link_of(coordinator);

	link->client->clocks(link->client, clocks);
}

static uint64_t random_number(struct coordinator *coordinator)
{
	return random_next(&link_of(coordinator)->zookeeper->random);
}

struct link *link_new(struct zookeeper *zookeeper, struct client *client)
{
	struct link *link = memory_get(sizeof(*link));

	link->coordinator = (struct coordinator){
		.open = open,
		.resume = resume,
		.close = close,
		.send = send,
		.hang_up = hang_up,
		.clocks = clocks,
		.random = random_number,
	};
	link->zookeeper = zookeeper;
	link->client = client;
	link->latency = zookeeper->latency;
	link->saying.comes = say_next;
	link->attempt.comes = attempt;
	link->silence.comes = silent;
	link->next = zookeeper->links;
	zookeeper->links = link;
	return link;
}

static void reschedule(struct link *link)
{
	for (struct connection *c = link->connections; c; c = c->next) {
		connection_schedule_up(c);
		connection_schedule_down(c);
	}
	if (link->connection)
		zookeeper_hears(link->zookeeper, link->connection->session);
}

void link_cut(struct link *link, bool answers_only)
{
	link->cut_up = link->cut_up || !answers_only;
	link->cut_down = true;
	reschedule(link);
	expect_silence(link);
}

void link_cut_requests(struct link *link)
{
	link->cut_up = true;
	reschedule(link);
	expect_silence(link);
}

void link_heal(struct link *link)
{
	link->cut_up = false;
	link->cut_down = false;
	if (!link->connection || !link->connection->abandoned)
		zookeeper_unschedule(link->zookeeper, &link->silence);
	reschedule(link);
}

void link_pause(struct link *link)
{
	link->paused = true;
	link->paused_ns = link_now(link);
	reschedule(link);
}

void link_resume(struct link *link)
{
	struct zookeeper *zookeeper = link->zookeeper;
	uint64_t patience_ns = link->timeout_ns / 3 * 2;
	bool late = link_now(link) - link->paused_ns > patience_ns;

	link->paused = false;
	reschedule(link);
	if (link->local)
		zookeeper_schedule(zookeeper, &link->saying, link_now(link));
	if (link->state == LINK_CONNECTING)
		zookeeper_schedule(zookeeper, &link->attempt, link_now(link));
	/* It sees first either how late it is, or what has come meanwhile. */
	if (link->state == LINK_CONNECTED && late && link_below(link, 2))
		disconnect(link);
	else if (link->cut_up || link->cut_down)
		expect_silence(link);
}

void link_kill(struct link *link)
{
	link->dead = true;
	stray_give_up(link, any_fate(link));
	forget_session(link);
	zookeeper_unschedule(link->zookeeper, &link->saying);
	zookeeper_unschedule(link->zookeeper, &link->springs);
	while (link->local) {
		struct message *next = link->local->next;

		message_free(link->local);
		link->local = next;
	}
}

bool link_is_idle(const struct link *link)
{
	const struct connection *connection = link->connection;

	return !link->local && (!connection || (!connection->up.first && !connection->out.first &&
						!connection->down.first));
}
