/*
 * client: reads and writes a host's mount.
 *
 *	client read FILE		prints "NANOSECONDS RESULT" and then what was read
 *	client write FILE TEXT		likewise
 *	client mkdir|rmdir PATH, client rename FROM TO, client chmod PATH MODE
 *	client loop LOG HOST WORK_US FILE...
 *	client bursts LOG HOST ON_MS OFF_MS FILE...
 *	client hold LOG HOST HELD_US SLOT...
 *
 * RESULT is OK or the name of the errno. loop: for each FILE a thread reads it again and again,
 * works for WORK_US after each grant, and appends a line "ISSUED RETURNED HOST FILE TOKENS" to LOG,
 * with both stamps of CLOCK_MONOTONIC in nanoseconds. A failed read is repeated; the name of the
 * errno stands in the place of TOKENS, once until it succeeds or fails otherwise. bursts: likewise,
 * without work, all threads for ON_MS and none for OFF_MS. hold: for each SLOT a thread opens it,
 * holds it for HELD_US and closes it; ISSUED is when it was opened, RETURNED before it is closed.
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
static uint64_t on_ns, off_ns; /* of bursts */

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

/* Waits until a burst is on. */
static void await_burst(void)
{
	uint64_t at_ns = on_ns ? now_ns() % (on_ns + off_ns) : 0;

	if (at_ns >= on_ns && on_ns)
		usleep((useconds_t)((on_ns + off_ns - at_ns) / 1000));
}

static void *loop(void *argument)
{
	const char *path = argument;
	char text[64];
	int fd = -1;
	int failed = 0;

	for (;;) {
		uint64_t issued_ns;
		ssize_t size;

		await_burst();
		issued_ns = now_ns();

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

static void *hold(void *argument)
{
	const char *path = argument;

	for (;;) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		uint64_t opened_ns = now_ns();

		usleep(fd < 0 ? AGAIN_US : work_us);
		if (fd < 0)
			continue;
		note(opened_ns, now_ns(), path, "1");
		close(fd);
	}
	return NULL;
}

/* A thread for each of @count files. */
static int threads(void *(*thread_of)(void *), char **files, int count, const char *log)
{
	log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (log_fd < 0)
		return 1;
	for (int i = 0; i < count; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, thread_of, files[i]))
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
	if (strcmp(arguments[1], "loop") == 0 || strcmp(arguments[1], "hold") == 0) {
		if (count < 6)
			return 2;
		host = arguments[3];
		work_us = (useconds_t)atoi(arguments[4]);
		return threads(*arguments[1] == 'l' ? loop : hold, arguments + 5, count - 5,
			       arguments[2]);
	}
	if (strcmp(arguments[1], "bursts") == 0) {
		if (count < 7)
			return 2;
		host = arguments[3];
		on_ns = strtoull(arguments[4], NULL, 10) * 1000000;
		off_ns = strtoull(arguments[5], NULL, 10) * 1000000;
		return threads(loop, arguments + 6, count - 6, arguments[2]);
	}
	begun_ns = now_ns();
	size = act(arguments[1], arguments[2], more, text);
	printf("%ju %s\n%s", (uintmax_t)(now_ns() - begun_ns),
	       size < 0 ? strerrorname_np(errno) : "OK", text);
	return 0;
}
