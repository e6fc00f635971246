/* buckets - what is in the buckets, see state.h. */
#include "fs/base/clock.h"
#include "fs/state/inside.h"

#include "core/limiter/key_units.h"
#include "core/limiter/units.h"
#include "core/limiter/window.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* More than burst, batch, and what a reader waits for. */
#define LEVEL_MOST ((int64_t)TOKENS_MAX * 16)

/* Marks what is kept of windows of the calendar, in the place of a time. */
#define OF_WINDOW (UINT64_C(1) << 63)

static bool is_flow_of(const struct fraction *flow, const struct bucket *bucket)
{
	return flow->num == bucket->flow.num && flow->den == bucket->flow.den;
}

/* Returns the copy of a bucket of windows: in place of times and a waiter, what is known of use. */
static struct level_copy copy_of_window(const struct bucket *bucket)
{
	int64_t used = window_used(bucket);

	return (struct level_copy){
		.level = bucket->level,
		.part = bucket->unknown,
		.grid_ns = OF_WINDOW | bucket->grid_ns,
		.filled_ns = bucket->next_used,
		.awaited = used > 0 ? (uint64_t)used : 0,
	};
}

static struct level_copy level_of(const struct bucket *bucket)
{
	if (bucket_is_window(bucket))
		return copy_of_window(bucket);
	return (struct level_copy){bucket->level,   bucket->part,      bucket->released,
				   bucket->grid_ns, bucket->filled_ns, bucket->awaited};
}

/* A kill comes between two instructions, so the compiler alone must keep the order of stores. */
static void set_journal(struct journal *journal, uint32_t unit)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&journal->unit, unit, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Writes what is in @bucket to unit @i. The journal has it before the unit has any of it, and until
 * the unit has all of it: so the successor of a server that is killed in between writes it again.
 */
static void write_level(struct state *state, uint32_t i, const struct bucket *bucket)
{
	struct journal *journal = &state->header->journal;
	struct unit *unit = &state->units[i];

	journal->flow = bucket->flow;
	journal->level = level_of(bucket);
	set_journal(journal, i);
	unit->flow = journal->flow;
	unit->level = journal->level;
	set_journal(journal, 0);
}

/* Ends what a predecessor began with write_level(). */
static void finish_level(struct state *state)
{
	struct journal *journal = &state->header->journal;

	if (!journal->unit)
		return;
	state->units[journal->unit].flow = journal->flow;
	state->units[journal->unit].level = journal->level;
	set_journal(journal, 0);
}

/* @bucket has the rate that @copy is of. A level that cannot be is left out: it begins empty. */
static void read_level(const struct level_copy *copy, struct bucket *bucket)
{
	uint64_t now_ns = clock_ns();

	if (bucket_is_window(bucket)) {
		if (copy->grid_ns & OF_WINDOW && copy->awaited <= INT64_MAX &&
		    copy->part <= UINT32_MAX)
			window_restore(bucket, (int64_t)(copy->grid_ns & ~OF_WINDOW),
				       (int64_t)copy->awaited, (uint32_t)copy->part,
				       copy->filled_ns, now_ns);
		return;
	}
	if (copy->filled_ns > now_ns || copy->grid_ns > now_ns || copy->part >= bucket->flow.den ||
	    copy->level > LEVEL_MOST)
		return;
	/* Of a strict window it is not kept when tokens were taken: they count as taken now. */
	if (bucket_is_strict(bucket)) {
		bucket_restore(bucket, copy->level, 0);
		return;
	}
	bucket->level = copy->level;
	bucket->part = copy->part;
	bucket->released = copy->released;
	bucket->grid_ns = copy->grid_ns;
	bucket->filled_ns = copy->filled_ns;
	bucket->awaited = copy->awaited;
}

static void write_learning(struct learning_copies *kept, const struct limiter *limiter)
{
	const struct learning *learning = limiter->learning;
	uint32_t other = !kept->current;

	kept->copies[other] = (struct learning_copy){
		.id = limiter->id,
		.adapted = learning->adapted,
		.pause = learning->pause,
		.flow = learning->bucket.flow,
		.level = level_of(&learning->bucket),
		.allowances = learning->allowances,
		.told_limit = learning->told_limit,
	};
	atomic_store_explicit(&kept->current, other, memory_order_release);
}

