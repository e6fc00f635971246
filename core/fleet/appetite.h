/*
 * appetite - how many leaves of a limiter a host wants, from what its readers asked for.
 *
 * Readers that come by themselves show how many tokens they want a second, and that is what the
 * host wants, with some slack. The rate is the mean of all that was asked for since it last
 * changed: the last second and the last five are compared with that mean, and only what chance
 * would hardly do begins a new one. It ends when ten tokens that it expected have not come. So the
 * need of a steady or a random load stays, and a change is seen within a second.
 *
 * Between tokens that are far apart the mean falls, and each token raises it. A need that followed
 * would have leaves go and come back with each token: they would lie idle on the way, and take a
 * part of what is saved up along. So the need is what lies halfway, the mean less half of the last
 * tokens, until the next are late; from then on it falls as the mean does. Of rare readers, see
 * below, it is no more than what came last in the mean break, and a sixteenth, until the mean is of
 * half a minute: one that has just begun is of one token in half a second.
 *
 * A reader that asks again as soon as it was served shows nothing but that it waits. Such readers
 * are told by their number, which stays the same though some are served. A host whose readers wait
 * so for half a second is hungry: it wants twice as much. If half of that is made use of, and they
 * still wait, it wants eight times as much, and so on. If not, that was in vain: the next time
 * readers have to wait for twice as long, and half as much more is wanted. Where other readers wait
 * for 1.8 s, or one of them for 0.9 s, as much is wanted as serves all that wait in two seconds
 * more.
 *
 * A reader that works between tokens waits for a part of the time only, and so do readers that
 * come by themselves: they are told apart by a probe. Where readers waited for a fifth of the last
 * second and a half a little more is wanted, but so much that it can be told from chance; twice as
 * much if they wait for long, or no host is short. If at least half of that is asked for, and they
 * still wait so often, more follows, and so on; the tokens that were asked for meanwhile are what
 * they want. Where few tokens come that may be chance: then nothing more follows but from what
 * they are seen to want. If not, it was in vain and shows nothing, and the next probe comes half a
 * minute later, then a minute, then two.
 *
 * Readers that come by themselves come as often while others wait as while none does. A reader that
 * asks again once it was served comes while none waits, and the less it is held up, the more often;
 * several that ask together come at the beginning of their wait, which counts as none
 * (HOLDING_CALM_NS). So the tokens that are asked for while none waits, by that time, are what
 * readers would ask for if they never waited. Where that is no more than the mean, but for chance,
 * they wait by chance, and no probe begins, until they have waited for nearly 5 s without a break.
 *
 * Where readers are rare, leaves for the next one would mostly lie idle (portion.h). They are rare
 * if they come more than 5 s apart, as the mean of the last sixteen breaks, or if none has come for
 * 15 s. The first does not hold while each comes within 2.5 s of one that was served, as a reader
 * does that asks again: from the third in a row until one is late. With each of these three another
 * mean begins: rare readers before it tell nothing of that one. Readers that do not wait are not
 * rare for half a minute: they have a token only if it is there. When readers came is remembered
 * while the host has no use of the limiter. Readers of one token each that come evenly, five or
 * more, are another matter: the token of the next one is saved up just when it comes.
 *
 * Readers who come at random need slack beyond that (portion.h). The variance of the tokens that
 * they ask for in a second tells them from steady ones: of these it is far less than the mean, of
 * those that come independently of each other it is the mean (Poisson).
 */
#ifndef RATEFS_CORE_APPETITE_H
#define RATEFS_CORE_APPETITE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	APPETITE_PERIODS = 50, /* of DEMAND_PERIOD_NS, that are remembered */
	APPETITE_SECOND = 10,  /* of them */
};

/* All tokens are of the limit that needs most leaves. There is one for each limiter of a host. */
struct appetite {
	float asked[APPETITE_PERIODS];	 /* tokens, in each period */
	float waiting[APPETITE_PERIODS]; /* tokens that were waited for at its end */
	float waited[APPETITE_PERIODS];	 /* the part of it that a reader waited */
	uint32_t period;		 /* the newest's place */
	double sum, periods;		 /* the mean: tokens asked for in so many periods ... */
	double calm_sum, calm_periods;	 /* ... and while no reader waited */
	double between;			 /* the need per period until the next are due ... */
	double lift;			 /* ... and by the mean when they are: 1 to 1.5 */
	float batch;			 /* so many tokens came last */
	double lively;			 /* per period when some were asked for last ... */
	uint32_t silent;		 /* ... so many periods ago, with none waiting since */
	double spread;			 /* of a second's tokens, less 1: variance by mean ... */
	uint8_t seconds;		 /* ... over so many */
	uint32_t wanted;		 /* leaves, of hungry readers; 0: they are not */
	uint32_t grown_from;		 /* leaves that were held before ... */
	uint32_t grown_periods;		 /* ... more was got, so long ago */
	uint8_t vain;			 /* how often that was in vain */
	uint8_t steps;			 /* how often a little more was of use */
	uint32_t rest;			 /* not for so many periods again: that was in vain */
	float gap;			 /* periods since some were asked for last, ... */
	float idle;			 /* ... those at whose end none were waited for, ... */
	float gap_mean;			 /* ... and between such periods on average */
	float gap_off;			 /* ... from which they are so far: mean square */
	uint8_t gaps;			 /* how often some were asked for, at most 16 */
	uint8_t quick;			 /* how often in a row that was soon, at most 3 */
	uint32_t impatient; /* readers that do not wait came: for so many periods yet */
};

/* A period, and its end; or the mean of some. */
struct appetite_facts {
	double asked;	    /* tokens that were asked for */
	double waiting;	    /* tokens that are waited for ... */
	bool long_waiting;  /* ... by a reader for long */
	bool waited;	    /* readers waited all the time, and all that could be granted was */
	double waited_part; /* else: the part of the time, below 1, that a reader waited */
	double calm;	    /* the part of the time in which none waited; 0: not known ... */
	double asked_calm;  /* ... and the tokens of readers that came in it */
	uint32_t held;	    /* leaves */
	double leaf;	    /* tokens a period that a leaf is worth */
	bool contended;	    /* other hosts are short */
	bool refused;	    /* a reader that does not wait found none */
};

/* Begins anew, @periods after the last one. When readers came before that is remembered. */
void appetite_begin(struct appetite *appetite, uint64_t periods);

/*
 * Ends @periods, at least 1, that were alike as far as is known: with more the host was late. The
 * readers that asked in them count as one break that ended. More than APPETITE_PERIODS count as
 * APPETITE_PERIODS.
 */
void appetite_note(struct appetite *appetite, const struct appetite_facts *facts, uint64_t periods);

/* Leaves that what is asked for needs, without slack; those that are wanted because of hunger. */
double appetite_need(const struct appetite *appetite, const struct appetite_facts *facts);
uint32_t appetite_hunger(const struct appetite *appetite);

/*
 * Returns how much readers come at random: the variance of the tokens that are asked for in a
 * second, by their mean. 0: steadily; 1: independently of each other (Poisson), or not known yet.
 */
double appetite_chance(const struct appetite *appetite);

/* Tells whether readers are rare, as above, and all of them wait. */
bool appetite_is_rare(const struct appetite *appetite);

/*
 * Tells whether readers of a token each come evenly, and the next one is not late: the last breaks
 * were no longer than 15 s, and differ by a quarter or less.
 */
bool appetite_is_even(const struct appetite *appetite);

/* Tells whether the mean is of less than 5 s: few tokens, of which the next may halve it. */
bool appetite_is_young(const struct appetite *appetite);

#endif
