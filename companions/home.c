/* home - the directory of a limiter's files, see home.h. */
#include "companions/home.h"

#include "fs/local/store.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
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
		if (errno == ENOENT)
			warnx("%s: not a limiter: it has no file token", limiter);
		else
			warn("%s", path);
		return -1;
	}
	snprintf(home, PATH_MAX, "%s", limiter);
	/* A limiter may be right below a mount point that is called so, too: it has settings. */
	snprintf(path, sizeof(path), "%s/config", limiter);
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

int home_open(const char *home, const char *name)
{
	char path[PATH_MAX];
	int file;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", home, name) >= sizeof(path))
		return -ENAMETOOLONG;
	file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	return file < 0 ? -errno : file;
}

/* Reads the setting @id in @home into @settings. False: it cannot be read. */
static bool read_setting(const char *home, enum setting_id id, struct settings *settings)
{
	int directory = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char text[SETTING_TEXT], error[ERROR_TEXT];
	int err;

	if (directory < 0)
		return false;
	err = store_read(directory, setting_name(id), text, sizeof(text));
	if (!err) {
		text[strcspn(text, "\n")] = '\0';
		err = setting_parse(id, text, settings, error);
	}
	close(directory);
	return !err;
}

void home_rate(const char *home, struct settings *settings)
{
	*settings = SETTINGS_DEFAULT;
	(void)read_setting(home, SETTING_RATE, settings);
}

uint64_t home_retry_max(const char *home)
{
	struct settings settings = SETTINGS_DEFAULT;
	char directory[PATH_MAX], *slash;
	uint64_t most_ns = 0;
	bool has_one = false;

	if (!realpath(home, directory))
		return BACKOFF_TIME_MAX_NS;
	while (read_setting(directory, SETTING_BACKOFF, &settings)) {
		const struct backoff *backoff = &settings.backoff;

		if (backoff->kind != BACKOFF_NONE) {
			has_one = true;
			most_ns = backoff->retry_max_ns > most_ns ? backoff->retry_max_ns : most_ns;
		}
		slash = strrchr(directory, '/');
		if (!slash || slash == directory)
			break;
		*slash = '\0';
	}
	return has_one ? most_ns : BACKOFF_TIME_MAX_NS;
}

void home_explain(const char *limiter, int error, char reason[ERROR_TEXT])
{
	char directory[PATH_MAX], *slash = directory, text[CONFIG_TEXT] = "";
	bool is_told = error == EBUSY || error == EHOSTUNREACH || error == ETIMEDOUT;
	int err = -ENOENT, file;

	if (!is_told || !realpath(limiter, directory))
		directory[0] = '\0';
	/* A limiter has no file of that name: the first above it that has one is the top. */
	while (err && (slash = strrchr(directory, '/')) && slash != directory) {
		*slash = '\0';
		file = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (file < 0)
			continue;
		err = store_read(file, "last_error", text, sizeof(text));
		close(file);
	}
	text[err ? 0 : strcspn(text, "\n")] = '\0';
	snprintf(reason, ERROR_TEXT, "%.*s", ERROR_TEXT - 1, *text ? text : strerror(error));
}
