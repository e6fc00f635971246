/* tracer - holds the threads that wait in a mount still, see tracer.h. */
#include "fs/keeper/tracer.h"
#include "fs/keeper/mount_status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	THREADS_MAX = 4 << 20, /* numbers of threads, as in the kernel */
	LIST_BYTES = 65536,
	LIST_MAX_BYTES = THREADS_MAX * 8,
	STOP_MS = 10000, /* so long a thread may take to stop */
};

enum mark {
	MARK_NONE,
	MARK_GIVEN_UP, /* it could not be traced when it was listed last */
	MARK_STOPPING, /* it is traced, and told to stop */
	MARK_HELD,
};

/* A look that found no thread to hold is followed by another one after this. */
static const struct timespec LOOK_AGAIN = {.tv_nsec = 1000000};

struct tracer {
	uid_t user;	/* that mounted it */
	int file;	/* the file `frozen` */
	int signals;	/* SIGCHLD, and those that end this process */
	int events;	/* an epoll of both */
	uint8_t *marks; /* owned: enum mark of each thread */
	int last;	/* the largest number of a thread that was traced */
	unsigned int stopping;
};

/* Tells whether @thread is there to be held still: it has not ended, and is not about to. */
static bool is_there(int thread)
{
	char path[64], text[256] = "", state = 'X';
	const char *rest;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	file = fopen(path, "re");
	if (file) {
		(void)!fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	rest = strrchr(text, ')'); /* the name of the thread may have others */
	if (!rest || sscanf(rest, ") %c", &state) != 1)
		state = 'X';
	return state != 'X' && state != 'Z';
}

/*
 * Holds @thread, which is listed. One that was given up is tried again: its debugger may have let
 * it go, or its number be that of another one by now. No look is made for its sake, which the
 * daemon could not answer once it is frozen.
 */
static void hold_thread(struct tracer *tracer, int thread)
{
	uint8_t *mark = &tracer->marks[thread];

	if (*mark != MARK_NONE && *mark != MARK_GIVEN_UP)
		return;
	if (mount_status_may_name(tracer->user, thread) &&
	    !ptrace(PTRACE_SEIZE, thread, NULL, NULL)) {
		*mark = MARK_STOPPING;
		tracer->stopping++;
		tracer->last = thread > tracer->last ? thread : tracer->last;
		(void)ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
	} else if (*mark == MARK_NONE && is_there(thread)) {
		*mark = MARK_GIVEN_UP;
		fprintf(stderr,
			"ratefs: thread %d cannot be held, and may keep a freezer waiting\n",
			thread);
	}
}

/* Holds the threads that @text, of lines, names. */
static void hold_lines(struct tracer *tracer, const char *text)
{
	for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
		long thread = strtol(text, NULL, 10);

		if (thread > 0 && thread < THREADS_MAX)
			hold_thread(tracer, (int)thread);
	}
}

/*
 * Holds the threads that the file lists. 0; -EAGAIN: no thread has come since the last look, and an
 * event tells of the next; or another -errno.
 */
static int hold_listed(struct tracer *tracer)
{
	char text[LIST_BYTES + 1], *end;
	ssize_t length;
	off_t offset = 0;

	/* Whole lines: the beginning of one more is read again with the next part. */
	while ((length = pread(tracer->file, text, LIST_BYTES, offset)) > 0) {
		text[length] = '\0';
		end = strrchr(text, '\n');
		if (!end)
			return -EIO;
		end[1] = '\0';
		hold_lines(tracer, text);
		offset += end + 1 - text;
		if (offset > LIST_MAX_BYTES)
			return -EFBIG;
	}
	return length < 0 ? -errno : 0;
}

/* Notes that @thread has stopped, or ended, as waitpid(2) tells by @status. */
static void note_change(struct tracer *tracer, int thread, int status)
{
	uint8_t *mark = &tracer->marks[thread];
	bool stopped = WIFSTOPPED(status);

	if (stopped && status >> 16 != PTRACE_EVENT_STOP) {
		/* A signal came first: it has its effect, and then the thread stops. */
		(void)ptrace(PTRACE_CONT, thread, NULL, (void *)(intptr_t)WSTOPSIG(status));
		return;
	}
	if (*mark == MARK_STOPPING)
		tracer->stopping--;
	*mark = stopped ? MARK_HELD : MARK_NONE;
}

