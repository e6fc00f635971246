/*
 * ini - a file of limiters: a section per limiter path, its settings as `name=value` lines.
 *
 *	# services
 *	[orders]
 *	rate=500/s
 *	[orders/batch]
 *	rate=50/s
 *
 * Blank lines and lines that start with # or ; are skipped.
 */
#ifndef RATEFS_CORE_INI_H
#define RATEFS_CORE_INI_H

#include "tree.h"

struct ini {
	const char *at;	   /* what is left of the text, borrowed */
	unsigned int line; /* lines read so far */
};

struct ini_section {
	char path[PATH_TEXT]; /* without slashes at its ends; each name can be a limiter's */
	const char *body;     /* borrowed, not terminated: lines for settings_parse() */
	size_t length;
	unsigned int line; /* of the header */
	bool empty;	   /* no setting is given */
};

/* The next section: 1. 0 at the end. -EINVAL with the line and a reason. */
int ini_next(struct ini *ini, struct ini_section *section, char error[ERROR_TEXT]);

#endif
