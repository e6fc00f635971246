/* child - a command in a process of its own, see child.h. */
#include "companions/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Becomes the command, in the child, and never returns. The reason of a failure goes to @why, which
 * a success closes.
 */
__attribute__((noreturn)) static void execute(char *const command[], int in, int out, int why,
					      const sigset_t *mask)
{
	int err;

	/* A signal that comes before the command does must end the child, not a handler of ours. */
	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;

		if (!sigaction(number, NULL, &action) && action.sa_handler != SIG_IGN)
			signal(number, SIG_DFL);
	}
	if ((in < 0 || dup2(in, STDIN_FILENO) >= 0) && (out < 0 || dup2(out, STDOUT_FILENO) >= 0)) {
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(command[0], command);
	}
	err = errno;
	_exit(write(why, &err, sizeof(err)) < 0);
}

int child_start(char *const command[], int in, int out, volatile pid_t *pid)
{
	sigset_t all, before;
	int why[2], err = 0;
	ssize_t got;

	if (pipe2(why, O_CLOEXEC))
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	*pid = fork();
	if (!*pid)
		execute(command, in, out, why[1], &before);
	if (*pid < 0) {
		err = errno;
		*pid = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(why[1]);
	do {
		got = *pid ? read(why[0], &err, sizeof(err)) : 0;
	} while (got < 0 && errno == EINTR);
	close(why[0]);
	if (got > 0)
		child_wait(pid);
	return -err;
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
