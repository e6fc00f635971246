/*
 * window - a bucket of windows of the calendar (core/values/calendar.h), `10000/day@00:00`.
 *
 * It is filled at the beginning of each window, and nothing flows in between; its burst is the
 * window's tokens, and a take of more is never had. Tokens left of the window before are gone, a
 * debt, too. A window is told by its beginning: the bucket is filled for it once, and never for one
 * that began before that which it was filled for last. So a wall clock that is put back leaves the
 * level as it is until that window is over.
 *
 * Tokens that come back within WINDOW_NEW_NS of its beginning may be of the one before: they are
 * worth nothing.
 *
 * A host of a fleet has a part of the window, that of its leaves, exactly: flow.den is the number
 * of all leaves, and a leaf is worth 1/den of the tokens. The use of leaves goes with them and
 * comes with them; the level is the worth of the leaves less their use. So another number of tokens
 * changes the level by the difference, and leaves that may not be used just now keep their rest.
 *
 * Leaves of which it is not known what was used are worth nothing in this window, whatever its
 * number of tokens becomes: that may have been larger before, and as much used of them. The host
 * gives others back first.
 */
#ifndef RATEFS_CORE_WINDOW_H
#define RATEFS_CORE_WINDOW_H

#include "core/limiter/bucket.h"

/*
 * The tokens of a window: @tokens (0 to TOKENS_MAX) and @part/@whole of one more; 1 to 65,536. They
 * are those of @leaves of @whole; 0: of no leaves.
 */
struct window_share {
	uint64_t tokens;
	uint32_t part, whole, leaves;
};

/*
 * Makes an empty bucket of @window, which lives longer, with @share for each. It is as if filled
 * for the window of @now_ns.
 */
void window_init(struct bucket *bucket, struct window *window, const struct window_share *share,
		 uint64_t now_ns);

/*
 * Changes a bucket of windows: tokens used of this one stay used, of so many as @share has. Other
 * windows than before begin with the one that @now_ns is in.
 */
void window_retune(struct bucket *bucket, struct window *window, const struct window_share *share,
		   uint64_t now_ns);

/*
 * Of windows: returns when the one began that it was filled for last, and the tokens used of it,
 * rounded up.
 */
static inline int64_t window_begin_s(const struct bucket *bucket)
{
	return (int64_t)bucket->grid_ns;
}

static inline int64_t window_used(const struct bucket *bucket)
{
	return (int64_t)bucket->burst - bucket->level + (bucket->interval_ns > bucket->part);
}

/* The use of some leaves: @nano billionths of a token of the window that began at @begin_s. */
struct window_use {
	int64_t begin_s; /* 0: none was used; WINDOW_UNKNOWN: it is not known which one was */
	i128 nano;	 /* from 0; above TOKENS_MAX tokens: it is not known how much */
};

#define WINDOW_UNKNOWN INT64_MAX

/*
 * Takes out what was used of @part of @shares equal parts of the bucket, which the caller retunes
 * next. If something is known to be used of the next window, it is that. Refill first.
 */
struct window_use window_split_use(struct bucket *bucket, uint32_t part, uint32_t shares);

/*
 * Returns what may have been used of leaves that are worth @worth: it is not known how much of this
 * window, or all of the next. Refill first.
 */
struct window_use window_spent(const struct bucket *bucket, const struct window_share *worth);

/*
 * Puts in what was used of leaves that are worth @worth in each window; the caller retunes the
 * bucket next, so that it has them. They are worth all of that if @use is of an earlier window, and
 * what is left of it if @use is of this one. Else they are worth nothing in this window; and if
 * @use is of the next one, what is left of it in that. Refill first.
 */
void window_join_use(struct bucket *bucket, const struct window_use *use,
		     const struct window_share *worth);

/*
 * Caps what is used: of the window that began at @begin_s at most @used tokens, and nothing of a
 * later one; a use of more before stays. WINDOW_UNCAPPED: there is no cap any more. The use that
 * goes with leaves is taken off the cap. Refill first.
 */
void window_cap(struct bucket *bucket, int64_t begin_s, uint64_t used);

/* Returns that number of tokens; WINDOW_UNCAPPED. */
uint64_t window_capped(const struct bucket *bucket);

#define WINDOW_UNCAPPED UINT64_MAX

/* Tells whether a bucket that lacks @tokens has them beyond its cap. */
bool window_is_held_back(const struct bucket *bucket, uint64_t tokens);

/* Forgets what was used: the bucket has no leaves any more. */
void window_forget_use(struct bucket *bucket);

/*
 * Sets a bucket of windows to what was known before: @used tokens of the window that began at
 * @begin_s, with those of @unknown leaves, and @next_used of the one after it. If that is over the
 * bucket is full.
 */
void window_restore(struct bucket *bucket, int64_t begin_s, int64_t used, uint32_t unknown,
		    uint64_t next_used, uint64_t now_ns);

/* Refills a bucket of windows where the wall clock was set. */
void window_look_again(struct bucket *bucket, uint64_t now_ns);

/* Returns the time until its next window; NEVER_NS of a bucket of another kind. Refill first. */
uint64_t window_reset_ns(const struct bucket *bucket);

/* Refills the bucket, whose time has come; for bucket.c, as what follows. */
void window_refill(struct bucket *bucket, uint64_t now_ns);

/* Makes it full, as that of a new limit is. */
void window_fill(struct bucket *bucket);

/* Leaves no more in it than its own tokens. */
void window_spill(struct bucket *bucket);

/* Tells whether tokens that come back may be of the window before. */
bool window_is_new(const struct bucket *bucket);

/*
 * Returns when the bucket, which lacks some of @tokens, has had as many; of tokens beyond its cap,
 * when to look again.
 */
uint64_t window_when(const struct bucket *bucket, uint64_t tokens);

/* Returns the tokens of the windows that begin until @at_ns, at most. */
u128 window_flow(const struct bucket *bucket, uint64_t at_ns);

#endif
