/* strict - a bucket of a strict window, see strict.h. */
#include "core/limiter/strict.h"
#include "core/limiter/poller.h"
#include "core/limiter/stamps.h"

/* Returns the tokens in the window; more than the capacity if there is a debt. */
static uint64_t used_tokens(const struct bucket *bucket)
{
	return (uint64_t)((int64_t)bucket->burst - bucket->level);
}

/* Returns those of them that have no stamp of their own. */
static uint64_t joined_tokens(const struct bucket *bucket)
{
	return used_tokens(bucket) - bucket->stamps->tokens;
}

static void set_level(struct bucket *bucket, int64_t level)
{
	bucket->level = level;
	bucket->released = level;
}

void strict_init(struct bucket *bucket, const struct rate *rate, uint64_t now_ns)
{
	*bucket = (struct bucket){
		.flow = rate_fraction(rate),
		.burst = rate_window(rate),
		.kind = BUCKET_STRICT,
		.interval_ns = rate->period_ns & BUCKET_INTERVAL_MAX,
		.stamps = &STAMPS_NONE,
		.filled_ns = now_ns,
	};
	bucket->grid_ns = stamps_round(now_ns, bucket->interval_ns, bucket->burst);
}

void strict_fill(struct bucket *bucket)
{
	stamps_free(&bucket->stamps);
	set_level(bucket, (int64_t)bucket->burst);
}

void strict_refill(struct bucket *bucket, uint64_t now_ns)
{
	uint64_t window_ns = bucket->interval_ns, left = 0;
	const struct stamp *oldest;

	if (now_ns >= window_ns && bucket->grid_ns <= now_ns - window_ns)
		left = joined_tokens(bucket);
	while (now_ns >= window_ns && (oldest = stamps_oldest(bucket->stamps)) &&
	       oldest->at_ns <= now_ns - window_ns)
		left += stamps_drop_oldest(bucket->stamps, oldest->tokens);
	if (bucket->account)
		bucket->account->accrued += (u128)left * bucket->flow.den;
	set_level(bucket, bucket->level + (int64_t)left);
	bucket->filled_ns = now_ns;
}

void strict_take(struct bucket *bucket, uint64_t tokens, uint64_t at_ns)
{
	const struct stamp *oldest;

	if (!tokens)
		return;
	if (at_ns < bucket->filled_ns)
		at_ns = bucket->filled_ns;
	at_ns = stamps_round(at_ns, bucket->interval_ns, bucket->burst);
	while (!stamps_add(&bucket->stamps, at_ns, tokens)) {
		/* The oldest stamp joins those that have none. */
		oldest = stamps_oldest(bucket->stamps);
		if (bucket->grid_ns < (oldest ? oldest->at_ns : at_ns))
			bucket->grid_ns = oldest ? oldest->at_ns : at_ns;
		if (!oldest)
			break;
		(void)stamps_drop_oldest(bucket->stamps, oldest->tokens);
	}
	set_level(bucket, bucket->level - (int64_t)tokens);
}

uint64_t strict_free_oldest(struct bucket *bucket, uint64_t tokens)
{
	uint64_t freed = stamps_drop_oldest(bucket->stamps, tokens);

	set_level(bucket, bucket->level + (int64_t)freed);
	return freed;
}

uint64_t strict_free_newest(struct bucket *bucket, uint64_t tokens)
{
	uint64_t joined = joined_tokens(bucket), freed;

	freed = stamps_drop_newest(bucket->stamps, tokens);
	freed += joined < tokens - freed ? joined : tokens - freed;
	set_level(bucket, bucket->level + (int64_t)freed);
	return freed;
}

uint64_t strict_put(struct bucket *bucket, uint64_t tokens, uint64_t others)
{
	uint64_t used = used_tokens(bucket), room = used > others ? used - others : 0;

	if (bucket->interval_ns <= POLLER_NS || joined_tokens(bucket))
		return 0;
	return strict_free_oldest(bucket, tokens < room ? tokens : room);
}

uint64_t strict_when(const struct bucket *bucket, uint64_t tokens, uint64_t now_ns)
{
	uint64_t windows = tokens ? (tokens - 1) / bucket->burst : 0;
	uint64_t joined = joined_tokens(bucket), at_ns = now_ns, number;
	int64_t least = (int64_t)(tokens - windows * bucket->burst);

	if (bucket->level < least) {
		number = (uint64_t)(least - bucket->level);
		at_ns = number > joined ? stamps_time(bucket->stamps, number - joined)
					: bucket->grid_ns;
		windows++;
	}
	if (windows > (NEVER_NS - 1 - at_ns) / bucket->interval_ns)
		return NEVER_NS;
	at_ns += windows * bucket->interval_ns;
	return at_ns > now_ns ? at_ns : now_ns;
}

/*
 * Counts all that is free of @bucket, whose window is longer than that of @old, as taken before the
 * one that ends at @now_ns began: so many may have been that this log does not have. Where nothing
 * is free it is one token more: those that come back must not free it all.
 */
static void count_unknown(struct bucket *bucket, const struct bucket *old, uint64_t now_ns)
{
	uint64_t begin_ns = now_ns > old->interval_ns ? now_ns - old->interval_ns : 0;

	if (!joined_tokens(old) || bucket->grid_ns < begin_ns)
		bucket->grid_ns = stamps_round(begin_ns, bucket->interval_ns, bucket->burst);
	set_level(bucket, bucket->level > 0 ? 0 : bucket->level - 1);
}

void strict_follow(struct bucket *bucket, struct bucket *old, uint64_t now_ns)
{
	if (!bucket_is_strict(bucket)) {
		set_level(bucket, old->level);
		stamps_free(&old->stamps);
		return;
	}
	if (!bucket_is_strict(old)) {
		set_level(bucket, old->level < 0 ? old->level : 0);
		return;
	}
	bucket->stamps = old->stamps;
	bucket->grid_ns = old->grid_ns;
	set_level(bucket, (int64_t)bucket->burst - (int64_t)used_tokens(old));
	if (bucket->interval_ns < old->interval_ns)
		strict_refill(bucket, now_ns);
	else if (bucket->interval_ns > old->interval_ns)
		count_unknown(bucket, old, now_ns);
}

void strict_hold_level(struct bucket *bucket, int64_t level)
{
	int64_t most = (int64_t)bucket->burst < level ? (int64_t)bucket->burst : level;

	if (bucket->level > most)
		strict_take(bucket, (uint64_t)(bucket->level - most), bucket->filled_ns);
	else
		(void)strict_free_newest(bucket, (uint64_t)(most - bucket->level));
	if (bucket->account)
		bucket_account_open(bucket, bucket->account);
}
