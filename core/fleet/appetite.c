/* appetite - how many leaves of a limiter a host wants, see appetite.h. */
#include "core/fleet/appetite.h"

#include <math.h>

enum {
	MEAN_PERIODS = 300,   /* the mean forgets what is older */
	SIGMAS = 4,	      /* chance goes so far: then about once in hours */
	CALM_SIGMAS = 3,      /* ... and of what is asked for while none waits: once in an hour */
	DRAIN_PERIODS = 20,   /* in so many a backlog is worked off ... */
	BACKLOG_PERIODS = 18, /* ... after readers waited for so many without a break */
	HUNGRY_PERIODS = 5,   /* of waiting without a break */
	BEHIND_PERIODS = 15,  /* in which readers waited often ... */
	OFTEN_PARTS = 5,      /* ... that is such a part of the time: ... */
	BEHIND_PARTS = 16,    /* ... then such a part more is wanted ... */
	STEPS_MAX = 5,	      /* ... and twice as much each time that it was of use ... */
	STEPS_LONG = 4,	      /* ... or at once ... */
	LONG_PERIODS = 3,     /* ... where readers wait for so long ... */
	PROBE_PERIODS = 10,   /* ... which so many periods show ... */
	PROBE_MOST = 30,      /* ... or more, where few tokens come; ... */
	REST_PERIODS = 300,   /* ... in vain: not again so soon, doubled */
	SHORT_REST_PERIODS = 30,
	MORE_PARTS = 5,	   /* such a part more than the mean was no chance, where more was held */
	GRANTS_LEAST = 4,  /* show that readers ask again: the number of those that wait ... */
	STEADY_PARTS = 32, /* ... changes by no more than such a part of what was granted */
	VAIN_MAX = 2,
	GROWTH = 8,	     /* once more was of use */
	SPREAD_SECONDS = 30, /* the variance forgets what is older ... */
	SPREAD_MOST = 4,     /* ... and of a single second counts so many times the mean at most */
	RARE_PERIODS = 50,   /* between readers: then they are rare ... */
	QUICK_PERIODS = 25,  /* ... unless they come within so many of one that was served ... */
	QUICK_LEAST = 3,     /* ... so often in a row */
	GAP_MOST = 150,	     /* a longer break counts as so many periods */
	GAPS_MOST = 16,	     /* breaks that are remembered, or so */
	EVEN_PARTS = 4,	     /* breaks that differ by such a part of the mean are even ... */
	EVEN_LEAST = 4,	     /* ... if there were so many, ... */
	LATE_PARTS = 2,	     /* ... until one is longer by such a part */
	EARLY_PARTS = 16,    /* more than came last, for readers that are early */
	SILENT_GAPS = 3,     /* a break so many times as long shows that they are, too */
	BATCHES_LEAST = 2,   /* a mean of less than so many of the last shows no need between */
	SILENT_TOKENS = 10,  /* that were expected and do not come are no chance */
};

/* Of the mean: the least variance of what is asked for while none waits. */
static const double SPREAD_LEAST = 0.1;

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

/* Begins another mean. */
static void set_mean(struct appetite *appetite, double sum, double periods)
{
	appetite->sum = sum;
	appetite->periods = periods;
	appetite->calm_sum = appetite->calm_periods = 0;
	appetite->between = sum / periods;
	appetite->lift = 1;
}

/* Begins another mean if the last @periods are no chance: with those that are surely changed. */
static bool begin_anew(struct appetite *appetite, uint32_t periods)
{
	double mean = appetite->sum / appetite->periods;

	if (appetite->periods < periods || !is_change(last(appetite, periods), mean * periods))
		return false;
	set_mean(appetite, last(appetite, periods / 2), periods / 2);
	appetite->rest = 0;
	return true;
}

/* Ends the mean if none of the tokens that it expects has come for so long that it is no chance. */
static void note_silence(struct appetite *appetite, bool silent)
{
	if (!silent) {
		appetite->silent = 0;
		appetite->lively = appetite->sum / fmax(appetite->periods, APPETITE_PERIODS);
		return;
	}
	appetite->silent++;
	/* Of rare readers few are expected, and late. */
	if (appetite_is_rare(appetite) && appetite->gap_mean > 0)
		appetite->lively = fmin(appetite->lively, 1 / appetite->gap_mean);
	if (appetite->lively * appetite->silent < SILENT_TOKENS)
		return;
	appetite->lively = 0;
	set_mean(appetite, 0, APPETITE_SECOND / 2.0);
}

