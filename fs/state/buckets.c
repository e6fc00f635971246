/* buckets - what is in the buckets, see state.h. */
#include "fs/base/clock.h"
#include "fs/state/inside.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* More than burst, batch, and what a reader waits for. */
#define LEVEL_MOST ((int64_t)TOKENS_MAX * 16)

static bool is_rate_of(const struct unit *unit, const struct bucket *bucket)
{
	return unit->amount == bucket->rate.amount && unit->period_ns == bucket->rate.period_ns &&
	       unit->decimals == bucket->rate.decimals;
}

static struct level_copy level_of(const struct bucket *bucket)
{
	return (struct level_copy){
		bucket->level,	 bucket->part,	    bucket->released,
		bucket->grid_ns, bucket->filled_ns, bucket->awaited,
	};
}

static void write_level(struct unit *unit, const struct bucket *bucket)
{
	uint32_t other = !unit->current;
	bool same = is_rate_of(unit, bucket);

	if (!same)
		*(volatile uint64_t *)&unit->period_ns = 0; /* no rate has that */
	unit->copies[other] = level_of(bucket);
	atomic_store_explicit(&unit->current, other, memory_order_release);
	if (same)
		return;
	unit->amount = bucket->rate.amount;
	unit->decimals = bucket->rate.decimals;
	atomic_signal_fence(memory_order_release);
	*(volatile uint64_t *)&unit->period_ns = bucket->rate.period_ns;
}

/* @bucket has the rate that it had. What cannot be begins empty. */
static void read_level(const struct level_copy *copy, struct bucket *bucket)
{
	uint64_t now_ns = clock_ns();

	if (copy->filled_ns > now_ns || copy->grid_ns > now_ns || copy->part >= bucket->flow.den ||
	    copy->level > LEVEL_MOST)
		return;
	bucket->level = copy->level;
	bucket->part = copy->part;
	bucket->released = copy->released;
	bucket->grid_ns = copy->grid_ns;
	bucket->filled_ns = copy->filled_ns;
	bucket->awaited = copy->awaited;
}

static void write_learnt(struct learnt *learnt, const struct limiter *limiter)
{
	const struct learning *learning = limiter->learning;
	uint32_t other = !learnt->current;

	learnt->copies[other] = (struct learnt_copy){
		.id = limiter->id,
		.adapted = learning->adapted,
		.pause = learning->pause,
		.amount = learning->bucket.rate.amount,
		.decimals = learning->bucket.rate.decimals,
		.level = level_of(&learning->bucket),
	};
	atomic_store_explicit(&learnt->current, other, memory_order_release);
}

/* What was written, and not by a mistake: rates are above 0, and not what is no number. */
static bool is_learnt(const struct learnt_copy *copy)
{
	const struct adapt_state *adapted = &copy->adapted;
	uint64_t now_ns = clock_ns();

	return adapted->rate > 0 && adapted->ceiling >= 0 && adapted->grown_s >= 0 &&
	       adapted->through >= 0 && adapted->through <= 1 && !isnan(adapted->work) &&
	       adapted->counted_ns <= now_ns && adapted->throttled_ns <= now_ns &&
	       adapted->looked_ns <= now_ns && copy->pause.base_ns >= 0 &&
	       copy->pause.base_ns < (double)INT64_MAX && copy->pause.random;
}

static void read_learnt(const struct schedule *schedule, const struct learnt *learnt,
			struct limiter *limiter)
{
	const struct learnt_copy *copy = &learnt->copies[learnt->current & 1];
	struct learning *learning = limiter->learning;

	if (!learning || copy->id != limiter->id || !is_learnt(copy))
		return;
	learning_restore(schedule, limiter, &copy->adapted, &copy->pause);
	if (learning->limited && learning->bucket.rate.amount == copy->amount &&
	    learning->bucket.rate.decimals == copy->decimals)
		read_level(&copy->level, &learning->bucket);
}

