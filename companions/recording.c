/* recording - samples of some limiters, see recording.h. */
#include "companions/recording.h"
#include "companions/cells.h"
#include "companions/companion.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 4096 }; /* of a terminal */

static volatile sig_atomic_t ended; /* by a signal */

static const struct {
	const char *name;
	enum stat_id id;
	bool counter;
} COLUMNS[COLUMN_COUNT] = {
	[COLUMN_GRANTED] = {"granted_per_second", STAT_GRANTED, true},
	[COLUMN_WAITING] = {"waiting", STAT_WAITING, false},
	[COLUMN_RATE] = {"effective_rate", STAT_RATE, false},
	[COLUMN_SHARE] = {"share", STAT_SHARE, false},
	[COLUMN_THROTTLED] = {"throttled_per_second", STAT_THROTTLED, true},
	[COLUMN_PAUSED] = {"paused", STAT_PAUSED, false}, /* as spread_pause() has it */
	[COLUMN_DELAY] = {"backoff_seconds", STAT_DELAY, false},
	[COLUMN_BELOW] = {"waiting_below", STAT_BELOW, false},
};

const char *recording_name(enum column column)
{
	return COLUMNS[column].name;
}

static void take_signal(int number)
{
	ended = number;
}

/*
 * Lets signals end the recording, but for those that are ignored. A second SIGINT has its default
 * action; timeout(1) sends each signal twice.
 */
