/*
 * Tests of quantity: texts that are understood, texts that are refused, and that nothing is
 * rounded.
 */
#include "core/values/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rate rate_of(const char *text)
{
	struct rate rate = {0};

	if (rate_parse(text, &rate))
		fail_msg("'%s' is refused", text);
	return rate;
}

static void assert_rate_is(const struct rate *rate, const char *expected)
{
	char text[QUANTITY_TEXT];

	rate_print(rate, text);
	assert_string_equal(text, expected);
}

static void assert_rate_equal(const struct rate *a, const struct rate *b)
{
	assert_int_equal(a->amount, b->amount);
	assert_int_equal(a->period_ns, b->period_ns);
	assert_int_equal(a->decimals, b->decimals);
	assert_int_equal(a->unit, b->unit);
}

static void assert_fraction(const char *text, uint64_t num, uint64_t den)
{
	struct rate rate = rate_of(text);
	struct fraction fraction = rate_fraction(&rate);

	assert_int_equal(fraction.num, num);
	assert_int_equal(fraction.den, den);
}

static const struct {
	const char *text;
	const char *shortest;
} RATES[] = {
	{"max", "max"},
	{"0", "0"},
	{"0/min", "0"},
	{"0.000k/3d", "0"},
	{"500/s", "500/s"},
	{"500", "500/s"},
	{"500k", "500k/s"},
	{"500/1s", "500/s"},
	{"500.0/1s", "500/s"},
	{"0500/s", "500/s"},
	{"00000000000000000000000500/s", "500/s"},
	{"500/sec", "500/s"},
	{"500/second", "500/s"},
	{"500/1000ms", "500/s"},
	{"500/0.5s", "500/500ms"},
	{"500/1", "500/s"},
	{"500/60", "500/min"},
	{"500/1.5", "500/1500ms"},
	{"20000/min", "20000/min"},
	{"20000/minute", "20000/min"},
	{"100/60s", "100/min"},
	{"100/60.0s", "100/min"},
	{"5000/h", "5000/h"},
	{"5000/hour", "5000/h"},
	{"1/day", "1/d"},
	{"1/24h", "1/d"},
	{"1/26d", "1/26d"},
	{"1/7s", "1/7s"},
	{"1000/90s", "1000/90s"},
	{"1000/1.5min", "1000/90s"},
	{"0.50/s", "0.5/s"},
	{"0.5000000000000000000000000/s", "0.5/s"},
	{"10.250/s", "10.25/s"},
	{"0.000001/s", "0.000001/s"},
	{"2000.000125M/min", "2000.000125M/min"},
	{"1k/s", "1k/s"},
	{"1000000k/s", "1000000k/s"},
	{"1.5M/s", "1.5M/s"},
	{"1G/s", "1G/s"},
	{"1T/s", "1T/s"},
	{"64Ki/s", "64Ki/s"},
	{"64KiB/s", "64Ki/s"},
	{"3MiB/s", "3Mi/s"},
	{"2GiB/min", "2Gi/min"},
	{"0.5TiB/s", "0.5Ti/s"},
	{"100kB/s", "100k/s"},
	{"100B/s", "100/s"},
	{"7/1ns", "7/ns"},
	{"7/1us", "7/us"},
	{"7/1ms", "7/ms"},
	{"1000000000/s", "1000000000/s"},
	{"1000000000000/s", "1000000000000/s"},
	{"100000000000000000/26d", "100000000000000000/26d"},
};

static void test_a_rate_is_read_back_in_its_shortest_exact_form(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(RATES); i++) {
		struct rate rate = rate_of(RATES[i].text);

		assert_rate_is(&rate, RATES[i].shortest);
	}
}

static void test_text_that_is_read_back_can_be_written_back(void **state)
{
	char text[QUANTITY_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(RATES); i++) {
		struct rate first = rate_of(RATES[i].text), second;

		rate_print(&first, text);
		second = rate_of(text);
		assert_rate_equal(&first, &second);
		assert_int_equal(rate_compare(&first, &second), 0);
	}
}

