/* Tests of words: a kind, and parameters by name. */
#include "core/values/words.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT, SPAN, PART, SIDE, OTHER, WORDS };

struct things {
	uint64_t count, span_ns, part, side;
	char other[QUANTITY_TEXT];
};

static int parse_other(const char *text, void *value)
{
	if (strcmp(text, "huge") == 0)
		return -ERANGE;
	if (strlen(text) != 1)
		return -EINVAL;
	strcpy(value, text);
	return 0;
}

static void print_other(const void *value, char text[QUANTITY_TEXT])
{
	strcpy(text, value);
}

static void table(struct things *things, struct word words[WORDS])
{
	static const char *const sides[] = {"left", "right", NULL};
	const struct word rows[WORDS] = {
		[COUNT] = {"n", WORD_COUNT, &things->count, 1, 10, NULL, NULL, NULL, NULL, false},
		[SPAN] = {"span", WORD_DURATION, &things->span_ns, 1000000, NSEC_PER_SEC, NULL,
			  NULL, NULL, NULL, false},
		[PART] = {"part", WORD_DECIMAL, &things->part, 0, DECIMAL_ONE, NULL, NULL, NULL,
			  NULL, false},
		[SIDE] = {"side", WORD_CHOICE, &things->side, 0, 0, sides, NULL, NULL, NULL, false},
		[OTHER] = {"other", WORD_OTHER, things->other, 0, 0, NULL, parse_other, print_other,
			   "not a letter", false},
	};

	memcpy(words, rows, sizeof(rows));
}

/* Returns the text that it reads back as, or "" and @error. */
static const char *read_back(const char *text, char error[ERROR_TEXT])
{
	static char back[SETTING_TEXT];
	struct things things = {3, NSEC_PER_SEC, DECIMAL_ONE / 2, 1, "x"};
	struct word words[WORDS];

	table(&things, words);
	*error = '\0';
	if (words_parse(text, words, WORDS, error))
		return "";
	words_print("kind", words, WORDS, back);
	return back;
}

static void assert_reads_back(const char *text, const char *expected)
{
	char error[ERROR_TEXT];

	assert_string_equal(read_back(text, error), expected);
}

static void assert_refused(const char *text, int err, const char *sentence)
{
	struct things things = {0};
	struct word words[WORDS];
	char error[ERROR_TEXT] = "";

	table(&things, words);
	assert_int_equal(words_parse(text, words, WORDS, error), err);
	assert_string_equal(error, sentence);
}

static void test_value_that_is_not_given_stays_and_the_order_does_not_matter(void **state)
{
	(void)state;
	assert_reads_back("kind", "kind n=3 span=1s part=0.5 side=right other=x");
	assert_reads_back("kind other=y \t n=10", "kind n=10 span=1s part=0.5 side=right other=y");
	assert_reads_back("kind side=left part=0 span=1ms n=1 other=z",
			  "kind n=1 span=1ms part=0 side=left other=z");
}

static void test_values_read_back_in_their_shortest_form(void **state)
{
	(void)state;
	assert_reads_back("kind n=007 span=0.25s part=0.250",
			  "kind n=7 span=250ms part=0.25 side=right other=x");
	assert_reads_back("kind span=1", "kind n=3 span=1s part=0.5 side=right other=x");
	assert_reads_back("kind part=1.0", "kind n=3 span=1s part=1 side=right other=x");
	assert_reads_back("kind part=0.000000001",
			  "kind n=3 span=1s part=0.000000001 side=right other=x");
}

static void test_refusal_is_a_sentence(void **state)
{
	(void)state;
	assert_refused("kind m=3", -EINVAL,
		       "'m=3': not understood: name=value with one of n span part side other");
	assert_refused("kind n", -EINVAL,
		       "'n': not understood: name=value with one of n span part side other");
	assert_refused("kind n=1 n=1", -EINVAL, "'n=1': given twice");
	assert_refused("kind n=", -EINVAL, "'n=': not a whole number");
	assert_refused("kind n=1.5", -EINVAL, "'n=1.5': not a whole number");
	assert_refused("kind n=11", -ERANGE, "'n=11': out of bounds: 1 to 10");
	assert_refused("kind n=max", -ERANGE, "'n=max': out of bounds: 1 to 10");
	assert_refused("kind span=2m", -EINVAL, "'span=2m': " DURATION_WHY);
	assert_refused("kind span=2", -ERANGE, "'span=2': out of bounds: 1ms to 1s");
	assert_refused("kind span=1h", -ERANGE, "'span=1h': out of bounds: 1ms to 1s");
	assert_refused("kind part=.5", -EINVAL, "'part=.5': not a number: such as 0.9");
	assert_refused("kind part=1.", -EINVAL, "'part=1.': not a number: such as 0.9");
	assert_refused("kind part=-1", -EINVAL, "'part=-1': not a number: such as 0.9");
	assert_refused("kind part=1.1", -ERANGE, "'part=1.1': out of bounds: 0 to 1");
	assert_refused("kind part=0.0000000001", -ERANGE,
		       "'part=0.0000000001': out of bounds: 0 to 1");
	assert_refused("kind part=10000000000", -ERANGE,
		       "'part=10000000000': out of bounds: 0 to 1");
	assert_refused("kind side=up", -EINVAL,
		       "'side=up': not understood: it is one of left right");
	assert_refused("kind other=xy", -EINVAL, "'other=xy': not a letter");
	assert_refused("kind other=huge", -ERANGE, "'other=huge': not a letter");
}

static void test_the_kind_is_the_first_word(void **state)
{
	(void)state;
	assert_true(words_are("auto", "auto"));
	assert_true(words_are("auto min=1", "auto"));
	assert_true(words_are("auto\tmin=1", "auto"));
	assert_false(words_are("automatic", "auto"));
	assert_false(words_are("aut", "auto"));
	assert_false(words_are("", "auto"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_that_is_not_given_stays_and_the_order_does_not_matter),
		cmocka_unit_test(test_values_read_back_in_their_shortest_form),
		cmocka_unit_test(test_refusal_is_a_sentence),
		cmocka_unit_test(test_the_kind_is_the_first_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
