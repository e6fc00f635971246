/* host - see host.h. */
#include "host.h"
#include "core/fleet/fleet.h"
#include "fs/mount/daemon.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SENT, ANSWERED };

/* In place of the fleet; the first member is the daemon whose lock it is under. */
struct fleet {
	struct daemon daemon;
	pthread_cond_t news;
	unsigned int told[TOLD_KINDS];
	unsigned int answers;
	uint64_t session;
	char changed[NODE_PATH_MAX];
};

void daemon_lock(struct daemon *daemon)
{
	pthread_mutex_lock(&daemon->lock);
}

void daemon_unlock(struct daemon *daemon)
{
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_tell_wall(struct daemon *daemon, uint64_t now_ns)
{
	(void)daemon;
	(void)now_ns;
}

void engine_run(struct engine *engine, uint64_t now_ns)
{
	(void)engine;
	(void)now_ns;
}

static void tell(struct fleet *fleet, enum told kind)
{
	fleet->told[kind]++;
	pthread_cond_broadcast(&fleet->news);
}

void fleet_connected(struct fleet *fleet, uint64_t session, uint64_t now_ns)
{
	(void)now_ns;
	fleet->session = session;
	tell(fleet, TOLD_CONNECTED);
}

void fleet_disconnected(struct fleet *fleet, uint64_t now_ns)
{
	(void)now_ns;
	tell(fleet, TOLD_DISCONNECTED);
}

void fleet_expired(struct fleet *fleet, uint64_t now_ns)
{
	(void)now_ns;
	tell(fleet, TOLD_EXPIRED);
}

void fleet_changed(struct fleet *fleet, const char *path, uint64_t now_ns)
{
	(void)now_ns;
	snprintf(fleet->changed, sizeof(fleet->changed), "%s", path);
	tell(fleet, TOLD_CHANGED);
}

void fleet_answered(struct fleet *fleet, struct request *request, uint64_t now_ns)
{
	(void)now_ns;
	assert(request->sent_ns == SENT);
	request->sent_ns = ANSWERED;
	request->of.number = ++fleet->answers;
	pthread_cond_broadcast(&fleet->news);
}

static void lock(struct host *host)
{
	daemon_lock(&host->fleet->daemon);
}

static void unlock(struct host *host)
{
	daemon_unlock(&host->fleet->daemon);
}

static struct host *start(const char *servers, const char *path, const char *credentials,
			  uint64_t session_ms)
{
	struct zookeeper *source = zookeeper_open(servers, path, credentials, NULL);
	struct host *host = calloc(1, sizeof(*host));
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	assert(host && fleet);
	if (!source) {
		free(fleet);
		free(host);
		return NULL;
	}
	pthread_mutex_init(&fleet->daemon.lock, NULL);
	pthread_cond_init(&fleet->news, NULL);
	*host = (struct host){source, zookeeper_coordinator(source), fleet};
	zookeeper_attach(source, &fleet->daemon, fleet);
	if (zookeeper_start(source))
		abort();
	lock(host);
	host->coordinator->open(host->coordinator, session_ms * MS_NS);
	unlock(host);
	return host;
}

struct host *host_start(const char *servers, const char *path, const char *credentials)
{
	return start(servers, path, credentials, SESSION_MS);
}

struct host *host_start_long(const char *servers, const char *path)
{
	return start(servers, path, NULL, LONG_SESSION_MS);
}

void host_stop(struct host *host)
{
	zookeeper_stop(host->source);
	zookeeper_free(host->source);
	pthread_cond_destroy(&host->fleet->news);
	pthread_mutex_destroy(&host->fleet->daemon.lock);
	free(host->fleet);
	free(host);
}

uint64_t host_now_ms(void)
{
	return clock_ns() / MS_NS;
}

/* Until the next news, or @until_ms. Under the lock. */
static void wait_for_news(struct host *host, uint64_t until_ms)
{
	struct timespec until;
	uint64_t wait_ms = until_ms > host_now_ms() ? until_ms - host_now_ms() : 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	until.tv_sec += (time_t)(wait_ms / 1000) + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&host->fleet->news, &host->fleet->daemon.lock, &until);
}

bool host_wait_ms(struct host *host, enum told kind, unsigned int count, unsigned int most_ms)
{
	uint64_t until_ms = host_now_ms() + most_ms;
	bool there;

	lock(host);
	while (!(there = host->fleet->told[kind] >= count) && host_now_ms() < until_ms)
		wait_for_news(host, until_ms);
	unlock(host);
	return there;
}

