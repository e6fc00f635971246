/*
 * simulate - runs the core of ratefs on virtual time.
 *
 *	simulate [--seed N] [--hosts N] [--quiet|--terse] [TRACE]
 *	simulate --random [--seed N] [--for TIME] [--hosts N] [--order] [--quiet|--terse]
 *
 * Reads a trace from standard input or the file named, or makes one up and prints it as comments
 * before what happens, so that it can be cut out and edited. Prints what happened, and a summary.
 * --quiet prints the summary alone, --terse leaves out grants. A trace is of one host, unless it
 * begins with `fleet N` or --hosts is given. One made up with --order is about
 * the order among siblings, and with --hosts over those of a fleet.
 *
 * Exit status: 0, 1 when an invariant does not hold, 2 when the command line or the trace is not
 * understood or gets nowhere.
 */
#include "tests/sim/invariants/empty_check.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/base/random.h"
#include "tests/sim/base/zones.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_BROKEN = 1, STATUS_WRONG = 2, FIRST_READ = 65536 };

static const char USAGE[] =
	"usage: simulate [--seed N] [--hosts N] [--quiet|--terse] [TRACE]\n"
	"       simulate --random [--seed N] [--for TIME] [--hosts N] [--order] "
	"[--quiet|--terse]\n"
	"of slots a trace says: open PATH/slot as NAME, number NAME, close NAME; slots PATH (the\n"
	"mean number since the last time); workers PATH [key NAME] K [slot [numbered]] [work D];\n"
	"load PATH RATE [take N] [poisson|jitter %];\n"
	"service PATH RATE [latency D] [knee N] [jitter %]\n";

struct options {
	uint64_t seed;
	uint64_t hosts;
	uint64_t for_ns;
	bool quiet;
	bool terse;
	bool random;
	bool order;
	bool help;
	const char *trace;
};

static int wrong(const char *what, const char *word)
{
	fprintf(stderr, "simulate: %s '%s'\n%s", what, word, USAGE);
	return -1;
}

static int parse_value(struct options *options, const char *name, const char *value)
{
	int err;

	if (!value)
		return wrong("a value is missing after", name);
	if (!strcmp(name, "--for"))
		err = duration_parse(value, &options->for_ns);
	else
		err = count_parse(value,
				  !strcmp(name, "--seed") ? &options->seed : &options->hosts);
	return err ? wrong("not understood:", value) : 0;
}

static int parse_options(struct options *options, char **words)
{
	for (; *words; words++) {
		const char *word = *words;

		if (!strcmp(word, "--quiet")) {
			options->quiet = true;
		} else if (!strcmp(word, "--terse")) {
			options->terse = true;
		} else if (!strcmp(word, "--random")) {
			options->random = true;
		} else if (!strcmp(word, "--order")) {
			options->order = true;
		} else if (!strcmp(word, "--help")) {
			options->help = true;
		} else if (!strcmp(word, "--seed") || !strcmp(word, "--hosts") ||
			   !strcmp(word, "--for")) {
			if (parse_value(options, word, words[1]))
				return -1;
			words++;
		} else if (*word == '-' && word[1]) {
			return wrong("unknown option", word);
		} else if (options->trace) {
			return wrong("one trace only:", word);
		} else {
			options->trace = word;
		}
	}
	if (options->hosts > FLEET_HOSTS_MAX)
		return wrong("too many:", "--hosts");
	if (options->random && options->trace)
		return wrong("made up or read, not both:", options->trace);
	if (options->order && !options->random)
		return wrong("of random traces:", "--order");
	return 0;
}

/* All of a file in memory; NULL when it cannot be read. */
static char *read_all(FILE *file)
{
	size_t size = FIRST_READ, used = 0, got;
	char *text = memory_get(size);

	while ((got = fread(text + used, 1, size - used - 1, file))) {
		used += got;
		if (used == size - 1) {
			char *larger = memory_get(size * 2);

			memcpy(larger, text, used);
			free(text);
			text = larger;
			size *= 2;
		}
	}
	text[used] = '\0';
	if (!ferror(file))
		return text;
	free(text);
	return NULL;
}

static char *read_trace(const char *name)
{
	FILE *file = name && strcmp(name, "-") != 0 ? fopen(name, "re") : stdin;
	char *text = file ? read_all(file) : NULL;

	if (!text)
		fprintf(stderr, "simulate: %s: %s\n", name ? name : "standard input",
			strerror(errno));
	if (file && file != stdin)
		fclose(file);
	return text;
}

static void print_as_comment(const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		printf("# %.*s\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static int run(const struct options *options, const char *text)
{
	struct trace trace;
	struct sim sim;
	bool went, kept;

	if (trace_parse(&trace, text, (unsigned int)options->hosts)) {
		fprintf(stderr, "simulate: %s:%s\n", options->trace ? options->trace : "trace",
			trace.problem);
		trace_free(&trace);
		return STATUS_WRONG;
	}
	if (options->random && !options->quiet)
		print_as_comment(text);
	sim_open(&sim, &trace.fleet, options->seed, options->quiet);
	sim.terse = options->terse;
	sim.expects = trace.expects;
	went = sim_run(&sim, &trace);
	kept = sim_close(&sim);
	trace_free(&trace);
	if (!kept)
		return STATUS_BROKEN;
	return went ? 0 : STATUS_WRONG;
}

int main(int argc, char **argv)
{
	struct options options = {.seed = 1, .for_ns = 3600 * NSEC_PER_SEC};
	long blocks = memory_blocks();
	char why[WHY_TEXT], *text;
	int status;

	(void)argc;
	zone_use(&LIBRARY_ZONES);
	if (parse_options(&options, argv + 1))
		return STATUS_WRONG;
	if (options.help) {
		fputs(USAGE, stdout);
		return 0;
	}
	if (!options.random)
		text = read_trace(options.trace);
	else if (options.hosts && options.order)
		text = random_dues(options.seed, options.for_ns, (unsigned int)options.hosts);
	else if (options.hosts)
		text = random_fleet(options.seed, options.for_ns, (unsigned int)options.hosts);
	else if (options.order)
		text = random_order(options.seed, options.for_ns);
	else
		text = random_trace(options.seed, options.for_ns);
	if (!text)
		return STATUS_WRONG;
	status = run(&options, text);
	free(text);
	if (!status && !empty_check_memory(blocks, memory_blocks(), why)) {
		fprintf(stderr, "invariant I%d: %s\n", INVARIANT_EMPTY, why);
		status = STATUS_BROKEN;
	}
	return status;
}
