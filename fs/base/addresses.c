/* addresses - parsing and looking up, see addresses.h. */
#include "fs/base/addresses.h"

#include <ctype.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char DEFAULT_PORT[] = "2181";

enum { PORT_MAX = 65535, PORT_TEXT = 6 };

struct server {
	char host[SERVER_HOST_TEXT];
	char port[PORT_TEXT];
	bool is_name;
	bool busy; /* a thread looks it up */
	uint32_t address_count;
	char addresses[SERVER_ADDRESSES_MAX][SERVER_ADDRESS_TEXT];
};

struct servers {
	pthread_mutex_t mutex; /* of all that follows */
	uint32_t users;	       /* the owner, and the threads that look up */
	uint32_t count;
	struct server list[SERVERS_MAX];
};

struct look_up {
	struct servers *servers;
	struct server *server;
	int wake; /* descriptor of its own */
};

/* Adds the addresses of @found to @server. */
static void take_addresses(struct server *server, const struct addrinfo *found)
{
	char address[SERVER_ADDRESS_TEXT - PORT_TEXT - 1];

	server->address_count = 0;
	for (; found && server->address_count < SERVER_ADDRESSES_MAX; found = found->ai_next) {
		if (getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof(address), NULL,
				0, NI_NUMERICHOST))
			continue;
		snprintf(server->addresses[server->address_count++], SERVER_ADDRESS_TEXT, "%s:%s",
			 address, server->port);
	}
}

/* Takes the address that @server is given by, if it is one. */
static bool take_numeric(struct server *server)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;

	if (getaddrinfo(server->host, NULL, &hints, &found))
		return false;
	take_addresses(server, found);
	freeaddrinfo(found);
	return true;
}

static int wrong(char error[ERROR_TEXT], const char *what, const char *text, size_t length)
{
	snprintf(error, ERROR_TEXT, "%s: '%.*s'", what, length > 200 ? 200 : (int)length, text);
	return -1;
}

static bool is_port(const char *text, size_t length)
{
	return length > 0 && length < PORT_TEXT && strspn(text, "0123456789") >= length &&
	       strtoul(text, NULL, 10) > 0 && strtoul(text, NULL, 10) <= PORT_MAX;
}

/* Of digits alone it would be an address that is none. */
static bool is_name(const char *text)
{
	if (!text[strspn(text, "0123456789.")])
		return false;
	for (const char *c = text; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("-._", *c))
			return false;
	}
	return true;
}

/* HOST[:PORT] in the first @length bytes of @text. */
static int parse_server(struct server *server, const char *text, size_t length,
			char error[ERROR_TEXT])
{
	bool bracket = *text == '[';
	const char *end = text + length, *host = text + bracket;
	const char *host_end = memchr(text, bracket ? ']' : ':', length);
	const char *port = host_end ? host_end + bracket : end;

	if (!length)
		return wrong(error, "a server is missing in the source", text, strlen(text));
	if (bracket && !host_end)
		return wrong(error, "a bracket is missing", text, length);
	if (!host_end)
		host_end = end;
	if ((size_t)(host_end - host) >= SERVER_HOST_TEXT)
		return wrong(error, "the name of a server is too long", text, length);
	snprintf(server->host, sizeof(server->host), "%.*s", (int)(host_end - host), host);
	if (port != end && (*port != ':' || !is_port(port + 1, (size_t)(end - port - 1))))
		return wrong(error,
			     bracket || !memchr(port + 1, ':', (size_t)(end - port - 1))
				     ? "not a port (1 to 65535)"
				     : "an IPv6 address must be in brackets",
			     text, length);
	snprintf(server->port, sizeof(server->port), "%s", DEFAULT_PORT);
	if (port != end)
		snprintf(server->port, sizeof(server->port), "%.*s", (int)(end - port - 1),
			 port + 1);
	server->is_name = !take_numeric(server);
	if (server->is_name && (bracket || !is_name(server->host)))
		return wrong(error, bracket ? "not an IPv6 address" : "not the name of a server",
			     text, length);
	return 0;
}

