/*
 * http_client - a client of HTTP at a unix socket, timed.
 *
 *	http_client SOCKET URL CONNECTIONS DEPTH SECONDS
 *
 * Each connection keeps DEPTH requests for URL under way. Prints `name value` lines: answers a
 * second, how many were not 2xx, and times from a request to its answer, in microseconds.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "sample.h"

enum {
	CONNECTIONS_MAX = 256,
	DEPTH_MAX = 64,
	TEXT_MAX = 65536,
	SAMPLES_MAX = 4000000,
	WAIT_MS = 60000,
};

struct connection {
	int socket;
	int64_t sent_ns[DEPTH_MAX]; /* of requests under way, a ring */
	unsigned int next;	    /* that is answered */
	char text[TEXT_MAX + 1];    /* read, and not a whole answer yet */
	size_t length;
};

struct run {
	char request[TEXT_MAX];
	size_t size; /* of @request */
	unsigned int depth;
	long answers, refused;
	struct sample sample;
};

static _Noreturn void stop(const char *what)
{
	fprintf(stderr, "http_client: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int opened = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (opened < 0 || connect(opened, (struct sockaddr *)&address, sizeof(address)))
		stop(path);
	return opened;
}

/* Sends @count requests in one piece. */
static void send_requests(const struct run *run, struct connection *connection, unsigned int count)
{
	static char text[DEPTH_MAX * 1024];
	size_t size = 0;
	int64_t now_ns = sample_now_ns();

	for (unsigned int i = 0; i < count; i++) {
		unsigned int place = (connection->next + run->depth - count + i) % run->depth;

		connection->sent_ns[place] = now_ns;
		memcpy(text + size, run->request, run->size);
		size += run->size;
	}
	if (write(connection->socket, text, size) != (ssize_t)size)
		stop("write");
}

/* Returns the length of the answer at the beginning of @text, 0 if it is not whole. */
static size_t answer_length(const char *text)
{
	const char *end = strstr(text, "\r\n\r\n"),
		   *field = strcasestr(text, "\r\ncontent-length:");
	size_t length;

	if (!end)
		return 0;
	length = (size_t)(end - text) + 4;
	if (field && field < end)
		length += strtoul(field + strlen("\r\ncontent-length:"), NULL, 10);
	return strlen(text) >= length ? length : 0;
}

/* Reads what is there, and sends a request for each answer. */
static void take_answers(struct run *run, struct connection *connection)
{
	ssize_t got = read(connection->socket, connection->text + connection->length,
			   TEXT_MAX - connection->length);
	size_t length, used = 0;
	unsigned int count = 0;
	int64_t now_ns = sample_now_ns();

	if (got <= 0)
		stop("read");
	connection->length += (size_t)got;
	connection->text[connection->length] = '\0';
	while ((length = answer_length(connection->text + used))) {
		run->refused += connection->text[used + strlen("HTTP/1.1 ")] != '2';
		if (run->sample.count < run->sample.max)
			sample_add(&run->sample, now_ns - connection->sent_ns[connection->next]);
		connection->next = (connection->next + 1) % run->depth;
		used += length;
		count++;
	}
	connection->length -= used;
	memmove(connection->text, connection->text + used, connection->length + 1);
	run->answers += count;
	if (count)
		send_requests(run, connection, count);
}

int main(int argc, char **argv)
{
	static struct connection connections[CONNECTIONS_MAX];
	static struct pollfd polled[CONNECTIONS_MAX];
	static struct run run;
	int64_t begin_ns, end_ns;
	unsigned int count;

	if (argc != 6)
		return EXIT_FAILURE;
	count = (unsigned int)atoi(argv[3]);
	run.depth = (unsigned int)atoi(argv[4]);
	run.size = (size_t)snprintf(run.request, sizeof(run.request),
				    "GET %s HTTP/1.1\r\nHost: rate\r\n\r\n", argv[2]);
	if (!count || count > CONNECTIONS_MAX || !run.depth || run.depth > DEPTH_MAX ||
	    run.size > 1024)
		return EXIT_FAILURE;
	run.sample = sample_make(SAMPLES_MAX);
	begin_ns = sample_now_ns();
	end_ns = begin_ns + (int64_t)(atof(argv[5]) * NS_PER_S);
	for (unsigned int i = 0; i < count; i++) {
		connections[i].socket = connect_to(argv[1]);
		polled[i] = (struct pollfd){.fd = connections[i].socket, .events = POLLIN};
		send_requests(&run, &connections[i], run.depth);
	}
	while (sample_now_ns() < end_ns) {
		if (poll(polled, count, WAIT_MS) <= 0)
			stop("no answer");
		for (unsigned int i = 0; i < count; i++) {
			if (polled[i].revents)
				take_answers(&run, &connections[i]);
		}
	}
	printf("answers_per_s %.6g\n",
	       (double)run.answers * NS_PER_S / (double)(sample_now_ns() - begin_ns));
	printf("answers %ld\nrefused %ld\n", run.answers, run.refused);
	sample_print(&run.sample, "");
	return EXIT_SUCCESS;
}
