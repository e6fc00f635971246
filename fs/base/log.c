/* log - messages to the operator, see log.h. */
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <paths.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE_BYTES = PIPE_BUF, /* a pipe takes so many at once, or none of them */
	HEAD_BYTES = 64,
};

enum log_way {
	LOG_WAITS, /* to standard error, until it is read */
	LOG_TO_ERROR,
	LOG_TO_SYSLOG,
};

static enum log_level log_most = LOG_LEVEL_INFO;
static _Atomic enum log_way log_way;
static bool log_is_journal;
static int log_unwaited = -1; /* standard error once more, until it takes its place; or -1 */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
static unsigned long log_lost;				     /* messages that nobody was told of */
static int log_socket = -1;				     /* to syslog; -1: not yet */

void log_set_level(enum log_level level)
{
	log_most = level;
}

void log_prepare(void)
{
	struct stat file;

	/* A file on a disk never waits for a reader, and sockets are asked not to wait. */
	if (!fstat(STDERR_FILENO, &file) && (S_ISFIFO(file.st_mode) || isatty(STDERR_FILENO)))
		log_unwaited = open("/proc/self/fd/2",
				    O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void log_stop_waiting(bool background)
{
	if (log_unwaited >= 0) {
		dup2(log_unwaited, STDERR_FILENO);
		close(log_unwaited);
		log_unwaited = -1;
	}
	log_way = background ? LOG_TO_SYSLOG : LOG_TO_ERROR;
}

/* The environment names its file; standard error may have become another one since. */
void log_look_for_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long device, inode;
	struct stat file;

	log_is_journal = stream && sscanf(stream, "%lu:%lu", &device, &inode) == 2 &&
			 !fstat(STDERR_FILENO, &file) && file.st_dev == device &&
			 file.st_ino == inode;
}

void log_leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

/* Without a connection: the syslog daemon may be started again at any time. */
static ssize_t send_to_syslog(const char *line, size_t length)
{
	static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = _PATH_LOG};

	if (log_socket < 0)
		log_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return sendto(log_socket, line, length, MSG_DONTWAIT | MSG_NOSIGNAL,
		      (const struct sockaddr *)&address, sizeof(address));
}

static ssize_t write_to_error(const char *line, size_t length)
{
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t sent = send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent >= 0 || errno != ENOTSOCK)
		return sent;
	/* Another user's pipe cannot be opened once more, and a write to it could wait. */
	if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))
		return -1;
	return write(STDERR_FILENO, line, length);
}

/* Prints what stands before a text of @priority. */
static void print_head(char head[HEAD_BYTES], int priority)
{
	char when[sizeof("Jan  1 00:00:00")] = "";
	time_t now = time(NULL);
	struct tm local;

	if (log_way != LOG_TO_SYSLOG) {
		snprintf(head, HEAD_BYTES, log_is_journal ? "<%d>ratefs: " : "ratefs: ", priority);
		return;
	}
	/* As of RFC 3164, and syslog(3). */
	if (localtime_r(&now, &local))
		strftime(when, sizeof(when), "%b %e %T", &local);
	snprintf(head, HEAD_BYTES, "<%d>%s ratefs[%d]: ", LOG_DAEMON | priority, when,
		 (int)getpid());
}

/* No text makes a line that looks like another message, or commands a terminal. */
static void mask(char *line)
{
	for (; *line; line++) {
		if ((unsigned char)*line < ' ' || *line == '\177')
			*line = '?';
	}
}

/* Sends a line without waiting, or loses it. Returns whether all of it got through. */
static bool send_line(int priority, const char *text)
{
	char head[HEAD_BYTES], line[LINE_BYTES];
	size_t length;
	ssize_t sent;

	print_head(head, priority);
	snprintf(line, sizeof(line), "%s%s", head, text);
	length = strlen(line);
	mask(line);
	if (log_way == LOG_TO_SYSLOG) {
		sent = send_to_syslog(line, length);
	} else {
		line[length++] = '\n';
		sent = write_to_error(line, length);
	}
	return sent == (ssize_t)length;
}

/* Sends a line, and before it the number of those that were lost. */
static void send_or_count(int priority, const char *text)
{
	char lost[HEAD_BYTES];

	pthread_mutex_lock(&log_lock);
	snprintf(lost, sizeof(lost), "messages that the log did not take are lost: %lu", log_lost);
	if (log_lost && send_line(LOG_WARNING, lost))
		log_lost = 0;
	if (log_lost || !send_line(priority, text))
		log_lost++;
	pthread_mutex_unlock(&log_lock);
}

__attribute__((format(printf, 3, 0))) static void log_line(enum log_level level, int priority,
							   const char *format, va_list arguments)
{
	char text[LINE_BYTES];
	int err = errno;

	if (level > log_most)
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	if (log_way != LOG_WAITS) {
		send_or_count(priority, text);
		errno = err;
		return;
	}
	flockfile(stderr);
	if (log_is_journal)
		fprintf(stderr, "<%d>", priority);
	mask(text);
	fprintf(stderr, "ratefs: %s\n", text);
	funlockfile(stderr);
}

void log_error(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_ERROR, LOG_ERR, format, arguments);
	va_end(arguments);
}

void log_warning(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_WARNING, LOG_WARNING, format, arguments);
	va_end(arguments);
}

void log_info(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_line(LOG_LEVEL_INFO, LOG_INFO, format, arguments);
	va_end(arguments);
}
