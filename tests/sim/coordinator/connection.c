/* connection - messages on their way between a link and its server, see connection.h. */
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"

#include "core/values/quantity.h"

#include <stdlib.h>

static uint64_t travel_ns(struct link *link)
{
	uint64_t jitter_ns = link->latency.jitter_ns;

	return link->latency.delay_ns + (jitter_ns ? link_below(link, jitter_ns + 1) : 0);
}

/* When the next message in @pipe arrives, if nothing is in its way. */
static void schedule(struct link *link, struct pipe *pipe, bool blocked)
{
	uint64_t at_ns = pipe->first ? pipe->first->at_ns : NEVER_NS;

	if (blocked || at_ns == NEVER_NS)
		zookeeper_unschedule(link->zookeeper, &pipe->moment);
	else
		zookeeper_schedule(link->zookeeper, &pipe->moment,
				   at_ns > link_now(link) ? at_ns : link_now(link));
}

void connection_schedule_up(struct connection *connection)
{
	struct link *link = connection->link;

	schedule(link, &connection->up, link->cut_up || connection->abandoned);
}

void connection_schedule_out(struct connection *connection)
{
	schedule(connection->link, &connection->out, connection->abandoned);
}

void connection_schedule_down(struct connection *connection)
{
	struct link *link = connection->link;

	schedule(link, &connection->down, link->cut_down || link->paused);
}

void connection_put_up(struct connection *connection, struct message *message)
{
	pipe_append(&connection->up, message,
		    link_now(connection->link) + travel_ns(connection->link));
	connection_schedule_up(connection);
}

void connection_put_down(struct connection *connection, struct message *message)
{
	pipe_append(&connection->down, message,
		    link_now(connection->link) + travel_ns(connection->link) +
			    connection->link->latency.answers_ns);
	connection_schedule_down(connection);
}

/* An event may have to go before answers that wait for a server that lags. */
void connection_put_out(struct connection *connection, struct message *message, uint64_t at_ns)
{
	struct pipe *out = &connection->out;
	struct message **at = &out->first;

	if (message->kind != MESSAGE_EVENT || !out->first || at_ns >= out->last_ns) {
		pipe_append(out, message, at_ns);
	} else {
		while (*at && (*at)->at_ns <= at_ns)
			at = &(*at)->next;
		message->at_ns = at_ns;
		message->next = *at;
		*at = message;
		if (!message->next)
			out->last = message;
	}
	connection_schedule_out(connection);
}

void connection_sends_out(struct moment *moment)
{
	struct connection *connection =
		(struct connection *)((char *)moment - offsetof(struct connection, out.moment));
	struct message *message = pipe_shift(&connection->out);

	connection_schedule_out(connection);
	zookeeper_sends(connection, message);
	connection_put_down(connection, message);
}

void connection_arrives_up(struct moment *moment)
{
	struct connection *connection =
		(struct connection *)((char *)moment - offsetof(struct connection, up.moment));
	struct zookeeper *zookeeper = connection->link->zookeeper;

	/* Writes that no host waits for any more may be taken up by the elected servers. */
	if (zookeeper->electing) {
		zookeeper_schedule(zookeeper, moment,
				   zookeeper->elected.node.key +
					   link_below(connection->link, CONNECTING_NS));
		return;
	}
	zookeeper_receives(connection, pipe_shift(&connection->up));
	if (connection->given_up && !connection->up.first)
		connection_free(connection);
	else
		connection_schedule_up(connection);
}

void connection_free(struct connection *connection)
{
	struct link *link = connection->link;
	struct pipe *pipes[] = {&connection->up, &connection->out, &connection->down};
	struct connection **at = &link->connections;

	for (size_t i = 0; i < sizeof(pipes) / sizeof(pipes[0]); i++) {
		zookeeper_unschedule(link->zookeeper, &pipes[i]->moment);
		while (pipes[i]->first)
			message_free(pipe_shift(pipes[i]));
	}
	while (connection->watches)
		watch_free(connection->watches);
	while (*at != connection)
		at = &(*at)->next;
	*at = connection->next;
	if (connection->session && connection->session->connection == connection)
		connection->session->connection = NULL;
	free(connection);
}
