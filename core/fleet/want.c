/* want - what one child of a limiter asks for on this host, see want.h. */
#include "core/fleet/want.h"

#include <math.h>

enum {
	MEAN_PERIODS = 20,     /* of what was asked for of late, ... */
	SLOW_PERIODS = 100,    /* ... in some time ... */
	LONG_PERIODS = 300,    /* ... and since that changed last */
	PATIENT_PERIODS = 100, /* of waiting without a break make also light readers hungry */
	HUNGRY_PERIODS = 5,    /* of waiting without a break */
	HUNGRY_MOST = 10,      /* as many periods without a waiter end it */
	BACKLOG_PERIODS = 20,  /* of waiting without a break: then a backlog counts ... */
	DRAIN_PERIODS = 20,    /* ... and is worked off in so many */
};

/* More slack goes with such a part of the time in which readers wait. */
static const double SLACK_OF_WAITS = 3;

/* Of a child's tokens: lower classes got such a part. */
static const double LEFT_LEAST = 0.02;

/* Chance goes so far, see appetite.h; and so many tokens that were expected do not come. */
enum { SIGMAS = 4, SILENT_TOKENS = 10 };

/* Tells whether the @recent mean, of @periods, differs from the mean by more than chance. */
static bool is_other(const struct want *want, double recent, uint32_t periods)
{
	double expected = want->mean * periods;

	return want->periods >= periods &&
	       fabs(recent * periods - expected) > SIGMAS * sqrt(expected) + 1;
}

/*
 * Notes that @asked were asked for in a period. The mean begins anew where that is no chance: of
 * few tokens a second two seconds show too little.
 */
static void note_mean(struct want *want, double asked)
{
	want->asked += (asked - want->asked) / MEAN_PERIODS;
	want->slow += (asked - want->slow) / SLOW_PERIODS;
	want->periods += want->periods < LONG_PERIODS;
	want->mean += (asked - want->mean) / want->periods;
	if (!is_other(want, want->asked, MEAN_PERIODS) && !is_other(want, want->slow, SLOW_PERIODS))
		return;
	if (want->asked > want->mean)
		want->is_light = false;
	want->mean = want->asked;
	want->slow = want->asked;
	want->periods = MEAN_PERIODS / 2;
}

/* Notes whether a child is @silent: it asks for nothing, and nothing waits in it. */
static void note_silence(struct want *want, bool silent, uint64_t periods)
{
	if (!silent) {
		want->silent = 0;
		want->lively = want->mean;
		return;
	}
	want->silent += want->silent < LONG_PERIODS ? (uint32_t)periods : 0;
	if (want->lively * want->silent < SILENT_TOKENS)
		return;
	want->asked = want->slow = want->mean = want->lively = 0;
	want->periods = MEAN_PERIODS / 2;
}

/* Notes whether a waiter is put forward. Hunger that ends so has been stilled. */
static void note_hunger(struct want *want, bool is_forward)
{
	bool was_hungry = want_is_hungry(want);

	if (want->periods)
		want->waits += (is_forward - want->waits) / want->periods;
	if (is_forward) {
		want->hungry += want->hungry < HUNGRY_MOST;
		want->waited += want->waited < PATIENT_PERIODS;
		return;
	}
	want->hungry -= want->hungry > 0;
	want->waited = 0;
	want->is_light |= was_hungry && !want_is_hungry(want);
}

void want_begin(struct want *want, const struct want_facts *facts)
{
	*want = (struct want){.tokens = facts->tokens, .waiting = (double)facts->waiting};
	note_hunger(want, facts->is_forward);
}

void want_note(struct want *want, const struct want_facts *facts)
{
	double granted = (double)(int64_t)(facts->tokens - want->tokens);
	double waiting = (double)facts->waiting, periods = (double)facts->periods;
	double asked = fmax(granted + waiting - want->waiting, 0) / periods;

	for (uint64_t i = 0; i < facts->periods && i < LONG_PERIODS; i++)
		note_mean(want, asked);
	note_silence(want, asked == 0 && !facts->waiting, facts->periods);
	want->granted = fmax(granted, 0) / periods;
	note_hunger(want, facts->is_forward);
	want->tokens = facts->tokens;
	want->waiting = waiting;
}

/*
 * A child that waits beside lower classes has what it wants: its readers wait for no more than the
 * next token.
 */
void want_note_left(struct want *want, double left)
{
	/* In the period in which it came they may have been granted before. */
	want->left = want->hungry > 1 ? want->left + (left - want->left) / MEAN_PERIODS : 0;
	if (want->hungry < HUNGRY_PERIODS || want->left <= LEFT_LEAST * want->asked)
		return;
	/* If it was hungry before, that has been stilled. */
	want->is_light |= want->hungry > HUNGRY_PERIODS;
	want->hungry = 0;
	want->waited = 0;
}

bool want_is_hungry(const struct want *want)
{
	return want->hungry >= HUNGRY_PERIODS &&
	       (!want->is_light || want->waited >= PATIENT_PERIODS);
}

double want_asked(const struct want *want)
{
	if (want->waited < BACKLOG_PERIODS || want_is_hungry(want))
		return want->mean;
	return want->mean + want->waiting / DRAIN_PERIODS;
}

double want_slack(const struct want *want)
{
	return want->mean * fmin(want->waits * SLACK_OF_WAITS, 1);
}
