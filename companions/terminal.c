/* terminal - top on a terminal, see terminal.h. */
#include "companions/terminal.h"
#include "companions/companion.h"

#include "core/values/quantity.h"

#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

enum { REDRAW = 'L' & 0x1f, ESCAPE = 27, DELETE = 127, ESCAPE_WAIT_MS = 25, HOT = 1 };

/* The last is the library's own. */
static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

static sigset_t ours;
static volatile sig_atomic_t ended, stopped;
static int row; /* of the next line */

static void note_signal(int number)
{
	if (number == SIGTSTP)
		stopped = 1;
	else if (number != SIGCONT)
		ended = number;
}

static void put_line(const struct view_line *line)
{
	attr_t look = line->look == LOOK_PLAIN ? A_NORMAL : A_REVERSE;

	mvaddstr(row, 0, line->text);
	mvchgat(row, 0, -1, look, 0, NULL);
	if (line->hot_cells)
		mvchgat(row, (int)line->hot, (int)line->hot_cells, look | A_BOLD,
			COLOR_PAIRS > HOT ? HOT : 0, NULL);
	row++;
}

static void draw(struct view *view)
{
	struct winsize size;

	/* The environment may claim another size, and no stopped program is told of one. */
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col &&
	    is_term_resized(size.ws_row, size.ws_col))
		resizeterm(size.ws_row, size.ws_col);
	view->height = (unsigned int)LINES;
	view->width = COLS < VIEW_COLUMNS_MAX ? (unsigned int)COLS : VIEW_COLUMNS_MAX;
	row = 0;
	erase();
	view_draw(view);
	refresh();
}

static void stop_screen(void)
{
	stopped = 0;
	endwin();
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	signal(SIGTSTP, note_signal);
}

/* Returns the next key, ERR when there was none until @until_ns. */
static int read_key(uint64_t until_ns)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now_ns = companion_now_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};
	bool signalled = false;
	sigset_t before;
	int key;

	/* No signal may come between the look at what has come and the wait. */
	sigprocmask(SIG_BLOCK, &ours, &before);
	key = getch();
	if (key == ERR && !ended && !stopped) {
		signalled = ppoll(&input, 1, &left, &before) < 0 && errno == EINTR;
		key = getch();
		if (key == ERR && input.revents & (POLLHUP | POLLERR | POLLNVAL))
			ended = SIGHUP;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	signalled = signalled || stopped;
	if (stopped)
		stop_screen();
	/* The program may have been stopped: the screen is to be drawn. */
	return key == ERR && signalled ? KEY_RESIZE : key;
}

/* Acts on a key while a filter is typed. */
static void take_letter(struct view *view, int key)
{
	size_t length = strlen(view->filter);

	if (key == ESCAPE)
		view->filter[0] = '\0';
	if (key == ESCAPE || key == '\r' || key == '\n' || key == KEY_ENTER) {
		view->typing = false;
	} else if (key == KEY_BACKSPACE || key == DELETE || key == '\b') {
		while (length && (view->filter[--length] & 0xc0) == 0x80)
			;
		view->filter[length] = '\0';
	} else if (key >= ' ' && key <= UCHAR_MAX && length + 1 < sizeof(view->filter)) {
		view->filter[length] = (char)key;
		view->filter[length + 1] = '\0';
	}
	view_arrange(view);
}

/* Changes to @table, or back. */
static void turn_to(struct view *view, enum view_table table)
{
	view_move(view, 0); /* it is followed from now on */
	view->table = view->table == table ? VIEW_LIMITERS : table;
	view->line = 0;
}

static void sort_by(struct view *view, size_t column)
{
	view->reversed = column == view->sort && !view->reversed;
	view->sort = column;
	view_arrange(view);
}

