/* appetite - how many leaves of a limiter a host wants, see appetite.h. */
#include "core/fleet/appetite.h"

#include <math.h>

enum {
	MEAN_PERIODS = 300,   /* the mean forgets what is older */
	SIGMAS = 4,	      /* chance goes so far: then about once in hours */
	DRAIN_PERIODS = 20,   /* in so many a backlog is worked off ... */
	BACKLOG_PERIODS = 20, /* ... after readers waited for so many without a break */
	HUNGRY_PERIODS = 5,   /* of waiting without a break */
	BEHIND_PERIODS = 20,  /* likewise, where other hosts are short: ... */
	BEHIND_PARTS = 16,    /* ... then so much more is wanted, ... */
	REST_PERIODS = 300,   /* ... once that was in vain not again so soon: doubled */
	LONG_PERIODS = 3,     /* so long is long to wait */
	STEPS_MAX = 4,	      /* ... and twice as much each time that it was of use */
	GRANTS_LEAST = 4,     /* show that readers ask again: the number of those that wait ... */
	STEADY_PARTS = 32,    /* ... changes by no more than such a part of what was granted */
	VAIN_MAX = 2,
	GROWTH = 8, /* once more was of use */
};

/* Of a mean of @expected tokens, as few come at random that two more are no change either. */
static bool is_change(double asked, double expected)
{
	return fabs(asked - expected) > SIGMAS * sqrt(expected) + 2;
}

/* Returns the place of the period that was @ago before the newest. */
static uint32_t place(const struct appetite *appetite, uint32_t ago)
{
	return (appetite->period + APPETITE_PERIODS - ago) % APPETITE_PERIODS;
}

static double last(const struct appetite *appetite, uint32_t periods)
{
	double sum = 0;

	for (uint32_t i = 0; i < periods; i++)
		sum += appetite->asked[place(appetite, i)];
	return sum;
}

/* Begins another mean if the last @periods are no chance: with those that are surely changed. */
static bool begin_anew(struct appetite *appetite, uint32_t periods)
{
	double mean = appetite->sum / appetite->periods;

	if (appetite->periods < periods || !is_change(last(appetite, periods), mean * periods))
		return false;
	appetite->sum = last(appetite, periods / 2);
	appetite->periods = periods / 2;
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

	while (periods < APPETITE_PERIODS - 1 && appetite->waited[place(appetite, periods)])
		periods++;
	return periods;
}

/*
 * Tells whether readers that waited for @hungry periods asked again as soon as they were served: in
 * the last ones, @least or more of them, as many wait as before, though some were granted.
 */
static bool ask_again(const struct appetite *appetite, uint32_t hungry, uint32_t least)
{
	double granted = 0, changes = 0;

	for (uint32_t i = 0; i < hungry && (i < least || granted < GRANTS_LEAST); i++) {
		double more = appetite->waiting[place(appetite, i)] -
			      appetite->waiting[place(appetite, i + 1)];

		granted += appetite->asked[place(appetite, i)] - more;
		changes += fabs(more);
	}
	return hungry >= least && granted >= GRANTS_LEAST && changes <= granted / STEADY_PARTS;
}

/* Returns the tokens that were granted in the last @periods. */
static double granted_in(const struct appetite *appetite, uint32_t periods)
{
	return last(appetite, periods) - appetite->waiting[place(appetite, 0)] +
	       appetite->waiting[place(appetite, periods)];
}

/*
 * Tells whether readers waited for so long without a break that more come than are served, though
 * their number changes: some of them may ask again and again.
 */
static bool is_behind(const struct appetite *appetite, const struct appetite_facts *facts,
		      uint32_t hungry)
{
	uint32_t least = facts->contended ? BEHIND_PERIODS
					  : (uint32_t)HUNGRY_PERIODS << appetite->vain;

	return hungry >= least && granted_in(appetite, hungry) >= GRANTS_LEAST &&
	       (!facts->contended || !appetite->rest);
}

/* Tells whether at least half of the leaves that came were made use of. */
static bool was_of_use(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double leaves = (appetite->grown_from + facts->held) / 2.0;

	return last(appetite, appetite->grown_periods) >=
	       leaves * facts->leaf * appetite->grown_periods;
}

/*
 * Returns what is wanted where it is not sure that readers are hungry: more each time. Where they
 * wait for long it is twice as much at once.
 */
static uint32_t a_little_more(struct appetite *appetite, const struct appetite_facts *facts)
{
	if (appetite->steps > STEPS_MAX ||
	    facts->waiting >= facts->held * facts->leaf * LONG_PERIODS)
		appetite->steps = STEPS_MAX;
	return facts->held + (facts->held / BEHIND_PARTS << appetite->steps++) + 1;
}

static void note_hunger(struct appetite *appetite, const struct appetite_facts *facts)
{
	uint32_t hungry = hungry_periods(appetite);

	if (!appetite->wanted) {
		bool again = ask_again(appetite, hungry,
				       (uint32_t)HUNGRY_PERIODS << appetite->vain);

		if (!facts->held || (!again && !is_behind(appetite, facts, hungry)))
			return;
		appetite->grown_from = facts->held;
		appetite->grown_periods = 0;
		appetite->wanted = facts->held + (facts->held >> appetite->vain);
		if (!again && facts->contended)
			appetite->wanted = a_little_more(appetite, facts);
		return;
	}
	/* A host that got less than half of it cannot tell yet. */
	appetite->grown_periods += facts->held >= (appetite->grown_from + appetite->wanted) / 2;
	if (hungry && appetite->grown_periods < HUNGRY_PERIODS)
		return;
	if (hungry && (appetite->steps || was_of_use(appetite, facts))) {
		appetite->vain = 0;
		appetite->grown_from = facts->held;
		appetite->wanted = facts->contended && !ask_again(appetite, hungry, HUNGRY_PERIODS)
					   ? a_little_more(appetite, facts)
					   : facts->held * GROWTH;
	} else {
		if (appetite->steps)
			appetite->rest = (uint32_t)REST_PERIODS << appetite->vain;
		if (appetite->grown_periods && appetite->vain < VAIN_MAX)
			appetite->vain++;
		appetite->wanted = 0;
		appetite->steps = 0;
	}
	appetite->grown_periods = 0;
}

void appetite_note(struct appetite *appetite, const struct appetite_facts *facts)
{
	appetite->period = (appetite->period + 1) % APPETITE_PERIODS;
	appetite->asked[appetite->period] = facts->asked;
	appetite->waited[appetite->period] = facts->waited;
	appetite->waiting[appetite->period] = facts->waiting;
	appetite->rest -= appetite->rest > 0;
	note_mean(appetite, facts->asked);
	note_hunger(appetite, facts);
}

double appetite_need(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double periods = appetite->periods < HUNGRY_PERIODS ? HUNGRY_PERIODS : appetite->periods;
	double tokens = appetite->sum / periods;

	if (facts->long_waiting || hungry_periods(appetite) >= BACKLOG_PERIODS)
		tokens += facts->waiting / DRAIN_PERIODS;
	return tokens / facts->leaf;
}

uint32_t appetite_hunger(const struct appetite *appetite)
{
	return appetite->wanted;
}
