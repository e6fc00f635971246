/* Tests of feedback: which lines are outcomes, and what is refused with which words. */
#include "core/limiter/feedback.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SEC	     UINT64_C(1000000000)

static void assert_outcome(const char *line, enum outcome_kind kind, uint64_t count,
			   uint64_t retry_after_ns)
{
	char error[ERROR_TEXT] = "";
	struct outcome outcome;
	const char *text = line;

	if (feedback_parse(&text, &outcome, error))
		fail_msg("'%s' is refused: %s", line, error);
	if (outcome.kind != kind || outcome.count != count ||
	    outcome.retry_after_ns != retry_after_ns)
		fail_msg("'%s' is kind %d, %llu times, retry after %llu ns", line,
			 (int)outcome.kind, (unsigned long long)outcome.count,
			 (unsigned long long)outcome.retry_after_ns);
	assert_int_equal(feedback_parse(&text, &outcome, error), -ENOENT);
}

static void assert_refused(const char *line, int err, const char *words)
{
	char error[ERROR_TEXT] = "";
	struct outcome outcome;
	const char *text = line;
	int got = feedback_parse(&text, &outcome, error);

	if (got != err)
		fail_msg("'%s' gives %d, not %d", line, got, err);
	if (!strstr(error, words))
		fail_msg("'%s': the refusal says \"%s\", nothing of \"%s\"", line, error, words);
}

static void test_words_say_what_went_how_often(void **state)
{
	(void)state;
	assert_outcome("ok", OUTCOME_OK, 1, 0);
	assert_outcome("ok 5", OUTCOME_OK, 5, 0);
	assert_outcome("throttled", OUTCOME_THROTTLED, 1, 0);
	assert_outcome("throttled 12", OUTCOME_THROTTLED, 12, 0);
	assert_outcome("error", OUTCOME_ERROR, 1, 0);
	assert_outcome("error 2", OUTCOME_ERROR, 2, 0);
	assert_outcome("ok 0007", OUTCOME_OK, 7, 0);
	assert_outcome("ok 1000000000", OUTCOME_OK, OUTCOMES_MAX, 0);
}

static void test_2xx_and_3xx_are_ok_429_and_503_throttled_all_others_errors(void **state)
{
	(void)state;
	for (unsigned int status = 0; status < 1000; status++) {
		enum outcome_kind kind = OUTCOME_ERROR;
		char line[8];

		if (status >= 200 && status < 400)
			kind = OUTCOME_OK;
		if (status == 429 || status == 503)
			kind = OUTCOME_THROTTLED;
		snprintf(line, sizeof(line), "%03u", status);
		assert_outcome(line, kind, 1, 0);
	}
}

static void test_retry_after_is_a_duration_or_seconds_or_nothing(void **state)
{
	(void)state;
	assert_outcome("throttled retry-after=30s", OUTCOME_THROTTLED, 1, 30 * SEC);
	assert_outcome("throttled 3 retry-after=200ms", OUTCOME_THROTTLED, 3, SEC / 5);
	assert_outcome("429 retry-after=1.5min", OUTCOME_THROTTLED, 1, 90 * SEC);
	assert_outcome("429 retry-after=120", OUTCOME_THROTTLED, 1, 120 * SEC);
	assert_outcome("429 retry-after=0", OUTCOME_THROTTLED, 1, 0);
	assert_outcome("429 retry-after=0.5", OUTCOME_THROTTLED, 1, SEC / 2);
	/* As curl prints '%{http_code} retry-after=%header{retry-after}' without such a header. */
	assert_outcome("429 retry-after=", OUTCOME_THROTTLED, 1, 0);
	assert_outcome("200 retry-after=", OUTCOME_OK, 1, 0);
	assert_outcome("000 retry-after=", OUTCOME_ERROR, 1, 0);
	assert_outcome("503 retry-after=3650d", OUTCOME_THROTTLED, 1, 3650 * 86400 * SEC);
	assert_outcome("503 retry-after=315360000", OUTCOME_THROTTLED, 1, 315360000 * SEC);
}

