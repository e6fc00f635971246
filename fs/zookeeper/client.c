/* client - the thread and its orders, see client.h. */
#include "fs/zookeeper/client.h"
#include "fs/base/clock.h"
#include "fs/base/privilege.h"
#include "fs/base/thread.h"
#include "fs/zookeeper/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct orders {
	uint32_t opening;    /* counts opens and closes */
	uint64_t timeout_ns; /* of the session that is wanted; 0: none is */
	bool resumes;	     /* it is the one that was handed over */
	bool hang_up;
	bool stop;
	struct request *first, *last; /* to be sent */
};

struct zookeeper_client {
	int wake; /* eventfd: orders, or addresses */
	bool started;
	pthread_t thread;
	pthread_mutex_t mutex; /* of the orders */
	struct orders orders;
	struct zookeeper_session session; /* the thread's */
};

/* Links requests in the queue by a member that is empty until they are answered. */
static void set_next(struct request *request, struct request *next)
{
	request->names = (char **)(void *)next;
}

static struct request *take_next(struct request *request)
{
	struct request *next = (struct request *)(void *)request->names;

	request->names = NULL;
	return next;
}

/* Takes the orders that are there; opening, timeout and stop stay. */
static struct orders take_orders(struct zookeeper_client *client)
{
	struct orders orders;

	pthread_mutex_lock(&client->mutex);
	orders = client->orders;
	client->orders.hang_up = false;
	client->orders.first = client->orders.last = NULL;
	pthread_mutex_unlock(&client->mutex);
	return orders;
}

static void obey_orders(struct zookeeper_session *session, const struct orders *orders)
{
	struct request *next;

	if (orders->stop)
		zookeeper_session_end(session); /* later requests are answered, and not sent */
	else if (orders->opening != session->notices.opening)
		zookeeper_session_open(session, orders->opening, orders->timeout_ns,
				       orders->resumes);
	else if (orders->hang_up)
		zookeeper_session_hang_up(session);
	for (struct request *request = orders->first; request; request = next) {
		next = take_next(request);
		zookeeper_session_send(session, request);
	}
}

/* Waits until @until_ns at the latest. */
static void await_events(struct pollfd polled[2], uint64_t until_ns)
{
	uint64_t now_ns = clock_ns(), wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec wait = {(time_t)(wait_ns / NSEC_PER_SEC), (long)(wait_ns % NSEC_PER_SEC)};

	if (ppoll(polled, 2, until_ns == NEVER_NS ? NULL : &wait, NULL) < 0)
		polled[0].revents = polled[1].revents = 0;
}

static void *run_session(void *argument)
{
	struct zookeeper_client *client = argument;
	struct zookeeper_session *session = &client->session;
	bool stop = false;

	privilege_drop_all();
	while (!stop) {
		struct pollfd polled[2] = {{.fd = client->wake, .events = POLLIN}, {.fd = -1}};
		struct orders orders = take_orders(client);
		uint64_t until_ns, count;

		obey_orders(session, &orders);
		stop = orders.stop;
		until_ns = stop ? 0 : zookeeper_session_tend(session, &polled[1]);
		zookeeper_notices_flush(&session->notices);
		if (stop)
			break;
		await_events(polled, until_ns);
		if (polled[0].revents && read(client->wake, &count, sizeof(count)) < 0)
			continue;
		if (polled[1].revents)
			zookeeper_session_process(session, polled[1].revents);
		zookeeper_notices_flush(&session->notices);
	}
	return NULL;
}

struct zookeeper_client *zookeeper_client_new(struct addresses *addresses, const char *path,
					      const char *credentials,
					      struct zookeeper_handover *handover,
					      struct zookeeper_receiver *receiver)
{
	struct zookeeper_client *client = calloc(1, sizeof(*client));
	struct zookeeper_session *session;

	if (!client) {
		addresses_free(addresses);
		return NULL;
	}
	session = &client->session;
	session->addresses = addresses;
	session->handover = handover;
	session->notices.receiver = receiver;
	session->path = strdup(path);
	session->credentials = credentials ? strdup(credentials) : NULL;
	session->wake = client->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	zookeeper_session_init(session);
	pthread_mutex_init(&client->mutex, NULL);
	if (session->path && (session->credentials || !credentials) && client->wake >= 0)
		return client;
	zookeeper_client_free(client);
	return NULL;
}

int zookeeper_client_start(struct zookeeper_client *client)
{
	int err = thread_start(&client->thread, run_session, client);

	client->started = !err;
	return err;
}

static void wake_up(struct zookeeper_client *client)
{
	static const uint64_t one = 1;
	ssize_t written = write(client->wake, &one, sizeof(one));

	(void)written; /* it fails only when it is full, and then the thread wakes anyway */
}

void zookeeper_client_stop(struct zookeeper_client *client)
{
	if (!client->started)
		return;
	pthread_mutex_lock(&client->mutex);
	client->orders.stop = true;
	pthread_mutex_unlock(&client->mutex);
	wake_up(client);
	pthread_join(client->thread, NULL);
	client->started = false;
}

void zookeeper_client_free(struct zookeeper_client *client)
{
	char *credentials;

	if (!client)
		return;
	credentials = client->session.credentials;
	if (credentials)
		explicit_bzero(credentials, strlen(credentials));
	free(credentials);
	free(client->session.path);
	addresses_free(client->session.addresses);
	if (client->wake >= 0)
		close(client->wake);
	pthread_mutex_destroy(&client->mutex);
	free(client);
}

static void order_session(struct zookeeper_client *client, uint64_t timeout_ns, bool resumes)
{
	pthread_mutex_lock(&client->mutex);
	client->orders.opening++;
	client->orders.timeout_ns = timeout_ns;
	client->orders.resumes = resumes;
	client->orders.hang_up = false;
	pthread_mutex_unlock(&client->mutex);
	wake_up(client);
}

void zookeeper_client_open(struct zookeeper_client *client, uint64_t timeout_ns)
{
	order_session(client, timeout_ns, false);
}

void zookeeper_client_resume(struct zookeeper_client *client, uint64_t timeout_ns)
{
	order_session(client, timeout_ns, true);
}

void zookeeper_client_close(struct zookeeper_client *client)
{
	order_session(client, 0, false);
}

void zookeeper_client_send(struct zookeeper_client *client, struct request *request)
{
	set_next(request, NULL);
	pthread_mutex_lock(&client->mutex);
	if (client->orders.last)
		set_next(client->orders.last, request);
	else
		client->orders.first = request;
	client->orders.last = request;
	pthread_mutex_unlock(&client->mutex);
	wake_up(client);
}

void zookeeper_client_hang_up(struct zookeeper_client *client)
{
	pthread_mutex_lock(&client->mutex);
	client->orders.hang_up = true;
	pthread_mutex_unlock(&client->mutex);
	wake_up(client);
}

bool zookeeper_client_is_current(struct zookeeper_client *client, uint32_t opening)
{
	bool is_current;

	pthread_mutex_lock(&client->mutex);
	is_current = client->orders.opening == opening;
	pthread_mutex_unlock(&client->mutex);
	return is_current;
}
