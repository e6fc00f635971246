/*
 * share - what the claims of all hosts come to: how many partitions each should have, by exact
 * max-min fairness, and which hosts gain by what one gives back. All of it is pure arithmetic.
 *
 * No claim gets more than it wants; the rest of small claims goes to the others in proportion to
 * their weights. Those parts are rounded down, and the remainders go one by one, in order of
 * sequence, to the claims whose parts were. All hosts that see the same claims compute the same
 * shares.
 */
#ifndef RATEFS_CORE_SHARE_H
#define RATEFS_CORE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct claim {
	uint32_t wanted;
	uint32_t weight;   /* at least 1 */
	uint64_t sequence; /* no two are the same */
	uint32_t gets;	   /* filled in */
	const char *name;  /* borrowed, not looked at */
};

/*
 * Divides @capacity among @count claims, which it may put into another order. The sum of what they
 * get is the smaller of the capacity and the sum of what is wanted.
 */
void share_divide(struct claim *claims, uint32_t count, uint32_t capacity);

/* The claims of all hosts to a limiter. */
struct claim_line {
	struct claim *claims; /* owned by the caller; in any order */
	uint32_t count;
	uint64_t own; /* sequence of this host's; UINT64_MAX: there is none */
};

/* The outcome of all claims, for this host. */
struct share {
	bool contended;		/* all together want more than there is ... */
	bool starving;		/* ... and some host's share is 0 */
	uint32_t target;	/* this host's share then; UINT32_MAX: there is none */
	uint32_t target_behind; /* its share at the end of the line, if there is a target */
};

/*
 * Computes what the claims of @line to @capacity come to. Without a claim this host would claim
 * @wanted.
 */
struct share share_weigh(const struct claim_line *line, uint32_t wanted, uint32_t capacity);

/*
 * Puts the claims of other hosts into @others, room for @line->count, in the order in which this
 * host gives way to them: when it gives something back it wakes the first. Returns how many.
 */
uint32_t share_give_way(const struct claim_line *line, uint32_t capacity, struct claim *others);

/*
 * Returns how many of @line are behind this host's claim, which was made just now: those of hosts
 * whose turns end at the same time. As each of them leaves so many claimants to the others, no two
 * of them wake the same host.
 */
uint32_t share_count_behind(const struct claim_line *line);

#endif
