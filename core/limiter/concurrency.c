/* concurrency - how many slots a service can use, see concurrency.h. */
#include "core/limiter/concurrency.h"

#include <math.h>

static const double GROWTH = 0.05;	 /* of the expectation: less is none, however certain */
static const double Z = 2;		 /* standard errors: chance does not go so far */
static const double DECISIVE = 0.08;	 /* Z standard errors are no more than this, if it can be */
static const double LOOK = 0.75;	 /* of the number */
static const double WEIGHT = 0.5;	 /* of a look in the expectation */
static const double WEIGHT_SPREAD = 0.2; /* of a round in the deviation */

enum {
	LOOK_EVERY = 16,
	STRANGE_MAX = 2,
	COHORTS_MAX = 4, /* a round has so many times as many round trips as there are slots */
	COUNT_MIN = 4,
};

static void begin_round(struct concurrency *c, uint64_t now_ns)
{
	c->began_ns = now_ns;
	c->count = 0;
	c->sum_ns = 0;
	c->sum_squares = 0;
	c->full = false;
	c->most = 0;
}

void concurrency_tune(struct concurrency *c, const struct slot_limit *setting, uint64_t now_ns)
{
	c->min = setting->min;
	c->max = setting->max;
	c->decrease = setting->decrease / 1e9;
	c->number = c->number < c->min ? c->min : c->number > c->max ? c->max : c->number;
	c->limit = c->number;
	c->looking = false;
	begin_round(c, now_ns);
}

void concurrency_init(struct concurrency *c, const struct slot_limit *setting, uint64_t now_ns)
{
	*c = (struct concurrency){0};
	concurrency_tune(c, setting, now_ns);
}

/* Returns the round trips after which a round decides. */
static uint32_t wanted_count(const struct concurrency *c)
{
	double decisive = 1.5 * Z * Z * c->variance / (DECISIVE * DECISIVE);
	double most = (double)c->limit * (c->settled ? COHORTS_MAX : 1);

	if (decisive > most)
		decisive = most;
	if (decisive < c->limit)
		decisive = c->limit;
	return decisive < COUNT_MIN ? COUNT_MIN : (uint32_t)decisive;
}

static void expect_mean(struct concurrency *c, double mean_ns)
{
	c->expected_ns = c->expected_ns > 0 ? c->expected_ns + WEIGHT * (mean_ns - c->expected_ns)
					    : mean_ns;
}

static void note_spread(struct concurrency *c, double mean_ns)
{
	double variance = c->sum_squares / c->count - mean_ns * mean_ns;

	if (c->count < 2 || mean_ns <= 0 || variance < 0)
		return;
	variance /= mean_ns * mean_ns;
	c->variance += WEIGHT_SPREAD * (variance - c->variance);
}

static void shrink_number(struct concurrency *c, uint32_t least)
{
	uint32_t number = (uint32_t)(c->number * c->decrease);

	number = number < c->min ? c->min : number;
	c->number = number < least ? least : number;
	c->settled = true;
}

/* Begins a round with fewer, if there can be fewer. */
static bool begin_look(struct concurrency *c)
{
	uint32_t limit = (uint32_t)(c->number * LOOK);

	c->rounds = 0;
	c->strange = 0;
	if (limit < c->min)
		limit = c->min;
	if (limit >= c->number)
		limit = c->number > c->min ? c->number - 1 : c->number;
	c->looking = limit < c->number;
	c->limit = limit;
	return c->looking;
}

/* Draws the conclusion of a round at the full number. */
static void decide_round(struct concurrency *c, double mean_ns)
{
	double chance = Z * sqrt(1.5 * c->variance / c->count);
	double margin_ns = c->expected_ns * (chance > GROWTH ? chance : GROWTH);
	bool grown = mean_ns > c->expected_ns + margin_ns;
	bool shorter = mean_ns < c->expected_ns - margin_ns;

	c->rounds += c->full;
	c->strange = grown || shorter ? c->strange + 1 : 0;
	if (grown)
		shrink_number(c, c->full ? c->min : c->most < c->number ? c->most : c->number);
	else if (!c->full)
		expect_mean(c, mean_ns);
	else if (!shorter && c->number < c->max)
		c->number++;
}

static void end_round(struct concurrency *c, uint64_t now_ns)
{
	double mean_ns = c->sum_ns / c->count;
	bool first = c->expected_ns <= 0;

	note_spread(c, mean_ns);
	if (c->looking || first || c->number == c->min)
		expect_mean(c, mean_ns);
	if (c->looking)
		c->looking = false;
	else if (first && c->full && c->number < c->max)
		c->number++;
	else if (!first)
		decide_round(c, mean_ns);
	c->limit = c->number;
	if ((c->strange >= STRANGE_MAX || c->rounds >= LOOK_EVERY) && begin_look(c))
		now_ns = NEVER_NS;
	begin_round(c, now_ns);
}

void concurrency_opened(struct concurrency *c, uint32_t used, uint64_t now_ns)
{
	c->most = used > c->most ? used : c->most;
	/* Slots opened while there was room yet say nothing of full use. */
	if (used >= c->limit && !c->full && c->began_ns != NEVER_NS) {
		begin_round(c, now_ns);
		c->full = true;
		c->most = used;
	}
}

void concurrency_closed(struct concurrency *c, uint64_t opened_ns, uint32_t used, uint64_t now_ns)
{
	double held_ns = (double)(now_ns - opened_ns);

	if (c->began_ns == NEVER_NS && used < c->limit)
		begin_round(c, now_ns);
	if (c->began_ns == NEVER_NS || opened_ns < c->began_ns)
		return;
	c->count++;
	c->sum_ns += held_ns;
	c->sum_squares += held_ns * held_ns;
	if (c->count >= wanted_count(c))
		end_round(c, now_ns);
}

void concurrency_throttled(struct concurrency *c, uint64_t now_ns)
{
	if (c->decreased_ns && (double)(now_ns - c->decreased_ns) < c->expected_ns)
		return;
	c->decreased_ns = now_ns;
	shrink_number(c, c->min);
	/* A limit cut short for a look may be less still; a throttling never raises it. */
	c->looking = c->looking && c->limit < c->number;
	if (!c->looking)
		c->limit = c->number;
	if (!c->looking || c->began_ns != NEVER_NS)
		begin_round(c, now_ns);
}
