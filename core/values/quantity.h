/*
 * quantity - text to and from rates, durations, counts and tokens.
 *
 * The only parser of values in the project. A rate keeps the number, the unit and the period it was
 * written with, so that what is read back is the same text in its shortest exact spelling, and
 * gives an exact fraction to calculate with.
 *
 * Every parser takes a text without surrounding white space, NUL-terminated, and returns 0, -EINVAL
 * (not understood) or -ERANGE (understood, out of bounds); on error the result is untouched.
 * A number that cannot be kept exactly is out of bounds: more than 18 digits, or 9 after the point.
 * Every printer writes a NUL-terminated text of less than QUANTITY_TEXT bytes.
 */
#ifndef RATEFS_CORE_QUANTITY_H
#define RATEFS_CORE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 i128;

enum { QUANTITY_TEXT = 64 };

#define NSEC_PER_SEC UINT64_C(1000000000)

/* Texts of refusals of a word that is not understood. */
#define SUFFIX_NAMES "k M G T Ki Mi Gi Ti"
#define PERIOD_NAMES "ns us ms s min h d"
#define RATE_WHY                                                                 \
	"not a rate: NUMBER[SUFFIX]/PERIOD such as 500/s, 2GiB/min or 1000/90s " \
	"(SUFFIX: " SUFFIX_NAMES "; PERIOD: " PERIOD_NAMES "), or max, or 0"
#define DURATION_WHY \
	"not a duration: such as 200ms, 15s or 1h (" PERIOD_NAMES "), or a number of seconds"

/* A time or duration that never comes. */
#define NEVER_NS UINT64_MAX

/* Bounds of values, inclusive. A rate of 0 and a rate of `max` stand beside the bounds of rates. */
#define TOKENS_MAX	   UINT64_C(10000000000000) /* 1e13, in one take, burst or charge */
#define RATE_MAX_PER_SEC   UINT64_C(1000000000000)  /* 1e12 tokens a second */
#define RATE_MIN_PERIOD_NS (UINT64_C(26) * 86400 * NSEC_PER_SEC)   /* one token in 26 days */
#define DURATION_MAX_NS	   (UINT64_C(3650) * 86400 * NSEC_PER_SEC) /* ten years */

/* A decimal number of at most 9 digits after the point is kept in billionths. */
#define DECIMAL_ONE UINT64_C(1000000000)

/* Into how many shares a rate can be cut. */
enum { SHARES_MAX = 4096 };

/* Parts of a rate's fraction are below this, so those of a share are below 2^63. 26 days are. */
#define RATE_PART_LIMIT ((UINT64_C(1) << 63) / SHARES_MAX)

/* How a rate limits. */
enum rate_kind {
	RATE_FLOW,   /* tokens flow in one by one */
	RATE_STRICT, /* `10/60s,strict`: never more tokens than the amount in any period */

	/* Windows of the calendar, full at their beginning: see calendar.h. */
	RATE_MINUTE,
	RATE_HOUR,
	RATE_DAY,
	RATE_WEEK,
	RATE_MONTH,
	RATE_YEAR,
	RATE_KIND_COUNT
};

/* A rate as it was written: amount / 10^decimals * unit tokens per period. */
struct rate {
	uint64_t amount;    /* digits without the point; UINT64_MAX is `max`, 0 is `0` */
	uint64_t period_ns; /* 1 ns to DURATION_MAX_NS; of a window: as long as it commonly is */
	uint8_t decimals;   /* 0 to 9, the last digit of amount is then not 0 */
	uint8_t unit;	    /* index of the unit; 0 is none */
	uint8_t kind;	    /* enum rate_kind */

	/* Of a window of the calendar: its beginning, as calendar.h has it. */
	uint8_t month; /* 1 to 12, of a year */
	uint16_t at;
	uint16_t zone; /* a number of zone.h */
};

/* A rate to calculate with: num / den tokens a nanosecond, in lowest terms, den > 0. */
struct fraction {
	uint64_t num;
	uint64_t den;
};

static const struct rate RATE_UNLIMITED = {.amount = UINT64_MAX, .period_ns = NSEC_PER_SEC};

static inline bool rate_is_unlimited(const struct rate *rate)
{
	return rate->amount == UINT64_MAX;
}

/* Tells whether it is of windows of the calendar. */
static inline bool rate_is_window(const struct rate *rate)
{
	return rate->kind >= RATE_MINUTE;
}