static void assert_rates_refused(const char *const *texts, size_t count, int error)
{
	const struct rate untouched = {.amount = 7, .period_ns = 7, .decimals = 7, .unit = 7};

	for (size_t i = 0; i < count; i++) {
		struct rate rate = untouched;
		int got = rate_parse(texts[i], &rate);

		if (got != error)
			fail_msg("'%s' gives %d, not %d", texts[i], got, error);
		assert_rate_equal(&rate, &untouched);
	}
}

static void test_a_text_that_is_no_rate_is_not_understood(void **state)
{
	static const char *const texts[] = {
		"",	    " ",	"/",	    "/s",
		"s",	    "500/",	"500//s",   "-1/s",
		"+1/s",	    "1e3/s",	"0x10/s",   "1,000/s",
		"1_000/s",  ".5/s",	"5./s",	    "1..5/s",
		"1.2.3/s",  "500 /s",	"500/ s",   " 500/s",
		"500/s ",   "500/s\n",	"500/m",    "500/S",
		"500/Min",  "500/s/s",	"500/-1s",  "500/1.",
		"500/+60",  "500/6 0",	"500/1.s",  "500/.5s",
		"500/max",  "500/days", "500/1e3s", "500K/s",
		"500m/s",   "500ki/s",	"500KB/s",  "500b/s",
		"500BB/s",  "500kk/s",	"500Pi/s",  "500i/s",
		"500kiB/s", "500k B/s", "k/s",	    "B",
		"maximum",  "max/s",	"MAX",	    "Max",
		"inf",	    "nan",	"none",	    "500\xc2\xa0/s",
		"0/",	    "0/x",	"0x",	    "\xd9\xa5/s",
	};

	(void)state;
	assert_rates_refused(texts, COUNT(texts), -EINVAL);
}

static void test_a_rate_out_of_bounds_is_refused_as_such(void **state)
{
	static const char *const texts[] = {
		/* periods */
		"1/0s",
		"1/0",
		"0/0s",
		"0/3651d",
		"1/315360001",
		"1/99999999999999999999",
		"1000000000/3651d",
		"1/99999999999999999999d",
		/* too fast */
		"1000000000000.1/s",
		"1000000000001/s",
		"1001/ns",
		"1.1T/s",
		"1Ti/s",
		"999999999999999999T/ns",
		/* too slow */
		"1/27d",
		"0.03/d",
		"1/3650d",
		"0.000000001/d",
		/* too long */
		"1000000000000000000/3650d",
		"1234567890.123456789/s",
		"99999999999999999999999999999999999999999999/s",
		/* too fine */
		"0.1234567891/s",
		"0.0000000001T/s",
		"0.00000000000000000000000000000000000000001/s",
		"0.123456789/s",
		"500/0.1ns",
		"1000003/3650d",
	};

	(void)state;
	assert_rates_refused(texts, COUNT(texts), -ERANGE);
}

static void test_unknown_text_is_refused_before_one_out_of_bounds(void **state)
{
	static const char *const texts[] = {
		"99999999999999999999x/s",
		"99999999999999999999/m",
		"99999999999999999999..0/s",
		"0.00000000000000000001.0/s",
		"x/99999999999999999999",
		"x/99999999999999999999s",
		"x/0",
	};

	(void)state;
	assert_rates_refused(texts, COUNT(texts), -EINVAL);
}

