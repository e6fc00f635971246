/* levels - what is left in the buckets, see levels.h. */
#include "fs/local/levels.h"
#include "fs/base/clock.h"
#include "fs/local/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = ".levels";

enum { FILE_BYTES_MAX = 1 << 30 };

/* A line: LEVEL:PART of each limit with spaces between, a tab, the limits, a tab, the path. */
struct entry {
	const char *levels;
	const char *limits;
	const char *path;
};

struct levels {
	char *text;	       /* owned; the entries point into it */
	struct entry *entries; /* owned, sorted by path */
	size_t count;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* Cuts @text into lines of three fields; a line that is not one is left out. */
static void split_lines(struct levels *levels)
{
	char *rest = levels->text, *line;

	while ((line = strsep(&rest, "\n"))) {
		struct entry entry = {.levels = strsep(&line, "\t")};

		entry.limits = line ? strsep(&line, "\t") : NULL;
		entry.path = line;
		if (entry.path)
			levels->entries[levels->count++] = entry;
	}
	qsort(levels->entries, levels->count, sizeof(*levels->entries), by_path);
}

struct levels *levels_read(int directory)
{
	struct levels *levels = calloc(1, sizeof(*levels));
	struct stat file;
	size_t lines = 1;

	if (!levels || fstatat(directory, FILE_NAME, &file, AT_SYMLINK_NOFOLLOW) ||
	    file.st_size >= FILE_BYTES_MAX)
		goto nothing;
	levels->text = malloc((size_t)file.st_size + 2);
	if (!levels->text ||
	    store_read(directory, FILE_NAME, levels->text, (size_t)file.st_size + 2))
		goto nothing;
	for (const char *c = levels->text; *c; c++)
		lines += *c == '\n';
	levels->entries = calloc(lines, sizeof(*levels->entries));
	if (!levels->entries)
		goto nothing;
	split_lines(levels);
	return levels;

nothing:
	levels_free(levels);
	return NULL;
}

int levels_use_up(int directory)
{
	if (unlinkat(directory, FILE_NAME, 0))
		return errno == ENOENT ? 0 : -errno;
	return fsync(directory) ? -errno : 0;
}

void levels_free(struct levels *levels)
{
	if (!levels)
		return;
	free(levels->entries);
	free(levels->text);
	free(levels);
}

uint32_t levels_find(const struct levels *levels, const char *path, const struct settings *settings,
		     struct level found[LIMITS_MAX])
{
	struct entry key = {.path = path}, *entry;
	char limits[SETTING_TEXT];
	uint32_t count = 0;
	const char *at;
	int used;

	entry = levels ? bsearch(&key, levels->entries, levels->count, sizeof(key), by_path) : NULL;
	setting_print(SETTING_RATE, settings, limits);
	if (!entry || strcmp(entry->limits, limits) != 0)
		return 0;
	at = entry->levels;
	while (count < settings->limit_count &&
	       sscanf(at, " %" SCNd64 ":%" SCNu64 "%n", &found[count].tokens, &found[count].part,
		      &used) == 2) {
		at += used;
		count++;
	}
	return count;
}

static void print_level(FILE *out, struct engine *engine, struct limiter *limiter)
{
	struct settings settings;
	char limits[SETTING_TEXT], path[PATH_TEXT];

	engine_refresh(engine, limiter, clock_ns());
	for (uint32_t i = 0; i < limiter->bucket_count; i++)
		fprintf(out, "%s%" PRId64 ":%" PRIu64, i ? " " : "", limiter->buckets[i].level,
			limiter->buckets[i].part);
	settings = *limiter_settings(limiter);
	setting_print(SETTING_RATE, &settings, limits);
	tree_path(limiter, path);
	fprintf(out, "\t%s\t%s\n", limits, path);
}

static void print_levels(FILE *out, struct engine *engine, struct limiter *limiter)
{
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		if (l->bucket_count)
			print_level(out, engine, l);
		print_levels(out, engine, l);
	}
}

int levels_write(int directory, struct engine *engine)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err;

	if (!out)
		return -ENOMEM;
	print_levels(out, engine, engine->tree.root);
	err = fclose(out) ? -ENOMEM : store_replace(directory, FILE_NAME, text, length);
	free(text);
	return err;
}
