/* event - the last state changes, see event.h. */
#include "fs/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 8192 };

static char byte_at(const struct events *events, uint64_t position)
{
	return events->bytes[position % EVENTS_BYTES];
}

void events_add(struct events *events, const char *format, ...)
{
	char line[LINE_BYTES];
	struct timespec now;
	va_list arguments;
	size_t used;

	clock_gettime(CLOCK_REALTIME, &now);
	used = (size_t)snprintf(line, sizeof(line), "%lld.%03ld ", (long long)now.tv_sec,
				now.tv_nsec / 1000000);
	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - used - 1, format, arguments);
	va_end(arguments);
	used = strlen(line);
	line[used++] = '\n';
	for (size_t i = 0; i < used; i++)
		events->bytes[events->end++ % EVENTS_BYTES] = line[i];
	if (events->end - events->start <= EVENTS_BYTES)
		return;
	events->start = events->end - EVENTS_BYTES;
	while (byte_at(events, events->start++) != '\n')
		;
}

size_t events_read(const struct events *events, uint64_t *position, char *text, size_t size)
{
	size_t used = 0;

	if (*position < events->start) {
		char line[64];
		size_t length = (size_t)snprintf(line, sizeof(line), "lost %llu bytes\n",
						 (unsigned long long)(events->start - *position));

		*position = events->start;
		if (length <= size) {
			memcpy(text, line, length);
			used = length;
		}
	}
	while (used < size && *position < events->end)
		text[used++] = byte_at(events, (*position)++);
	return used;
}
