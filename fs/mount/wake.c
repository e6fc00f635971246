/*
 * wake - what ends the loop's sleep, see wake.h.
 *
 * A signal that comes between the last look at what is due and the read would be missed, so the
 * timer repeats itself until it is set anew.
 */
#include "fs/mount/wake.h"
#include "fs/base/clock.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum {
	EARLY_REST_NS = 400000, /* how long ago something was due for the timer to be early again */
	AGAIN_NS = 200000,	/* after which it goes off again */
};

static struct {
	timer_t timer;
	_Atomic int woken;
	_Atomic int asked;	  /* the keeper wants to know whether the loop goes on */
	_Atomic int stopped;	  /* the loop has ended */
	_Atomic int ending;	  /* the signal that asked for it; other threads look, too */
	_Atomic uint64_t last_ns; /* when something was due last */
} wake;

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "signal handlers write atomic integers");

/* Sets the timer. Async-signal-safe. */
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
	timer_settime(wake.timer, TIMER_ABSTIME, &when, NULL);
}

static void on_timer(int signal_number)
{
	(void)signal_number;
	wake.woken = 1;
}

static void on_question(int signal_number)
{
	(void)signal_number;
	if (wake.stopped)
		return;
	wake.asked = 1;
	wake.woken = 1;
	set_timer(0); /* goes off until the loop has seen it */
}

static void on_end(int signal_number)
{
	/* A server that is to end is not replaced any more. */
	if (signal_number != SIGHUP || !wake.ending)
		wake.ending = signal_number;
	wake.woken = 1;
	set_timer(0); /* goes off until the loop has seen it */
}

static void wake_signals(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGALRM);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	sigaddset(signals, SIGURG);
}

int wake_init(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
	struct sigaction action = {.sa_handler = on_timer};
	sigset_t signals;

	if (timer_create(CLOCK_BOOTTIME, &event, &wake.timer))
		return -errno;
	wake_signals(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	action.sa_handler = on_end;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = on_question;
	sigaction(SIGURG, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
	wake_signals(&signals);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* a parent may have blocked them */
	return 0;
}

int wake_ending(void)
{
	return wake.ending;
}

bool wake_is_ending(void)
{
	return wake.ending;
}

bool wake_is_replaced(void)
{
	return wake.ending == SIGHUP;
}

bool wake_is_due(void)
{
	return wake.woken;
}

bool wake_is_asked(void)
{
	return wake.asked && atomic_exchange(&wake.asked, 0);
}

void wake_done(void)
{
	wake.woken = 0;
	wake.last_ns = clock_ns();
}

void wake_at(uint64_t at_ns)
{
	if (at_ns != NEVER_NS && at_ns > wake.last_ns + EARLY_REST_NS)
		at_ns -= WAKE_EARLY_NS;
	set_timer(at_ns);
	/*
	 * on_end() or on_question() may have set it in between, or before: it goes off until the
	 * loop has seen the signal.
	 */
	if (wake.ending || wake.asked)
		set_timer(0);
}

void wake_never(void)
{
	wake.stopped = 1;
	set_timer(NEVER_NS);
}
