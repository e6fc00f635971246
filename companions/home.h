/*
 * home - the directory in which the files for the work of a limiter or key are.
 */
#ifndef RATEFS_COMPANIONS_HOME_H
#define RATEFS_COMPANIONS_HOME_H

#include <limits.h>

/*
 * Finds the directory with the files charge, feedback and slot of @limiter, a path to a limiter or
 * to a key: those of a key are in its limiter's directory, two above. 0, or -1 after a message.
 */
int home_find(const char *limiter, char home[PATH_MAX]);

#endif