/* Acts on a key. False: it is the end. */
static bool take_key(struct view *view, int key)
{
	bool rows = view->table == VIEW_LIMITERS || view->table == VIEW_HOLDERS;
	int column = view_column_of_key(key);
	long page = LINES / 2;

	if (key == KEY_RESIZE || key == REDRAW) {
		clearok(curscr, TRUE);
	} else if (view->typing) {
		take_letter(view, key);
	} else if (column >= 0 && rows) {
		sort_by(view, (size_t)column);
	} else if (key == '\t') {
		turn_to(view, VIEW_HOLDERS);
	} else if (key == '?') {
		turn_to(view, VIEW_KEYS);
	} else if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		if (view->count || view->table == VIEW_WAITERS)
			turn_to(view, VIEW_WAITERS);
	} else if (key == '/') {
		view->typing = true;
		if (!rows)
			turn_to(view, view->table);
	} else if (key == ESCAPE && view->table == VIEW_LIMITERS) {
		take_letter(view, ESCAPE);
	} else if (key == ESCAPE) {
		turn_to(view, view->table);
	} else if (view->table != VIEW_KEYS) {
		const struct {
			int key;
			long by;
		} moves[] = {{'k', -1},
			     {KEY_UP, -1},
			     {'j', 1},
			     {KEY_DOWN, 1},
			     {KEY_PPAGE, -page},
			     {KEY_NPAGE, page},
			     {KEY_HOME, -LONG_MAX},
			     {KEY_END, LONG_MAX}};

		for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
			if (moves[i].key == key)
				view_move(view, moves[i].by);
		}
	}
	return key != 'q' || view->typing;
}

/* Draws and takes keys until it is time for the next refresh; false: it is the end. */
static bool wait_for_refresh(struct view *view, uint64_t until_ns)
{
	int key;

	do {
		draw(view);
		key = read_key(until_ns);
		/* A key that is held down is not to draw each time. */
		for (int next = key; next != ERR; next = getch()) {
			if (!take_key(view, next))
				return false;
		}
	} while (key != ERR && !ended);
	return !ended;
}

/* Tells whether the terminal can do what tables need. */
static bool has_cursor(void)
{
	int known;
	bool has = setupterm(NULL, STDOUT_FILENO, &known) == OK && cursor_address;

	if (known == 1)
		del_curterm(cur_term);
	return has;
}

static void take_signals(void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler}, before;

	for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
		int number = SIGNALS[i];

		sigaddset(&ours, number);
		action.sa_flags = number == SIGTSTP || number == SIGCONT ? SA_RESTART : 0;
		/* They may be ignored, as by nohup(1). */
		if (number != SIGWINCH && !sigaction(number, NULL, &before) &&
		    before.sa_handler != SIG_IGN)
			sigaction(number, &action, NULL);
	}
}

static SCREEN *open_screen(void)
{
	const char *no_color = getenv("NO_COLOR");
	SCREEN *screen;

	/* The library's handler of SIGTSTP would be in a half drawn screen. */
	take_signals(note_signal);
	use_env(FALSE);
	use_tioctl(TRUE);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		take_signals(SIG_DFL);
		return NULL;
	}
	if (!getenv("ESCDELAY"))
		set_escdelay(ESCAPE_WAIT_MS);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	if (!(no_color && *no_color) && start_color() == OK)
		init_pair(HOT, COLOR_RED, use_default_colors() == OK ? -1 : COLOR_BLACK);
	return screen;
}

int terminal_watch(struct view *view, uint64_t interval_ns, uint64_t count)
{
	SCREEN *screen = has_cursor() ? open_screen() : NULL;
	uint64_t shown = 0;
	bool goes_on;
	int err;

	if (!screen)
		return -ENOTTY;
	view->put = put_line;
	do {
		goes_on = wait_for_refresh(view, view->now.at_ns + interval_ns) &&
			  (!count || ++shown < count);
		err = goes_on ? view_refresh(view) : 0;
	} while (goes_on && (!err || err == -EINTR));
	endwin();
	delscreen(screen);
	/* A user that asked for the end is to see that it came of it. */
	if (ended) {
		signal(ended, SIG_DFL);
		raise(ended);
	}
	return err;
}
