/* pressure - the part of the time in which a reader waited, see pressure.h. */
#include "core/limiter/pressure.h"
#include "core/values/quantity.h"

#include <math.h>

#define SAMPLE_NS (2 * NSEC_PER_SEC)

static const double PERIODS_NS[PRESSURE_AVERAGES] = {10e9, 60e9, 300e9};

void pressure_init(struct pressure *pressure, uint64_t now_ns)
{
	*pressure = (struct pressure){.at_ns = now_ns, .sampled_ns = now_ns};
}

/* Takes the time from the last sample to @until_ns, before which total_ns is known, as one. */
static void take_sample(struct pressure *pressure, uint64_t until_ns)
{
	double span_ns = (double)(until_ns - pressure->sampled_ns), part;

	if (until_ns <= pressure->sampled_ns)
		return;
	part = (double)(pressure->total_ns - pressure->sampled_total_ns) / span_ns;
	for (int i = 0; i < PRESSURE_AVERAGES; i++) {
		double weight = exp(-span_ns / PERIODS_NS[i]);

		pressure->averages[i] = pressure->averages[i] * weight + part * (1 - weight);
	}
	pressure->sampled_ns = until_ns;
	pressure->sampled_total_ns = pressure->total_ns;
}

/* Brings the sum up to @now_ns, and the averages, if a sample is due or they are @wanted. */
static void advance(struct pressure *pressure, uint64_t now_ns, bool wanted)
{
	bool is_due = wanted || now_ns - pressure->sampled_ns >= SAMPLE_NS;

	if (is_due)
		take_sample(pressure, pressure->at_ns);
	if (pressure->stalled)
		pressure->total_ns += now_ns - pressure->at_ns;
	pressure->at_ns = now_ns;
	if (is_due)
		take_sample(pressure, now_ns);
}

void pressure_set(struct pressure *pressure, bool stalled, uint64_t now_ns)
{
	if (stalled == pressure->stalled)
		return;
	advance(pressure, now_ns, false);
	pressure->stalled = stalled;
}

struct pressure pressure_at(const struct pressure *pressure, uint64_t now_ns)
{
	struct pressure now = *pressure;

	if (now_ns > now.at_ns)
		advance(&now, now_ns, true);
	return now;
}
