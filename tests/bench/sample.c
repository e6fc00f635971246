/* sample - times measured, see sample.h. */
#include "sample.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int64_t sample_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

struct sample sample_make(long max)
{
	struct sample sample = {.max = max};

	if (max > 0)
		sample.ns = calloc((size_t)max, sizeof(*sample.ns));
	if (max < 0 || (max > 0 && !sample.ns)) {
		fprintf(stderr, "no memory for %ld samples\n", max);
		exit(EXIT_FAILURE);
	}
	return sample;
}

void sample_add(struct sample *sample, int64_t ns)
{
	assert(sample->count < sample->max);
	sample->ns[sample->count++] = ns;
}

static int compare_ns(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static void sample_sort(struct sample *sample)
{
	if (sample->count)
		qsort(sample->ns, (size_t)sample->count, sizeof(*sample->ns), compare_ns);
}

void sample_print(struct sample *sample, const char *prefix)
{
	double sum = 0;

	if (!sample->count)
		return;
	sample_sort(sample);
	for (long i = 0; i < sample->count; i++)
		sum += (double)sample->ns[i];
	printf("%sp50_us %.3f\n%sp99_us %.3f\n%smax_us %.3f\n%smean_us %.3f\n", prefix,
	       (double)sample->ns[sample->count / 2] / NS_PER_US, prefix,
	       (double)sample->ns[sample->count * 99 / 100] / NS_PER_US, prefix,
	       (double)sample->ns[sample->count - 1] / NS_PER_US, prefix,
	       sum / (double)sample->count / NS_PER_US);
}
