/*
 * top - the limiters of a tree and what they do, refreshed each second; or once, as text.
 */
#include "companions/cells.h"
#include "companions/companion.h"
#include "companions/mounted.h"
#include "companions/terminal.h"
#include "companions/view.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 1000000000 };

#define INTERVAL_MIN_NS (NSEC_PER_SEC / 10)
#define INTERVAL_MAX_NS (3600 * NSEC_PER_SEC)

struct top {
	struct view view;
	uint64_t interval_ns;
	uint64_t count; /* refreshes, 0: no end */
};

static int fail(const struct view *view, int err)
{
	char shown[PATH_MAX];

	cells_slice(view->mountpoint, 0, UINT_MAX, shown, sizeof(shown));
	errno = -err;
	if (err == -ENOENT || err == -ENOTDIR)
		warnx("%s: not a mounted tree: it has no file metrics", shown);
	else
		warn("%s", shown);
	return EXIT_FAILURE;
}

static void print_line(const struct view_line *line)
{
	puts(line->text);
}

/* Returns the columns of a text: as COLUMNS says, if it does. */
static unsigned int text_columns(void)
{
	const char *text = getenv("COLUMNS");
	uint64_t columns;

	if (!text || count_parse(text, &columns) || !columns)
		return VIEW_COLUMNS_DEFAULT;
	return columns < VIEW_COLUMNS_MAX ? (unsigned int)columns : VIEW_COLUMNS_MAX;
}

static int run_plain(struct top *top)
{
	struct timespec interval = {.tv_sec = (time_t)(top->interval_ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(top->interval_ns % NSEC_PER_SEC)};

	int err;

	top->view.plain = true;
	top->view.put = print_line;
	top->view.width = text_columns();
	for (uint64_t i = 0; i < (top->count ? top->count : 1); i++) {
		nanosleep(&interval, NULL);
		err = view_refresh(&top->view);
		if (err)
			return fail(&top->view, err);
		if (i)
			putchar('\n');
		view_draw(&top->view);
		if (fflush(stdout))
			return fail(&top->view, -errno);
	}
	return EXIT_SUCCESS;
}

static int run(struct top *top, bool plain)
{
	int err = view_refresh(&top->view);

	if (!err && !plain)
		err = terminal_watch(&top->view, top->interval_ns, top->count);
	if (err == -ENOSYS) {
		warnx("built without ncurses (-Dtop=disabled): there is only 'ratefs top -b'");
		return EXIT_FAILURE;
	}
	if (err == -ENOTTY || (!err && plain))
		return run_plain(top);
	return err ? fail(&top->view, err) : EXIT_SUCCESS;
}

static void print_usage(void)
{
	printf("usage: ratefs top [options] [MOUNTPOINT]\n"
	       "\n"
	       "Shows what the limiters of a mounted tree do; without MOUNTPOINT, of the only "
	       "one.\n"
	       "\n"
	       "options:\n"
	       "    -b                  print a table and exit, as if there was no terminal\n"
	       "    -n N                N tables, then exit\n"
	       "    -d DURATION         time between two tables (1s), 100ms to 1h\n"
	       "    -s COLUMN           sort by granted (default), rate, use, waiting, share,\n"
	       "                        below, throttled, refused, min or limiter\n"
	       "    -p                  who holds which share\n"
	       "    -h, --help          print this\n"
	       "\n"
	       "keys:\n"
	       "%s",
	       VIEW_KEYS_TEXT);
}

static int wrong(const char *what, const char *argument)
{
	warnx("%s: '%s'", what, argument);
	return companion_usage();
}

/* 0, or an exit status after a message. */
static int take_option(struct top *top, int option, bool *plain)
{
	int column;

	switch (option) {
	case 'b':
		*plain = true;
		return 0;
	case 'n':
		if (count_parse(optarg, &top->count) || !top->count || top->count > COUNT_MAX)
			return wrong("not a number of tables (1 to 1000000000)", optarg);
		return 0;
	case 'd':
		if (companion_duration(optarg, INTERVAL_MIN_NS, INTERVAL_MAX_NS, &top->interval_ns))
			return wrong("not a time between tables (100ms to 1h)", optarg);
		return 0;
	case 's':
		column = view_column_of_name(optarg);
		if (column < 0)
			return wrong("not a column", optarg);
		top->view.sort = (size_t)column;
		return 0;
	case 'p':
		top->view.table = VIEW_HOLDERS;
		return 0;
	default:
		return companion_usage();
	}
}

int top_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct top top = {.interval_ns = NSEC_PER_SEC};
	bool plain = !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO);
	char only[PATH_MAX];
	int option, status;

	while ((option = getopt_long(argc, argv, "bn:d:s:ph", options, NULL)) >= 0) {
		if (option == 'h') {
			print_usage();
			return EXIT_SUCCESS;
		}
		status = take_option(&top, option, &plain);
		if (status)
			return status;
	}
	if (optind + 1 < argc)
		return wrong("an argument too many", argv[optind + 1]);
	setlocale(LC_CTYPE, "");
	top.view.mountpoint = optind < argc ? argv[optind] : mounted_find(only);
	if (!top.view.mountpoint)
		return EXIT_FAILURE;
	status = run(&top, plain);
	view_free(&top.view);
	return status;
}
