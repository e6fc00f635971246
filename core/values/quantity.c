/* quantity - text to and from rates, durations, counts and tokens, see quantity.h. */
#include "core/values/quantity.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DECIMALS_MAX = 9 };

#define MANTISSA_MAX UINT64_C(999999999999999999) /* 18 digits */
#define SLOW_NS	     (UINT64_C(1) << 31)	  /* between tokens, see rate_below() */

static const struct {
	const char *name;
	uint64_t tokens;
} UNITS[] = {
	{"", 1},
	{"k", UINT64_C(1000)},
	{"M", UINT64_C(1000000)},
	{"G", UINT64_C(1000000000)},
	{"T", UINT64_C(1000000000000)},
	{"Ki", UINT64_C(1) << 10},
	{"Mi", UINT64_C(1) << 20},
	{"Gi", UINT64_C(1) << 30},
	{"Ti", UINT64_C(1) << 40},
};

enum { UNITS_COUNT = sizeof(UNITS) / sizeof(UNITS[0]) };

/* Longest first, and of equals first the one that is printed. */
static const struct {
	const char *name;
	uint64_t ns;
} PERIODS[] = {
	{"d", 86400 * NSEC_PER_SEC},
	{"day", 86400 * NSEC_PER_SEC},
	{"h", 3600 * NSEC_PER_SEC},
	{"hour", 3600 * NSEC_PER_SEC},
	{"min", 60 * NSEC_PER_SEC},
	{"minute", 60 * NSEC_PER_SEC},
	{"s", NSEC_PER_SEC},
	{"sec", NSEC_PER_SEC},
	{"second", NSEC_PER_SEC},
	{"ms", 1000000},
	{"us", 1000},
	{"ns", 1},
};

enum { PERIODS_COUNT = sizeof(PERIODS) / sizeof(PERIODS[0]) };

static const uint64_t POWERS_OF_TEN[DECIMALS_MAX + 1] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
};

/* mantissa / 10^decimals; the last of the decimals is not 0. */
struct number {
	uint64_t mantissa;
	uint8_t decimals;
	bool fits; /* false: too many digits, the rest of it means nothing */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static u128 gcd(u128 a, u128 b)
{
	while (b) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void number_append(struct number *number, char digit)
{
	uint64_t value = (uint64_t)(digit - '0');

	if (number->mantissa > (MANTISSA_MAX - value) / 10)
		number->fits = false;
	else
		number->mantissa = number->mantissa * 10 + value;
}

/*
 * Reads DIGITS[.DIGITS] and returns what comes after it, or NULL if there is no such thing.
 * A number that is too long is read to its end, so that what is wrong after it is seen first.
 */
static const char *number_read(const char *text, struct number *number)
{
	size_t place = 0;

	*number = (struct number){.fits = true};
	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++)
		number_append(number, *text);
	if (*text != '.')
		return text;
	text++;
	if (!is_digit(*text))
		return NULL;
	for (; is_digit(*text); text++) {
		place++;
		if (*text == '0')
			continue;
		if (place > DECIMALS_MAX) {
			number->fits = false;
			continue;
		}
		while (++number->decimals < place)
			number_append(number, '0');
		number_append(number, *text);
	}
	return text;
}

/* NUMBER[SUFFIX][B] in the first @length bytes of @text. */
static int amount_read(const char *text, size_t length, struct number *number, uint8_t *unit)
{
	const char *end = text + length, *name = number_read(text, number);
	size_t name_length;

	if (!name)
		return -EINVAL;
	if (end > name && end[-1] == 'B')
		end--;
	name_length = (size_t)(end - name);
	for (uint8_t i = 0; i < UNITS_COUNT; i++) {
		if (strlen(UNITS[i].name) != name_length ||
		    memcmp(UNITS[i].name, name, name_length) != 0)
			continue;
		*unit = i;
		return number->fits ? 0 : -ERANGE;
	}
	return -EINVAL;
}

/* number * @scale as a whole number of at most @max. */
static int number_scale(const struct number *number, uint64_t scale, uint64_t max, uint64_t *whole)
{
	u128 product = (u128)number->mantissa * scale;
	uint64_t divisor = POWERS_OF_TEN[number->decimals];

	if (!number->fits || product % divisor || product / divisor > max)
		return -ERANGE;
	*whole = (uint64_t)(product / divisor);
	return 0;
}

/* The exact rate in lowest terms, whatever the size of its parts. */
static void rate_reduce(const struct rate *rate, u128 *num, u128 *den)
{
	u128 divisor;

	assert(!rate_is_unlimited(rate));
	assert(rate->decimals <= DECIMALS_MAX && rate->unit < UNITS_COUNT && rate->period_ns);
	*num = (u128)rate->amount * UNITS[rate->unit].tokens;
	*den = (u128)POWERS_OF_TEN[rate->decimals] * rate->period_ns;
	divisor = gcd(*num, *den);
	*num /= divisor;
	*den /= divisor;
}

static bool rate_in_bounds(const struct rate *rate)
{
	u128 num, den;

	rate_reduce(rate, &num, &den);
	return num < RATE_PART_LIMIT && den < RATE_PART_LIMIT &&
	       num * NSEC_PER_SEC <= den * RATE_MAX_PER_SEC && num * RATE_MIN_PERIOD_NS >= den;
}

int rate_parse(const char *text, struct rate *rate)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	uint64_t period_ns = NSEC_PER_SEC;
	struct number number;
	struct rate parsed;
	uint8_t unit = 0;
	int amount_error, period_error = 0;