static bool are_allowances_possible(const struct allowances *allowances)
{
	uint64_t now_ns = clock_ns();

	if (allowances->count > ALLOWANCES_MAX || allowances->whole > LEAVES_MOST ||
	    allowances->now_ns > now_ns || !state_flag_is_sound(&allowances->voided))
		return false;
	for (uint32_t i = 0; i < allowances->count; i++) {
		const struct allowance *at = &allowances->list[i];

		if (at->most > TOKENS_MAX || at->cost > TOKENS_MAX ||
		    at->cost_before > TOKENS_MAX || at->turned_ns > now_ns ||
		    at->part > LEAVES_MOST || at->left > (int64_t)at->most ||
		    !state_flag_is_sound(&at->joined) ||
		    (at->until_ns > now_ns && at->until_ns - now_ns > DURATION_MAX_NS))
			return false;
	}
	return true;
}

/* Tells whether @pause is as one can be: its end is that of the longer part. */
static bool is_pause_possible(const struct backoff_state *pause)
{
	uint64_t until_ns = pause->delayed_ns > pause->asked_ns ? pause->delayed_ns
								: pause->asked_ns;

	return pause->until_ns == until_ns && pause->base_ns >= 0 &&
	       pause->base_ns < (double)INT64_MAX && pause->random;
}

static bool has_counted(const struct backoff_state *pause)
{
	return pause->ups || pause->downs || pause->pauses;
}

/* Tells whether @copy can be learnt: rates are numbers above 0, times are past. */
static bool is_possible(const struct learning_copy *copy)
{
	const struct adapt_state *adapted = &copy->adapted;
	uint64_t now_ns = clock_ns();

	return adapted->rate > 0 && adapted->ceiling >= 0 && adapted->grown_s >= 0 &&
	       adapted->through >= 0 && adapted->through <= 1 && !isnan(adapted->work) &&
	       adapted->counted_ns <= now_ns && adapted->throttled_ns <= now_ns &&
	       adapted->looked_ns <= now_ns && is_pause_possible(&copy->pause) &&
	       copy->told_limit >= 0 && are_allowances_possible(&copy->allowances);
}

static void read_learning(const struct schedule *schedule, const struct learning_copies *kept,
			  struct limiter *limiter)
{
	const struct learning_copy *copy = &kept->copies[kept->current & 1];
	struct learning *learning;

	if (copy->id != limiter->id || !is_possible(copy))
		return;
	if (!limiter->learning && (copy->allowances.count || has_counted(&copy->pause)))
		limiter->learning = learning_new(copy->pause.random);
	learning = limiter->learning;
	if (!learning)
		return;
	learning_restore(schedule, limiter, &copy->adapted, &copy->pause);
	learning->allowances = copy->allowances;
	learning->told_limit = copy->told_limit;
	learning->told = copy->allowances.count || copy->told_limit > 0;
	learning_share(limiter);
	if (learning->limited && is_flow_of(&copy->flow, &learning->bucket))
		read_level(&copy->level, &learning->bucket);
}

static void write_told(struct told_copies *kept, const struct limiter *limiter, uint32_t i)
{
	const char *unit = limiter->settings->limits[i].unit;
	const struct unit_quota *quota = unit_quotas_find(limiter->learning->units, unit);
	uint32_t other = !kept->current;

	kept->copies[other] = (struct told_copy){.id = 0};
	if (quota)
		kept->copies[other] = (struct told_copy){
			.id = limiter->id,
			.allowances = quota->allowances,
			.told_limit = quota->told_limit,
		};
	atomic_store_explicit(&kept->current, other, memory_order_release);
}

/* Restores what a service said of the unit of limit @i. */
static void read_told(const struct told_copies *kept, struct limiter *limiter, uint32_t i)
{
	const struct told_copy *copy = &kept->copies[kept->current & 1];
	struct unit_quota *quota;

	if (copy->id != limiter->id || !(copy->told_limit >= 0) ||
	    !are_allowances_possible(&copy->allowances))
		return;
	if (!limiter->learning)
		limiter->learning = learning_new(limiter->id);
	if (!limiter->learning || !learning_get_units(limiter->learning))
		return;
	quota = unit_quotas_get(limiter->learning->units, limiter->settings->limits[i].unit);
	quota->allowances = copy->allowances;
	quota->told_limit = copy->told_limit;
	limiter->learning->told = true;
	learning_share(limiter);
}

