/* rest - what is left in the buckets of a tile that no host uses, see rest.h. */
#include "core/fleet/rest.h"
#include "core/fleet/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FRACTION_DIGITS = 9 };

static const uint64_t NANO = UINT64_C(1000000000);
static const uint64_t TOKENS_MOST = UINT64_C(1) << 61; /* of an amount, either way */
static const int64_t BEGIN_MOST_S = INT64_C(9999999999);

static size_t print_amount(i128 nano, char *text, size_t size)
{
	u128 amount = nano < 0 ? (u128)-nano : (u128)nano;
	uint32_t fraction = (uint32_t)(amount % NANO);
	int digits = FRACTION_DIGITS;
	size_t used = (size_t)snprintf(text, size, "%s%" PRIu64, nano < 0 ? "-" : "",
				       (uint64_t)(amount / NANO));

	if (!fraction)
		return used;
	for (; fraction % 10 == 0; digits--)
		fraction /= 10;
	return used + (size_t)snprintf(text + used, size - used, ".%0*" PRIu32, digits, fraction);
}

static size_t print_begin(int64_t begin_s, char *text, size_t size)
{
	if (begin_s < 0 || begin_s > BEGIN_MOST_S)
		return (size_t)snprintf(text, size, "@?");
	return (size_t)snprintf(text, size, "@%" PRId64, begin_s);
}

void rest_print(const struct rest *rest, char text[REST_TEXT])
{
	size_t used = (size_t)snprintf(text, REST_TEXT, "%" PRIu64, rest->saved);

	for (uint32_t i = 0; i < rest->count; i++) {
		text[used++] = i ? ',' : ':';
		used += print_amount(rest->nano[i], text + used, REST_TEXT - used);
		if (rest_is_window(rest, i))
			used += print_begin(rest->begin_s[i], text + used, REST_TEXT - used);
	}
}

/* Reads the digits after the point; the last one is not 0. */
static bool parse_fraction(const char **text, uint64_t *nano)
{
	const char *digits = *text;
	uint64_t fraction;

	if (!record_parse_digits(text, NANO - 1, &fraction) || *text - digits > FRACTION_DIGITS ||
	    (*text)[-1] == '0')
		return false;
	for (ptrdiff_t i = *text - digits; i < FRACTION_DIGITS; i++)
		fraction *= 10;
	*nano = fraction;
	return true;
}

static bool parse_amount(const char **text, i128 *nano)
{
	bool debt = **text == '-';
	uint64_t tokens, fraction = 0;

	*text += debt;
	if ((**text == '0' && (*text)[1] >= '0' && (*text)[1] <= '9') ||
	    !record_parse_digits(text, TOKENS_MOST - 1, &tokens))
		return false;
	if (**text == '.') {
		++*text;
		if (!parse_fraction(text, &fraction))
			return false;
	}
	*nano = (i128)tokens * (i128)NANO + (i128)fraction;
	if (debt)
		*nano = -*nano;
	return !debt || *nano;
}

/* Reads what may stand behind amount @i: when its window began. */
static bool parse_begin(const char **text, struct rest *rest, uint32_t i)
{
	uint64_t begin_s;

	if (**text != '@')
		return true;
	++*text;
	rest->windows |= 1u << i;
	rest->begin_s[i] = WINDOW_UNKNOWN;
	if (rest->nano[i] < 0)
		return false;
	if (**text == '?') {
		++*text;
		return true;
	}
	if ((**text == '0' && (*text)[1] >= '0' && (*text)[1] <= '9') ||
	    !record_parse_digits(text, (uint64_t)BEGIN_MOST_S, &begin_s))
		return false;
	rest->begin_s[i] = (int64_t)begin_s;
	return true;
}

bool rest_parse(const char *text, struct rest *rest)
{
	*rest = (struct rest){0};
	if (*text == '0' || !record_parse_digits(&text, INT64_MAX, &rest->saved))
		return false;
	for (; *text; rest->count++) {
		if (rest->count == LIMITS_MAX || *text++ != (rest->count ? ',' : ':') ||
		    !parse_amount(&text, &rest->nano[rest->count]) ||
		    !parse_begin(&text, rest, rest->count))
			return false;
	}
	return true;
}

struct rest rest_full(const struct settings *settings, uint64_t saved)
{
	struct rest full = {.saved = saved, .count = settings->limit_count};

	for (uint32_t i = 0; i < full.count; i++) {
		if (rate_is_window(&settings->limits[i].rate))
			full.windows |= 1u << i;
		else
			full.nano[i] = (i128)settings_burst(settings, i) * (i128)NANO;
	}
	return full;
}

