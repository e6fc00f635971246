/* worker - a thread that serves a part of the connections, see worker.h. */
#include "companions/serve/worker.h"

#include "companions/companion.h"
#include "companions/serve/answer.h"
#include "companions/serve/asker.h"
#include "companions/serve/framing.h"
#include "companions/serve/route.h"
#include "core/values/quantity.h"
#include "fs/base/thread.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 256,
	LOOK_MS = 1000,	    /* the longest sleep while there are connections */
	TAKEN_AT_ONCE = 16, /* connections, before those that are there are looked at */
	RUNS_AT_ONCE = 64,
	SPARE = 2 * TAKEN_AT_ONCE, /* connections that are on their way out */
};

/* Grace beyond `within` for the mount to end a wait by itself. */
#define GRACE_NS (2 * NSEC_PER_SEC)

static void watch_file(const struct worker *worker, int file, uint32_t events, struct watch *watch)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	/* Files of a mount that died, or a lack of memory: the wait ends at the next look. */
	(void)epoll_ctl(worker->epoll, EPOLL_CTL_ADD, file, &event);
}

static void unwatch_file(const struct worker *worker, int file)
{
	(void)epoll_ctl(worker->epoll, EPOLL_CTL_DEL, file, NULL);
}

bool worker_hold(struct request *request)
{
	struct connection *connection = request->connection;
	struct worker *worker = connection->worker;

	if (connection->lasts)
		return true;
	if (worker->lasting >= worker->connections_max / 2)
		return false;
	worker->lasting++;
	connection->lasts = true;
	list_remove(&worker->idle, &connection->link);
	return true;
}

/* Puts @connection behind those that are idle for longer. */
static void rest_connection(struct connection *connection)
{
	struct worker *worker = connection->worker;

	if (connection->lasts)
		worker->lasting--;
	else
		list_remove(&worker->idle, &connection->link);
	connection->lasts = false;
	list_append(&worker->idle, &connection->link);
}

/* --- waiting */

static void end_wait(struct worker *worker, struct request *request, int outcome)
{
	struct wait *wait = &request->wait;

	/* To close the file ends the place in the queue. */
	if (wait->file >= 0)
		close(wait->file);
	wait->file = -1;
	unwatch_file(worker, request->connection->socket);
	list_remove(&worker->waits, &wait->link);
	request->outcome = outcome;
	request->stage = request->stage == STAGE_BLOCKED && !outcome ? STAGE_BODY : STAGE_DECIDED;
	MHD_resume_connection(request->connection->mhd);
	worker->mhd_due = true;
}

