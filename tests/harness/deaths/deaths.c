/*
 * deaths - a library that is preloaded into ratefs: appends a line to the file DEATHS for each
 * death of a server that its keeper hides by starting the next one.
 *
 *	PID signal N	the server was killed by that signal
 *	PID status N	it ended with that status, which is none of those that the keeper expects
 *
 * SIGTERM and SIGINT are no deaths: the end of the mount reaches a server so that starts just then.
 * The keeper starts a server by fexecve(), which nothing else in ratefs calls. Only raw system
 * calls here: sanitizers are not ready yet when begin() runs, and the keeper may have become
 * another user.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_REPLACE = 75 }; /* as in fs/keeper/keeper.h */

/* Shared by the keeper and its child between fork() and exec. */
struct server {
	pid_t pid;
	pid_t died; /* with a status that is hidden if another server is started; 0: none */
	int status;
};

static struct server *server;
static const char *deaths; /* path */

static void report(pid_t pid, const char *how, int number)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%d %s %d\n", (int)pid, how, number);
	/* A daemon closes what was open when it began. */
	long file = syscall(SYS_openat, AT_FDCWD, deaths, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (file < 0)
		abort();
	syscall(SYS_write, file, line, length);
	syscall(SYS_close, file);
}

__attribute__((constructor)) static void begin(void)
{
	long page;

	deaths = getenv("DEATHS");
	if (!deaths)
		return;
	page = syscall(SYS_mmap, NULL, sizeof(*server), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page != -1)
		server = (struct server *)page;
}

int fexecve(int fd, char *const argv[], char *const envp[])
{
	if (server) {
		if (server->died)
			report(server->died, "status", server->status);
		server->died = 0;
		server->pid = (pid_t)syscall(SYS_getpid);
	}
	return (int)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
	int ended = 0;
	pid_t got = (pid_t)syscall(SYS_wait4, pid, &ended, options, NULL);

	if (status)
		*status = ended;
	if (!server || got <= 0 || got != server->pid)
		return got;
	server->pid = 0;
	if (WIFSIGNALED(ended) && WTERMSIG(ended) != SIGTERM && WTERMSIG(ended) != SIGINT) {
		report(got, "signal", WTERMSIG(ended));
	} else if (WIFEXITED(ended) && WEXITSTATUS(ended) && WEXITSTATUS(ended) != EXIT_REPLACE) {
		server->died = got;
		server->status = WEXITSTATUS(ended);
	}
	return got;
}
