/* mount_status - what the file `status` of a mount tells, see mount_status.h. */
#include "fs/keeper/mount_status.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

int mount_status_read(const char *mountpoint, struct mount_status *status)
{
	char path[PATH_MAX], line[PATH_MAX], answer[8];
	FILE *file;

	*status = (struct mount_status){0};
	snprintf(path, sizeof(path), "%s/status", mountpoint);
	file = fopen(path, "re");
	if (!file) {
		if (errno == ENOENT)
			fprintf(stderr, "ratefs: %s: not a mount of ratefs: no file status\n",
				mountpoint);
		else
			fprintf(stderr, "ratefs: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "keeper %d", &status->keeper);
		(void)sscanf(line, "server %d", &status->server);
		(void)sscanf(line, "frozen_by %d", &status->frozen_by);
		if (sscanf(line, "outlives_server %7s", answer) == 1)
			status->outlives = !strcmp(answer, "yes");
	}
	fclose(file);
	if (status->keeper > 0 && status->server > 1)
		return 0;
	fprintf(stderr, "ratefs: %s: not a mount of ratefs\n", mountpoint);
	return -1;
}
