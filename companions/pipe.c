/*
 * pipe - copies standard input to standard output at the bytes a second of a limiter.
 *
 * - A token is a byte. Tokens are taken once there is input, and room for output, and for no more
 *   than the input that is there. Tokens whose bytes could not be written are given back.
 * - How many a take asks for, and for how many it waits: see pace.h.
 */
#include "companions/companion.h"
#include "companions/home.h"
#include "companions/pace.h"
#include "companions/progress.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE "1s" /* PACE_PATIENCE_NS */

struct copy {
	const char *limiter; /* as given */
	char home[PATH_MAX];
	struct pace pace;
	struct progress progress;
};

static const int ENDINGS[] = {SIGHUP, SIGINT, SIGTERM};

static volatile sig_atomic_t ended_by; /* a signal */
static bool pipes_may_break;	       /* SIGPIPE was ignored before: then it is an error */

/* It may come between a look at ended_by and a call that waits: an alarm interrupts that one. */
static void note_end(int number)
{
	if (number != SIGALRM)
		ended_by = number;
	alarm(1);
}

/* Has signals that end a program interrupt it, so that it can give back its tokens. */
static void handle_signals(void)
{
	struct sigaction action = {.sa_handler = note_end}, before;
	sigset_t alarms;

	sigemptyset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
	for (size_t i = 0; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
		if (!sigaction(ENDINGS[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(ENDINGS[i], &action, NULL);
	}
	pipes_may_break = signal(SIGPIPE, SIG_IGN) == SIG_IGN;
}

/* Ends as a program that does not handle the signal @number does. */
static int end_by(int number)
{
	signal(number, SIG_DFL);
	raise(number);
	return EXIT_FAILURE;
}

/* Takes 1 to @most tokens, from the file @name. Returns them, or -errno. */
static ssize_t take_once(const struct copy *copy, const char *name)
{
	char path[PATH_MAX], text[QUANTITY_TEXT];
	uint64_t tokens;
	ssize_t got;
	int file, error;

	snprintf(path, sizeof(path), "%.*s/take/%s", PATH_MAX - QUANTITY_TEXT - 8, copy->limiter,
		 name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	got = read(file, text, sizeof(text) - 1);
	error = errno;
	close(file);
	if (got < 0)
		return -error;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (tokens_parse(text, &tokens) || !tokens || tokens > PACE_PIECE)
		return -EPROTO;
	return (ssize_t)tokens;
}

/* Tells why a take that would wait for any time has got no tokens but @err, an errno. */
static void tell_refusal(const struct copy *copy, int err)
{
	char reason[ERROR_TEXT];

	if (err == EBUSY)
		home_explain(copy->limiter, EBUSY, reason);
	else
		snprintf(reason, sizeof(reason), "%s", strerror(err));
	warnx("%s: no tokens: %s", copy->limiter, reason);
}

/* Takes tokens for 1 to @left bytes. Returns them; 0: a signal ends it; -1 after a message. */
static ssize_t take_tokens(struct copy *copy, size_t left)
{
	char name[QUANTITY_TEXT];
	struct pace_take take;
	ssize_t got = -EINTR;

	while (!ended_by) {
		take = pace_next(&copy->pace, left);
		snprintf(name, sizeof(name), "%llu-%llu%s", (unsigned long long)take.least,
			 (unsigned long long)take.most, take.least > 1 ? ",within=" PATIENCE : "");
		got = take_once(copy, name);
		if (got == -EBUSY && take.least > 1)
			pace_refused(&copy->pace, &take);
		else if (got != -EINTR)
			break;
	}
	if (got > 0)
		pace_granted(&copy->pace, &take, (uint64_t)got, companion_now_ns());
	if (got > 0 || ended_by)
		return got > 0 ? got : 0;
	progress_end(&copy->progress);
	if (got == -ENODEV || got == -ENOENT)
		warnx("%s: the limiter is gone", copy->limiter);
	else
		tell_refusal(copy, (int)-got);
	return -1;
}

/* Gives back @tokens whose bytes were not written. */
static void give_back(struct copy *copy, size_t tokens)
{
	char text[QUANTITY_TEXT];
	int length = snprintf(text, sizeof(text), "-%zu\n", tokens);
	int file = home_open(copy->home, "charge");
	int err = file < 0 ? file : 0;

	if (!err && write(file, text, (size_t)length) < 0)
		err = -errno;
	if (err) {
		progress_end(&copy->progress);
		warnx("%s/charge: %zu tokens are not given back: %s", copy->home, tokens,
		      strerror(-err));
	}
	if (file >= 0)
		close(file);
}

/* Waits until output has room. False: its reader is gone, or a signal ends the wait. */
static bool wait_for_room(void)
{
	struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};

	while (!ended_by) {
		/* Files that cannot be polled have room. */
		if (poll(&output, 1, -1) >= 0 || errno != EINTR)
			return !(output.revents & POLLERR);
	}
	return false;
}

/* Writes @size bytes, whose tokens were taken. 0 or -errno: then the rest was given back. */
static int write_bytes(struct copy *copy, const char *bytes, size_t size)
{
	int err = 0;

	while (size && !err) {
		ssize_t written = write(STDOUT_FILENO, bytes, size);

		if (written >= 0) {
			progress_add(&copy->progress, (size_t)written);
			bytes += written;
			size -= (size_t)written;
		} else if (errno == EAGAIN) {
			err = wait_for_room() ? 0 : ended_by ? -EINTR : -EPIPE;
		} else if (errno != EINTR) {
			err = -errno;
		}
		if (!err && size && ended_by)
			err = -EINTR;
	}
	if (err)
		give_back(copy, size);
	return err;
}

/* Copies @size bytes. 0, -errno of output, or 1 after a message. */
static int copy_piece(struct copy *copy, const char *bytes, size_t size)
{
	int err = 0;

	while (size && !err) {
		ssize_t tokens;

		if (!wait_for_room())
			return ended_by ? -EINTR : -EPIPE;
		tokens = take_tokens(copy, size);
		if (tokens <= 0)
			return tokens ? 1 : -EINTR;
		err = write_bytes(copy, bytes, (size_t)tokens);
		bytes += tokens;
		size -= (size_t)tokens;
	}
	return err;
}

static int copy_all(struct copy *copy)
{
	static char piece[PACE_PIECE];
	ssize_t got = 1;
	int err = 0;

	/* The more there is at once, the less time goes into asking. Files are no pipes. */
	(void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, (int)PACE_PIECE);
	while (got && !err && !ended_by) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

		got = read(STDIN_FILENO, piece, sizeof(piece));
		if (got > 0) {
			pace_input(&copy->pace, companion_now_ns());
			err = copy_piece(copy, piece, (size_t)got);
		} else if (got && errno == EAGAIN) {
			(void)poll(&input, 1, -1);
		} else if (got && errno != EINTR) {
			err = 1;
			progress_end(&copy->progress);
			warn("standard input");
		}
	}
	progress_end(&copy->progress);
	if (!got)
		return EXIT_SUCCESS;
	if (ended_by)
		return end_by(ended_by);
	if (err == -EPIPE && !pipes_may_break)
		return end_by(SIGPIPE);
	if (err < 0)
		warnx("standard output: %s", strerror(-err));
	return EXIT_FAILURE;
}

static void print_usage(void)
{
	printf("usage: ratefs pipe [options] LIMITER\n"
	       "\n"
	       "Copies standard input to standard output. A byte is a token of LIMITER, a\n"
	       "directory of a mounted tree. On SIGUSR1 it tells how far it is.\n"
	       "\n"
	       "options:\n"
	       "    --progress          tells so on a terminal each second, and at the end\n"
	       "    -h, --help          print this\n");
}

/* Finds the home of the limiter of @copy. 0, or an exit status after a message. */
static int find_limiter(struct copy *copy)
{
	char take[PATH_MAX];

	if (strlen(copy->limiter) > PATH_MAX - 2 * (size_t)QUANTITY_TEXT) {
		warnx("the path is too long: '%s'", copy->limiter);
		return companion_usage();
	}
	if (home_find(copy->limiter, copy->home))
		return EXIT_FAILURE;
	snprintf(take, sizeof(take), "%.*s/take", PATH_MAX - 8, copy->limiter);
	if (access(take, F_OK)) {
		warnx("not a limiter or a key, there is no take: '%s'", copy->limiter);
		return companion_usage();
	}
	return 0;
}

int pipe_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"progress", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct copy copy = {.pace = PACE_START};
	bool is_shown = false;
	int option, status;

	progress_expect();
	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (option) {
		case 'p':
			is_shown = true;
			break;
		case 'h':
			print_usage();
			return EXIT_SUCCESS;
		default:
			return companion_usage();
		}
	}
	if (argc - optind != 1 || !*argv[optind]) {
		if (argc - optind > 1)
			warnx("an argument too many: '%s'", argv[optind + 1]);
		else
			warnx("no limiter given: 'LIMITER'");
		return companion_usage();
	}
	copy.limiter = argv[optind];
	status = find_limiter(&copy);
	if (status)
		return status;
	handle_signals();
	progress_begin(&copy.progress, is_shown);
	return copy_all(&copy);
}