static void write_waited(struct waited_copy *kept, const struct limiter *limiter)
{
	struct waited *waited = usage_waited(limiter);

	kept->waited.tokens.at_once = waited->tokens.at_once;
	if (!waited->is_new && kept->id == limiter->id)
		return;
	waited->is_new = false;
	kept->id = 0;
	atomic_signal_fence(memory_order_seq_cst);
	kept->waited = *waited;
	atomic_signal_fence(memory_order_seq_cst);
	kept->id = limiter->id;
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

static void write_unit_count(struct unit_copy *kept, const struct unit_count *count)
{
	*kept = (struct unit_copy){count->granted, count->charged, count->returned};
}

static void read_unit_count(const struct unit_copy *kept, struct unit_count *count)
{
	count->granted = kept->granted;
	count->charged = kept->charged;
	count->returned = kept->returned;
}

static void write_limiter(struct state *state, struct limiter *limiter)
{
	struct source *source = state->server.engine->source;
	bool is_windowed = false;
	struct unit *unit;
	uint32_t at;

	if (!limiter->unit)
		limiter->unit = new_unit(state, limiter->id, 0);
	at = limiter->unit;
	if (!at)
		return;
	memcpy(state->units[at].counters, limiter->counters, sizeof(limiter->counters));
	if (limiter->learning)
		write_learning(&state->learning[at], limiter);
	if (usage_waited(limiter))
		write_waited(&state->waited[at], limiter);
	for (uint32_t i = 0; i < limiter->bucket_count && at; i++) {
		is_windowed |= bucket_is_window(&limiter->buckets[i]);
		unit = &state->units[at];
		write_level(state, at, &limiter->buckets[i]);
		if (i >= limiter->plain_count)
			write_unit_count(&state->unit_counts[at], &units_counts(limiter)->of[i]);
		if (i >= limiter->plain_count && limiter->learning && limiter->learning->units)
			write_told(&state->told[at], limiter, i);
		if (!unit->next && i + 1 < limiter->bucket_count)
			unit->next = new_unit(state, limiter->id, i + 1);
		at = unit->next;
	}
	if (is_windowed && source->used)
		source->used(source, limiter);
}

void state_write_levels(struct state *state, struct limiter *limiter)
{
	if (limiter->bucket_count || limiter->learning)
		write_limiter(state, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		state_write_levels(state, l);
}

void state_taken(struct state *state, struct limiter *limiter)
{
	struct source *source = state->server.engine->source;

	/* A key or a partition that is gone does not keep its limiter: that may be gone, too. */
	if (!state->kept || (limiter->removed && (limiter->is_key || limiter->partition)))
		return;
	if (limiter->is_key && settings_have_windows(limiter->settings)) {
		key_units_note(limiter);
		if (source->used)
			source->used(source, limiter);
	}
	for (; limiter->parent; limiter = limiter->parent) {
		if (!limiter->is_key && !limiter->partition && !limiter->removed)
			write_limiter(state, limiter);
	}
}

static void read_unit(struct state *state, const struct schedule *schedule, uint32_t i,
		      struct limiter *limiter)
{
	const struct unit *unit = &state->units[i];
	const struct level_copy *copy = &unit->level;
	struct bucket *bucket = NULL;

	if (unit->limit < limiter->bucket_count)
		bucket = &limiter->buckets[unit->limit];
	if (bucket && is_flow_of(&unit->flow, bucket))
		read_level(copy, bucket);
	else if (bucket && copy->level < bucket->level)
		bucket->level = copy->level; /* another rate, or no right to it: a debt is one */
	if (bucket && unit->limit >= limiter->plain_count) {
		read_unit_count(&state->unit_counts[i], &units_counts(limiter)->of[unit->limit]);
		read_told(&state->told[i], limiter, unit->limit);
	}
	if (unit->limit)
		return;
	static_assert((int)COUNTER_COUNT == (int)STATE_COUNTERS, "all counters have room");
	limiter->unit = i;
	memcpy(limiter->counters, unit->counters, sizeof(limiter->counters));
	read_learning(schedule, &state->learning[i], limiter);
	if (state->waited[i].id == limiter->id &&
	    state_flag_is_sound(&state->waited[i].waited.is_new))
		usage_restore(schedule, limiter, &state->waited[i].waited);
}

void state_restore(struct state *state)
{
	struct engine *engine = state->server.engine;
	struct header *header = state->header;
	struct tree *tree = &engine->tree;

	finish_level(state);
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
