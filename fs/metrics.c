/* metrics - every stat of every limiter in the Prometheus text format, see metrics.h. */
#include "fs/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is copied of a limiter under the lock, to be printed without. */
struct sample {
	char *path; /* owned */
	struct stat_entry entries[];
};

struct samples {
	struct sample **all; /* owned */
	uint32_t count;
	size_t entry_count;
};

enum { LIMITERS_PER_LOCK = 256 };

static struct sample *sample_of(struct daemon *daemon, struct limiter *limiter, size_t entry_count)
{
	struct sample *sample =
		malloc(sizeof(*sample) + entry_count * sizeof(struct stat_entry));
	char path[PATH_TEXT];

	if (!sample)
		return NULL;
	tree_path(limiter, path);
	sample->path = strdup(path);
	if (!sample->path) {
		free(sample);
		return NULL;
	}
	engine_refresh(&daemon->engine, limiter, clock_ns());
	for (size_t i = 0; i < entry_count; i++)
		sample->entries[i] = stat_entry(limiter, i);
	return sample;
}

/* Ids ascend in no order over the tree; the next one is looked for by id, whatever was removed. */
static void collect(struct daemon *daemon, struct samples *samples)
{
	uint32_t last_id = daemon->engine.tree.last_id, since = 0, room = 0;

	for (uint32_t id = 1; id && id <= last_id; id++) {
		struct limiter *limiter = tree_find_id(&daemon->engine.tree, id);
		struct sample *sample;

		if (++since == LIMITERS_PER_LOCK) {
			since = 0;
			daemon_unlock(daemon);
			daemon_lock(daemon);
		}
		if (!limiter)
			continue;
		if (samples->count == room) {
			struct sample **more;

			room = room ? room * 2 : 64;
			more = realloc(samples->all, room * sizeof(*more));
			if (!more)
				return;
			samples->all = more;
		}
		limiter = tree_find_id(&daemon->engine.tree, id);
		sample = limiter ? sample_of(daemon, limiter, samples->entry_count) : NULL;
		if (sample)
			samples->all[samples->count++] = sample;
	}
}

/* Label values escape backslash, quote and newline. */
static void print_label(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		fputc(*value, out);
	}
}

static void print_value(FILE *out, const struct stat_entry *entry)
{
	if (entry->is_whole)
		fprintf(out, "%" PRIu64 "\n", entry->count);
	else if (isinf(entry->value))
		fputs(entry->value < 0 ? "-Inf\n" : "+Inf\n", out);
	else
		fprintf(out, "%.15g\n", entry->value);
}

static void print_stat(FILE *out, const struct samples *samples, size_t index,
		       const struct stat_entry *first)
{
	const char *suffix = first->is_counter ? "_total" : "";

	fprintf(out, "# HELP ratefs_%s%s %s.\n# TYPE ratefs_%s%s %s\n", first->name, suffix,
		first->help, first->name, suffix, first->is_counter ? "counter" : "gauge");
	for (uint32_t i = 0; i < samples->count; i++) {
		fprintf(out, "ratefs_%s%s{limiter=\"", first->name, suffix);
		print_label(out, samples->all[i]->path);
		fputs("\"} ", out);
		print_value(out, &samples->all[i]->entries[index]);
	}
}

/* The daemon's own. */
static void print_daemon(FILE *out, double limiters, double waiters, double up)
{
	const struct {
		const char *name;
		const char *help;
		double value;
	} own[] = {
		{"ratefs_limiters", "Limiters there are", limiters},
		{"ratefs_waiters", "Readers blocked in all limiters", waiters},
		{"ratefs_uptime_seconds", "Seconds since the daemon started", up},
	};

	fprintf(out, "# HELP ratefs_build_info Version of the daemon.\n"
		     "# TYPE ratefs_build_info gauge\n"
		     "ratefs_build_info{version=\"%s\"} 1\n",
		RATEFS_VERSION);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		fprintf(out, "# HELP %s %s.\n# TYPE %s gauge\n%s %.15g\n", own[i].name,
			own[i].help, own[i].name, own[i].name, own[i].value);
}

void metrics_print(FILE *out, struct daemon *daemon)
{
	struct samples samples = {.entry_count = stat_count()};
	double limiters = daemon->engine.tree.count;
	double waiters = daemon->engine.waiting;
	double up = (double)(clock_ns() - daemon->engine.began_ns) / (double)NSEC_PER_SEC;

	collect(daemon, &samples);
	daemon_unlock(daemon);
	print_daemon(out, limiters, waiters, up);
	for (size_t i = 0; samples.count && i < samples.entry_count; i++)
		print_stat(out, &samples, i, &samples.all[0]->entries[i]);
	for (uint32_t i = 0; i < samples.count; i++) {
		free(samples.all[i]->path);
		free(samples.all[i]);
	}
	free(samples.all);
	daemon_lock(daemon);
}
