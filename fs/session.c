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
	LOOK_NS = 50000,       /* how long it looks before it sleeps */
	LOOK_MEAN_MIN_NS = 10000, /* mean time between requests that makes it look */
	LOOK_MEAN_MAX_NS = 100000,
	TIME_CAP_NS = 1000000, /* longer times between requests count as this one */
	TIME_WEIGHT = 8,       /* of the mean against the newest time */
};

static struct {
	pthread_t thread;
	int ended;
	_Atomic bool stop;
	_Atomic bool done;
} receiver;

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
static void process(struct daemon *daemon, const struct fuse_buf *buffer, uint64_t now_ns)
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
	received.unique = header->unique;
	received.at_ns = now_ns;
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
		process(daemon, &buffer, clock_ns());
	}
	free(buffer.mem);
	return greeted && !fuse_session_exited(daemon->session) ? 0 : -1;
}

/* Looks for a request until it is there or LOOK_NS have passed. */
static void look(int fd)
{
	struct pollfd request = {.fd = fd, .events = POLLIN};
	uint64_t until_ns = clock_ns() + LOOK_NS;

	while (!poll(&request, 1, 0) && clock_ns() < until_ns)
		;
}

static void *receive(void *argument)
{
	struct daemon *daemon = argument;
	struct fuse_buf buffer = {0};
	int fd = fuse_session_fd(daemon->session);
	uint64_t mean_ns = TIME_CAP_NS, last_ns = clock_ns(), now_ns, between_ns, one = 1;

	while (!atomic_load(&receiver.stop) && !fuse_session_exited(daemon->session)) {
		int length;

		if (mean_ns > LOOK_MEAN_MIN_NS && mean_ns < LOOK_MEAN_MAX_NS)
			look(fd);
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break;
		now_ns = clock_ns();
		between_ns = now_ns - last_ns < TIME_CAP_NS ? now_ns - last_ns : TIME_CAP_NS;
		mean_ns += between_ns / TIME_WEIGHT - mean_ns / TIME_WEIGHT;
		last_ns = now_ns;
		process(daemon, &buffer, now_ns);
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
