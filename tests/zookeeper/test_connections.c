/* test_connections - connections and sessions that end. */
#include "check.h"
#include "host.h"
#include "proxy.h"
#include "server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A host that is connected through @proxy. */
static struct host *start(struct proxy *proxy, const char *path)
{
	struct host *host = host_start(at(proxy_port(proxy)), path, NULL);

	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	return host;
}

static void test_lost_answer(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/lost"), *other = start(proxy, "/lost");
	struct host *witness = host_start(at(server_port), "/lost", NULL);
	struct request *request = host_request_transaction(), *seen = host_request_get("/n", true),
		       *after = host_request_get("/n", false);
	uint64_t session = host_session(host);

	CHECK(host_wait(witness, TOLD_CONNECTED, 1));
	host_create(host, "/n", "", 0);
	CHECK_IS(host_ask(witness, seen), ANSWER_OK);
	proxy_set(proxy, PROXY_HOLD_ANSWERS);
	host_request_add(request, OPERATION_SET, "/n", "done", 0);
	host_send(host, request);
	CHECK(host_wait(witness, TOLD_CHANGED, 1));
	CHECK_IS(host_answers(host), 1);
	proxy_cut(proxy);
	proxy_set(proxy, PROXY_FLOW);
	CHECK_IS(host_answer(host, request), ANSWER_UNKNOWN);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), 1);
	CHECK(host_session(host) == session);
	CHECK_IS(host_ask(host, after), ANSWER_OK);
	CHECK_IS(after->version, 1);
	CHECK_IS(host_answers(host), 3);
	host_request_free(request);
	host_request_free(seen);
	host_request_free(after);
	host_stop(witness);
	host_stop(other);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_without_connection(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/without");

	proxy_set(proxy, PROXY_REFUSE);
	proxy_cut(proxy);
	CHECK(host_wait(host, TOLD_DISCONNECTED, 1));
	CHECK_IS(host_get(host, "/"), ANSWER_UNKNOWN);
	CHECK_IS(host_set(host, "/", "x", 0), ANSWER_UNKNOWN);
	proxy_set(proxy, PROXY_FLOW);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK_IS(host_set(host, "/", "x", 0), ANSWER_OK);
	host_stop(host);
	proxy_stop(proxy);
}

/*
 * The library says nothing of a send that fails. The thread waits with an answer while the
 * connection is reset, and then sends before it looks at the socket.
 */
