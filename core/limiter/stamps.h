/*
 * stamps - when the tokens of a strict window were taken: the log of a bucket (bucket.h).
 *
 * Tokens of one instant are one stamp. A log of up to STAMPS_MAX tokens has the exact times. That
 * of a larger window counts by 1/256 of the window: its times are rounded up, so that a token stays
 * in the window for up to 1/256 longer.
 *
 * The ring grows as stamps come, up to STAMPS_MAX of them: 16 bytes each. One that cannot grow says
 * so, and its owner joins stamps: the older is then taken to be as late as the newer.
 */
#ifndef RATEFS_CORE_STAMPS_H
#define RATEFS_CORE_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

enum { STAMPS_MAX = 65536, STAMPS_PARTS = 256 };

struct stamp {
	uint64_t at_ns;
	uint64_t tokens; /* above 0 */
};

/* The log of one bucket, which owns it; STAMPS_NONE has no stamps, and belongs to all. */
struct stamps {
	uint64_t tokens;      /* of all stamps */
	uint32_t first;	      /* index of the oldest */
	uint32_t count, room; /* stamps, of so many: a power of two */
	struct stamp *ring;   /* owned */
};

extern struct stamps STAMPS_NONE;

/* Frees the log; the pointer is STAMPS_NONE then. */
void stamps_free(struct stamps **stamps);

/*
 * Returns @at_ns as a log of @most tokens in @window_ns has it: exact or rounded up; at most
 * @window_ns / STAMPS_PARTS later.
 */
uint64_t stamps_round(uint64_t at_ns, uint64_t window_ns, uint64_t most);

/*
 * Adds @tokens at @at_ns, or at the newest stamp if that is later. False: there is no room for a
 * stamp more.
 */
bool stamps_add(struct stamps **stamps, uint64_t at_ns, uint64_t tokens);

/* Returns the oldest stamp; NULL: there is none. */
const struct stamp *stamps_oldest(const struct stamps *stamps);

/* Takes out up to @tokens, the oldest or the newest ones. Returns how many. */
uint64_t stamps_drop_oldest(struct stamps *stamps, uint64_t tokens);
uint64_t stamps_drop_newest(struct stamps *stamps, uint64_t tokens);

/* Returns the time of token @number (1 to stamps->tokens), counted from the oldest, which is 1. */
uint64_t stamps_time(const struct stamps *stamps, uint64_t number);

#endif
