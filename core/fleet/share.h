/*
 * share - who should have how many partitions: exact max-min fairness.
 *
 * No claim gets more than it wants; the rest of small claims goes to the others in proportion to
 * their weights. Those parts are rounded down, and the remainders go one by one, in order of
 * sequence, to the claims whose parts were. All hosts that see the same claims compute the same
 * shares.
 */
#ifndef RATEFS_CORE_SHARE_H
#define RATEFS_CORE_SHARE_H

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

#endif
