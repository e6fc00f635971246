/*
 * null_fs - the floor under every figure: the smallest libfuse low-level file system that answers
 * "1\n".
 *
 *	null_fs FORM MOUNTPOINT [RATE [MOUNT-OPTIONS]]
 *
 * It stays in front and serves a tree as deep as that of ratefs: x/token is answered at once,
 * x/timer by a timer, RATE times a second. mkdir in the root makes the next of n0, n1, ..., which
 * lookups find from then on. FORM is how requests are received, a row of the table at the end.
 */
#define FUSE_USE_VERSION 35

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	TIMEOUT_S = 1,	  /* of names and attributes */
	LOOK_NS = 50000,  /* longer than waking an idle core takes */
	EARLY_NS = 60000, /* how much too early the timer of form early is armed */
	HELD_MAX = 1024,
	BURST = 100,
	NS_PER_S = 1000000000,
};

enum { INO_ROOT = FUSE_ROOT_ID, INO_X, INO_TOKEN, INO_TIMER, INO_MADE };

struct node {
	fuse_ino_t parent, ino;
	const char *name;
	mode_t mode;
};

static const struct node nodes[] = {
	{0, INO_ROOT, "/", S_IFDIR | 0755},
	{INO_ROOT, INO_X, "x", S_IFDIR | 0755},
	{INO_X, INO_TOKEN, "token", S_IFREG | 0444},
	{INO_X, INO_TIMER, "timer", S_IFREG | 0444},
};

static const char text[] = "1\n";
static const size_t text_size = sizeof(text) - 1;

struct form {
	const char *name;
	int (*loop)(struct fuse_session *session, const struct form *form);
	int clone_fd;
	int64_t early_ns;
};

/* The readers of x/timer in order, and when the first of them is due. One thread only. */
static struct {
	fuse_req_t held[HELD_MAX];
	unsigned int first, count;
	int fd;
	int64_t period_ns, due_ns, early_ns;
} pace = {.fd = -1};

static _Atomic fuse_ino_t made; /* directories n0, n1, ... of the root */

static int64_t sample_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static struct stat attributes(fuse_ino_t ino)
{
	struct stat attr = {.st_ino = ino, .st_mode = S_IFDIR | 0755, .st_nlink = 1};

	if (ino <= sizeof(nodes) / sizeof(nodes[0]))
		attr.st_mode = nodes[ino - 1].mode;
	return attr;
}

static void reply_entry(fuse_req_t req, fuse_ino_t ino)
{
	struct fuse_entry_param entry = {
		.ino = ino,
		.attr = attributes(ino),
		.entry_timeout = TIMEOUT_S,
		.attr_timeout = TIMEOUT_S,
	};

	fuse_reply_entry(req, &entry);
}

static void null_init(void *userdata, struct fuse_conn_info *connection)
{
	(void)userdata;
	connection->want &= ~(unsigned int)FUSE_CAP_ASYNC_DIO;
}

/* Finds nN of the root; its inode, or 0. */
static fuse_ino_t find_made(const char *name)
{
	char *end;
	unsigned long number = strtoul(name + 1, &end, 10);

	return *name == 'n' && name[1] && !*end && number < made ? INO_MADE + number : 0;
}

static void null_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	fuse_ino_t ino = parent == INO_ROOT ? find_made(name) : 0;

	if (ino) {
		reply_entry(req, ino);
		return;
	}
	for (size_t i = 1; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (nodes[i].parent == parent && strcmp(nodes[i].name, name) == 0) {
			reply_entry(req, nodes[i].ino);
			return;
		}
	}
	fuse_reply_err(req, ENOENT);
}

static void null_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct stat attr = attributes(ino);

	(void)file;
	fuse_reply_attr(req, &attr, TIMEOUT_S);
}

static void null_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent;
	(void)name;
	(void)mode;
	reply_entry(req, INO_MADE + made++);
}

static void null_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)ino;
	file->direct_io = 1;
	fuse_reply_open(req, file);
}

/* Arms the timer for the first reader; a due time in the past fires at once. */
static void pace_arm(void)
{
	int64_t at_ns = pace.due_ns - pace.early_ns;
	struct itimerspec at = {
		.it_value = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S},
	};

	timerfd_settime(pace.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void pace_hold(fuse_req_t req)
{
	if (pace.fd < 0 || !pace.period_ns || pace.count == HELD_MAX) {
		fuse_reply_err(req, EAGAIN);
		return;
	}
	pace.held[(pace.first + pace.count++) % HELD_MAX] = req;
	if (pace.count == 1) {
		int64_t now = sample_now_ns();

		if (pace.due_ns < now - BURST * pace.period_ns)
			pace.due_ns = now;
		pace_arm();
	}
}

static void pace_answer(void)
{
	uint64_t expirations;

	if (read(pace.fd, &expirations, sizeof(expirations)) < 0)
		return;
	while (pace.count && pace.due_ns <= sample_now_ns() + pace.early_ns) {
		while (sample_now_ns() < pace.due_ns)
			;
		fuse_reply_buf(pace.held[pace.first], text, text_size);
		pace.first = (pace.first + 1) % HELD_MAX;
		pace.count--;
		pace.due_ns += pace.period_ns;
	}
	if (pace.count)
		pace_arm();
}

static void null_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		      struct fuse_file_info *file)
{
	size_t from = (size_t)offset < text_size ? (size_t)offset : text_size;
	size_t left = text_size - from;

	(void)file;
	if (ino == INO_TIMER && from == 0)
		pace_hold(req);
	else
		fuse_reply_buf(req, text + from, size < left ? size : left);
}

