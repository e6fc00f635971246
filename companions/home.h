/*
 * home - the directory in which the files for the work of a limiter or key are.
 */
#ifndef RATEFS_COMPANIONS_HOME_H
#define RATEFS_COMPANIONS_HOME_H

#include "core/values/settings.h"

#include <limits.h>

/*
 * Finds the directory with the files charge, feedback and slot of @limiter, a path to a limiter or
 * to a key: those of a key are in its limiter's directory, two above. 0, or -1 after a message.
 */
int home_find(const char *limiter, char home[PATH_MAX]);

/*
 * Opens file @name of @home to write at its end. A link is refused: in a home of another user it
 * may lead to any file of ours. Returns a descriptor that the caller closes, or -errno.
 */
int home_open(const char *home, const char *name);

/* Reads `rate` in @home into @settings, which has no limits if it cannot be read. */
void home_rate(const char *home, struct settings *settings);

/*
 * Returns for how many ns a service may ask for a pause, of @home and the limiters above it: the
 * longest retry-max of those that have a back-off; a day if none has, or can be read.
 */
uint64_t home_retry_max(const char *home);

/*
 * Finds why something with @limiter was refused a moment ago with @error, an errno: the sentence in
 * last_error of its tree, if that is one of which the daemon says more, or strerror().
 */
void home_explain(const char *limiter, int error, char reason[ERROR_TEXT]);

#endif