struct servers *servers_new(const char *text, char error[ERROR_TEXT])
{
	struct servers *servers = calloc(1, sizeof(*servers));
	const char *next;

	if (!servers) {
		snprintf(error, ERROR_TEXT, "no memory");
		return NULL;
	}
	pthread_mutex_init(&servers->mutex, NULL);
	servers->users = 1;
	for (; text; text = next ? next + 1 : NULL) {
		next = strchr(text, ',');
		if (servers->count == SERVERS_MAX) {
			snprintf(error, ERROR_TEXT, "more than %d servers", SERVERS_MAX);
			break;
		}
		if (parse_server(&servers->list[servers->count], text,
				 next ? (size_t)(next - text) : strlen(text), error))
			break;
		servers->count++;
	}
	if (!text)
		return servers;
	servers_free(servers);
	return NULL;
}

void servers_free(struct servers *servers)
{
	bool last;

	if (!servers)
		return;
	pthread_mutex_lock(&servers->mutex);
	last = !--servers->users;
	pthread_mutex_unlock(&servers->mutex);
	if (!last)
		return;
	pthread_mutex_destroy(&servers->mutex);
	free(servers);
}

/* A thread: looks up one name. */
static void *look_up(void *argument)
{
	static const uint64_t one = 1;
	struct look_up *task = argument;
	struct server *server = task->server, before;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	bool changed = false;

	/* The name does not change, and nobody else writes while it is busy. */
	if (getaddrinfo(server->host, NULL, &hints, &found))
		found = NULL;
	pthread_mutex_lock(&task->servers->mutex);
	if (found) {
		before = *server;
		take_addresses(server, found);
		changed = memcmp(&before, server, sizeof(before)) != 0;
	}
	server->busy = false;
	pthread_mutex_unlock(&task->servers->mutex);
	if (found)
		freeaddrinfo(found);
	if (changed && write(task->wake, &one, sizeof(one)) < 0)
		changed = false; /* it is full: whoever reads it wakes anyway */
	close(task->wake);
	servers_free(task->servers);
	free(task);
	return NULL;
}

/* Under the mutex. */
static void start(struct servers *servers, struct server *server, int wake)
{
	struct look_up *task = malloc(sizeof(*task));
	pthread_t thread;

	if (!task)
		return;
	*task = (struct look_up){servers, server, dup(wake)};
	if (task->wake < 0 || pthread_create(&thread, NULL, look_up, task)) {
		if (task->wake >= 0)
			close(task->wake);
		free(task);
		return;
	}
	pthread_detach(thread);
	server->busy = true;
	servers->users++;
}

void servers_look_up(struct servers *servers, int wake)
{
	pthread_mutex_lock(&servers->mutex);
	for (uint32_t i = 0; i < servers->count; i++) {
		if (servers->list[i].is_name && !servers->list[i].busy)
			start(servers, &servers->list[i], wake);
	}
	pthread_mutex_unlock(&servers->mutex);
}

uint32_t servers_count(struct servers *servers)
{
	uint32_t count = 0;

	pthread_mutex_lock(&servers->mutex);
	for (uint32_t i = 0; i < servers->count; i++)
		count += servers->list[i].address_count;
	pthread_mutex_unlock(&servers->mutex);
	return count;
}

bool servers_address(struct servers *servers, uint32_t turn, char address[SERVER_ADDRESS_TEXT])
{
	const char *known[SERVERS_MAX * SERVER_ADDRESSES_MAX];
	uint32_t count = 0;

	pthread_mutex_lock(&servers->mutex);
	for (uint32_t i = 0; i < servers->count; i++) {
		for (uint32_t k = 0; k < servers->list[i].address_count; k++)
			known[count++] = servers->list[i].addresses[k];
	}
	if (count)
		memcpy(address, known[turn % count], SERVER_ADDRESS_TEXT);
	pthread_mutex_unlock(&servers->mutex);
	return count;
}
