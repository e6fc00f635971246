/*
 * share - the shares of hosts by their claims: how many partitions each should have, see
 * division.h, and which hosts gain by what one gives back. All of it is pure arithmetic.
 */
#ifndef RATEFS_CORE_SHARE_H
#define RATEFS_CORE_SHARE_H

#include "core/fleet/division.h"

/* Of a share: a host that is short of it by no more than that is near enough. */
enum { SHARE_NEAR_PARTS = 50 };

/* The claims of all hosts to a limiter. */
struct claim_line {
	struct claim *claims; /* owned by the caller; in any order */
	struct part *parts;   /* owned by the caller: theirs */
	uint32_t count;
	uint64_t own; /* sequence of this host's; UINT64_MAX: there is none */
};

/* The outcome of all claims, for this host. */
struct share {
	bool contended; /* all together want more than there is ... */
	/* ... and a host's share is 0 though its class has some: it is to have its turn. */
	bool starving;
	/* ... and another claimant lacks more than a part of SHARE_NEAR_PARTS of its share. */
	bool lacking;
	/* Of what others hold that are not short: the sum of square roots. By portion_weigh(). */
	double roots;
	/* By portion_weigh(): leaves that others claim and lack; one of them lacks many. */
	uint32_t lacks;
	bool is_greedy;
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
