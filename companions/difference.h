/*
 * difference - what differs between the settings of a limiter and those that it is to have.
 */
#ifndef RATEFS_COMPANIONS_DIFFERENCE_H
#define RATEFS_COMPANIONS_DIFFERENCE_H

#include "core/values/settings.h"

/*
 * Makes the settings of the limiter at @directory, which are @now, what is @wanted: all at once, or
 * with more overrides than one write has, in several of them. 0 or -errno.
 */
int difference_write(int directory, const struct settings *now, const struct settings *wanted);

/* Calls @tell with a line for each value that differs, of a new limiter without what it was. */
void difference_tell(const struct settings *now, const struct settings *wanted, bool is_new,
		     void (*tell)(void *argument, const char *line), void *argument);

#endif
