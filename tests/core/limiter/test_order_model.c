/*
 * test_order_model - core/limiter/order.c beside a model that is as plain as the text of order.h.
 *
 * Siblings of random weights, classes and minima come, go, are granted takes and change their place
 * at random. The model keeps tags and times as numbers with a fraction, and looks at all siblings
 * each time. Of two minima that are due at one time either may be the first. In every second one
 * a waiter for TAKE_MAX tokens waits all the time, whether it is put forward or not.
 */
#include "tests/core/stage.h"

#include "core/limiter/order.h"

#include <math.h>

enum { SIBLINGS = 12, STEPS = 4000, SEEDS = 50, TAKE_MAX = 40, PAUSE_MS = 300, LONG_MS = 5000 };

/* With them a token is a whole number of the units of a tag. */
static const uint32_t WEIGHTS[] = {1, 50, 100, 200, 10000};

/* Less than any tag or time is apart from another that is not the same. */
static const double NEAR = 1e-6;

struct model_sibling {
	double weight, min; /* tokens/s; 0: none */
	unsigned int class;
	double start, finish;
	bool forward;
	double due_s, granted_s; /* R by the clock of minima, and the last grant under it */
	bool waits;
	uint64_t ticket;
};

struct model_class {
	double time, last, busy_s;
};

struct model {
	struct model_class classes[PRIORITIES];
	struct model_sibling siblings[SIBLINGS];
	double lag_s; /* of the clock of minima */
};

struct play {
	struct order *order;
	struct sibling siblings[SIBLINGS];
	struct waiter waiters[SIBLINGS][2]; /* put forward in turn */
	struct model model;
	uint64_t random, ticket, now_ns;
};

static uint64_t draw(struct play *play, uint64_t below)
{
	play->random = play->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (play->random >> 33) % below;
}

static double seconds(uint64_t ns)
{
	return (double)ns / NSEC_PER_SEC;
}

static void model_busy(struct model *model, unsigned int number, double now_s)
{
	struct model_class *class = &model->classes[number];
	bool forward = false;

	for (int i = 0; i < SIBLINGS; i++)
		forward |= model->siblings[i].forward && model->siblings[i].class == number;
	if (!forward && class->busy_s < now_s - NEAR)
		class->time = fmax(class->time, class->last);
	class->busy_s = now_s;
}

static double model_start(const struct model *model, const struct model_sibling *s)
{
	return s->forward ? s->start : fmax(s->finish, model->classes[s->class].time);
}

/* Returns when the min of @s is due if it is put forward at @now_s, by the clock of minima. */
static double model_due(const struct model *model, const struct model_sibling *s, double now_s)
{
	double begin_s = now_s - model->lag_s;

	if (s->forward || s->granted_s == now_s)
		return s->due_s;
	for (int i = 0; i < SIBLINGS; i++) {
		const struct model_sibling *other = &model->siblings[i];

		if (other->forward && other->min > 0)
			begin_s = fmin(begin_s, other->due_s);
	}
	return fmax(s->due_s, begin_s);
}

/* Counts a grant for the min of @s, if it is due. Minima are a second and a take of each behind. */
static void model_count(struct model *model, struct model_sibling *s, double tokens, double now_s)
{
	double due_s = model_due(model, s, now_s), behind_s = now_s - model->lag_s - due_s;
	double takes = s->waits ? 0 : tokens, minima = s->waits ? 0 : s->min;

	if (behind_s < -1e-9)
		return;
	for (int i = 0; i < SIBLINGS; i++) {
		const struct model_sibling *other = &model->siblings[i];

		if (other->waits && other->min > 0) {
			takes += TAKE_MAX;
			minima += other->min;
		}
	}
	model->lag_s += fmax(behind_s - 1 - takes / minima, 0);
	s->due_s = due_s + tokens / s->min;
	s->granted_s = now_s;
}

static void model_enter(struct model *model, struct model_sibling *s, uint64_t ticket, double now_s)
{
	model_busy(model, s->class, now_s);
	s->start = model_start(model, s);
	s->due_s = model_due(model, s, now_s);
	s->forward = true;
	s->ticket = ticket;
}

static void model_grant(struct model *model, struct model_sibling *s, double tokens, double now_s)
{
	struct model_class *class = &model->classes[s->class];
	double least;

	if (s->min > 0)
		model_count(model, s, tokens, now_s);
	model_busy(model, s->class, now_s);
	least = s->start = model_start(model, s);
	for (int i = 0; i < SIBLINGS; i++) {
		const struct model_sibling *other = &model->siblings[i];

		if (other->forward && other->class == s->class)
			least = fmin(least, other->start);
	}
	class->time = fmax(class->time, least);
	s->forward = false;
	s->finish = s->start + tokens / s->weight;
	if (s->min > 0)
		s->finish = fmax(s->start,
				 fmin(s->finish, class->time + (s->min + 2 * tokens) / s->weight));
	class->last = fmax(class->last, s->finish);
}

