/*
 * client: does for the mount cases whatever a shell cannot do. Prints what it got, or the name of
 * the errno; exits 1 on an errno.
 *
 *	client read|peek FILE		read once; peek: with O_NONBLOCK
 *	client write FILE TEXT		one write of TEXT; "-": of standard input
 *	client mkdir|rmdir|unlink|create|fifo|symlink PATH
 *	client rename|link FROM TO, client chmod PATH MODE
 *	client held FILE COMMAND	open FILE, run COMMAND, then read or write the open file
 *	client crowd N FILE		N threads read FILE once each; prints how each kind ended
 *	client flood N FILE		N threads read FILE over and over, until a read fails
 *	client probe N DIRECTORY	look for N names that are not there; prints how many were
 *	client names N DIRECTORY	look for N names of any bytes; prints how many were there
 *	client polls N FILE		open FILE, poll it without waiting, close it: N times
 *	client turns N FILE		read FILE N times, opening it each time; prints milliseconds
 *	client aio|uring N FILE		N asynchronous reads of FILE from one thread, through the system calls
 *					of libaio or io_uring; prints how many tokens came
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 128 * 1024, CROWD_STACK = 64 * 1024 };

static char text[TEXT_MAX];

static int ended(int result)
{
	if (result < 0) {
		printf("%s\n", strerrorname_np(errno));
		return 1;
	}
	return 0;
}

/* Opens @path for reading. The head of `events`, which is there at once, is read. */
static int open_to_read(const char *path, int flags)
{
	int fd = open(path, O_RDONLY | flags);
	const char *name = strrchr(path, '/');
	char head[128];

	if (fd >= 0 && name && strcmp(name, "/events") == 0 && read(fd, head, sizeof(head)) <= 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int read_once(const char *path, int flags)
{
	int fd = open_to_read(path, flags);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (size > 0)
		fwrite(text, 1, (size_t)size, stdout);
	return ended((int)size);
}

static int write_once(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY);
	size_t size = strlen(what);

	if (strcmp(what, "-") == 0) {
		size = fread(text, 1, sizeof(text), stdin);
		what = text;
	}
	return ended(fd < 0 ? -1 : (int)write(fd, what, size));
}

static int held(const char *path, const char *command)
{
	int writable = open(path, O_WRONLY);
	int readable = open(path, O_RDONLY);
	int failed = 0;

	if (system(command) != 0)
		return 2;
	if (readable >= 0)
		failed |= ended((int)read(readable, text, sizeof(text)));
	if (writable >= 0)
		failed |= ended((int)write(writable, "1", 1));
	return failed;
}

struct crowd {
	const char *path;
	atomic_int granted, interrupted, refused, other;
};

static void *crowd_member(void *arg)
{
	struct crowd *crowd = arg;
	char got[16];
	int fd = open_to_read(crowd->path, 0);

	if (fd >= 0 && read(fd, got, sizeof(got)) > 0)
		atomic_fetch_add(&crowd->granted, 1);
	else if (errno == EINTR)
		atomic_fetch_add(&crowd->interrupted, 1);
	else if (errno == EBUSY)
		atomic_fetch_add(&crowd->refused, 1);
	else
		atomic_fetch_add(&crowd->other, 1);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void *flood_member(void *arg)
{
	const char *path = arg;
	char got[16];
	ssize_t size;

	do {
		int fd = open_to_read(path, 0);

		size = fd < 0 ? -1 : read(fd, got, sizeof(got));
		if (fd >= 0)
			close(fd);
	} while (size > 0);
	return NULL;
}

/* Runs @member in @count threads until all have ended. */
static void run_threads(int count, void *(*member)(void *arg), void *arg)
{
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, CROWD_STACK);
	for (int i = 0; i < count; i++) {
		errno = pthread_create(&threads[i], &small, member, arg);
		if (errno != 0)
			_exit(77); /* the others go on, and use what is here */
	}
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static int crowd(int count, const char *path)
{
	struct crowd all = {.path = path};

	run_threads(count, crowd_member, &all);
	printf("granted %d interrupted %d refused %d other %d\n", all.granted, all.interrupted,
	       all.refused, all.other);
	return 0;
}

static int probe(int count, const char *directory)
{
	struct stat attributes;
	char path[4096];
	int there = 0;

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/not-there-%d", directory, i);
		there += stat(path, &attributes) == 0;
	}
	printf("%d\n", there);
	return 0;
}

/* Names of 1 to 255 bytes, in an order that is the same each time; a few are not allowed. */
static int names(int count, const char *directory)
{
	uint64_t state = 1;
	struct stat attributes;
	char path[4096];
	int there = 0;

	for (int i = 0; i < count; i++) {
		char *at = path + sprintf(path, "%s/", directory);
		int length;

		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		length = 1 + (int)(state >> 33) % 255;
		for (int j = 0; j < length; j++) {
			state = state * UINT64_C(6364136223846793005) +
				UINT64_C(1442695040888963407);
			*at = (char)(1 + (state >> 33) % 255);
			at += *at != '/';
		}
		*at = '\0';
		there += stat(path, &attributes) == 0;
	}
	printf("%d\n", there);
	return 0;
}

static int polls(int count, const char *path)
{
	for (int i = 0; i < count; i++) {
		struct pollfd polled = {.fd = open_to_read(path, 0), .events = POLLIN};

		if (polled.fd < 0 || poll(&polled, 1, 0) < 0)
			return ended(-1);
		close(polled.fd);
	}
	return 0;
}

static int turns(int count, const char *path)
{
	struct timespec began, now;

	clock_gettime(CLOCK_MONOTONIC, &began);
	for (int i = 0; i < count; i++) {
		int fd = open(path, O_RDONLY);

		if (fd < 0 || read(fd, text, sizeof(text)) < 0)
			return ended(-1);
		close(fd);
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%ld\n",
	       (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000);
	return 0;
}

/* Submits one by one, which may block: then a kill must still end this process. */
static int aio(int count, const char *path)
{
	aio_context_t context = 0;
	struct io_event event;
	int fd = open(path, O_RDONLY), tokens = 0;

	if (syscall(SYS_io_setup, count, &context) < 0)
		return errno == ENOSYS ? 77 : ended(-1);
	for (int i = 0; i < count; i++) {
		struct iocb one = {
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)fd,
			.aio_buf = (uint64_t)(uintptr_t)text,
			.aio_nbytes = 16,
		};
		struct iocb *list = &one;

		if (syscall(SYS_io_submit, context, 1, &list) < 0)
			return ended(-1);
	}
	for (int i = 0; i < count; i++) {
		if (syscall(SYS_io_getevents, context, 1, 1, &event, NULL) < 0)
			return ended(-1);
		tokens += event.res > 0 ? (int)event.res / 2 : 0;
	}
	printf("tokens %d\n", tokens);
	return 0;
}

static int uring(int count, const char *path)
{
	struct io_uring_params params = {0};
	int fd = open(path, O_RDONLY), tokens = 0;
	int ring = (int)syscall(SYS_io_uring_setup, count, &params);
	struct io_uring_sqe *entries;
	struct io_uring_cqe *results;
	unsigned int *array, *tail;
	char *queue;

	if (ring < 0)
		return errno == ENOSYS || errno == EPERM ? 77 : ended(-1);
	queue = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(*results),
		     PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE,
		       MAP_SHARED, ring, IORING_OFF_SQES);
	if (queue == MAP_FAILED || entries == MAP_FAILED)
		return ended(-1);
	array = (unsigned int *)(queue + params.sq_off.array);
	tail = (unsigned int *)(queue + params.sq_off.tail);
	results = (struct io_uring_cqe *)(queue + params.cq_off.cqes);
	for (unsigned int i = 0; i < (unsigned int)count; i++) {
		entries[i] = (struct io_uring_sqe){
			.opcode = IORING_OP_READ,
			.flags = IOSQE_ASYNC,
			.fd = fd,
			.addr = (uint64_t)(uintptr_t)text,
			.len = 16,
		};
		array[i] = i;
	}
	__atomic_store_n(tail, (unsigned int)count, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, count, count, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return ended(-1);
	for (int i = 0; i < count; i++)
		tokens += results[i].res > 0 ? results[i].res / 2 : 0;
	printf("tokens %d\n", tokens);
	return 0;
}

static int command_read(char **arg)
{
	return read_once(arg[0], 0);
}

static int command_peek(char **arg)
{
	return read_once(arg[0], O_NONBLOCK);
}

static int command_write(char **arg)
{
	return write_once(arg[0], arg[1]);
}

static int command_mkdir(char **arg)
{
	return ended(mkdir(arg[0], 0777));
}

static int command_rmdir(char **arg)
{
	return ended(rmdir(arg[0]));
}

static int command_unlink(char **arg)
{
	return ended(unlink(arg[0]));
}

static int command_create(char **arg)
{
	return ended(open(arg[0], O_WRONLY | O_CREAT | O_EXCL, 0666));
}

static int command_fifo(char **arg)
{
	return ended(mkfifo(arg[0], 0666));
}

static int command_symlink(char **arg)
{
	return ended(symlink("elsewhere", arg[0]));
}

static int command_rename(char **arg)
{
	return ended(rename(arg[0], arg[1]));
}

static int command_link(char **arg)
{
	return ended(link(arg[0], arg[1]));
}

static int command_held(char **arg)
{
	return held(arg[0], arg[1]);
}

static int command_crowd(char **arg)
{
	return crowd(atoi(arg[0]), arg[1]);
}

static int command_flood(char **arg)
{
	run_threads(atoi(arg[0]), flood_member, arg[1]);
	return 0;
}

static int command_probe(char **arg)
{
	return probe(atoi(arg[0]), arg[1]);
}

static int command_names(char **arg)
{
	return names(atoi(arg[0]), arg[1]);
}

static int command_polls(char **arg)
{
	return polls(atoi(arg[0]), arg[1]);
}

static int command_turns(char **arg)
{
	return turns(atoi(arg[0]), arg[1]);
}

static int command_chmod(char **arg)
{
	return ended(chmod(arg[0], (mode_t)strtoul(arg[1], NULL, 8)));
}

static int command_aio(char **arg)
{
	return aio(atoi(arg[0]), arg[1]);
}

static int command_uring(char **arg)
{
	return uring(atoi(arg[0]), arg[1]);
}

static const struct {
	const char *name;
	int arguments;
	int (*run)(char **arg);
} commands[] = {
	{"read", 1, command_read},     {"peek", 1, command_peek},   {"write", 2, command_write},
	{"mkdir", 1, command_mkdir},   {"rmdir", 1, command_rmdir}, {"unlink", 1, command_unlink},
	{"create", 1, command_create}, {"fifo", 1, command_fifo},   {"symlink", 1, command_symlink},
	{"rename", 2, command_rename}, {"link", 2, command_link},   {"held", 2, command_held},
	{"crowd", 2, command_crowd},   {"flood", 2, command_flood}, {"aio", 2, command_aio},
	{"uring", 2, command_uring},   {"probe", 2, command_probe}, {"names", 2, command_names},
	{"polls", 2, command_polls},   {"turns", 2, command_turns}, {"chmod", 2, command_chmod},
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (argc == commands[i].arguments + 2 && strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argv + 2);
	fprintf(stderr, "client: not a command of mine: %s\n", argc > 1 ? argv[1] : "");
	return 2;
}
