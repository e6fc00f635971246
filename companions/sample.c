/* sample - what the files of a mounted tree say of its limiters, see sample.h. */
#include "companions/sample.h"
#include "companions/companion.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, AT_ONCE = 64 };

static const char PREFIX[] = "ratefs_";
static const char SUFFIX[] = "_total";
static const char LABEL[] = "{limiter=\"";

/* The names, and what a limiter has whose stat metrics leaves out, as that is off. */
static const struct {
	const char *name;
	double off;
} STATS[STAT_COUNT] = {
	[STAT_GRANTED] = {"granted", (double)NAN},
	[STAT_THROTTLED] = {"throttled", 0},
	[STAT_WAITING] = {"waiting", (double)NAN},
	[STAT_RATE] = {"effective_rate", (double)NAN},
	[STAT_SHARE] = {"share", 1},
	[STAT_MIN] = {"granted_min", 0},
	[STAT_REFUSED] = {"refused", (double)NAN},
	[STAT_PAUSED] = {"backoff_paused_seconds", 0},
	[STAT_DELAY] = {"backoff_seconds", 0},
	[STAT_BELOW] = {"waiting_below", 0},
	[STAT_LIMIT] = {"rate", (double)NAN},
	[STAT_SLOTS] = {"slots", (double)INFINITY},
	[STAT_OPEN] = {"slots_used", 0},
};

/* Finds a stat by name. STAT_COUNT: the name is not looked at. */
static enum stat_id stat_named(const char *name, size_t length)
{
	unsigned int id = 0;

	while (id < STAT_COUNT &&
	       (strlen(STATS[id].name) != length || memcmp(name, STATS[id].name, length)))
		id++;
	return (enum stat_id)id;
}

static double value_of(const char *text)
{
	return strncmp(text, "max", 3) ? strtod(text, NULL) : (double)INFINITY;
}

int sample_read(const char *limiter, struct sample *sample)
{
	char path[PATH_MAX], line[LINE_MAX];
	enum stat_id id;
	FILE *file;
	int err;

	for (unsigned int i = 0; i < STAT_COUNT; i++)
		sample->values[i] = (double)NAN;
	if ((size_t)snprintf(path, sizeof(path), "%s/stat", limiter) >= sizeof(path))
		return -ENAMETOOLONG;
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, " ");

		id = stat_named(line, length);
		if (id < STAT_COUNT && line[length])
			sample->values[id] = value_of(line + length + 1);
	}
	err = ferror(file) ? -errno : 0;
	fclose(file);
	return err;
}

/*
 * Undoes the escapes of a label's value in place, up to its closing quote; returns the text behind
 * it, or NULL.
 */
static char *unquote(char *text)
{
	char *to = text;

	while (*text && *text != '"') {
		if (*text == '\\' && text[1])
			text++;
		*to++ = *text++;
	}
	if (!*text)
		return NULL;
	*to = '\0';
	return text + 1;
}

/*
 * Parses `ratefs_NAME{limiter="PATH"} VALUE`; false for all other lines, and for stats not looked
 * at.
 */
static bool parse_line(char *line, enum stat_id *id, char **path, double *value)
{
	char *label = strstr(line, LABEL), *rest;
	size_t length;

	if (!label || strncmp(line, PREFIX, strlen(PREFIX)) != 0)
		return false;
	line += strlen(PREFIX);
	length = (size_t)(label - line);
	if (length > strlen(SUFFIX) && !strncmp(label - strlen(SUFFIX), SUFFIX, strlen(SUFFIX)))
		length -= strlen(SUFFIX);
	*id = stat_named(line, length);
	*path = label + strlen(LABEL);
	rest = unquote(*path);
	if (*id == STAT_COUNT || !rest || strncmp(rest, "} ", 2) != 0)
		return false;
	*value = value_of(rest + 2);
	return true;
}

/*
 * Finds the sample of @path: from @next on, since each stat lists limiters in the same order, if
 * not all of them; or a new one. NULL without memory.
 */
static struct sample *sample_of(struct page *page, size_t next, const char *path)
{
	struct sample *more;

	for (size_t i = 0; next < page->count && i < page->count; i++) {
		more = &page->all[(next + i) % page->count];
		if (!strcmp(more->path, path))
			return more;
	}
	if (page->count % AT_ONCE == 0) {
		more = reallocarray(page->all, page->count + AT_ONCE, sizeof(*more));
		if (!more)
			return NULL;
		page->all = more;
	}
	more = &page->all[page->count];
	for (unsigned int id = 0; id < STAT_COUNT; id++)
		more->values[id] = STATS[id].off;
	more->path = strdup(path);
	if (!more->path)
		return NULL;
	page->count++;
	return more;
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct sample *)a)->path, ((const struct sample *)b)->path);
}

static int read_lines(FILE *file, struct page *page)
{
	enum stat_id id, last = STAT_COUNT;
	char *line = NULL, *path;
	size_t room = 0, next = 0;
	struct sample *sample;
	int err = 0;
	double value;

	while (!err && getline(&line, &room, file) >= 0) {
		if (!parse_line(line, &id, &path, &value))
			continue;
		next = id == last ? next : 0;
		last = id;
		sample = sample_of(page, next, path);
		if (sample) {
			sample->values[id] = value;
			next = (size_t)(sample - page->all) + 1;
		} else {
			err = -ENOMEM;
		}
	}
	if (!err && ferror(file))
		err = -errno;
	free(line);
	return err;
}

int sample_page_read(const char *mountpoint, struct page *page)
{
	char name[PATH_MAX];
	FILE *file;
	int err;

	*page = (struct page){0};
	if ((size_t)snprintf(name, sizeof(name), "%s/metrics", mountpoint) >= sizeof(name))
		return -ENAMETOOLONG;
	file = fopen(name, "re");
	if (!file)
		return -errno;
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	err = read_lines(file, page);
	page->at_ns = companion_now_ns();
	fclose(file);
	if (err)
		sample_page_free(page);
	else if (page->count)
		qsort(page->all, page->count, sizeof(*page->all), compare);
	return err;
}

void sample_page_free(struct page *page)
{
	for (size_t i = 0; i < page->count; i++)
		free(page->all[i].path);
	free(page->all);
	*page = (struct page){0};
}

const char *sample_path(const char *mountpoint, const char *limiter, const char *file,
			char path[PATH_MAX])
{
	unsigned int byte;
	char *from, *to;

	if ((size_t)snprintf(path, PATH_MAX, "%s/%s/%s", mountpoint, limiter, file) >= PATH_MAX)
		return NULL;
	from = to = path + strlen(mountpoint);
	/* A name may also have these letters. */
	if (!strstr(from, "\\x") || !access(path, F_OK))
		return path;
	while (*from) {
		bool escaped = sscanf(from, "\\x%2x", &byte) == 1 && byte > 0x7f && byte <= 0xff;

		*to++ = escaped ? (char)byte : *from;
		from += escaped ? 4 : 1;
	}
	*to = '\0';
	return path;
}

const struct sample *sample_page_find(const struct page *page, const char *path)
{
	const struct sample key = {.path = (char *)(uintptr_t)path};

	return page->count ? bsearch(&key, page->all, page->count, sizeof(key), compare) : NULL;
}
