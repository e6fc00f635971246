/* fuzz_quantity - every parser of values on any text, and what must hold for what it takes. */
#include "fuzz.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <string.h>

static bool is_result(int error)
{
	return error == 0 || error == -EINVAL || error == -ERANGE;
}

static bool rate_equal(const struct rate *a, const struct rate *b)
{
	return a->amount == b->amount && a->period_ns == b->period_ns &&
	       a->decimals == b->decimals && a->unit == b->unit;
}

static void print_rate(const struct rate *rate, char text[QUANTITY_TEXT])
{
	memset(text, '#', QUANTITY_TEXT);
	rate_print(rate, text);
	FUZZ_CHECK(memchr(text, '\0', QUANTITY_TEXT));
}

static bool is_parsable(const struct rate *rate)
{
	struct fraction fraction = rate_fraction(rate);

	return fraction.num < RATE_PART_LIMIT && fraction.den < RATE_PART_LIMIT &&
	       (u128)fraction.num * RATE_MIN_PERIOD_NS >= fraction.den;
}

static void check_share(const struct rate *rate, uint32_t count)
{
	struct fraction whole = rate_fraction(rate), part, direct;
	struct rate share = rate_share(rate, count), again;
	char text[QUANTITY_TEXT];

	part = rate_fraction(&share);
	FUZZ_CHECK(part.num <= INT64_MAX && part.den <= INT64_MAX);
	FUZZ_CHECK((u128)part.num * count * whole.den == (u128)whole.num * part.den);
	FUZZ_CHECK(count == 1 ? rate_equal(&share, rate) : rate_compare(&share, rate) < 0);

	print_rate(&share, text);
	if (is_parsable(&share)) {
		FUZZ_CHECK(rate_parse(text, &again) == 0);
		FUZZ_CHECK(rate_equal(&share, &again));
	} else {
		FUZZ_CHECK(rate_parse(text, &again) == -ERANGE);
	}

	FUZZ_CHECK(rate_from_fraction(whole.num, whole.den, count, &again) == 0);
	direct = rate_fraction(&again);
	FUZZ_CHECK(direct.num == part.num && direct.den == part.den);
}

static void try_rate(const char *text, uint32_t count)
{
	const struct rate untouched = {7, 7, 7, 7};
	struct rate rate = untouched, again;
	struct fraction fraction;
	char printed[QUANTITY_TEXT], twice[QUANTITY_TEXT];
	int error = rate_parse(text, &rate);

	FUZZ_CHECK(is_result(error));
	if (error) {
		FUZZ_CHECK(rate_equal(&rate, &untouched));
		return;
	}
	print_rate(&rate, printed);
	FUZZ_CHECK(rate_parse(printed, &again) == 0);
	FUZZ_CHECK(rate_equal(&rate, &again));
	FUZZ_CHECK(rate_compare(&rate, &again) == 0);
	print_rate(&again, twice);
	FUZZ_CHECK(strcmp(printed, twice) == 0);
	if (rate_is_unlimited(&rate))
		return;
	FUZZ_CHECK(rate.decimals <= 9 && rate.period_ns <= DURATION_MAX_NS);
	FUZZ_CHECK(!rate.decimals || rate.amount % 10);
	fraction = rate_fraction(&rate);
	FUZZ_CHECK(fraction.num < RATE_PART_LIMIT && fraction.den < RATE_PART_LIMIT);
	FUZZ_CHECK((fraction.num == 0) == (rate.amount == 0));
	FUZZ_CHECK(rate_per_second(&rate) >= 0 && rate_per_second(&rate) <= 1e12);
	if (!rate.amount)
		return;
	for (uint32_t i = 1; i <= 20; i++)
		check_share(&rate, i);
	check_share(&rate, count);
	check_share(&rate, SHARES_MAX);
}

/* The seconds as printed are the duration or at most one step above. */
static void check_seconds(uint64_t ns, unsigned int digits)
{
	char text[QUANTITY_TEXT];
	uint64_t again, step = NSEC_PER_SEC;

	for (unsigned int i = 0; i < digits; i++)
		step /= 10;
	seconds_print(ns, digits, text);
	FUZZ_CHECK(strlen(text) + 1 < QUANTITY_TEXT);
	strcat(text, "s");
	FUZZ_CHECK(duration_parse(text, &again) == 0);
	FUZZ_CHECK(again >= ns && again - ns < step && again % step == 0);
}

static void try_duration(const char *text)
{
	uint64_t ns = 7, again;
	char printed[QUANTITY_TEXT];
	int error = duration_parse(text, &ns);

	FUZZ_CHECK(is_result(error));
	if (error) {
		FUZZ_CHECK(ns == 7);
		return;
	}
	FUZZ_CHECK(ns <= DURATION_MAX_NS);
	duration_print(ns, printed);
	FUZZ_CHECK(duration_parse(printed, &again) == 0 && again == ns);
	if (ns > DURATION_MAX_NS - NSEC_PER_SEC)
		return;
	for (unsigned int digits = 0; digits <= 9; digits++)
		check_seconds(ns, digits);
}

static void try_count(const char *text)
{
	uint64_t count = 7, again;
	char printed[QUANTITY_TEXT];
	int error = count_parse(text, &count);

	FUZZ_CHECK(is_result(error));
	if (error) {
		FUZZ_CHECK(count == 7);
		return;
	}
	count_print(count, printed);
	FUZZ_CHECK(strlen(printed) <= strlen(text));
	FUZZ_CHECK(count_parse(printed, &again) == 0 && again == count);
}

static void try_tokens(const char *text)
{
	uint64_t tokens = 7, again, most;
	int64_t charge = 7;
	char printed[QUANTITY_TEXT];
	int error = tokens_parse(text, &tokens);

	FUZZ_CHECK(is_result(error));
	FUZZ_CHECK(error ? tokens == 7 : tokens <= TOKENS_MAX);
	if (!error) {
		count_print(tokens, printed);
		FUZZ_CHECK(tokens_parse(printed, &again) == 0 && again == tokens);
	}
	/* A longer text is no name of a take, however many zeros it begins with. */
	if (!error && strlen(text) < QUANTITY_TEXT) {
		FUZZ_CHECK(tokens_parse_range(text, &again, &most) == 0 && again == tokens &&
			   most == tokens);
	} else if (tokens_parse_range(text, &again, &most) == 0) {
		FUZZ_CHECK(strchr(text, '-') && again && again <= most && most <= TOKENS_MAX);
	}
	if (!error && tokens)
		FUZZ_CHECK(charge_parse(text, &charge) == 0 && charge == (int64_t)tokens);
	charge = 7;
	error = charge_parse(text, &charge);
	FUZZ_CHECK(is_result(error));
	if (error)
		FUZZ_CHECK(charge == 7);
	else
		FUZZ_CHECK(charge && charge >= -(int64_t)TOKENS_MAX &&
			   charge <= (int64_t)TOKENS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1);
	uint32_t count = 0;

	if (!text)
		return 0;
	for (size_t i = 0; i < size; i++) {
		text[i] = (char)input[i];
		count = count * 31 + input[i];
	}
	text[size] = '\0';
	try_rate(text, 1 + count % SHARES_MAX);
	try_duration(text);
	try_count(text);
	try_tokens(text);
	free(text);
	return 0;
}