/* Returns which windows of the calendar it is of; 0: none. */
static inline uint8_t rate_window_kind(const struct rate *rate)
{
	return rate_is_window(rate) ? rate->kind : 0;
}

static inline bool rate_is_strict(const struct rate *rate)
{
	return rate->kind == RATE_STRICT;
}

/*
 * NUMBER[SUFFIX]/PERIOD, NUMBER[SUFFIX] (a second), `max` or `0`. rate_parse_limit() takes
 * NUMBER[SUFFIX]/PERIOD,strict, too, of which the number is whole, and 1 to TOKENS_MAX.
 */
int rate_parse(const char *text, struct rate *rate);
int rate_parse_limit(const char *text, struct rate *rate);
void rate_print(const struct rate *rate, char text[QUANTITY_TEXT]);

/* Exact; 0/1 for the rate 0. Not for `max`. Parts are below RATE_PART_LIMIT; a share's, 2^63. */
struct fraction rate_fraction(const struct rate *rate);

/* Tells whether both flow, or are strict windows of one length. */
bool rate_limits_alike(const struct rate *a, const struct rate *b);

/* Returns the tokens of a strict window, and @part of @all equal parts of it, rounded down. */
uint64_t rate_window(const struct rate *rate);
struct rate rate_window_part(const struct rate *rate, uint64_t all, uint64_t part);

/*
 * One of @count (1 to SHARES_MAX) equal shares of a rate that was parsed, exactly. `max` and 0 stay
 * what they are. A share may be slower or finer than what rate_parse() takes. That of a strict
 * window is rounded down to whole tokens.
 */
struct rate rate_share(const struct rate *rate, uint32_t count);

/*
 * The rate num / den / count tokens a nanosecond, written a second if it can be.
 * 0, or -ERANGE when the reduced parts do not fit a rate. num > 0, den > 0.
 */
int rate_from_fraction(u128 num, u128 den, uint32_t count, struct rate *rate);

/*
 * Returns the rate num / den tokens a nanosecond, less by a part in 2^30 at most where the reduced
 * parts do not fit a rate; 0 below a token in 2^63 ns. den > 0; both are below 2^127.
 */
struct rate rate_below(u128 num, u128 den);

/* Compares exactly; `max` is above all others. Negative, 0 or positive. */
int rate_compare(const struct rate *a, const struct rate *b);

/*
 * Tokens a second, rounded; infinity for `max`, and for a window, which may be used up at any pace.
 * For gauges, never for decisions.
 */
double rate_per_second(const struct rate *rate);
double fraction_per_second(const struct fraction *fraction);

/*
 * NUMBER and one of PERIOD_NAMES, or one of these alone, which is 1 of it, or a NUMBER of seconds:
 * 0 to DURATION_MAX_NS, whole nanoseconds.
 */
int duration_parse(const char *text, uint64_t *ns);
void duration_print(uint64_t ns, char text[QUANTITY_TEXT]);

/* Seconds with @digits (0 to 9) after the point, rounded up; `inf` for NEVER_NS. */
void seconds_print(uint64_t ns, unsigned int digits, char text[QUANTITY_TEXT]);

/* Whole number, or `max` (UINT64_MAX). */
int count_parse(const char *text, uint64_t *count);
void count_print(uint64_t count, char text[QUANTITY_TEXT]);

/* A number of tokens to take: 0 to TOKENS_MAX, with or without a UNIT, whole. */
int tokens_parse(const char *text, uint64_t *tokens);

/*
 * The name of a take: N tokens as above, then @most is @tokens; or A-B, from A to B of them, where
 * 1 <= A <= B.
 */
int tokens_parse_range(const char *text, uint64_t *tokens, uint64_t *most);

/*
 * NUMBER[SUFFIX], in the first @length bytes of @text, as the amount of @rate. 0, -EINVAL, or
 * -ERANGE: no whole number, 1 to TOKENS_MAX. And back.
 */
int rate_parse_amount(const char *text, size_t length, struct rate *rate);
void rate_print_amount(const struct rate *rate, char text[QUANTITY_TEXT]);

/* Returns the tokens of one window. */
uint64_t rate_window_tokens(const struct rate *rate);

/* A number of `charge`: tokens with an optional sign, up to TOKENS_MAX either way. */
int charge_parse(const char *text, int64_t *tokens);

/* A decimal number such as 0.9: digits, and up to 9 after a point. 0, -EINVAL or -ERANGE. */
int decimal_parse(const char *text, uint64_t *billionths);
void decimal_print(uint64_t billionths, char text[QUANTITY_TEXT]);

#endif
