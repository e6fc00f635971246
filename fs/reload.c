/* reload - ratefs --reload MOUNTPOINT: has the keeper start another server, see keeper.h. */
#include "fs/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 200 };

static const struct timespec STEP = {.tv_nsec = 50000000};

struct mount_status {
	int keeper, server;
	bool outlives;
};

/* What `status` of the mount says. 0 or -1 after a message. */
static int read_status(const char *mountpoint, struct mount_status *status)
{
	char path[PATH_MAX], line[PATH_MAX], answer[8];
	FILE *file;

	*status = (struct mount_status){0};
	snprintf(path, sizeof(path), "%s/status", mountpoint);
	file = fopen(path, "re");
	if (!file) {
		fprintf(stderr, "ratefs: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "keeper %d", &status->keeper);
		(void)sscanf(line, "server %d", &status->server);
		if (sscanf(line, "outlives_server %7s", answer) == 1)
			status->outlives = !strcmp(answer, "yes");
	}
	fclose(file);
	if (status->keeper > 1 && status->server > 1)
		return 0;
	fprintf(stderr, "ratefs: %s: not a mount of ratefs\n", mountpoint);
	return -1;
}

int keeper_reload(int argc, char *argv[])
{
	struct mount_status before, now;

	if (argc != 3) {
		fprintf(stderr, "ratefs: --reload needs a mount point\nTry 'ratefs --help'.\n");
		return EXIT_USAGE;
	}
	if (read_status(argv[2], &before))
		return EXIT_FAILURE;
	if (!before.outlives) {
		fprintf(stderr, "ratefs: %s: the mount would end with its server\n", argv[2]);
		return EXIT_FAILURE;
	}
	if (kill(before.keeper, SIGHUP)) {
		fprintf(stderr, "ratefs: process %d: %s\n", before.keeper, strerror(errno));
		return EXIT_FAILURE;
	}
	for (int i = 0; i < TRIES; i++) {
		if (read_status(argv[2], &now))
			return EXIT_FAILURE;
		if (now.server != before.server)
			return EXIT_SUCCESS;
		nanosleep(&STEP, NULL);
	}
	fprintf(stderr, "ratefs: %s: still the same server\n", argv[2]);
	return EXIT_FAILURE;
}
