/* bucket - an exact token bucket, see bucket.h. */
#include "core/limiter/bucket.h"
#include "core/limiter/stamps.h"
#include "core/limiter/strict.h"
#include "core/limiter/window.h"

#include <assert.h>

static const int64_t LEVEL_MIN = BUCKET_LEVEL_MIN;
static const int64_t TOKENS_LIMIT = INT64_C(1) << 61; /* of a part that another host left */

enum { BUCKET_NANO = 1000000000 };

_Static_assert(DURATION_MAX_NS <= BUCKET_INTERVAL_MAX, "no interval is as long");
_Static_assert(sizeof(struct bucket) <= 13 * sizeof(uint64_t), "a million limiters have one each");

uint64_t bucket_capacity(const struct bucket *bucket)
{
	uint64_t batch = bucket_batch(bucket);

	return bucket->burst > batch ? bucket->burst : batch;
}

static uint64_t capacity_now(const struct bucket *bucket)
{
	uint64_t capacity = bucket_capacity(bucket), awaited = bucket->awaited;

	if (awaited)
		awaited += bucket_batch(bucket);
	/* Where nothing is held another host has room for the first token. */
	if (awaited && !bucket->burst)
		awaited--;
	return (awaited > capacity ? awaited : capacity) + bucket->aside;
}

/*
 * Returns the tokens that one interval releases, rounded up; one more when they are not whole, so
 * that the fraction left of one interval finds room beside the next one's.
 */
static uint64_t batch_of(const struct bucket *bucket)
{
	u128 units = (u128)bucket->flow.num * bucket->interval_ns;
	u128 whole = units / bucket->flow.den;

	if (units % bucket->flow.den)
		whole += 2;
	return whole > TOKENS_MAX ? TOKENS_MAX : (uint64_t)whole;
}

static u128 units_of(const struct bucket *bucket, uint64_t tokens)
{
	return (u128)tokens * bucket->flow.den;
}

void bucket_account_open(struct bucket *bucket, struct bucket_account *account)
{
	*account = (struct bucket_account){
		.opened = (i128)bucket->level * (i128)bucket->flow.den + (i128)bucket->part,
	};
	bucket->account = account;
}

static void spill_excess(struct bucket *bucket)
{
	uint64_t capacity = capacity_now(bucket), over;
	u128 units, allowed;

	if (bucket_is_window(bucket)) {
		window_spill(bucket);
		return;
	}
	if (bucket->level < 0 || (uint64_t)bucket->level < capacity)
		return;
	over = (uint64_t)bucket->level - capacity;
	units = units_of(bucket, over) + bucket->part;
	allowed = bucket->awaited ? bucket->flow.num : 0;
	if (units <= allowed)
		return;
	if (bucket->account)
		bucket->account->spilled += units;
	bucket->level = (int64_t)capacity;
	bucket->part = 0;
	if (bucket->released > bucket->level)
		bucket->released = bucket->level;
}

static void spill_aside(struct bucket *bucket)
{
	if (bucket_is_window(bucket))
		return;
	if (bucket->account)
		bucket->account->spilled += units_of(bucket, bucket->aside);
	bucket->level -= (int64_t)bucket->aside;
	bucket->released -= (int64_t)bucket->aside;
	bucket->aside = 0;
}

static void let_flow_in(struct bucket *bucket, uint64_t until_ns)
{
	/* Below 2^51 * 2^64, so it fits. */
	u128 units = (u128)bucket->flow.num * (until_ns - bucket->filled_ns);
	u128 room = units_of(bucket, TOKENS_MAX) * 2;
	u128 sum;

	if (bucket->account)
		bucket->account->accrued += units;
	sum = units + bucket->part;
	if (bucket->level < 0)
		room += units_of(bucket, (uint64_t)-bucket->level);
	if (sum > room) {
		/* Above any capacity the exact sum would be spilled, and may not fit a level. */
		if (bucket->account)
			bucket->account->spilled += sum - room;
		sum = room;
	}
	bucket->level += (int64_t)(sum / bucket->flow.den);
	bucket->part = (uint64_t)(sum % bucket->flow.den);
	bucket->filled_ns = until_ns;
	spill_excess(bucket);
}

