/*
 * slot - how long a slot takes from a holder that is killed to the next one.
 */
#include "client.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

enum { SETTLE_NS = 4000000 }; /* until it is blocked */

/* A process that opens @path, writes the time to @fd, and keeps it open until it is killed. */
static pid_t start_holder(const char *path, int fd)
{
	pid_t pid = fork();
	int64_t opened_ns;

	if (pid < 0)
		client_fail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	client_open(path);
	opened_ns = sample_now_ns();
	if (write(fd, &opened_ns, sizeof(opened_ns)) != sizeof(opened_ns))
		_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

static int64_t opened_ns(int fd)
{
	int64_t at_ns;

	if (read(fd, &at_ns, sizeof(at_ns)) != sizeof(at_ns))
		client_fail("read");
	return at_ns;
}

void slot_run(char **argv)
{
	static const struct timespec settle = {.tv_nsec = SETTLE_NS};
	struct sample sample = sample_make(atol(argv[1]));
	int fds[2];
	pid_t holder;

	if (pipe(fds))
		client_fail("pipe");
	holder = start_holder(argv[0], fds[1]);
	opened_ns(fds[0]);
	while (sample.count < sample.max) {
		pid_t next = start_holder(argv[0], fds[1]);
		int64_t start_ns;

		nanosleep(&settle, NULL);
		start_ns = sample_now_ns();
		kill(holder, SIGKILL);
		sample_add(&sample, opened_ns(fds[0]) - start_ns);
		waitpid(holder, NULL, 0);
		holder = next;
	}
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	sample_print(&sample, "");
}
