/* zookeeper - between the client and the fleet, see zookeeper.h. */
#include "fs/zookeeper/zookeeper.h"
#include "core/fleet/fleet.h"
#include "fs/base/addresses.h"
#include "fs/base/log.h"
#include "fs/mount/daemon.h"
#include "fs/state/zookeeper_handover.h"
#include "fs/zookeeper/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

struct zookeeper {
	struct coordinator interface;
	struct zookeeper_receiver receiver;
	struct zookeeper_client *client;
	struct daemon *daemon;		     /* borrowed; everything below is under its lock */
	struct fleet *fleet;		     /* borrowed */
	struct zookeeper_handover *handover; /* borrowed, or NULL */
	struct clock_look look;
};

/* The first two run at the rate of time; the last is also set by hand. */
static const clockid_t CLOCK_IDS[CLOCKS] = {CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME};

static struct zookeeper *zookeeper_of(struct coordinator *coordinator)
{
	return (struct zookeeper *)coordinator;
}

static void open_session(struct coordinator *coordinator, uint64_t session_ns)
{
	zookeeper_client_open(zookeeper_of(coordinator)->client, session_ns);
}

static void resume_session(struct coordinator *coordinator, uint64_t session, uint64_t session_ns)
{
	(void)session; /* the last one of the handover */
	zookeeper_client_resume(zookeeper_of(coordinator)->client, session_ns);
}

static void close_session(struct coordinator *coordinator)
{
	zookeeper_client_close(zookeeper_of(coordinator)->client);
}

static void send_request(struct coordinator *coordinator, struct request *request)
{
	zookeeper_client_send(zookeeper_of(coordinator)->client, request);
}

static void hang_up(struct coordinator *coordinator)
{
	zookeeper_client_hang_up(zookeeper_of(coordinator)->client);
}

static uint64_t clock_read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Measures how much passed on each clock since the last look; 0 on a clock that went back. */
static void look_at_clocks(struct zookeeper *zookeeper, uint64_t passed_ns[CLOCKS])
{
	for (int i = 0; i < CLOCKS; i++) {
		uint64_t now_ns = clock_read_ns(CLOCK_IDS[i]), last_ns = zookeeper->look.last_ns[i];

		passed_ns[i] = now_ns > last_ns ? now_ns - last_ns : 0;
		zookeeper->look.last_ns[i] = now_ns;
	}
}

/* Keeps the clocks for a successor, whose clocks go on from here. */
static void keep_look(struct zookeeper *zookeeper)
{
	struct zookeeper_handover *handover = zookeeper->handover;
	uint32_t other;

	if (!handover)
		return;
	other = !handover->current;
	handover->looks[other] = zookeeper->look;
	atomic_store_explicit(&handover->current, other, memory_order_release);
}

/*
 * Reads the clocks. All three are looked at every CLOCK_LOOK_NS; in between the first alone tells
 * how much passed since, and nothing counts as waited, which Q has room for. One look costs a
 * fraction of a token, three are felt.
 */
static void read_clocks(struct coordinator *coordinator, struct clocks *clocks)
{
	struct zookeeper *zookeeper = zookeeper_of(coordinator);
	uint64_t now_ns = clock_read_ns(CLOCK_IDS[0]), last_ns = zookeeper->look.last_ns[0];
	uint64_t passed_ns[CLOCKS], most_ns = 0;

	*clocks = zookeeper->look.clocks;
	if (now_ns >= last_ns && now_ns - last_ns < CLOCK_LOOK_NS) {
		clocks->holder_ns += now_ns - last_ns;
		return;
	}
	look_at_clocks(zookeeper, passed_ns);
	for (int i = 0; i < CLOCKS; i++)
		most_ns = passed_ns[i] > most_ns ? passed_ns[i] : most_ns;
	zookeeper->look.clocks.holder_ns += most_ns;
	zookeeper->look.clocks.waiter_ns += passed_ns[0] < passed_ns[1] ? passed_ns[0]
									: passed_ns[1];
	*clocks = zookeeper->look.clocks;
	keep_look(zookeeper);
}

static uint64_t random_bits(struct coordinator *coordinator)
{
	uint64_t bits;

	(void)coordinator;
	while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		;
	return bits;
}

static void tell_fleet(struct zookeeper *zookeeper, const struct zookeeper_notice *notice,
		       uint64_t now_ns)
{
	struct fleet *fleet = zookeeper->fleet;

	/* A session that the fleet has done with says nothing any more. */
	if (notice->kind != ZOOKEEPER_ANSWERED &&
	    !zookeeper_client_is_current(zookeeper->client, notice->opening))
		return;
	switch (notice->kind) {
	case ZOOKEEPER_CONNECTED:
		fleet_connected(fleet, notice->session, now_ns);
		break;
	case ZOOKEEPER_DISCONNECTED:
		fleet_disconnected(fleet, now_ns);
		break;
	case ZOOKEEPER_EXPIRED:
		fleet_expired(fleet, now_ns);
		break;
	case ZOOKEEPER_CHANGED:
		fleet_changed(fleet, notice->path, now_ns);
		break;
	case ZOOKEEPER_ANSWERED:
		fleet_answered(fleet, notice->request, now_ns);
		break;
	}
}

