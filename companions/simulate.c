/*
 * simulate - says how the readers of a log, or of a load that is made up, would fare with the
 * limiters of a file: how many would get tokens at once, wait, and how long, or be refused. Nothing
 * is mounted.
 */
#include "companions/companion.h"
#include "companions/inspect.h"
#include "companions/load.h"
#include "companions/log_format.h"
#include "companions/replay.h"

#include "core/limiter/wall.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMPLAINTS_MAX = 10, /* lines that are reported one by one */
	LOADS_MAX = 64,
};

/* A line may be older than one before it by so much, since servers write what ended, late. */
static const uint64_t DISORDER_NS = 60 * NSEC_PER_SEC;

/* A log is no longer than that. */
static const uint64_t SPAN_NS = DURATION_MAX_NS;

struct simulation {
	const char *config, *log; /* files; "-": standard input, one of them */
	const char *limiter;	  /* of lines that name none, or NULL */
	uint64_t within_ns;
	struct log_format format;
	bool has_format;    /* it was given */
	struct load *loads; /* room for LOADS_MAX; in place of a log */
	unsigned int load_count;
	struct replay replay;
	struct limiter *only;		   /* that is called @limiter */
	uint64_t lines, wrong, disordered; /* lines: also readers of a load */
	uint64_t first_ns, last_ns;	   /* times of lines that were understood; of a load */
};

/*
 * Says why the line that was read last is left out. Clients have chosen its bytes: a terminal gets
 * no control characters of theirs.
 */
static void complain(struct simulation *simulation, const char *why)
{
	if (++simulation->wrong > COMPLAINTS_MAX)
		return;
	fprintf(stderr, "%s:%" PRIu64 ": ", simulation->log, simulation->lines);
	for (const char *c = why; *c; c++)
		fputc(iscntrl((unsigned char)*c) ? '?' : *c, stderr);
	fputc('\n', stderr);
}

/*
 * Finds the time of a line that has @at_ns, from the first line on. 0, or -EINVAL with a reason.
 */
static int place_in_time(struct simulation *simulation, uint64_t at_ns, uint64_t *since_ns,
			 char error[ERROR_TEXT])
{
	bool begins = simulation->lines == simulation->wrong + 1;
	char time[QUANTITY_TEXT];

	if (begins) {
		simulation->first_ns = simulation->last_ns = at_ns;
		wall_set(&simulation->replay.engine, (int64_t)at_ns, 0);
	}
	if (at_ns < simulation->last_ns && simulation->last_ns - at_ns > DISORDER_NS) {
		duration_print(simulation->last_ns - at_ns, time);
		snprintf(error, ERROR_TEXT, "%s before an earlier line", time);
		return -EINVAL;
	}
	if (at_ns > simulation->last_ns && at_ns - simulation->first_ns > SPAN_NS) {
		snprintf(error, ERROR_TEXT, "more than ten years after the first line");
		return -EINVAL;
	}
	if (at_ns < simulation->last_ns)
		simulation->disordered++;
	else
		simulation->last_ns = at_ns;
	*since_ns = simulation->last_ns - simulation->first_ns;
	return 0;
}

/* Finds the limiter and the key of a line. 0, or -EINVAL with a reason. */
static int find_limiter(const struct simulation *simulation, const struct log_record *record,
			struct arrival *arrival, char error[ERROR_TEXT])
{
	arrival->limiter = simulation->only;
	if (record->limiter)
		arrival->limiter = replay_find(&simulation->replay, record->limiter);
	if (!arrival->limiter) {
		snprintf(error, ERROR_TEXT, "no limiter of %.200s: '%.200s'", simulation->config,
			 record->limiter);
		return -EINVAL;
	}
	arrival->key = record->key;
	if (!record->key || (*record->key && strlen(record->key) <= NAME_BYTES_MAX))
		return 0;
	snprintf(error, ERROR_TEXT, "not a key: '%.40s', 1 to %d bytes", record->key,
		 NAME_BYTES_MAX);
	return -EINVAL;
}

