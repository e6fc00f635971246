/*
 * bucket - an exact token bucket.
 *
 * The level is a whole number of tokens and a fraction with the denominator of the rate, so nothing
 * is ever rounded: num/den tokens flow in per nanosecond, and after any time the sum of them is the
 * exact product. The level stops at the capacity, the largest of
 *
 *	burst		the tokens that an idle bucket may save up,
 *	a batch		the tokens that one interval releases (below), and
 *	awaited		the tokens that the reader whose turn it is has asked for, so that a take
 *			larger than the burst gets its share; and a batch on top of that, so that a
 *			take that does not divide the batches loses nothing.
 *
 * A burst of 0 is that of a host of a fleet which holds nothing of a limiter: the bucket is empty,
 * and has room only for tokens saved up for such a take, beyond its first.
 *
 * While a reader waits the level may pass the capacity by the tokens of one nanosecond: a deadline
 * is rounded up to whole nanoseconds, and the tokens of the rest are not lost. So the bound over
 * any window w is rate * (w + 1 ns) + the capacity.
 *
 * With an interval, tokens flow in as ever, but they are released for takes only at whole multiples
 * of the interval since the bucket was made.
 *
 * A debt (charge) is a negative level.
 *
 * A bucket of windows of the calendar is filled at the beginning of each: window.h. A strict window
 * has neither flow nor burst: strict.h.
 *
 * An interrupted reader may have saved up more than the capacity. The bucket can set those tokens
 * aside: no other reader can take them, and the rest goes on as a bucket of its own. They are there
 * again when the reader is back. If the reader never is, they make no difference to others; they go
 * when other tokens are set aside or the bucket changes.
 */
#ifndef RATEFS_CORE_BUCKET_H
#define RATEFS_CORE_BUCKET_H

#include "core/values/calendar.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Where every token went, in units of 1/den token, for the simulator and the tests. Always
 * opened + accrued + put - taken - spilled = the level.
 */
struct bucket_account {
	i128 opened;  /* the level when the account was opened, or the denominator changed */
	u128 accrued; /* flowed in */
	u128 put;     /* by bucket_put, spilled or not */
	u128 taken;   /* by bucket_take */
	u128 spilled; /* lost to the capacity */
};

struct bucket;
struct stamps;

/* Begins an account of @bucket, in @account's memory. */
void bucket_account_open(struct bucket *bucket, struct bucket_account *account);

/* A level does not go below it. */
#define BUCKET_LEVEL_MIN (-(INT64_C(1) << 62))

enum bucket_kind {
	BUCKET_FLOW,	/* tokens are released one by one */
	BUCKET_BATCHES, /* ... or with an interval */
	BUCKET_WINDOWS, /* of the calendar */
	BUCKET_STRICT,
};

enum { BUCKET_KIND_BITS = 2, BUCKET_INTERVAL_BITS = 64 - BUCKET_KIND_BITS };
#define BUCKET_INTERVAL_MAX ((UINT64_C(1) << BUCKET_INTERVAL_BITS) - 1)

/*
 * A limiter has one for each limit, and there may be a million: members of different kinds share a
 * place.
 */
struct bucket {
	struct fraction flow; /* the rate, in lowest terms; 0 lets nothing pass */
	uint64_t burst;	      /* 0 to TOKENS_MAX; 0: nothing is held; of a window: its tokens */
	uint64_t kind : BUCKET_KIND_BITS; /* enum bucket_kind */
	/*
	 * Of batches: the time between them. Of strict windows: their length. Of windows of the
	 * calendar: the burst has this/den of one token more.
	 */
	uint64_t interval_ns : BUCKET_INTERVAL_BITS;
	union {
		uint64_t batch;	       /* of batches: least capacity that they need */
		struct window *window; /* of windows of the calendar: borrowed */
		struct stamps *stamps; /* of a strict window: its log, owned */
	};
	union {
		uint64_t awaited;	/* tokens asked for by the reader whose turn it is, or 0 */
		struct {		/* of windows of the calendar */
			bool is_capped; /* window_cap() */
			uint32_t unknown; /* leaves that are worth nothing in this one */
		};
	};
	int64_t level; /* whole tokens, rounded down: negative in debt */
	uint64_t part; /* and part/den of one more */
	union {
		int64_t released;   /* of batches, strict windows: tokens that may be taken */
		uint64_t next_used; /* of windows of the calendar: window.h */
	};
	/*
	 * Of batches: the last release. Of windows of the calendar: when the one began that it was
	 * filled for last, in seconds of the wall clock. Of a strict window: when those were taken
	 * that are not in the log.
	 */
	uint64_t grid_ns;
	uint64_t filled_ns; /* level and part are as of this time; of the calendar: until then */
	uint64_t aside;	    /* tokens of the level that are set aside, or above the cap */
	struct bucket_account *account; /* borrowed; NULL but in the simulator and tests */
};

