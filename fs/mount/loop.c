/*
 * loop - one thread that receives requests, and wakes for what is due and for signals, see loop.h.
 *
 * The thread sleeps in one place, the read of the next request, and a timer's signal interrupts it
 * when something is due. Measured against it with the smallest file system as the floor: a second
 * thread for time and signals costs every token a tenth (the C library and the kernel take slower
 * ways once there are two), epoll before each read as much, and a second receiver a tenth of the
 * throughput of 16 readers, for nothing.
 *
 * Waking a sleeping processor is nearly the whole cost of a token when client and daemon run on two
 * (50 to 80 us of 55 to 85). So the thread looks for the next request for a while before it sleeps,
 * when requests of late came so closely that this pays, but not so closely that client and daemon
 * share a processor, where looking only takes it away. (One that does not sleep is not moved to the
 * processor of its client either, where a token takes 3 us and not the 20 of the best of looks; but
 * one that sleeps is moved there only most of the time, and takes 65 us otherwise.) And the timer
 * goes off a little early, and the thread looks at the clock until the time has come, if that is
 * not too often.
 *
 * The kernel has one queue for all users. So the thread receives what is in it every few requests,
 * and serves users in turn, see arrivals.h. Each look costs 0.3 us, which a user who asks alone
 * does not pay: then there is one in 16 requests, and one after each that took long.
 */
#include "fs/mount/loop.h"
#include "fs/base/log.h"
#include "fs/mount/arrivals.h"
#include "fs/mount/channel.h"
#include "fs/mount/frozen.h"
#include "fs/mount/handle.h"
#include "fs/mount/wake.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	LOOK_NS = 50000,	  /* how long it looks for a request before it sleeps */
	LOOK_MEAN_MIN_NS = 10000, /* mean time between requests that makes it look */
	LOOK_MEAN_MAX_NS = 100000,
	TIME_CAP_NS = 1000000, /* longer times between requests count as this one */
	TIME_WEIGHT = 8,       /* of the mean against the newest time */
	GATHER_MAX = 64,       /* requests that are received in one go */
	GATHER_EVERY = 4,      /* requests that are served between two looks for more */
	GATHER_SELDOM = 16,    /* ... if there was none the last time */
	PAGES_MAX = 256,       /* of a request; the kernel allows no more, if it is not told to */
};

static struct {
	int descriptors[CHANNELS]; /* the first is the session's */
	unsigned int count;
	unsigned int turn;
	bool stays; /* requests are received from the same one as the last */
	bool begun; /* the first request, FUSE_INIT, is answered */
} channels;

_Thread_local uint8_t channel_of_thread;

/* Has receives wait for a request, or not. */
static void set_waiting(int descriptor, bool waits)
{
	fcntl(descriptor, F_SETFL, waits ? O_RDWR : O_RDWR | O_NONBLOCK);
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)

/*
 * Returns memory for a request of @size bytes that is not swapped out, or NULL. A killed process
 * gets no page any more: where the memory for a request has to be paged in, the request that is
 * handed to a killed server fails with EIO, and reaches no successor.
 */
static void *locked_memory(size_t size)
{
	static void *memory;
	static size_t memory_size;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;

	if (size <= memory_size)
		return memory;
	if (memory)
		munmap(memory, memory_size);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_LOCKED, -1, 0);
	if (memory == MAP_FAILED) {
		log_info("memory for requests may be swapped out: %s", strerror(errno));
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	}
	if (memory == MAP_FAILED)
		memory = NULL;
	memory_size = memory ? size : 0;
	return memory;
}

static ssize_t receive_request(int descriptor, void *bytes, size_t size, void *userdata)
{
	void *memory = locked_memory(size);
	ssize_t length;

	(void)descriptor;
	(void)userdata;
	if (!channels.stays)
		channels.turn++;
	channel_of_thread = (uint8_t)(channels.turn % channels.count);
	length = read(channels.descriptors[channel_of_thread], memory ? memory : bytes, size);
	if (memory && length > 0)
		memcpy(bytes, memory, (size_t)length);
	return length;
}

/*
 * Asks the kernel in @answer, to FUSE_INIT, for pages in a request. A write takes one for each of
 * its pieces, however short, and libfuse asks for as many as the bytes of the longest write fill.
 * A read of as many pages comes in one request, too.
 */
static void ask_for_pages(const struct iovec *answer)
{
	struct fuse_init_out *init = answer->iov_base;

	if (answer->iov_len >= sizeof(*init) && init->flags & FUSE_MAX_PAGES)
		init->max_pages = PAGES_MAX;
}

static ssize_t send_reply(int descriptor, struct iovec *parts, int count, void *userdata)
{
	(void)descriptor;
	(void)userdata;
	if (!channels.begun) {
		channels.begun = true;
		if (count > 1)
			ask_for_pages(&parts[1]);
	}
	return writev(channels.descriptors[channel_of_thread], parts, count);
}