/* Frees the units of limiters that are gone. */
static void sweep_units(struct state *state)
{
	const struct tree *tree = &state->server.engine->tree;
	struct header *header = state->header;
	uint32_t freed = 0;

	for (uint32_t i = 1; i < header->unit_count; i++) {
		struct unit *unit = &state->units[i];

		if (unit->id && tree_find_id(tree, unit->id))
			continue;
		if (unit->id) {
			unit->id = 0;
			unit->next = state->free_units;
			state->free_units = i;
			freed++;
		}
	}
	if (freed < header->unit_count / 4 && state->units_until < UNITS_MAX)
		state->units_until *= 2;
}

/* A unit for limit @limit of @id, or 0. */
static uint32_t new_unit(struct state *state, uint32_t id, uint32_t limit)
{
	struct header *header = state->header;
	uint32_t i;

	if (!state->free_units && header->unit_count >= state->units_until)
		sweep_units(state);
	i = state->free_units;
	if (i)
		state->free_units = state->units[i].next;
	else if (header->unit_count < UNITS_MAX)
		i = header->unit_count++;
	if (!i)
		return 0;
	state->units[i] = (struct unit){.limit = limit};
	atomic_signal_fence(memory_order_release);
	*(volatile uint32_t *)&state->units[i].id = id;
	return i;
}

static void write_limiter(struct state *state, struct limiter *limiter)
{
	struct unit *unit;

	if (!limiter->unit)
		limiter->unit = new_unit(state, limiter->id, 0);
	if (!limiter->unit)
		return;
	unit = &state->units[limiter->unit];
	memcpy(unit->counters, limiter->counters, sizeof(limiter->counters));
	if (limiter->learning)
		write_learnt(&state->learnt[limiter->unit], limiter);
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		write_level(unit, &limiter->buckets[i]);
		if (!unit->next && i + 1 < limiter->bucket_count)
			unit->next = new_unit(state, limiter->id, i + 1);
		if (!unit->next)
			return;
		unit = &state->units[unit->next];
	}
}

void state_write_levels(struct state *state, struct limiter *limiter)
{
	if (limiter->bucket_count)
		write_limiter(state, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		state_write_levels(state, l);
}

void state_taken(struct state *state, struct limiter *limiter)
{
	/* A key or a partition that is gone does not keep its limiter: that may be gone, too. */
	if (!state->kept || (limiter->removed && (limiter->is_key || limiter->partition)))
		return;
	for (; limiter->parent; limiter = limiter->parent) {
		if (!limiter->is_key && !limiter->partition && !limiter->removed)
			write_limiter(state, limiter);
	}
}

static void read_unit(struct state *state, const struct schedule *schedule, uint32_t i,
		      struct limiter *limiter)
{
	const struct unit *unit = &state->units[i];
	const struct level_copy *copy = &unit->copies[unit->current];
	struct bucket *bucket = NULL;

	if (unit->limit < limiter->bucket_count)
		bucket = &limiter->buckets[unit->limit];
	if (bucket && is_rate_of(unit, bucket))
		read_level(copy, bucket);
	else if (bucket && copy->level < bucket->level)
		bucket->level = copy->level; /* another rate, or no right to it: a debt is one */
	if (unit->limit)
		return;
	static_assert((int)COUNTER_COUNT <= (int)STATE_COUNTERS, "all counters have room");
	limiter->unit = i;
	memcpy(limiter->counters, unit->counters, sizeof(limiter->counters));
	read_learnt(schedule, &state->learnt[i], limiter);
}

void state_restore(struct state *state)
{
	struct engine *engine = state->server.engine;
	struct header *header = state->header;
	struct tree *tree = &engine->tree;

	state->units_until = header->unit_count > FIRST_UNITS ? header->unit_count : FIRST_UNITS;
	for (uint32_t i = 1; i < header->unit_count; i++) {
		struct limiter *limiter = state->units[i].id
						  ? tree_find_id(tree, state->units[i].id)
						  : NULL;

		if (limiter) {
			read_unit(state, &engine->schedule, i, limiter);
			continue;
		}
		state->units[i].id = 0;
		state->units[i].next = state->free_units;
		state->free_units = i;
	}
	state_number_rows(state);
	header->generation++;
	if (tree->last_id < header->last_id)
		tree->last_id = header->last_id;
	engine->schedule.last_key = header->last_key;
	engine->began_ns = header->engine_began_ns;
	state->server.began->tv_sec = header->began_s;
}
