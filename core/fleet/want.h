/*
 * want - what one child of a limiter asks for on this host, from period to period of
 * DEMAND_PERIOD_NS. A pure function of what was counted. Amounts are tokens a period.
 *
 * A child wants what it asked for, on average, since that last changed. The last two seconds and
 * the last ten are compared with that average, and only what chance would hardly do begins another.
 *
 * A child whose readers wait for the limiter without a break for half a second is hungry: it wants
 * as much as there is. One that waits though lower classes are granted tokens on the host is not:
 * it has what it wants. Hunger that was stilled shows that the readers are light: they come by
 * themselves, and had to wait for each other. From then on the child wants what it asks for, and
 * readers that have waited for two seconds are served in two more. It is hungry again when it asks
 * for more than it did by no chance, or has waited for ten seconds.
 */
#ifndef RATEFS_CORE_WANT_H
#define RATEFS_CORE_WANT_H

#include <stdbool.h>
#include <stdint.h>

/* One child's, or that of a limiter's own readers: at first all 0. */
struct want {
	double asked;	  /* the mean of late */
	double slow;	  /* ... and of some time */
	double mean;	  /* the mean since it changed last ... */
	uint32_t periods; /* ... so long ago */
	double lively;	  /* the mean when something was asked for last ... */
	uint32_t silent;  /* ... so many periods ago, with nothing waiting since */
	double waits;	  /* the part of the time in which a waiter was put forward */
	double left;	  /* lower classes were granted, since it came to wait */
	double granted;	  /* in the last */
	double waiting;	  /* tokens that were waited for at the end of it ... */
	uint64_t tokens;  /* ... and those granted or refused, as they were counted */
	uint32_t hungry;  /* periods in which it put a waiter forward, less those without one */
	uint32_t waited;  /* ... since there was one without */
	bool is_light;	  /* hunger of its readers was stilled, and no more is asked for since */
};

/* The end of a number of periods. */
struct want_facts {
	uint64_t tokens;  /* granted or refused until now */
	uint64_t waiting; /* tokens that are waited for */
	bool is_forward;  /* one of its waiters waits for the limiter */
	uint64_t periods; /* at least 1 */
};

/* Begins to count: nothing is known yet. */
void want_begin(struct want *want, const struct want_facts *facts);

void want_note(struct want *want, const struct want_facts *facts);

/* Notes that lower classes were granted @left in the last period. */
void want_note_left(struct want *want, double left);

bool want_is_hungry(const struct want *want);

/* Returns what a child asks for; one that is not hungry also for what waits for long. */
double want_asked(const struct want *want);

/*
 * Returns how much more lets its readers wait less: none for a child whose readers do not wait, and
 * as much as it asks for where they wait for a third of the time.
 */
double want_slack(const struct want *want);

#endif
