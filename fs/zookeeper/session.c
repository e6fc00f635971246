/* session - connections, and the end of them, see session.h. */
#include "fs/zookeeper/session.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/zookeeper/zhandle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	FAILURES_MAX = 5,		     /* that are counted */
	FAILURES_LOUD = 3,		     /* from which on they are worth a message */
	ROUNDS_MAX = 2,			     /* each of which doubles the time for an attempt */
	HOPE_SESSIONS = 10,		     /* session timeouts */
	ANSWERS_MAX = ZOOKEEPER_NOTICES_MAX, /* read before others have their turn */
};

#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

static const uint64_t REST_NS = 50 * NSEC_PER_MSEC; /* doubled with each failure ... */
static const uint64_t REST_MAX_NS = NSEC_PER_SEC;   /* ... up to this */
/* A server has so long to take the session: then it is the turn of the next one. */
static const uint64_t ATTEMPT_NS = NSEC_PER_SEC;
static const uint64_t STEADY_NS = NSEC_PER_SEC;	   /* a connection that lasts is no failure */
static const uint64_t HOPE_NS = 60 * NSEC_PER_SEC; /* or HOPE_SESSIONS, if that is less */
static const uint64_t LOOK_UP_NS = 10 * NSEC_PER_SEC;

/*
 * Returns how long to try a server: twice as long once all had their turn, as long as the library
 * waits.
 */
static uint64_t attempt_ns(const struct zookeeper_session *session)
{
	uint32_t servers = addresses_count(session->addresses);
	uint32_t rounds = session->silent / (servers ? servers : 1);
	uint64_t ns = ATTEMPT_NS << (rounds < ROUNDS_MAX ? rounds : ROUNDS_MAX);
	uint64_t most_ns = session->timeout_ns / 3 * 2;

	if (most_ns < ATTEMPT_NS)
		most_ns = ATTEMPT_NS;
	return ns < most_ns ? ns : most_ns;
}

static struct zookeeper_session *session_of(struct calls *calls)
{
	return (struct zookeeper_session *)calls;
}

/* Returns half to all of @ns. */
static uint64_t jittered(uint64_t ns)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = (uint32_t)clock_ns();
	return ns / 2 + ns / 2 * random / UINT32_MAX;
}

/* Notes that no request is answered from now on, if one was until now. */
static void begin_wait(struct zookeeper_session *session)
{
	if (session->waiting_ns == NEVER_NS)
		session->waiting_ns = clock_ns();
}

static void on_answered(struct calls *calls, struct request *request)
{
	if (request->answer != ANSWER_UNKNOWN)
		session_of(calls)->waiting_ns = NEVER_NS;
	zookeeper_notices_add(&session_of(calls)->notices, ZOOKEEPER_ANSWERED)->request = request;
}

static void on_changed(struct calls *calls, const char *path)
{
	struct zookeeper_notice *notice = zookeeper_notices_add(&session_of(calls)->notices,
								ZOOKEEPER_CHANGED);

	snprintf(notice->path, sizeof(notice->path), "%s", path);
}

static void rest_for_a_while(struct zookeeper_session *session)
{
	uint64_t ns = REST_NS << session->failures;

	session->phase = PHASE_RESTING;
	session->rest_ns = clock_ns() + jittered(ns < REST_MAX_NS ? ns : REST_MAX_NS);
	session->why = NULL;
	zhandle_message[0] = '\0';
}

static void count_failure(struct zookeeper_session *session)
{
	if (session->failures < FAILURES_MAX)
		session->failures++;
}

static const char *reason_of(const struct zookeeper_session *session)
{
	return session->why ? session->why : zhandle_message;
}

/* Notes that the connection is gone; the session goes on. */
static void lose_connection(struct zookeeper_session *session)
{
	uint64_t now_ns = clock_ns();

	log_warning("connection to ZooKeeper lost: %s", reason_of(session));
	if (session->phase == PHASE_CONNECTED)
		zookeeper_notices_add(&session->notices, ZOOKEEPER_DISCONNECTED);
	if (now_ns >= session->since_ns + STEADY_NS)
		session->failures = 0;
	else
		count_failure(session);
	session->since_ns = now_ns;
	begin_wait(session);
	rest_for_a_while(session);
	calls_give_up(&session->calls);
}

static void fail_attempt(struct zookeeper_session *session)
{
	count_failure(session);
	if (session->failures == FAILURES_LOUD && !session->complained) {
		log_warning("no connection to ZooKeeper: %s", reason_of(session));
		session->complained = true;
	}
	rest_for_a_while(session);
}

/* Looks at what became of the connection in a call of the library. May be called within one. */
static void look_at_state(struct zookeeper_session *session)
{
	int state;

	if (session->phase < PHASE_CONNECTING || zhandle_has_socket(session->calls.zhandle))
		return;
	state = zoo_state(session->calls.zhandle);
	if (state == ZOO_EXPIRED_SESSION_STATE)
		session->over = "it has expired";
	else if (state == ZOO_AUTH_FAILED_STATE)
		session->over = "the credentials are refused";
	else if (state == ZOO_NOTCONNECTED_STATE && !session->why)
		session->why = "sending failed";
	session->stale = state == ZOO_NOTCONNECTED_STATE;
	if (session->phase >= PHASE_PREPARING)
		lose_connection(session);
	else if (state == ZOO_EXPIRED_SESSION_STATE)
		rest_for_a_while(session);
	else
		fail_attempt(session);
}

