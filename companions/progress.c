/* progress - how far a copy is, see progress.h. */
#include "companions/progress.h"
#include "companions/cells.h"
#include "companions/companion.h"

#include "core/values/quantity.h"
#include "fs/base/thread.h"

#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 320, SCREEN_BYTES = 4096 };

static void print_rate(double rate, char text[QUANTITY_TEXT])
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	size_t unit = 0;

	for (; rate >= 999.5 && unit < sizeof(units) / sizeof(units[0]) - 1; unit++)
		rate /= 1000;
	snprintf(text, QUANTITY_TEXT, "%.*f %sB/s", unit && rate < 9.95, rate, units[unit]);
}

/* Prints how far the copy was at @now; @is_last: its whole rate, and nothing is left. */
static void print_line(const struct progress *progress, const struct progress_mark *now,
		       bool is_last, char text[LINE_BYTES])
{
	size_t oldest = progress->marked < PROGRESS_MARKS ? 0 : progress->marked % PROGRESS_MARKS;
	const struct progress_mark *from = is_last ? &progress->began : &progress->marks[oldest];
	double passed_s = (double)(now->at_ns - progress->began.at_ns) / NSEC_PER_SEC;
	double since_s = (double)(now->at_ns - from->at_ns + 1) / NSEC_PER_SEC;
	double rate = (double)(now->bytes - from->bytes) / since_s;
	bool is_part = now->bytes <= progress->size && progress->size;
	char part[QUANTITY_TEXT] = "", left[QUANTITY_TEXT] = "", speed[QUANTITY_TEXT];
	char passed[CELL_BYTES], span[CELL_BYTES];

	if (is_part)
		snprintf(part, sizeof(part), " (%d %%)",
			 (int)(100 * ((double)now->bytes / (double)progress->size)));
	if (is_part && !is_last && now->bytes > from->bytes) {
		cells_print_span((double)(progress->size - now->bytes) / rate, span);
		snprintf(left, sizeof(left), ", %s left", span);
	}
	cells_print_span(passed_s, passed);
	print_rate(rate, speed);
	snprintf(text, LINE_BYTES, "%" PRIu64 " byte%s%s copied, %s, %s%s", now->bytes,
		 now->bytes == 1 ? "" : "s", part, passed, speed, left);
}

/* Writes a line, if there is room for it. */
static void show(const struct progress *progress, const struct progress_mark *now, bool is_last)
{
	struct pollfd output = {.fd = progress->out, .events = POLLOUT};
	char text[LINE_BYTES], line[SCREEN_BYTES] = "";
	size_t used;

	print_line(progress, now, is_last, text);
	if (progress->on_terminal)
		cells_renew(progress->out, is_last ? "" : text, line, sizeof(line));
	used = strlen(line);
	if (!progress->on_terminal || is_last)
		snprintf(line + used, sizeof(line) - used, "%s\n", text);
	if (poll(&output, 1, 0) > 0 && output.revents & POLLOUT)
		(void)!write(progress->out, line, strlen(line));
}

/* Waits for SIGUSR1, on a terminal until @due_ns at most. True: it is that of another process. */
static bool wait_for_signal(const struct progress *progress, uint64_t due_ns)
{
	uint64_t now_ns = companion_now_ns();
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};
	siginfo_t signal;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	return sigtimedwait(&signals, &signal, progress->on_terminal ? &left : NULL) == SIGUSR1 &&
	       signal.si_pid != getpid();
}

static void *show_lines(void *argument)
{
	struct progress *progress = argument;
	uint64_t due_ns = progress->began.at_ns + NSEC_PER_SEC;
	bool is_last = false;

	while (!is_last) {
		bool is_asked = wait_for_signal(progress, due_ns);
		struct progress_mark now = {.at_ns = companion_now_ns()};
		bool is_due = progress->on_terminal && now.at_ns >= due_ns;

		is_last = atomic_load(&progress->is_over);
		now.bytes = atomic_load(&progress->bytes);
		if (is_asked || (is_last ? progress->is_shown : is_due))
			show(progress, &now, is_last);
		if (is_due) {
			progress->marks[progress->marked++ % PROGRESS_MARKS] = now;
			due_ns = now.at_ns + NSEC_PER_SEC -
				 (now.at_ns - progress->began.at_ns) % NSEC_PER_SEC;
		}
	}
	return NULL;
}

/* Returns the bytes of standard input that are still to be read, 0 if it does not tell. */
static uint64_t size_of_input(void)
{
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat input;

	if (at < 0 || fstat(STDIN_FILENO, &input) || !S_ISREG(input.st_mode) || input.st_size < at)
		return 0;
	return (uint64_t)(input.st_size - at);
}

/*
 * Opens standard error anew where a write to it may wait. Returns that, or standard error: a file
 * would be written from its beginning, and a socket cannot be opened.
 */
static int open_output(void)
{
	struct stat status;
	int out = -1;

	if (!fstat(STDERR_FILENO, &status) && (S_ISFIFO(status.st_mode) || isatty(STDERR_FILENO)))
		out = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return out < 0 ? STDERR_FILENO : out;
}

void progress_expect(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

void progress_begin(struct progress *progress, bool is_shown)
{
	int err;

	/* Another file may have the number of one that is closed. */
	if (fcntl(STDERR_FILENO, F_GETFD) < 0)
		return;
	progress->is_shown = is_shown;
	progress->on_terminal = is_shown && isatty(STDERR_FILENO);
	progress->out = open_output();
	progress->size = size_of_input();
	progress->began.at_ns = companion_now_ns();
	progress->marks[progress->marked++] = progress->began;
	err = thread_start(&progress->thread, show_lines, progress);
	progress->has_thread = !err;
	if (err && is_shown)
		warnx("no progress can be shown: %s", strerror(-err));
}

void progress_end(struct progress *progress)
{
	if (!progress->has_thread)
		return;
	progress->has_thread = false;
	atomic_store(&progress->is_over, true);
	pthread_kill(progress->thread, SIGUSR1);
	pthread_join(progress->thread, NULL);
}
