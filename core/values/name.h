/*
 * name - what a limiter may be called, how long its path can be, and the bits of its access.
 */
#ifndef RATEFS_CORE_NAME_H
#define RATEFS_CORE_NAME_H

#include "core/values/text.h"

enum {
	NAME_BYTES_MAX = 255,
	DEPTH_MAX = 16,		     /* limiters from the top to the deepest */
	PATH_TEXT = DEPTH_MAX * 256, /* room for a limiter's path */
};

/* The access bits that a limiter can have, and that by which its children inherit its group. */
enum { ACCESS_SETGID = 02000, ACCESS_BITS = 03777 };

/*
 * 0, or -EINVAL with a reason when @name cannot be a limiter's: empty, too long, with a '/' or a
 * leading '.'.
 */
int name_check(const char *name, char error[ERROR_TEXT]);

#endif
