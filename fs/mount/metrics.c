/* metrics - the stats of all limiters in the Prometheus text format, see metrics.h. */
#include "fs/mount/metrics.h"
#include "fs/base/clock.h"
#include "fs/mount/pages.h"
#include "fs/mount/text_file.h"

#include "core/fleet/fleet.h"
#include "core/limiter/stat.h"
#include "core/limiter/usage.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of waits, each with a histogram. */
enum waiting { WAITING_FOR_TOKENS, WAITING_FOR_SLOTS, WAITING_KINDS };

static const char *const WAITING_NAMES[WAITING_KINDS] = {
	[WAITING_FOR_TOKENS] = "token", [WAITING_FOR_SLOTS] = "slot"};

/* The stats of a unit of a limiter, as stat_unit_entry() has them. */
enum { UNIT_ENTRIES = 9 };
struct unit_sample {
	char unit[UNIT_TEXT];
	struct stat_entry entries[UNIT_ENTRIES];
};

/* The stats of a limiter that it has, copied under the lock, to be printed without. */
struct sample {
	char *path;		   /* owned */
	struct histogram *waits;   /* owned: of each enum waiting; NULL: none has waited */
	struct unit_sample *units; /* owned: unit_count of them; NULL: it has none */
	uint32_t unit_count;
	uint32_t count, printed; /* of the entries */
	struct indexed_entry {
		size_t index; /* as of stat_entry(), each above the one before */
		struct stat_entry entry;
	} entries[];
};

struct samples {
	struct sample **all; /* owned */
	uint32_t count, room;
};

enum { CHAINS_PER_LOCK = 64, LIMITERS_AT_ONCE = 64 };

static void free_sample(struct sample *sample)
{
	free(sample->path);
	free(sample->waits);
	free(sample->units);
	free(sample);
}

/* Copies the stats of the units of @limiter into @sample. 0 or -ENOMEM. */
static int sample_units(struct sample *sample, const struct limiter *limiter)
{
	assert(stat_unit_count() == UNIT_ENTRIES);
	sample->units = units_counts(limiter) ? calloc(LIMITS_MAX, sizeof(*sample->units)) : NULL;
	if (units_counts(limiter) && !sample->units)
		return -ENOMEM;
	for (uint32_t i = 0; (i = stat_unit(limiter, i)) < LIMITS_MAX; i++) {
		struct unit_sample *unit = &sample->units[sample->unit_count++];

		memcpy(unit->unit, stat_unit_name(limiter, i), UNIT_TEXT);
		for (size_t k = 0; k < UNIT_ENTRIES; k++)
			unit->entries[k] = stat_unit_entry(limiter, i, k);
	}
	return 0;
}

/* Makes an empty sample with room for all entries that @limiter has. NULL: no memory. */
static struct sample *new_sample(const struct limiter *limiter)
{
	struct sample *sample;
	size_t count = 0;

	for (size_t i = 0; i < stat_count(); i++)
		count += stat_has_metric(limiter, i);
	sample = malloc(sizeof(*sample) + count * sizeof(sample->entries[0]));
	if (sample)
		*sample = (struct sample){0};
	return sample;
}

static struct sample *sample_of(struct daemon *daemon, struct limiter *limiter)
{
	struct sample *sample;
	char path[PATH_TEXT];

	engine_refresh(&daemon->engine, limiter, clock_ns());
	sample = new_sample(limiter);
	if (!sample)
		return NULL;
	tree_path(limiter, path);
	sample->path = strdup(path);
	sample->waits = usage_waited(limiter) ? calloc(WAITING_KINDS, sizeof(*sample->waits))
					      : NULL;
	if (!sample->path || (usage_waited(limiter) && !sample->waits)) {
		free_sample(sample);
		return NULL;
	}
	for (size_t i = 0; i < stat_count(); i++) {
		if (stat_has_metric(limiter, i))
			sample->entries[sample->count++] =
				(struct indexed_entry){i, stat_entry(limiter, i)};
	}
	if (sample_units(sample, limiter)) {
		free_sample(sample);
		return NULL;
	}
	if (sample->waits) {
		sample->waits[WAITING_FOR_TOKENS] = usage_of_tokens(limiter);
		sample->waits[WAITING_FOR_SLOTS] = usage_of_slots(limiter);
	}
	return sample;
}

