/*
 * levels - the tokens left in the buckets, kept over a clean end of the daemon in `.levels`.
 *
 * It is used up before the first token is granted: after an end that was not clean buckets start
 * empty. A start that fails leaves it.
 */
#ifndef RATEFS_FS_LOCAL_LEVELS_H
#define RATEFS_FS_LOCAL_LEVELS_H

#include "core/limiter/change.h"

struct levels;

/* Reads the file of @directory. NULL: there is nothing of use. */
struct levels *levels_read(int directory);

/* Removes the file for good, if it is there: its tokens are not given out twice. 0 or -errno. */
int levels_use_up(int directory);
void levels_free(struct levels *levels);

/*
 * Finds the levels of the limiter at @path, if its limits are still those of @settings. Returns how
 * many limits that is, 0 if nothing is known.
 */
uint32_t levels_find(const struct levels *levels, const char *path, const struct settings *settings,
		     struct level found[LIMITS_MAX]);

/* Writes the file. 0 or -errno. */
int levels_write(int directory, struct engine *engine);

#endif
