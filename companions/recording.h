/*
 * recording - samples of some limiters, taken at equal intervals.
 */
#ifndef RATEFS_COMPANIONS_RECORDING_H
#define RATEFS_COMPANIONS_RECORDING_H

#include "companions/sample.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* The values of each limiter and round; recording.c has a row for each. */
enum column {
	COLUMN_GRANTED,	  /* tokens a second */
	COLUMN_WAITING,	  /* readers */
	COLUMN_RATE,	  /* tokens a second */
	COLUMN_SHARE,	  /* 0 to 1 */
	COLUMN_THROTTLED, /* pieces of work a second */
	COLUMN_PAUSED,	  /* part of the time, 0 to 1 */
	COLUMN_DELAY,	  /* seconds */
	COLUMN_BELOW,	  /* readers, in the limiters below */
	COLUMN_COUNT
};

struct recording {
	char **limiters; /* borrowed: paths of their directories */
	size_t count;
	uint64_t time_ns, interval_ns; /* interval_ns is at least 1 */
	const char *hint;	       /* effect of Ctrl-C, in a line that tells; NULL: no line */
	/* Is told of each round as it is taken, the first included. Other than 0 ends all. */
	int (*each)(struct recording *recording);
	double began;		      /* seconds since 1970, of the first round; or not a number */
	char host[HOST_NAME_MAX + 1]; /* or "" */
	double *seconds;	      /* owned: of each round, from the first on */
	double *values;	     /* owned: of each column, limiter and round; none of the first */
	struct sample *last; /* owned: of each limiter, and the seconds of its pauses to come */
	double *owed;
	size_t rounds, room; /* there are, and could be */
};

/* Returns the name of a column of the data. */
const char *recording_name(enum column column);

/*
 * Takes samples for as long as @recording says, whose members down to @each are set; SIGINT and
 * SIGTERM end it before. 0, or -1 after a message; @rounds of both have their samples, two at least
 * after 0. A limiter that is none is found by the first round. recording_free() in either case.
 */
int recording_take(struct recording *recording);
void recording_free(struct recording *recording);

/*
 * Returns what limiter @i did in @round, from 1 on: rates are those since the round before. Not a
 * number: it is not told; infinity: `max`.
 */
double recording_value(const struct recording *recording, size_t i, size_t round,
		       enum column column);

#endif
