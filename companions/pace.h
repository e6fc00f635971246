/*
 * pace - how many tokens `ratefs pipe` asks for, and for how many it waits.
 *
 * - A take waits for as many tokens as come in PACE_NS, and gets as many as are there. If it waited
 *   for one, a limiter with a burst of 1 would give one at a time, and all time would go into
 *   asking. Nothing but experience tells how many come: other readers have their part, and limiters
 *   above have rates of their own.
 * - A take that would wait longer than PACE_PATIENCE_NS is refused, and asked again for less, in
 *   case the rate has fallen since.
 * - The kernel remembers each name of a take, so all numbers in names are powers of two.
 */
#ifndef RATEFS_COMPANIONS_PACE_H
#define RATEFS_COMPANIONS_PACE_H

#include <stdint.h>

#define PACE_PIECE	 UINT64_C(524288) /* bytes that are read at once, a power of two */
#define PACE_PATIENCE_NS UINT64_C(1000000000)

/* The memory of one copy; it begins as PACE_START. */
struct pace {
	uint64_t expected;   /* tokens that come in PACE_NS: 1 to PACE_PIECE */
	uint64_t granted_ns; /* when the last take had its tokens, or input came after that */
};

#define PACE_START ((struct pace){.expected = 1})

/* A take: of @least to @most tokens, powers of two; it waits for any time if @least is 1. */
struct pace_take {
	uint64_t least, most;
};

/* Returns the take to ask for, for @left bytes, 1 to PACE_PIECE. */
struct pace_take pace_next(const struct pace *pace, uint64_t left);

/* Input has come at @now_ns, of a clock that is never set back. */
void pace_input(struct pace *pace, uint64_t now_ns);

/* @take was refused for its patience. */
void pace_refused(struct pace *pace, const struct pace_take *take);

/* @take was granted @tokens at @now_ns. */
void pace_granted(struct pace *pace, const struct pace_take *take, uint64_t tokens,
		  uint64_t now_ns);

#endif
