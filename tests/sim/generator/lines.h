/* lines - a trace that is being made up, line by line. */
#ifndef RATEFS_SIM_LINES_H
#define RATEFS_SIM_LINES_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as zeros. */
struct lines {
	char *text; /* owned; ends with a zero byte */
	size_t used, size;
};

/* Adds a line of what happens at @now_ns; NEVER_NS: the line has no time. */
__attribute__((format(printf, 3, 0))) void lines_add(struct lines *lines, uint64_t now_ns,
						     const char *format, va_list arguments);

#endif
