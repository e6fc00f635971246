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

struct endpoint {
	char host[SERVER_HOST_TEXT];
	char port[PORT_TEXT];
	bool is_name;
	bool busy; /* a thread looks it up */
	uint32_t address_count;
	char addresses[SERVER_ADDRESSES_MAX][SERVER_ADDRESS_TEXT];
};

struct addresses {
	pthread_mutex_t mutex; /* of all that follows */
	uint32_t users;	       /* the owner, and the threads that look up */
	uint32_t count;
	struct endpoint list[SERVERS_MAX];
};

struct look_up {
	struct addresses *addresses;
	struct endpoint *endpoint;
	int wake; /* descriptor of its own */
};

/* Adds the addresses of @found to @endpoint. */
static void take_addresses(struct endpoint *endpoint, const struct addrinfo *found)
{
	char address[SERVER_ADDRESS_TEXT - PORT_TEXT - 1];

	endpoint->address_count = 0;
	for (; found && endpoint->address_count < SERVER_ADDRESSES_MAX; found = found->ai_next) {
		if (getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof(address), NULL,
				0, NI_NUMERICHOST))
			continue;
		snprintf(endpoint->addresses[endpoint->address_count++], SERVER_ADDRESS_TEXT,
			 "%s:%s", address, endpoint->port);
	}
}

/* Takes the address that @endpoint is given by, if it is one. */
static bool take_numeric(struct endpoint *endpoint)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found;

	if (getaddrinfo(endpoint->host, NULL, &hints, &found))
		return false;
	take_addresses(endpoint, found);
	freeaddrinfo(found);
	return true;
}

static int explain_wrong(char error[ERROR_TEXT], const char *what, const char *text, size_t length)
{
	snprintf(error, ERROR_TEXT, "%s: '%.*s'", what, length > 200 ? 200 : (int)length, text);
	return -1;
}

static bool is_port(const char *text, size_t length)
{
	return length > 0 && length < PORT_TEXT && strspn(text, "0123456789") >= length &&
	       strtoul(text, NULL, 10) > 0 && strtoul(text, NULL, 10) <= PORT_MAX;
}

/* Tells whether @text may be a name: of digits alone it would be a wrong address. */
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

/* Parses HOST[:PORT] in the first @length bytes of @text. */
static int parse_server(struct endpoint *endpoint, const char *text, size_t length,
			char error[ERROR_TEXT])
{
	bool bracket = *text == '[';
	const char *end = text + length, *host = text + bracket;
	const char *host_end = memchr(text, bracket ? ']' : ':', length);
	const char *port = host_end ? host_end + bracket : end;

	if (!length)
		return explain_wrong(error, "a server is missing in the source", text,
				     strlen(text));
	if (bracket && !host_end)
		return explain_wrong(error, "a bracket is missing", text, length);
	if (!host_end)
		host_end = end;
	if ((size_t)(host_end - host) >= SERVER_HOST_TEXT)
		return explain_wrong(error, "the name of a server is too long", text, length);
	snprintf(endpoint->host, sizeof(endpoint->host), "%.*s", (int)(host_end - host), host);
	if (port != end && (*port != ':' || !is_port(port + 1, (size_t)(end - port - 1))))
		return explain_wrong(error,
				     bracket || !memchr(port + 1, ':', (size_t)(end - port - 1))
					     ? "not a port (1 to 65535)"
					     : "an IPv6 address must be in brackets",
				     text, length);
	snprintf(endpoint->port, sizeof(endpoint->port), "%s", DEFAULT_PORT);
	if (port != end)
		snprintf(endpoint->port, sizeof(endpoint->port), "%.*s", (int)(end - port - 1),
			 port + 1);
	endpoint->is_name = !take_numeric(endpoint);
	if (endpoint->is_name && (bracket || !is_name(endpoint->host)))
		return explain_wrong(error,
				     bracket ? "not an IPv6 address" : "not the name of a server",
				     text, length);
	return 0;
}

struct addresses *addresses_new(const char *text, char error[ERROR_TEXT])
{
	struct addresses *addresses = calloc(1, sizeof(*addresses));
	const char *next;

