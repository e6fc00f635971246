/*
 * events - the last state changes, for readers of `events`.
 *
 * Lines have positions that only grow, by their bytes. The last ones that each user has caused are
 * kept, by a lane for each (core/base/lanes.h), so no user's changes push out those of another. A
 * reader keeps its own position, and gets the lines about limiters that it may use; a reader that
 * falls behind by more than is kept is told so where it happened, and goes on with the next line
 * that is left.
 */
#ifndef RATEFS_FS_MOUNT_EVENTS_H
#define RATEFS_FS_MOUNT_EVENTS_H

#include "core/base/lanes.h"
#include "fs/mount/viewer.h"

#include <stddef.h>
#include <stdint.h>

enum { EVENTS_BYTES = 65536 }; /* of lines kept for each user */

/*
 * The first line of `events`, at offset 0, and all that its size tells of: a program that looks at
 * a file before it follows it finds this line, and its end. tail(1) cannot follow, since it reads
 * no more of a file than its size has grown, and no size is right for all programs that have it
 * open.
 */
#define EVENTS_HEAD "# seconds path change, from here on; cat follows them, tail -f does not\n"
enum { EVENTS_HEAD_BYTES = sizeof(EVENTS_HEAD) - 1 };

struct events {
	uint64_t end;	   /* position behind the last line */
	struct list lines; /* event_line, in their order */
	struct lanes by_user;
	uint32_t bytes[LANE_COUNT]; /* of the lines in each lane */
};

/*
 * Appends `SECONDS.mmm TEXT`, about @subject, as a line that @uid has caused; the time is the wall
 * clock's. Without memory the line counts as lost.
 */
void events_add(struct events *events, uint32_t uid, struct subject subject, const char *format,
		...) __attribute__((format(printf, 4, 5)));

/* Frees all lines. */
void events_finish(struct events *events);

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