static void test_failed_send(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/send");
	struct request *before = host_request_get("/n", false),
		       *after = host_request_get("/n", false), *sent[3];

	host_create(host, "/n", "", 0);
	host_hold(host);
	host_send_held(host, before);
	usleep(500000); /* its answer arrives */
	proxy_cut(proxy);
	for (int i = 0; i < 3; i++) {
		sent[i] = host_request_transaction();
		host_request_add(sent[i], OPERATION_SET, "/n", "x", NODE_VERSION_ANY);
		host_send_held(host, sent[i]);
	}
	host_let_go(host);
	CHECK_IS(host_answer(host, before), ANSWER_OK);
	for (int i = 0; i < 3; i++)
		CHECK_IS(host_answer(host, sent[i]), ANSWER_UNKNOWN);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK_IS(host_ask(host, after), ANSWER_OK);
	CHECK_IS(after->version, 0);
	CHECK_IS(host_answers(host), 6);
	for (int i = 0; i < 3; i++)
		host_request_free(sent[i]);
	host_request_free(before);
	host_request_free(after);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_reset_while_sending(void)
{
	enum { COUNT = 3000, ROUNDS = 10 };
	static struct request *requests[COUNT];
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/reset");
	uint64_t session = host_session(host);
	unsigned int unknown = 0;

	host_create(host, "/n", "", 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++) {
			requests[i] = host_request_transaction();
			host_request_add(requests[i], OPERATION_SET, "/n", "x", NODE_VERSION_ANY);
			host_send(host, requests[i]);
			if (i == COUNT / 3)
				proxy_cut(proxy);
		}
		for (int i = 0; i < COUNT; i++) {
			enum answer answer = host_answer(host, requests[i]);

			CHECK(answer == ANSWER_OK || answer == ANSWER_UNKNOWN);
			unknown += answer == ANSWER_UNKNOWN;
			host_request_free(requests[i]);
		}
		CHECK(host_wait(host, TOLD_CONNECTED, round + 2));
		CHECK_IS(host_get(host, "/n"), ANSWER_OK);
	}
	CHECK(unknown > 0);
	CHECK_IS(host_answers(host), 1 + ROUNDS * (COUNT + 1));
	CHECK(host_session(host) == session);
	CHECK_IS(host_count(host, TOLD_EXPIRED), 0);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), host_count(host, TOLD_CONNECTED) - 1);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_hang_up(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/hang");
	struct request *request = host_request_get("/", false);
	uint64_t session = host_session(host), began_ms;

	proxy_set(proxy, PROXY_HOLD_ANSWERS);
	host_send(host, request);
	usleep(50000);
	began_ms = host_now_ms();
	host_hang_up(host);
	CHECK_IS(host_answer(host, request), ANSWER_UNKNOWN);
	CHECK(host_now_ms() - began_ms < SESSION_MS / 2); /* without: after 2/3 */
	proxy_set(proxy, PROXY_FLOW);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK(host_session(host) == session);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), 1);
	host_request_free(request);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_other_server(void)
{
	struct proxy *proxies[2] = {proxy_start(server_port), proxy_start(server_port)};
	char servers[80];
	struct host *host;

	snprintf(servers, sizeof(servers), "127.0.0.1:%u,127.0.0.1:%u", proxy_port(proxies[0]),
		 proxy_port(proxies[1]));
	host = host_start(servers, "/other", NULL);
	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	for (unsigned int i = 0; i < 6; i++) {
		host_hang_up(host);
		CHECK(host_wait(host, TOLD_CONNECTED, i + 2));
		/* By turns: as many here as there, or one more. */
		CHECK(proxy_count(proxies[0]) + 1 >= proxy_count(proxies[1]));
		CHECK(proxy_count(proxies[1]) + 1 >= proxy_count(proxies[0]));
	}
	CHECK_IS(proxy_count(proxies[0]) + proxy_count(proxies[1]), 7);
	host_stop(host);
	proxy_stop(proxies[0]);
	proxy_stop(proxies[1]);
}

/* Connects with @first before a server that answers, several times: the order is drawn. */
static void check_beside(const char *first, unsigned int most_ms)
{
	char servers[300];

	snprintf(servers, sizeof(servers), "%s,127.0.0.1:%u", first, server_port);
	for (int i = 0; i < 6; i++) {
		struct host *host = host_start(servers, "/beside", NULL);

		CHECK(host_wait_ms(host, TOLD_CONNECTED, 1, most_ms));
		host_stop(host);
	}
}

static void test_dead_server(void)
{
	check_beside("127.0.0.1:1", 3000);
	check_beside("127.0.0.1:1,127.0.0.1:2,127.0.0.1:3", 4000);
}

/* The one that it is connected to goes down. */
static void test_server_goes_down(void)
{
	struct proxy *proxies[2] = {proxy_start(server_port), proxy_start(server_port)};
	char servers[80];
	struct host *host;

	snprintf(servers, sizeof(servers), "127.0.0.1:%u,127.0.0.1:%u", proxy_port(proxies[0]),
		 proxy_port(proxies[1]));
	host = host_start(servers, "/down", NULL);
	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t began_ms;

		usleep(1100000); /* long enough to be no failure */
		proxy_set(proxies[i % 2], PROXY_REFUSE);
		proxy_cut(proxies[i % 2]);
		began_ms = host_now_ms();
		while (host_get(host, "/") != ANSWER_OK && host_now_ms() - began_ms < WAIT_MS)
			usleep(10000);
		CHECK_IS(host_get(host, "/"), ANSWER_OK);
		proxy_set(proxies[i % 2], PROXY_FLOW);
	}
	host_stop(host);
	proxy_stop(proxies[0]);
	proxy_stop(proxies[1]);
}

