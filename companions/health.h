/*
 * health - what is wrong with a mounted tree, from its files: for a person on call, and scripts.
 */
#ifndef RATEFS_COMPANIONS_HEALTH_H
#define RATEFS_COMPANIONS_HEALTH_H

#include "companions/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEALTH_WRONG_MAX = 8 };

/* A limiter in which readers wait, that grants nothing, or that back-off has slowed down. */
struct health_limiter {
	const struct sample *sample; /* borrowed: of the page */
	const struct sample *closed; /* readers wait, and this one has no rate; NULL: none is so */
};

/* A host of the fleet, as in its line of `hosts`. */
struct health_host {
	char *name; /* owned */
	uint32_t weight, held;
	uint64_t silent_s;
	bool is_silent; /* it holds something, and for longer than its right lasts */
};

struct health {
	const char *mountpoint; /* borrowed */
	struct page page;	/* all limiters */
	char *status;		/* owned: the file */

	struct health_host *hosts; /* owned; of a fleet */
	size_t host_count, silent_count;

	/* The stuck ones first, then those in which most readers wait. */
	struct health_limiter *limiters; /* owned */
	size_t limiter_count, stuck_count;

	char *wrong[HEALTH_WRONG_MAX]; /* owned: sentences, the gravest first */
	size_t wrong_count;
};

/* Takes a look at the tree. 0, or -1 after a message; then there is nothing to free. */
int health_take(const char *mountpoint, struct health *health);
void health_free(struct health *health);

/*
 * Finds the value of line @name of status, which ends with its line. Its length, 0: there is none.
 */
size_t health_status(const struct health *health, const char *name, const char **value);

/* Returns the number of that line, 0 if there is none. */
uint64_t health_number(const struct health *health, const char *name);

/*
 * Returns the line of the limiter's `why` that is of the closed one, or else the first; "": there
 * is none, or this user may not read it. The caller frees it. NULL with errno: the tree does not
 * answer.
 */
char *health_why(const struct health *health, const struct health_limiter *limiter);

#endif