static int add_sample(struct daemon *daemon, struct samples *samples, struct limiter *limiter)
{
	if (samples->count == samples->room) {
		uint32_t room = samples->room ? samples->room * 2 : LIMITERS_AT_ONCE;
		struct sample **more = realloc(samples->all, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		samples->all = more;
		samples->room = room;
	}
	samples->all[samples->count] = sample_of(daemon, limiter);
	if (!samples->all[samples->count])
		return -ENOMEM;
	samples->count++;
	return 0;
}

/*
 * Copies the limiters of some more of the tree's chains, from *@chain of @chains on, and moves
 * *@chain. The tree may have grown since, by doubling: then a chain has become several. Locks.
 */
static int collect_some(struct daemon *daemon, const struct page *page, const struct handle *handle,
			struct samples *samples, uint32_t *chain, uint32_t chains)
{
	struct tree *tree = &daemon->engine.tree;
	uint32_t end = *chain + CHAINS_PER_LOCK < chains ? *chain + CHAINS_PER_LOCK : chains;
	int err = 0;

	daemon_lock(daemon);
	if (page && !page->pending.request)
		err = -EINTR; /* its reader has gone */
	for (; !err && *chain < end; ++*chain) {
		for (uint32_t part = *chain; !err && part < tree->size; part += chains) {
			struct limiter *l = tree->by_id[part];

			for (; !err && l; l = l->next_by_id) {
				if (!limiter_is_root(l) && viewer_sees(handle->viewer, l))
					err = add_sample(daemon, samples, l);
			}
		}
	}
	daemon_unlock(daemon);
	return err;
}

/*
 * Returns the length of the UTF-8 sequence (RFC 3629) at the beginning of @text; 0: there is none.
 */
static size_t utf8_length(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	size_t length = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	if (c[0] > 0xf4 || (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	}
	return length;
}

/*
 * Prints a label's value: UTF-8, with backslash and quote escaped; a name's other bytes are written
 * \xNN.
 */
static void print_label(FILE *out, const char *value)
{
	while (*value) {
		size_t length = utf8_length(value);

		if (!length) {
			fprintf(out, "\\\\x%02x", (unsigned char)*value++);
			continue;
		}
		if (*value == '\\' || *value == '"')
			fputc('\\', out);
		fwrite(value, 1, length, out);
		value += length;
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

/* Prints the lines of the stat called @name of the units of @sample, if they have it. */
static void print_units(FILE *out, const struct sample *sample, const char *name,
			const char *suffix)
{
	for (uint32_t i = 0; i < sample->unit_count; i++) {
		const struct unit_sample *unit = &sample->units[i];

		for (size_t k = 0; k < UNIT_ENTRIES; k++) {
			if (strcmp(unit->entries[k].name, name) != 0)
				continue;
			fprintf(out, "ratefs_%s%s{limiter=\"", name, suffix);
			print_label(out, sample->path);
			fprintf(out, "\",unit=\"%s\"} ", unit->unit);
			print_value(out, &unit->entries[k]);
		}
	}
}

/* Prints the lines of stat @index, which each sample has in its turn if it has it. */
static void print_stat(FILE *out, const struct samples *samples, size_t index)
{
	bool begun = false;

	for (uint32_t i = 0; i < samples->count; i++) {
		struct sample *sample = samples->all[i];
		const struct stat_entry *entry;
		const char *suffix;

		if (sample->printed == sample->count ||
		    sample->entries[sample->printed].index != index)
			continue;
		entry = &sample->entries[sample->printed++].entry;
		suffix = entry->is_counter ? "_total" : "";
		if (!begun)
			fprintf(out, "# HELP ratefs_%s%s %s.\n# TYPE ratefs_%s%s %s\n", entry->name,
				suffix, entry->help, entry->name, suffix,
				entry->is_counter ? "counter" : "gauge");
		begun = true;
		fprintf(out, "ratefs_%s%s{limiter=\"", entry->name, suffix);
		print_label(out, sample->path);
		fputs("\"} ", out);
		print_value(out, entry);
		print_units(out, sample, entry->name, suffix);
	}
}

/* Begins a line of the histogram of waits in @sample for @kind. */
static void begin_waits(FILE *out, const struct sample *sample, enum waiting kind, const char *part)
{
	fprintf(out, "ratefs_wait_seconds_%s{limiter=\"", part);
	print_label(out, sample->path);
	fprintf(out, "\",for=\"%s\"", WAITING_NAMES[kind]);
}

/* Prints the histogram of waits in @sample for @kind; nothing if there were none. */
static void print_waits(FILE *out, const struct sample *sample, enum waiting kind)
{
	const struct histogram *waits = &sample->waits[kind];
	uint64_t count = waits->at_once;

	if (!count && !histogram_count(waits))
		return;
	for (unsigned int i = 0; i < HISTOGRAM_COUNTS; i++) {
		count += waits->counts[i];
		begin_waits(out, sample, kind, "bucket");
		if (i < HISTOGRAM_BOUNDS)
			fprintf(out, ",le=\"%.7g\"} %" PRIu64 "\n",
				(double)histogram_bound_ns(i) / (double)NSEC_PER_SEC, count);
		else
			fprintf(out, ",le=\"+Inf\"} %" PRIu64 "\n", count);
	}
	begin_waits(out, sample, kind, "sum");
	fprintf(out, "} %.15g\n", (double)waits->sum_ns / (double)NSEC_PER_SEC);
	begin_waits(out, sample, kind, "count");
	fprintf(out, "} %" PRIu64 "\n", count);
}

/* Prints the histograms of limiters in which readers have waited. */
static void print_histograms(FILE *out, const struct samples *samples)
{
	fputs("# HELP ratefs_wait_seconds Seconds that reads, and opens of slot, have waited.\n"
	      "# TYPE ratefs_wait_seconds histogram\n",
	      out);
	for (uint32_t i = 0; i < samples->count; i++) {
		for (enum waiting kind = 0; samples->all[i]->waits && kind < WAITING_KINDS; kind++)
			print_waits(out, samples->all[i], kind);
	}
}

/* Prints the daemon's own stats. */
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

	fprintf(out,
		"# HELP ratefs_build_info Version of the daemon.\n"
		"# TYPE ratefs_build_info gauge\n"
		"ratefs_build_info{version=\"%s\"} 1\n",
		RATEFS_VERSION);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		fprintf(out, "# HELP %s %s.\n# TYPE %s gauge\n%s %.15g\n", own[i].name, own[i].help,
			own[i].name, own[i].name, own[i].value);
}

/* The stats of the host in its fleet, copied under the lock. */
struct fleet_sample {
	bool there;
	struct fleet_counters counters;
	double leases, right, degraded, connected;
};

static void sample_fleet(const struct daemon *daemon, struct fleet_sample *sample)
{
	const struct fleet *fleet = daemon->fleet;

	*sample = (struct fleet_sample){.there = fleet};
	if (!fleet)
		return;
	sample->counters = *fleet_counters(fleet);
	sample->leases = fleet_leases(fleet);
	sample->right = (double)fleet_right_ns(fleet) / (double)NSEC_PER_SEC;
	sample->degraded = fleet_is_degraded(fleet);
	sample->connected = fleet_is_connected(fleet) && fleet_state(fleet) == FLEET_READY;
}

static void print_fleet(FILE *out, const struct fleet_sample *sample)
{
	const struct {
		const char *name;
		const char *help;
		double value;
	} gauges[] = {
		{"leases", "Leases that this host holds, of all limiters", sample->leases},
		{"right_seconds", "Seconds until the right to use them ends unless it is renewed",
		 sample->right},
		{"degraded", "1 while the file offline of each limiter is in force, else 0",
		 sample->degraded},
		{"ready", "1 while this host can take leases, else 0", sample->connected},
	};

	if (!sample->there)
		return;
	for (size_t i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		fprintf(out,
			"# HELP ratefs_fleet_%s %s.\n# TYPE ratefs_fleet_%s gauge\n"
			"ratefs_fleet_%s %.15g\n",
			gauges[i].name, gauges[i].help, gauges[i].name, gauges[i].name,
			gauges[i].value);
	for (size_t i = 0; i < FLEET_COUNTER_COUNT; i++) {
		const char *name = fleet_counter_name(i);

		fprintf(out,
			"# HELP ratefs_fleet_%s_total %s.\n"
			"# TYPE ratefs_fleet_%s_total counter\nratefs_fleet_%s_total %" PRIu64 "\n",
			name, fleet_counter_help(i), name, name,
			fleet_counter(&sample->counters, i));
	}
}

/*
 * Prints the whole page for @handle. @page is its request; NULL: its reader cannot go away. @handle
 * is there as long as its request. Locks.
 */
static int print_page(FILE *out, struct daemon *daemon, const struct page *page,
		      const struct handle *handle)
{
	struct samples samples = {0};
	double limiters, waiters, up;
	uint32_t chain = 0, chains;
	struct fleet_sample fleet;
	int err = 0;

	daemon_lock(daemon);
	sample_fleet(daemon, &fleet);
	limiters = daemon->engine.tree.count;
	waiters = daemon->engine.waiting;
	up = (double)(clock_ns() - daemon->engine.began_ns) / (double)NSEC_PER_SEC;
	chains = daemon->engine.tree.size;
	daemon_unlock(daemon);
	while (!err && chain < chains)
		err = collect_some(daemon, page, handle, &samples, &chain, chains);
	print_daemon(out, limiters, waiters, up);
	print_fleet(out, &fleet);
	for (size_t i = 0; !err && i < stat_count(); i++)
		print_stat(out, &samples, i);
	if (!err)
		print_histograms(out, &samples);
	for (uint32_t i = 0; i < samples.count; i++)
		free_sample(samples.all[i]);
	free(samples.all);
	return err;
}

char *metrics_text(struct daemon *daemon, const struct page *page, const struct handle *handle,
		   size_t *length)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);
	int err;

	if (!out)
		return NULL;
	err = print_page(out, daemon, page, handle);
	if (fclose(out) || err) {
		free(text);
		return NULL;
	}
	return text;
}

static void read_metrics(struct daemon *daemon, struct handle *handle,
			 const struct read_request *read)
{
	size_t length = 0;
	char *text;
	bool many, goes_on;
	int err;

	daemon_lock(daemon);
	/*
	 * A reader that begins in the middle, or went on reading under another server, has none
	 * yet.
	 */
	goes_on = read->offset &&
		  text_file_go_on(daemon, handle, read->caller->request, read->offset, read->size);
	many = daemon->engine.tree.count > LIMITERS_AT_ONCE;
	daemon_unlock(daemon);
	if (goes_on)
		return;
	err = many ? pages_ask(daemon, handle, read) : -EAGAIN;
	if (err == -EBUSY)
		fuse_reply_err(read->caller->request, EBUSY);
	if (!err || err == -EBUSY)
		return;
	text = metrics_text(daemon, NULL, handle, &length);
	if (!text) {
		fuse_reply_err(read->caller->request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	text_file_answer(daemon, handle, read->caller->request, text, length, read->offset,
			 read->size);
	daemon_unlock(daemon);
}

const struct node_kind METRICS_FILE = {
	.open = handle_open_view, .reopen = handle_reopen_view, .read = read_metrics};