void loop_adopt(struct fuse_session *session, const int *descriptors, unsigned int count)
{
	static const struct fuse_custom_io io = {.read = receive_request, .writev = send_reply};

	assert(count && count <= CHANNELS);
	/* A predecessor may have been killed as it gathered. */
	for (unsigned int i = 0; i < count; i++)
		set_waiting(descriptors[i], true);
	memcpy(channels.descriptors, descriptors, count * sizeof(*descriptors));
	channels.count = count;
	if (fuse_session_custom_io(session, &io, descriptors[0])) {
		log_warning("requests come by one descriptor: %s", strerror(errno));
		channels.count = 1;
	}
}

#else

void loop_adopt(struct fuse_session *session, const int *descriptors, unsigned int count)
{
	(void)session;
	(void)count;
	set_waiting(descriptors[0], true); /* a predecessor may have been killed as it gathered */
}

#endif

void loop_close(void)
{
	while (channels.count > 1)
		close(channels.descriptors[--channels.count]);
}

/*
 * Interrupts are answered here: libfuse would look through all requests for the one. A request that
 * does not wait (any more) was answered, since requests are done one after the other.
 */
void loop_process(struct daemon *daemon, const struct fuse_buf *buffer, uint64_t now_ns)
{
	const struct fuse_in_header *header = buffer->mem;
	const struct fuse_interrupt_in *interrupt = (const struct fuse_interrupt_in *)(header + 1);
	const struct fuse_poll_in *poll_in = (const struct fuse_poll_in *)(header + 1);

	if (buffer->size < sizeof(*header))
		return;
	if (header->opcode == FUSE_INTERRUPT) {
		if (buffer->size >= sizeof(*header) + sizeof(*interrupt))
			daemon_interrupt(daemon, interrupt->unique & ~FUSE_RESEND);
		return;
	}
	daemon->caller = (struct caller){
		.unique = header->unique & ~FUSE_RESEND,
		.at_ns = now_ns,
		.uid = header->uid,
		.gid = header->gid,
		.pid = header->pid,
		.again = header->unique & FUSE_RESEND,
	};
	if (header->opcode == FUSE_POLL && buffer->size >= sizeof(*header) + sizeof(*poll_in))
		daemon->caller.poll = poll_in->kh;
	fuse_session_process_buf(daemon->fuse, buffer);
}

/* Tells whether there is a request at @until_ns at the latest. */
static bool look_for_request(const struct daemon *daemon, uint64_t until_ns)
{
	struct pollfd request = {.fd = fuse_session_fd(daemon->fuse), .events = POLLIN};
	int found;

	do
		found = poll(&request, 1, 0);
	while (!found && clock_ns() < until_ns);
	return found;
}

/*
 * Serves who is due. Called early it waits for the time, unless a request comes before, or is there
 * (@is_busy).
 */
static void serve_due(struct daemon *daemon, bool is_busy)
{
	uint64_t due_ns = daemon_due_ns(daemon), now_ns = clock_ns();

	if (due_ns > now_ns && due_ns - now_ns <= WAKE_EARLY_NS &&
	    (is_busy || look_for_request(daemon, due_ns)))
		return;
	wake_done();
	daemon_run(daemon);
}

/* When requests came of late. */
struct times {
	uint64_t last_ns, mean_ns; /* the last one, and between them */
};

static void note_time(struct times *times, uint64_t now_ns)
{
	uint64_t between_ns = now_ns - times->last_ns;

	if (between_ns > TIME_CAP_NS)
		between_ns = TIME_CAP_NS;
	times->mean_ns += between_ns / TIME_WEIGHT - times->mean_ns / TIME_WEIGHT;
	times->last_ns = now_ns;
}

/* Does a request, of at least a header, at @now_ns. Returns whether it took long. */
static bool serve(struct daemon *daemon, struct arrivals *arrivals, const struct fuse_buf *buffer,
		  uint64_t now_ns)
{
	const struct fuse_in_header header = *(const struct fuse_in_header *)buffer->mem;
	uint64_t done_ns;

	loop_process(daemon, buffer, now_ns);
	if (!arrivals_are_of_user(header.opcode))
		return false;
	done_ns = clock_ns();
	if (done_ns - now_ns < REST_SLOW_NS) {
		arrivals_served(arrivals, header.uid, done_ns);
		return false;
	}
	if (users_binds(&daemon->engine.users, header.uid))
		arrivals_rest(arrivals, header.uid, now_ns, done_ns);
	return true;
}

static bool serve_arrival(struct daemon *daemon, struct arrivals *arrivals, struct arrival *arrival,
			  uint64_t now_ns)
{
	struct fuse_buf buffer = {.mem = arrival->bytes, .size = arrival->size};
	bool was_slow;

	channel_reply_to(arrival->channel);
	was_slow = serve(daemon, arrivals, &buffer, now_ns);
	free(arrival);
	return was_slow;
}

