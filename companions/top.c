/*
 * top - the limiters of a tree and what they do, refreshed each second; or once, as text.
 */
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
#include <signal.h>
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

/* Takes the current counts; the former ones become those before. 0, or -1 with errno. */
static int refresh_screen(struct view *view)
{
	struct page now;
	int err = sample_page_read(view->mountpoint, &now);

	errno = -err;
	if (err)
		return -1;
	sample_page_free(&view->before);
	view->before = view->now;
	view->now = now;
	return 0;
}

static int fail(const struct view *view)
{
	if (errno == ENOENT || errno == ENOTDIR)
		warnx("%s: not a mounted tree: it has no file metrics", view->mountpoint);
	else
		warn("%s", view->mountpoint);
	return EXIT_FAILURE;
}

static int run_plain(struct top *top)
{
	struct timespec interval = {.tv_sec = (time_t)(top->interval_ns / NSEC_PER_SEC),
				    .tv_nsec = (long)(top->interval_ns % NSEC_PER_SEC)};

	top->view.plain = true;
	if (refresh_screen(&top->view))
		return fail(&top->view);
	for (uint64_t i = 0; i < (top->count ? top->count : 1); i++) {
		nanosleep(&interval, NULL);
		if (refresh_screen(&top->view))
			return fail(&top->view);
		if (i)
			putchar('\n');
		view_print(&top->view, stdout);
		if (fflush(stdout))
			return fail(&top->view);
	}
	return EXIT_SUCCESS;
}

static void draw_screen(struct view *view)
{
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	terminal_size(&view->rows, &view->columns);
	view_print(view, out);
	if (!fclose(out))
		terminal_show(text, length ? length - 1 : 0); /* no newline: nothing scrolls */
	free(text);
}

static void scroll_view(struct view *view, long by)
{
	long top = (long)view->top + by, last = (long)view->now.count - 1;

	top = top > last ? last : top;
	view->top = (unsigned int)(top < 0 ? 0 : top);
}

/* Acts on a key. False: it is the end. */
static bool take_key(struct view *view, int key)
{
	long page = view->rows / 2;
	int column = view_column_of_key(key);

	if (column >= 0) {
		view->reversed = (size_t)column == view->sort && !view->reversed;
		view->sort = (size_t)column;
		return true;
	}
	switch (key) {
	case 'q':
	case KEY_END:
		return false;
	case '\t':
		view->holders = !view->holders;
		view->top = 0;
		break;
	case 'k':
	case KEY_UP:
		scroll_view(view, -1);
		break;
	case 'j':
	case KEY_DOWN:
		scroll_view(view, 1);
		break;
	case KEY_PAGE_UP:
		scroll_view(view, -page);
		break;
	case KEY_PAGE_DOWN:
		scroll_view(view, page);
		break;
	default:
		break;
	}
	return true;
}

/* Draws and takes keys until it is time for the next refresh; false: it is the end. */
static bool wait_for_refresh(struct top *top, uint64_t until_ns)
{
	int key;

	do {
		draw_screen(&top->view);
		key = terminal_key(until_ns);
		if (key && !take_key(&top->view, key))
			return false;
	} while (key);
	return true;
}

static int run_on_terminal(struct top *top)
{
	uint64_t shown = 0;
	bool goes_on;
	int error;

	if (refresh_screen(&top->view))
		return fail(&top->view);
	if (terminal_open()) {
		warn("no terminal");
		return EXIT_FAILURE;
	}
	do {
		goes_on = wait_for_refresh(top, top->view.now.at_ns + top->interval_ns) &&
			  (!top->count || ++shown < top->count);
		error = goes_on && refresh_screen(&top->view) ? errno : 0;
	} while (goes_on && (!error || error == EINTR));
	terminal_close();
	/* A user that asked for the end is to see that it came of it. */
	if (terminal_signal())
		raise(terminal_signal());
	errno = error;
	return error ? fail(&top->view) : EXIT_SUCCESS;
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
	       "    -s COLUMN           sort by granted (default), rate, waiting, throttled,\n"
	       "                        share, min, refused, below or limiter\n"
	       "    -p                  who holds which share\n"
	       "    -h, --help          print this\n"
	       "\n"
	       "keys:\n"
	       "    q                   quit\n"
	       "    TAB                 the other table: who holds which share\n"
	       "    g r w t s m f b n   sort by a column, and again to turn the order round\n"
	       "    arrows, j, k        scroll\n");
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
		top->view.holders = true;
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
	status = plain ? run_plain(&top) : run_on_terminal(&top);
	view_free(&top.view);
	return status;
}
