/* histogram - how long readers waited, see histogram.h. */
#include "core/limiter/histogram.h"
#include "core/values/quantity.h"

#define FIRST_BOUND_NS (NSEC_PER_SEC / 1000)

uint64_t histogram_bound_ns(unsigned int i)
{
	return FIRST_BOUND_NS << i;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	unsigned int i = 0;

	/* Whole first bounds below @ns: the number of their bits is that of the bound. */
	if (ns > FIRST_BOUND_NS)
		i = 64 - (unsigned int)__builtin_clzll((ns - 1) / FIRST_BOUND_NS);
	histogram->counts[i < HISTOGRAM_BOUNDS ? i : HISTOGRAM_BOUNDS]++;
	histogram->sum_ns += ns;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HISTOGRAM_COUNTS; i++)
		count += histogram->counts[i];
	return count;
}

uint64_t histogram_quantile_ns(const struct histogram *histogram, unsigned int percent)
{
	u128 all = (u128)histogram->at_once + histogram_count(histogram);
	u128 wanted = (all * percent + 99) / 100, count = histogram->at_once;

	if (count >= wanted)
		return 0;
	for (unsigned int i = 0; i < HISTOGRAM_BOUNDS; i++) {
		count += histogram->counts[i];
		if (count >= wanted)
			return histogram_bound_ns(i);
	}
	return NEVER_NS;
}
