/* inherited - what a process has from the one that started it, see inherited.h. */
#include "fs/base/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* The descriptor that stays open; without one the last of those that do. */
static int kept = STDERR_FILENO;

int inherited_mend(void)
{
	signal(SIGCHLD, SIG_DFL);
	for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
		/* A program that is started from here finds a descriptor that fails, too. */
		int mode = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;

		/* The file takes the lowest number that is free, which is this one. */
		if (fcntl(number, F_GETFD) < 0 && open("/dev/null", mode) != number)
			return -errno;
	}
	return 0;
}

/* Returns the number of the descriptor above 2 that is open, and that @path names, or -1. */
static int find_named(const char *path)
{
	int number;

	if (!path || sscanf(path, "/dev/fd/%d", &number) != 1 || number <= STDERR_FILENO ||
	    fcntl(number, F_GETFD) < 0)
		return -1;
	return number;
}

void inherited_close(const char *path)
{
	int number = find_named(path);

	if (number >= 0)
		kept = number;
	close_range((unsigned int)kept + 1, UINT_MAX, 0);
	if (kept > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned int)kept - 1, 0);
}

void inherited_was_read(const char *path)
{
	int number = find_named(path);

	if (number >= 0)
		close(number);
}

void inherited_finish(void)
{
	if (kept > STDERR_FILENO)
		close(kept);
	kept = STDERR_FILENO;
}
