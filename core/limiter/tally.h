/*
 * tally - how many tokens each user of a limiter was granted, and each of its keys.
 *
 * A line is a user and a key, or a user alone. There are TALLY_MAX at most. They are exact until
 * more have been seen; from then on a new one takes the place, and the count, of the least, so a
 * count is never too small, and too large by `over` at most ("space-saving": Metwally, Agrawal, El
 * Abbadi: "Efficient computation of frequent and top-k elements in data streams", 2005). A line
 * with more than the TALLY_MAX-th part of all tokens is always there.
 */
#ifndef RATEFS_CORE_TALLY_H
#define RATEFS_CORE_TALLY_H

#include <stdint.h>

enum { TALLY_MAX = 128 };

struct tally_line {
	uint64_t key; /* id; 0: none */
	uint64_t granted, over;
	uint32_t uid;
	uint32_t pid; /* of the thread that was counted last */
};

struct tally {
	struct tally_line *lines; /* owned */
	uint32_t count, room;
};

/* Counts @tokens of the line of @line->uid and @line->key. 0 or -ENOMEM; then it is not counted. */
int tally_add(struct tally *tally, const struct tally_line *line);

/* Sorts the lines by what was granted, the largest first. */
void tally_sort(struct tally *tally);

/* Makes @copy one of @tally. 0 or -ENOMEM. */
int tally_copy(const struct tally *tally, struct tally *copy);

void tally_free(struct tally *tally);

#endif
