/*
 * session - the mount, and the thread that receives its requests, see session.h.
 *
 * There is one receiver: a second one is woken by every request, too, which costs 16 clients a tenth
 * of their throughput and gains nothing. But waking a sleeping processor is nearly the whole cost of
 * a token when client and daemon run on two (50 to 80 us of 55 to 85), so the receiver looks for the
 * next request for a while before it sleeps, when the requests of late came so closely that this
 * pays: not so closely that client and daemon share a processor, where looking only takes it away.
 */
#include "fs/session.h"
#include "fs/log.h"
#include "fs/ops.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stdatomic.h>
#include <unistd.h>

enum {
	LOOK_NS = 50000,	/* how long it looks before it sleeps */
	LOOK_GAP_MIN_NS = 8000, /* mean gap between answer and next request that makes it look */
	LOOK_GAP_MAX_NS = 100000,
	GAP_CAP_NS = 1000000, /* longer gaps count as this one */
	GAP_WEIGHT = 8,	      /* of the mean against the newest gap */
};

static struct {
	pthread_t thread;
	int ended;
	_Atomic bool stop;
	_Atomic bool done;
} receiver;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

int session_mount(struct daemon *daemon)
{
	daemon->session = fuse_session_new(&daemon->options->fuse, &OPS, sizeof(OPS), daemon);
	if (!daemon->session)
		return EXIT_USAGE; /* libfuse has named the option it does not know */
	if (fuse_session_mount(daemon->session, daemon->options->mountpoint)) {
		log_error("cannot mount on %s", daemon->options->mountpoint);
		fuse_session_destroy(daemon->session);
		daemon->session = NULL;
		return EXIT_FAILURE;
	}
	return 0;
}

void session_drop(struct daemon *daemon)
{
	fuse_session_unmount(daemon->session);
	fuse_session_destroy(daemon->session);
	daemon->session = NULL;
}

/* Tells the kernel to bring an interrupt again: its request may be on its way. */
static void interrupt_again(const struct daemon *daemon, uint64_t unique)
{
	struct fuse_out_header header = {
		.len = sizeof(header),
		.error = -EAGAIN,
		.unique = unique,
	};

	/* Fails when the request was answered meanwhile: just as well. */
	if (write(fuse_session_fd(daemon->session), &header, sizeof(header)) < 0)
		return;
}

/* Interrupts are answered here: libfuse would look through all requests for the one. */
static void process(struct daemon *daemon, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;
	const struct fuse_interrupt_in *interrupt = (const struct fuse_interrupt_in *)(header + 1);

	if (buffer->size < sizeof(*header))
		return;
	if (header->opcode == FUSE_INTERRUPT) {
		if (buffer->size >= sizeof(*header) + sizeof(*interrupt) &&
		    !daemon_interrupt(daemon, interrupt->unique))
			interrupt_again(daemon, header->unique);
		return;
	}
	pending_unique = header->unique;
	fuse_session_process_buf(daemon->session, buffer);
}

int session_greet(struct daemon *daemon)
{
	struct fuse_buf buffer = {0};
	bool greeted = false;
	int length = 0;

	while (!greeted) {
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break;
		greeted = ((const struct fuse_in_header *)buffer.mem)->opcode == FUSE_INIT;
		process(daemon, &buffer);
	}
	free(buffer.mem);
	return greeted && !fuse_session_exited(daemon->session) ? 0 : -1;
}

/* Looks for a request until it is there or LOOK_NS have passed. */
static void look(int fd, uint64_t since_ns)
{
	struct pollfd request = {.fd = fd, .events = POLLIN};

	while (!poll(&request, 1, 0) && monotonic_ns() - since_ns < LOOK_NS)
		;
}

static void *receive(void *argument)
{
	struct daemon *daemon = argument;
	struct fuse_buf buffer = {0};
	int fd = fuse_session_fd(daemon->session);
	uint64_t answered_ns = monotonic_ns(), mean_gap_ns = GAP_CAP_NS, gap_ns;
	uint64_t one = 1;

	while (!atomic_load(&receiver.stop) && !fuse_session_exited(daemon->session)) {
		int length;

		if (mean_gap_ns > LOOK_GAP_MIN_NS && mean_gap_ns < LOOK_GAP_MAX_NS)
			look(fd, answered_ns);
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break;
		gap_ns = monotonic_ns() - answered_ns;
		gap_ns = gap_ns < GAP_CAP_NS ? gap_ns : GAP_CAP_NS;
		mean_gap_ns += gap_ns / GAP_WEIGHT - mean_gap_ns / GAP_WEIGHT;
		process(daemon, &buffer);
		answered_ns = monotonic_ns();
	}
	free(buffer.mem);
	atomic_store(&receiver.done, true);
	if (write(receiver.ended, &one, sizeof(one)) < 0)
		log_error("cannot tell that the mount has ended: %s", strerror(errno));
	return NULL;
}

/* Does nothing: a signal with it makes a sleeping read return. */
static void wake(int signal_number)
{
	(void)signal_number;
}

int session_start(struct daemon *daemon, int ended)
{
	struct sigaction action = {.sa_handler = wake};
	int err;

	receiver.ended = ended;
	sigaction(SIGUSR1, &action, NULL);
	err = pthread_create(&receiver.thread, NULL, receive, daemon);
	return -err;
}

void session_end(struct daemon *daemon)
{
	static const struct timespec moment = {.tv_nsec = 1000000};

	/* Readers are answered; without the mount no more requests come, unless a file is open. */
	fuse_session_unmount(daemon->session);
	atomic_store(&receiver.stop, true);
	while (!atomic_load(&receiver.done)) {
		pthread_kill(receiver.thread, SIGUSR1);
		nanosleep(&moment, NULL);
	}
	pthread_join(receiver.thread, NULL);
	daemon_stop(daemon); /* those who came in between */
	fuse_session_destroy(daemon->session);
	daemon->session = NULL;
}