static void test_a_date_behind_a_status_says_nothing(void **state)
{
	(void)state;
	assert_outcome("503 retry-after=Wed, 21 Oct 2026 07:28:00 GMT\n", OUTCOME_THROTTLED, 1, 0);
	assert_outcome("200 retry-after=Sun, 06 Nov 1994 08:49:37 GMT", OUTCOME_OK, 1, 0);
	assert_refused("throttled retry-after=Wed, 21 Oct 2026 07:28:00 GMT", -EINVAL,
		       "not a duration");
	assert_outcome("429 retry-after=Wednesday, 21-Oct-26 07:28:00 GMT", OUTCOME_THROTTLED, 1,
		       0);
}

static void test_white_space_of_any_kind_is_skipped(void **state)
{
	(void)state;
	assert_outcome(" \t ok \t 5 \r\n", OUTCOME_OK, 5, 0);
	assert_outcome("\n\n\r\n429\v \f retry-after=1s\r\n\n", OUTCOME_THROTTLED, 1, SEC);
}

static void test_several_lines_are_taken_one_by_one(void **state)
{
	static const enum outcome_kind kinds[] = {OUTCOME_OK, OUTCOME_THROTTLED, OUTCOME_ERROR,
						  OUTCOME_THROTTLED};
	const char *text = "200\n\n429 retry-after=2\nerror 3\nthrottled";
	char error[ERROR_TEXT];
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		assert_int_equal(feedback_parse(&text, &outcome, error), 0);
		assert_int_equal(outcome.kind, kinds[i]);
	}
	assert_int_equal(feedback_parse(&text, &outcome, error), -ENOENT);
	assert_string_equal(text, "");
}

static void test_nothing_is_no_outcome(void **state)
{
	static const char *const blanks[] = {"", "\n", " \t\r\n\v\f\n"};
	char error[ERROR_TEXT];
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < COUNT(blanks); i++) {
		const char *text = blanks[i];

		assert_int_equal(feedback_parse(&text, &outcome, error), -ENOENT);
	}
}