struct rest rest_unknown(const struct settings *settings, uint64_t saved)
{
	struct rest none = rest_full(settings, saved);

	for (uint32_t i = 0; i < none.count; i++) {
		none.nano[i] = 0;
		none.begin_s[i] = WINDOW_UNKNOWN;
	}
	return none;
}

/* Cuts @nano into @leaves parts that add up to it, and returns those from @first to @last. */
static i128 share_of(i128 nano, uint32_t first, uint32_t last, uint32_t leaves)
{
	return nano * (last + 1) / leaves - nano * first / leaves;
}

/* Returns what is known of windows, limit @i of @full, by @rest. */
static struct window_use use_now(const struct rest *rest, const struct rest *full, uint32_t i)
{
	if (rest->saved == full->saved && !rest->count)
		return (struct window_use){0};
	if (rest->saved == full->saved && i < rest->count && rest_is_window(rest, i))
		return rest_use(rest, i);
	return (struct window_use){.begin_s = WINDOW_UNKNOWN};
}

struct rest rest_now(const struct rest *rest, const struct rest *full, uint32_t first,
		     uint32_t last, uint32_t leaves)
{
	bool counts = rest->saved == full->saved;
	struct rest now = {.saved = full->saved, .count = full->count, .windows = full->windows};

	for (uint32_t i = 0; i < full->count; i++) {
		struct window_use use = use_now(rest, full, i);

		if (rest_is_window(full, i))
			rest_set_use(&now, i, &use);
		else if (rest_is_window(rest, i))
			now.nano[i] = 0;
		else if (i < rest->count && (counts || rest->nano[i] < 0))
			now.nano[i] = rest->nano[i];
		else if (counts && !rest->count)
			now.nano[i] = share_of(full->nano[i], first, last, leaves);
	}
	return now;
}

/* Rounds down, also below 0. */
static i128 divide(i128 nano, uint32_t part, uint32_t whole)
{
	i128 quotient = nano * part / whole;

	return nano * part % whole < 0 ? quotient - 1 : quotient;
}

struct rest rest_take(struct rest *rest, uint32_t part, uint32_t whole)
{
	struct rest taken = *rest;

	assert(part <= whole && whole);
	for (uint32_t i = 0; i < rest->count; i++) {
		taken.nano[i] = divide(rest->nano[i], part, whole);
		rest->nano[i] -= taken.nano[i];
	}
	return taken;
}

void rest_add(struct rest *rest, const struct rest *other)
{
	const i128 most = (i128)(TOKENS_MOST - 1) * (i128)NANO;

	assert(rest->saved == other->saved && rest->count == other->count);
	assert(rest->windows == other->windows);
	for (uint32_t i = 0; i < rest->count; i++) {
		if (rest->begin_s[i] == other->begin_s[i]) {
			rest->nano[i] += other->nano[i];
		} else if (rest->begin_s[i] < other->begin_s[i]) {
			rest->nano[i] = other->nano[i];
			rest->begin_s[i] = other->begin_s[i];
		}
		/* A debt stays as large as can be written: that much is never paid. */
		if (rest->nano[i] < -most)
			rest->nano[i] = -most;
		if (rest->nano[i] > most)
			rest->nano[i] = most;
	}
}

bool rest_is_equal(const struct rest *a, const struct rest *b)
{
	bool same = a->saved == b->saved && a->count == b->count && a->windows == b->windows;

	for (uint32_t i = 0; i < a->count && same; i++)
		same = a->nano[i] == b->nano[i] && a->begin_s[i] == b->begin_s[i];
	return same;
}

struct window_use rest_use(const struct rest *rest, uint32_t i)
{
	return (struct window_use){rest->begin_s[i], rest->nano[i]};
}

void rest_set_use(struct rest *rest, uint32_t i, const struct window_use *use)
{
	i128 most = (i128)(TOKENS_MOST - 1) * (i128)NANO;

	rest->windows |= 1u << i;
	rest->begin_s[i] = use->begin_s;
	rest->nano[i] = use->nano < most ? use->nano : most;
}

struct bucket_part rest_part(const struct rest *rest, uint32_t i)
{
	i128 nano = rest->nano[i], tokens = nano / (i128)NANO;

	if (nano % (i128)NANO < 0)
		tokens--;
	return (struct bucket_part){
		.tokens = (int64_t)tokens,
		.nano = (uint32_t)(nano - tokens * (i128)NANO),
	};
}

void rest_set_part(struct rest *rest, uint32_t i, const struct bucket_part *part)
{
	rest->nano[i] = (i128)part->tokens * (i128)NANO + (i128)part->nano;
}
