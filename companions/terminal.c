/* terminal - the screen and the keys, see terminal.h. */
#include "companions/terminal.h"
#include "companions/companion.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#define TEXT(bytes) bytes, sizeof(bytes) - 1

enum { ROWS_DEFAULT = 24, COLUMNS_DEFAULT = 80, ESCAPE = 27, KEY_BYTES = 8, LETTER_BYTES = 16 };

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};

static struct termios before;
static sigset_t ours;
static volatile sig_atomic_t ended, stopped, resized;

static void note_signal(int number)
{
	if (number == SIGWINCH)
		resized = 1;
	else if (number == SIGTSTP)
		stopped = 1;
	else
		ended = number;
}

static void put_text(const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(STDOUT_FILENO, text, length);

		if (written < 0 && errno != EINTR)
			return;
		if (written > 0) {
			text += written;
			length -= (size_t)written;
		}
	}
}

static void enter_screen(void)
{
	struct termios now = before;

	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
	/* The other screen, no cursor. */
	put_text(TEXT("\033[?1049h\033[?25l\033[2J"));
}

static void leave_screen(void)
{
	put_text(TEXT("\033[?25h\033[?1049l"));
	tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

int terminal_open(void)
{
	struct sigaction action = {.sa_handler = note_signal};

	if (tcgetattr(STDIN_FILENO, &before))
		return -errno;
	sigemptyset(&ours);
	for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
		sigaddset(&ours, SIGNALS[i]);
		sigaction(SIGNALS[i], &action, NULL);
	}
	enter_screen();
	return 0;
}

void terminal_close(void)
{
	leave_screen();
	for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++)
		signal(SIGNALS[i], SIG_DFL);
}

int terminal_signal(void)
{
	return ended;
}

void terminal_size(unsigned int *rows, unsigned int *columns)
{
	struct winsize size;
	bool known = !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col;

	*rows = known ? size.ws_row : ROWS_DEFAULT;
	*columns = known ? size.ws_col : COLUMNS_DEFAULT;
}

static void stop_screen(void)
{
	stopped = 0;
	leave_screen();
	kill(getpid(), SIGSTOP);
	enter_screen();
}

/* Reads a key as a whole: the bytes of an arrow come in one piece. */
static int read_key(void)
{
	static const struct {
		const char *sent;
		int key;
	} keys[] = {
		{"\033[A", KEY_UP},   {"\033OA", KEY_UP},	{"\033[B", KEY_DOWN},
		{"\033OB", KEY_DOWN}, {"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN},
	};
	char sent[KEY_BYTES + 1] = "";
	ssize_t got = read(STDIN_FILENO, sent, 1);

	if (got <= 0)
		return got < 0 && errno == EINTR ? KEY_NONE : KEY_END;
	if (*sent != ESCAPE)
		return (unsigned char)*sent;
	for (size_t used = 1; used < KEY_BYTES; used++) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

		if (poll(&input, 1, 0) <= 0 || read(STDIN_FILENO, sent + used, 1) <= 0)
			break;
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
			if (!strcmp(sent, keys[i].sent))
				return (int)keys[i].key;
		}
	}
	return KEY_NONE;
}

/* Waits until @until_ns for input or a signal, as ppoll(2). */
static int wait_for_input(uint64_t until_ns, const sigset_t *mask)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t now_ns = companion_now_ns();
	uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};

	return ended || stopped || resized ? 0 : ppoll(&input, 1, &left, mask);
}

int terminal_key(uint64_t until_ns)
{
	sigset_t mask;
	int ready, error;

	/* No signal may come between the look at what has come and the wait. */
	sigprocmask(SIG_BLOCK, &ours, &mask);
	ready = wait_for_input(until_ns, &mask);
	error = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (ended || (ready < 0 && error != EINTR))
		return KEY_END;
	if (stopped)
		stop_screen();
	else if (!resized)
		return ready > 0 ? read_key() : KEY_NONE;
	resized = 0;
	return KEY_RESIZE;
}

void terminal_show(const char *text, size_t length)
{
	put_text(TEXT("\033[H"));
	put_text(text, length);
	put_text(TEXT("\033[J"));
}

void terminal_cut(const char *text, unsigned int columns, char *to, size_t size)
{
	mbstate_t state = {0};
	size_t used = 0;

	while (*text) {
		wchar_t letter;
		size_t length = mbrtowc(&letter, text, strlen(text), &state);
		int cells = length > LETTER_BYTES ? -1 : wcwidth(letter);

		if (length > LETTER_BYTES) {
			state = (mbstate_t){0};
			length = 1;
		}
		if ((unsigned int)(cells < 0 ? 1 : cells) > columns || used + length >= size)
			break;
		columns -= (unsigned int)(cells < 0 ? 1 : cells);
		if (cells < 0)
			to[used++] = '?';
		else
			used += (size_t)(stpncpy(to + used, text, length) - (to + used));
		text += length;
	}
	to[used] = '\0';
}
