/* proxy - see proxy.h. */
#include "proxy.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 32, TICK_MS = 2, GREETING_MAX = 256, BUFFER = 65536 };

struct pair {
	int client, server;
	bool greeted; /* something came from the server */
};

struct proxy {
	int listener;
	uint16_t port, server_port;
	pthread_t thread;
	atomic_int mode;
	atomic_uint accepted;
	atomic_uint cuts, cuts_done;
	atomic_bool stop;
	struct pair pairs[PAIRS_MAX];
	int count;
};

static void close_pair(struct proxy *proxy, int i)
{
	struct linger reset = {.l_onoff = 1};

	setsockopt(proxy->pairs[i].client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(proxy->pairs[i].client);
	close(proxy->pairs[i].server);
	proxy->pairs[i] = proxy->pairs[--proxy->count];
}

static void accept_pair(struct proxy *proxy)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(proxy->server_port)};
	int client = accept(proxy->listener, NULL, NULL), server;

	if (client < 0)
		return;
	atomic_fetch_add(&proxy->accepted, 1);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (atomic_load(&proxy->mode) == PROXY_REFUSE || proxy->count == PAIRS_MAX ||
	    connect(server, (struct sockaddr *)&to, sizeof(to))) {
		close(client);
		close(server);
		return;
	}
	proxy->pairs[proxy->count++] = (struct pair){.client = client, .server = server};
}

/* Moves what is there from one to the other; false at the end. */
static bool move(int from, int to)
{
	static _Thread_local char buffer[BUFFER];
	ssize_t got = recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);

	if (got <= 0)
		return got < 0; /* nothing there, or the end */
	return send(to, buffer, (size_t)got, MSG_NOSIGNAL) == got;
}

/*
 * Moves the server's first message, once it is there as a whole, and nothing behind it; false at
 * the end.
 */
static bool greet(struct pair *pair)
{
	char buffer[GREETING_MAX];
	uint32_t length;
	ssize_t got = recv(pair->server, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_PEEK);

	if (got < (ssize_t)sizeof(length))
		return got != 0;
	memcpy(&length, buffer, sizeof(length));
	length = ntohl(length) + (uint32_t)sizeof(length);
	if (length > sizeof(buffer))
		return false;
	if (got < (ssize_t)length)
		return true;
	pair->greeted = true;
	return recv(pair->server, buffer, length, 0) == (ssize_t)length &&
	       send(pair->client, buffer, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void move_all(struct proxy *proxy)
{
	int mode = atomic_load(&proxy->mode);

	for (int i = proxy->count - 1; i >= 0; i--) {
		struct pair *pair = &proxy->pairs[i];
		bool greets = mode == PROXY_GREET && !pair->greeted;

		if (mode >= PROXY_STALL)
			continue;
		if (!move(pair->client, pair->server) ||
		    (mode == PROXY_FLOW && !move(pair->server, pair->client)) ||
		    (greets && !greet(pair)))
			close_pair(proxy, i);
	}
}

static void *work(void *argument)
{
	struct proxy *proxy = argument;

	while (!atomic_load(&proxy->stop)) {
		struct pollfd polled = {.fd = proxy->listener, .events = POLLIN};
		unsigned int cuts = atomic_load(&proxy->cuts);

		if (poll(&polled, 1, TICK_MS) > 0)
			accept_pair(proxy);
		move_all(proxy);
		while (cuts != atomic_load(&proxy->cuts_done) && proxy->count)
			close_pair(proxy, proxy->count - 1);
		atomic_store(&proxy->cuts_done, cuts);
	}
	while (proxy->count)
		close_pair(proxy, proxy->count - 1);
	return NULL;
}

struct proxy *proxy_start(uint16_t server_port)
{
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t length = sizeof(at);

	assert(proxy);
	proxy->server_port = server_port;
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(proxy->listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(proxy->listener, 16) ||
	    getsockname(proxy->listener, (struct sockaddr *)&at, &length) ||
	    pthread_create(&proxy->thread, NULL, work, proxy))
		abort();
	proxy->port = ntohs(at.sin_port);
	return proxy;
}

void proxy_stop(struct proxy *proxy)
{
	atomic_store(&proxy->stop, true);
	pthread_join(proxy->thread, NULL);
	close(proxy->listener);
	free(proxy);
}

uint16_t proxy_port(const struct proxy *proxy)
{
	return proxy->port;
}

void proxy_set(struct proxy *proxy, enum proxy_mode mode)
{
	atomic_store(&proxy->mode, mode);
}

void proxy_cut(struct proxy *proxy)
{
	unsigned int cut = atomic_fetch_add(&proxy->cuts, 1) + 1;

	while (atomic_load(&proxy->cuts_done) != cut)
		usleep(1000);
}

unsigned int proxy_count(struct proxy *proxy)
{
	return atomic_load(&proxy->accepted);
}
