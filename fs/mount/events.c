/* events - the last state changes, see events.h. */
#include "fs/mount/events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 8192 };

struct event_line {
	struct list_link link, by_user;
	uint64_t start; /* position of its first byte */
	uint32_t uid;
	uint32_t length;
	struct subject subject;
	char text[];
};

static void drop(struct events *events, struct event_line *line)
{
	list_remove(&events->lines, &line->link);
	lanes_remove(&events->by_user, line->uid, &line->by_user);
	events->bytes[lanes_number(line->uid)] -= line->length;
	free(line);
}

/* Appends a line, and drops the oldest ones of its user that are too much. */
static void keep(struct events *events, const struct event_line *like, const char *text)
{
	struct event_line *line = malloc(sizeof(*line) + like->length);
	uint32_t *bytes = &events->bytes[lanes_number(like->uid)];

	if (!line)
		return;
	*line = *like;
	memcpy(line->text, text, line->length);
	list_append(&events->lines, &line->link);
	lanes_append(&events->by_user, line->uid, &line->by_user);
	*bytes += line->length;
	while (*bytes > EVENTS_BYTES)
		drop(events, list_entry(lanes_first(&events->by_user, line->uid), struct event_line,
					by_user));
}

void events_add(struct events *events, uint32_t uid, struct subject subject, const char *format,
		...)
{
	char text[LINE_BYTES];
	struct timespec now;
	va_list arguments;
	size_t used;

	clock_gettime(CLOCK_REALTIME, &now);
	used = (size_t)snprintf(text, sizeof(text), "%lld.%03ld ", (long long)now.tv_sec,
				now.tv_nsec / 1000000);
	va_start(arguments, format);
	vsnprintf(text + used, sizeof(text) - used - 1, format, arguments);
	va_end(arguments);
	used = strlen(text);
	text[used++] = '\n';
	keep(events,
	     &(struct event_line){.start = events->end,
				  .uid = uid,
				  .length = (uint32_t)used,
				  .subject = subject},
	     text);
	events->end += used;
}

void events_finish(struct events *events)
{
	struct event_line *line;

	while ((line = list_first(&events->lines, struct event_line, link)))
		drop(events, line);
}

/* Returns the first line that ends behind @position, or NULL. Most readers are near the end. */
static const struct event_line *line_from(const struct events *events, uint64_t position)
{
	const struct event_line *line = NULL;

	for (struct list_link *link = events->lines.last; link; link = link->previous) {
		const struct event_line *before = container_of(link, struct event_line, link);

		if (before->start + before->length <= position)
			break;
		line = before;
	}
	return line;
}

/*
 * Moves *position over whole lines that @viewer may not read. Returns the first line that ends
 * behind it, or NULL; a line that begins behind it as well comes after what was lost.
 */
static const struct event_line *skip_lines(const struct events *events, const struct viewer *viewer,
					   uint64_t *position)
{
	const struct event_line *line = line_from(events, *position);

	while (line && line->start == *position && !viewer_hears(viewer, &line->subject)) {
		*position += line->length;
		line = list_next(line, link);
	}
	return line;
}

bool events_wait_for(const struct events *events, const struct viewer *viewer, uint64_t *position)
{
	(void)skip_lines(events, viewer, position);
	return *position < events->end;
}

size_t events_read(const struct events *events, const struct viewer *viewer, uint64_t *position,
		   char *text, size_t size)
{
	const struct event_line *line;
	size_t offset, length;

	while ((line = skip_lines(events, viewer, position)) ? *position < line->start
							     : *position < events->end) {
		uint64_t start = line ? line->start : events->end;
		char lost[64];

		length = (size_t)snprintf(lost, sizeof(lost), "lost %llu bytes\n",
					  (unsigned long long)(start - *position));
		*position = start;
		/* It is told whole, or not at all. */
		if (length <= size) {
			memcpy(text, lost, length);
			return length;
		}
	}
	if (!line)
		return 0;
	offset = *position - line->start;
	length = line->length - offset < size ? line->length - offset : size;
	memcpy(text, line->text + offset, length);
	*position += length;
	return length;
}