/* Tells whether the client has closed its side: then it is not there to hear of a token. */
static bool is_gone(const struct request *request)
{
	struct pollfd client = {.fd = request->connection->socket, .events = POLLRDHUP};

	return poll(&client, 1, 0) > 0 && client.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

static void take_turn(struct worker *worker, struct watch *watch, uint32_t events)
{
	struct request *request = container_of(watch, struct request, wait.file_ready);
	int err = -ECANCELED;

	(void)events;
	if (request->wait.file < 0)
		return;
	if (!is_gone(request))
		err = held_read(request->wait.file, &request->granted);
	if (err != -EAGAIN)
		end_wait(worker, request, err);
}

static void lose_client(struct worker *worker, struct watch *watch, uint32_t events)
{
	struct request *request = container_of(watch, struct request, wait.client_gone);

	(void)events;
	if (request->wait.file >= 0)
		end_wait(worker, request, -ECANCELED);
}

/* Goes on with a request for which there is room, or whose client is gone. */
static void use_room(struct worker *worker, struct watch *watch, uint32_t events)
{
	struct request *request = container_of(watch, struct request, wait.client_gone);

	if (request->stage == STAGE_BLOCKED)
		end_wait(worker, request, events & (EPOLLHUP | EPOLLERR) ? -ECANCELED : 0);
}

bool worker_has_room(struct request *request)
{
	struct connection *connection = request->connection;
	struct worker *worker = connection->worker;
	struct pollfd client = {.fd = connection->socket, .events = POLLOUT};

	if (!connection->room && poll(&client, 1, 0) > 0)
		connection->room = ANSWERS_FIT;
	if (connection->room) {
		connection->room--;
		return true;
	}
	request->wait = (struct wait){
		.client_gone = {use_room},
		.file = -1,
		.until_ns = companion_now_ns() + CONNECTION_IDLE_S * NSEC_PER_SEC,
	};
	request->stage = STAGE_BLOCKED;
	list_append(&worker->waits, &request->wait.link);
	MHD_suspend_connection(connection->mhd);
	watch_file(worker, connection->socket, EPOLLOUT, &request->wait.client_gone);
	return false;
}

int worker_wait(struct request *request, int file, uint64_t within_ns)
{
	struct worker *worker = request->connection->worker;
	struct pollfd now = {.fd = file, .events = POLLIN};
	struct wait *wait = &request->wait;
	uint64_t now_ns;
	int err = -EAGAIN;

	/* This poll puts it in the queue, if it has to wait. */
	if (poll(&now, 1, 0) > 0)
		err = held_read(file, &request->granted);
	if (err != -EAGAIN) {
		close(file);
		return err;
	}
	if (!worker_hold(request)) {
		close(file);
		return -EMFILE;
	}
	now_ns = companion_now_ns();
	*wait = (struct wait){
		.file_ready = {take_turn},
		.client_gone = {lose_client},
		.file = file,
		.until_ns = within_ns == NEVER_NS ? NEVER_NS : now_ns + within_ns + GRACE_NS,
	};
	request->stage = STAGE_WAITING;
	list_append(&worker->waits, &wait->link);
	MHD_suspend_connection(request->connection->mhd);
	watch_file(worker, file, EPOLLIN, &wait->file_ready);
	watch_file(worker, request->connection->socket, EPOLLRDHUP, &wait->client_gone);
	return -EINPROGRESS;
}

/* Ends waits that should have ended by themselves, or all of them. */
static void end_overdue(struct worker *worker, uint64_t now_ns, bool all)
{
	struct wait *wait = list_first(&worker->waits, struct wait, link), *next;

	for (; wait; wait = next) {
		struct request *request = container_of(wait, struct request, wait);

		next = list_next(wait, link);
		if (all)
			end_wait(worker, request, -ESHUTDOWN);
		else if (wait->until_ns <= now_ns)
			end_wait(worker, request,
				 request->stage == STAGE_BLOCKED ? -ECANCELED : -EBUSY);
	}
}

/* --- what libmicrohttpd calls */

static void note_connection(void *cls, struct MHD_Connection *mhd, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	struct worker *worker = cls;
	struct connection *connection = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		connection = calloc(1, sizeof(*connection));
		*context = connection;
		atomic_fetch_add(&worker->connections, 1);
		if (!connection)
			return;
		connection->worker = worker;
		connection->mhd = mhd;
		connection->socket =
			MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		list_append(&worker->idle, &connection->link);
		return;
	}
	atomic_fetch_sub(&worker->connections, 1);
	if (!connection)
		return;
	rest_connection(connection);
	list_remove(&worker->idle, &connection->link);
	free(connection);
}

/*
 * Returns the path of @uri. One of the absolute form, http://HOST/PATH, is taken apart, and @host
 * is its host.
 */
static const char *find_path(char *uri, const char **host)
{
	static const char *const schemes[] = {"http://", "https://"};
	size_t scheme, length;
	char *name;

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		scheme = strlen(schemes[i]);
		if (strncasecmp(uri, schemes[i], scheme) != 0)
			continue;
		length = strcspn(uri + scheme, "/?");
		name = memmove(uri, uri + scheme, length);
		name[length] = '\0';
		*host = name;
		return uri[scheme + length] == '/' ? uri + scheme + length : "/";
	}
	return uri;
}

/* Makes the request: @uri has not been taken apart yet. */
static void *begin_request(void *cls, const char *uri, struct MHD_Connection *mhd)
{
	size_t length = strlen(uri);
	struct request *request = malloc(sizeof(*request) + length + 1);

	(void)cls;
	if (!request)
		return NULL;
	*request = (struct request){
		.connection = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
				      ->socket_context,
		.wait = {.file = -1},
	};
	memcpy(request->uri, uri, length + 1);
	request->route = route_find(find_path(request->uri, &request->host), &request->rest);
	return request;
}

/* Prints the charge that gives back @tokens, and as many of other units as @units has. */
static size_t print_return(uint64_t tokens, const char *units, char text[BODY_MAX])
{
	size_t used = (size_t)snprintf(text, BODY_MAX, "-%" PRIu64, tokens);

	for (; *units; units++) {
		text[used++] = *units == ',' ? ' ' : *units;
		if (*units == '=')
			text[used++] = '-';
	}
	text[used++] = '\n';
	return used;
}