static void test_a_rate_is_an_exact_fraction_in_lowest_terms(void **state)
{
	(void)state;
	assert_fraction("0", 0, 1);
	assert_fraction("1/s", 1, UINT64_C(1000000000));
	assert_fraction("500/s", 1, 2000000);
	assert_fraction("1000000000/s", 1, 1);
	assert_fraction("1000000000000/s", 1000, 1);
	assert_fraction("1/7s", 1, UINT64_C(7000000000));
	assert_fraction("1000/90s", 1, 90000000);
	assert_fraction("0.5/s", 1, UINT64_C(2000000000));
	assert_fraction("1.000001/s", 1000001, UINT64_C(1000000000000000));
	assert_fraction("1Ki/s", 2, 1953125);
	assert_fraction("1/d", 1, UINT64_C(86400000000000));
	assert_fraction("1/26d", 1, UINT64_C(26) * 86400 * NSEC_PER_SEC);
}

static void test_both_parts_of_a_fraction_stay_below_their_limit(void **state)
{
	struct rate rate;

	(void)state;
	assert_int_equal(rate_parse("2251799813685247/2251799813685246ns", &rate), 0);
	assert_int_equal(rate_parse("2251799813685248/2251799813685247ns", &rate), -ERANGE);
	assert_int_equal(rate_parse("2251799813685246/2251799813685247ns", &rate), 0);
	assert_int_equal(rate_parse("2251799813685247/2251799813685248ns", &rate), -ERANGE);
	/* Large as it is written, small once it is reduced. */
	assert_int_equal(rate_parse("100000000000000000/100000000000000000ns", &rate), 0);
	assert_fraction("100000000000000000/100000000000000000ns", 1, 1);
}