/* Releases the tokens of the intervals that have ended by @now_ns. */
static void release_batches(struct bucket *bucket, uint64_t now_ns)
{
	uint64_t ticks = (now_ns - bucket->grid_ns) / bucket->interval_ns;

	if (!ticks)
		return;
	bucket->grid_ns += ticks * bucket->interval_ns;
	if (bucket->grid_ns > bucket->filled_ns)
		let_flow_in(bucket, bucket->grid_ns);
	bucket->released = bucket->level;
}

void bucket_refill(struct bucket *bucket, uint64_t now_ns)
{
	if (now_ns <= bucket->filled_ns)
		return;
	switch ((enum bucket_kind)bucket->kind) {
	case BUCKET_FLOW:
		break;
	case BUCKET_BATCHES:
		release_batches(bucket, now_ns);
		break;
	case BUCKET_WINDOWS:
		window_refill(bucket, now_ns);
		return;
	case BUCKET_STRICT:
		strict_refill(bucket, now_ns);
		return;
	}
	if (now_ns > bucket->filled_ns)
		let_flow_in(bucket, now_ns);
}

void bucket_init(struct bucket *bucket, const struct rate *rate, uint64_t burst,
		 uint64_t interval_ns, uint64_t now_ns)
{
	assert(!rate_is_unlimited(rate));
	assert(burst <= TOKENS_MAX);
	if (rate_is_strict(rate)) {
		strict_init(bucket, rate, now_ns);
		return;
	}
	*bucket = (struct bucket){
		.flow = rate_fraction(rate),
		.burst = burst,
		.kind = interval_ns ? BUCKET_BATCHES : BUCKET_FLOW,
		.interval_ns = interval_ns & BUCKET_INTERVAL_MAX,
		.grid_ns = now_ns,
		.filled_ns = now_ns,
	};
	if (interval_ns)
		bucket->batch = batch_of(bucket);
}

void bucket_end(struct bucket *bucket)
{
	if (bucket_is_strict(bucket))
		stamps_free(&bucket->stamps);
}

void bucket_fill(struct bucket *bucket)
{
	assert(!bucket->account);
	if (bucket_is_strict(bucket)) {
		strict_fill(bucket);
		return;
	}
	if (bucket_is_window(bucket)) {
		window_fill(bucket);
		return;
	}
	bucket->level = (int64_t)bucket_capacity(bucket);
	bucket->part = 0;
	bucket->released = bucket->level;
	bucket->aside = 0;
}

void bucket_restore(struct bucket *bucket, int64_t level, uint64_t part)
{
	if (level < LEVEL_MIN || part >= bucket->flow.den || bucket_is_window(bucket))
		return;
	bucket->level = level;
	bucket->part = part;
	if (level >= (int64_t)bucket_capacity(bucket))
		bucket_fill(bucket);
	bucket->released = bucket->level;
}

void bucket_retune(struct bucket *bucket, const struct rate *rate, uint64_t burst,
		   uint64_t interval_ns, uint64_t now_ns)
{
	struct bucket_account *account = bucket->account;
	struct bucket old;

	bucket_refill(bucket, now_ns);
	spill_aside(bucket);
	old = *bucket;
	bucket_init(bucket, rate, burst, interval_ns, now_ns);
	bucket->awaited = bucket_is_window(&old) ? 0 : old.awaited;
	if (bucket_is_strict(&old) || bucket_is_strict(bucket)) {
		strict_follow(bucket, &old, now_ns);
		if (account)
			bucket_account_open(bucket, account);
		spill_excess(bucket);
		return;
	}
	bucket->level = old.level;
	bucket->part = (uint64_t)((u128)old.part * bucket->flow.den / old.flow.den);
	if (interval_ns == old.interval_ns)
		bucket->grid_ns = old.grid_ns;
	bucket->released = old.kind == BUCKET_FLOW ? old.level : old.released;
	if (account)
		bucket_account_open(bucket, account);
	spill_excess(bucket);
}

/* Tells whether a take of @tokens needs more than the bucket saves up without a reader. */
static bool is_large(const struct bucket *bucket, uint64_t tokens)
{
	return tokens > bucket_capacity(bucket) + !bucket->burst;
}

static void make_room(struct bucket *bucket, uint64_t tokens)
{
	if (is_large(bucket, tokens))
		spill_aside(bucket);
	if (!bucket_is_window(bucket))
		bucket->awaited = tokens;
	spill_excess(bucket);
}

void bucket_await(struct bucket *bucket, uint64_t tokens)
{
	/* The room of the last waiter is often that of the next one. */
	if (tokens != bucket->awaited || bucket->aside)
		make_room(bucket, tokens);
}

