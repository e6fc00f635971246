/*
 * draw - numbers at random for tests that try many cases. The same ones in every run: a test sets
 * draw_state, not to 0, and a failure comes again.
 */
#ifndef RATEFS_TESTS_DRAW_H
#define RATEFS_TESTS_DRAW_H

#include <stdint.h>

static uint64_t draw_state = 1;

/* Returns a number below @below. xorshift64*: Marsaglia (2003), Vigna (2016). */
static inline uint64_t draw(uint64_t below)
{
	draw_state ^= draw_state >> 12;
	draw_state ^= draw_state << 25;
	draw_state ^= draw_state >> 27;
	return (draw_state * UINT64_C(2685821657736338717) >> 11) % below;
}

static inline uint32_t draw32(uint32_t below)
{
	return (uint32_t)draw(below);
}

#endif