	if (!addresses) {
		snprintf(error, ERROR_TEXT, "no memory");
		return NULL;
	}
	pthread_mutex_init(&addresses->mutex, NULL);
	addresses->users = 1;
	for (; text; text = next ? next + 1 : NULL) {
		next = strchr(text, ',');
		if (addresses->count == SERVERS_MAX) {
			snprintf(error, ERROR_TEXT, "more than %d servers", SERVERS_MAX);
			break;
		}
		if (parse_server(&addresses->list[addresses->count], text,
				 next ? (size_t)(next - text) : strlen(text), error))
			break;
		addresses->count++;
	}
	if (!text)
		return addresses;
	addresses_free(addresses);
	return NULL;
}

void addresses_free(struct addresses *addresses)
{
	bool last;

	if (!addresses)
		return;
	pthread_mutex_lock(&addresses->mutex);
	last = !--addresses->users;
	pthread_mutex_unlock(&addresses->mutex);
	if (!last)
		return;
	pthread_mutex_destroy(&addresses->mutex);
	free(addresses);
}

/* Looks up one name, in a thread. */
static void *look_up(void *argument)
{
	static const uint64_t one = 1;
	struct look_up *task = argument;
	struct endpoint *endpoint = task->endpoint, before;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
	bool changed = false;

	/* The name does not change, and no other thread writes while it is busy. */
	if (getaddrinfo(endpoint->host, NULL, &hints, &found))
		found = NULL;
	pthread_mutex_lock(&task->addresses->mutex);
	if (found) {
		before = *endpoint;
		take_addresses(endpoint, found);
		changed = memcmp(&before, endpoint, sizeof(before)) != 0;
	}
	endpoint->busy = false;
	pthread_mutex_unlock(&task->addresses->mutex);
	if (found)
		freeaddrinfo(found);
	if (changed && write(task->wake, &one, sizeof(one)) < 0)
		changed = false; /* it is full, and so its reader wakes anyway */
	close(task->wake);
	addresses_free(task->addresses);
	free(task);
	return NULL;
}

/* Starts the look-up of one name. Under the mutex. */
static void start_look_up(struct addresses *addresses, struct endpoint *endpoint, int wake)
{
	struct look_up *task = malloc(sizeof(*task));
	pthread_t thread;

	if (!task)
		return;
	*task = (struct look_up){addresses, endpoint, dup(wake)};
	if (task->wake < 0 || pthread_create(&thread, NULL, look_up, task)) {
		if (task->wake >= 0)
			close(task->wake);
		free(task);
		return;
	}
	pthread_detach(thread);
	endpoint->busy = true;
	addresses->users++;
}

void addresses_look_up(struct addresses *addresses, int wake)
{
	pthread_mutex_lock(&addresses->mutex);
	for (uint32_t i = 0; i < addresses->count; i++) {
		if (addresses->list[i].is_name && !addresses->list[i].busy)
			start_look_up(addresses, &addresses->list[i], wake);
	}
	pthread_mutex_unlock(&addresses->mutex);
}

uint32_t addresses_count(struct addresses *addresses)
{
	uint32_t count = 0;

	pthread_mutex_lock(&addresses->mutex);
	for (uint32_t i = 0; i < addresses->count; i++)
		count += addresses->list[i].address_count;
	pthread_mutex_unlock(&addresses->mutex);
	return count;
}

bool addresses_address(struct addresses *addresses, uint32_t turn,
		       char address[SERVER_ADDRESS_TEXT])
{
	const char *known[SERVERS_MAX * SERVER_ADDRESSES_MAX];
	uint32_t count = 0;

	pthread_mutex_lock(&addresses->mutex);
	for (uint32_t i = 0; i < addresses->count; i++) {
		for (uint32_t k = 0; k < addresses->list[i].address_count; k++)
			known[count++] = addresses->list[i].addresses[k];
	}
	if (count)
		memcpy(address, known[turn % count], SERVER_ADDRESS_TEXT);
	pthread_mutex_unlock(&addresses->mutex);
	return count;
}
