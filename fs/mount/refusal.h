/*
 * refusal - why something was refused last, for `last_error`: each user reads its own.
 */
#ifndef RATEFS_FS_MOUNT_REFUSAL_H
#define RATEFS_FS_MOUNT_REFUSAL_H

#include <stdint.h>

/* Users for whom it is remembered; for one more the oldest refusal is forgotten. */
enum { REFUSALS_MAX = 256 };

struct refusals {
	struct refusal {
		char *text; /* owned; NULL: the place is free */
		uint64_t number;
		uint32_t uid;
	} of[REFUSALS_MAX];
	uint64_t count; /* so far */
};

/* Remembers @text, copied. Without memory it is not. */
void refusals_add(struct refusals *refusals, uint32_t uid, const char *text);

/* Returns the last refusal of @uid, borrowed until the next. NULL: there was none. */
const char *refusals_last(const struct refusals *refusals, uint32_t uid);

void refusals_free(struct refusals *refusals);

#endif
