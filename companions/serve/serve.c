/*
 * serve - the limiters of a mounted tree over HTTP.
 *
 * The first thread takes connections and signals, and gives each connection to the worker that has
 * the fewest.
 */
#include "companions/companion.h"
#include "companions/mounted.h"
#include "companions/serve/listen.h"
#include "companions/serve/worker.h"
#include "core/values/quantity.h"
#include "fs/keeper/notify.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	ADDRESSES_MAX = 8,
	WORKERS_MAX = 16,
	FILES_KEPT = 64, /* of the process, for other things */
	FILES_OF_WORKER = 2 * HELD_MAX + 16,
	FILES_OF_CONNECTION = 2, /* its socket, and what half of them wait for */
	TAKEN_AT_ONCE = 64,
	PAUSE_MS = 50, /* when the process has no room for a connection */
	END_S = 3,
};

static struct serve {
	char mountpoint[PATH_MAX];
	const char *addresses[ADDRESSES_MAX];
	unsigned int address_count, worker_count;
	struct pollfd listeners[ADDRESSES_MAX + 1]; /* then signals */
	struct held_room room;
	struct worker workers[WORKERS_MAX];
	atomic_bool stopping;
} serve;

/* Returns how many connections each worker may have: as many as there can be files. */
static unsigned int connections_of_worker(unsigned int workers)
{
	struct rlimit files;
	rlim_t each;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return 1;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	each = files.rlim_cur > FILES_KEPT ? (files.rlim_cur - FILES_KEPT) / workers : 0;
	each = each > FILES_OF_WORKER ? (each - FILES_OF_WORKER) / FILES_OF_CONNECTION : 0;
	return each < 2 ? 2 : each < CONNECTIONS_MAX ? (unsigned int)each : CONNECTIONS_MAX;
}

static unsigned int count_processors(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return count < 1 ? 1 : count < WORKERS_MAX ? (unsigned int)count : WORKERS_MAX;
}

static struct worker *least_busy(void)
{
	struct worker *least = &serve.workers[0];

	for (unsigned int i = 1; i < serve.worker_count; i++) {
		if (worker_connections(&serve.workers[i]) < worker_connections(least))
			least = &serve.workers[i];
	}
	return least;
}

/* Takes connections of @listener. False: there is no room for more now. */
static bool take_connections(int listener)
{
	for (int i = 0; i < TAKEN_AT_ONCE; i++) {
		int taken = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (taken < 0)
			return errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
			       errno != ENOMEM;
		worker_give(least_busy(), taken);
	}
	return true;
}

/* Takes connections until a signal ends it. */
static void take_all_connections(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	const struct pollfd *signals = &serve.listeners[serve.address_count];

	for (;;) {
		if (poll(serve.listeners, serve.address_count + 1, -1) < 0)
			continue;
		if (signals->revents)
			return;
		for (unsigned int i = 0; i < serve.address_count; i++) {
			if (serve.listeners[i].revents && !take_connections(serve.listeners[i].fd))
				nanosleep(&pause, NULL);
		}
	}
}

/* Ends the workers. A worker whose read the mount does not answer is left behind. */
static int end_workers(void)
{
	struct timespec until;
	int status = EXIT_SUCCESS;

	atomic_store(&serve.stopping, true);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_S;
	for (unsigned int i = 0; i < serve.worker_count; i++) {
		worker_give(&serve.workers[i], -1); /* wakes it */
		if (pthread_timedjoin_np(serve.workers[i].thread, NULL, &until))
			status = EXIT_FAILURE;
	}
	if (status)
		warnx("%s: does not answer", serve.mountpoint);
	return status;
}

/* 0, or -1 after a message. */
static int listen_all(void)
{
	sigset_t signals;
	int opened;

	for (unsigned int i = 0; i < serve.address_count; i++) {
		opened = listen_open(serve.addresses[i]);
		if (opened < 0)
			return -1;
		serve.listeners[i] = (struct pollfd){.fd = opened, .events = POLLIN};
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	opened = signalfd(-1, &signals, SFD_CLOEXEC);
	if (opened < 0)
		warn("no signals");
	serve.listeners[serve.address_count] = (struct pollfd){.fd = opened, .events = POLLIN};
	return opened < 0 ? -1 : 0;
}

static int run(void)
{
	unsigned int connections, processors = count_processors();
	int status;

	if (listen_all())
		return EXIT_FAILURE;
	connections = connections_of_worker(processors);
	serve.room.scarce = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (serve.room.scarce < 0) {
		warn("no events");
		return EXIT_FAILURE;
	}
	for (; serve.worker_count < processors; serve.worker_count++) {
		int err = worker_start(&serve.workers[serve.worker_count], serve.mountpoint,
				       &serve.room, connections, &serve.stopping);

		if (err) {
			warnx("no thread: %s", strerror(-err));
			return EXIT_FAILURE;
		}
	}
	notify_ready();
	take_all_connections();
	notify_stopping();
	for (unsigned int i = 0; i < serve.address_count; i++)
		close(serve.listeners[i].fd);
	status = end_workers();
	for (unsigned int i = 0; i < serve.address_count; i++)
		listen_forget(serve.addresses[i]);
	if (status)
		_exit(status);
	return status;
}

static void print_usage(void)
{
	printf("usage: ratefs serve [options] [MOUNTPOINT]\n"
	       "\n"
	       "Gives tokens of the limiters of a mounted tree, the only one without MOUNTPOINT,\n"
	       "to HTTP clients.\n"
	       "\n"
	       "options:\n"
	       "    -l ADDRESS          listen there, may be given several times: /PATH, a unix\n"
	       "                        socket, or HOST:PORT such as 127.0.0.1:7283 (default:\n"
	       "                        ratefs-serve.sock in XDG_RUNTIME_DIR or /run)\n"
	       "    -h, --help          print this\n");
}

/* Chooses the address where none is given. */
static const char *default_address(void)
{
	static char path[PATH_MAX];
	const char *directory = getenv("XDG_RUNTIME_DIR");

	snprintf(path, sizeof(path), "%s/ratefs-serve.sock",
		 directory && *directory == '/' ? directory : "/run");
	return path;
}

int serve_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *mountpoint;
	char only[PATH_MAX];
	int option, top;

	while ((option = getopt_long(argc, argv, "l:h", options, NULL)) >= 0) {
		if (option == 'h') {
			print_usage();
			return EXIT_SUCCESS;
		}
		if (option != 'l')
			return companion_usage();
		if (serve.address_count == ADDRESSES_MAX) {
			warnx("more than %d addresses: '%s'", ADDRESSES_MAX, optarg);
			return companion_usage();
		}
		serve.addresses[serve.address_count++] = optarg;
	}
	if (optind + 1 < argc) {
		warnx("an argument too many: '%s'", argv[optind + 1]);
		return companion_usage();
	}
	mountpoint = optind < argc ? argv[optind] : mounted_find(only);
	if (!mountpoint)
		return EXIT_FAILURE;
	if (!serve.address_count)
		serve.addresses[serve.address_count++] = default_address();
	if (!realpath(mountpoint, serve.mountpoint)) {
		warn("%s", mountpoint);
		return EXIT_FAILURE;
	}
	top = mounted_open(serve.mountpoint);
	if (top < 0)
		return EXIT_FAILURE;
	close(top);
	return run();
}