static void serve_arrivals(struct daemon *daemon, struct arrivals *arrivals)
{
	struct arrival *arrival;

	while ((arrival = arrivals_take(arrivals, NEVER_NS)))
		serve_arrival(daemon, arrivals, arrival, clock_ns());
}

/* Tells whether a request tells of all that came before it: of the threads that wait. */
static bool comes_behind_all(const struct daemon *daemon, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;
	const struct fuse_read_in *read_in = (const struct fuse_read_in *)(header + 1);
	const struct handle *handle;

	if (buffer->size < sizeof(*header) + sizeof(*read_in) || header->opcode != FUSE_READ)
		return false;
	handle = handle_find(daemon, read_in->fh);
	return handle && handle->row->kind == &FROZEN_FILE;
}

/* Takes over a request that was received. */
static void add_request(struct daemon *daemon, const struct fuse_buf *buffer,
			struct arrivals *arrivals)
{
	uint8_t channel = channel_current();

	if (comes_behind_all(daemon, buffer))
		serve_arrivals(daemon, arrivals);
	else if (arrivals_add(arrivals, buffer->mem, buffer->size, channel))
		return;
	channel_reply_to(channel);
	loop_process(daemon, buffer, clock_ns());
}

/* Receives requests that are there, and waits for none: one may be withdrawn after the look. */
static void gather(struct daemon *daemon, struct fuse_buf *buffer, struct arrivals *arrivals)
{
	int descriptor = fuse_session_fd(daemon->fuse);

	if (!arrivals_have_room(arrivals) || !look_for_request(daemon, 0))
		return;
	if (channels.count)
		descriptor = channels.descriptors[++channels.turn % channels.count];
	channels.stays = true;
	set_waiting(descriptor, false);
	for (int i = 0; i < GATHER_MAX && arrivals_have_room(arrivals) && !wake_is_due(); i++) {
		if (fuse_session_receive_buf(daemon->fuse, buffer) <= 0)
			break;
		add_request(daemon, buffer, arrivals);
	}
	set_waiting(descriptor, true);
	channels.stays = false;
}

/*
 * Looks for a request while all whose requests are there rest; they go on if none comes. To sleep
 * for so short a time would cost the others more than the rest gives them.
 */
static void look_for_others(const struct daemon *daemon, struct arrivals *arrivals)
{
	uint64_t now_ns = clock_ns(), until_ns = now_ns + REST_IDLE_NS;
	uint64_t next_ns = arrivals_next_ns(arrivals);
	bool found = false;

	while (!found && !wake_is_due() && now_ns < until_ns && now_ns < next_ns) {
		found = look_for_request(daemon, 0);
		now_ns = clock_ns();
	}
	if (!found && now_ns >= until_ns)
		arrivals_go_on(arrivals);
}

void loop_run(struct daemon *daemon, void (*answer)(void *what), void *what)
{
	struct times times = {.last_ns = clock_ns(), .mean_ns = TIME_CAP_NS};
	struct arrivals arrivals = {0};
	struct fuse_buf buffer = {0};
	unsigned int served = 0, every = GATHER_SELDOM; /* since the last look, until the next */
	struct arrival *arrival;
	uint64_t now_ns;
	int length;

	for (;;) {
		if (wake_is_ending())
			break;
		if (wake_is_asked())
			answer(what);
		if (wake_is_due())
			serve_due(daemon, arrivals.count);
		else if (!arrivals.count && times.mean_ns > LOOK_MEAN_MIN_NS &&
			 times.mean_ns < LOOK_MEAN_MAX_NS &&
			 look_for_request(daemon, clock_ns() + LOOK_NS) && wake_is_due())
			continue;
		if (++served >= every) {
			gather(daemon, &buffer, &arrivals);
			served = 0;
			every = arrivals.count ? GATHER_EVERY : GATHER_SELDOM;
		}
		if (arrivals.count) {
			now_ns = clock_ns();
			arrival = arrivals_take(&arrivals, now_ns);
			if (!arrival) {
				look_for_others(daemon, &arrivals);
				served = every;
				continue;
			}
			note_time(&times, now_ns);
			if (serve_arrival(daemon, &arrivals, arrival, now_ns))
				served = every;
			continue;
		}
		length = fuse_session_receive_buf(daemon->fuse, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0 || fuse_session_exited(daemon->fuse))
			break;
		if (arrivals.resting) {
			add_request(daemon, &buffer, &arrivals);
			continue;
		}
		now_ns = clock_ns();
		note_time(&times, now_ns);
		if (serve(daemon, &arrivals, &buffer, now_ns))
			served = every;
	}
	serve_arrivals(daemon, &arrivals);
	wake_never();
	free(buffer.mem);
	if (wake_is_replaced())
		return;
	if (wake_is_ending())
		log_info("ending on %s", strsignal(wake_ending()));
	else
		log_info("the mount has ended");
}
