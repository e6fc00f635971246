/* window - a bucket of windows of the calendar, see window.h. */
#include "core/limiter/window.h"

#include <assert.h>

/* No grant comes back later: a poller's, or one that did not reach its reader. */
#define WINDOW_NEW_NS NSEC_PER_SEC

enum {
	WINDOW_NANO = 1000000000,
	WINDOWS_TOLD = 1000, /* so many ahead a time is told */
};

/* A cap is raised by a round trip to the coordinator. */
#define WINDOW_CAP_NS (NSEC_PER_SEC / 100)

/* Of what was used of leaves. */
#define NANO_MOST (((i128)1 << 61) * WINDOW_NANO)

/* Stands for what is not known: a 65,536th of it is more than TOKENS_MAX, and twice can be told. */
#define NANO_UNKNOWN (((i128)1 << 60) * WINDOW_NANO)

static i128 units_of(const struct bucket *bucket, uint64_t tokens)
{
	return (i128)tokens * (i128)bucket->flow.den;
}

/* Returns what was used of the window, in units of 1/den token. */
static i128 used_units(const struct bucket *bucket)
{
	i128 full = units_of(bucket, bucket->burst) + (i128)bucket->interval_ns;

	return full - ((i128)bucket->level * (i128)bucket->flow.den + (i128)bucket->part);
}

/* Returns what counts as used of the leaves of which it is not known. */
static i128 unknown_units(const struct bucket *bucket)
{
	return (i128)rate_window_tokens(bucket->window->rate) * bucket->unknown;
}

/* Returns what was used of the other leaves. Tokens that came back may be of any. */
static i128 known_units(const struct bucket *bucket)
{
	i128 known = used_units(bucket) - unknown_units(bucket);

	return bucket->unknown && known < 0 ? 0 : known;
}

/* Returns what would be used if the level were 0, rounded up. */
static uint64_t all_tokens(const struct bucket *bucket)
{
	return bucket->burst + (bucket->interval_ns > bucket->part);
}

uint64_t window_capped(const struct bucket *bucket)
{
	return bucket->is_capped ? all_tokens(bucket) - bucket->aside : WINDOW_UNCAPPED;
}

static void set_cap(struct bucket *bucket, uint64_t used)
{
	uint64_t all = all_tokens(bucket);

	bucket->is_capped = used != WINDOW_UNCAPPED;
	bucket->aside = used < all ? all - used : 0;
}

/* Sets that, from 0 to what a level can be. */
static void set_used(struct bucket *bucket, i128 used)
{
	i128 den = (i128)bucket->flow.den, level, before = used_units(bucket);
	uint64_t cap = window_capped(bucket);

	if (used > (i128)-BUCKET_LEVEL_MIN * den)
		used = (i128)-BUCKET_LEVEL_MIN * den;
	if (bucket->account && used < before)
		bucket->account->accrued += (u128)(before - used);
	else if (bucket->account)
		bucket->account->taken += (u128)(used - before);
	used = (i128)bucket->burst * den + (i128)bucket->interval_ns - used;
	level = used / den - (used % den < 0);
	bucket->level = level < BUCKET_LEVEL_MIN ? BUCKET_LEVEL_MIN : (int64_t)level;
	bucket->part = level < BUCKET_LEVEL_MIN ? 0 : (uint64_t)(used - level * den);
	set_cap(bucket, cap);
}

void window_fill(struct bucket *bucket)
{
	set_used(bucket, 0);
}

/* A window has no room for more than its own tokens. */
void window_spill(struct bucket *bucket)
{
	i128 used = used_units(bucket);
	uint64_t cap = window_capped(bucket);

	if (used >= 0)
		return;
	if (bucket->account)
		bucket->account->spilled += (u128)-used;
	bucket->level = (int64_t)bucket->burst;
	bucket->part = bucket->interval_ns;
	set_cap(bucket, cap);
}

void window_cap(struct bucket *bucket, int64_t begin_s, uint64_t used)
{
	if (used != WINDOW_UNCAPPED && begin_s != window_begin_s(bucket))
		used = 0;
	set_cap(bucket, used);
}

/* Takes @used tokens off the cap: they have gone with leaves. */
static void lower_cap(struct bucket *bucket, uint64_t used)
{
	uint64_t cap = window_capped(bucket);

	if (cap != WINDOW_UNCAPPED)
		set_cap(bucket, cap > used ? cap - used : 0);
}

bool window_is_held_back(const struct bucket *bucket, uint64_t tokens)
{
	return bucket_is_window(bucket) && bucket->aside && bucket->level >= (int64_t)tokens &&
	       !bucket_has(bucket, tokens);
}