void bucket_set_aside(struct bucket *bucket, uint64_t tokens)
{
	int64_t capacity = (int64_t)bucket_capacity(bucket);

	spill_aside(bucket);
	if (bucket->level > capacity && !is_large(bucket, tokens) && !bucket_is_window(bucket))
		bucket->aside = (uint64_t)(bucket->level - capacity);
}

void bucket_take_back(struct bucket *bucket, uint64_t tokens)
{
	if (!bucket_is_window(bucket))
		bucket->aside = 0;
	make_room(bucket, tokens);
}

static int64_t takeable_tokens(const struct bucket *bucket)
{
	bool releases = bucket->kind == BUCKET_BATCHES || bucket->kind == BUCKET_STRICT;

	return (releases ? bucket->released : bucket->level) - (int64_t)bucket->aside;
}

uint64_t bucket_tokens(const struct bucket *bucket)
{
	int64_t tokens = bucket->flow.num ? takeable_tokens(bucket) : 0;

	return tokens > 0 ? (uint64_t)tokens : 0;
}

bool bucket_has(const struct bucket *bucket, uint64_t tokens)
{
	return bucket->flow.num && takeable_tokens(bucket) >= (int64_t)tokens;
}

void bucket_take(struct bucket *bucket, uint64_t tokens, uint64_t at_ns)
{
	if (bucket->level < LEVEL_MIN + (int64_t)tokens)
		return;
	if (bucket->account)
		bucket->account->taken += units_of(bucket, tokens);
	if (bucket->kind == BUCKET_FLOW || bucket_is_window(bucket)) {
		bucket->level -= (int64_t)tokens;
	} else if (bucket_is_strict(bucket)) {
		strict_take(bucket, tokens, at_ns);
	} else {
		bucket->level -= (int64_t)tokens;
		bucket->released -= (int64_t)tokens;
	}
}

void bucket_put(struct bucket *bucket, uint64_t tokens, uint64_t others)
{
	i128 room = (i128)capacity_now(bucket) - (i128)others - (i128)bucket->level;
	uint64_t fits = tokens;

	if (bucket_is_window(bucket))
		room -= (i128)bucket->aside;
	/* A part of a token needs room, too. */
	if (bucket->part)
		room--;
	if (others && room < (i128)tokens)
		fits = room > 0 ? (uint64_t)room : 0;
	if (window_is_new(bucket))
		fits = 0;
	if (bucket_is_strict(bucket))
		fits = strict_put(bucket, tokens, others);
	if (bucket->account) {
		bucket->account->put += units_of(bucket, tokens);
		bucket->account->spilled += units_of(bucket, tokens - fits);
	}
	if (bucket_is_strict(bucket))
		return;
	bucket->level += (int64_t)fits;
	if (!bucket_is_window(bucket))
		bucket->released += (int64_t)fits;
	spill_excess(bucket);
}

uint64_t bucket_most_until(const struct bucket *bucket, uint64_t at_ns, uint64_t most)
{
	uint64_t past_ns = at_ns - bucket->filled_ns;
	u128 tokens = (u128)bucket->flow.num * past_ns / bucket->flow.den + 1;

	if (bucket_is_window(bucket))
		tokens = window_flow(bucket, at_ns);
	else if (bucket_is_strict(bucket))
		tokens = (u128)bucket->burst * (past_ns / bucket->interval_ns + 1);
	if (bucket->level > 0)
		tokens += (uint64_t)bucket->level;
	return tokens < most ? (uint64_t)tokens : most;
}

uint64_t bucket_when(const struct bucket *bucket, uint64_t tokens, uint64_t now_ns)
{
	u128 need, wait_ns;
	uint64_t at_ns = bucket->filled_ns, ticks;

	if (!bucket->flow.num)
		return NEVER_NS;
	if (bucket_has(bucket, tokens))
		return now_ns;
	if (bucket_is_window(bucket))
		return window_when(bucket, tokens);
	if (bucket_is_strict(bucket))
		return strict_when(bucket, tokens, now_ns);
	tokens += bucket->aside;
	if (bucket->level < (int64_t)tokens) {
		need = units_of(bucket, (uint64_t)((int64_t)tokens - bucket->level)) - bucket->part;
		wait_ns = (need + bucket->flow.num - 1) / bucket->flow.num;
		if (wait_ns >= NEVER_NS - at_ns)
			return NEVER_NS;
		at_ns += (uint64_t)wait_ns;
	}
	if (bucket->kind == BUCKET_BATCHES) {
		ticks = (at_ns - bucket->grid_ns) / bucket->interval_ns;
		if (!ticks || (at_ns - bucket->grid_ns) % bucket->interval_ns)
			ticks++;
		if (ticks > (NEVER_NS - bucket->grid_ns) / bucket->interval_ns)
			return NEVER_NS;
		at_ns = bucket->grid_ns + ticks * bucket->interval_ns;
	}
	return at_ns > now_ns ? at_ns : now_ns;
}

