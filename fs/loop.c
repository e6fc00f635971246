/*
 * loop - what happens besides requests, see loop.h.
 *
 * The timer goes off a little before something is due, and the loop looks at the clock for the rest:
 * a processor that has to be woken is late by 30 us and more, and a token is due at a time.
 */
#include "fs/loop.h"
#include "fs/log.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void ending_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGPIPE);
}

int loop_block_signals(void)
{
	sigset_t signals;

	ending_signals(&signals);
	return -pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

/* Whether the signal that came asks for the end. */
static bool asked_to_end(int signals)
{
	struct signalfd_siginfo signal;

	if (read(signals, &signal, sizeof(signal)) != sizeof(signal))
		return false;
	if (signal.ssi_signo != SIGTERM && signal.ssi_signo != SIGINT)
		return false;
	log_info("ending on %s", strsignal((int)signal.ssi_signo));
	return true;
}

static int add(int epoll, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};

	return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) ? -errno : 0;
}

static int serve(struct daemon *daemon, int epoll, int signals, int ended)
{
	struct epoll_event event;
	uint64_t expirations;

	for (;;) {
		int count = epoll_wait(epoll, &event, 1, -1);

		if (count < 0 && errno != EINTR)
			return -errno;
		if (count < 1)
			continue;
		if (event.data.fd == ended)
			return 0;
		if (event.data.fd == signals && asked_to_end(signals))
			return 0;
		if (event.data.fd == daemon->timer &&
		    read(daemon->timer, &expirations, sizeof(expirations)) > 0)
			daemon_run(daemon);
	}
}

int loop_run(struct daemon *daemon, int ended)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), signals, err;
	sigset_t set;

	if (epoll < 0)
		return -errno;
	ending_signals(&set);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		err = -errno;
		goto no_signals;
	}
	err = add(epoll, daemon->timer);
	if (!err)
		err = add(epoll, signals);
	if (!err)
		err = add(epoll, ended);
	if (!err)
		err = serve(daemon, epoll, signals, ended);
	close(signals);
no_signals:
	close(epoll);
	return err;
}