static int64_t next_begin_s(const struct bucket *bucket)
{
	return calendar_end_s(bucket->window->rate, window_begin_s(bucket));
}

static void fill_for(struct bucket *bucket, int64_t begin_s)
{
	uint64_t used = bucket->next_used;

	if (used && begin_s > next_begin_s(bucket))
		used = 0;
	set_used(bucket, units_of(bucket, used));
	bucket->unknown = 0;
	bucket->next_used = 0;
	bucket->grid_ns = (uint64_t)begin_s;
	if (bucket->is_capped)
		set_cap(bucket, 0);
}

/* Fills a bucket of windows if another one has begun, and notes until when it stays as it is. */
void window_refill(struct bucket *bucket, uint64_t now_ns)
{
	struct window *window = bucket->window;
	int64_t end_s;

	calendar_look(window, now_ns);
	end_s = window->end_s;
	if (window->begin_s > window_begin_s(bucket))
		fill_for(bucket, window->begin_s);
	else if (window->begin_s < window_begin_s(bucket))
		end_s = calendar_end_s(window->rate, window_begin_s(bucket));
	bucket->filled_ns = calendar_engine_ns(window->wall, end_s) - 1;
}

void window_init(struct bucket *bucket, struct window *window, const struct window_share *share,
		 uint64_t now_ns)
{
	assert(share->tokens <= TOKENS_MAX && share->part < share->whole);
	calendar_look(window, now_ns);
	*bucket = (struct bucket){
		.flow = {1, share->whole},
		.burst = share->tokens,
		.kind = BUCKET_WINDOWS,
		.interval_ns = share->part,
		.window = window,
		.grid_ns = (uint64_t)window->begin_s,
	};
	window_refill(bucket, now_ns);
}

/* Returns @amount of 1/@from as 1/@to, rounded up. */
static i128 convert(i128 amount, uint64_t from, uint64_t to)
{
	return from == to ? amount : (amount * (i128)to + (i128)from - 1) / (i128)from;
}

void window_retune(struct bucket *bucket, struct window *window, const struct window_share *share,
		   uint64_t now_ns)
{
	struct bucket_account *account = bucket->account;
	bool same = calendar_is_same(bucket->window->rate, window->rate);
	struct bucket old;

	bucket_refill(bucket, now_ns);
	old = *bucket;
	window_init(bucket, window, share, now_ns);
	set_cap(bucket, same || !old.is_capped ? window_capped(&old) : 0);
	if (same) {
		bucket->grid_ns = old.grid_ns;
		bucket->next_used = old.next_used;
		window_refill(bucket, now_ns);
	}
	bucket->unknown = (uint32_t)convert(old.unknown, old.flow.den, bucket->flow.den);
	set_used(bucket, convert(known_units(&old), old.flow.den, bucket->flow.den) +
				 unknown_units(bucket));
	if (account)
		bucket_account_open(bucket, account);
}

/*
 * Takes out what was used of this window of @part of @shares leaves, of those first of which it is
 * known. Returns it in billionths of a token.
 */
static i128 split_this(struct bucket *bucket, uint32_t part, uint32_t shares)
{
	uint32_t known = bucket->unknown < shares ? shares - bucket->unknown : 0;
	i128 used = used_units(bucket), out;

	if (part > known) {
		bucket->unknown = shares - part;
		set_used(bucket, unknown_units(bucket));
		return NANO_UNKNOWN;
	}
	out = known_units(bucket) * part / known;
	set_used(bucket, used - out);
	if (out > 0)
		lower_cap(bucket, (uint64_t)convert(out, bucket->flow.den, 1));
	return convert(out, bucket->flow.den, WINDOW_NANO);
}

struct window_use window_split_use(struct bucket *bucket, uint32_t part, uint32_t shares)
{
	struct window_use use = {window_begin_s(bucket), 0};
	uint64_t next;

	assert(part && part <= shares && bucket_is_window(bucket));
	use.nano = split_this(bucket, part, shares);
	if (!bucket->next_used)
		return use;
	next = (uint64_t)(((u128)bucket->next_used * part + shares - 1) / shares);
	bucket->next_used -= next;
	return (struct window_use){next_begin_s(bucket), (i128)next * WINDOW_NANO};
}

struct window_use window_spent(const struct bucket *bucket, const struct window_share *worth)
{
	i128 all = (i128)worth->tokens * worth->whole + worth->part;

	if (!bucket->next_used)
		return (struct window_use){window_begin_s(bucket), NANO_UNKNOWN};
	return (struct window_use){next_begin_s(bucket), convert(all, worth->whole, WINDOW_NANO)};
}