static void test_word_that_is_no_outcome_is_refused_and_named(void **state)
{
	static const char *const lines[] = {
		"fine",
		"OK",
		"okay",
		"ok five",
		"ok -1",
		"ok 1.5",
		"ok max",
		"ok 5 6",
		"ok retry-after=1s",
		"error retry-after=1s",
		"20",
		"2000",
		"20x",
		"-200",
		"throttled retry-after 5",
		"throttled retry-after=1s 5",
		"throttled retry-after=1s retry-after=2s",
		"throttled Retry-After=1s",
		"ok,5",
		"ok;ok",
		"\x01",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		assert_refused(lines[i], -EINVAL, "not an outcome: ok [N], throttled [N]");
	assert_refused("ok five", -EINVAL, "'five'");
}

static void test_counts_are_1_to_1e9(void **state)
{
	static const char *const lines[] = {"ok 0", "throttled 0", "error 1000000001",
					    "ok 99999999999999999999999999"};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		assert_refused(lines[i], -ERANGE, "1 to 1e9");
}

static void test_a_wrong_retry_after_is_refused(void **state)
{
	static const char why[] = "not a duration up to ten years";

	(void)state;
	assert_refused("throttled retry-after=soon", -EINVAL, why);
	assert_refused("throttled retry-after=-1", -EINVAL, why);
	assert_refused("throttled retry-after=3651d", -ERANGE, why);
	assert_refused("throttled retry-after=315360001", -ERANGE, why);
	assert_refused("throttled retry-after=99999999999999999999999", -ERANGE, why);
}

static struct outcome parsed(const char *line)
{
	char error[ERROR_TEXT] = "";
	struct outcome outcome;
	const char *text = line;

	if (feedback_parse(&text, &outcome, error))
		fail_msg("'%s' is refused: %s", line, error);
	return outcome;
}

/* One of a HTTP status, with what is wrong behind it: it counts, and that is told. */
static void assert_doubted(const char *line, enum outcome_kind kind, uint64_t retry_after_ns,
			   const char *words)
{
	char error[ERROR_TEXT] = "";
	struct outcome outcome;
	const char *text = line;

	if (feedback_parse(&text, &outcome, error))
		fail_msg("'%s' is refused: %s", line, error);
	if (!strstr(error, words) || (!*words && *error))
		fail_msg("'%s': the sentence says \"%s\", not \"%s\"", line, error, words);
	assert_true(outcome.is_status);
	assert_int_equal(outcome.kind, kind);
	assert_int_equal(outcome.count, 1);
	assert_int_equal(outcome.retry_after_ns, retry_after_ns);
	assert_string_equal(text, "");
}

static void test_a_status_counts_whatever_stands_behind_it(void **state)
{
	static const char time[] = "not a duration", word[] = "not an outcome";
	char line[4096];

	(void)state;
	assert_doubted("429", OUTCOME_THROTTLED, 0, "");
	assert_doubted("429 retry-after=7", OUTCOME_THROTTLED, 7 * SEC, "");
	assert_doubted("429 retry-after=soon", OUTCOME_THROTTLED, 0, time);
	assert_doubted("503 retry-after=-1", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=1e3", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after= 30", OUTCOME_THROTTLED, 0, word);
	assert_doubted("429 retry-after: 30", OUTCOME_THROTTLED, 0, word);
	assert_doubted("429 Retry-After=1s", OUTCOME_THROTTLED, 0, word);
	assert_doubted("429 Too Many Requests", OUTCOME_THROTTLED, 0, "'Too'");
	assert_doubted("429 5 retry-after=1s", OUTCOME_THROTTLED, SEC, word);
	assert_doubted("429 retry-after=1s retry-after=2s", OUTCOME_THROTTLED, SEC, word);
	assert_doubted("429 retry-after=soon retry-after=2s", OUTCOME_THROTTLED, 2 * SEC, time);
	assert_doubted("429 retry-after=3651d", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=999999999", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=99999999999999999999999", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=1.2000000000000002", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=1700000030s", OUTCOME_THROTTLED, 0, time);
	assert_doubted("429 retry-after=1m2", OUTCOME_THROTTLED, 0, time);
	assert_doubted("200 5", OUTCOME_OK, 0, word);
	assert_doubted("404 window=0s limit=5", OUTCOME_ERROR, 0, "longer than 0");
	/* The rest of a line that is too long counts as nothing, with a word that may be cut. */
	memset(line, 'x', sizeof(line));
	memcpy(line, "429 retry-after=3 ", 18);
	line[sizeof(line) - 1] = '\0';
	assert_doubted(line, OUTCOME_THROTTLED, 3 * SEC, "too long");
	memset(line, ' ', 300);
	memcpy(line, "503", 3);
	memcpy(line + 240, "retry-after=1200000000000", 25);
	assert_doubted(line, OUTCOME_THROTTLED, 0, "too long");
}

static void test_a_quota_behind_a_status_counts_if_all_of_its_line_is_understood(void **state)
{
	static const char *const lines[] = {
		"429 remaining=few reset=1s",
		"200 remaining=12",
		"200 unit=9 remaining=1 reset=1s",
		"200 unit= tpm remaining=0 reset=1h",
		"429 Unit=tpm remaining=0 reset=1h",
		"200 remaining=0 reset=1.2000000000000002",
		"200 remaining=0 reset=soon window=1d",
		"200 remaining=0 reset=1700000060s",
		"200 remaining=1 000 reset=60",
		"429 retry-after=Wed, 21 Oct 2026 07:28:00 GMT Unit: tpm remaining=0 reset=1h",
	};
	char error[ERROR_TEXT], line[400];
	struct outcome outcome;
	const char *text;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		text = lines[i];
		assert_int_equal(feedback_parse(&text, &outcome, error), 0);
		assert_true(*error);
		if (outcome_tells_quota(&outcome))
			fail_msg("'%s' tells a quota", lines[i]);
	}
	/* The unit was cut off. */
	snprintf(line, sizeof(line), "429 remaining=0 reset=1h %300s", "unit=tpm");
	text = line;
	assert_int_equal(feedback_parse(&text, &outcome, error), 0);
	assert_false(outcome_tells_quota(&outcome));
	/* Without a window a limit says nothing. */
	outcome = parsed("429 remaining=0 reset=1h limit=100");
	assert_true(outcome.has_remaining && !outcome.has_limit);
	outcome = parsed("429 retry-after=Wed, 21 Oct 2026 07:28:00 GMT remaining=0 reset=1h");
	assert_true(outcome.has_remaining);
}

