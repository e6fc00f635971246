/* run_headers - the file in which a command leaves header fields, see run.h. */
#include "companions/run.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Opens the file if it is a plain one. Returns -1 if not, with errno, or 0 there. */
static int open_plain(const char *path, int flags)
{
	int file = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat status;

	if (file < 0 || (!fstat(file, &status) && S_ISREG(status.st_mode)))
		return file;
	close(file);
	errno = 0;
	return -1;
}

void run_headers_empty(const struct job *job)
{
	int file = open_plain(job->headers, O_WRONLY);

	if (file < 0)
		return;
	if (ftruncate(file, 0))
		warn("%s", job->headers);
	close(file);
}

static uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

bool run_headers_read(const struct job *job, struct header_report *report)
{
	int file = open_plain(job->headers, O_RDONLY), wrong = 0;
	char error[ERROR_TEXT] = "not a plain file", *text;
	size_t used = 0;
	ssize_t got = 1;

	if (file < 0 && errno) {
		warn("no header fields: %s", job->headers);
		return false;
	}
	text = malloc(HEADERS_BYTES_MAX + 1);
	while (file >= 0 && text && got && used <= HEADERS_BYTES_MAX) {
		got = read(file, text + used, HEADERS_BYTES_MAX + 1 - used);
		if (got < 0 && errno != EINTR)
			break;
		used += got > 0 ? (size_t)got : 0;
	}
	if (file >= 0)
		close(file);
	if (file >= 0 && text)
		wrong = headers_read(text, used, wall_ns(), report, error);
	free(text);
	if (file >= 0 && text && !wrong)
		return true;
	warnx("no header fields: %s: %s", job->headers, error);
	return false;
}
