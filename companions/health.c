/* health - what is wrong with a mounted tree, see health.h. */
#include "companions/health.h"
#include "companions/mounted.h"

#include "core/values/quantity.h"
#include "fs/local/store.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_TEXT = 16384 }; /* room for the file status */

size_t health_status(const struct health *health, const char *name, const char **value)
{
	return mounted_line(health->status, name, value);
}

uint64_t health_number(const struct health *health, const char *name)
{
	const char *value;

	return health_status(health, name, &value) ? strtoull(value, NULL, 10) : 0;
}

static bool status_is(const struct health *health, const char *name, const char *wanted)
{
	const char *value;
	size_t length = health_status(health, name, &value);

	return length == strlen(wanted) && !strncmp(value, wanted, length);
}

static bool is_fleet(const struct health *health)
{
	return !status_is(health, "coordinator", "none");
}

/* Tells whether leases can be had, or none are needed. */
static bool has_leases(const struct health *health)
{
	return !is_fleet(health) || status_is(health, "coordinator", "ready") ||
	       status_is(health, "coordinator", "in_doubt");
}

/* Reads a line of hosts. 0 or -ENOMEM. */
static int read_host(struct health *health, const char *line, bool is_old)
{
	struct health_host *more, host = {.is_silent = false};
	int64_t silent_s;
	int length = 0;

	if (sscanf(line, "%*s%n %" SCNu32 " %" SCNu32 " %" SCNd64, &length, &host.weight,
		   &host.held, &silent_s) != 3)
		return 0;
	host.silent_s = silent_s > 0 ? (uint64_t)silent_s : 0;
	host.is_silent = !is_old && has_leases(health) && host.held &&
			 host.silent_s > health_number(health, "lease_right_seconds");
	more = reallocarray(health->hosts, health->host_count + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	health->hosts = more;
	host.name = strndup(line, (size_t)length);
	if (!host.name)
		return -ENOMEM;
	health->hosts[health->host_count++] = host;
	health->silent_count += host.is_silent;
	return 0;
}

static int read_hosts(struct health *health, int top)
{
	int file = openat(top, "hosts", O_RDONLY | O_CLOEXEC), err = 0;
	FILE *lines = file < 0 ? NULL : fdopen(file, "r");
	bool is_old = false;
	char *line = NULL;
	size_t room = 0;

	if (!lines) {
		err = -errno;
		if (file >= 0)
			close(file);
		return err;
	}
	while (!err && getline(&line, &room, lines) >= 0) {
		if (*line == '#')
			is_old = is_old || mounted_hosts_note(line);
		else
			err = read_host(health, line, is_old);
	}
	if (!err && ferror(lines))
		err = -errno;
	free(line);
	fclose(lines);
	return err;
}

/* Tells whether no rate is in force for @sample, for another reason than that nobody needs one. */
static bool is_closed(const struct health *health, const struct sample *sample)
{
	const double *values = sample->values;

	return values[STAT_RATE] <= 0 &&
	       (values[STAT_SHARE] > 0 || values[STAT_LIMIT] <= 0 || !has_leases(health));
}

/* Finds the limiter at @path or above it that is closed. NULL: there is none. */
static const struct sample *find_closed(const struct health *health, const char *path)
{
	char above[PATH_MAX], *slash = above;

	if ((size_t)snprintf(above, sizeof(above), "%s", path) >= sizeof(above))
		return NULL;
	while (slash) {
		const struct sample *sample = sample_page_find(&health->page, above);

		if (sample && is_closed(health, sample))
			return sample;
		slash = strrchr(above, '/');
		if (slash)
			*slash = '\0';
	}
	return NULL;
}

/* Orders limiters, those that are to be shown first. */
static int compare_limiters(const void *a, const void *b)
{
	const struct health_limiter *first = a, *second = b;
	double one = first->sample->values[STAT_WAITING];
	double other = second->sample->values[STAT_WAITING];

	if (!first->closed != !second->closed)
		return first->closed ? -1 : 1;
	if (one != other)
		return one > other ? -1 : 1;
	return strcmp(first->sample->path, second->sample->path);
}

/* Finds the limiters that are to be shown. 0 or -ENOMEM. */
static int find_limiters(struct health *health)
{
	health->limiters = calloc(health->page.count + 1, sizeof(*health->limiters));
	if (!health->limiters)
		return -ENOMEM;
	for (size_t i = 0; i < health->page.count; i++) {
		const struct sample *sample = &health->page.all[i];
		bool waits = sample->values[STAT_WAITING] > 0;
		struct health_limiter *limiter = &health->limiters[health->limiter_count];

		if (!waits && !(sample->values[STAT_DELAY] > 0) && !is_closed(health, sample))
			continue;
		limiter->sample = sample;
		limiter->closed = waits ? find_closed(health, sample->path) : NULL;
		health->limiter_count++;
		health->stuck_count += limiter->closed != NULL;
	}
	qsort(health->limiters, health->limiter_count, sizeof(*health->limiters), compare_limiters);
	return 0;
}

/* Reads of @why a line that begins with @path and a blank, or else the first. NULL: no line. */
static char *read_reason(FILE *why, const char *path)
{
	char *line = NULL, *first = NULL;
	size_t room = 0, length = strlen(path);

	while (getline(&line, &room, why) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, path, length) && line[length] == ' ') {
			free(first);
			return line;
		}
		if (!first) {
			first = line;
			line = NULL;
			room = 0;
		}
	}
	free(line);
	return first;
}