static void test_a_time_in_place_of_a_duration_is_that_far_away(void **state)
{
	struct outcome outcome = parsed("429 retry-after=1700000030 remaining=0 reset=1700000060");

	(void)state;
	feedback_at(&outcome, 1700000000);
	assert_int_equal(outcome.retry_after_ns, 30 * SEC);
	assert_int_equal(outcome.reset_ns, 60 * SEC);
	assert_true(outcome.has_remaining);
	outcome = parsed("throttled retry-after=1700000030 remaining=0 reset=1700000060");
	feedback_at(&outcome, 1700000060);
	assert_int_equal(outcome.retry_after_ns, 0);
	assert_false(outcome.has_remaining);
	/* With decimals, and in milliseconds. */
	outcome = parsed("429 retry-after=1700000030.5 remaining=0 reset=1700000060123");
	feedback_at(&outcome, 1700000000);
	assert_int_equal(outcome.retry_after_ns, 30 * SEC);
	assert_int_equal(outcome.reset_ns, 60 * SEC);
	/* Digits alone make no time. */
	outcome = parsed("throttled retry-after=0000000030 remaining=0 reset=0000000060000");
	feedback_at(&outcome, 1700000000);
	assert_int_equal(outcome.retry_after_ns, 30 * SEC);
	assert_int_equal(outcome.reset_ns, 60000 * SEC);
	/* The clock of this host is wrong. */
	outcome = parsed("429 retry-after=1700000030 remaining=0 reset=1700000060");
	feedback_at(&outcome, 1000);
	assert_int_equal(outcome.retry_after_ns, 0);
	assert_false(outcome.has_remaining);
	outcome = parsed("quota remaining=max reset=1700000060");
	feedback_at(&outcome, 1800000000);
	assert_true(outcome.has_remaining);
	/* Others stay as they are. */
	outcome = parsed("429 retry-after=5 remaining=3 reset=7");
	feedback_at(&outcome, 1700000000);
	assert_int_equal(outcome.retry_after_ns, 5 * SEC);
	assert_int_equal(outcome.reset_ns, 7 * SEC);
}

static void test_a_line_that_is_too_long_is_refused(void **state)
{
	char line[4096];

	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line + 2000, "ok", 2);
	line[sizeof(line) - 1] = '\0';
	assert_outcome(line, OUTCOME_OK, 1, 0);
	memset(line, 'x', sizeof(line) - 1);
	assert_refused(line, -EINVAL, "too long");
	memcpy(line, "ok ", 3);
	memset(line + 3, '0', sizeof(line) - 4);
	assert_refused(line, -EINVAL, "too long");
}

static void test_a_refused_line_is_behind_those_that_were_fine(void **state)
{
	const char *text = "ok\nfine\nok\n";
	char error[ERROR_TEXT] = "";
	struct outcome outcome;

	(void)state;
	assert_int_equal(feedback_parse(&text, &outcome, error), 0);
	assert_int_equal(feedback_parse(&text, &outcome, error), -EINVAL);
	assert_non_null(strstr(error, "'fine'"));
}