/*
 * Returns @nano billionths in units of the bucket. They were rounded up from such units, by less
 * than a billionth.
 */
static i128 units_of_nano(const struct bucket *bucket, i128 nano)
{
	return nano ? convert(nano - 1, WINDOW_NANO, bucket->flow.den) : 0;
}

void window_join_use(struct bucket *bucket, const struct window_use *use,
		     const struct window_share *worth)
{
	int64_t begin_s = window_begin_s(bucket);
	i128 all = (i128)worth->tokens * worth->whole + worth->part;
	i128 nano = use->nano < NANO_MOST ? use->nano : NANO_MOST;

	assert(use->nano >= 0);
	if (use->begin_s < begin_s)
		return;
	if (use->begin_s == begin_s && nano <= (i128)TOKENS_MAX * WINDOW_NANO) {
		set_used(bucket, used_units(bucket) + units_of_nano(bucket, nano));
		return;
	}
	set_used(bucket, used_units(bucket) + convert(all, worth->whole, bucket->flow.den));
	bucket->unknown += worth->leaves;
	if (use->begin_s != next_begin_s(bucket))
		return;
	bucket->next_used += (uint64_t)convert(nano, WINDOW_NANO, 1);
	if (bucket->next_used > (uint64_t)-BUCKET_LEVEL_MIN)
		bucket->next_used = (uint64_t)-BUCKET_LEVEL_MIN;
}

void window_forget_use(struct bucket *bucket)
{
	set_used(bucket, 0);
	bucket->unknown = 0;
	bucket->next_used = 0;
}

void window_restore(struct bucket *bucket, int64_t begin_s, int64_t used, uint32_t unknown,
		    uint64_t next_used, uint64_t now_ns)
{
	uint64_t cap = window_capped(bucket);

	if (begin_s < 0 || used < -(int64_t)TOKENS_MAX || used > -BUCKET_LEVEL_MIN ||
	    unknown > bucket->flow.den || next_used > (uint64_t)-BUCKET_LEVEL_MIN)
		return;
	bucket->grid_ns = (uint64_t)begin_s;
	bucket->level = (int64_t)bucket->burst - (used > 0 ? used : 0);
	bucket->part = 0;
	bucket->unknown = unknown;
	bucket->next_used = next_used;
	set_cap(bucket, cap);
	window_refill(bucket, now_ns);
}

void window_look_again(struct bucket *bucket, uint64_t now_ns)
{
	window_refill(bucket, now_ns);
}

uint64_t window_reset_ns(const struct bucket *bucket)
{
	return bucket_is_window(bucket) ? bucket->filled_ns + 1 - *bucket->window->wall->now_ns
					: NEVER_NS;
}

/* Tells whether tokens that come back may be of the window before. */
bool window_is_new(const struct bucket *bucket)
{
	return bucket_is_window(bucket) &&
	       calendar_engine_ns(bucket->window->wall, window_begin_s(bucket)) + WINDOW_NEW_NS >
		       *bucket->window->wall->now_ns;
}

/* Returns when a bucket of windows, which lacks some of @tokens, has had as many. */
uint64_t window_when(const struct bucket *bucket, uint64_t tokens)
{
	const struct window *window = bucket->window;
	uint64_t at_ns = bucket->filled_ns + 1, soon_ns = *window->wall->now_ns + WINDOW_CAP_NS;
	int64_t end_s = calendar_end_s(window->rate, window_begin_s(bucket));

	/* A debt ends with its window also where no leaves bring another. */
	if (!bucket->burst && tokens)
		return NEVER_NS;
	if (window_is_held_back(bucket, tokens))
		return soon_ns < at_ns ? soon_ns : at_ns;
	tokens -= bucket->level > 0 ? (uint64_t)bucket->level : 0;
	for (unsigned int i = 0; tokens > bucket->burst; i++) {
		if (i == WINDOWS_TOLD)
			return NEVER_NS;
		tokens -= bucket->burst;
		end_s = calendar_end_s(window->rate, end_s);
		at_ns = calendar_engine_ns(window->wall, end_s);
	}
	return at_ns;
}

/* Returns the tokens of the windows that begin until @at_ns, at most. */
u128 window_flow(const struct bucket *bucket, uint64_t at_ns)
{
	if (at_ns <= bucket->filled_ns)
		return 0;
	/* A month has a tenth less than 30 days at least, a day an hour less than 24. */
	return ((at_ns - bucket->filled_ns) / (bucket->window->rate->period_ns / 10 * 9) + 1) *
	       (u128)bucket->burst;
}
