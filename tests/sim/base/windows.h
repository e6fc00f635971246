/*
 * windows - the largest number of tokens granted in any window of 10 ms, 100 ms, 1 s and 10 s.
 *
 * A window of length w that ends at t is (t - w, t]: two grants exactly w apart are in no common
 * window. Only the grants of the last ten seconds are kept, those of one instant as one entry.
 */
#ifndef RATEFS_SIM_WINDOWS_H
#define RATEFS_SIM_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

enum { WINDOW_COUNT = 4 };

extern const struct window_length {
	uint64_t ns;
	const char *name;
} WINDOWS[WINDOW_COUNT];

struct window_entry {
	uint64_t at_ns;
	uint64_t tokens;
};

struct windows {
	struct window_entry *entries; /* owned, a ring */
	size_t size;		      /* a power of two, or 0 */
	size_t end;		      /* entries ever made */
	size_t starts[WINDOW_COUNT];  /* the first one in each window, counted likewise */
	uint64_t sums[WINDOW_COUNT];  /* tokens in the window that ends at the last grant */
	uint64_t most[WINDOW_COUNT];  /* the largest sum so far */
};

void windows_free(struct windows *windows);

/* Time does not go back. */
void windows_add(struct windows *windows, uint64_t at_ns, uint64_t tokens);

/* The largest sums are those from here on. */
void windows_count(struct windows *windows);

#endif