static void test_unknown_name(void)
{
	check_beside("no-such-server.invalid:2181", 3000);
}

static void test_name(void)
{
	struct host *host;
	char servers[32];

	snprintf(servers, sizeof(servers), "localhost:%u", server_port);
	host = host_start(servers, "/name", NULL);
	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	host_stop(host);
}

static void test_silent_server(void)
{
	struct proxy *proxy = proxy_start(server_port);

	proxy_set(proxy, PROXY_STALL);
	check_beside(at(proxy_port(proxy)), 4000);
	proxy_stop(proxy);
}

static void test_restart(void)
{
	struct host *host = host_start_long(at(server_port), "/restart");
	uint64_t session;

	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	session = host_session(host);
	CHECK_IS(host_create(host, "/h", "", NODE_EPHEMERAL), ANSWER_OK);
	server_kill();
	CHECK(host_wait(host, TOLD_DISCONNECTED, 1));
	usleep(SESSION_MS * 1000);
	server_start(directory, server_port);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK(host_session(host) == session);
	CHECK_IS(host_get(host, "/h"), ANSWER_OK);
	CHECK_IS(host_count(host, TOLD_EXPIRED), 0);
	host_stop(host);
}

static void test_expiry(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/expiry");
	struct request *request = host_request_get("/h", false);
	uint64_t session = host_session(host);

	CHECK_IS(host_create(host, "/h", "", NODE_EPHEMERAL), ANSWER_OK);
	proxy_set(proxy, PROXY_STALL);
	host_send(host, request);
	usleep(SESSION_MS * 2000);
	proxy_set(proxy, PROXY_FLOW);
	CHECK(host_wait(host, TOLD_EXPIRED, 1));
	CHECK_IS(host_answer(host, request), ANSWER_UNKNOWN);
	CHECK_IS(host_get(host, "/h"), ANSWER_UNKNOWN);
	CHECK(!host_wait_ms(host, TOLD_CONNECTED, 2, 300));
	host_open(host);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK(host_session(host) != session);
	CHECK_IS(host_get(host, "/h"), ANSWER_NO_NODE);
	host_request_free(request);
	host_stop(host);
	proxy_stop(proxy);
}

/*
 * The server hangs up after each handshake, as one does that cannot take the watches that are set
 * again.
 */
static void test_handshakes_alone(void)
{
	enum { HOPE_MS = 10 * SESSION_MS, LATE_MS = 5000 };
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/alone");
	uint64_t session = host_session(host), began_ms = host_now_ms();

	proxy_set(proxy, PROXY_GREET);
	proxy_cut(proxy);
	while (!host_count(host, TOLD_EXPIRED) && host_now_ms() - began_ms < HOPE_MS + LATE_MS)
		CHECK_IS(host_get(host, "/"), ANSWER_UNKNOWN);
	CHECK(host_count(host, TOLD_CONNECTED) > 3);
	CHECK_IS(host_count(host, TOLD_EXPIRED), 1);
	CHECK(host_now_ms() - began_ms > HOPE_MS - LATE_MS);
	proxy_set(proxy, PROXY_FLOW);
	host_open(host);
	CHECK(host_wait_ms(host, TOLD_CONNECTED, host_count(host, TOLD_CONNECTED) + 1, WAIT_MS));
	CHECK(host_session(host) != session);
	CHECK_IS(host_get(host, "/"), ANSWER_OK);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_watch_stays(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/stays");
	struct host *other = host_start(at(server_port), "/stays", NULL);
	struct request *request = host_request_get("/g", true);

	CHECK(host_wait(other, TOLD_CONNECTED, 1));
	host_create(host, "/g", "", 0);
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	proxy_set(proxy, PROXY_REFUSE);
	proxy_cut(proxy);
	CHECK_IS(host_set(other, "/g", "x", 0), ANSWER_OK);
	proxy_set(proxy, PROXY_FLOW);
	CHECK(host_wait(host, TOLD_CHANGED, 1));
	CHECK(!strcmp(host_changed(host), "/g"));
	host_request_free(request);
	host_stop(other);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_close(void)
{
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/close");
	struct host *other = host_start(at(server_port), "/close", NULL);
	struct request *request = host_request_get("/", false);
	uint64_t session = host_session(host), began_ms;

	CHECK(host_wait(other, TOLD_CONNECTED, 1));
	CHECK_IS(host_create(host, "/h", "", NODE_EPHEMERAL), ANSWER_OK);
	proxy_set(proxy, PROXY_HOLD_ANSWERS);
	began_ms = host_now_ms();
	host_send(host, request);
	usleep(50000);
	host_close(host);
	CHECK_IS(host_answer(host, request), ANSWER_UNKNOWN);
	proxy_set(proxy, PROXY_FLOW);
	while (host_get(other, "/h") == ANSWER_OK && host_now_ms() - began_ms < SESSION_MS)
		usleep(10000);
	CHECK_IS(host_get(other, "/h"), ANSWER_NO_NODE);
	CHECK(host_now_ms() - began_ms < SESSION_MS); /* it has not expired */
	CHECK_IS(host_get(host, "/"), ANSWER_UNKNOWN);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), 0);
	host_open(host);
	CHECK(host_wait(host, TOLD_CONNECTED, 2));
	CHECK(host_session(host) != session);
	host_request_free(request);
	host_stop(other);
	host_stop(host);
	proxy_stop(proxy);
}

