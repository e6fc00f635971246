/* log - messages to the operator, see log.h. */
#include "fs/base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

static enum log_level log_most = LOG_LEVEL_INFO;
static _Atomic bool log_in_background;
static bool log_is_journal;

void log_set_level(enum log_level level)
{
	log_most = level;
}

void log_to_syslog(void)
{
	openlog("ratefs", LOG_PID, LOG_DAEMON);
	log_in_background = true;
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

	log_to_syslog();
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

__attribute__((format(printf, 3, 0))) static void log_line(enum log_level level, int priority,
							   const char *format, va_list arguments)
{
	if (level > log_most)
		return;
	if (log_in_background) {
		vsyslog(priority, format, arguments);
		return;
	}
	flockfile(stderr);
	if (log_is_journal)
		fprintf(stderr, "<%d>", priority);
	fputs("ratefs: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
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