/* Notes all changes so far. */
static void note_changes(struct tracer *tracer)
{
	int status, thread;

	while ((thread = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
		note_change(tracer, thread, status);
	if (thread < 0 && errno == ECHILD)
		tracer->stopping = 0;
}

/* Waits until all threads that were told to stop have. False: one does not. */
static bool wait_for_stops(struct tracer *tracer)
{
	const struct timespec patience = {.tv_sec = STOP_MS / 1000};
	sigset_t children;

	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	for (note_changes(tracer); tracer->stopping; note_changes(tracer)) {
		if (sigtimedwait(&children, NULL, &patience) < 0 && errno == EAGAIN)
			return false;
	}
	return true;
}

/* Tells whether a signal came that ends this process. */
static bool is_ending(const struct tracer *tracer)
{
	struct signalfd_siginfo signal;

	while (read(tracer->signals, &signal, sizeof(signal)) == sizeof(signal)) {
		if (signal.ssi_signo != SIGCHLD)
			return true;
	}
	return false;
}

/*
 * Holds all that wait, until a look finds no more. A mount that always has another look made, of
 * nothing, keeps no processor busy, and a signal ends that. 0 or -errno.
 */
static int hold_all(struct tracer *tracer)
{
	int err;

	while (!(err = hold_listed(tracer))) {
		if (is_ending(tracer))
			return -EINTR;
		note_changes(tracer); /* of which it took the signals */
		if (!tracer->stopping)
			nanosleep(&LOOK_AGAIN, NULL);
		else if (!wait_for_stops(tracer))
			fprintf(stderr, "ratefs: %u threads do not stop\n", tracer->stopping);
	}
	return err == -EAGAIN ? 0 : err;
}

static int open_file(int top, const char *mountpoint)
{
	int file = mount_status_open_file(top, "frozen", O_RDWR);

	if (file == -EBUSY)
		fprintf(stderr, "ratefs: %s: it is frozen already\n", mountpoint);
	else if (file < 0)
		fprintf(stderr, "ratefs: %s/frozen: %s\n", mountpoint, strerror(-file));
	return file;
}

/*
 * Tells whether the daemon numbers processes as they are numbered here; the file is open. Otherwise
 * the threads that it lists are others here. Notes the user of the mount.
 */
static bool is_numbered_alike(struct tracer *tracer, int top, const char *mountpoint)
{
	struct mount_status status;

	if (mount_status_read_at(top, mountpoint, &status))
		return false;
	tracer->user = status.user;
	if (status.frozen_by == getpid())
		return true;
	fprintf(stderr,
		"ratefs: %s: its daemon is in another process namespace: freeze it from there\n",
		mountpoint);
	return false;
}

/* Freezes the mount at @mountpoint by opening its file. 0 or -1 after a message. */
static int begin_freeze(struct tracer *tracer, const char *mountpoint)
{
	int top = mount_status_open(mountpoint), result = -1;

	if (top < 0)
		return -1;
	tracer->file = open_file(top, mountpoint);
	if (tracer->file >= 0 && is_numbered_alike(tracer, top, mountpoint))
		result = 0;
	else if (tracer->file >= 0)
		close(tracer->file);
	close(top);
	return result;
}

/* Watches the file and the signals. 0 or -1. */
static int watch(struct tracer *tracer)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET};
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	tracer->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	tracer->events = epoll_create1(EPOLL_CLOEXEC);
	event.data.fd = tracer->signals;
	if (epoll_ctl(tracer->events, EPOLL_CTL_ADD, tracer->signals, &event))
		return -1;
	event.data.fd = tracer->file;
	return epoll_ctl(tracer->events, EPOLL_CTL_ADD, tracer->file, &event);
}

/*
 * Holds threads that come to wait. The wait for them is one of epoll with EPOLLET: it makes no
 * request by itself, which could not be answered any more, not even as this process is frozen.
 */
static void hold_on(struct tracer *tracer)
{
	struct epoll_event event;

	for (;;) {
		int count = epoll_wait(tracer->events, &event, 1, -1);

		if (count < 0 && errno != EINTR)
			return;
		if (is_ending(tracer))
			return;
		note_changes(tracer);
		if (count > 0 && event.data.fd == tracer->file && hold_all(tracer))
			return;
	}
}

static void let_go(const struct tracer *tracer)
{
	for (int thread = 1; thread <= tracer->last; thread++) {
		if (tracer->marks[thread] == MARK_HELD)
			(void)ptrace(PTRACE_DETACH, thread, NULL, NULL);
	}
}

/* Leaves the terminal and the directory of the command that started this. */
static void leave_command(void)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int descriptor = 0; nothing >= 0 && descriptor <= STDERR_FILENO; descriptor++)
		(void)dup2(nothing, descriptor);
	(void)!chdir("/");
}

int tracer_run(const char *mountpoint, int ready)
{
	struct tracer tracer = {.marks = calloc(THREADS_MAX, 1)};
	int status = EXIT_FAILURE, err;

	if (!tracer.marks)
		goto out;
	if (begin_freeze(&tracer, mountpoint))
		goto out;
	setsid();
	err = watch(&tracer) ? -errno : hold_all(&tracer);
	if (err) {
		fprintf(stderr, "ratefs: %s: %s\n", mountpoint, strerror(-err));
	} else {
		leave_command();
		(void)!write(ready, "", 1);
		close(ready);
		hold_on(&tracer);
		status = EXIT_SUCCESS;
	}
	/* First the tree: a thread that asks at once shall not find it frozen. */
	close(tracer.file);
	let_go(&tracer);
out:
	free(tracer.marks);
	return status;
}
