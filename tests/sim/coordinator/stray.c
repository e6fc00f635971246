/* stray - what becomes of messages when a connection is given up, see connection.h. */
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define STRAY_NS UINT64_C(20000000000) /* so late at most is what was on its way */

static char *copy_text(const char *text)
{
	return text ? memory_text(text, strlen(text)) : NULL;
}

/* A copy of @request, which goes back to the host. */
static struct request *copy_request(const struct request *request)
{
	struct request *copy = memory_get(sizeof(*copy));

	copy->kind = request->kind;
	copy->operation_count = request->operation_count;
	copy->operations = memory_get(request->operation_count * sizeof(struct operation) + 1);
	for (uint32_t i = 0; i < request->operation_count; i++) {
		copy->operations[i] = request->operations[i];
		copy->operations[i].path = copy_text(request->operations[i].path);
		copy->operations[i].data = copy_text(request->operations[i].data);
		copy->operations[i].made = NULL;
	}
	return copy;
}

/* A message on its way up belongs to no host any more. */
static void stray(struct connection *connection, enum fate fate)
{
	struct link *link = connection->link;
	struct message *message = connection->up.first;
	uint64_t late_ns = fate == FATE_LATE ? link_below(link, STRAY_NS) : 0;

	connection->up.first = NULL;
	connection->abandoned = false;
	while (message) {
		struct message *next = message->next;
		bool kept = fate != FATE_LOST && (message->kind == MESSAGE_CLOSE ||
						  (message->kind == MESSAGE_REQUEST &&
						   message->request->kind == REQUEST_TRANSACTION));

		if (kept && message->request && !message->stray) {
			message->stray = copy_request(message->request);
			message->request = message->stray;
		}
		if (kept)
			pipe_append(&connection->up, message, message->at_ns + late_ns);
		else
			message_free(message);
		message = next;
	}
	connection_schedule_up(connection);
}

static void say_all_unknown(struct link *link, const struct pipe *pipe)
{
	for (struct message *m = pipe->first; m; m = m->next) {
		if (m->request)
			link_say_unknown(link, m);
	}
}

static void clear(struct link *link, struct pipe *pipe)
{
	zookeeper_unschedule(link->zookeeper, &pipe->moment);
	while (pipe->first)
		message_free(pipe_shift(pipe));
}

void stray_give_up(struct link *link, enum fate fate)
{
	struct connection *connection = link->connection;
	struct session *session;

	if (!connection)
		return;
	session = connection->session;
	link->connection = NULL;
	connection->given_up = true;
	say_all_unknown(link, &connection->down);
	say_all_unknown(link, &connection->out);
	say_all_unknown(link, &connection->up);
	clear(link, &connection->down);
	clear(link, &connection->out);
	for (struct watch *w = connection->watches, *next; w; w = next) {
		next = w->next;
		watch_unregister(w);
		w->connection = NULL;
		if (w->confirmed)
			watch_link(w, &link->watches);
		else
			watch_free(w);
	}
	stray(connection, fate);
	zookeeper_unschedule(link->zookeeper, &link->silence);
	zookeeper_hears(link->zookeeper, session);
	if (!connection->up.first)
		connection_free(connection);
}