/*
 * Makes an empty bucket of @rate (not `max`), @burst 0 to TOKENS_MAX; @interval_ns is 0 or so that
 * an interval's tokens are at most TOKENS_MAX.
 */
void bucket_init(struct bucket *bucket, const struct rate *rate, uint64_t burst,
		 uint64_t interval_ns, uint64_t now_ns);

static inline bool bucket_is_window(const struct bucket *bucket)
{
	return bucket->kind == BUCKET_WINDOWS;
}

static inline bool bucket_is_strict(const struct bucket *bucket)
{
	return bucket->kind == BUCKET_STRICT;
}

/* Returns the tokens that are there, in whole; negative in debt. Those under a cap are. */
static inline int64_t bucket_level(const struct bucket *bucket)
{
	return bucket->level - (bucket_is_window(bucket) ? 0 : (int64_t)bucket->aside);
}

/* Returns the least capacity that its batches need; 0: it has none. */
static inline uint64_t bucket_batch(const struct bucket *bucket)
{
	return bucket->kind == BUCKET_BATCHES ? bucket->batch : 0;
}

/* Frees what the bucket owns. */
void bucket_end(struct bucket *bucket);

/* Returns the tokens that an idle bucket holds when it is full. */
uint64_t bucket_capacity(const struct bucket *bucket);

/* Makes the bucket full, as a new limiter's is. */
void bucket_fill(struct bucket *bucket);

/* Sets the level to one that was known before, as far as it makes sense. */
void bucket_restore(struct bucket *bucket, int64_t level, uint64_t part);

/*
 * A part of a level: @tokens, and @nano billionths of one more. May be negative in whole: a debt.
 */
struct bucket_part {
	int64_t tokens;
	uint32_t nano;
};

/*
 * Takes out @part of @shares equal parts of the level, to be put into another host's bucket: at
 * most @most tokens, and no more than leaves @kept tokens; a debt goes only with all parts. Refill
 * first.
 */
struct bucket_part bucket_split(struct bucket *bucket, uint32_t part, uint32_t shares,
				uint64_t most, uint64_t kept);

/* Puts in a part that another host took out; the excess is spilled. Refill first. */
void bucket_join(struct bucket *bucket, const struct bucket_part *part);

/* Leaves at most @tokens in the bucket. Refill first. */
void bucket_leave(struct bucket *bucket, uint64_t tokens);

/* Changes rate, burst and interval from now on; the level stays, its excess is spilled. */
void bucket_retune(struct bucket *bucket, const struct rate *rate, uint64_t burst,
		   uint64_t interval_ns, uint64_t now_ns);

/* Lets flow in the tokens due until @now_ns. Time does not go back. */
void bucket_refill(struct bucket *bucket, uint64_t now_ns);

/* Notes that the reader whose turn it is wants @tokens; 0: no reader waits. Refill first. */
void bucket_await(struct bucket *bucket, uint64_t tokens);

/*
 * Sets aside the tokens above the capacity: the reader whose turn it is was interrupted, and may be
 * back. If the next one, which wants @tokens (0: there is none), wants more than the capacity they
 * are saved up for it instead. Another such take that comes later spills them. Refill first.
 */
void bucket_set_aside(struct bucket *bucket, uint64_t tokens);

/*
 * Takes back the tokens set aside, and then awaits @tokens as bucket_await(): the reader is back,
 * and it is its turn.
 */
void bucket_take_back(struct bucket *bucket, uint64_t tokens);

/* Returns the tokens that may be taken. Refill first. */
uint64_t bucket_tokens(const struct bucket *bucket);

/* Tells whether @tokens may be taken. Refill first. */
bool bucket_has(const struct bucket *bucket, uint64_t tokens);

/*
 * Takes @tokens; the level may become negative, down to -2^62, where it stays. Refill first. Where
 * the step is late they are taken as of the refill, but are in a strict window from @at_ns on.
 */
void bucket_take(struct bucket *bucket, uint64_t tokens, uint64_t at_ns);

/*
 * Puts @tokens back as far as the capacity has room for them beside @others, which were taken and
 * may come back; the excess is spilled. Refill first.
 */
void bucket_put(struct bucket *bucket, uint64_t tokens, uint64_t others);

/* Returns how many tokens it can grant until @at_ns, but at most @most. Refill first. */
uint64_t bucket_most_until(const struct bucket *bucket, uint64_t at_ns, uint64_t most);

/* Returns the first time from @now_ns on at which @tokens may be taken; NEVER_NS. Refill first. */
uint64_t bucket_when(const struct bucket *bucket, uint64_t tokens, uint64_t now_ns);

#endif
