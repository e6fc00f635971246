/* appetite - how many leaves of a limiter a host wants, see appetite.h. */
#include "core/fleet/appetite.h"

#include <math.h>

enum {
	MEAN_PERIODS = 300, /* the mean forgets what is older */
	SIGMAS = 4,	    /* chance goes so far: then about once in hours */
	DRAIN_PERIODS = 20, /* in so many a backlog is worked off */
	HUNGRY_PERIODS = 3,
};

/* Of a mean of @expected tokens, as few come at random that two more are no change either. */
static bool is_change(double asked, double expected)
{
	return fabs(asked - expected) > SIGMAS * sqrt(expected) + 2;
}

static double last(const struct appetite *appetite, uint32_t periods)
{
	double sum = 0;

	for (uint32_t i = 0; i < periods; i++)
		sum += appetite->asked[(appetite->period + APPETITE_PERIODS - i) %
				       APPETITE_PERIODS];
	return sum;
}

/* Notes that the rate is another one since @periods. */
static bool begin_anew(struct appetite *appetite, uint32_t periods)
{
	double mean = appetite->sum / appetite->periods, sum = last(appetite, periods);

	if (appetite->periods < periods || !is_change(sum, mean * periods))
		return false;
	appetite->sum = sum;
	appetite->periods = periods;
	return true;
}

static void note_mean(struct appetite *appetite, double asked)
{
	appetite->sum += asked;
	appetite->periods++;
	if (appetite->periods > MEAN_PERIODS) {
		appetite->sum *= MEAN_PERIODS / appetite->periods;
		appetite->periods = MEAN_PERIODS;
	}
	if (!begin_anew(appetite, APPETITE_SECOND))
		(void)begin_anew(appetite, APPETITE_PERIODS);
}

/* Counts for how many periods readers have waited without a break. */
static uint32_t hungry_periods(const struct appetite *appetite)
{
	uint32_t periods = 0;

	while (periods < APPETITE_PERIODS &&
	       appetite->waited[(appetite->period + APPETITE_PERIODS - periods) % APPETITE_PERIODS])
		periods++;
	return periods;
}

/* Tells whether at least half of what was got was asked for: a reader that was served asks again. */
static bool was_of_use(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double leaves = (appetite->grown_from + facts->held) / 2.0;

	return last(appetite, appetite->grown_periods) >=
	       leaves * facts->leaf * appetite->grown_periods;
}

static void note_hunger(struct appetite *appetite, const struct appetite_facts *facts)
{
	uint32_t hungry = hungry_periods(appetite), long_enough = HUNGRY_PERIODS << appetite->vain;

	if (!appetite->grown_from) {
		if (facts->held && hungry >= long_enough)
			appetite->grown_from = facts->held;
		appetite->grown_periods = 0;
		return;
	}
	appetite->grown_periods += facts->held > appetite->grown_from;
	if (hungry && appetite->grown_periods < long_enough)
		return;
	if (hungry && was_of_use(appetite, facts)) {
		appetite->vain = 0;
		appetite->grown_from = facts->held;
	} else {
		if (appetite->grown_periods && appetite->vain < APPETITE_VAIN_MAX)
			appetite->vain++;
		appetite->grown_from = 0;
	}
	appetite->grown_periods = 0;
}

void appetite_note(struct appetite *appetite, const struct appetite_facts *facts)
{
	appetite->period = (appetite->period + 1) % APPETITE_PERIODS;
	appetite->asked[appetite->period] = facts->asked;
	appetite->waited[appetite->period] = facts->waited;
	note_mean(appetite, facts->asked);
	note_hunger(appetite, facts);
}

double appetite_need(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double periods = appetite->periods < APPETITE_SECOND ? APPETITE_SECOND : appetite->periods;
	double tokens = appetite->sum / periods;

	if (facts->long_waiting)
		tokens += facts->waiting / DRAIN_PERIODS;
	return tokens / facts->leaf;
}

uint32_t appetite_hunger(const struct appetite *appetite)
{
	uint32_t from = appetite->grown_from;

	return from + (from >> appetite->vain);
}
