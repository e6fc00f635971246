/*
 * client: reads and writes a host's mount.
 *
 *	client read FILE		prints "NANOSECONDS RESULT" and then what was read
 *	client write FILE TEXT		likewise
 *	client mkdir|rmdir PATH, client rename FROM TO, client chmod PATH MODE
 *	client loop LOG HOST WORK_US FILE...
 *
 * RESULT is OK or the name of the errno. loop: for each FILE a thread reads it again and again,
 * works for WORK_US after each grant, and appends a line "ISSUED RETURNED HOST FILE TOKENS" to LOG,
 * with both stamps of CLOCK_MONOTONIC in nanoseconds. A failed read is repeated; the name of the
 * errno stands in the place of TOKENS, once until it succeeds or fails otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_MAX = 64 * 1024, AGAIN_US = 20000, LINE_MAX_BYTES = 512 };

static int log_fd;
static const char *host;
static useconds_t work_us;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The path below the mount: LIMITER/token, LIMITER/take/5, LIMITER/partitions/3/token. */
static const char *short_name(const char *path)
{
	const char *below = strstr(path, "/mount/");

	return below ? below + strlen("/mount/") : path;
}

static void note(uint64_t issued_ns, uint64_t returned_ns, const char *path, const char *what)
{
	char line[LINE_MAX_BYTES];
	int size = snprintf(line, sizeof(line), "%ju %ju %s %s %s\n", (uintmax_t)issued_ns,
			    (uintmax_t)returned_ns, host, short_name(path), what);

	if (size < 0 || size >= (int)sizeof(line) || write(log_fd, line, (size_t)size) != size)
		abort();
}

static void *loop(void *argument)
{
	const char *path = argument;
	char text[64];
	int fd = -1;
	int failed = 0;

	for (;;) {
		uint64_t issued_ns = now_ns();
		ssize_t size;

		if (fd < 0)
			fd = open(path, O_RDONLY | O_CLOEXEC);
		size = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
		if (size > 0) {
			text[size - 1] = '\0';
			note(issued_ns, now_ns(), path, text);
			failed = 0;
			if (work_us)
				usleep(work_us);
			continue;
		}
		if (size == 0)
			errno = ENODATA;
		if (errno != failed) {
			failed = errno;
			note(issued_ns, now_ns(), path, strerrorname_np(failed));
		}
		if (fd >= 0)
			close(fd);
		fd = -1;
		usleep(AGAIN_US);
	}
	return NULL;
}

static int loops(char **arguments, int count)
{
	log_fd = open(arguments[0], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	host = arguments[1];
	work_us = (useconds_t)atoi(arguments[2]);
	if (log_fd < 0)
		return 1;
	for (int i = 3; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, loop, arguments[i]))
			return 1;
	}
	for (;;)
		pause();
}

static ssize_t act(const char *what, const char *path, const char *more, char *text)
{
	int fd;

	if (strcmp(what, "mkdir") == 0)
		return mkdir(path, 0777);
	if (strcmp(what, "rmdir") == 0)
		return rmdir(path);
	if (strcmp(what, "rename") == 0)
		return rename(path, more);
	if (strcmp(what, "chmod") == 0)
		return chmod(path, (mode_t)strtoul(more, NULL, 8));
	fd = open(path, strcmp(what, "read") == 0 ? O_RDONLY : O_WRONLY);
	if (fd < 0)
		return -1;
	return more ? write(fd, more, strlen(more)) : read(fd, text, TEXT_MAX);
}

int main(int count, char **arguments)
{
	static char text[TEXT_MAX + 1];
	const char *more = count > 3 ? arguments[3] : NULL;
	uint64_t begun_ns;
	ssize_t size;

	if (count < 3)
		return 2;
	if (strcmp(arguments[1], "loop") == 0)
		return count > 5 ? loops(arguments + 2, count - 2) : 2;
	begun_ns = now_ns();
	size = act(arguments[1], arguments[2], more, text);
	printf("%ju %s\n%s", (uintmax_t)(now_ns() - begun_ns),
	       size < 0 ? strerrorname_np(errno) : "OK", text);
	return 0;
}