/* Gives back the tokens of an answer that did not get to its client. */
static void give_back(struct request *request)
{
	char path[URL_FILE_TEXT], text[BODY_MAX], error[ERROR_TEXT];
	struct url url;
	size_t length;
	int file;

	if (url_parse(request->rest, &url, error))
		return;
	url.key[0] = '\0';
	url_file(&url, "charge", path);
	file = held_open(&request->connection->worker->files, path, O_WRONLY);
	if (file < 0)
		return;
	length = print_return(request->granted, url.units, text);
	if (write(file, text, length) < 0)
		warn("%s: %" PRIu64 " tokens are not given back", path, request->granted);
	close(file);
}

/*
 * Tells whether the answer got to the socket. libmicrohttpd sends an answer in the run in which it
 * is made, as far as there is room for it; in a later one the end of the connection is an error
 * even if the client read all of the answer and then closed.
 */
static bool is_sent(const struct request *request, enum MHD_RequestTerminationCode code)
{
	return code == MHD_REQUEST_TERMINATED_COMPLETED_OK ||
	       (request->granted_run && request->granted_run != request->connection->worker->runs);
}

static void end_request(void *cls, struct MHD_Connection *mhd, void **context,
			enum MHD_RequestTerminationCode code)
{
	struct request *request = *context;

	(void)cls;
	(void)mhd;
	if (!request)
		return;
	*context = NULL;
	batch_leave(request);
	if (request->granted && !is_sent(request, code))
		give_back(request);
	if (request->connection) {
		if (!request->route || request->route->answer != take_answer)
			request->connection->room = 0;
		rest_connection(request->connection);
	}
	free(request->body);
	free(request->own);
	free(request);
}

/* Adds @size bytes to the body; of one that is too long only the size is known. */
static void add_to_body(struct request *request, const char *bytes, size_t size)
{
	size_t most = request->route->body_max;

	if (request->body && request->body_size <= most && size <= most - request->body_size)
		memcpy(request->body + request->body_size, bytes, size);
	request->body_size += size;
}

/* Refuses a request before its body, or lets it come. */
static enum MHD_Result admit_request(struct request *request, const char *method,
				     const char *version)
{
	const struct route *route = request->route;
	const char *refusal = framing_refusal(request->connection->mhd, version);

	if (refusal)
		return answer_text(request, MHD_HTTP_BAD_REQUEST, refusal);
	if (!route)
		return answer_text(request, MHD_HTTP_NOT_FOUND,
				   "no such address: see ratefs-serve(1)");
	if (!route_takes(route, method))
		return answer_method(request, route->allow);
	refusal = asker_refusal(request, route->askers);
	if (refusal)
		return answer_text(request, MHD_HTTP_FORBIDDEN, refusal);
	/* An answer at the first call closes the connection. */
	request->stage = STAGE_BODY;
	request->body = route->body_max ? calloc(1, route->body_max + 1) : NULL;
	return request->body || !route->body_max ? MHD_YES : MHD_NO;
}

