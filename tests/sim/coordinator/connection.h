/*
 * connection - one connection of a link to a server, for zookeeper.c, link.c and connection.c.
 *
 * A message goes from the host through `up` to the server, which puts what comes of it into `out`
 * until it has got that far in time itself, and from there through `down` to the host.
 */
#ifndef RATEFS_SIM_CONNECTION_H
#define RATEFS_SIM_CONNECTION_H

#include "tests/sim/coordinator/zookeeper.h"

enum message_kind {
	/* Up. */
	MESSAGE_CONNECT,
	MESSAGE_CLOSE,
	MESSAGE_REQUEST,
	/* Down. */
	MESSAGE_CONNECTED,
	MESSAGE_EXPIRED,
	MESSAGE_ANSWER,
	MESSAGE_EVENT,
	MESSAGE_CLOSED,
	/* Of the library itself. */
	MESSAGE_DISCONNECTED,
};

struct message {
	struct message *next;
	enum message_kind kind;
	uint64_t at_ns;		 /* when it arrives; in `out`, when it is sent */
	struct request *request; /* the host's, or our own if it is a stray */
	struct request *stray;	 /* owned */
	struct watch *watch;	 /* EVENT: owned by its connection */
	uint64_t view_ns;	 /* ANSWER, EVENT: as of when */
	/* ANSWER: the contents of the request, in an answer its outcomes alone. */
	bool executed;
	struct request result; /* owns data and names */
};

struct pipe {
	struct message *first, *last; /* owned */
	struct moment moment;
	uint64_t last_ns; /* the last arrival */
};

/* One watch of the library, and of the server it is connected to. */
struct watch {
	struct watch *next, **back; /* of the connection, or the link */
	struct watch *next_of_node, **back_of_node;
	struct connection *connection; /* NULL: awaits another */
	struct znode *node;	       /* NULL: fired */
	bool children;
	bool confirmed; /* the library knows of it */
	uint64_t zxid;	/* of what the host knows */
	char path[NODE_PATH_MAX];
};

struct connection {
	struct connection *next; /* of the link */
	struct link *link;
	struct session *session; /* once the server has accepted it */
	struct pipe up, out, down;
	struct watch *watches;
	uint64_t lag_ns; /* of its server */
	bool given_up;	 /* by the host: nothing goes down any more */
	bool abandoned;	 /* by the server: nothing goes up any more, it has forgotten it */
};

/* zookeeper.c, the servers' side. */

/* @message arrives, and is the server's. */
void zookeeper_receives(struct connection *connection, struct message *message);

/* Executes what is still to be executed of @message, which is about to be sent. */
void zookeeper_sends(struct connection *connection, struct message *message);

/* Whether a session is heard of may have changed. */
void zookeeper_hears(struct zookeeper *zookeeper, struct session *session);

/* Registers @watch, of a library that has connected again, or fires it. */
void zookeeper_watches(struct connection *connection, struct watch *watch);

/* ambush.c: @request of @link's host is at @point. */
void ambush_sees(struct link *link, enum ambush_point point, const struct request *request);

/* Tells whether @request is a @what, which says enough of it. */
bool ambush_is(const struct request *request, enum ambush_what what);

/*
 * Returns by how many leaves a transaction changes what its host leases, and the number of @tiles
 * that it makes of them.
 */
int64_t ambush_gain(const struct request *request, uint32_t *tiles);

/* link.c, the host's side. */

/* The server has closed @connection, or will not answer on it any more. */
void link_abandon(struct connection *connection, bool tell);

/* The library has something to say by itself. */
void link_say(struct link *link, struct message *message);
/* @message, of the host, will not be answered. */
void link_say_unknown(struct link *link, struct message *message);

uint64_t link_now(const struct link *link);
/* A random number below @most. */
uint64_t link_below(struct link *link, uint64_t most);

/*
 * torn.c: fills in @result with the children that a server shows that is at a commit of another
 * session, @state of their parent; false: it is not.
 */
bool torn_list(struct connection *connection, const struct znode_state *state, uint64_t view_ns,
	       struct request *result);

/* stray.c, what was on its way. */

/* The fate of messages on their way when a connection is given up. */
enum fate { FATE_LOST, FATE_IN_TIME, FATE_LATE, FATE_COUNT };

/* The host gives up its connection; unanswered requests come back. */
void stray_give_up(struct link *link, enum fate fate);
/* connection.c, what is on its way. */

#define CONNECTING_NS UINT64_C(2000000000) /* so long for an attempt */

void connection_put_up(struct connection *connection, struct message *message);
void connection_put_out(struct connection *connection, struct message *message, uint64_t at_ns);
void connection_put_down(struct connection *connection, struct message *message);
/* The reason that holds messages up has changed. */
void connection_schedule_up(struct connection *connection);
void connection_schedule_out(struct connection *connection);
void connection_schedule_down(struct connection *connection);
/* The moments of a connection. */
void connection_arrives_up(struct moment *moment);
void connection_sends_out(struct moment *moment);
void connection_free(struct connection *connection);

/* pipe.c */
void pipe_append(struct pipe *pipe, struct message *message, uint64_t at_ns);
struct message *pipe_shift(struct pipe *pipe);

/* message.c */
struct message *message_new(enum message_kind kind);
void message_free(struct message *message);

/* watch.c: puts @watch into @list. */
void watch_link(struct watch *watch, struct watch **list);
void watch_unregister(struct watch *watch);
void watch_free(struct watch *watch);

/* zookeeper.c */
void zookeeper_schedule(struct zookeeper *zookeeper, struct moment *moment, uint64_t at_ns);
void zookeeper_unschedule(struct zookeeper *zookeeper, struct moment *moment);

#endif
