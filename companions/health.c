/* health - what is wrong with a mounted tree, see health.h. */
#include "companions/health.h"
#include "companions/mounted.h"

#include "core/values/quantity.h"
#include "fs/local/store.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	STATUS_TEXT = 16384, /* room for the file status */
	WHY_TEXT = 65536,
};

static const char *const STATES[] = {
	[HEALTH_STUCK] = "stuck",	  [HEALTH_CLOSED] = "closed", [HEALTH_PAUSED] = "paused",
	[HEALTH_THROTTLED] = "throttled", [HEALTH_WAITS] = "waits",   [HEALTH_IDLE] = "idle",
};

/* The beginnings of lines of `why` behind the limiter's path, and its state without readers. */
static const struct {
	const char *cause;
	enum health_state state;
} CAUSES[] = {
	{"enforcement closed", HEALTH_CLOSED},
	{"backoff: pause", HEALTH_PAUSED},
	{"service: ", HEALTH_PAUSED},
};

const char *health_state_name(enum health_state state)
{
	return STATES[state];
}

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
	return !is_fleet(health) || status_is(health, "coordinator", "ready");
}

/* Reads a line of hosts, which may also be one of headings. 0 or -ENOMEM. */
static int read_host(struct health *health, const char *line)
{
	struct health_host *more, host = {.is_silent = false};
	int64_t silent_s;
	int length = 0;

	if (sscanf(line, "%*s%n %" SCNu32 " %" SCNu32 " %" SCNd64, &length, &host.weight,
		   &host.held, &silent_s) != 3 ||
	    *line == '#')
		return 0;
	host.silent_s = silent_s > 0 ? (uint64_t)silent_s : 0;
	host.is_silent = has_leases(health) && host.held &&
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
	char *line = NULL;
	size_t room = 0;

	if (!lines) {
		err = -errno;
		if (file >= 0)
			close(file);
		return err;
	}
	while (!err && getline(&line, &room, lines) >= 0)
		err = read_host(health, line);
	if (!err && ferror(lines))
		err = -errno;
	free(line);
	fclose(lines);
	return err;
}

/* Tells whether the limiter may have something to be shown for. */
static bool is_candidate(const struct sample *sample)
{
	return sample->values[STAT_WAITING] > 0 || sample->values[STAT_DELAY] > 0 ||
	       !(sample->values[STAT_RATE] > 0 || isnan(sample->values[STAT_RATE]));
}

/* Orders candidates: those for which most readers wait first. */
static int compare_candidates(const void *a, const void *b)
{
	const struct sample *first = *(const struct sample *const *)a;
	const struct sample *second = *(const struct sample *const *)b;
	double one = first->values[STAT_WAITING], other = second->values[STAT_WAITING];

	if (one == other)
		return strcmp(first->path, second->path);
	return one > other ? -1 : 1;
}

/*
 * Returns what @line of `why` says of @path or of a limiter above it, the text behind its path, and
 * whether it is of @path; NULL for lines of others.
 */
static const char *cause_of(const char *line, const char *path, bool *is_own)
{
	size_t length = strlen(path);

	*is_own = true;
	while (length) {
		if (!strncmp(line, path, length) && line[length] == ' ')
			return line + length + 1;
		*is_own = false;
		while (length && path[length - 1] != '/')
			length--;
		length -= length > 0;
	}
	return NULL;
}

