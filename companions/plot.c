/*
 * plot - records what limiters do for a while, and draws it through gnuplot(1).
 *
 * gnuplot is started first, so that it is known to be there, and told at the end; it draws to its
 * standard output, which is the file.
 */
#include "companions/child.h"
#include "companions/companion.h"
#include "companions/sample.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMITERS_MAX = 64, ROUNDS_MAX = 100000 };

#define INTERVAL_MIN_NS (NSEC_PER_SEC / 100)
#define TIME_MAX_NS	(24 * 3600 * NSEC_PER_SEC)

struct plot {
	char **limiters; /* borrowed: the arguments */
	size_t count;
	const char *file; /* NULL: standard output */
	uint64_t time_ns, interval_ns;
	bool data;	     /* as text, without gnuplot */
	struct sample *all;  /* owned: @count of each round */
	uint64_t *at_ns;     /* owned: of each round, from the first on */
	size_t rounds, room; /* there are, and could be */
};

/* The panels: one row each, and a column of the data. */
static const struct {
	const char *name;
	const char *title;
	enum stat_id id;
	bool counter;
} PANELS[] = {
	{"granted_per_second", "granted/s", STAT_GRANTED, true},
	{"waiting", "waiting", STAT_WAITING, false},
	{"effective_rate", "effective rate/s", STAT_RATE, false},
	{"share", "share of the limit", STAT_SHARE, false},
};

enum { PANEL_COUNT = sizeof(PANELS) / sizeof(PANELS[0]), PANEL_HEIGHT = 240, WIDTH = 960 };

/* Of an image: its terminal in gnuplot, by the end of the file's name. */
static const struct {
	const char *suffix;
	const char *terminal;
} IMAGES[] = {
	{".svg", "svg background 'white'"},
	{".png", "pngcairo"},
};

static const char *terminal_of(const char *file)
{
	size_t length = strlen(file);

	for (size_t i = 0; i < sizeof(IMAGES) / sizeof(IMAGES[0]); i++) {
		size_t suffix = strlen(IMAGES[i].suffix);

		if (length > suffix && !strcmp(file + length - suffix, IMAGES[i].suffix))
			return IMAGES[i].terminal;
	}
	return NULL;
}

/* Says why @path gives no sample: @err. */
static void complain(const char *path, int err)
{
	char file[PATH_MAX];

	snprintf(file, sizeof(file), "%.*s/metrics", PATH_MAX - 16, path);
	if (err != -ENOENT || access(path, F_OK))
		warnx("%s: %s", path, strerror(-err));
	else if (access(file, F_OK))
		warnx("%s: not a limiter: it has no file stat", path);
	else
		warnx("%s: not a limiter but the tree: name a limiter, which is a directory in it",
		      path);
}

/* Takes one sample of each limiter. 0, or -1 after a message. */
static int record_round(struct plot *plot, uint64_t began_ns)
{
	struct sample *round = plot->all + plot->rounds * plot->count;

	plot->at_ns[plot->rounds] = companion_now_ns() - began_ns;
	for (size_t i = 0; i < plot->count; i++) {
		int err = sample_read(plot->limiters[i], &round[i]);

		if (err) {
			complain(plot->limiters[i], err);
			return -1;
		}
		if (isnan(round[i].values[STAT_GRANTED])) {
			warnx("%s: not a limiter: its stat has no granted", plot->limiters[i]);
			return -1;
		}
	}
	plot->rounds++;
	return 0;
}

/* Takes samples for as long as was asked for. A wrong limiter is found at once, not later. */
static int record_samples(struct plot *plot)
{
	uint64_t began_ns = companion_now_ns(), due_ns = began_ns, now_ns;

	for (;;) {
		if (record_round(plot, began_ns))
			return -1;
		due_ns += plot->interval_ns;
		if (plot->rounds == plot->room || due_ns > began_ns + plot->time_ns)
			return 0;
		now_ns = companion_now_ns();
		while (now_ns < due_ns) {
			uint64_t left_ns = due_ns - now_ns;
			struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
						.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};

			nanosleep(&left, NULL);
			now_ns = companion_now_ns();
		}
	}
}

static void print_value(FILE *out, double value)
{
	if (isnan(value))
		fputs("\t-", out);
	else if (isinf(value))
		fputs("\tmax", out);
	else
		fprintf(out, "\t%.10g", value);
}

/*
 * Prints a line of limiter @i in round @round, from the second on: counts are those since the round
 * before.
 */