static void test_rates_are_compared_exactly(void **state)
{
	static const char *const ascending[] = {
		"0",	  "1/26d",	  "1/d",	 "0.999999/s",	    "1/s",
		"10/7s",  "1000/90s",	  "11.111112/s", "1023/s",	    "1Ki/s",
		"1025/s", "1000000000/s", "1G/0.9s",	 "1000000000000/s", "max",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ascending); i++) {
		for (size_t j = 0; j < COUNT(ascending); j++) {
			struct rate a = rate_of(ascending[i]), b = rate_of(ascending[j]);
			int order = rate_compare(&a, &b);

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}

static void test_different_words_for_one_rate_compare_equal(void **state)
{
	static const char *const same[] = {"1/s",     "60/min",	  "3600/h",
					   "86.4k/d", "0.001/ms", "90/90s"};

	(void)state;
	for (size_t i = 0; i < COUNT(same); i++) {
		struct rate a = rate_of(same[i]), b = rate_of(same[0]);

		assert_int_equal(rate_compare(&a, &b), 0);
	}
}

static void assert_per_second(const char *text, double expected)
{
	struct rate rate = rate_of(text);

	assert_true(fabs(rate_per_second(&rate) - expected) <= expected * 1e-15);
}

static void test_gauges_show_tokens_a_second(void **state)
{
	struct rate rate = rate_of("max");

	(void)state;
	assert_true(isinf(rate_per_second(&rate)));
	assert_per_second("0", 0);
	assert_per_second("500/s", 500);
	assert_per_second("0.1/s", 0.1);
	assert_per_second("1/7s", 1.0 / 7);
	assert_per_second("1Ki/s", 1024);
	assert_per_second("1000000000000/s", 1e12);
}

static void test_a_share_is_written_as_simply_as_it_can_be(void **state)
{
	static const struct {
		const char *rate;
		uint32_t count;
		const char *share;
	} cases[] = {
		{"max", 20, "max"},
		{"0", 20, "0"},
		{"500/s", 1, "500/s"},
		{"500/s", 20, "25/s"},
		{"20000/min", 20, "1000/min"},
		{"1k/s", 20, "0.05k/s"},
		{"2Gi/min", 4, "0.5Gi/min"},
		{"1/s", 20, "0.05/s"},
		{"0.5/s", 2, "0.25/s"},
		{"1.5/s", 3, "0.5/s"},
		{"500/s", 3, "500/3s"},
		{"500/s", 6, "250/3s"},
		{"1000/90s", 20, "50/90s"},
		{"1000/90s", 7, "1000/630s"},
		{"100/min", 3, "100/3min"},
		{"2.4/s", 9, "0.8/3s"},
		{"1Ki/s", 1024, "1/s"},
		{"1Ki/s", 4096, "0.25/s"},
		{"1Gi/s", 4096, "262144/s"},
		{"1/s", 4096, "1/4096s"},
		{"1/d", 20, "0.05/d"},
		{"1/d", 3, "1/3d"},
		{"1/26d", 3, "1/78d"},
		{"1/26d", 4096, "1/106496d"},
		{"1/26d", 4093, "1/106418d"},
		{"8/50d", 73, "8/3650d"},
		{"100/1000d", 6, "50/3000d"},
		{"1000000/3650d", 4093, "25/32269212s"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rate rate = rate_of(cases[i].rate);
		struct rate share = rate_share(&rate, cases[i].count);

		assert_rate_is(&share, cases[i].share);
	}
}

static void assert_shares_sum_up(const struct rate *rate, uint32_t count)
{
	struct rate share = rate_share(rate, count);
	struct fraction whole = rate_fraction(rate), part = rate_fraction(&share);

	assert_true(part.num <= INT64_MAX && part.den <= INT64_MAX);
	assert_true((u128)part.num * count * whole.den == (u128)whole.num * part.den);
}

static void test_any_number_of_shares_add_up_to_the_whole_exactly(void **state)
{
	static const char *const extremes[] = {
		"2251799813685247/2251799813685246ns",
		"2251799813685246/2251799813685247ns",
		"100000000000000000/3650d",
		"1.000001/s",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(RATES); i++) {
		struct rate rate = rate_of(RATES[i].text);

		if (rate_is_unlimited(&rate))
			continue;
		for (uint32_t count = 1; count <= SHARES_MAX; count++)
			assert_shares_sum_up(&rate, count);
	}
	for (size_t i = 0; i < COUNT(extremes); i++) {
		struct rate rate = rate_of(extremes[i]);

		for (uint32_t count = 1; count <= SHARES_MAX; count++)
			assert_shares_sum_up(&rate, count);
	}
}

static void test_a_share_that_is_not_too_fine_can_be_written_back(void **state)
{
	char text[QUANTITY_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(RATES); i++) {
		struct rate rate = rate_of(RATES[i].text);

		for (uint32_t count = 1; count <= SHARES_MAX; count++) {
			struct rate share = rate_share(&rate, count), again;
			struct fraction part = {0, 1};

			if (!rate_is_unlimited(&share))
				part = rate_fraction(&share);
			rate_print(&share, text);
			if (part.num < RATE_PART_LIMIT && part.den < RATE_PART_LIMIT &&
			    (u128)part.num * RATE_MIN_PERIOD_NS >= part.den) {
				again = rate_of(text);
				assert_rate_equal(&share, &again);
			} else if (part.num) {
				assert_int_equal(rate_parse(text, &again), -ERANGE);
			}
		}
	}
}

static void test_a_rate_is_made_from_a_fraction_in_seconds_where_possible(void **state)
{
	static const struct {
		uint64_t num, den;
		uint32_t count;
		const char *text;
	} cases[] = {
		{500, NSEC_PER_SEC, 1, "500/s"},
		{500, NSEC_PER_SEC, 20, "25/s"},
		{1, 2000000, 20, "25/s"},
		{1, 2 * NSEC_PER_SEC, 1, "0.5/s"},
		{490, NSEC_PER_SEC, 3, "490/3s"},
		{1, 7 * NSEC_PER_SEC, 2, "1/14s"},
		{7, 7 * NSEC_PER_SEC, 1, "1/s"},
		{1000, 1, 1, "1000000000000/s"},
		{1, 26 * 86400 * NSEC_PER_SEC, 4096, "1/106496d"},
		{1, 3000000007, 1, "1/3000000007ns"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rate rate;
		struct fraction fraction;

		assert_int_equal(
			rate_from_fraction(cases[i].num, cases[i].den, cases[i].count, &rate), 0);
		fraction = rate_fraction(&rate);
		assert_true((u128)fraction.num * cases[i].den * cases[i].count ==
			    (u128)fraction.den * cases[i].num);
		assert_rate_is(&rate, cases[i].text);
	}
}

static void test_a_fraction_that_fits_no_rate_is_refused(void **state)
{
	const u128 limit = (u128)1 << 63;
	struct rate rate = {.amount = 7, .period_ns = 7, .decimals = 7, .unit = 7};
	const struct rate untouched = rate;

	(void)state;
	assert_int_equal(rate_from_fraction(limit, 3, 1, &rate), -ERANGE);
	assert_int_equal(rate_from_fraction(3, limit, 1, &rate), -ERANGE);
	assert_int_equal(rate_from_fraction(3, limit / 2, 2, &rate), -ERANGE);
	assert_int_equal(rate_from_fraction(3, limit / SHARES_MAX, SHARES_MAX, &rate), -ERANGE);
	assert_rate_equal(&rate, &untouched);
	assert_int_equal(rate_from_fraction(limit * 3, limit * 3, 1, &rate), 0);
	assert_rate_is(&rate, "1000000000/s");
	assert_int_equal(rate_from_fraction(limit - 1, limit - 2, 1, &rate), 0);
	assert_int_equal(rate_from_fraction(limit - 2, limit - 1, 1, &rate), 0);
}

static const struct {
	const char *text;
	uint64_t ns;
	const char *shortest;
} DURATIONS[] = {
	{"0s", 0, "0s"},
	{"0d", 0, "0s"},
	{"0.0ns", 0, "0s"},
	{"0", 0, "0s"},
	{"15", 15 * NSEC_PER_SEC, "15s"},
	{"0.2", 200000000, "200ms"},
	{"0300", 300 * NSEC_PER_SEC, "5min"},
	{"315360000", DURATION_MAX_NS, "3650d"},
	{"s", NSEC_PER_SEC, "1s"},
	{"min", 60 * NSEC_PER_SEC, "1min"},
	{"1ns", 1, "1ns"},
	{"1us", 1000, "1us"},
	{"200ms", 200000000, "200ms"},
	{"1500ms", 1500000000, "1500ms"},
	{"1.5s", 1500000000, "1500ms"},
	{"1000ms", NSEC_PER_SEC, "1s"},
	{"0.000000001s", 1, "1ns"},
	{"15s", 15 * NSEC_PER_SEC, "15s"},
	{"015s", 15 * NSEC_PER_SEC, "15s"},
	{"90s", 90 * NSEC_PER_SEC, "90s"},
	{"60s", 60 * NSEC_PER_SEC, "1min"},
	{"15min", 900 * NSEC_PER_SEC, "15min"},
	{"1h", 3600 * NSEC_PER_SEC, "1h"},
	{"1.25h", 4500 * NSEC_PER_SEC, "75min"},
	{"24h", 86400 * NSEC_PER_SEC, "1d"},
	{"2day", 2 * 86400 * NSEC_PER_SEC, "2d"},
	{"3650d", DURATION_MAX_NS, "3650d"},
	{"315359999999999999ns", DURATION_MAX_NS - 1, "315359999999999999ns"},
};

static void test_a_duration_is_read_back_in_the_largest_unit_that_divides_it(void **state)
{
	char text[QUANTITY_TEXT];
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < COUNT(DURATIONS); i++) {
		ns = 7;
		assert_int_equal(duration_parse(DURATIONS[i].text, &ns), 0);
		assert_int_equal(ns, DURATIONS[i].ns);
		duration_print(ns, text);
		assert_string_equal(text, DURATIONS[i].shortest);
		assert_int_equal(duration_parse(text, &ns), 0);
		assert_int_equal(ns, DURATIONS[i].ns);
	}
}

static void assert_duration_refused(const char *text, int error)
{
	uint64_t ns = 7;
	int got = duration_parse(text, &ns);

	if (got != error)
		fail_msg("'%s' gives %d, not %d", text, got, error);
	assert_int_equal(ns, 7);
}

static void test_a_text_that_is_no_duration_is_refused(void **state)
{
	static const char *const texts[] = {
		"",    " ",   "-1",   "15 ",  "-1s", "+1s", "1 s", " 1s", "1s ",  "1m", "1S",
		"1.s", ".5s", "1e3s", "1h1s", "1ss", "max", "1.",  ".5",  "none", "1w", "1e3",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_duration_refused(texts[i], -EINVAL);
}

static void test_a_duration_out_of_bounds_or_too_fine_is_refused(void **state)
{
	static const char *const texts[] = {
		"3650.1d",
		"3651d",
		"315360000000000001ns",
		"315360001",
		"99999999999999999999",
		"0.0000000001",
		"1000000000000000000ns",
		"999999999999999999d",
		"0.5ns",
		"1.0000000001s",
		"0.0005us",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_duration_refused(texts[i], -ERANGE);
}

static void assert_seconds(uint64_t ns, unsigned int digits, const char *expected)
{
	char text[QUANTITY_TEXT];

	seconds_print(ns, digits, text);
	assert_string_equal(text, expected);
}

static void test_seconds_are_rounded_up_so_that_no_reader_comes_too_early(void **state)
{
	(void)state;
	assert_seconds(0, 3, "0.000");
	assert_seconds(0, 0, "0");
	assert_seconds(1, 3, "0.001");
	assert_seconds(1, 0, "1");
	assert_seconds(1, 9, "0.000000001");
	assert_seconds(1250000000, 3, "1.250");
	assert_seconds(1250000001, 3, "1.251");
	assert_seconds(1999999999, 3, "2.000");
	assert_seconds(1999999999, 9, "1.999999999");
	assert_seconds(NSEC_PER_SEC, 0, "1");
	assert_seconds(NEVER_NS - 1, 0, "18446744074");
	assert_seconds(NEVER_NS - 1, 9, "18446744073.709551614");
	assert_seconds(NEVER_NS, 3, "inf");
	assert_seconds(NEVER_NS, 0, "inf");
}

static void test_a_count_is_a_whole_number_or_max(void **state)
{
	static const char *const refused[] = {"",    "-1",  "+1", " 1",	 "1 ", "1.0", "1.5", "1k",
					      "0x1", "1e3", "a",  "MAX", "1B", "1/s", "none"};
	static const char *const taken[] = {"0", "1", "16", "999999999999999999", "max"};
	char text[QUANTITY_TEXT];
	uint64_t count = 7;

	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		assert_int_equal(count_parse(refused[i], &count), -EINVAL);
		assert_int_equal(count, 7);
	}
	assert_int_equal(count_parse("1000000000000000000", &count), -ERANGE);
	assert_int_equal(count_parse("99999999999999999999999", &count), -ERANGE);
	assert_int_equal(count, 7);
	for (size_t i = 0; i < COUNT(taken); i++) {
		assert_int_equal(count_parse(taken[i], &count), 0);
		count_print(count, text);
		assert_string_equal(text, taken[i]);
	}
	assert_int_equal(count, UINT64_MAX);
	assert_int_equal(count_parse("0016", &count), 0);
	assert_int_equal(count, 16);
}

static void assert_tokens(const char *text, int error, uint64_t expected)
{
	uint64_t tokens = 7;
	int got = tokens_parse(text, &tokens);

	if (got != error)
		fail_msg("'%s' gives %d, not %d", text, got, error);
	assert_int_equal(tokens, error ? 7 : expected);
}

static void test_tokens_are_whole_with_or_without_a_unit(void **state)
{
	char most[QUANTITY_TEXT];

	(void)state;
	assert_tokens("0", 0, 0);
	assert_tokens("1", 0, 1);
	assert_tokens("250", 0, 250);
	assert_tokens("250B", 0, 250);
	assert_tokens("4k", 0, 4000);
	assert_tokens("4Ki", 0, 4096);
	assert_tokens("64KiB", 0, 65536);
	assert_tokens("1.5k", 0, 1500);
	assert_tokens("0.5Ki", 0, 512);
	assert_tokens("5.0", 0, 5);
	snprintf(most, sizeof(most), "%" PRIu64, TOKENS_MAX);
	assert_tokens(most, 0, TOKENS_MAX);
	snprintf(most, sizeof(most), "%" PRIu64 "kB", TOKENS_MAX / 1000);
	assert_tokens(most, 0, TOKENS_MAX);
}

static void test_tokens_that_are_not_whole_or_too_many_are_out_of_bounds(void **state)
{
	char over[QUANTITY_TEXT];

	(void)state;
	snprintf(over, sizeof(over), "%" PRIu64, TOKENS_MAX + 1);
	assert_tokens(over, -ERANGE, 0);
	assert_tokens("1001T", -ERANGE, 0);
	assert_tokens("910Ti", -ERANGE, 0);
	assert_tokens("999999999999999999Ti", -ERANGE, 0);
	assert_tokens("9999999999999999999999999999", -ERANGE, 0);
	assert_tokens("0.5", -ERANGE, 0);
	assert_tokens("1.0005k", -ERANGE, 0);
	assert_tokens("0.0000000001T", -ERANGE, 0);
}

static void test_a_text_that_is_no_number_of_tokens_is_refused(void **state)
{
	static const char *const texts[] = {"",	  " ",	"-1", "+1",  " 1", "1 ",  "1/s",
					    "1s", "1m", "1K", ".5",  "5.", "max", "1e3",
					    "k",  "B",	"1,", "1 k", "1BB"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_tokens(texts[i], -EINVAL, 0);
}

static void assert_charge(const char *text, int error, int64_t expected)
{
	int64_t tokens = 7;
	int got = charge_parse(text, &tokens);

	if (got != error)
		fail_msg("'%s' gives %d, not %d", text, got, error);
	assert_int_equal(tokens, error ? 7 : expected);
}

static void assert_take(const char *text, int error, uint64_t least, uint64_t most)
{
	uint64_t tokens = 7, up_to = 8;
	int got = tokens_parse_range(text, &tokens, &up_to);

	if (got != error)
		fail_msg("'%s' gives %d, not %d", text, got, error);
	assert_int_equal(tokens, error ? 7 : least);
	assert_int_equal(up_to, error ? 8 : most);
}

static void test_a_take_is_a_number_or_a_range(void **state)
{
	static const char *const wrong[] = {"",	    "-",    "-5",   "1-",   "1--5", "1-2-3",
					    "1 -5", "1- 5", " 1-5", "1-5 ", "a-b",  "1-b",
					    "a-5",  "+1-5", "1-+5", "1..5", "1-5s", "1-max"};
	char most[2 * QUANTITY_TEXT];

	(void)state;
	assert_take("0", 0, 0, 0);
	assert_take("64Ki", 0, 65536, 65536);
	assert_take("1-100", 0, 1, 100);
	assert_take("5-5", 0, 5, 5);
	assert_take("1-64Ki", 0, 1, 65536);
	assert_take("1k-2k", 0, 1000, 2000);
	snprintf(most, sizeof(most), "%" PRIu64 "-%" PRIu64, TOKENS_MAX, TOKENS_MAX);
	assert_take(most, 0, TOKENS_MAX, TOKENS_MAX);
	snprintf(most, sizeof(most), "1-%" PRIu64, TOKENS_MAX + 1);
	assert_take(most, -ERANGE, 0, 0);
	assert_take("1-18446744073709551616", -ERANGE, 0, 0);
	assert_take("1-99999999999999999999999999999999", -ERANGE, 0, 0);
	assert_take("0-5", -ERANGE, 0, 0);
	assert_take("0-0", -ERANGE, 0, 0);
	assert_take("5-3", -ERANGE, 0, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_take(wrong[i], -EINVAL, 0, 0);
	/* Longer than any number is. */
	memset(most, '0', sizeof(most));
	memcpy(most + sizeof(most) - 5, "1-2", sizeof("1-2"));
	assert_take(most, -EINVAL, 0, 0);
}

static void test_a_charge_has_a_sign(void **state)
{
	char most[QUANTITY_TEXT];

	(void)state;
	snprintf(most, sizeof(most), "+%" PRIu64, TOKENS_MAX);
	assert_charge(most, 0, (int64_t)TOKENS_MAX);
	most[0] = '-';
	assert_charge(most, 0, -(int64_t)TOKENS_MAX);
	assert_charge("12", 0, 12);
	assert_charge("+12", 0, 12);
	assert_charge("-5", 0, -5);
	assert_charge("-4KiB", 0, -4096);
	assert_charge("-1001T", -ERANGE, 0);
	assert_charge("0", 0, 0);
	assert_charge("-0", 0, 0);
	assert_charge("+0k", 0, 0);
	assert_charge("0.5", -ERANGE, 0);
	assert_charge("", -EINVAL, 0);
	assert_charge("-", -EINVAL, 0);
	assert_charge("+", -EINVAL, 0);
	assert_charge("--5", -EINVAL, 0);
	assert_charge("+-5", -EINVAL, 0);
	assert_charge("- 5", -EINVAL, 0);
	assert_charge("5-", -EINVAL, 0);
	assert_charge("max", -EINVAL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_rate_is_read_back_in_its_shortest_exact_form),
		cmocka_unit_test(test_text_that_is_read_back_can_be_written_back),
		cmocka_unit_test(test_a_text_that_is_no_rate_is_not_understood),
		cmocka_unit_test(test_a_rate_out_of_bounds_is_refused_as_such),
		cmocka_unit_test(test_unknown_text_is_refused_before_one_out_of_bounds),
		cmocka_unit_test(test_a_rate_is_an_exact_fraction_in_lowest_terms),
		cmocka_unit_test(test_both_parts_of_a_fraction_stay_below_their_limit),
		cmocka_unit_test(test_rates_are_compared_exactly),
		cmocka_unit_test(test_different_words_for_one_rate_compare_equal),
		cmocka_unit_test(test_gauges_show_tokens_a_second),
		cmocka_unit_test(test_a_share_is_written_as_simply_as_it_can_be),
		cmocka_unit_test(test_any_number_of_shares_add_up_to_the_whole_exactly),
		cmocka_unit_test(test_a_share_that_is_not_too_fine_can_be_written_back),
		cmocka_unit_test(test_a_rate_is_made_from_a_fraction_in_seconds_where_possible),
		cmocka_unit_test(test_a_fraction_that_fits_no_rate_is_refused),
		cmocka_unit_test(test_a_duration_is_read_back_in_the_largest_unit_that_divides_it),
		cmocka_unit_test(test_a_text_that_is_no_duration_is_refused),
		cmocka_unit_test(test_a_duration_out_of_bounds_or_too_fine_is_refused),
		cmocka_unit_test(test_seconds_are_rounded_up_so_that_no_reader_comes_too_early),
		cmocka_unit_test(test_a_count_is_a_whole_number_or_max),
		cmocka_unit_test(test_tokens_are_whole_with_or_without_a_unit),
		cmocka_unit_test(test_tokens_that_are_not_whole_or_too_many_are_out_of_bounds),
		cmocka_unit_test(test_a_text_that_is_no_number_of_tokens_is_refused),
		cmocka_unit_test(test_a_take_is_a_number_or_a_range),
		cmocka_unit_test(test_a_charge_has_a_sign),
	};

	return cmocka_run_group_tests_name("quantity", tests, NULL, NULL);
}