static const struct fuse_lowlevel_ops ops = {
	.init = null_init,
	.lookup = null_lookup,
	.getattr = null_getattr,
	.mkdir = null_mkdir,
	.open = null_open,
	.read = null_read,
};

static int loop_single(struct fuse_session *session, const struct form *form)
{
	(void)form;
	return fuse_session_loop(session);
}

static int loop_multi(struct fuse_session *session, const struct form *form)
{
	struct fuse_loop_config config = {.clone_fd = form->clone_fd, .max_idle_threads = 10};

	return fuse_session_loop_mt(session, &config);
}

/* Receives and answers one request: its size, 0 at the end of the mount, or -errno. */
static int step(struct fuse_session *session, struct fuse_buf *buffer)
{
	int size = fuse_session_receive_buf(session, buffer);

	if (size > 0)
		fuse_session_process_buf(session, buffer);
	return size == -EINTR || size == -EAGAIN || size == -ENOENT ? 1 : size;
}

static int readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) > 0;
}

static int loop_look(struct fuse_session *session, const struct form *form)
{
	struct fuse_buf buffer = {.mem = NULL};
	int fd = fuse_session_fd(session);
	int result;

	(void)form;
	do {
		int64_t until_ns = sample_now_ns() + LOOK_NS;

		while (!readable(fd) && sample_now_ns() < until_ns)
			;
		result = step(session, &buffer);
	} while (result > 0 && !fuse_session_exited(session));
	free(buffer.mem);
	return result;
}

static int loop_timer(struct fuse_session *session, const struct form *form)
{
	struct fuse_buf buffer = {.mem = NULL};
	int fd = fuse_session_fd(session);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event fuse_event = {.events = EPOLLIN, .data = {.fd = fd}};
	struct epoll_event timer_event = {.events = EPOLLIN};
	int result = 1;

	pace.early_ns = form->early_ns;
	pace.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	timer_event.data.fd = pace.fd;
	if (epoll_fd < 0 || pace.fd < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &fuse_event) < 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pace.fd, &timer_event) < 0)
		return -errno;
	while (result > 0 && !fuse_session_exited(session)) {
		struct epoll_event event;

		if (epoll_wait(epoll_fd, &event, 1, -1) < 1)
			continue;
		if (event.data.fd == fd)
			result = step(session, &buffer);
		else
			pace_answer();
	}
	free(buffer.mem);
	return result;
}

static const struct form forms[] = {
	{"single", loop_single, 0, 0},
	{"multi", loop_multi, 0, 0},
	{"clone", loop_multi, 1, 0},
	{"look", loop_look, 0, 0}, /* looks for a while before it sleeps */
	{"timer", loop_timer, 0, 0},
	{"early", loop_timer, 0, EARLY_NS}, /* wakes before the time and looks for it */
};

static const struct form *find_form(const char *name)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (strcmp(forms[i].name, name) == 0)
			return &forms[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct form *form = argc > 2 ? find_form(argv[1]) : NULL;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *session;
	int status = EXIT_FAILURE;

	if (!form) {
		fprintf(stderr, "usage: null_fs FORM MOUNTPOINT [RATE [MOUNT-OPTIONS]]\nforms:");
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
			fprintf(stderr, " %s", forms[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	if (argc > 3 && atoll(argv[3]) > 0)
		pace.period_ns = NS_PER_S / atoll(argv[3]);
	fuse_opt_add_arg(&args, argv[0]);
	fuse_opt_add_arg(&args, "-osubtype=null_fs");
	if (argc > 4) {
		fuse_opt_add_arg(&args, "-o");
		fuse_opt_add_arg(&args, argv[4]);
	}
	session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	if (!session)
		goto out_args;
	if (fuse_set_signal_handlers(session) < 0)
		goto out_session;
	if (fuse_session_mount(session, argv[2]) < 0)
		goto out_handlers;
	if (form->loop(session, form) >= 0)
		status = EXIT_SUCCESS;
	fuse_session_unmount(session);
out_handlers:
	fuse_remove_signal_handlers(session);
out_session:
	fuse_session_destroy(session);
out_args:
	fuse_opt_free_args(&args);
	return status;
}