/* Takes one line, without its newline. 0, or -ENOMEM. */
static int take_line(struct simulation *simulation, char *line)
{
	struct log_record record;
	struct arrival arrival;
	char error[ERROR_TEXT];
	uint64_t since_ns;

	simulation->lines++;
	if (log_format_read(&simulation->format, line, &record, error) ||
	    find_limiter(simulation, &record, &arrival, error) ||
	    place_in_time(simulation, record.at_ns, &since_ns, error)) {
		complain(simulation, error);
		return 0;
	}
	arrival.tokens = record.cost;
	return replay_arrive(&simulation->replay, &arrival, since_ns);
}

/* Passes over what is left of a line in @file. */
static void skip_line(FILE *file)
{
	int c;

	do
		c = getc_unlocked(file);
	while (c != '\n' && c != EOF);
}

/*
 * Reads a line into @line. Returns its length; LOG_LINE_TEXT: it is longer, and passed over; -1 at
 * the end.
 */
static int read_line(FILE *file, char line[LOG_LINE_TEXT])
{
	int length = 0, c;

	while ((c = getc_unlocked(file)) != '\n' && c != EOF) {
		if (length == LOG_LINE_TEXT - 1) {
			skip_line(file);
			return LOG_LINE_TEXT;
		}
		line[length++] = (char)c;
	}
	line[length] = '\0';
	return length || c != EOF ? length : -1;
}

static int take_lines(struct simulation *simulation, FILE *file)
{
	static char line[LOG_LINE_TEXT];
	int length, err = 0;

	while (!err && (length = read_line(file, line)) >= 0) {
		bool is_long = length == LOG_LINE_TEXT;

		if (is_long || memchr(line, '\0', (size_t)length)) {
			simulation->lines++;
			complain(simulation, is_long ? "longer than 65535 bytes"
						     : "not a text: it has a zero byte");
		} else {
			err = take_line(simulation, line);
		}
	}
	return err;
}

static int run_log(struct simulation *simulation)
{
	bool is_input = !strcmp(simulation->log, "-");
	FILE *file = is_input ? stdin : fopen(simulation->log, "re");
	int err;

	if (is_input)
		simulation->log = "standard input";
	if (!file) {
		warn("%s", simulation->log);
		return -1;
	}
	err = take_lines(simulation, file);
	if (err || ferror(file))
		warnx("%s: %s", simulation->log, strerror(err ? -err : errno));
	err = err || ferror(file) ? -1 : 0;
	if (!is_input)
		fclose(file);
	return err;
}

/* Returns the load whose reader comes next, the first of several; NULL: no more come. */
static struct load *find_next(const struct simulation *simulation)
{
	struct load *next = NULL;
	uint64_t at_ns = NEVER_NS;

	for (unsigned int i = 0; i < simulation->load_count; i++) {
		if (simulation->loads[i].next_ns < at_ns) {
			next = &simulation->loads[i];
			at_ns = next->next_ns;
		}
	}
	return next;
}

/* Has the readers of all loads come. 0, or -1 after a message. */
static int run_loads(struct simulation *simulation)
{
	struct limiter *limiters[LOADS_MAX];
	struct load *load;

	for (unsigned int i = 0; i < simulation->load_count; i++) {
		load = &simulation->loads[i];
		limiters[i] = replay_find(&simulation->replay, load->limiter);
		if (!limiters[i]) {
			warnx("no limiter of %s: '%s'", simulation->config, load->limiter);
			return -1;
		}
		if (load->for_ns > simulation->last_ns)
			simulation->last_ns = load->for_ns;
	}
	while ((load = find_next(simulation))) {
		struct arrival arrival = {
			.limiter = limiters[load - simulation->loads],
			.key = load->key,
			.tokens = load->tokens,
		};

		if (replay_arrive(&simulation->replay, &arrival, load->next_ns)) {
			warnx("no memory");
			return -1;
		}
		simulation->lines++;
		load_advance(load);
	}
	return 0;
}

static void print_seconds(uint64_t ns)
{
	char text[QUANTITY_TEXT];

	seconds_print(ns, 3, text);
	printf(" %9s", text);
}