static void print_line(const struct plot *plot, FILE *out, size_t i, size_t round)
{
	const struct sample *now = &plot->all[round * plot->count + i], *before = now - plot->count;
	double seconds = (double)(plot->at_ns[round] - plot->at_ns[round - 1]) / NSEC_PER_SEC;

	fprintf(out, "%.3f", (double)plot->at_ns[round] / NSEC_PER_SEC);
	for (size_t p = 0; p < PANEL_COUNT; p++) {
		double value = now->values[PANELS[p].id];

		if (PANELS[p].counter) /* made anew in between, it counts from 0 */
			value = (value - fmin(before->values[PANELS[p].id], value)) / seconds;
		print_value(out, value);
	}
	fputc('\n', out);
}

static void print_data(const struct plot *plot, FILE *out)
{
	fputs("limiter\tseconds", out);
	for (size_t p = 0; p < PANEL_COUNT; p++)
		fprintf(out, "\t%s", PANELS[p].name);
	fputc('\n', out);
	for (size_t i = 0; i < plot->count; i++) {
		for (size_t round = 1; round < plot->rounds; round++) {
			fprintf(out, "%s\t", plot->limiters[i]);
			print_line(plot, out, i, round);
		}
	}
}

/*
 * Prints a name between quotes, for gnuplot; it cannot have a newline, which ends a line of the
 * script.
 */
static void print_quoted(FILE *out, const char *name)
{
	fputc('\'', out);
	for (; *name; name++)
		fputs(*name == '\'' ? "''" : (char[]){*name == '\n' ? ' ' : *name, '\0'}, out);
	fputc('\'', out);
}

static void print_script(const struct plot *plot, FILE *out)
{
	fprintf(out, "set terminal %s size %d,%d\n", terminal_of(plot->file), WIDTH,
		PANEL_HEIGHT * PANEL_COUNT);
	for (size_t i = 0; i < plot->count; i++) {
		fprintf(out, "$limiter%zu << END\n", i);
		for (size_t round = 1; round < plot->rounds; round++)
			print_line(plot, out, i, round);
		fputs("END\n", out);
	}
	fputs("set datafile missing '-'\nset datafile separator tab\n"
	      "set key outside right top noenhanced\nset grid\nset offsets 0,0,graph 0.05,0\n",
	      out);
	fprintf(out, "set multiplot layout %d,1\nset xrange [0:%.3f]\nset yrange [0:*]\n",
		PANEL_COUNT, (double)plot->at_ns[plot->rounds - 1] / NSEC_PER_SEC);
	for (size_t p = 0; p < PANEL_COUNT; p++) {
		/* An invisible point, so that there is one, also where all rates are max. */
		fprintf(out,
			"set ylabel '%s'\n%splot $limiter0 using (0):(1) with dots lc bgnd notitle",
			PANELS[p].title, p + 1 == PANEL_COUNT ? "set xlabel 'seconds'\n" : "");
		for (size_t i = 0; i < plot->count; i++) {
			/* A count is of the time before a sample. */
			fprintf(out, ", $limiter%zu using 1:($%zu) with %s lw 2 lt %zu title ", i,
				p + 2, PANELS[p].counter ? "fsteps" : "steps", i + 1);
			print_quoted(out, plot->limiters[i]);
		}
		fputc('\n', out);
	}
	fputs("unset multiplot\n", out);
}

/* Starts gnuplot, which draws into @file. 0 with the stream for its script; -1 after a message. */
static int start_gnuplot(int file, volatile pid_t *gnuplot, FILE **script)
{
	static char name[] = "gnuplot", *const command[] = {name, NULL};
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC)) {
		warn("no pipe");
		return -1;
	}
	err = child_start(command, ends[0], file, gnuplot);
	close(ends[0]);
	*script = err ? NULL : fdopen(ends[1], "w");
	if (*script)
		return 0;
	close(ends[1]);
	if (err == -ENOENT)
		warnx("gnuplot is not installed, which draws; --data writes the samples "
		      "without it");
	else
		warnx("gnuplot: %s", strerror(err ? -err : errno));
	return -1;
}

/* 0, or -1 after a message. */
static int draw_plot(struct plot *plot, int file)
{
	volatile pid_t gnuplot = 0;
	FILE *script;
	int err, status;

	if (start_gnuplot(file, &gnuplot, &script))
		return -1;
	signal(SIGPIPE, SIG_IGN); /* it may end before it has read everything */
	err = record_samples(plot);
	if (!err)
		print_script(plot, script);
	if (fclose(script) && !err) {
		warn("gnuplot");
		err = -1;
	}
	status = child_wait(&gnuplot);
	if (!err && (!WIFEXITED(status) || WEXITSTATUS(status))) {
		warnx("gnuplot failed");
		err = -1;
	}
	return err;
}