static enum MHD_Result answer_request(void *cls, struct MHD_Connection *mhd, const char *url,
				      const char *method, const char *version, const char *bytes,
				      size_t *size, void **context)
{
	struct request *request = *context;
	const struct route *route = request ? request->route : NULL;

	(void)cls;
	(void)mhd;
	(void)url;
	if (!request || !request->connection)
		return MHD_NO;
	if (request->stage > STAGE_BODY)
		return route->answer(request);
	if (request->stage == STAGE_BEGIN)
		return admit_request(request, method, version);
	if (*size) {
		add_to_body(request, bytes, *size);
		*size = 0;
		return MHD_YES;
	}
	if (request->body && request->body_size > route->body_max)
		return answer_text(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long");
	return route->answer(request);
}

/* --- the loop */

/* Closes the connection that has been longest without a whole request. */
static void close_longest_idle(struct worker *worker)
{
	struct connection *connection = list_first(&worker->idle, struct connection, link);

	if (!connection)
		return;
	list_remove(&worker->idle, &connection->link);
	list_append(&worker->idle, &connection->link);
	shutdown(connection->socket, SHUT_RDWR);
	worker->mhd_due = true;
}

static void take_connections(struct worker *worker, struct watch *watch, uint32_t events)
{
	int sockets[TAKEN_AT_ONCE];
	ssize_t got = read(worker->inbox[0], sockets, sizeof(sockets));

	(void)watch;
	(void)events;
	for (ssize_t i = 0; i < got / (ssize_t)sizeof(sockets[0]); i++) {
		struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
		socklen_t length = sizeof(address);

		if (atomic_load(&worker->connections) >= worker->connections_max)
			close_longest_idle(worker);
		if (getpeername(sockets[i], (struct sockaddr *)&address, &length))
			close(sockets[i]);
		else /* closes it when it fails */
			MHD_add_connection(worker->mhd, sockets[i], (struct sockaddr *)&address,
					   length);
		atomic_fetch_sub(&worker->given, 1);
	}
	worker->mhd_due = true;
}

static void note_mhd(struct worker *worker, struct watch *watch, uint32_t events)
{
	(void)watch;
	(void)events;
	worker->mhd_due = true;
}

/* The loop closes files of keys. */
static void note_room(struct worker *worker, struct watch *watch, uint32_t events)
{
	(void)worker;
	(void)watch;
	(void)events;
}

/* Lets libmicrohttpd do all that it can do now. */
static void run_mhd(struct worker *worker)
{
	MHD_UNSIGNED_LONG_LONG left_ms = 1;

	for (int i = 0; i < RUNS_AT_ONCE; i++) {
		worker->runs++;
		MHD_run(worker->mhd);
		/* The requests of a batch go on in the next run. */
		worker->mhd_due = batch_read_all(&worker->batches, &worker->files) ||
				  (MHD_get_timeout(worker->mhd, &left_ms) == MHD_YES && !left_ms);
		if (!worker->mhd_due)
			break;
	}
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	struct epoll_event events[EVENTS];

	while (!atomic_load(worker->stopping)) {
		int wait_ms = worker->mhd_due ? 0 : LOOK_MS;
		int count = epoll_wait(worker->epoll, events, EVENTS, wait_ms);
		uint64_t now_ns = companion_now_ns();

		/* A request lives until run_mhd(), so both of its events find it. */
		for (int i = 0; i < count; i++) {
			struct watch *watch = events[i].data.ptr;

			watch->ready(worker, watch, events[i].events);
		}
		end_overdue(worker, now_ns, false);
		held_close_old(&worker->files, now_ns);
		if (worker->mhd_due || !count)
			run_mhd(worker);
	}
	end_overdue(worker, 0, true);
	run_mhd(worker);
	return NULL;
}

void worker_give(struct worker *worker, int socket)
{
	atomic_fetch_add(&worker->given, 1);
	if (write(worker->inbox[1], &socket, sizeof(socket)) == sizeof(socket))
		return;
	atomic_fetch_sub(&worker->given, 1);
	close(socket);
}

unsigned int worker_connections(const struct worker *worker)
{
	return atomic_load(&worker->connections) + atomic_load(&worker->given);
}

static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *text)
{
	(void)cls;
	(void)mhd;
	return strlen(text);
}

static int start_mhd(struct worker *worker)
{
	const union MHD_DaemonInfo *epoll;

	worker->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
			MHD_USE_SUPPRESS_DATE_NO_CLOCK,
		0, NULL, NULL, answer_request, worker, MHD_OPTION_NOTIFY_CONNECTION,
		note_connection, worker, MHD_OPTION_NOTIFY_COMPLETED, end_request, worker,
		MHD_OPTION_URI_LOG_CALLBACK, begin_request, worker, MHD_OPTION_UNESCAPE_CALLBACK,
		keep_escapes, NULL, MHD_OPTION_CONNECTION_LIMIT, worker->connections_max + SPARE,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)CONNECTION_IDLE_S,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
	if (!worker->mhd)
		return -ENOMEM;
	epoll = MHD_get_daemon_info(worker->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	watch_file(worker, epoll->epoll_fd, EPOLLIN, &worker->mhd_ready);
	return 0;
}

int worker_start(struct worker *worker, const char *mountpoint, struct held_room *room,
		 unsigned int connections_max, atomic_bool *stopping)
{
	int err;

	worker->files.mountpoint = mountpoint;
	worker->files.room = room;
	worker->connections_max = connections_max;
	worker->stopping = stopping;
	worker->mhd_ready.ready = note_mhd;
	worker->inbox_ready.ready = take_connections;
	worker->room_scarce.ready = note_room;
	worker->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (worker->epoll < 0 || pipe2(worker->inbox, O_CLOEXEC | O_NONBLOCK) ||
	    getrandom(worker->files.seed, sizeof(worker->files.seed), 0) < 0)
		return -errno;
	watch_file(worker, worker->inbox[0], EPOLLIN, &worker->inbox_ready);
	watch_file(worker, room->scarce, EPOLLIN | EPOLLET, &worker->room_scarce);
	err = start_mhd(worker);
	return err ? err : thread_start(&worker->thread, run_worker, worker);
}