/* Prints the row of @limiter, called @path, if readers of it came. */
static void print_tally(const struct simulation *simulation, const struct limiter *limiter,
			const char *path)
{
	const struct tally *tally = replay_tally(&simulation->replay, limiter);
	const struct waits *waits = &tally->waits;
	uint64_t never = tally->asked - tally->at_once - waits->count - tally->refused_within -
			 tally->refused_wait - tally->refused_queue - tally->refused_no_room;

	if (!tally->asked)
		return;
	printf("%-20s %9" PRIu64 " %11" PRIu64 " %9" PRIu64 " %9" PRIu64, path, tally->asked,
	       tally->tokens, tally->at_once, waits->count);
	printf(" %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64,
	       tally->refused_within, tally->refused_wait, tally->refused_queue,
	       tally->refused_no_room, never);
	printf(" %11.3f %9.3f", waits->sum_s,
	       waits->count ? waits->sum_s / (double)waits->count : 0);
	print_seconds(waits_quantile_ns(waits, 50));
	print_seconds(waits_quantile_ns(waits, 90));
	print_seconds(waits_quantile_ns(waits, 99));
	print_seconds(waits->most_ns);
	putchar('\n');
}

/* Prints the rows of all limiters below @parent, each before those below it. */
static void print_below(const struct simulation *simulation, const struct limiter *parent)
{
	char path[PATH_TEXT];

	for (const struct limiter *l = parent->first_child; l; l = l->next_sibling) {
		tree_path(l, path);
		print_tally(simulation, l, path);
		print_below(simulation, l);
	}
}

static void print_result(const struct simulation *simulation)
{
	char time[QUANTITY_TEXT];

	seconds_print(simulation->last_ns - simulation->first_ns, 3, time);
	if (simulation->log)
		printf("%" PRIu64 " lines over %s s; %" PRIu64 " left out, %" PRIu64
		       " out of order\n",
		       simulation->lines, time, simulation->wrong, simulation->disordered);
	else
		printf("%" PRIu64 " readers over %s s\n", simulation->lines, time);
	printf("%-20s %9s %11s %9s %9s %9s %9s %9s %9s %9s %11s %9s %9s %9s %9s %9s\n", "limiter",
	       "asked", "tokens", "at_once", "waited", "within", "wait_max", "queue_max", "no_room",
	       "never", "sum_s", "mean_s", "p50_s", "p90_s", "p99_s", "most_s");
	print_below(simulation, simulation->replay.engine.tree.root);
}

/* Reads the file of limiters: its text, from malloc; or NULL after a message for each mistake. */
static char *read_config(struct simulation *simulation)
{
	struct inspection inspection = {.file = simulation->config, .out = stderr};
	char *text = inspect_file(&inspection);

	simulation->config = inspection.file;
	inspect_free(&inspection);
	if (!inspection.wrong)
		return text;
	free(text);
	return NULL;
}

/* Makes the limiters of @text. 0, or -1 after a message. */
static int load(struct simulation *simulation, const char *text)
{
	char error[ERROR_TEXT];

	if (replay_load(&simulation->replay, text, error)) {
		warnx("%s: %s", simulation->config, error);
		return -1;
	}
	if (!simulation->limiter)
		return 0;
	simulation->only = replay_find(&simulation->replay, simulation->limiter);
	if (!simulation->only)
		warnx("no limiter of %s: '%s'", simulation->config, simulation->limiter);
	return simulation->only ? 0 : -1;
}

static int simulate(struct simulation *simulation)
{
	char *text = read_config(simulation);
	int err = -1;

	if (!text)
		return STATUS_TROUBLE;
	if (replay_open(&simulation->replay, simulation->within_ns)) {
		warnx("no memory");
		free(text);
		return STATUS_TROUBLE;
	}
	if (!load(simulation, text))
		err = simulation->log ? run_log(simulation) : run_loads(simulation);
	free(text);
	if (!err && replay_finish(&simulation->replay)) {
		warnx("no memory");
		err = -1;
	}
	if (!err && simulation->wrong > COMPLAINTS_MAX)
		warnx("%" PRIu64 " more lines are left out", simulation->wrong - COMPLAINTS_MAX);
	if (!err)
		print_result(simulation);
	replay_close(&simulation->replay);
	if (!err && (fflush(stdout) || ferror(stdout))) {
		warn("standard output");
		err = -1;
	}
	if (err)
		return STATUS_TROUBLE;
	return simulation->wrong ? STATUS_CHANGED : EXIT_SUCCESS;
}