static void take_signals(sigset_t *ours)
{
	struct sigaction action = {.sa_handler = take_signal}, before;
	static const struct {
		int number;
		unsigned int flags;
	} SIGNALS[] = {{SIGINT, SA_RESTART | SA_RESETHAND}, {SIGTERM, SA_RESTART}};

	sigemptyset(ours);
	for (size_t i = 0; i < sizeof(SIGNALS) / sizeof(SIGNALS[0]); i++) {
		action.sa_flags = (int)SIGNALS[i].flags;
		sigaddset(ours, SIGNALS[i].number);
		if (!sigaction(SIGNALS[i].number, NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(SIGNALS[i].number, &action, NULL);
	}
}

/* Shows for how long it has been recorded, in place of what was shown before. */
static void show_progress(const struct recording *recording, uint64_t time_ns)
{
	const char *path = recording->limiters[0], *slash = strrchr(path, '/');
	char called[NAME_MAX + 1], text[2 * NAME_MAX], line[LINE_BYTES];

	if (recording->count == 1)
		cells_slice(slash ? slash + 1 : path, 0, NAME_MAX, called, sizeof(called));
	else
		snprintf(called, sizeof(called), "%zu limiters", recording->count);
	snprintf(text, sizeof(text), "recording %s: %" PRIu64 " of %g s, %s", called,
		 time_ns / NSEC_PER_SEC, (double)recording->time_ns / NSEC_PER_SEC,
		 recording->hint);
	cells_renew(STDERR_FILENO, text, line, sizeof(line));
	fputs(line, stderr);
}

static void hide_progress(const struct recording *recording)
{
	char line[LINE_BYTES];

	cells_renew(STDERR_FILENO, "", line, sizeof(line));
	if (recording->hint)
		fputs(line, stderr);
}

/* Says why @path gives no sample in the round that is taken: @err. */
static void complain(const struct recording *recording, const char *path, int err)
{
	char file[PATH_MAX];

	hide_progress(recording);
	snprintf(file, sizeof(file), "%.*s/metrics", PATH_MAX - 16, path);
	if (recording->rounds)
		warnx("%s: %s; it was recorded for %.1f s", path, strerror(-err),
		      recording->seconds[recording->rounds - 1]);
	else if (err != -EISDIR && (err != -ENOENT || access(path, F_OK)))
		warnx("%s: %s", path, strerror(-err));
	else if (access(file, F_OK) || err == -EISDIR) /* of keys, one that is called so */
		warnx("%s: not a limiter: it has no file stat", path);
	else
		warnx("%s: not a limiter but the tree: name a limiter, which is a directory in it",
		      path);
}

/*
 * Returns which part of @seconds passed in pauses, of the counter of their seconds @before and
 * @now. It has a pause as a whole when it begins, and loses what is left of one that is cut short;
 * @owed is what is left.
 */
static double spread_pause(double before, double now, double seconds, double *owed)
{
	double part;

	*owed = fmax(*owed + now - before, 0); /* 0 as well where one is not told */
	if (isnan(now))
		return now;
	part = fmin(*owed / seconds, 1);
	*owed -= part * seconds;
	return part;
}

/* Puts what limiter @i did in the @seconds up to sample @now into the round that is taken. */
static void put_values(struct recording *recording, size_t i, const struct sample *now,
		       double seconds)
{
	double *to = recording->values +
		     ((recording->rounds - 1) * recording->count + i) * COLUMN_COUNT;
	const struct sample *before = &recording->last[i];

	for (enum column c = 0; c < COLUMN_COUNT; c++) {
		to[c] = now->values[COLUMNS[c].id];
		/* Made anew in between, it counts from 0. */
		if (COLUMNS[c].counter)
			to[c] = (to[c] - fmin(before->values[COLUMNS[c].id], to[c])) / seconds;
	}
	to[COLUMN_PAUSED] = spread_pause(before->values[STAT_PAUSED], to[COLUMN_PAUSED], seconds,
					 &recording->owed[i]);
}

/* Takes one sample of each limiter. 0, or -1 after a message. */
static int take_round(struct recording *recording, uint64_t began_ns)
{
	size_t round = recording->rounds;

	recording->seconds[round] = (double)(companion_now_ns() - began_ns) / NSEC_PER_SEC;
	for (size_t i = 0; i < recording->count; i++) {
		struct sample now;
		int err = sample_read(recording->limiters[i], &now);

		if (err) {
			complain(recording, recording->limiters[i], err);
			return -1;
		}
		if (isnan(now.values[STAT_GRANTED])) {
			hide_progress(recording);
			warnx("%s: not a limiter: its stat has no granted", recording->limiters[i]);
			return -1;
		}
		if (round)
			put_values(recording, i, &now,
				   recording->seconds[round] - recording->seconds[round - 1]);
		recording->last[i] = now;
	}
	recording->rounds++;
	return 0;
}

/* Waits until @due_ns, or until a signal ends the recording. */
static void wait_until(uint64_t due_ns, const sigset_t *ours)
{
	uint64_t now_ns = companion_now_ns();
	uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
				.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};
	sigset_t mask;

	/* No signal may come between the look at what has come and the wait. */
	sigprocmask(SIG_BLOCK, ours, &mask);
	if (!ended)
		ppoll(NULL, 0, &left, &mask);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* Takes rounds until the time is over, a signal comes, or one fails: -1 after a message. */
static int take_rounds(struct recording *recording)
{
	uint64_t began_ns = companion_now_ns(), due_ns = began_ns, now_ns;
	uint64_t tell_ns = recording->hint ? began_ns : UINT64_MAX;
	sigset_t ours;

	take_signals(&ours);
	while (!ended) {
		now_ns = companion_now_ns();
		if (now_ns >= due_ns) {
			if (take_round(recording, began_ns))
				return -1;
			if (recording->each && recording->each(recording)) {
				hide_progress(recording);
				return -1;
			}
			due_ns += recording->interval_ns;
			if (recording->rounds == recording->room)
				break;
		}
		if (now_ns >= tell_ns) {
			show_progress(recording, now_ns - began_ns);
			tell_ns = now_ns + NSEC_PER_SEC - (now_ns - began_ns) % NSEC_PER_SEC;
		}
		wait_until(tell_ns < due_ns ? tell_ns : due_ns, &ours);
	}
	hide_progress(recording);
	if (recording->rounds > 1)
		return 0;
	warnx("interrupted before the second sample");
	return -1;
}

static double time_of_day(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / NSEC_PER_SEC;
}

int recording_take(struct recording *recording)
{
	size_t room = (size_t)(recording->time_ns / recording->interval_ns) + 1;

	recording->room = room;
	recording->seconds = calloc(room, sizeof(*recording->seconds));
	recording->values = calloc(room * recording->count, COLUMN_COUNT * sizeof(double));
	recording->last = calloc(recording->count, sizeof(*recording->last));
	recording->owed = calloc(recording->count, sizeof(*recording->owed));
	if (!recording->seconds || !recording->values || !recording->last || !recording->owed) {
		warnx("no memory");
		return -1;
	}
	setlocale(LC_CTYPE, ""); /* of the names that are shown */
	recording->began = time_of_day();
	if (gethostname(recording->host, sizeof(recording->host)))
		*recording->host = '\0';
	return take_rounds(recording);
}

void recording_free(struct recording *recording)
{
	free(recording->seconds);
	free(recording->values);
	free(recording->last);
	free(recording->owed);
}

double recording_value(const struct recording *recording, size_t i, size_t round,
		       enum column column)
{
	return recording->values[((round - 1) * recording->count + i) * COLUMN_COUNT + column];
}
