/* share - who should have how many partitions, see share.h. */
#include "core/fleet/share.h"

#include <stdlib.h>

static int by_sequence(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void swap(struct claim *a, struct claim *b)
{
	struct claim claim = *a;

	*a = *b;
	*b = claim;
}

/*
 * Progressive filling: as long as a host wants no more than its part of the rest, it gets that, and
 * the parts of the others can only grow. The others all get their parts, rounded down.
 *
 * Bertsekas, Gallager: "Data Networks", 6.5.2 (max-min flow control).
 */
void share_divide(struct claim *claims, uint32_t count, uint32_t capacity)
{
	uint64_t weights = 0, left = capacity, rest;
	uint32_t before;

	for (uint32_t i = 0; i < count; i++)
		weights += claims[i].weight;
	do {
		before = count;
		for (uint32_t i = 0; i < count;) {
			if (claims[i].wanted * weights > left * claims[i].weight) {
				i++;
				continue;
			}
			claims[i].gets = claims[i].wanted;
			left -= claims[i].wanted;
			weights -= claims[i].weight;
			swap(&claims[i], &claims[--count]);
		}
	} while (count && count < before);
	rest = left;
	for (uint32_t i = 0; i < count; i++) {
		claims[i].gets = (uint32_t)(left * claims[i].weight / weights);
		rest -= claims[i].gets;
	}
	/* Each of them wants more than its part, so that one more is not too many. */
	if (count && rest)
		qsort(claims, count, sizeof(*claims), by_sequence);
	for (uint32_t i = 0; i < count && rest; i++) {
		if (left * claims[i].weight % weights == 0)
			continue;
		claims[i].gets++;
		rest--;
	}
}
