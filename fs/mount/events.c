/* events - the last state changes, see events.h. */
#include "fs/mount/events.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 8192 };

static char byte_at(const struct events *events, uint64_t position)
{
	return events->bytes[position % EVENTS_BYTES];
}

static const struct event_line *line_at(const struct events *events, uint64_t number)
{
	return &events->lines[number % EVENTS_LINES];
}

/* Returns the position of the oldest whole line. */
static uint64_t start_of(const struct events *events)
{
	return events->first_line < events->line_end ? line_at(events, events->first_line)->start
						     : events->end;
}

/* Forgets the oldest lines until there is room for one more of @length bytes. */
static void make_room(struct events *events, size_t length)
{
	while (events->first_line < events->line_end &&
	       (events->end + length - start_of(events) > EVENTS_BYTES ||
		events->line_end - events->first_line >= EVENTS_LINES))
		events->first_line++;
}

void events_add(struct events *events, struct subject subject, const char *format, ...)
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
	make_room(events, used);
	events->lines[events->line_end++ % EVENTS_LINES] = (struct event_line){events->end,
									       subject};
	for (size_t i = 0; i < used; i++)
		events->bytes[events->end++ % EVENTS_BYTES] = line[i];
}

/* Finds the number of the line with @position, not before the oldest; line_end at the end. */
static uint64_t find_line(const struct events *events, uint64_t position)
{
	uint64_t low = events->first_line, high = events->line_end;

	if (position >= events->end)
		return high;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (line_at(events, middle)->start <= position)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Moves *position, if it is at the start of a line, on to the first that @viewer may read. */
static void skip_lines(const struct events *events, const struct viewer *viewer, uint64_t *position)
{
	uint64_t number;

	if (!viewer || *position >= events->end)
		return;
	number = find_line(events, *position);
	if (line_at(events, number)->start != *position)
		return; /* its beginning was read */
	while (number < events->line_end &&
	       !viewer_hears(viewer, &line_at(events, number)->subject))
		number++;
	*position = number < events->line_end ? line_at(events, number)->start : events->end;
}

bool events_wait_for(const struct events *events, const struct viewer *viewer, uint64_t *position)
{
	if (*position >= start_of(events))
		skip_lines(events, viewer, position);
	return *position < events->end;
}

size_t events_read(const struct events *events, const struct viewer *viewer, uint64_t *position,
		   char *text, size_t size)
{
	uint64_t start = start_of(events);
	size_t used = 0;

	if (*position < start) {
		char line[64];
		size_t length = (size_t)snprintf(line, sizeof(line), "lost %llu bytes\n",
						 (unsigned long long)(start - *position));

		*position = start;
		if (length <= size) {
			memcpy(text, line, length);
			return length;
		}
	}
	skip_lines(events, viewer, position);
	while (used < size && *position < events->end) {
		text[used] = byte_at(events, (*position)++);
		if (text[used++] == '\n')
			break;
	}
	return used;
}
