/* waits - how long readers waited, see waits.h. */
#include "companions/waits.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { PARTS_BITS = 7 };

_Static_assert(1 << PARTS_BITS == WAITS_PARTS, "a power of two");

/* The leading PARTS_BITS + 1 bits of @ns count, and how many follow them. */
static size_t bucket_of(uint64_t ns)
{
	unsigned int shift = 0;

	if (ns >= 2 * WAITS_PARTS)
		shift = 63 - PARTS_BITS - (unsigned int)__builtin_clzll(ns);
	return (size_t)shift * WAITS_PARTS + (size_t)(ns >> shift);
}

/* Returns the largest ns that bucket @index counts. */
static uint64_t end_of(size_t index)
{
	size_t shift = index < 2 * WAITS_PARTS ? 0 : index / WAITS_PARTS - 1;

	return ((index - shift * WAITS_PARTS + 1) << shift) - 1;
}

int waits_add(struct waits *waits, uint64_t ns)
{
	if (!waits->buckets)
		waits->buckets = calloc(WAITS_BUCKETS, sizeof(*waits->buckets));
	if (!waits->buckets)
		return -ENOMEM;
	waits->buckets[bucket_of(ns)]++;
	waits->count++;
	waits->sum_s += (double)ns / 1e9;
	if (ns > waits->most_ns)
		waits->most_ns = ns;
	return 0;
}

uint64_t waits_quantile_ns(const struct waits *waits, unsigned int percent)
{
	uint64_t wanted = waits->count - waits->count / 100 * (100 - percent) -
			  waits->count % 100 * (100 - percent) / 100;
	uint64_t end_ns;
	size_t i = 0;

	if (!waits->count)
		return 0;
	for (uint64_t passed = waits->buckets[0]; passed < wanted;)
		passed += waits->buckets[++i];
	end_ns = end_of(i);
	return end_ns < waits->most_ns ? end_ns : waits->most_ns;
}

void waits_free(struct waits *waits)
{
	free(waits->buckets);
}
