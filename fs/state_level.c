/* state_level - what is in the buckets, see state.h. */
#include "fs/state_inside.h"

#include <stdatomic.h>

static bool is_rate_of(const struct unit *unit, const struct bucket *bucket)
{
	return unit->amount == bucket->rate.amount && unit->period_ns == bucket->rate.period_ns &&
	       unit->decimals == bucket->rate.decimals;
}

static void write_level(struct unit *unit, const struct bucket *bucket)
{
	uint32_t other = !unit->current;
	bool same = is_rate_of(unit, bucket);

	if (!same)
		*(volatile uint64_t *)&unit->period_ns = 0; /* no rate has that */
	unit->copies[other] = (struct level_copy){
		bucket->level,	 bucket->part,	    bucket->released,
		bucket->grid_ns, bucket->filled_ns, bucket->awaited,
	};
	atomic_store_explicit(&unit->current, other, memory_order_release);
	if (same)
		return;
	unit->amount = bucket->rate.amount;
	unit->decimals = bucket->rate.decimals;
	atomic_signal_fence(memory_order_release);
	*(volatile uint64_t *)&unit->period_ns = bucket->rate.period_ns;
}

static void read_level(const struct unit *unit, struct bucket *bucket)
{
	const struct level_copy *copy = &unit->copies[unit->current];

	/* Another rate by now, or no right to it: a debt is one all the same. */
	if (!is_rate_of(unit, bucket) && copy->level < 0)
		bucket->level = copy->level;
	if (!is_rate_of(unit, bucket))
		return;
	bucket->level = copy->level;
	bucket->part = copy->part;
	bucket->released = copy->released;
	bucket->grid_ns = copy->grid_ns;
	bucket->filled_ns = copy->filled_ns;
	bucket->awaited = copy->awaited;
}

/* Frees the units of limiters that are gone. */
static void sweep_units(struct state *state, const struct tree *tree)
{
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
static uint32_t new_unit(struct state *state, const struct tree *tree, uint32_t id, uint32_t limit)
{
	struct header *header = state->header;
	uint32_t i;

	if (!state->free_units && header->unit_count >= state->units_until)
		sweep_units(state, tree);
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

static void write_limiter(struct state *state, const struct tree *tree, struct limiter *limiter)
{
	struct unit *unit;

	if (!limiter->kept)
		limiter->kept = new_unit(state, tree, limiter->id, 0);
	if (!limiter->kept)
		return;
	unit = &state->units[limiter->kept];
	unit->granted = limiter->counters[COUNTER_GRANTED];
	unit->served = limiter->counters[COUNTER_SERVED];
	unit->charged = limiter->counters[COUNTER_CHARGED];
	unit->returned = limiter->counters[COUNTER_RETURNED];
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		write_level(unit, &limiter->buckets[i]);
		if (!unit->next && i + 1 < limiter->bucket_count)
			unit->next = new_unit(state, tree, limiter->id, i + 1);
		if (!unit->next)
			return;
		unit = &state->units[unit->next];
	}
}

void state_write_levels(struct state *state, const struct tree *tree, struct limiter *limiter)
{
	if (limiter->bucket_count)
		write_limiter(state, tree, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		state_write_levels(state, tree, l);
}
void state_taken(struct state *state, struct daemon *daemon, struct limiter *limiter)
{
	if (!state->kept)
		return;
	for (; limiter->parent; limiter = limiter->parent) {
		if (!limiter->is_key && !limiter->partition)
			write_limiter(state, &daemon->engine.tree, limiter);
	}
}

static void read_unit(struct state *state, uint32_t i, struct limiter *limiter)
{
	const struct unit *unit = &state->units[i];

	if (unit->limit < limiter->bucket_count)
		read_level(unit, &limiter->buckets[unit->limit]);
	if (unit->limit)
		return;
	limiter->kept = i;
	limiter->counters[COUNTER_GRANTED] = unit->granted;
	limiter->counters[COUNTER_SERVED] = unit->served;
	limiter->counters[COUNTER_CHARGED] = unit->charged;
	limiter->counters[COUNTER_RETURNED] = unit->returned;
}

void state_restore(struct state *state, struct daemon *daemon)
{
	struct header *header = state->header;
	struct tree *tree = &daemon->engine.tree;

	state->units_until = header->unit_count > FIRST_UNITS ? header->unit_count : FIRST_UNITS;
	for (uint32_t i = 1; i < header->unit_count; i++) {
		struct limiter *limiter = state->units[i].id
						  ? tree_find_id(tree, state->units[i].id)
						  : NULL;

		if (limiter) {
			read_unit(state, i, limiter);
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
	daemon->engine.schedule.last_key = header->last_key;
	daemon->engine.began_ns = header->engine_began_ns;
	daemon->began.tv_sec = header->began_s;
}
