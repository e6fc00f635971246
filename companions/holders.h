/*
 * holders - the partitions or pieces of a limiter, by host.
 */
#ifndef RATEFS_COMPANIONS_HOLDERS_H
#define RATEFS_COMPANIONS_HOLDERS_H

#include <stddef.h>

enum { HOLDERS_SIGNS = 32 };

struct holder {
	char *name;	  /* owned; empty: free parts; HOLDER_GONE: those of hosts that are gone */
	size_t count;	  /* of partitions or pieces */
	char *partitions; /* owned; `0-4 7 r2` */
	/* Of each 32nd of the leaves, or of each leaf: `#` all of it, `+` a part, `.` none. */
	char map[HOLDERS_SIGNS + 1];
	double rate;  /* tokens a second; infinity: `max`; not a number: it is not told */
	double share; /* 0 to 1: of the rate or, if that is no number above 0, of the leaves */
};

#define HOLDER_GONE "(host is gone)" /* no host is called so */

struct holders {
	struct holder *all; /* owned; by name, what is free first */
	size_t count;
};

/*
 * Reads the holders of the limiter @path below @mountpoint. 0 or -errno; then there is nothing to
 * free.
 */
int holders_read(const char *mountpoint, const char *path, struct holders *holders);
void holders_free(struct holders *holders);

#endif