static int write_data(struct plot *plot, int file)
{
	FILE *out = fdopen(file, "w");
	int err = out ? record_samples(plot) : -1;

	if (!err)
		print_data(plot, out);
	if (!out || fclose(out)) {
		warn("%s", plot->file ? plot->file : "standard output");
		err = -1;
	}
	return err;
}

static int record_and_write(struct plot *plot)
{
	int file = STDOUT_FILENO, err;

	if (plot->file)
		file = open(plot->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (file < 0) {
		warn("%s", plot->file);
		return EXIT_FAILURE;
	}
	err = plot->data ? write_data(plot, file) : draw_plot(plot, file);
	if (err && plot->file)
		unlink(plot->file);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(struct plot *plot)
{
	int status = EXIT_FAILURE;

	plot->room = (size_t)(plot->time_ns / plot->interval_ns) + 1;
	plot->all = calloc(plot->room * plot->count, sizeof(*plot->all));
	plot->at_ns = calloc(plot->room, sizeof(*plot->at_ns));
	if (plot->all && plot->at_ns)
		status = record_and_write(plot);
	else
		warnx("no memory");
	free(plot->all);
	free(plot->at_ns);
	return status;
}

static void print_usage(void)
{
	printf("usage: ratefs plot LIMITER... -o FILE [options]\n"
	       "       ratefs plot LIMITER... --data [options]\n"
	       "\n"
	       "Records what limiters do, and draws granted tokens and effective rate a second, "
	       "readers\n"
	       "that wait, and this host's share, over time. LIMITER is a directory of a mounted "
	       "tree.\n"
	       "\n"
	       "options:\n"
	       "    -o FILE             where to; FILE.svg or FILE.png is drawn by gnuplot\n"
	       "    -t SECONDS          for how long (60), or a duration; up to 24h\n"
	       "    -d SECONDS          time between two samples (1), or a duration; from 10ms\n"
	       "    --data              the samples instead, as tab-separated values\n"
	       "    -h, --help          print this\n");
}

static int wrong(const char *what, const char *argument)
{
	warnx("%s: '%s'", what, argument);
	return companion_usage();
}

/* 0, or an exit status after a message. */
static int take_option(struct plot *plot, int option)
{
	switch (option) {
	case 'o':
		plot->file = optarg;
		return 0;
	case 't':
		if (companion_duration(optarg, INTERVAL_MIN_NS, TIME_MAX_NS, &plot->time_ns))
			return wrong("not a time to record (10ms to 24h)", optarg);
		return 0;
	case 'd':
		if (companion_duration(optarg, INTERVAL_MIN_NS, TIME_MAX_NS, &plot->interval_ns))
			return wrong("not a time between samples (10ms to 24h)", optarg);
		return 0;
	case 'D':
		plot->data = true;
		return 0;
	default:
		return companion_usage();
	}
}

/* 0, or an exit status after a message. */
static int check_samples(const struct plot *plot)
{
	if (!plot->count)
		return wrong("no limiter given", "LIMITER");
	if (plot->count > LIMITERS_MAX)
		return wrong("more than 64 limiters", plot->limiters[LIMITERS_MAX]);
	if (!plot->data && !plot->file)
		return wrong("no file given to draw to", "-o FILE");
	if (!plot->data && !terminal_of(plot->file))
		return wrong("not an image that can be drawn (.svg or .png)", plot->file);
	if (plot->interval_ns > plot->time_ns)
		return wrong("shorter than the time between samples", "-t");
	if (plot->time_ns / plot->interval_ns > ROUNDS_MAX)
		return wrong("more than 100000 samples", "-t");
	return 0;
}

int plot_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"data", no_argument, NULL, 'D'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct plot plot = {.time_ns = 60 * NSEC_PER_SEC, .interval_ns = NSEC_PER_SEC};
	int option, status;

	while ((option = getopt_long(argc, argv, "o:t:d:h", options, NULL)) >= 0) {
		if (option == 'h') {
			print_usage();
			return EXIT_SUCCESS;
		}
		status = take_option(&plot, option);
		if (status)
			return status;
	}
	plot.limiters = argv + optind;
	plot.count = (size_t)(argc - optind);
	status = check_samples(&plot);
	return status ? status : run(&plot);
}
