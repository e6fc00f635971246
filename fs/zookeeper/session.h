/*
 * session - a session with ZooKeeper, as the thread of client.h keeps it by means of the library.
 *
 * The library keeps a session over many connections. Here is decided when to connect again
 * (jittered, 50 ms growing to 1 s), how long to try one server (1 s, growing), and when the session
 * is beyond hope (60 s, or 10 session timeouts, without an answer to any request: servers restored
 * from a backup refuse for ever a client that has seen more than they have, and a server that is
 * sent more watches again than it takes in one request hangs up after each handshake). After each
 * call the library's state is looked at, which changes without a word after a send that failed;
 * then what the library still has queued is dropped, before it connects again.
 */
#ifndef RATEFS_FS_ZOOKEEPER_SESSION_H
#define RATEFS_FS_ZOOKEEPER_SESSION_H

#include "fs/base/addresses.h"
#include "fs/state/zookeeper_handover.h"
#include "fs/zookeeper/call.h"
#include "fs/zookeeper/notice.h"

#include <poll.h>

enum phase {
	PHASE_CLOSED,	  /* no session is wanted, or it has expired */
	PHASE_RESTING,	  /* until rest_ns */
	PHASE_CONNECTING, /* the library tries one server */
	PHASE_PREPARING,  /* the path is looked at, or made */
	PHASE_CONNECTED,
};

/* All times are of CLOCK_BOOTTIME. */
struct zookeeper_session {
	struct calls calls;	     /* first: see session_of() */
	struct addresses *addresses; /* owned by the client, like the next two */
	char *path;
	char *credentials; /* or NULL */
	int wake;	   /* borrowed: eventfd that ends a poll */

	enum phase phase;
	uint64_t timeout_ns;
	struct zookeeper_handover *handover; /* borrowed: the session, for a successor; or NULL */
	bool resumes;			     /* it is the one that a predecessor had */
	bool established;		     /* it was connected once */
	bool prepared;			     /* the path was looked at */
	bool stale;	     /* the library has calls of a connection that is gone */
	const char *over;    /* why it is, or NULL */
	bool complained;     /* about this outage */
	int fd;		     /* of the library, while it has a socket */
	uint32_t failures;   /* in a row */
	uint32_t silent;     /* attempts in a row that took their whole time */
	uint64_t rest_ns;    /* when to connect again */
	uint64_t began_ns;   /* of the attempt ... */
	uint64_t attempt_ns; /* ... and when to give it up */
	uint64_t since_ns;   /* of being connected, or not */
	uint64_t waiting_ns; /* no request was answered since, and one should; NEVER_NS */
	uint64_t look_up_ns; /* when names are looked up again */
	uint32_t turn;	     /* of which server */
	const char *why;     /* a connection is given up, or NULL */
	struct zookeeper_notices notices;
};

/* Fills in the calls; the rest that is set before the thread runs is the caller's to fill in. */
void zookeeper_session_init(struct zookeeper_session *session);

/*
 * Ends the open session, and opens one that ends @timeout_ns after the last contact; none if that
 * is 0. @resumes: the one that is handed over, instead of a new one.
 */
void zookeeper_session_open(struct zookeeper_session *session, uint32_t opening,
			    uint64_t timeout_ns, bool resumes);

/* Ends it, at the servers too if there is a connection; blocks up to 4.5 s, after all answers. */
void zookeeper_session_end(struct zookeeper_session *session);

void zookeeper_session_send(struct zookeeper_session *session, struct request *request);
void zookeeper_session_hang_up(struct zookeeper_session *session);

/*
 * Does all that is due. Returns until when to poll @socket, or NEVER_NS; its descriptor is -1 while
 * there is none.
 */
uint64_t zookeeper_session_tend(struct zookeeper_session *session, struct pollfd *socket);

/* Has the library take @events of its socket. */
void zookeeper_session_process(struct zookeeper_session *session, short events);

#endif
