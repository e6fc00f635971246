/*
 * plot - records what limiters do for a while, and draws it through gnuplot(1).
 *
 * gnuplot is started first, so that it is known to be there, and told at the end; it draws to its
 * standard output, which becomes the file.
 */
#include "companions/child.h"
#include "companions/companion.h"
#include "companions/draw.h"
#include "companions/mounted.h"
#include "companions/output_file.h"
#include "companions/recorded.h"
#include "companions/recording.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMITERS_MAX = 64, ROUNDS_MAX = 100000 };

#define INTERVAL_MIN_NS (NSEC_PER_SEC / 100)
#define TIME_MAX_NS	(24 * 3600 * NSEC_PER_SEC)

struct plot {
	struct recording recording;
	char *limiters[LIMITERS_MAX]; /* borrowed: the arguments; owned: all that are found */
	const char *file;	      /* NULL: standard output */
	const char *from;	      /* a text of @data, in place of limiters; or NULL */
	bool data;		      /* as text, without gnuplot */
	bool stacked;		      /* one limiter with its children */
	bool cut;		      /* a limiter went away before the end */
	FILE *out;		      /* owned: of the data; NULL: not open yet */
	int error;		      /* of it, an errno */
};

/*
 * Writes the round that was taken last; opens the file before, when the first one tells that there
 * are such limiters. 0, or -1 with plot->error.
 */
static int write_round(struct recording *recording)
{
	struct plot *plot = (struct plot *)recording; /* its first member */

	if (recording->rounds > 1) {
		recorded_print_round(recording, recording->rounds - 1, plot->out);
	} else {
		plot->out = plot->file ? fopen(plot->file, "we") : stdout;
		if (plot->out)
			recorded_print_names(plot->out);
	}
	if (plot->out && !fflush(plot->out))
		return 0;
	plot->error = errno;
	return -1;
}

/*
 * Starts gnuplot, which draws into @file. The signals that end the recording do nothing to it: it
 * ends with its script. 0 with the stream for that; -1 after a message.
 */