/* Notes how far the last second was from the mean. */
static void note_spread(struct appetite *appetite)
{
	double expected = appetite->sum / appetite->periods * APPETITE_SECOND;
	double off = last(appetite, APPETITE_SECOND) - expected;

	if (appetite->period % APPETITE_SECOND || expected <= 0)
		return;
	off = fmin(off * off / expected, SPREAD_MOST);
	if (appetite->seconds < SPREAD_SECONDS)
		appetite->seconds++;
	appetite->spread += (off - 1 - appetite->spread) / appetite->seconds;
}

static void note_mean(struct appetite *appetite, const struct appetite_facts *facts)
{
	double part;

	appetite->sum += facts->asked;
	appetite->periods++;
	appetite->calm_sum += facts->asked_calm;
	appetite->calm_periods += facts->calm;
	if (appetite->periods > MEAN_PERIODS) {
		part = MEAN_PERIODS / appetite->periods;
		appetite->sum *= part;
		appetite->calm_sum *= part;
		appetite->calm_periods *= part;
		appetite->periods = MEAN_PERIODS;
	}
	if (!begin_anew(appetite, APPETITE_SECOND))
		(void)begin_anew(appetite, APPETITE_PERIODS);
}

/* Notes that @asked tokens have come in the last @periods. The mean has them. */
static void note_batch(struct appetite *appetite, double asked, uint64_t periods)
{
	double mean = appetite->sum / appetite->periods * (double)periods;
	double half = fmax(asked - mean, 0) / 2;

	/* Of fewer it is not known how far apart they are. */
	if (appetite->sum < BATCHES_LEAST * asked)
		half = 0;
	appetite->batch = (float)asked;
	appetite->between = (appetite->sum - half) / appetite->periods;
	appetite->lift = (appetite->sum - half) / (appetite->sum - 2 * half);
}

