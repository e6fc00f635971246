/* look - the tree at one moment, see look.h. */
#include "companions/serve/look.h"

#include "companions/holders.h"
#include "companions/json.h"
#include "companions/mounted.h"
#include "core/values/quantity.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_BYTES = 1 << 16, NAME_TEXT = 32 };

/* The numbers of a limiter, in the order in which the page takes them. */
static const enum stat_id NUMBERS[] = {
	STAT_GRANTED, STAT_THROTTLED, STAT_WAITING, STAT_LIMIT, STAT_RATE, STAT_SHARE,
	STAT_PAUSED,  STAT_DELAY,     STAT_REFUSED, STAT_SLOTS, STAT_OPEN,
};

enum { NUMBER_COUNT = sizeof(NUMBERS) / sizeof(NUMBERS[0]) };

/* The lines of status that the page shows. */
static const char *const STATUS[] = {"version", "host", "coordinator", "degraded",
				     "uptime_seconds"};

/* Reads a file at the top. NULL: it cannot be read. */
static char *read_top(const char *mountpoint, const char *name)
{
	char path[PATH_MAX], *text = calloc(1, LOOK_BYTES);
	FILE *file = NULL;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", mountpoint, name) < sizeof(path))
		file = fopen(path, "re");
	if (!text || !file) {
		free(text);
		text = NULL;
	} else {
		(void)!fread(text, 1, LOOK_BYTES - 1, file);
	}
	if (file)
		fclose(file);
	return text;
}

int look_take(const char *mountpoint, struct look *look)
{
	const char *coordinator = "";
	size_t length;
	int err;

	*look = (struct look){.status = NULL};
	err = sample_page_read(mountpoint, &look->page);
	if (err)
		return err;
	look->status = read_top(mountpoint, "status");
	length = mounted_line(look->status, "coordinator", &coordinator);
	look->is_fleet = length == strlen("ready") && !strncmp(coordinator, "ready", length);
	look->hosts = read_top(mountpoint, "hosts");
	return 0;
}

void look_free(struct look *look)
{
	sample_page_free(&look->page);
	free(look->status);
	free(look->hosts);
	*look = (struct look){.status = NULL};
}

static void print_number(FILE *out, double value)
{
	if (isnan(value))
		fputs(",null", out);
	else if (isinf(value))
		fputs(",1e999", out);
	else
		fprintf(out, ",%.12g", value);
}

static void print_limiter(FILE *out, const struct sample *sample)
{
	fputc('[', out);
	json_text(out, sample->path, strlen(sample->path));
	for (size_t i = 0; i < NUMBER_COUNT; i++)
		print_number(out, sample->values[NUMBERS[i]]);
	fputc(']', out);
}

/* Prints the lines of hosts, but for headings, split at blanks. */
static void print_hosts(FILE *out, const char *line)
{
	const char *between = "", *note = "";

	fputs(",\"hosts\":[", out);
	while (line && *line) {
		const char *end = line + strcspn(line, "\n");

		if (*line == '#') {
			note = mounted_hosts_note(line) ? mounted_hosts_note(line) : note;
			line = end + (*end == '\n');
			continue;
		}
		fputs(between, out);
		between = ",";
		for (const char *word = line, *sign = "["; word < end; sign = ",") {
			size_t length = strcspn(word, " \n");

			fputs(sign, out);
			json_text(out, word, length);
			word += length + (word[length] == ' ');
		}
		fputc(']', out);
		line = end + (*end == '\n');
	}
	fputs("],\"hosts_note\":", out);
	json_text(out, note, strcspn(note, "\n"));
}

/* Prints a message up to its limiters. */
static void print_head(FILE *out, const char *event, const struct look *look)
{
	const char *value, *sign = "";

	fprintf(out, "event: %s\ndata: {\"at\":%.3f,\"status\":{", event,
		(double)look->page.at_ns / NSEC_PER_SEC);
	for (size_t i = 0; i < sizeof(STATUS) / sizeof(STATUS[0]); i++) {
		size_t length = mounted_line(look->status, STATUS[i], &value);

		if (!length)
			continue;
		fprintf(out, "%s\"%s\":", sign, STATUS[i]);
		json_text(out, value, length);
		sign = ",";
	}
	fputc('}', out);
	print_hosts(out, look->hosts);
	fputs(",\"limiters\":[", out);
}

void look_print_all(const struct look *look, FILE *out)
{
	print_head(out, "all", look);
	for (size_t i = 0; i < look->page.count; i++) {
		fputs(i ? "," : "", out);
		print_limiter(out, &look->page.all[i]);
	}
	fputs("]}\n\n", out);
}

/* Tells whether a viewer who was told of @before knows @now. */
static bool is_known(const struct sample *now, const struct sample *before)
{
	if (!before)
		return false;
	for (size_t i = 0; i < NUMBER_COUNT; i++) {
		double value = now->values[NUMBERS[i]], old = before->values[NUMBERS[i]];

		if (value != old && !(isnan(value) && isnan(old)))
			return false;
	}
	return true;
}

void look_print_changes(const struct look *now, const struct look *before, FILE *out)
{
	const char *sign = "";

	print_head(out, "changes", now);
	for (size_t i = 0; i < now->page.count; i++) {
		const struct sample *sample = &now->page.all[i];

		if (is_known(sample, sample_page_find(&before->page, sample->path)))
			continue;
		fputs(sign, out);
		print_limiter(out, sample);
		sign = ",";
	}
	fputs("],\"gone\":[", out);
	sign = "";
	for (size_t i = 0; i < before->page.count; i++) {
		const char *path = before->page.all[i].path;

		if (sample_page_find(&now->page, path))
			continue;
		fputs(sign, out);
		json_text(out, path, strlen(path));
		sign = ",";
	}
	fputs("]}\n\n", out);
}

void look_print_trouble(const char *why, FILE *out)
{
	fputs("event: trouble\ndata: {\"why\":", out);
	json_text(out, why, strlen(why));
	fputs("}\n\n", out);
}

size_t look_print_holders(const char *mountpoint, const char *path, FILE *out)
{
	struct holders holders;
	size_t parts = 0;

	if (holders_read(mountpoint, path, &holders))
		return 0;
	fputs("event: holders\ndata: {\"limiter\":", out);
	json_text(out, path, strlen(path));
	fputs(",\"holders\":[", out);
	for (size_t i = 0; i < holders.count; i++) {
		const struct holder *holder = &holders.all[i];

		fputs(i ? ",[" : "[", out);
		json_text(out, holder->name, strlen(holder->name));
		print_number(out, holder->share);
		print_number(out, holder->rate);
		fprintf(out, ",%zu]", holder->count);
		parts += holder->count;
	}
	fputs("]}\n\n", out);
	holders_free(&holders);
	return parts;
}
