/*
 * hostile - threads of another user that ask a mount for the same thing without end.
 */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 65536, TEXT_MOST = 1 << 20, STACK_SIZE = 256 * 1024 };

struct kind {
	const char *name;
	bool (*ask)(int thread, long count);
};

static const char *path;
static const struct kind *asked;
static char *texts[2]; /* of writes, in turn */
static size_t lengths[2];
static _Atomic bool begun;
static _Atomic long done, refused;

/* The processor alone. */
static bool ask_nothing(int thread, long count)
{
	(void)thread;
	(void)count;
	for (volatile int i = 0; i < 1000; i++)
		;
	return true;
}

static bool ask_stat(int thread, long count)
{
	struct stat attributes;

	(void)thread;
	(void)count;
	return !lstat(path, &attributes);
}

/* A name that nobody has asked for. */
static bool ask_name(int thread, long count)
{
	char name[PATH_MAX];
	struct stat attributes;

	snprintf(name, sizeof(name), "%s%ld", path, count * READERS_MAX + thread + 1);
	return !lstat(name, &attributes) || errno == ENOENT;
}

static bool ask_read(int thread, long count)
{
	static _Thread_local char piece[PIECE];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t got;

	(void)thread;
	(void)count;
	if (fd < 0)
		return false;
	do
		got = read(fd, piece, sizeof(piece));
	while (got > 0);
	close(fd);
	return !got || errno == EAGAIN;
}

static bool ask_list(int thread, long count)
{
	DIR *directory = opendir(path);

	(void)thread;
	(void)count;
	if (!directory)
		return false;
	while (readdir(directory))
		;
	closedir(directory);
	return true;
}

static bool ask_write(int thread, long count)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t length = lengths[count % 2];
	bool written;

	(void)thread;
	if (fd < 0)
		return false;
	written = write(fd, texts[count % 2], length) == (ssize_t)length;
	close(fd);
	return written;
}

static bool ask_mkdir(int thread, long count)
{
	char name[PATH_MAX];

	(void)count;
	snprintf(name, sizeof(name), "%s%d", path, thread);
	return !mkdir(name, 0777) && !rmdir(name);
}

static bool ask_poll(int thread, long count)
{
	static _Thread_local int fd = -1;
	struct pollfd asked_for;

	(void)thread;
	(void)count;
	if (fd < 0)
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	asked_for = (struct pollfd){.fd = fd, .events = POLLIN};
	return fd >= 0 && poll(&asked_for, 1, 0) >= 0;
}

static const struct kind KINDS[] = {
	{"nothing", ask_nothing}, {"stat", ask_stat},	{"name", ask_name},   {"read", ask_read},
	{"list", ask_list},	  {"write", ask_write}, {"mkdir", ask_mkdir}, {"poll", ask_poll},
};

static void *ask(void *argument)
{
	int thread = (int)(intptr_t)argument;

	while (!begun)
		usleep(1000);
	for (long count = 0;; count++)
		atomic_fetch_add(asked->ask(thread, count) ? &done : &refused, 1);
	return NULL;
}

static void find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++) {
		if (!strcmp(KINDS[i].name, name))
			asked = &KINDS[i];
	}
	errno = EINVAL;
	if (!asked)
		client_fail(name);
}

/* Makes text @i: @line, @times. */
static void repeat_line(int i, const char *line, long times)
{
	size_t bytes = strlen(line) + 1;
	char *end;

	errno = EINVAL;
	if (times < 1 || (size_t)times > TEXT_MOST / bytes)
		client_fail("TIMES");
	texts[i] = end = malloc(bytes * (size_t)times);
	if (!end)
		client_fail("memory");
	for (; times; times--) {
		end = mempcpy(end, line, bytes - 1);
		*end++ = '\n';
	}
	lengths[i] = (size_t)(end - texts[i]);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		client_fail("setresuid");
}

void hostile_run(char **argv)
{
	int threads = client_readers(argv[1]);
	pthread_attr_t attributes;
	pthread_t thread;
	char end;

	find_kind(argv[2]);
	path = argv[3];
	repeat_line(0, argv[4], strtol(argv[6], NULL, 10));
	repeat_line(1, argv[5], strtol(argv[6], NULL, 10));
	become((uid_t)strtoul(argv[0], NULL, 10));
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (int i = 0; i < threads; i++) {
		errno = pthread_create(&thread, &attributes, ask, (void *)(intptr_t)i);
		if (errno)
			client_fail("thread");
	}
	begun = true;
	while (!done && !refused)
		usleep(1000);
	printf("started\n");
	fflush(stdout);
	(void)!read(STDIN_FILENO, &end, 1);
	printf("done %ld\nrefused %ld\n", (long)done, (long)refused);
}
