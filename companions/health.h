/*
 * health - what is wrong with a mounted tree, from its files: for a person on call, and scripts.
 */
#ifndef RATEFS_COMPANIONS_HEALTH_H
#define RATEFS_COMPANIONS_HEALTH_H

#include "companions/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HEALTH_LOOKS_MAX = 1000, HEALTH_WRONG_MAX = 8 };

/* The states of a limiter, the gravest first. Stuck: readers wait, and nothing is granted. */
enum health_state {
	HEALTH_STUCK,
	HEALTH_CLOSED,
	HEALTH_PAUSED,
	HEALTH_THROTTLED,
	HEALTH_WAITS,
	HEALTH_IDLE,
	HEALTH_STATES
};

struct health_limiter {
	const struct sample *sample; /* borrowed: of the page */
	enum health_state state;
	char *why; /* owned: the first line of its file; "": nothing, or not known */
};

/* A host of the fleet, as in its line of `hosts`. */
struct health_host {
	char *name; /* owned */
	uint32_t weight, held;
	uint64_t silent_s;
	bool is_silent; /* it holds something, and for longer than its right lasts */
};

struct health {
	struct page page; /* all limiters */
	char *status;	  /* owned: the file */

	struct health_host *hosts; /* owned; of a fleet */
	size_t host_count, silent_count;

	/* Those that are not idle, the gravest first; HEALTH_LOOKS_MAX at most were looked at. */
	struct health_limiter *limiters; /* owned */
	size_t limiter_count, left_out;

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

const char *health_state_name(enum health_state state);

#endif
