/* fuzz_quantity - every parser of values on any lines, and what must hold for what it takes. */
#include "fuzz.h"

#include "core/values/amounts.h"
#include "core/values/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool is_result(int error)
{
	return error == 0 || error == -EINVAL || error == -ERANGE;
}

static bool rate_equal(const struct rate *a, const struct rate *b)
{
	return a->amount == b->amount && a->period_ns == b->period_ns &&
	       a->decimals == b->decimals && a->unit == b->unit && a->kind == b->kind;
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

static void try_window(const char *text, uint32_t count)
{
	const struct rate untouched = {.amount = 7, .period_ns = 7, .decimals = 7, .unit = 7};
	struct rate rate = untouched, again;
	char printed[QUANTITY_TEXT];
	int error = rate_parse_limit(text, &rate);

	FUZZ_CHECK(is_result(error));
	FUZZ_CHECK(!error || rate_equal(&rate, &untouched));
	if (error || !rate_is_strict(&rate)) {
		FUZZ_CHECK(rate_parse(text, &again) == error || (error && strchr(text, ',')));
		return;
	}
	FUZZ_CHECK(rate_parse(text, &again) == -EINVAL);
	FUZZ_CHECK(rate_window(&rate) >= 1 && rate_window(&rate) <= TOKENS_MAX);
	print_rate(&rate, printed);
	FUZZ_CHECK(rate_parse_limit(printed, &again) == 0 && rate_equal(&rate, &again));
	again = rate_share(&rate, count);
	FUZZ_CHECK(rate_window(&again) == rate_window(&rate) / count);
	FUZZ_CHECK(again.period_ns == rate.period_ns || !again.amount);
}

static void try_rate(const char *text, uint32_t count)
{
	const struct rate untouched = {.amount = 7, .period_ns = 7, .decimals = 7, .unit = 7};
	struct rate rate = untouched, again;
	struct fraction fraction;
	char printed[QUANTITY_TEXT], twice[QUANTITY_TEXT];
	int error = rate_parse(text, &rate);

	try_window(text, count);
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
	if (!error)
		FUZZ_CHECK(charge_parse(text, &charge) == 0 && charge == (int64_t)tokens);
	charge = 7;
	error = charge_parse(text, &charge);
	FUZZ_CHECK(is_result(error));
	if (error)
		FUZZ_CHECK(charge == 7);
	else
		FUZZ_CHECK(charge >= -(int64_t)TOKENS_MAX && charge <= (int64_t)TOKENS_MAX);
}

/* Several units: a text that is understood can be written again, and is the same. */
static void try_take(const char *text)
{
	uint64_t tokens = 7, most = 7, again, exact;
	struct amounts amounts = {.count = 7}, others;
	char printed[CONFIG_TEXT];
	size_t used;
	int error = amounts_parse_take(text, &tokens, &most, &amounts);

	FUZZ_CHECK(is_result(error));
	if (error) {
		FUZZ_CHECK(tokens == 7 && most == 7 && amounts.count == 7);
		return;
	}
	FUZZ_CHECK(tokens <= most && most <= TOKENS_MAX && amounts.count <= AMOUNTS_MAX);
	FUZZ_CHECK(!amounts.count || tokens == most);
	used = (size_t)snprintf(printed, sizeof(printed), "%llu", (unsigned long long)tokens);
	for (uint64_t i = 0; i < amounts.count; i++) {
		FUZZ_CHECK(amounts_of(&amounts, amounts.of[i].unit) == amounts.of[i].tokens);
		used += (size_t)snprintf(printed + used, sizeof(printed) - used, ",%s=%llu",
					 amounts.of[i].unit,
					 (unsigned long long)amounts.of[i].tokens);
	}
	FUZZ_CHECK(amounts_parse(printed, &exact, &others) == 0 && exact == tokens);
	FUZZ_CHECK(amounts_parse_take(printed, &exact, &again, &others) == 0 &&
		   !memcmp(&amounts, &others, sizeof(amounts)));
}

static void try_charge(const char *text)
{
	struct charge charge = {.tokens = 7};
	int error = amounts_parse_charge(text, &charge);

	FUZZ_CHECK(is_result(error));
	if (error) {
		FUZZ_CHECK(charge.tokens == 7);
		return;
	}
	FUZZ_CHECK(charge.taken.count + charge.returned.count <= AMOUNTS_MAX);
	for (uint64_t i = 0; i < charge.taken.count; i++)
		FUZZ_CHECK(!amounts_name(&charge.returned, charge.taken.of[i].unit));
}

static void try_line(const char *line)
{
	uint32_t count = 0;

	for (const char *c = line; *c; c++)
		count = count * 31 + (unsigned char)*c;
	try_rate(line, 1 + count % SHARES_MAX);
	try_duration(line);
	try_count(line);
	try_tokens(line);
	try_take(line);
	try_charge(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *line;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	while ((line = strsep(&rest, "\n")))
		try_line(line);
	free(text);
	return 0;
}