/* Receives notices, in the client's thread. */
static void receive_notices(struct zookeeper_receiver *receiver,
			    const struct zookeeper_notice *notices, uint32_t count)
{
	struct zookeeper *zookeeper =
		(struct zookeeper *)((char *)receiver - offsetof(struct zookeeper, receiver));
	uint64_t now_ns;

	daemon_lock(zookeeper->daemon);
	now_ns = clock_ns();
	engine_run(&zookeeper->daemon->engine, now_ns);
	daemon_tell_wall(zookeeper->daemon, now_ns);
	for (uint32_t i = 0; i < count; i++)
		tell_fleet(zookeeper, &notices[i], now_ns);
	daemon_unlock(zookeeper->daemon);
}

static int wrong_file(const char *path, const char *why)
{
	log_error("credentials in %s: %s", path, why);
	return -1;
}

/* Opens the file if only its owner may read it. The descriptor, or -1 after a message. */
static int open_credentials(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *why = NULL;
	struct stat status;

	if (file < 0)
		return wrong_file(path, strerror(errno));
	if (fstat(file, &status))
		why = strerror(errno);
	else if (!S_ISREG(status.st_mode))
		why = "not a regular file";
	else if (status.st_mode & 077)
		why = "others may read or write it: chmod 600";
	if (!why)
		return file;
	close(file);
	return wrong_file(path, why);
}

/* Cuts @text down to its first line. Why it is not USER:PASSWORD, or NULL. */
static const char *check_credentials(char *text, size_t length)
{
	const char *colon;
	size_t line = strcspn(text, "\r\n");

	if (length == CREDENTIALS_MAX)
		return "it is too long";
	if (strlen(text) != length)
		return "it has a zero byte in it";
	if (text[line + strspn(text + line, "\r\n")])
		return "it has more than one line";
	text[line] = '\0';
	colon = strchr(text, ':');
	return colon && colon > text && colon[1] ? NULL : "it is not USER:PASSWORD";
}

/*
 * Reads the first line of the file at @path, or what a predecessor read there, who was allowed to.
 * 0, or -1 after a message.
 */
static int read_credentials(const char *path, const struct zookeeper_handover *handover,
			    char text[CREDENTIALS_MAX + 1])
{
	ssize_t length;
	const char *why;
	int file;

	if (handover && *handover->credentials) {
		strcpy(text, handover->credentials);
		return 0;
	}
	file = open_credentials(path);
	if (file < 0)
		return -1;
	length = read(file, text, CREDENTIALS_MAX);
	text[length > 0 ? length : 0] = '\0';
	why = length < 0 ? strerror(errno) : check_credentials(text, (size_t)length);
	close(file);
	return why ? wrong_file(path, why) : 0;
}

static struct zookeeper *make_zookeeper(struct addresses *addresses, const char *path,
					const char *credentials,
					struct zookeeper_handover *handover)
{
	struct zookeeper *zookeeper = calloc(1, sizeof(*zookeeper));
	uint64_t passed_ns[CLOCKS];

	if (!zookeeper) {
		addresses_free(addresses);
		return NULL;
	}
	zookeeper->interface = (struct coordinator){
		open_session, resume_session, close_session, send_request,
		hang_up,      read_clocks,    random_bits,   (uint32_t)strlen(path)};
	zookeeper->receiver.receive = receive_notices;
	zookeeper->handover = handover;
	if (handover && handover->looks[handover->current].last_ns[0])
		zookeeper->look = handover->looks[handover->current];
	else
		look_at_clocks(zookeeper, passed_ns);
	keep_look(zookeeper);
	zookeeper->client = zookeeper_client_new(addresses, path, credentials, handover,
						 &zookeeper->receiver);
	if (zookeeper->client)
		return zookeeper;
	free(zookeeper);
	return NULL;
}

struct zookeeper *zookeeper_open(const char *servers, const char *path, const char *credentials,
				 struct zookeeper_handover *handover)
{
	char text[CREDENTIALS_MAX + 1] = "", error[ERROR_TEXT];
	struct zookeeper *zookeeper = NULL;
	struct addresses *addresses;

	if (credentials && read_credentials(credentials, handover, text))
		goto out;
	addresses = addresses_new(servers, error);
	if (!addresses) {
		log_error("%s", error);
		goto out;
	}
	zookeeper = make_zookeeper(addresses, path, credentials ? text : NULL, handover);
	if (!zookeeper)
		log_error("no memory, or no descriptor");
	if (zookeeper && handover)
		strcpy(handover->credentials, text);
out:
	explicit_bzero(text, sizeof(text));
	return zookeeper;
}

struct coordinator *zookeeper_coordinator(struct zookeeper *zookeeper)
{
	return &zookeeper->interface;
}

void zookeeper_attach(struct zookeeper *zookeeper, struct daemon *daemon, struct fleet *fleet)
{
	zookeeper->daemon = daemon;
	zookeeper->fleet = fleet;
}

int zookeeper_start(struct zookeeper *zookeeper)
{
	return zookeeper_client_start(zookeeper->client);
}

void zookeeper_stop(struct zookeeper *zookeeper)
{
	zookeeper_client_stop(zookeeper->client);
}

void zookeeper_free(struct zookeeper *zookeeper)
{
	zookeeper_client_free(zookeeper->client);
	free(zookeeper);
}
