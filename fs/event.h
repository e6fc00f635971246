/*
 * event - the last state changes, for those who read `events`.
 *
 * A ring of bytes with positions that only grow. A reader keeps its own position; one that falls
 * behind by more than the ring holds is told so and goes on at the oldest whole line.
 */
#ifndef RATEFS_FS_EVENT_H
#define RATEFS_FS_EVENT_H

#include <stddef.h>
#include <stdint.h>

enum { EVENTS_BYTES = 65536 };

struct events {
	uint64_t end;	/* position behind the last byte */
	uint64_t start; /* position of the oldest whole line */
	char bytes[EVENTS_BYTES];
};

/* Appends `SECONDS.mmm TEXT` as a line; the time is the wall clock's. */
void events_add(struct events *events, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Copies what follows *position, at most @size bytes, and moves *position. 0: nothing yet. */
size_t events_read(const struct events *events, uint64_t *position, char *text, size_t size);

#endif