	if (strcmp(text, "max") == 0) {
		*rate = RATE_UNLIMITED;
		return 0;
	}
	amount_error = amount_read(text, length, &number, &unit);
	if (slash)
		period_error = duration_parse(slash + 1, &period_ns);
	if (amount_error == -EINVAL || period_error == -EINVAL)
		return -EINVAL;
	if (amount_error || period_error || !period_ns)
		return -ERANGE;
	if (!number.mantissa) {
		*rate = (struct rate){.period_ns = NSEC_PER_SEC};
		return 0;
	}
	parsed = (struct rate){.amount = number.mantissa,
			       .period_ns = period_ns,
			       .decimals = number.decimals,
			       .unit = unit};
	if (!rate_in_bounds(&parsed))
		return -ERANGE;
	*rate = parsed;
	return 0;
}

int rate_parse_limit(const char *text, struct rate *rate)
{
	static const char suffix[] = ",strict";
	const char *comma = strchr(text, ',');
	struct rate parsed;
	char copy[QUANTITY_TEXT];
	int err;

	if (!comma)
		return rate_parse(text, rate);
	if (strcmp(comma, suffix) != 0 || (size_t)(comma - text) >= sizeof(copy))
		return -EINVAL;
	snprintf(copy, sizeof(copy), "%.*s", (int)(comma - text), text);
	err = rate_parse(copy, &parsed);
	if (err)
		return err;
	if (rate_is_unlimited(&parsed))
		return -EINVAL;
	if ((u128)parsed.amount * UNITS[parsed.unit].tokens % POWERS_OF_TEN[parsed.decimals] ||
	    !rate_window(&parsed) || rate_window(&parsed) > TOKENS_MAX)
		return -ERANGE;
	parsed.kind = RATE_STRICT;
	*rate = parsed;
	return 0;
}

bool rate_limits_alike(const struct rate *a, const struct rate *b)
{
	return a->kind == b->kind && (!rate_is_strict(a) || a->period_ns == b->period_ns);
}

uint64_t rate_window(const struct rate *rate)
{
	u128 tokens = (u128)rate->amount * UNITS[rate->unit].tokens / POWERS_OF_TEN[rate->decimals];

	return tokens < UINT64_MAX ? (uint64_t)tokens : UINT64_MAX;
}

struct rate rate_window_part(const struct rate *rate, uint64_t all, uint64_t part)
{
	u128 tokens = (u128)rate_window(rate) * part / all;

	if (!tokens)
		return (struct rate){.period_ns = NSEC_PER_SEC};
	if (part == all)
		return *rate;
	return (struct rate){
		.amount = (uint64_t)tokens, .period_ns = rate->period_ns, .kind = RATE_STRICT};
}