static void on_check(struct calls *calls)
{
	look_at_state(session_of(calls));
}

/* Gives up the connection. Not within a call of the library. */
static void drop_connection(struct zookeeper_session *session, const char *why)
{
	session->why = why;
	zhandle_drop(session->calls.zhandle, session->fd);
	look_at_state(session);
}

void zookeeper_session_end(struct zookeeper_session *session)
{
	calls_give_up(&session->calls);
	zookeeper_notices_flush(&session->notices); /* the next can take seconds */
	session->phase = PHASE_CLOSED;
	if (session->calls.zhandle)
		zookeeper_close(session->calls.zhandle);
	session->calls.zhandle = NULL;
	calls_free(&session->calls);
	session->established = false;
	session->prepared = false;
	session->stale = false;
	session->over = NULL;
}

void zookeeper_session_open(struct zookeeper_session *session, uint32_t opening,
			    uint64_t timeout_ns, bool resumes)
{
	zookeeper_session_end(session);
	session->notices.opening = opening;
	session->resumes = resumes;
	session->timeout_ns = timeout_ns;
	session->complained = false;
	session->waiting_ns = NEVER_NS;
	session->silent = 0;
	session->look_up_ns = 0;
	session->turn = (uint32_t)jittered(UINT32_MAX);
	if (timeout_ns)
		rest_for_a_while(session);
	if (resumes)
		session->rest_ns = 0; /* its host alone: no others connect at that time */
}

static void expire_session(struct zookeeper_session *session, const char *why)
{
	log_warning("session with ZooKeeper is over: %s", why);
	zookeeper_session_end(session);
	zookeeper_notices_add(&session->notices, ZOOKEEPER_EXPIRED);
}

static void on_prepared(struct calls *calls, int code)
{
	struct zookeeper_session *session = session_of(calls);
	enum answer answer = calls_answer(code);

	/* Without an answer the connection is given up when its time is up, if it is there. */
	if (session->phase != PHASE_PREPARING || answer == ANSWER_UNKNOWN)
		return;
	if (answer != ANSWER_OK)
		log_error("cannot make %s in ZooKeeper: %s", session->path, zerror(code));
	if (!session->prepared)
		session->waiting_ns = NEVER_NS;
	session->prepared = true;
	session->phase = PHASE_CONNECTED;
	zookeeper_notices_add(&session->notices, ZOOKEEPER_CONNECTED)->session =
		(uint64_t)zoo_client_id(calls->zhandle)->client_id;
}

/* Keeps the session for a successor, which goes on with it if the fleet has joined by then. */
static void keep_session(struct zookeeper_session *session)
{
	const clientid_t *id = zoo_client_id(session->calls.zhandle);

	if (!session->handover)
		return;
	static_assert(sizeof(session->handover->password) == sizeof(id->passwd),
		      "it is of that size");
	session->handover->session = id->client_id;
	memcpy(session->handover->password, id->passwd, sizeof(id->passwd));
}

static zhandle_t *open_zhandle(struct zookeeper_session *session, const char *address)
{
	clientid_t id = {0};

	if (session->resumes) {
		id.client_id = session->handover->session;
		memcpy(id.passwd, session->handover->password, sizeof(id.passwd));
	}
	return zhandle_open(address, (int)(session->timeout_ns / NSEC_PER_MSEC),
			    session->credentials, session->resumes ? &id : NULL);
}

/* Notes that the server has accepted the session. */
static void greet_session(struct zookeeper_session *session)
{
	zhandle_t *zhandle = session->calls.zhandle;
	uint64_t granted_ns = (uint64_t)zoo_recv_timeout(zhandle) * NSEC_PER_MSEC;

	keep_session(session);

	log_info("connected to ZooKeeper at %s, session 0x%llx", zoo_get_current_server(zhandle),
		 (unsigned long long)zoo_client_id(zhandle)->client_id);
	if (!session->established && granted_ns != session->timeout_ns)
		log_warning("ZooKeeper grants sessions of %llu ms, not of %llu ms",
			    (unsigned long long)(granted_ns / NSEC_PER_MSEC),
			    (unsigned long long)(session->timeout_ns / NSEC_PER_MSEC));
	session->established = true;
	session->complained = false;
	session->since_ns = clock_ns();
	if (session->since_ns < session->began_ns + ATTEMPT_NS / 2)
		session->silent = 0;
	session->attempt_ns = session->since_ns + attempt_ns(session);
	session->phase = PHASE_PREPARING;
	if (session->prepared)
		on_prepared(&session->calls, ZOK);
	else
		calls_prepare(&session->calls);
	look_at_state(session);
}