static int start_gnuplot(int file, volatile pid_t *gnuplot, FILE **script)
{
	static char name[] = "gnuplot", *const command[] = {name, NULL};
	sigset_t signals, before;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC)) {
		warn("no pipe");
		return -1;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	err = child_start(command, ends[0], file, -1, gnuplot);
	sigprocmask(SIG_SETMASK, &before, NULL);
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

/* Records, or reads a recording. 0: there is something to draw; -1 after a message. */
static int take_samples(struct plot *plot)
{
	if (plot->from)
		return recorded_read(&plot->recording, plot->from, LIMITERS_MAX, ROUNDS_MAX);
	plot->cut = recording_take(&plot->recording);
	return plot->recording.rounds > 1 ? 0 : -1;
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
	err = take_samples(plot);
	if (!err)
		draw_script(&plot->recording, plot->file, plot->stacked, script);
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

/* Returns an exit status. */
static int write_data(struct plot *plot)
{
	int err = recording_take(&plot->recording);

	if (plot->out && fclose(plot->out) && !plot->error)
		plot->error = errno;
	if (!plot->error)
		return err ? EXIT_FAILURE : EXIT_SUCCESS;
	errno = plot->error;
	warn("%s", plot->file ? plot->file : "standard output");
	return EXIT_FAILURE;
}

/* Returns an exit status. */
static int draw(struct plot *plot)
{
	struct output_file output;
	int err = output_file_begin(&output, plot->file);

	if (err)
		return EXIT_FAILURE;
	err = draw_plot(plot, output.file);
	if (output_file_end(&output, !err))
		err = -1;
	return err || plot->cut ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Appends the children of the one limiter to it. 0, or -1 after a message. */
static int add_children(struct plot *plot)
{
	char *const parent = plot->limiters[0];
	int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mounted_names names = {.count = 0};
	int err = directory < 0 ? -errno : mounted_list(directory, &names);

	if (directory >= 0)
		close(directory);
	if (names.count >= LIMITERS_MAX) {
		warnx("%s: more than %d children: name those to be drawn", parent,
		      LIMITERS_MAX - 1);
		mounted_names_free(&names);
		return -1;
	}
	for (size_t i = 0; i < names.count && !err; i++) {
		char **path = &plot->limiters[1 + i];

		if (asprintf(path, "%s/%s", parent, names.all[i]) < 0)
			err = -ENOMEM;
		else
			plot->recording.count++;
	}
	mounted_names_free(&names);
	if (err)
		warnx("%s: %s", parent, strerror(-err));
	return err ? -1 : 0;
}

static int run(struct plot *plot)
{
	size_t named = plot->recording.count;
	int status = EXIT_FAILURE;

	plot->recording.limiters = plot->limiters;
	plot->recording.each = plot->data ? write_round : NULL;
	if (isatty(STDERR_FILENO) && (plot->file || !plot->data))
		plot->recording.hint = plot->data ? "Ctrl-C ends it" : "Ctrl-C draws now";
	if (plot->from || !plot->stacked || !add_children(plot))
		status = plot->data ? write_data(plot) : draw(plot);
	recording_free(&plot->recording);
	for (size_t i = named; i < plot->recording.count; i++)
		free(plot->limiters[i]);
	return status;
}

static void print_usage(void)
{
	printf("usage: ratefs plot LIMITER... [-o FILE] [options]\n"
	       "       ratefs plot LIMITER --children [-o FILE] [options]\n"
	       "       ratefs plot LIMITER... --data [options]\n"
	       "       ratefs plot --from FILE [-o FILE] [--children]\n"
	       "\n"
	       "Records what limiters do, and draws it over time: granted tokens, readers that "
	       "wait,\n"
	       "the rate in force, throttled work, delay and pauses of back-off, and this host's "
	       "share.\n"
	       "LIMITER is a directory of a mounted tree.\n"
	       "\n"
	       "options:\n"
	       "    -o FILE             where to; FILE.svg or FILE.png is drawn by gnuplot;\n"
	       "                        without it a terminal has it in signs\n"
	       "    -t SECONDS          for how long (60), or a duration; up to 24h\n"
	       "    -d SECONDS          time between two samples (1), or a duration; from 10ms\n"
	       "    --children          with the children of the limiter, stacked\n"
	       "    --data              the samples instead, as tab-separated values\n"
	       "    --from FILE         draws what --data wrote to FILE; - is standard input\n"
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
	struct recording *recording = &plot->recording;

	switch (option) {
	case 'o':
		plot->file = optarg;
		return 0;
	case 't':
		if (companion_duration(optarg, INTERVAL_MIN_NS, TIME_MAX_NS, &recording->time_ns))
			return wrong("not a time to record (10ms to 24h)", optarg);
		return 0;
	case 'd':
		if (companion_duration(optarg, INTERVAL_MIN_NS, TIME_MAX_NS,
				       &recording->interval_ns))
			return wrong("not a time between samples (10ms to 24h)", optarg);
		return 0;
	case 'C':
		plot->stacked = true;
		return 0;
	case 'D':
		plot->data = true;
		return 0;
	case 'F':
		plot->from = optarg;
		return 0;
	default:
		return companion_usage();
	}
}

/* Takes the limiters. 0, or an exit status after a message. */
static int take_limiters(struct plot *plot, char *limiters[], size_t count)
{
	if (plot->from && count)
		return wrong("a limiter beside --from", limiters[0]);
	if (plot->from)
		return 0;
	if (!count)
		return wrong("no limiter given", "LIMITER");
	if (count > LIMITERS_MAX)
		return wrong("more than 64 limiters", limiters[LIMITERS_MAX]);
	if (plot->stacked && count > 1)
		return wrong("the children of one limiter only are stacked", limiters[1]);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(limiters[i]);

		/* As a legend has it. */
		while (length > 1 && limiters[i][length - 1] == '/')
			limiters[i][--length] = '\0';
		plot->limiters[i] = limiters[i];
	}
	plot->recording.count = count;
	return 0;
}

/* 0, or an exit status after a message. */
static int check_samples(const struct plot *plot)
{
	const struct recording *recording = &plot->recording;

	if (plot->data && plot->from)
		return wrong("reads what --data writes", "--from");
	if (!plot->data && !plot->file && !isatty(STDOUT_FILENO))
		return wrong("no file given to draw to", "-o FILE");
	if (!plot->data && plot->file && !draw_can(plot->file))
		return wrong("not an image that can be drawn (.svg or .png)", plot->file);
	if (recording->interval_ns > recording->time_ns)
		return wrong("shorter than the time between samples", "-t");
	if (recording->time_ns / recording->interval_ns > ROUNDS_MAX)
		return wrong("more than 100000 samples", "-t");
	return 0;
}

int plot_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"children", no_argument, NULL, 'C'},
		{"data", no_argument, NULL, 'D'},
		{"from", required_argument, NULL, 'F'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct plot plot = {
		.recording = {.time_ns = 60 * NSEC_PER_SEC, .interval_ns = NSEC_PER_SEC}};
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
	status = take_limiters(&plot, argv + optind, (size_t)(argc - optind));
	if (!status)
		status = check_samples(&plot);
	return status ? status : run(&plot);
}
