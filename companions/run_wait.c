/* run_wait - what is said of the waits for tokens and a slot, see run.h. */
#include "companions/companion.h"
#include "companions/run.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONG_S = 5 }; /* from there on it is announced on a terminal */

/* With -v a wait for a slot is told when it is one. */
#define SHORT_WAIT_NS (NSEC_PER_SEC / 10)

/* Lines of `why` that are for openers of slots, too, have one of these. */
static const char *const MARKS[] = {" slots ", " slot ", " enforcement closed", " no partition",
				    "frozen by "};

/* Returns how many seconds a reader of the tokens would wait: infinity for ever, 0 if unknown. */
static double look_ahead(const struct job *job)
{
	char path[PATH_MAX], text[QUANTITY_TEXT];
	ssize_t got;
	int file;

	if ((size_t)snprintf(path, sizeof(path), "%s/eta/%s", job->limiter, job->tokens) >=
	    sizeof(path))
		return 0;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 0;
	got = read(file, text, sizeof(text) - 1);
	close(file);
	text[got > 0 ? got : 0] = '\0';
	return strtod(text, NULL);
}

static bool has_mark(const char *line)
{
	for (size_t i = 0; i < sizeof(MARKS) / sizeof(MARKS[0]); i++) {
		if (strstr(line, MARKS[i]))
			return true;
	}
	return false;
}

/* Says for what the opener of the slot waits, by the first line of `why` that is for openers. */
static void tell_slot(const struct job *job)
{
	char path[PATH_MAX], line[PATH_MAX + ERROR_TEXT];
	bool told = false;
	FILE *why;

	snprintf(path, sizeof(path), "%.*s/why", PATH_MAX - 8, job->home);
	why = fopen(path, "re");
	while (why && !told && fgets(line, sizeof(line), why)) {
		told = has_mark(line);
		if (told)
			warnx("waiting for a slot of %s: %.*s", job->limiter,
			      (int)strcspn(line, "\n"), line);
	}
	if (why)
		fclose(why);
}

static void *tell_slot_later(void *argument)
{
	const struct slot_wait *wait = argument;
	struct timespec time = {.tv_sec = LONG_S};

	if (wait->job->is_verbose)
		time = (struct timespec){.tv_nsec = (long)SHORT_WAIT_NS};
	while (nanosleep(&time, &time) && errno == EINTR)
		;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* stdio has locks */
	tell_slot(wait->job);
	return NULL;
}

void run_wait_slot_begin(struct slot_wait *wait, const struct job *job)
{
	*wait = (struct slot_wait){.job = job};
	if (job->is_verbose || isatty(STDERR_FILENO))
		wait->has_thread = !pthread_create(&wait->thread, NULL, tell_slot_later, wait);
}

void run_wait_slot_end(struct slot_wait *wait)
{
	int err = errno;

	if (wait->has_thread) {
		pthread_cancel(wait->thread);
		pthread_join(wait->thread, NULL);
	}
	errno = err;
}

/* Prints a time roughly: of hours the seconds say nothing. */
static void print_about(double s, char text[QUANTITY_TEXT])
{
	static const struct {
		double s;
		const char *name;
	} units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
	size_t i = 0;

	if (isinf(s)) {
		snprintf(text, QUANTITY_TEXT, "for ever unless its settings change");
		return;
	}
	while (units[i].s > 1 && s < 2 * units[i].s)
		i++;
	snprintf(text, QUANTITY_TEXT, "about %.*f %s", s < 9.95, s / units[i].s, units[i].name);
}

void run_wait_announce(const struct job *job)
{
	char about[QUANTITY_TEXT];
	double s;

	if (!job->is_verbose && !isatty(STDERR_FILENO))
		return;
	s = look_ahead(job);
	/* With a time that is too short it is refused at once. */
	if (!(s > 0) || (!job->is_verbose && s < LONG_S) ||
	    (job->within && s * NSEC_PER_SEC > (double)job->within_ns))
		return;
	print_about(s, about);
	warnx("waiting for %s %s of %s, %s", job->tokens,
	      job->count == 1 && !job->has_units ? "token" : "tokens", job->limiter, about);
}

void run_wait_tell(const struct job *job, uint64_t began_ns, uint64_t slot_ns)
{
	uint64_t now_ns = companion_now_ns();
	double tokens_s = (double)(slot_ns - began_ns) / NSEC_PER_SEC;

	if (now_ns - began_ns < job->tell_ns)
		return;
	if (job->with_slot)
		warnx("%s: waited %.1f s for tokens, %.1f s for the slot", job->limiter, tokens_s,
		      (double)(now_ns - slot_ns) / NSEC_PER_SEC);
	else
		warnx("%s: waited %.1f s for tokens", job->limiter, tokens_s);
}
