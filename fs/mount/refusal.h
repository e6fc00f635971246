/*
 * refusal - the last refusal of each user, for `last_error`: why, when, and at which file.
 */
#ifndef RATEFS_FS_MOUNT_REFUSAL_H
#define RATEFS_FS_MOUNT_REFUSAL_H

#include <stdint.h>
#include <time.h>

/* Users for whom it is remembered; for one more the oldest refusal is forgotten. */
enum { REFUSALS_MAX = 256 };

struct refusals {
	struct refusal {
		char *text;	    /* owned; NULL: the entry is free */
		char *file;	    /* owned; its path, "": none, NULL: no memory */
		struct timespec at; /* by the wall clock ... */
		uint64_t at_ns;	    /* ... and by clock_ns() */
		uint64_t number;
		uint32_t uid;
	} of[REFUSALS_MAX];
	uint64_t count; /* so far */
};

/*
 * Remembers @text and @file, copied, as of now; control characters in them become `?`. Without
 * memory it is not.
 */
void refusals_add(struct refusals *refusals, uint32_t uid, const char *file, const char *text);

/* Returns the last refusal of @uid, borrowed until the next. NULL: there was none. */
const struct refusal *refusals_last(const struct refusals *refusals, uint32_t uid);

void refusals_free(struct refusals *refusals);

#endif
