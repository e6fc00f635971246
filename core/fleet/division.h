/*
 * division - the claims of all hosts come to parts of a limiter: order.h over hosts, by exact
 * max-min fairness.
 *
 * 1. A child's demand is the sum of its wants on all hosts. The limiter's own readers, with its
 *    keys and partitions, are one more child, of class 0 and the default weight.
 * 2. Each child gets its `min`, as far as it wants that much.
 * 3. The rest goes to the highest class, and the remainder of it to the next one. Within a class it
 *    is shared in proportion to the weights; a child has the greater of its min and that part.
 * 4. A child's part goes to the hosts on which it wants some. None gets more than it wants there;
 *    the rest of small wants goes to the others in proportion to the weights of hosts. Those parts
 *    are rounded down, and the remainders go one by one, in order of sequence, to the claims whose
 *    parts were. A host gets the sum of its children's parts, and no more than it claims.
 *
 * Children that a claim does not list by themselves are one child for each class and host, with
 * the sum of their weights and no min. Leaves that are held without a claim go before all else.
 *
 * Remainders among children go in the order of the first claims that want some for them: where
 * children are more than pieces, a host at the end of the line has its turn behind all others, also
 * for a child that it alone reads. All hosts that see the same claims and know the same settings
 * compute the same parts. Where no claim has parts, only 4 is left.
 */
#ifndef RATEFS_CORE_DIVISION_H
#define RATEFS_CORE_DIVISION_H

#include "core/values/settings.h"

#include <stdbool.h>
#include <stdint.h>

/* A host lists so many children of a limiter in its claim, and the rest of them by class. */
enum { PARTS_OF_CHILDREN = 8, PARTS_MAX = PARTS_OF_CHILDREN + PRIORITIES };

/* The weight of the rest is this at most: the same in a claim and where its host weighs it. */
#define REST_WEIGHT_MAX UINT32_C(999999)

/* Stands for children that are not listed one by one. */
#define PART_REST UINT64_MAX

/* A child's wants on a host, and its place among its siblings as in order.h. */
struct part {
	uint64_t child; /* LID; 0: the limiter's own queue; PART_REST */
	uint32_t wanted;
	uint32_t weight; /* at least 1; of the rest the sum */
	uint32_t min;	 /* goes before all else, over all hosts; of the rest 0 */
	uint32_t priority;
	uint32_t gets;	/* filled in, as division.h says */
	uint32_t least; /* so much of that is under its min */
};

struct claim {
	uint32_t wanted;
	uint32_t weight;   /* at least 1 */
	uint64_t sequence; /* no two are the same */
	uint32_t gets;	   /* filled in */
	uint32_t held;	   /* by its host, as was listed; not looked at here */
	const char *name;  /* borrowed, not looked at */

	/* Looked at by division.h alone. */
	/* Borrowed; together they may want more than @wanted, and get no more. */
	struct part *parts;
	uint32_t part_count; /* 0: the own queue wants all */
	bool is_due;	     /* a holder without a claim: its wants go before all else */
	bool starves;	     /* filled in: it gets nothing, and one of its class does */
};

/*
 * Divides @capacity among @count claims by 4 alone, whatever their parts are. It may put them into
 * another order. The sum of what they get is the smaller of the capacity and the sum of what is
 * wanted.
 */
void division_plain(struct claim *claims, uint32_t count, uint32_t capacity);

/* Divides @capacity among @count claims, which it may put into another order, and their parts. */
void division_make(struct claim *claims, uint32_t count, uint32_t capacity);

#endif