/* Has the library connect to the server whose turn it is; it knows no other. */
static bool aim_at_server(struct zookeeper_session *session, uint64_t now_ns)
{
	char address[SERVER_ADDRESS_TEXT];

	if (session->look_up_ns <= now_ns) {
		addresses_look_up(session->addresses, session->wake);
		session->look_up_ns = now_ns + LOOK_UP_NS;
	}
	if (!addresses_address(session->addresses, session->turn++, address)) {
		session->why = "no server has an address";
		return false;
	}
	if (session->calls.zhandle)
		return zhandle_aim(session->calls.zhandle, address) == 0;
	session->calls.zhandle = open_zhandle(session, address);
	return session->calls.zhandle;
}

static void begin_attempt(struct zookeeper_session *session, uint64_t now_ns)
{
	session->phase = PHASE_CONNECTING;
	session->began_ns = now_ns;
	session->attempt_ns = now_ns + attempt_ns(session);
	if (session->stale)
		zhandle_discard(session->calls.zhandle);
	session->stale = false;
	if (!aim_at_server(session, now_ns))
		fail_attempt(session);
}

/* Asks the library for its socket and its deadline. */
static uint64_t ask_library(struct zookeeper_session *session, uint64_t now_ns,
			    struct pollfd *socket)
{
	struct timeval wait = {0, 0};
	int interest = 0, code;

	session->fd = -1;
	code = zookeeper_interest(session->calls.zhandle, &session->fd, &interest, &wait);
	if (code == ZOK && session->fd < 0) /* a delay of its own; there is none the next time */
		code = zookeeper_interest(session->calls.zhandle, &session->fd, &interest, &wait);
	look_at_state(session);
	if (code != ZOK || session->phase < PHASE_CONNECTING)
		return now_ns;
	socket->fd = session->fd;
	socket->events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
				 (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
	return now_ns + (uint64_t)wait.tv_sec * NSEC_PER_SEC +
	       (uint64_t)wait.tv_usec * NSEC_PER_USEC;
}

/* Tells whether requests have gone unanswered for too long, whatever connections did meanwhile. */
static bool is_hopeless(const struct zookeeper_session *session, uint64_t now_ns)
{
	uint64_t hope_ns = HOPE_SESSIONS * session->timeout_ns;

	if (hope_ns > HOPE_NS)
		hope_ns = HOPE_NS;
	return session->established && session->waiting_ns != NEVER_NS &&
	       now_ns >= session->waiting_ns + hope_ns;
}

static bool is_attempting(const struct zookeeper_session *session)
{
	return session->phase == PHASE_CONNECTING || session->phase == PHASE_PREPARING;
}

uint64_t zookeeper_session_tend(struct zookeeper_session *session, struct pollfd *socket)
{
	uint64_t now_ns = clock_ns(), until_ns;

	if (session->over)
		expire_session(session, session->over);
	else if (is_hopeless(session, now_ns))
		expire_session(session, "no request of it was answered for too long");
	if (session->phase == PHASE_RESTING && session->rest_ns <= now_ns)
		begin_attempt(session, now_ns);
	if (is_attempting(session) && session->attempt_ns <= now_ns) {
		session->silent++;
		drop_connection(session, "a server does not answer");
	}
	if (session->phase == PHASE_CLOSED)
		return NEVER_NS;
	if (session->phase == PHASE_RESTING)
		return session->rest_ns;
	until_ns = ask_library(session, now_ns, socket);
	return is_attempting(session) && session->attempt_ns < until_ns ? session->attempt_ns
									: until_ns;
}

void zookeeper_session_process(struct zookeeper_session *session, short events)
{
	int ready = (events & (POLLIN | POLLHUP | POLLERR) ? ZOOKEEPER_READ : 0) |
		    (events & (POLLOUT | POLLERR) ? ZOOKEEPER_WRITE : 0);

	for (int i = 0; i < ANSWERS_MAX && session->phase >= PHASE_CONNECTING; i++) {
		int code = zookeeper_process(session->calls.zhandle, ready);

		look_at_state(session);
		if (session->phase == PHASE_CONNECTING &&
		    zoo_state(session->calls.zhandle) == ZOO_CONNECTED_STATE)
			greet_session(session);
		if (code != ZOK || !(ready & ZOOKEEPER_READ))
			break;
		ready = ZOOKEEPER_READ;
	}
}

void zookeeper_session_send(struct zookeeper_session *session, struct request *request)
{
	if (session->phase != PHASE_CONNECTED) {
		request->answer = ANSWER_UNKNOWN;
		on_answered(&session->calls, request);
		return;
	}
	begin_wait(session);
	calls_send(&session->calls, request);
	look_at_state(session);
}

void zookeeper_session_hang_up(struct zookeeper_session *session)
{
	if (session->phase >= PHASE_PREPARING)
		drop_connection(session, "no answer in time");
}

void zookeeper_session_init(struct zookeeper_session *session)
{
	session->calls.path = session->path;
	session->calls.acl = session->credentials ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
	session->calls.check = on_check;
	session->calls.answered = on_answered;
	session->calls.changed = on_changed;
	session->calls.prepared = on_prepared;
	calls_init(&session->calls);
}