char *health_why(const struct health *health, const struct health_limiter *limiter)
{
	const struct sample *closed = limiter->closed ? limiter->closed : limiter->sample;
	char path[PATH_MAX], *line = NULL;
	FILE *file = NULL;
	int err;

	errno = ENOENT;
	if (sample_path(health->mountpoint, limiter->sample->path, "why", path))
		file = fopen(path, "re");
	err = file ? 0 : errno;
	if (file) {
		line = read_reason(file, closed->path);
		err = ferror(file) ? errno : 0;
		fclose(file);
	}
	/* One that is gone meanwhile, or is closed to this user, has no reasons. */
	if (err && !mounted_is_gone(-err) && err != EACCES && err != EPERM) {
		free(line);
		errno = err;
		return NULL;
	}
	if (!err && line && strcmp(line, "nothing") != 0)
		return line;
	free(line);
	return strdup("");
}

__attribute__((format(printf, 2, 3))) static void add_wrong(struct health *health,
							    const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (health->wrong_count < HEALTH_WRONG_MAX && vasprintf(&text, format, arguments) >= 0)
		health->wrong[health->wrong_count++] = text;
	va_end(arguments);
}

/* Says in which limiters readers are stuck: the first, and how many more. 0 or -errno. */
static int say_limiters(struct health *health)
{
	const struct health_limiter *first = health->limiters;
	char more[32] = "", *why;

	if (!health->stuck_count)
		return 0;
	why = health_why(health, first);
	if (!why)
		return -errno;
	if (health->stuck_count > 1)
		snprintf(more, sizeof(more), " and %zu more", health->stuck_count - 1);
	add_wrong(health, "readers wait and nothing is granted: %s%s%s%s", first->sample->path,
		  more, *why ? ": " : "", why);
	free(why);
	return 0;
}

/* Says what keeps this host from the leases of its fleet. */
static void say_coordinator(struct health *health)
{
	static const char offline[] = "the file offline of each limiter is in force";
	const char *state, *right = "0";
	int length = (int)health_status(health, "coordinator", &state);
	int digits = (int)health_status(health, "right_seconds", &right);
	bool is_degraded = status_is(health, "degraded", "yes");

	if (status_is(health, "coordinator", "disconnected") && is_degraded)
		add_wrong(health, "ZooKeeper does not answer: %s", offline);
	else if (status_is(health, "coordinator", "disconnected"))
		add_wrong(health,
			  "ZooKeeper does not answer: the right to leases lasts %.*s s more",
			  digits, right);
	else if (is_degraded)
		add_wrong(health, "degraded: %s", offline);
	else if (!has_leases(health))
		add_wrong(health, "the fleet cannot be used yet: %.*s", length, state);
}

static void say_hosts(struct health *health)
{
	size_t first = 0;

	while (first < health->host_count && !health->hosts[first].is_silent)
		first++;
	if (health->silent_count)
		add_wrong(health, "%zu of %zu hosts silent: %s for %" PRIu64 " s",
			  health->silent_count, health->host_count, health->hosts[first].name,
			  health->hosts[first].silent_s);
}

static void say_server(struct health *health)
{
	uint64_t damaged = health_number(health, "damaged_settings");

	if (damaged)
		add_wrong(health, "files of settings that were refused at the start: %" PRIu64,
			  damaged);
}

/* Reads the files of the tree that is open in @top, and judges them. 0 or -errno. */
static int read_all(struct health *health, int top)
{
	int err;

	health->status = malloc(STATUS_TEXT);
	err = health->status ? store_read(top, "status", health->status, STATUS_TEXT) : -ENOMEM;
	if (!err)
		err = sample_page_read(health->mountpoint, &health->page);
	if (!err && is_fleet(health))
		err = read_hosts(health, top);
	if (!err)
		err = find_limiters(health);
	if (err)
		return err;
	if (health_number(health, "frozen_by"))
		add_wrong(health, "frozen by process %" PRIu64 ": nothing is granted",
			  health_number(health, "frozen_by"));
	say_coordinator(health);
	err = say_limiters(health);
	say_hosts(health);
	say_server(health);
	return err;
}

int health_take(const char *mountpoint, struct health *health)
{
	int top = mounted_open(mountpoint), err;

	*health = (struct health){.mountpoint = mountpoint};
	if (top < 0)
		return -1;
	err = read_all(health, top);
	close(top);
	if (!err)
		return 0;
	warnx("%s: %s", mountpoint, strerror(-err));
	health_free(health);
	return -1;
}

void health_free(struct health *health)
{
	for (size_t i = 0; i < health->host_count; i++)
		free(health->hosts[i].name);
	for (size_t i = 0; i < health->wrong_count; i++)
		free(health->wrong[i]);
	free(health->limiters);
	free(health->hosts);
	free(health->status);
	sample_page_free(&health->page);
}
