/* share - who should have how many partitions, see share.h. */
#include "share.h"

#include <stdlib.h>

/* Those who want least for their weight first; by sequence among equals. */
static int by_want(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	uint64_t left = (uint64_t)x->wanted * y->weight;
	uint64_t right = (uint64_t)y->wanted * x->weight;

	if (left != right)
		return left < right ? -1 : 1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int by_sequence(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/*
 * Progressive filling: as long as the one who wants least for his weight wants no more than his
 * part of what is left, he gets it. The others all get their parts, rounded down.
 *
 * Bertsekas, Gallager: "Data Networks", 6.5.2 (max-min flow control).
 */
void share_divide(struct claim *claims, uint32_t count, uint32_t capacity)
{
	uint64_t weights = 0, left = capacity, rest;
	uint32_t i;

	for (i = 0; i < count; i++)
		weights += claims[i].weight;
	qsort(claims, count, sizeof(*claims), by_want);
	for (i = 0; i < count; i++) {
		if (claims[i].wanted * weights > left * claims[i].weight)
			break;
		claims[i].gets = claims[i].wanted;
		left -= claims[i].wanted;
		weights -= claims[i].weight;
	}
	rest = left;
	for (uint32_t j = i; j < count; j++) {
		claims[j].gets = (uint32_t)(left * claims[j].weight / weights);
		rest -= claims[j].gets;
	}
	/* Each of them wants more than its part, so that one more is not too many. */
	qsort(claims + i, count - i, sizeof(*claims), by_sequence);
	for (uint32_t j = i; j < count && rest; j++, rest--)
		claims[j].gets++;
}