bool host_wait(struct host *host, enum told kind, unsigned int count)
{
	return host_wait_ms(host, kind, count, WAIT_MS);
}

unsigned int host_count(struct host *host, enum told kind)
{
	unsigned int count;

	lock(host);
	count = host->fleet->told[kind];
	unlock(host);
	return count;
}

uint64_t host_session(struct host *host)
{
	uint64_t session;

	lock(host);
	session = host->fleet->session;
	unlock(host);
	return session;
}

const char *host_changed(struct host *host)
{
	static char path[NODE_PATH_MAX];

	lock(host);
	snprintf(path, sizeof(path), "%s", host->fleet->changed);
	unlock(host);
	return path;
}

unsigned int host_answers(struct host *host)
{
	unsigned int answers;

	lock(host);
	answers = host->fleet->answers;
	unlock(host);
	return answers;
}

void host_open(struct host *host)
{
	lock(host);
	host->coordinator->open(host->coordinator, SESSION_MS * MS_NS);
	unlock(host);
}

void host_close(struct host *host)
{
	lock(host);
	host->coordinator->close(host->coordinator);
	unlock(host);
}

void host_hang_up(struct host *host)
{
	lock(host);
	host->coordinator->hang_up(host->coordinator);
	unlock(host);
}

void host_hold(struct host *host)
{
	lock(host);
}

void host_let_go(struct host *host)
{
	unlock(host);
}

void host_send_held(struct host *host, struct request *request)
{
	request->sent_ns = SENT;
	host->coordinator->send(host->coordinator, request);
}

void host_send(struct host *host, struct request *request)
{
	lock(host);
	host_send_held(host, request);
	unlock(host);
}

enum answer host_answer(struct host *host, struct request *request)
{
	uint64_t until_ms = host_now_ms() + WAIT_MS;
	bool there;

	lock(host);
	while (!(there = request->sent_ns == ANSWERED) && host_now_ms() < until_ms)
		wait_for_news(host, until_ms);
	unlock(host);
	return there ? request->answer : ANSWER_UNKNOWN + 1;
}

enum answer host_ask(struct host *host, struct request *request)
{
	host_send(host, request);
	return host_answer(host, request);
}

static struct request *make(enum request_kind kind, const char *path, bool watch)
{
	struct request *request = calloc(1, sizeof(*request));

	assert(request);
	request->kind = kind;
	request->path = path ? strdup(path) : NULL;
	request->watch = watch;
	return request;
}

struct request *host_request_get(const char *path, bool watch)
{
	return make(REQUEST_GET, path, watch);
}

struct request *host_request_list(const char *path, bool watch)
{
	return make(REQUEST_LIST, path, watch);
}

struct request *host_request_transaction(void)
{
	return make(REQUEST_TRANSACTION, NULL, false);
}

struct operation *host_request_add(struct request *request, enum operation_kind kind,
				   const char *path, const char *data, int32_t version)
{
	uint32_t count = ++request->operation_count;
	struct operation *operation;

	request->operations = realloc(request->operations, count * sizeof(*operation));
	assert(request->operations);
	operation = &request->operations[count - 1];
	*operation = (struct operation){.kind = kind, .version = version};
	operation->path = strdup(path);
	operation->data = data ? strdup(data) : NULL;
	return operation;
}

void host_request_free(struct request *request)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		free(request->operations[i].path);
		free(request->operations[i].data);
		free(request->operations[i].made);
	}
	free(request->names);
	free(request->operations);
	free(request->data);
	free(request->path);
	free(request);
}

static enum answer ask_once(struct host *host, struct request *request)
{
	enum answer answer = host_ask(host, request);

	host_request_free(request);
	return answer;
}

enum answer host_create(struct host *host, const char *path, const char *data, unsigned int flags)
{
	struct request *request = host_request_transaction();

	host_request_add(request, OPERATION_CREATE, path, data, 0)->flags = flags;
	return ask_once(host, request);
}

enum answer host_set(struct host *host, const char *path, const char *data, int32_t version)
{
	struct request *request = host_request_transaction();

	host_request_add(request, OPERATION_SET, path, data, version);
	return ask_once(host, request);
}

enum answer host_delete(struct host *host, const char *path, int32_t version)
{
	struct request *request = host_request_transaction();

	host_request_add(request, OPERATION_DELETE, path, NULL, version);
	return ask_once(host, request);
}

enum answer host_get(struct host *host, const char *path)
{
	return ask_once(host, host_request_get(path, false));
}