static void test_stop(void)
{
	enum { COUNT = 200 };
	static struct request *requests[COUNT];
	struct proxy *proxy = proxy_start(server_port);
	struct host *host = start(proxy, "/stop");
	uint64_t began_ms;

	proxy_set(proxy, PROXY_STALL);
	for (int i = 0; i < COUNT; i++) {
		requests[i] = host_request_get("/", false);
		host_send(host, requests[i]);
	}
	began_ms = host_now_ms();
	zookeeper_stop(host->source);
	CHECK(host_now_ms() - began_ms < 5000);
	CHECK_IS(host_answers(host), COUNT);
	for (int i = 0; i < COUNT; i++) {
		CHECK_IS(requests[i]->answer, ANSWER_UNKNOWN);
		host_request_free(requests[i]);
	}
	host_stop(host);
	proxy_stop(proxy);
}

static void test_never_there(void)
{
	struct host *host = host_start("127.0.0.1:1,no-such-server.invalid", "/never", NULL);

	CHECK(!host_wait_ms(host, TOLD_CONNECTED, 1, 500));
	CHECK_IS(host_get(host, "/"), ANSWER_UNKNOWN);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED) + host_count(host, TOLD_EXPIRED), 0);
	host_stop(host);
}

const struct test_case connection_cases[] = {
	{"an answer that is lost is unknown, once, and the session goes on", test_lost_answer},
	{"without a connection all is unknown at once", test_without_connection},
	{"a send that fails is noticed, and nothing is sent again", test_failed_send},
	{"a reset while requests are sent has each answered once", test_reset_while_sending},
	{"hanging up ends the connection, not the session", test_hang_up},
	{"after hanging up it is another server's turn", test_other_server},
	{"a server that is down beside one that is not costs little", test_dead_server},
	{"a server that goes down has its connections go to another", test_server_goes_down},
	{"a name that does not resolve beside one that does costs nothing", test_unknown_name},
	{"a name is resolved", test_name},
	{"a server that says nothing beside one that does costs little", test_silent_server},
	{"a server that is started again resumes the session", test_restart},
	{"a session that expired is told, and another can be opened", test_expiry},
	{"a session whose handshakes alone are answered is given up", test_handshakes_alone},
	{"a watch outlives its connection", test_watch_stays},
	{"closing ends the session and answers what is under way", test_close},
	{"stopping takes less than 5 s and answers everything", test_stop},
	{"servers that are never there are tried for as long as it takes", test_never_there},
	{NULL, NULL},
};