/* In the largest unit that divides it. A number of 1 is left out if @terse. */
static void period_print(char *text, size_t size, uint64_t ns, bool terse)
{
	size_t i = 0;

	assert(ns);
	while (ns % PERIODS[i].ns)
		i++;
	if (terse && ns == PERIODS[i].ns)
		snprintf(text, size, "%s", PERIODS[i].name);
	else
		snprintf(text, size, "%" PRIu64 "%s", ns / PERIODS[i].ns, PERIODS[i].name);
}

int rate_parse_amount(const char *text, size_t length, struct rate *rate)
{
	struct number number;
	uint64_t tokens;
	uint8_t unit = 0;
	int error = amount_read(text, length, &number, &unit);

	if (!error)
		error = number_scale(&number, UNITS[unit].tokens, TOKENS_MAX, &tokens);
	if (!error && !tokens)
		error = -ERANGE;
	if (error)
		return error;
	rate->amount = number.mantissa;
	rate->decimals = number.decimals;
	rate->unit = unit;
	return 0;
}

void rate_print_amount(const struct rate *rate, char text[QUANTITY_TEXT])
{
	uint64_t scale = POWERS_OF_TEN[rate->decimals];
	char decimals[DECIMALS_MAX + 2] = "";

	if (rate->decimals)
		snprintf(decimals, sizeof(decimals), ".%0*u", (int)rate->decimals,
			 (unsigned int)(rate->amount % scale));
	snprintf(text, QUANTITY_TEXT, "%" PRIu64 "%s%s", rate->amount / scale, decimals,
		 UNITS[rate->unit].name);
}

uint64_t rate_window_tokens(const struct rate *rate)
{
	return (uint64_t)((u128)rate->amount * UNITS[rate->unit].tokens /
			  POWERS_OF_TEN[rate->decimals]);
}

void rate_print(const struct rate *rate, char text[QUANTITY_TEXT])
{
	size_t length;

	if (rate_is_unlimited(rate) || !rate->amount) {
		snprintf(text, QUANTITY_TEXT, "%s", rate->amount ? "max" : "0");
		return;
	}
	rate_print_amount(rate, text);
	length = strlen(text);
	text[length++] = '/';
	period_print(text + length, QUANTITY_TEXT - length, rate->period_ns, true);
	length = strlen(text);
	if (rate_is_strict(rate))
		snprintf(text + length, QUANTITY_TEXT - length, ",strict");
}

struct fraction rate_fraction(const struct rate *rate)
{
	u128 num, den;

	rate_reduce(rate, &num, &den);
	assert(num <= INT64_MAX && den <= INT64_MAX);
	return (struct fraction){(uint64_t)num, (uint64_t)den};
}

/* Divides the amount, with as many more decimals as it takes. False if that is too many. */
static bool amount_divide(struct rate *rate, uint64_t count)
{
	uint64_t amount = rate->amount, common = (uint64_t)gcd(amount, count);
	uint8_t decimals = rate->decimals;

	amount /= common;
	count /= common;
	while (count > 1) {
		if (decimals == DECIMALS_MAX || amount > MANTISSA_MAX / 10)
			return false;
		amount *= 10;
		decimals++;
		common = (uint64_t)gcd(amount, count);
		amount /= common;
		count /= common;
	}
	rate->amount = amount;
	rate->decimals = decimals;
	return true;
}

/* Writes the unit out in digits. False if that is too many. */
static bool unit_expand(struct rate *rate)
{
	u128 amount = (u128)rate->amount * UNITS[rate->unit].tokens;
	uint8_t decimals = rate->decimals;

	while (decimals && amount % 10 == 0) {
		amount /= 10;
		decimals--;
	}
	if (amount > MANTISSA_MAX)
		return false;
	rate->amount = (uint64_t)amount;
	rate->decimals = decimals;
	rate->unit = 0;
	return true;
}

