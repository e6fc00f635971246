/*
 * rest - what is left in the buckets of a tile that no host uses, exactly; see tile.h.
 *
 * A rest has one amount for each limit, in billionths of a token. A split takes out of one
 * amount exactly as much as it gives to the other, so nothing comes into being by splits and
 * merges. A debt is a negative amount.
 *
 * The amount of windows of the calendar is what was used of the last one that any was used of, and
 * behind it stands when that one began. Of two that are merged the later window counts: nothing was
 * used of it by the other one's leaves.
 *
 * A rest counts as long as the settings have the limits and the bursts that it was written under.
 * The record's `saved` is the generation since which they are so, and each rest repeats it. All
 * that a rest of another time still says is a debt. A rest without amounts is that of a tile of
 * which nothing was taken yet.
 */
#ifndef RATEFS_CORE_REST_H
#define RATEFS_CORE_REST_H

#include "core/limiter/window.h"
#include "core/values/settings.h"

struct rest {
	uint64_t saved;	       /* 1 to 2^63 - 1 */
	uint32_t count;	       /* amounts that follow; 0: nothing was taken of any limit */
	i128 nano[LIMITS_MAX]; /* of each limit: at most 2^61 tokens either way */
	/*
	 * Of windows of the calendar: when the one began that @nano was used of, in seconds since
	 * 1970; 0: none was used; WINDOW_UNKNOWN: it is not known.
	 */
	int64_t begin_s[LIMITS_MAX];
	uint32_t windows; /* a bit for each limit that is of windows of the calendar */
};

/* For any rest as text, with the zero at its end. */
enum { REST_TEXT = 20 + LIMITS_MAX * 42 };

/*
 * Prints @rest: SAVED, and behind a colon the amounts with commas between them, `7:20.5,-3`; of
 * windows with the beginning, `7:20@1732320000`, or a question mark if it is not known.
 * Reads @text back, which must be exactly as it would be printed. False: it is not.
 */
void rest_print(const struct rest *rest, char text[REST_TEXT]);
bool rest_parse(const char *text, struct rest *rest);

/*
 * Returns what all of a limiter with @settings holds that nothing was taken of; and what is left
 * where that is not known.
 */
struct rest rest_full(const struct settings *settings, uint64_t saved);
struct rest rest_unknown(const struct settings *settings, uint64_t saved);

/*
 * Returns what @rest, that of leaves @first to @last of @leaves, comes to under the settings by
 * which @full is all that there is.
 */
struct rest rest_now(const struct rest *rest, const struct rest *full, uint32_t first,
		     uint32_t last, uint32_t leaves);

/* Tells whether amount @i is of windows of the calendar; returns it, and sets it. */
static inline bool rest_is_window(const struct rest *rest, uint32_t i)
{
	return rest->windows >> i & 1;
}

struct window_use rest_use(const struct rest *rest, uint32_t i);
void rest_set_use(struct rest *rest, uint32_t i, const struct window_use *use);

/* Returns amount @i as a bucket takes it; sets it to what was taken out of one. */
struct bucket_part rest_part(const struct rest *rest, uint32_t i);
void rest_set_part(struct rest *rest, uint32_t i, const struct bucket_part *part);

/* Takes @part of @whole equal parts out of @rest, rounded down. */
struct rest rest_take(struct rest *rest, uint32_t part, uint32_t whole);

/* Adds @other, which has the same `saved` and amounts of the same kinds. */
void rest_add(struct rest *rest, const struct rest *other);

bool rest_is_equal(const struct rest *a, const struct rest *b);

#endif