/* Tells whether @s, which is put forward, may be the first at @now_s. */
static bool model_may_be_first(const struct model *model, const struct model_sibling *s,
			       double now_s)
{
	double clock_s = now_s - model->lag_s;
	bool is_due = s->min > 0 && s->due_s <= clock_s + NEAR;

	for (int i = 0; i < SIBLINGS; i++) {
		const struct model_sibling *o = &model->siblings[i];

		if (!o->forward || o == s)
			continue;
		if (o->min > 0 && o->due_s <= clock_s - NEAR &&
		    (!is_due || o->due_s < s->due_s - NEAR))
			return false;
		if (is_due || (o->min > 0 && o->due_s <= clock_s + NEAR))
			continue;
		if (o->class > s->class)
			return false;
		if (o->class != s->class || o->start > s->start + NEAR)
			continue;
		if (o->start < s->start - NEAR || o->ticket < s->ticket)
			return false;
	}
	return true;
}

static void settle(struct play *play, int i)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct model_sibling *s = &play->model.siblings[i];

	settings.weight = WEIGHTS[draw(play, sizeof(WEIGHTS) / sizeof(*WEIGHTS))];
	settings.priority = (uint32_t)draw(play, 3);
	settings.min = (struct rate){.amount = draw(play, 3) ? 0 : 1 + draw(play, 20),
				     .period_ns = NSEC_PER_SEC};
	assert_int_equal(order_prepare(&play->siblings[i], &settings), 0);
	/* The same place again is no change. */
	if (s->weight == settings.weight && s->class == settings.priority &&
	    s->min == (double)settings.min.amount)
		return;
	order_follow(play->order, &play->siblings[i], &settings, s->waits ? TAKE_MAX : 0, s->waits);
	*s = (struct model_sibling){
		.weight = settings.weight,
		.class = settings.priority,
		.min = (double)settings.min.amount,
		.finish = 0,
		.granted_s = -1,
		.waits = s->waits,
	};
}

static void enter(struct play *play, int i)
{
	struct waiter *waiter = &play->waiters[i][++play->ticket % 2];

	/* The one that is put forward stays, or another takes its place. */
	if (waiter != play->siblings[i].head)
		waiter->ticket = play->ticket;
	order_enter(play->order, &play->siblings[i], waiter, play->now_ns);
	model_enter(&play->model, &play->model.siblings[i], waiter->ticket, seconds(play->now_ns));
}

static void grant_first(struct play *play)
{
	const struct waiter *first = order_first(play->order, play->now_ns);
	uint64_t tokens = 1 + draw(play, TAKE_MAX);
	struct model_sibling *s;
	bool any = false;
	int i;

	for (i = 0; i < SIBLINGS; i++)
		any |= play->model.siblings[i].forward;
	assert_int_equal(any, first != NULL);
	if (!first)
		return;
	i = (int)(first - play->waiters[0]) / 2;
	s = &play->model.siblings[i];
	assert_true(s->forward);
	assert_true(model_may_be_first(&play->model, s, seconds(play->now_ns)));
	(void)order_grant(play->order, &play->siblings[i], tokens, play->now_ns);
	model_grant(&play->model, s, (double)tokens, seconds(play->now_ns));
	/* Most siblings have another waiter. */
	if (draw(play, 4))
		enter(play, i);
}

static void step(struct play *play)
{
	int i = (int)draw(play, SIBLINGS);

	switch (draw(play, 12)) {
	case 0:
		settle(play, i);
		break;
	case 1:
		order_leave(play->order, &play->siblings[i]);
		play->model.siblings[i].start = 0;
		play->model.siblings[i].forward = false;
		break;
	case 2:
	case 3:
		play->now_ns += draw(play, draw(play, 8) ? PAUSE_MS : LONG_MS) * MS;
		break;
	case 4:
	case 5:
		enter(play, i);
		break;
	default:
		grant_first(play);
		break;
	}
}

static void test_the_order_is_that_of_a_plain_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct play play = {.order = order_new(), .random = seed, .now_ns = NSEC_PER_SEC};

		for (int i = 0; i < SIBLINGS; i++)
			settle(&play, i);
		for (int i = 0; i < SIBLINGS; i += 2) {
			order_count(play.order, &play.siblings[i], TAKE_MAX, TAKE_MAX, 1);
			play.model.siblings[i].waits = true;
		}
		for (int n = 0; n < STEPS; n++)
			step(&play);
		for (int i = 0; i < SIBLINGS; i++) {
			order_leave(play.order, &play.siblings[i]);
			order_free_sibling(&play.siblings[i]);
		}
		free(play.order);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_order_is_that_of_a_plain_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