int rate_from_fraction(u128 num, u128 den, uint32_t count, struct rate *rate)
{
	u128 common = gcd(num, den), per_second, seconds;

	assert(num && den && count >= 1 && count <= SHARES_MAX);
	num /= common;
	den /= common;
	common = gcd(num, count);
	num /= common;
	if (num > INT64_MAX || den > INT64_MAX / (count / common))
		return -ERANGE;
	den *= count / common;

	common = gcd(NSEC_PER_SEC, den);
	per_second = num * (NSEC_PER_SEC / common);
	seconds = den / common;
	if (per_second <= MANTISSA_MAX && seconds <= DURATION_MAX_NS / NSEC_PER_SEC) {
		*rate = (struct rate){.amount = (uint64_t)per_second, .period_ns = NSEC_PER_SEC};
		if (!amount_divide(rate, (uint64_t)seconds))
			rate->period_ns *= (uint64_t)seconds;
	} else {
		*rate = (struct rate){.amount = (uint64_t)num, .period_ns = (uint64_t)den};
	}
	return 0;
}

struct rate rate_below(u128 num, u128 den)
{
	struct rate rate = {.period_ns = NSEC_PER_SEC};
	u128 common = gcd(num, den);

	assert(den);
	num /= common;
	den /= common;
	/* Of a slow rate the time between two tokens is more exact, rounded up. */
	if (num && den > INT64_MAX && den / num >= SLOW_NS) {
		den = den / num + 1;
		num = 1;
	}
	for (; num > INT64_MAX || den > INT64_MAX; num /= 2)
		den = den / 2 + 1;
	if (num)
		(void)rate_from_fraction(num, den, 1, &rate);
	return rate;
}

struct rate rate_share(const struct rate *rate, uint32_t count)
{
	struct rate share = *rate, expanded = *rate;
	struct fraction fraction;
	uint64_t common;

	assert(count >= 1 && count <= SHARES_MAX);
	if (rate_is_unlimited(rate) || !rate->amount)
		return share;
	if (rate_is_strict(rate))
		return rate_window_part(rate, count, 1);
	if (amount_divide(&share, count))
		return share;
	if (unit_expand(&expanded) && amount_divide(&expanded, count))
		return expanded;
	common = (uint64_t)gcd(rate->amount, count);
	if (rate->period_ns <= DURATION_MAX_NS / (count / common)) {
		share.amount /= common;
		share.period_ns *= count / common;
		return share;
	}
	fraction = rate_fraction(rate);
	assert(fraction.num < RATE_PART_LIMIT && fraction.den < RATE_PART_LIMIT);
	(void)rate_from_fraction(fraction.num, fraction.den, count, &share);
	return share;
}

int rate_compare(const struct rate *a, const struct rate *b)
{
	struct fraction x, y;
	u128 left, right;

	if (rate_is_unlimited(a) || rate_is_unlimited(b))
		return rate_is_unlimited(a) - rate_is_unlimited(b);
	x = rate_fraction(a);
	y = rate_fraction(b);
	left = (u128)x.num * y.den;
	right = (u128)y.num * x.den;
	return (left > right) - (left < right);
}

double fraction_per_second(const struct fraction *fraction)
{
	return (double)fraction->num * (double)NSEC_PER_SEC / (double)fraction->den;
}

double rate_per_second(const struct rate *rate)
{
	struct fraction fraction;

	if (rate_is_unlimited(rate) || rate_is_window(rate))
		return INFINITY;
	fraction = rate_fraction(rate);
	return fraction_per_second(&fraction);
}

int duration_parse(const char *text, uint64_t *ns)
{
	struct number number = {.mantissa = 1, .fits = true};
	bool has_number = is_digit(*text);

	if (has_number)
		text = number_read(text, &number);
	if (!text)
		return -EINVAL;
	if (has_number && !*text)
		return number_scale(&number, NSEC_PER_SEC, DURATION_MAX_NS, ns);
	for (size_t i = 0; i < PERIODS_COUNT; i++) {
		if (strcmp(text, PERIODS[i].name) == 0)
			return number_scale(&number, PERIODS[i].ns, DURATION_MAX_NS, ns);
	}
	return -EINVAL;
}

