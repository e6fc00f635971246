/* recording - samples of some limiters, see recording.h. */
#include "companions/recording.h"
#include "companions/companion.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
	[COLUMN_PAUSED] = {"paused", STAT_PAUSED, false}, /* as spread_pauses() leaves it */
	[COLUMN_DELAY] = {"backoff_seconds", STAT_DELAY, false},
};

const char *recording_name(enum column column)
{
	return COLUMNS[column].name;
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
static int take_round(struct recording *recording, uint64_t began_ns)
{
	struct sample *round = recording->all + recording->rounds * recording->count;

	recording->at_ns[recording->rounds] = companion_now_ns() - began_ns;
	for (size_t i = 0; i < recording->count; i++) {
		int err = sample_read(recording->limiters[i], &round[i]);

		if (err) {
			complain(recording->limiters[i], err);
			return -1;
		}
		if (isnan(round[i].values[STAT_GRANTED])) {
			warnx("%s: not a limiter: its stat has no granted", recording->limiters[i]);
			return -1;
		}
	}
	recording->rounds++;
	return 0;
}

static void sleep_until(uint64_t due_ns)
{
	uint64_t now_ns;

	while ((now_ns = companion_now_ns()) < due_ns) {
		uint64_t left_ns = due_ns - now_ns;
		struct timespec left = {.tv_sec = (time_t)(left_ns / NSEC_PER_SEC),
					.tv_nsec = (long)(left_ns % NSEC_PER_SEC)};

		nanosleep(&left, NULL);
	}
}

/*
 * Turns the seconds so far of limiter @i into the part of each round. The counter has a pause as a
 * whole when it begins, and loses what is left of one that is cut short.
 */
static void spread_pauses(struct recording *recording, size_t i)
{
	double before = recording->all[i].values[STAT_PAUSED], owed = 0;

	for (size_t round = 1; round < recording->rounds; round++) {
		double *value = &recording->all[round * recording->count + i].values[STAT_PAUSED];
		double seconds = recording_seconds(recording, round) -
				 recording_seconds(recording, round - 1);
		double now = *value;

		owed = fmax(owed + now - before, 0); /* 0 as well where one is not told */
		before = now;
		if (isnan(now))
			continue;
		*value = fmin(owed / seconds, 1);
		owed -= *value * seconds;
	}
}

static int take_rounds(struct recording *recording)
{
	uint64_t began_ns = companion_now_ns(), due_ns = began_ns;

	while (!take_round(recording, began_ns)) {
		due_ns += recording->interval_ns;
		if (recording->rounds == recording->room || due_ns > began_ns + recording->time_ns)
			return 0;
		sleep_until(due_ns);
	}
	return -1;
}

int recording_take(struct recording *recording)
{
	recording->room = (size_t)(recording->time_ns / recording->interval_ns) + 1;
	recording->all = calloc(recording->room * recording->count, sizeof(*recording->all));
	recording->at_ns = calloc(recording->room, sizeof(*recording->at_ns));
	if (!recording->all || !recording->at_ns) {
		warnx("no memory");
		return -1;
	}
	if (take_rounds(recording))
		return -1;
	for (size_t i = 0; i < recording->count; i++)
		spread_pauses(recording, i);
	return 0;
}

void recording_free(struct recording *recording)
{
	free(recording->all);
	free(recording->at_ns);
}

double recording_seconds(const struct recording *recording, size_t round)
{
	return (double)recording->at_ns[round] / NSEC_PER_SEC;
}

double recording_value(const struct recording *recording, size_t i, size_t round,
		       enum column column)
{
	const struct sample *now = &recording->all[round * recording->count + i];
	const struct sample *before = now - recording->count;
	enum stat_id id = COLUMNS[column].id;
	double value = now->values[id];

	if (!COLUMNS[column].counter)
		return value;
	/* Made anew in between, it counts from 0. */
	value -= fmin(before->values[id], value);
	return value /
	       (recording_seconds(recording, round) - recording_seconds(recording, round - 1));
}
