/* reload - ratefs --reload MOUNTPOINT: has the keeper start another server, see keeper.h. */
#include "fs/keeper/keeper.h"
#include "fs/keeper/mount_status.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 200 };

static const struct timespec STEP = {.tv_nsec = 50000000};

/* Tells whether process @pid runs @program; also if this cannot be seen. */
static bool runs_program(int pid, const struct stat *program)
{
	char path[64];
	struct stat file;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return stat(path, &file) ||
	       (file.st_dev == program->st_dev && file.st_ino == program->st_ino);
}

/* Finds the program of process @pid as it is on disk now. False: it cannot be seen. */
static bool find_program(int pid, struct stat *program)
{
	static const char gone[] = " (deleted)";
	char link[64], path[PATH_MAX];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return false;
	path[length] = '\0';
	length -= (ssize_t)strlen(gone);
	if (length > 0 && !strcmp(path + length, gone))
		path[length] = '\0';
	return !stat(path, program);
}

/*
 * Tells whether process @server is a server below @keeper: numbers of another process namespace are
 * others here.
 */
static bool is_server(int server, int keeper)
{
	static const char option[] = "--server=";
	char path[64], text[PATH_MAX + sizeof(option)] = "", stat[256] = "";
	const char *argument, *rest;
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", server);
	file = fopen(path, "re");
	if (file) {
		(void)!fread(stat, 1, sizeof(stat) - 1, file);
		fclose(file);
	}
	rest = strrchr(stat, ')'); /* the name of the program may have others */
	if (!rest || sscanf(rest, ") %*c %d", &parent) != 1)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", server);
	file = fopen(path, "re");
	if (!file)
		return false;
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	argument = text + strnlen(text, sizeof(text) - sizeof(option)) + 1;
	return parent == keeper && !strncmp(argument, option, strlen(option));
}

int keeper_reload(int argc, char *argv[])
{
	struct mount_status before, now;
	struct stat program;
	bool visible;
	int keeper;

	if (argc != 3) {
		fprintf(stderr, "ratefs: --reload needs a mount point\nTry 'ratefs --help'.\n");
		return EXIT_USAGE;
	}
	if (mount_status_read(argv[2], &before))
		return EXIT_FAILURE;
	if (!before.outlives) {
		fprintf(stderr, "ratefs: %s: the mount would end with its server\n", argv[2]);
		return EXIT_FAILURE;
	}
	keeper = pidfd_open(before.keeper, 0);
	if (keeper < 0 || !is_server(before.server, before.keeper) ||
	    !mount_status_may_name(before.user, before.keeper)) {
		fprintf(stderr, "ratefs: %s: its server is not a process that can be seen here\n",
			argv[2]);
		return EXIT_FAILURE;
	}
	visible = find_program(before.keeper, &program);
	if (pidfd_send_signal(keeper, SIGHUP, NULL, 0)) {
		fprintf(stderr, "ratefs: process %d: %s\n", before.keeper, strerror(errno));
		return EXIT_FAILURE;
	}
	for (int i = 0; i < TRIES; i++) {
		if (mount_status_read(argv[2], &now))
			return EXIT_FAILURE;
		if (now.server != before.server)
			break;
		nanosleep(&STEP, NULL);
	}
	if (now.server == before.server)
		fprintf(stderr, "ratefs: %s: still the same server\n", argv[2]);
	else if (visible && !runs_program(now.server, &program))
		fprintf(stderr, "ratefs: %s: back to the program that ran before, see the log\n",
			argv[2]);
	else
		return EXIT_SUCCESS;
	return EXIT_FAILURE;
}