void duration_print(uint64_t ns, char text[QUANTITY_TEXT])
{
	if (ns)
		period_print(text, QUANTITY_TEXT, ns, false);
	else
		snprintf(text, QUANTITY_TEXT, "0s");
}

void seconds_print(uint64_t ns, unsigned int digits, char text[QUANTITY_TEXT])
{
	uint64_t scale, step, steps;

	assert(digits <= DECIMALS_MAX);
	scale = POWERS_OF_TEN[digits];
	step = NSEC_PER_SEC / scale;
	steps = ns / step + (ns % step != 0);
	if (ns == NEVER_NS)
		snprintf(text, QUANTITY_TEXT, "inf");
	else if (digits)
		snprintf(text, QUANTITY_TEXT, "%" PRIu64 ".%0*" PRIu64, steps / scale, (int)digits,
			 steps % scale);
	else
		snprintf(text, QUANTITY_TEXT, "%" PRIu64, steps);
}

int count_parse(const char *text, uint64_t *count)
{
	struct number number;

	if (strcmp(text, "max") == 0) {
		*count = UINT64_MAX;
		return 0;
	}
	if (strchr(text, '.') || !(text = number_read(text, &number)) || *text)
		return -EINVAL;
	return number_scale(&number, 1, MANTISSA_MAX, count);
}

void count_print(uint64_t count, char text[QUANTITY_TEXT])
{
	if (count == UINT64_MAX)
		snprintf(text, QUANTITY_TEXT, "max");
	else
		snprintf(text, QUANTITY_TEXT, "%" PRIu64, count);
}

int tokens_parse(const char *text, uint64_t *tokens)
{
	struct number number;
	uint8_t unit = 0;
	int error;

	error = amount_read(text, strlen(text), &number, &unit);
	return error ? error : number_scale(&number, UNITS[unit].tokens, TOKENS_MAX, tokens);
}

int tokens_parse_range(const char *text, uint64_t *tokens, uint64_t *most)
{
	size_t length = strcspn(text, "-");
	char first[QUANTITY_TEXT];
	uint64_t least, last;
	int error;

	if (length >= sizeof(first))
		return -EINVAL;
	memcpy(first, text, length);
	first[length] = '\0';
	error = tokens_parse(first, &least);
	last = least;
	if (!error && text[length])
		error = tokens_parse(text + length + 1, &last);
	if (error)
		return error;
	if (text[length] && (!least || least > last))
		return -ERANGE;
	*tokens = least;
	*most = last;
	return 0;
}

int charge_parse(const char *text, int64_t *tokens)
{
	bool negative = *text == '-';
	uint64_t size = 0;
	int error;

	error = tokens_parse(negative || *text == '+' ? text + 1 : text, &size);
	if (error)
		return error;
	*tokens = negative ? -(int64_t)size : (int64_t)size;
	return 0;
}

enum { DECIMAL_DIGITS = 9, WHOLE_DIGITS = 9 };

int decimal_parse(const char *text, uint64_t *billionths)
{
	uint64_t value = 0;
	size_t whole = strspn(text, "0123456789"), part = 0;
	const char *rest = text + whole;

	if (*rest == '.') {
		part = strspn(++rest, "0123456789");
		if (!part)
			return -EINVAL;
	}
	if (!whole || rest[part])
		return -EINVAL;
	if (whole > WHOLE_DIGITS || part > DECIMAL_DIGITS)
		return -ERANGE;
	for (size_t i = 0; i < whole; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	for (size_t i = 0; i < DECIMAL_DIGITS; i++)
		value = value * 10 + (i < part ? (uint64_t)(rest[i] - '0') : 0);
	*billionths = value;
	return 0;
}

void decimal_print(uint64_t billionths, char text[QUANTITY_TEXT])
{
	int length = snprintf(text, QUANTITY_TEXT, "%llu.%09llu",
			      (unsigned long long)(billionths / DECIMAL_ONE),
			      (unsigned long long)(billionths % DECIMAL_ONE));

	while (text[length - 1] == '0')
		text[--length] = '\0';
	if (text[length - 1] == '.')
		text[--length] = '\0';
}