static void print_usage(void)
{
	printf("usage: ratefs simulate [options] -c FILE --load LOAD...\n"
	       "       ratefs simulate [options] -c FILE --from-log LOG\n"
	       "\n"
	       "Says how readers would fare with the limiters of FILE: how many would get their "
	       "tokens at\n"
	       "once, wait and how long, or be refused. Nothing is mounted.\n"
	       "\n"
	       "options:\n"
	       "    -c FILE             limiters, as for ratefs apply; - is standard input\n"
	       "    --load LOAD         readers by chance, or even, such as 'orders 20/s for "
	       "10min':\n"
	       "                        " LOAD_FORM "\n"
	       "    --from-log LOG      a reader each line; - is standard input\n"
	       "    -f FORMAT           of a line, with $time, $limiter, $key and $cost;\n"
	       "                        default '" LOG_FORMAT_DEFAULT "'; combined is nginx's\n"
	       "    -l LIMITER          of lines without $limiter\n"
	       "    -w, --within DURATION\n"
	       "                        that a reader waits at most\n"
	       "    -h, --help          print this\n");
}

static int wrong(const char *what, const char *argument)
{
	warnx("%s: '%s'", what, argument);
	return companion_usage();
}

/* Adds a load. 0, or an exit status after a message. */
static int add_load(struct simulation *simulation, const char *text)
{
	char error[ERROR_TEXT];
	unsigned int number = simulation->load_count;

	if (number == LOADS_MAX)
		return wrong("more than 64 loads", text);
	if (load_parse(&simulation->loads[number], text, number, error)) {
		warnx("--load '%s': %s", text, error);
		return companion_usage();
	}
	simulation->load_count++;
	return 0;
}

/* 0, or an exit status after a message. */
static int take_option(struct simulation *simulation, int option)
{
	char error[ERROR_TEXT];

	switch (option) {
	case 'c':
		simulation->config = optarg;
		return 0;
	case 'L':
		simulation->log = optarg;
		return 0;
	case 'o':
		return add_load(simulation, optarg);
	case 'f':
		simulation->has_format = true;
		if (!log_format_parse(&simulation->format, optarg, error))
			return 0;
		warnx("%s", error);
		return companion_usage();
	case 'l':
		simulation->limiter = optarg;
		return 0;
	case 'w':
		if (companion_duration(optarg, 0, DURATION_MAX_NS, &simulation->within_ns))
			return wrong("not a time that a reader waits at most", optarg);
		return 0;
	default:
		return companion_usage();
	}
}

/* 0, or an exit status after a message. */
static int check_options(const struct simulation *simulation, const char *rest)
{
	if (rest)
		return wrong("an argument too many", rest);
	if (!simulation->config)
		return wrong("no file of limiters given", "-c FILE");
	if (!simulation->log && !simulation->load_count)
		return wrong("no readers given", "--load LOAD or --from-log LOG");
	if (simulation->log && simulation->load_count)
		return wrong("a log beside a load", simulation->log);
	if (simulation->log && !strcmp(simulation->log, "-") && !strcmp(simulation->config, "-"))
		return wrong("the limiters and the log cannot both be standard input", "-");
	if (simulation->load_count) {
		if (simulation->has_format || simulation->limiter)
			return wrong("an option of a log beside a load",
				     simulation->limiter ? "-l" : "-f");
		return 0;
	}
	if (!simulation->limiter == !simulation->format.has[LOG_LIMITER])
		return wrong(simulation->limiter ? "-l is for a format, see -f, without"
						 : "a format without it needs -l LIMITER",
			     "$limiter");
	return 0;
}

int simulate_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"from-log", required_argument, NULL, 'L'},
		{"help", no_argument, NULL, 'h'},
		{"load", required_argument, NULL, 'o'},
		{"within", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	static struct load loads[LOADS_MAX];
	struct simulation simulation = {.within_ns = NEVER_NS, .loads = loads};
	char error[ERROR_TEXT];
	int option, status;

	(void)log_format_parse(&simulation.format, LOG_FORMAT_DEFAULT, error);
	while ((option = getopt_long(argc, argv, "c:f:l:w:h", options, NULL)) >= 0) {
		if (option == 'h') {
			print_usage();
			return EXIT_SUCCESS;
		}
		status = take_option(&simulation, option);
		if (status)
			return status;
	}
	status = check_options(&simulation, argv[optind]);
	return status ? status : simulate(&simulation);
}
