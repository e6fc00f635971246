/*
 * holders - the partitions of a limiter, by host.
 */
#ifndef RATEFS_COMPANIONS_HOLDERS_H
#define RATEFS_COMPANIONS_HOLDERS_H

#include <stddef.h>

struct holder {
	char *name; /* owned; empty: none */
	size_t count;
	char *partitions; /* owned; `0-4 7 r2` */
};

struct holders {
	struct holder *all; /* owned; by name, the free partitions first */
	size_t count;
};

/*
 * Reads the holders of the limiter @path below @mountpoint. 0 or -errno; then there is nothing to
 * free.
 */
int holders_read(const char *mountpoint, const char *path, struct holders *holders);
void holders_free(struct holders *holders);

#endif
