/* child - a command in a process of its own, see child.h. */
#include "companions/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Becomes the command, in the child, and never returns. The reason of a failure goes to @why, which
 * a success closes.
 */
__attribute__((noreturn)) static void execute(char *const command[], const int files[3], int why,
					      const sigset_t *mask)
{
	bool given = true;
	int err;

	/* A signal that comes before the command does must end the child, not a handler of ours. */
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;

		if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
			signal(number, SIG_DFL);
	}
	for (int number = 0; number <= STDERR_FILENO && given; number++)
		given = files[number] < 0 || dup2(files[number], number) >= 0;
	if (given) {
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(command[0], command);
	}
	err = errno;
	_exit(write(why, &err, sizeof(err)) < 0);
}

int child_start(char *const command[], int in, int out, int err, volatile pid_t *pid)
{
	const int files[] = {in, out, err};
	sigset_t all, before;
	int why[2], wrong = 0;
	ssize_t got;

	if (pipe2(why, O_CLOEXEC))
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	*pid = fork();
	if (!*pid)
		execute(command, files, why[1], &before);
	if (*pid < 0) {
		wrong = errno;
		*pid = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(why[1]);
	do {
		got = *pid ? read(why[0], &wrong, sizeof(wrong)) : 0;
	} while (got < 0 && errno == EINTR);
	close(why[0]);
	if (got > 0)
		child_wait(pid);
	return -wrong;
}

/* Tells whether execvp(3) would find @file, or would not be allowed to look for it. */
static bool is_there(const char *file)
{
	return !access(file, F_OK) || errno == EACCES;
}

bool child_exists(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char file[PATH_MAX];

	if (strchr(name, '/'))
		return is_there(name);
	for (; path; path = *end ? end + 1 : NULL) {
		end = strchrnul(path, ':');
		/* An empty one is the current directory. */
		snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - path), path,
			 end == path ? "" : "/", name);
		if (*name && is_there(file))
			return true;
	}
	return !getenv("PATH"); /* the library has one of its own */
}

int child_wait(volatile pid_t *pid)
{
	pid_t child = *pid;
	siginfo_t info;
	int status = 0;

	/* It stays a zombie until no handler can know its number any more. */
	while (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	*pid = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
