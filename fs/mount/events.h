/*
 * events - the last state changes, for readers of `events`.
 *
 * A ring of bytes with positions that only grow. The place and the limiter of each line in it are
 * known. A reader keeps its own position, and gets the lines about limiters that it may use; a
 * reader that falls behind by more than the ring holds is told so and goes on at the oldest whole
 * line.
 */
#ifndef RATEFS_FS_MOUNT_EVENTS_H
#define RATEFS_FS_MOUNT_EVENTS_H

#include "fs/mount/viewer.h"

#include <stddef.h>
#include <stdint.h>

enum { EVENTS_BYTES = 65536, EVENTS_LINES = 4096 };

/*
 * The first line of `events`, at offset 0, and all that its size tells of: a program that looks at
 * a file before it follows it finds this line, and its end. tail(1) cannot follow, since it reads
 * no more of a file than its size has grown, and no size is right for all programs that have it
 * open.
 */
#define EVENTS_HEAD "# seconds path change, from here on; cat follows them, tail -f does not\n"
enum { EVENTS_HEAD_BYTES = sizeof(EVENTS_HEAD) - 1 };

struct event_line {
	uint64_t start; /* its first byte */
	struct subject subject;
};

struct events {
	uint64_t end; /* position behind the last byte */
	uint64_t first_line,
		line_end; /* numbers of the oldest whole line, and behind the last one */
	struct event_line lines[EVENTS_LINES];
	char bytes[EVENTS_BYTES];
};

/* Appends `SECONDS.mmm TEXT`, about @subject, as a line; the time is the wall clock's. */
void events_add(struct events *events, struct subject subject, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Moves *position on to the next line for @viewer, or to the end. Tells whether there is one. */
bool events_wait_for(const struct events *events, const struct viewer *viewer, uint64_t *position);

/*
 * Copies what follows *position for @viewer, at most @size bytes and to the end of a line, and
 * moves *position. 0: nothing yet. A shell that has read more than a line seeks back, and would
 * lose the rest.
 */
size_t events_read(const struct events *events, const struct viewer *viewer, uint64_t *position,
		   char *text, size_t size);

#endif