static void test_a_quota_is_read_in_any_order(void **state)
{
	static const char *const lines[] = {
		"200 limit=240 remaining=12 reset=41s window=60s",
		"200 window=1min reset=41 remaining=12 limit=240",
		"ok 3 remaining=12 reset=41s window=60s limit=240",
		"quota reset=41s limit=240 window=60 remaining=12",
		("429 retry-after=Wed, 21 Oct 2026 07:28:00 GMT remaining=12 reset=41s limit=240 "
		 "window=60s"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct outcome outcome = parsed(lines[i]);

		assert_true(outcome.has_remaining && outcome.has_limit);
		assert_int_equal(outcome.remaining, 12);
		assert_int_equal(outcome.reset_ns, 41 * SEC);
		assert_int_equal(outcome.limit, 240);
		assert_int_equal(outcome.window_ns, 60 * SEC);
	}
}

static void test_a_word_without_a_value_says_nothing(void **state)
{
	struct outcome outcome = parsed("200 remaining= reset= limit= window=");

	(void)state;
	assert_false(outcome_tells_quota(&outcome));
	assert_false(parsed("200 remaining= reset=41s").has_remaining);
}

static void test_without_a_reset_what_is_left_is_for_the_window(void **state)
{
	(void)state;
	assert_int_equal(parsed("200 remaining=3 window=1s").reset_ns, SEC);
	assert_int_equal(parsed("200 remaining=3 window=1s reset=2s").reset_ns, 2 * SEC);
	assert_true(parsed("ok remaining=max").remaining == UINT64_MAX);
}

static void test_a_quota_counts_no_work(void **state)
{
	struct outcome outcome = parsed("quota remaining=0 reset=1s");

	(void)state;
	assert_int_equal(outcome.kind, OUTCOME_NONE);
	assert_int_equal(outcome.count, 0);
	assert_true(outcome.has_remaining);
	assert_int_equal(outcome.remaining, 0);
}

static void test_a_wrong_quota_is_refused(void **state)
{
	(void)state;
	assert_refused("ok remaining=12", -EINVAL, "'remaining': needs reset=");
	assert_refused("ok limit=12 reset=3s", -EINVAL, "'limit': needs window=");
	assert_refused("ok remaining=few reset=1s", -EINVAL, "not a number of tokens");
	assert_refused("ok remaining=-1 reset=1s", -EINVAL, "not a number of tokens");
	assert_refused("ok remaining=10000000000001 reset=1s", -ERANGE, "0 to 1e13");
	assert_refused("ok remaining=1 reset=soon", -EINVAL, "not a duration");
	assert_refused("ok remaining=1 reset=999999999", -ERANGE, "not a duration");
	assert_refused("ok remaining=1 window=0s", -ERANGE, "longer than 0");
	assert_refused("ok remaining=1 remaining=2 reset=1s", -EINVAL, "not an outcome");
	assert_refused("ok remainder=1 reset=1s", -EINVAL,
		       "behind it, or behind quota, remaining=N");
	assert_refused("quota 5 remaining=1 reset=1s", -EINVAL, "not an outcome");
	assert_refused("quota retry-after=5s", -EINVAL, "not an outcome");
}

static void test_a_duration_may_have_several_parts(void **state)
{
	static const char why[] = "not a duration up to ten years";

	(void)state;
	assert_int_equal(parsed("200 remaining=3 reset=6m0s").reset_ns, 360 * SEC);
	assert_int_equal(parsed("200 remaining=3 reset=6m").reset_ns, 360 * SEC);
	assert_int_equal(parsed("200 remaining=3 reset=1h2m3s").reset_ns, 3723 * SEC);
	assert_int_equal(parsed("200 remaining=3 reset=16m33.562s").reset_ns, 993562 * SEC / 1000);
	assert_int_equal(parsed("200 remaining=3 reset=1s").reset_ns, SEC);
	assert_int_equal(parsed("200 remaining=3 reset=120ms").reset_ns, 120 * SEC / 1000);
	assert_int_equal(parsed("429 retry-after=1min30s").retry_after_ns, 90 * SEC);
	assert_refused("ok remaining=3 reset=1m2", -EINVAL, why);
	assert_refused("ok remaining=3 reset=m1s", -EINVAL, why);
	assert_refused("ok remaining=3 reset=1s.", -EINVAL, why);
	assert_refused("ok remaining=3 reset=1x2s", -EINVAL, why);
	assert_refused("ok remaining=3 reset=-1m2s", -EINVAL, why);
	assert_refused("ok remaining=3 reset=2000d2000d", -ERANGE, why);
	assert_refused("ok remaining=3 reset=9999d1s", -ERANGE, why);
	assert_refused("ok remaining=3 reset=1000000000000000000000000000000000000000m1s", -ERANGE,
		       why);
}

static void test_a_quota_may_be_of_a_unit(void **state)
{
	struct outcome outcome =
		parsed("200 unit=tpm limit=90000 remaining=1200 reset=3s window=60s");

	(void)state;
	assert_string_equal(outcome.unit, "tpm");
	assert_int_equal(outcome.remaining, 1200);
	assert_string_equal(parsed("quota remaining=max unit=in_9").unit, "in_9");
	assert_string_equal(parsed("200 unit= remaining=1 reset=1s").unit, "");
	assert_refused("ok unit=9 remaining=1 reset=1s", -EINVAL, "'9': not a unit");
	assert_refused("ok unit=limit remaining=1 reset=1s", -EINVAL, "not a unit");
	assert_refused("ok unit=abcdefghijklmnop", -EINVAL, "not a unit");
	assert_refused("ok unit=a unit=b", -EINVAL, "not an outcome");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_say_what_went_how_often),
		cmocka_unit_test(test_2xx_and_3xx_are_ok_429_and_503_throttled_all_others_errors),
		cmocka_unit_test(test_retry_after_is_a_duration_or_seconds_or_nothing),
		cmocka_unit_test(test_a_date_behind_a_status_says_nothing),
		cmocka_unit_test(test_white_space_of_any_kind_is_skipped),
		cmocka_unit_test(test_several_lines_are_taken_one_by_one),
		cmocka_unit_test(test_nothing_is_no_outcome),
		cmocka_unit_test(test_word_that_is_no_outcome_is_refused_and_named),
		cmocka_unit_test(test_counts_are_1_to_1e9),
		cmocka_unit_test(test_a_wrong_retry_after_is_refused),
		cmocka_unit_test(test_a_status_counts_whatever_stands_behind_it),
		cmocka_unit_test(
			test_a_quota_behind_a_status_counts_if_all_of_its_line_is_understood),
		cmocka_unit_test(test_a_time_in_place_of_a_duration_is_that_far_away),
		cmocka_unit_test(test_a_line_that_is_too_long_is_refused),
		cmocka_unit_test(test_a_refused_line_is_behind_those_that_were_fine),
		cmocka_unit_test(test_a_quota_is_read_in_any_order),
		cmocka_unit_test(test_a_word_without_a_value_says_nothing),
		cmocka_unit_test(test_without_a_reset_what_is_left_is_for_the_window),
		cmocka_unit_test(test_a_quota_counts_no_work),
		cmocka_unit_test(test_a_wrong_quota_is_refused),
		cmocka_unit_test(test_a_duration_may_have_several_parts),
		cmocka_unit_test(test_a_quota_may_be_of_a_unit),
	};

	return cmocka_run_group_tests_name("feedback", tests, NULL, NULL);
}