/* Adds @units of 1/den token, which may be negative. */
static void add_units(struct bucket *bucket, i128 units)
{
	i128 den = (i128)bucket->flow.den, whole;

	units += (i128)bucket->part;
	whole = units / den;
	if (units % den < 0)
		whole--;
	bucket->level += (int64_t)whole;
	bucket->released += (int64_t)whole;
	bucket->part = (uint64_t)(units - whole * den);
}

struct bucket_part bucket_split(struct bucket *bucket, uint32_t part, uint32_t shares,
				uint64_t most, uint64_t kept)
{
	struct bucket_part taken = {0};
	u128 units, share, stays;

	assert(part && part <= shares);
	spill_aside(bucket);
	if (bucket->level < 0) {
		if (part < shares)
			return taken;
		taken.tokens = bucket->level;
		if (bucket->account)
			bucket->account->put += units_of(bucket, (uint64_t)-bucket->level);
		if (bucket_is_strict(bucket))
			(void)strict_free_newest(bucket, (uint64_t)-bucket->level);
		bucket->level = 0;
		if (bucket->released < 0)
			bucket->released = 0;
		return taken;
	}
	units = units_of(bucket, (uint64_t)bucket->level) + bucket->part;
	/* Below 2^107, and less than 2^13 parts. */
	share = units * part / shares;
	if (share > units_of(bucket, most))
		share = units_of(bucket, most);
	stays = units_of(bucket, kept);
	if (share + stays > units)
		share = units > stays ? units - stays : 0;
	if (bucket_is_strict(bucket))
		share -= share % bucket->flow.den;
	/* Billionths, rounded down; a smaller rest is lost with the last part. */
	taken.tokens = (int64_t)(share / bucket->flow.den);
	taken.nano = (uint32_t)(share % bucket->flow.den * BUCKET_NANO / bucket->flow.den);
	if (bucket->account)
		bucket->account->taken += share;
	if (bucket_is_strict(bucket))
		strict_take(bucket, (uint64_t)taken.tokens, bucket->filled_ns);
	else
		add_units(bucket, -(i128)share);
	return taken;
}

/* Has @tokens (negative: a debt) come to a strict window: those that came last are free. */
static void join_strict(struct bucket *bucket, int64_t tokens)
{
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	if (tokens < 0) {
		bucket_take(bucket, size, bucket->filled_ns);
		return;
	}
	size = strict_free_newest(bucket, size);
	if (bucket->account)
		bucket->account->put += units_of(bucket, size);
}

void bucket_join(struct bucket *bucket, const struct bucket_part *part)
{
	i128 units = (i128)part->tokens * (i128)bucket->flow.den +
		     (i128)((u128)part->nano * bucket->flow.den / BUCKET_NANO);

	if (part->tokens < -TOKENS_LIMIT || part->tokens > TOKENS_LIMIT)
		return;
	if (bucket_is_strict(bucket)) {
		join_strict(bucket, part->tokens);
		return;
	}
	spill_aside(bucket);
	if (bucket->account && units >= 0)
		bucket->account->put += (u128)units;
	else if (bucket->account)
		bucket->account->taken += (u128)-units;
	add_units(bucket, units);
	spill_excess(bucket);
}

void bucket_leave(struct bucket *bucket, uint64_t tokens)
{
	u128 units;

	spill_aside(bucket);
	if (bucket->level < 0 || (uint64_t)bucket->level < tokens)
		return;
	units = units_of(bucket, (uint64_t)bucket->level - tokens) + bucket->part;
	if (bucket->account)
		bucket->account->spilled += units;
	if (bucket_is_strict(bucket)) {
		strict_take(bucket, (uint64_t)bucket->level - tokens, bucket->filled_ns);
		return;
	}
	bucket->level = (int64_t)tokens;
	bucket->part = 0;
	if (bucket->released > bucket->level)
		bucket->released = bucket->level;
}
