/*
 * loop - one thread that receives requests, and wakes for what is due and for signals, see loop.h.
 *
 * The thread sleeps in one place, the read of the next request, and a timer's signal interrupts it
 * when something is due. Measured against it with the smallest file system as the floor: a second
 * thread for time and signals costs every token a tenth (the C library and the kernel take slower
 * ways once there are two), epoll before each read as much, and a second receiver a tenth of the
 * throughput of 16 readers, for nothing.
 *
 * A signal that comes between the last look at what is due and the read would be missed, so the
 * timer repeats itself until it is set anew.
 *
 * Waking a sleeping processor is nearly the whole cost of a token when client and daemon run on two
 * (50 to 80 us of 55 to 85). So the thread looks for the next request for a while before it sleeps,
 * when requests of late came so closely that this pays, but not so closely that client and daemon
 * share a processor, where looking only takes it away. (One that does not sleep is not moved to the
 * processor of its client either, where a token takes 3 us and not the 20 of the best of looks; but
 * one that sleeps is moved there only most of the time, and takes 65 us otherwise.) And the timer goes
 * off a little early, and the thread looks at the clock until the time has come, if that is not too
 * often.
 */
#include "fs/mount/loop.h"
#include "fs/base/log.h"
#include "fs/mount/mount.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_NS = 50000,	  /* how long it looks for a request before it sleeps */
	LOOK_MEAN_MIN_NS = 10000, /* mean time between requests that makes it look */
	LOOK_MEAN_MAX_NS = 100000,
	TIME_CAP_NS = 1000000,	/* longer times between requests count as this one */
	TIME_WEIGHT = 8,	/* of the mean against the newest time */
	EARLY_NS = 60000,	/* how early the timer goes off ... */
	EARLY_REST_NS = 400000, /* ... if that long passed since it went off last */
	AGAIN_NS = 200000,	/* after which it goes off again */
};

static struct {
	timer_t timer;
	struct sigaction action;
	volatile sig_atomic_t woken;
	volatile sig_atomic_t ending; /* the signal that asked for it */
	_Atomic uint64_t last_ns;     /* when something was due last */
} loop;

/* async-signal-safe */
static void set_timer(uint64_t at_ns)
{
	struct itimerspec when = {0};

	if (!at_ns)
		at_ns = 1; /* long past; 0 would stop the timer */
	if (at_ns != NEVER_NS) {
		when.it_value.tv_sec = (time_t)(at_ns / NSEC_PER_SEC);
		when.it_value.tv_nsec = (long)(at_ns % NSEC_PER_SEC);
		when.it_interval.tv_nsec = AGAIN_NS;
	}
	timer_settime(loop.timer, TIMER_ABSTIME, &when, NULL);
}

static void on_timer(int signal_number)
{
	(void)signal_number;
	loop.woken = 1;
}

static void on_end(int signal_number)
{
	/* Who is to end is not replaced any more. */
	if (signal_number != SIGHUP || !loop.ending)
		loop.ending = signal_number;
	loop.woken = 1;
	set_timer(0); /* goes off until the loop has seen it */
}

static void loop_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGALRM);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
}

int loop_init(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct sigaction action = {.sa_handler = on_timer};
	sigset_t signals;

	if (timer_create(CLOCK_BOOTTIME, &event, &loop.timer))
		return -errno;
	loop_signals(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_end;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	loop_signals(&signals);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* a parent may have blocked them */
	return 0;
}

bool loop_is_ending(void)
{
	return loop.ending;
}

bool loop_is_replaced(void)
{
	return loop.ending == SIGHUP;
}

void loop_wake_at(uint64_t at_ns)
{
	if (at_ns != NEVER_NS && at_ns > loop.last_ns + EARLY_REST_NS)
		at_ns -= EARLY_NS;
	set_timer(at_ns);
	/*
	 * on_end() may have set it in between, or before: it goes off until the loop has seen the
	 * signal.
	 */
	if (loop.ending)
		set_timer(0);
}

/* Whether there is a request at @until_ns at the latest. */
static bool look(const struct daemon *daemon, uint64_t until_ns)
{
	struct pollfd request = {.fd = fuse_session_fd(daemon->session), .events = POLLIN};
	int found;

	do
		found = poll(&request, 1, 0);
	while (!found && clock_ns() < until_ns);
	return found;
}

/* Serves who is due. Called early it waits for the time, unless a request comes before. */
static void serve_due(struct daemon *daemon)
{
	uint64_t due_ns = daemon_due_ns(daemon), now_ns = clock_ns();

	if (due_ns > now_ns && due_ns - now_ns <= EARLY_NS && look(daemon, due_ns))
		return;
	loop.woken = 0;
	loop.last_ns = clock_ns();
	daemon_run(daemon);
}

void loop_run(struct daemon *daemon)
{
	struct fuse_buf buffer = {0};
	uint64_t mean_ns = TIME_CAP_NS, last_ns = clock_ns(), now_ns, between_ns;
	int length;

	for (;;) {
		if (loop.ending)
			break;
		if (loop.woken)
			serve_due(daemon);
		else if (mean_ns > LOOK_MEAN_MIN_NS && mean_ns < LOOK_MEAN_MAX_NS &&
			 look(daemon, clock_ns() + LOOK_NS) && loop.woken)
			continue;
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0 || fuse_session_exited(daemon->session))
			break;
		now_ns = clock_ns();
		between_ns = now_ns - last_ns < TIME_CAP_NS ? now_ns - last_ns : TIME_CAP_NS;
		mean_ns += between_ns / TIME_WEIGHT - mean_ns / TIME_WEIGHT;
		last_ns = now_ns;
		session_process(daemon, &buffer, now_ns);
	}
	set_timer(NEVER_NS);
	free(buffer.mem);
	if (loop_is_replaced())
		return;
	if (loop.ending)
		log_info("ending on %s", strsignal(loop.ending));
	else
		log_info("the mount has ended");
}