/* Counts for how many periods readers have waited without a break. */
static uint32_t hungry_periods(const struct appetite *appetite)
{
	uint32_t periods = 0;

	while (periods < APPETITE_PERIODS - 1 && appetite->waited[place(appetite, periods)] >= 1)
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
 * Tells whether readers waited for a good part of the time: over as many periods that something can
 * be told of the tokens that were granted.
 */
static bool wait_often(const struct appetite *appetite, uint32_t least)
{
	double waited = 0, granted = 0;
	uint32_t periods = 0;

	while (periods < APPETITE_PERIODS - 1 && (periods < least || granted < GRANTS_LEAST)) {
		waited += appetite->waited[place(appetite, periods)];
		granted = granted_in(appetite, ++periods);
	}
	return granted >= GRANTS_LEAST && waited * OFTEN_PARTS >= periods;
}

/*
 * Tells whether readers wait by chance: while none waited they asked for no more than they do on
 * the whole.
 */
static bool wait_by_chance(const struct appetite *appetite)
{
	double expected = appetite->sum / appetite->periods * appetite->calm_periods;
	double variance = expected * fmax(1 + appetite->spread, SPREAD_LEAST);

	return expected >= GRANTS_LEAST &&
	       appetite->calm_sum <= expected + CALM_SIGMAS * sqrt(variance);
}

/*
 * Tells whether readers may want more that do not wait all the time, or whose number changes.
 * Readers that have waited for @hungry periods may yet be seen to ask again.
 */
static bool may_be_hungry(const struct appetite *appetite, const struct appetite_facts *facts,
			  uint32_t hungry)
{
	if (hungry && hungry <= (uint32_t)HUNGRY_PERIODS << appetite->vain)
		return false;
	if (hungry < APPETITE_PERIODS - 1 && wait_by_chance(appetite))
		return false;
	return (!appetite->rest || (hungry && !facts->contended)) &&
	       wait_often(appetite, BEHIND_PERIODS);
}

/* Tells whether at least half of the leaves that came were made use of. */
static bool was_of_use(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double leaves = (appetite->grown_from + facts->held) / 2.0;

	return last(appetite, appetite->grown_periods) >=
	       leaves * facts->leaf * appetite->grown_periods;
}

static void grow(struct appetite *appetite, const struct appetite_facts *facts, uint32_t wanted)
{
	appetite->grown_from = facts->held;
	appetite->grown_periods = 0;
	appetite->wanted = wanted;
}

/*
 * Returns how many leaves more bring as many tokens in a probe as can be told from chance, but no
 * more than are held.
 */
static uint32_t seen_by(const struct appetite_facts *facts)
{
	double leaves = GRANTS_LEAST / (facts->leaf * PROBE_PERIODS);

	return leaves < facts->held ? (uint32_t)leaves : facts->held;
}

/*
 * Wants more where it is not sure that readers are hungry: a little at first, and more each time.
 * Where they wait for long, or no host is short, it is twice as much at once.
 */
static void probe(struct appetite *appetite, const struct appetite_facts *facts)
{
	bool is_long = facts->waiting >= facts->held * facts->leaf * LONG_PERIODS;
	uint32_t more;

	if (appetite->steps < STEPS_LONG && (is_long || !facts->contended))
		appetite->steps = STEPS_LONG;
	more = facts->held / BEHIND_PARTS << appetite->steps;
	if (more < seen_by(facts))
		more = seen_by(facts);
	grow(appetite, facts, facts->held + more + 1);
	if (appetite->steps < STEPS_MAX)
		appetite->steps++;
}

/*
 * Ends a probe. The tokens that were asked for meanwhile are what readers want, if that is more and
 * was not in @vain: then chance had begun it.
 */
static void end_probe(struct appetite *appetite, bool vain)
{
	double asked = last(appetite, appetite->grown_periods);
	double mean = appetite->sum / appetite->periods * appetite->grown_periods;

	if (!vain && asked * MORE_PARTS >= mean * (MORE_PARTS + 1))
		set_mean(appetite, asked, appetite->grown_periods);
	appetite->rest = vain ? (uint32_t)REST_PERIODS << appetite->vain : 0;
	if (!vain)
		appetite->vain = 0;
	else if (appetite->vain < VAIN_MAX)
		appetite->vain++;
	appetite->wanted = 0;
	appetite->steps = 0;
}

/* Tells whether a host got at least half of what it wanted more: else it cannot tell yet. */
static bool has_grown(const struct appetite *appetite, const struct appetite_facts *facts)
{
	return facts->held >= (appetite->grown_from + appetite->wanted) / 2;
}

static void note_probe(struct appetite *appetite, const struct appetite_facts *facts)
{
	double expected = facts->held * facts->leaf * appetite->grown_periods;
	bool often = wait_often(appetite, HUNGRY_PERIODS), told, of_use;

	/* Readers that waited all the time used all that came, but for the next token. */
	of_use = was_of_use(appetite, facts) || hungry_periods(appetite) >= appetite->grown_periods;
	told = appetite->grown_periods >= PROBE_PERIODS &&
	       (expected >= GRANTS_LEAST || appetite->grown_periods >= PROBE_MOST);
	if (told && of_use && often && expected >= GRANTS_LEAST)
		probe(appetite, facts);
	else if (told)
		end_probe(appetite, !of_use);
	else if (!has_grown(appetite, facts) && !often)
		appetite->wanted = appetite->steps = 0;
}

static void note_hunger(struct appetite *appetite, const struct appetite_facts *facts)
{
	uint32_t hungry = hungry_periods(appetite);

	if (!appetite->wanted) {
		if (!facts->held)
			return;
		if (ask_again(appetite, hungry, (uint32_t)HUNGRY_PERIODS << appetite->vain))
			grow(appetite, facts, facts->held + (facts->held >> appetite->vain));
		else if (may_be_hungry(appetite, facts, hungry))
			probe(appetite, facts);
		return;
	}
	appetite->grown_periods += has_grown(appetite, facts);
	if (appetite->steps && !ask_again(appetite, hungry, HUNGRY_PERIODS)) {
		note_probe(appetite, facts);
		return;
	}
	if (hungry && appetite->grown_periods < HUNGRY_PERIODS)
		return;
	appetite->steps = 0;
	if (hungry && was_of_use(appetite, facts)) {
		appetite->vain = 0;
		grow(appetite, facts, facts->held * GROWTH);
		return;
	}
	if (appetite->grown_periods && appetite->vain < VAIN_MAX)
		appetite->vain++;
	appetite->rest = SHORT_REST_PERIODS;
	appetite->wanted = 0;
	appetite->grown_periods = 0;
}

/* Notes that readers have asked for so many @tokens, and how long after the last ones. */
static void note_readers(struct appetite *appetite, double tokens)
{
	float off = fminf(appetite->gap, GAP_MOST) - appetite->gap_mean;

	if (appetite->gaps)
		appetite->gap_mean += off / appetite->gaps;
	/* A long break is not even, whatever the others are; nor is one that several tokens end. */
	if (appetite->gap > GAP_MOST || tokens > 1)
		off = GAP_MOST;
	if (appetite->gaps > 1)
		appetite->gap_off += (off * off - appetite->gap_off) / appetite->gaps;
	if (appetite->gaps < GAPS_MOST)
		appetite->gaps++;
	if (appetite->idle >= QUICK_PERIODS)
		appetite->quick = 0;
	else if (appetite->quick < QUICK_LEAST)
		appetite->quick++;
	appetite->gap = appetite->idle = 0;
}

void appetite_begin(struct appetite *appetite, uint64_t periods)
{
	uint32_t impatient = appetite->impatient;

	impatient -= impatient < periods ? impatient : (uint32_t)periods;
	*appetite = (struct appetite){
		.gap = appetite->gap + (float)periods,
		.idle = appetite->idle + (float)periods,
		.gap_mean = appetite->gap_mean,
		.gap_off = appetite->gap_off,
		.gaps = appetite->gaps,
		.quick = appetite->quick,
		.impatient = impatient,
	};
}

static void note_period(struct appetite *appetite, const struct appetite_facts *facts)
{
	appetite->period = (appetite->period + 1) % APPETITE_PERIODS;
	appetite->asked[appetite->period] = (float)facts->asked;
	appetite->waited[appetite->period] = facts->waited ? 1 : (float)facts->waited_part;
	appetite->waiting[appetite->period] = (float)facts->waiting;
	appetite->rest -= appetite->rest > 0;
	appetite->gap++;
	appetite->idle += facts->waiting <= 0;
	appetite->impatient -= appetite->impatient > 0;
	if (facts->refused)
		appetite->impatient = MEAN_PERIODS;
	note_mean(appetite, facts);
	note_spread(appetite);
	note_silence(appetite, facts->asked <= 0 && facts->waiting <= 0);
	note_hunger(appetite, facts);
}

void appetite_note(struct appetite *appetite, const struct appetite_facts *facts, uint64_t periods)
{
	uint64_t count = periods < APPETITE_PERIODS ? periods : APPETITE_PERIODS;

	/* The rare ones of before tell nothing of a reader that asks again. */
	if (facts->asked > 0 && appetite->gap_mean > RARE_PERIODS &&
	    appetite->quick < QUICK_LEAST && appetite->idle < QUICK_PERIODS)
		appetite_begin(appetite, 0);
	for (uint64_t i = 0; i < count; i++)
		note_period(appetite, facts);
	if (facts->asked <= 0)
		return;
	note_readers(appetite, facts->asked * (double)count);
	note_batch(appetite, facts->asked * (double)count, count);
}

double appetite_need(const struct appetite *appetite, const struct appetite_facts *facts)
{
	double periods = appetite->periods < HUNGRY_PERIODS ? HUNGRY_PERIODS : appetite->periods;
	double tokens = fmin(appetite->between, appetite->lift * appetite->sum / periods);

	/* A mean that has just begun is of a few tokens and a short time: the breaks tell more. */
	if (appetite_is_rare(appetite) && appetite->periods < MEAN_PERIODS &&
	    appetite->gap_mean > 0)
		tokens = fmin(tokens,
			      appetite->batch * (1 + 1.0 / EARLY_PARTS) / appetite->gap_mean);
	if (facts->long_waiting || hungry_periods(appetite) >= BACKLOG_PERIODS)
		tokens += facts->waiting / DRAIN_PERIODS;
	return tokens / facts->leaf;
}

uint32_t appetite_hunger(const struct appetite *appetite)
{
	return appetite->wanted;
}

double appetite_chance(const struct appetite *appetite)
{
	return fmin(fmax(1 + appetite->spread, 0), 1);
}

bool appetite_is_rare(const struct appetite *appetite)
{
	bool quick = appetite->quick >= QUICK_LEAST && appetite->idle < QUICK_PERIODS;
	bool apart = appetite->gap_mean > RARE_PERIODS && !quick;
	bool silent = appetite->gaps && appetite->gap > SILENT_GAPS * RARE_PERIODS;

	return (apart || silent) && !appetite->impatient;
}

bool appetite_is_even(const struct appetite *appetite)
{
	float mean = appetite->gap_mean, most = mean / EVEN_PARTS;
	bool late = appetite->gap > mean + mean / LATE_PARTS;

	return appetite->gaps > EVEN_LEAST && appetite->gap_off <= most * most && !late;
}

bool appetite_is_young(const struct appetite *appetite)
{
	return appetite->periods < APPETITE_PERIODS;
}
