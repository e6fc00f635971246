/* Amounts of several units: names of units, of takes, and of charges. */
#include "core/values/amounts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bool is_unit(const char *text)
{
	char unit[UNIT_TEXT];

	memset(unit, 'x', sizeof(unit));
	if (!amount_read_unit(text, strlen(text), unit))
		return false;
	assert_string_equal(unit, text);
	for (size_t i = strlen(text); i < sizeof(unit); i++)
		assert_int_equal(unit[i], 0);
	return true;
}

static void test_a_unit_is_a_letter_and_up_to_14_others(void **state)
{
	(void)state;
	assert_true(is_unit("t"));
	assert_true(is_unit("tpm"));
	assert_true(is_unit("T_1"));
	assert_true(is_unit("fifteen_letters"));
	assert_true(is_unit("s"));
	assert_false(is_unit(""));
	assert_false(is_unit("sixteen__letters"));
	assert_false(is_unit("1t"));
	assert_false(is_unit("_t"));
	assert_false(is_unit("t-m"));
	assert_false(is_unit("t m"));
	assert_false(is_unit("t\xc3"));
}

static void test_words_of_the_grammar_are_no_units(void **state)
{
	static const char *const words[] = {"max",   "none",	  "within", "unit",  "limit",
					    "reset", "remaining", "window", "strict"};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_false(is_unit(words[i]));
	assert_true(is_unit("within1"));
}

static uint64_t tokens, most;
static struct amounts amounts;

static int parse_take(const char *text)
{
	tokens = most = 77;
	amounts = (struct amounts){.count = 77};
	return amounts_parse_take(text, &tokens, &most, &amounts);
}

static void test_a_take_names_at_least_one_amount(void **state)
{
	(void)state;
	assert_int_equal(parse_take("3"), 0);
	assert_int_equal(tokens, 3);
	assert_int_equal(most, 3);
	assert_int_equal(amounts.count, 0);
	assert_int_equal(parse_take("1,tpm=1800"), 0);
	assert_int_equal(tokens, 1);
	assert_int_equal(most, 1);
	assert_int_equal(amounts.count, 1);
	assert_int_equal(amounts_of(&amounts, "tpm\0\0\0\0\0\0\0\0\0\0\0\0"), 1800);
	assert_int_equal(parse_take("tpm=2Ki,x=0"), 0);
	assert_int_equal(tokens, 0);
	assert_int_equal(most, 0);
	assert_int_equal(amounts.count, 2);
	assert_int_equal(amounts.of[0].tokens, 2048);
	assert_string_equal(amounts.of[1].unit, "x");
	assert_true(amounts_name(&amounts, amounts.of[1].unit));
	assert_int_equal(parse_take("2-5"), 0);
	assert_int_equal(most, 5);
}

static void test_a_take_that_is_refused_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"",	   ",",	     "1,",	"1,tpm", "tpm=",    "tpm",
		"tpm=1,1", "1,2",    "1-2,x=1", "x=1-2", "x=1,x=1", "1,within=5",
		"1, x=1",  "1,x=-1", "=1",	"1,=1",	 "1,x==1"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse_take(wrong[i]), -EINVAL);
		assert_int_equal(tokens, 77);
		assert_int_equal(most, 77);
		assert_int_equal(amounts.count, 77);
	}
	assert_int_equal(parse_take("1,x=11T"), -ERANGE);
	assert_int_equal(parse_take("1,x=1.5"), -ERANGE);
	assert_int_equal(parse_take("5-2"), -ERANGE);
	assert_int_equal(parse_take("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1"), 0);
	assert_int_equal(amounts.count, AMOUNTS_MAX);
	assert_int_equal(parse_take("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1"), -ERANGE);
}

static void test_an_exact_take_is_no_range(void **state)
{
	(void)state;
	assert_int_equal(amounts_parse("4,x=2", &tokens, &amounts), 0);
	assert_int_equal(tokens, 4);
	assert_int_equal(amounts_parse("x=2", &tokens, &amounts), 0);
	assert_int_equal(amounts_parse("2-4", &tokens, &amounts), -EINVAL);
	assert_int_equal(amounts_parse("4-4", &tokens, &amounts), -EINVAL);
}

static void test_a_charge_takes_some_and_gives_others_back(void **state)
{
	struct charge charge;

	(void)state;
	assert_int_equal(amounts_parse_charge("-5", &charge), 0);
	assert_int_equal(charge.tokens, -5);
	assert_int_equal(charge.taken.count + charge.returned.count, 0);
	assert_int_equal(amounts_parse_charge("  5\ttpm=-312 x=+3 \n", &charge), 0);
	assert_int_equal(charge.tokens, 5);
	assert_int_equal(charge.returned.count, 1);
	assert_int_equal(charge.returned.of[0].tokens, 312);
	assert_int_equal(charge.taken.count, 1);
	assert_string_equal(charge.taken.of[0].unit, "x");
	assert_int_equal(amounts_parse_charge("0 tpm=-0", &charge), 0);
	assert_int_equal(charge.tokens, 0);
	assert_int_equal(amounts_parse_charge("tpm=1", &charge), 0);
	assert_int_equal(charge.tokens, 0);
}

static void test_a_charge_that_is_refused_changes_nothing(void **state)
{
	static const char *const wrong[] = {"",	       " ",	   "x",	    "1 2", "x=1 2",
					    "x=1 x=1", "x=1 x=-1", "max=1", "x=",  "1 x=a"};
	struct charge charge = {.tokens = 77};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(amounts_parse_charge(wrong[i], &charge), -EINVAL);
		assert_int_equal(charge.tokens, 77);
	}
	assert_int_equal(amounts_parse_charge("1 x=11T", &charge), -ERANGE);
	assert_int_equal(charge.tokens, 77);
}

static void test_sums_have_each_unit_once_up_to_a_bound(void **state)
{
	struct amounts sum = {0};

	(void)state;
	amounts_add(&sum, NULL);
	assert_int_equal(parse_take("x=3,y=4"), 0);
	amounts_add(&sum, &amounts);
	amounts_add(&sum, &amounts);
	assert_int_equal(sum.count, 2);
	assert_int_equal(sum.of[0].tokens, 6);
	assert_int_equal(parse_take("y=10T"), 0);
	amounts_add(&sum, &amounts);
	assert_int_equal(sum.of[1].tokens, TOKENS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_unit_is_a_letter_and_up_to_14_others),
		cmocka_unit_test(test_words_of_the_grammar_are_no_units),
		cmocka_unit_test(test_a_take_names_at_least_one_amount),
		cmocka_unit_test(test_a_take_that_is_refused_changes_nothing),
		cmocka_unit_test(test_an_exact_take_is_no_range),
		cmocka_unit_test(test_a_charge_takes_some_and_gives_others_back),
		cmocka_unit_test(test_a_charge_that_is_refused_changes_nothing),
		cmocka_unit_test(test_sums_have_each_unit_once_up_to_a_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