/* Tells whether no rate is in force for @path or a limiter above it, though it has its share. */
static bool has_no_rate(const struct health *health, const char *path)
{
	char above[PATH_TEXT], *slash;

	if (strlen(path) >= sizeof(above))
		return false;
	strcpy(above, path);
	do {
		const struct sample *sample = sample_page_find(&health->page, above);

		if (sample && sample->values[STAT_RATE] <= 0 &&
		    (sample->values[STAT_SHARE] > 0 || !has_leases(health)))
			return true;
		slash = strrchr(above, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return false;
}

/* Judges @limiter by the text of its `why`. */
static void judge(const struct health *health, struct health_limiter *limiter, const char *why)
{
	const struct sample *sample = limiter->sample;
	bool waits = sample->values[STAT_WAITING] > 0, is_own;
	enum health_state state = waits ? HEALTH_WAITS : HEALTH_IDLE;

	if (sample->values[STAT_DELAY] > 0)
		state = HEALTH_THROTTLED;
	if (sample->values[STAT_LIMIT] <= 0)
		state = HEALTH_CLOSED;
	if (waits && has_no_rate(health, sample->path))
		state = HEALTH_STUCK;
	for (const char *line = why; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *cause = cause_of(line, sample->path, &is_own);

		for (size_t i = 0; cause && i < sizeof(CAUSES) / sizeof(CAUSES[0]); i++) {
			if (strncmp(cause, CAUSES[i].cause, strlen(CAUSES[i].cause)) != 0)
				continue;
			if (waits)
				state = HEALTH_STUCK;
			else if (is_own && CAUSES[i].state < state)
				state = CAUSES[i].state;
		}
	}
	limiter->state = state;
}

/* Reads why of @limiter, and judges it. 0 or -ENOMEM. */
static int look_at(const struct health *health, int top, struct health_limiter *limiter)
{
	static const char file[] = "/why";
	char path[PATH_TEXT + sizeof(file)], *why = calloc(1, WHY_TEXT);

	if (!why)
		return -ENOMEM;
	/* One that is gone meanwhile, or is closed to us, has no reasons. */
	if (snprintf(path, sizeof(path), "%s%s", limiter->sample->path, file) >= PATH_TEXT ||
	    store_read(top, path, why, WHY_TEXT))
		*why = '\0';
	judge(health, limiter, why);
	why[strcspn(why, "\n")] = '\0';
	limiter->why = strdup(strcmp(why, "nothing") != 0 ? why : "");
	free(why);
	return limiter->why ? 0 : -ENOMEM;
}

/* Orders limiters, those that are to be shown first. */
static int compare_limiters(const void *a, const void *b)
{
	const struct health_limiter *first = a, *second = b;

	if (first->state != second->state)
		return first->state < second->state ? -1 : 1;
	return compare_candidates(&first->sample, &second->sample);
}

/* Looks at @count candidates, which are sorted. 0 or -ENOMEM. */
static int look_at_all(struct health *health, int top, const struct sample *const *candidates,
		       size_t count)
{
	size_t looks = count < HEALTH_LOOKS_MAX ? count : HEALTH_LOOKS_MAX;
	int err = 0;

	health->left_out = count - looks;
	health->limiters = calloc(looks + 1, sizeof(*health->limiters));
	if (!health->limiters)
		return -ENOMEM;
	for (size_t i = 0; !err && i < looks; i++) {
		struct health_limiter *limiter = &health->limiters[health->limiter_count];

		limiter->sample = candidates[i];
		err = look_at(health, top, limiter);
		if (!err && limiter->state == HEALTH_IDLE)
			free(limiter->why);
		else
			health->limiter_count += !err;
	}
	qsort(health->limiters, health->limiter_count, sizeof(*health->limiters), compare_limiters);
	return err;
}

/* Finds the limiters that are to be shown. 0 or -ENOMEM. */
static int find_limiters(struct health *health, int top)
{
	const struct sample **candidates;
	size_t count = 0;
	int err;

	candidates = calloc(health->page.count + 1, sizeof(const struct sample *));
	if (!candidates)
		return -ENOMEM;
	for (size_t i = 0; i < health->page.count; i++) {
		if (is_candidate(&health->page.all[i]))
			candidates[count++] = &health->page.all[i];
	}
	qsort(candidates, count, sizeof(const struct sample *), compare_candidates);
	err = look_at_all(health, top, candidates, count);
	free(candidates);
	return err;
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

/* Says in which limiters readers are stuck: the first, and how many more. */
static void say_limiters(struct health *health)
{
	const struct health_limiter *first = health->limiters;
	size_t count = 0;
	char more[32];

	while (count < health->limiter_count && first[count].state == HEALTH_STUCK)
		count++;
	snprintf(more, sizeof(more), " and %zu more", count - 1);
	if (count)
		add_wrong(health, "readers wait and nothing is granted: %s%s%s%s",
			  first->sample->path, count > 1 ? more : "", *first->why ? ": " : "",
			  first->why);
}

/* Says what is wrong with the fleet. */
static void say_fleet(struct health *health)
{
	const char *state, *right = "0";
	int length = (int)health_status(health, "coordinator", &state);
	int digits = (int)health_status(health, "right_seconds", &right);
	size_t first = 0;

	if (status_is(health, "degraded", "yes"))
		add_wrong(health, "degraded: the file offline of each limiter is in force");
	while (first < health->host_count && !health->hosts[first].is_silent)
		first++;
	if (health->silent_count)
		add_wrong(health, "%zu of %zu hosts silent: %s for %" PRIu64 " s",
			  health->silent_count, health->host_count, health->hosts[first].name,
			  health->hosts[first].silent_s);
	if (status_is(health, "coordinator", "disconnected"))
		add_wrong(health,
			  "ZooKeeper does not answer: the right to leases lasts %.*s s more",
			  digits, right);
	else if (!has_leases(health))
		add_wrong(health, "the fleet cannot be used yet: %.*s", length, state);
}

static void say_server(struct health *health)
{
	uint64_t damaged = health_number(health, "damaged_settings");

	if (damaged)
		add_wrong(health, "files of settings that were refused at the start: %" PRIu64,
			  damaged);
}

/* Reads the files of the tree that is open in @top. 0 or -errno. */
static int read_all(struct health *health, int top, const char *mountpoint)
{
	int err;

	health->status = malloc(STATUS_TEXT);
	err = health->status ? store_read(top, "status", health->status, STATUS_TEXT) : -ENOMEM;
	if (!err)
		err = sample_page_read(mountpoint, &health->page);
	if (!err && is_fleet(health))
		err = read_hosts(health, top);
	return err ? err : find_limiters(health, top);
}

int health_take(const char *mountpoint, struct health *health)
{
	int top = mounted_open(mountpoint), err;

	*health = (struct health){.status = NULL};
	if (top < 0)
		return -1;
	err = read_all(health, top, mountpoint);
	close(top);
	if (err) {
		warnx("%s: %s", mountpoint, strerror(-err));
		health_free(health);
		return -1;
	}
	if (health_number(health, "frozen_by"))
		add_wrong(health, "frozen by process %" PRIu64 ": nothing is granted",
			  health_number(health, "frozen_by"));
	say_limiters(health);
	say_fleet(health);
	say_server(health);
	return 0;
}

void health_free(struct health *health)
{
	for (size_t i = 0; i < health->limiter_count; i++)
		free(health->limiters[i].why);
	for (size_t i = 0; i < health->host_count; i++)
		free(health->hosts[i].name);
	for (size_t i = 0; i < health->wrong_count; i++)
		free(health->wrong[i]);
	free(health->limiters);
	free(health->hosts);
	free(health->status);
	sample_page_free(&health->page);
}
