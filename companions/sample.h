/*
 * sample - what the files of a mounted tree say of its limiters at one moment.
 */
#ifndef RATEFS_COMPANIONS_SAMPLE_H
#define RATEFS_COMPANIONS_SAMPLE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* The counters that are looked at; the names are in the table in sample.c. */
enum stat_id {
	STAT_GRANTED,	/* tokens so far */
	STAT_THROTTLED, /* pieces of work so far */
	STAT_WAITING,	/* readers now */
	STAT_RATE,	/* tokens a second in force */
	STAT_SHARE,	/* of the limiter, 0 to 1 */
	STAT_MIN,	/* tokens so far, under its min */
	STAT_REFUSED,	/* reads so far */
	STAT_BELOW,	/* readers now, in the limiters below */
	STAT_PAUSED,	/* seconds so far, in pauses of backoff */
	STAT_DELAY,	/* seconds, of backoff now */
	STAT_LIMIT,	/* tokens a second that are set */
	STAT_SLOTS,	/* that may be open now */
	STAT_OPEN,	/* slots, now */
	STAT_COUNT
};

struct sample {
	char *path;		   /* of the limiter in the tree, or as given; owned by its maker */
	double values[STAT_COUNT]; /* infinity: `max`; not a number: unknown */
};

/* All limiters of a tree, sorted by path. */
struct page {
	struct sample *all; /* owned */
	size_t count;
	uint64_t at_ns; /* companion_now_ns() of the reading */
};

/* Reads the values in LIMITER/stat; the path stays as it is. 0 or -errno. */
int sample_read(const char *limiter, struct sample *sample);

/*
 * Reads the samples of all limiters from the file metrics of @mountpoint. 0 or -errno; then @page
 * is empty.
 */
int sample_page_read(const char *mountpoint, struct page *page);
void sample_page_free(struct page *page);

/*
 * Finds @file of the limiter that `metrics` calls @limiter, which has bytes of a name as \xNN where
 * they are no UTF-8. Returns @path, or NULL where that is too long.
 */
const char *sample_path(const char *mountpoint, const char *limiter, const char *file,
			char path[PATH_MAX]);

/* Finds the sample of @path. NULL: there is none. */
const struct sample *sample_page_find(const struct page *page, const char *path);

#endif
