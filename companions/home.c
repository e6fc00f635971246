/* home - the directory of a limiter's files, see home.h. */
#include "companions/home.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int home_find(const char *limiter, char home[PATH_MAX])
{
	char directory[PATH_MAX], path[PATH_MAX], *name, *above;

	if (!realpath(limiter, directory)) {
		warn("%s", limiter);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/token", limiter);
	if (access(path, F_OK)) {
		warnx("%s: not a limiter: it has no file token", limiter);
		return -1;
	}
	snprintf(home, PATH_MAX, "%s", limiter);
	/* A limiter may be right below a mount point that is called so, too: it has settings. */
	snprintf(path, sizeof(path), "%s/rate", limiter);
	if (!access(path, F_OK))
		return 0;
	name = strrchr(directory, '/');
	*name = '\0';
	above = strrchr(directory, '/');
	if (above && !strcmp(above, "/keys")) {
		*above = '\0';
		strcpy(home, directory);
	}
	return 0;
}
