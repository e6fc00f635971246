/* Tests of adapt: its texts, the cubic curve as it is published, and each step by itself. */
#include "core/limiter/adapt.h"
#include "core/values/settings.h"
#include "core/values/words.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS	     UINT64_C(1000000)
#define SEC	     UINT64_C(1000000000)

static struct adapt adapt_of(const char *text)
{
	struct adapt adapt = {.kind = ADAPT_NONE};
	char error[ERROR_TEXT];

	if (adapt_setting_parse(text, &adapt, error))
		fail_msg("'%s' is refused: %s", text, error);
	return adapt;
}

static void assert_reads_back(const char *text, const char *expected)
{
	struct adapt adapt = adapt_of(text);
	char printed[SETTING_TEXT], again[SETTING_TEXT];

	adapt_setting_print(&adapt, printed);
	assert_string_equal(printed, expected);
	adapt = adapt_of(printed);
	adapt_setting_print(&adapt, again);
	assert_string_equal(again, expected);
}

static void assert_refused(const char *text, int err, const char *words)
{
	struct adapt adapt = adapt_of("cubic min=7/s"), before = adapt;
	char error[ERROR_TEXT] = "";
	int got = adapt_setting_parse(text, &adapt, error);

	if (got != err)
		fail_msg("'%s' gives %d, not %d", text, got, err);
	if (!strstr(error, words))
		fail_msg("'%s': the refusal says \"%s\", nothing of \"%s\"", text, error, words);
	assert_memory_equal(&adapt, &before, sizeof(before));
}

static void test_value_that_is_not_given_is_the_default(void **state)
{
	(void)state;
	assert_reads_back("none", "none");
	assert_reads_back("aimd", "aimd min=1/s decrease=0.5 increase=1% period=1s scope=fleet");
	assert_reads_back("cubic", "cubic min=1/s decrease=0.7 scale=0.4 period=1s scope=fleet");
	assert_reads_back("aimd scope=host increase=5/s\tmin=60/min",
			  "aimd min=60/min decrease=0.5 increase=5/s period=1s scope=host");
	assert_reads_back("aimd increase=0.5%",
			  "aimd min=1/s decrease=0.5 increase=0.5% period=1s scope=fleet");
	assert_reads_back("aimd increase=0.0000001%",
			  "aimd min=1/s decrease=0.5 increase=0.0000001% period=1s scope=fleet");
	assert_reads_back("cubic scale=0.000000001 period=10ms",
			  "cubic min=1/s decrease=0.7 scale=0.000000001 period=10ms scope=fleet");
}

static void test_every_parameter_has_its_bounds(void **state)
{
	static const char *const fine[] = {
		"aimd min=0.001/s",   "aimd min=1T/s",	    "aimd min=4/h",
		"aimd decrease=0.01", "aimd decrease=0.99", "aimd increase=100%",
		"aimd increase=1/d",  "aimd increase=1T/s", "aimd period=10ms",
		"aimd period=1h",     "cubic scale=1000",
	};
	static const char *const wrong[] = {
		"aimd decrease=0.009", "aimd decrease=1",      "aimd decrease=0",
		"aimd period=9ms",     "aimd period=61min",    "cubic scale=0",
		"cubic scale=1000.1",  "cubic decrease=0.991",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(fine); i++)
		adapt_of(fine[i]);
	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_refused(wrong[i], -ERANGE, "out of bounds");
	assert_refused("aimd min=0", -ERANGE, "not a least rate: 0.001/s");
	assert_refused("aimd min=max", -ERANGE, "not a least rate");
	assert_refused("aimd min=3/h", -ERANGE, "not a least rate");
	assert_refused("aimd increase=0", -ERANGE, "not an increase");
	assert_refused("aimd increase=0%", -ERANGE, "not an increase");
	assert_refused("aimd increase=max", -ERANGE, "not an increase");
	assert_refused("aimd increase=101%", -ERANGE, "not an increase");
	assert_refused("aimd increase=0.00000001%", -ERANGE, "not an increase");
}

static void test_word_that_is_not_understood_is_refused_and_named(void **state)
{
	(void)state;
	assert_refused("", -EINVAL, "none, aimd or cubic");
	assert_refused("AIMD", -EINVAL, "none, aimd or cubic");
	assert_refused("none min=1/s", -EINVAL, "none, aimd or cubic");
	assert_refused("aimd scale=0.4", -EINVAL, "min decrease increase period scope");
	assert_refused("cubic increase=1%", -EINVAL, "min decrease scale period scope");
	assert_refused("aimd min", -EINVAL, "'min'");
	assert_refused("aimd min=1/s min=1/s", -EINVAL, "given twice");
	assert_refused("aimd min=slow", -EINVAL, "not a least rate");
	assert_refused("aimd increase=fast", -EINVAL, "not an increase");
	assert_refused("aimd increase=%", -EINVAL, "not an increase");
	assert_refused("aimd increase=", -EINVAL, "not an increase");
	assert_refused("aimd decrease=half", -EINVAL, "not a number");
	assert_refused("aimd period=1m", -EINVAL, "not a duration");
	assert_refused("aimd scope=world", -EINVAL, "fleet host");
	/* An increase that has no end. */
	assert_refused("aimd increase=0000000000000000000000000000000000000000000000000000000000000"
		       "0000000000000000000000000000000000000000000000000000000000000000000001%",
		       -ERANGE, "not an increase");
}

static void assert_near(double got, double expected)
{
	if (fabs(got - expected) > 1e-9 * expected)
		fail_msg("%.17g, not %.17g", got, expected);
}

/*
 * After the published tests of the SDKs' rate limiter: a curve from a throttling 5 s after the
 * start.
 */
static void test_the_cubic_curve_comes_back_to_its_ceiling_and_passes_it(void **state)
{
	static const double rates[] = {7.0,
				       9.64893600966,
				       10.000030849917364,
				       10.453284520772092,
				       13.408697022224185,
				       21.26626835427364,
				       36.425998516920465};

	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++)
		assert_near(adapt_cubic(10, (double)i, 0.4, 0.7), rates[i]);
}

static void test_the_cubic_curve_begins_anew_with_each_throttling(void **state)
{
	static const double rates[] = {7.0,
				       9.64893600966,
				       6.754255206761999,
				       4.727978644733399,
				       4.670125557970046,
				       4.770870456867401,
				       6.011819748005445,
				       10.792973431384178};
	double ceiling = 10, since = 5, rate = 0;

	(void)state;
	for (size_t i = 0; i < COUNT(rates); i++) {
		double now = 5 + (double)i;

		rate = i == 2 || i == 3 ? 0.7 * rate : adapt_cubic(ceiling, now - since, 0.4, 0.7);
		if (i == 2 || i == 3) {
			/* There the ceiling is what is left. */
			ceiling = rate;
			since = now;
		}
		assert_near(rate, rates[i]);
	}
}

/* A limiter at work. */
struct job {
	struct adapt adapt;
	struct adapt_state state;
	struct adapt_work work;
	uint64_t now_ns;
};

static void job_begin(struct job *job, const char *text)
{
	*job = (struct job){.adapt = adapt_of(text)};
	adapt_init(&job->state, &job->work, 0);
}

/* @tokens in a second's time, a piece of work each. */
static void job_works(struct job *job, uint64_t tokens, uint64_t throttled)
{
	job->now_ns += SEC;
	job->work.tokens += tokens;
	job->work.served += tokens;
	job->work.outcomes += tokens;
	job->work.throttled += throttled;
	adapt_measure(&job->state, &job->work, 1, job->now_ns);
}

static bool job_grows(struct job *job, double full)
{
	return adapt_grow(&job->state, &job->adapt, &job->work, 1, full, false, job->now_ns);
}

static void test_there_is_no_limit_until_something_is_throttled(void **state)
{
	struct job job;

	(void)state;
	job_begin(&job, "aimd");
	job_works(&job, 100, 0);
	assert_true(isinf(job.state.rate));
	assert_int_equal(adapt_next_ns(&job.state, &job.adapt, false), UINT64_MAX);
}

static void test_a_host_that_does_little_halves_what_all_do(void **state)
{
	struct job job;

	(void)state;
	job_begin(&job, "aimd");
	job_works(&job, 10, 0);
	job_works(&job, 10, 0);
	job.state.rate = 100;
	job.state.ceiling = 100;
	assert_true(adapt_throttled(&job.state, &job.adapt, 1000, true, job.now_ns));
	assert_true(job.state.rate == 50);
	assert_true(job.state.ceiling == 100);
}

static void test_a_throttling_halves_what_was_done_or_what_was_allowed(void **state)
{
	struct job job;

	(void)state;
	/* Of an unlimited limiter: the work done. */
	job_begin(&job, "aimd");
	job_works(&job, 100, 0);
	assert_true(adapt_throttled(&job.state, &job.adapt, (double)INFINITY, false, job.now_ns));
	assert_near(job.state.rate, 100);
	/* Once that is known. */
	job_begin(&job, "aimd");
	assert_false(adapt_throttled(&job.state, &job.adapt, (double)INFINITY, false, job.now_ns));
	/* Of a limited one: its rate, which a limiter that has done nothing has, too. */
	assert_true(adapt_throttled(&job.state, &job.adapt, 80, false, job.now_ns));
	assert_near(job.state.rate, 40);
}

static void test_throttlings_within_a_period_count_once(void **state)
{
	struct job job;

	(void)state;
	job_begin(&job, "aimd decrease=0.5 period=2s");
	job.now_ns = SEC;
	assert_true(adapt_throttled(&job.state, &job.adapt, 64, false, job.now_ns));
	for (int i = 0; i < 100; i++) {
		job.now_ns += 10 * MS;
		assert_false(adapt_throttled(&job.state, &job.adapt, 64, false, job.now_ns));
	}
	assert_near(job.state.rate, 32);
	job.now_ns += SEC;
	assert_true(adapt_throttled(&job.state, &job.adapt, 64, false, job.now_ns));
	assert_near(job.state.rate, 16);
}

static void test_the_rate_stays_above_min_and_at_most_what_is_set(void **state)
{
	static const char *const kinds[] = {"aimd min=5/s", "cubic min=5/s"};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct job job;

		job_begin(&job, kinds[i]);
		for (int k = 0; k < 20; k++) {
			job.now_ns += 2 * SEC;
			adapt_throttled(&job.state, &job.adapt, 100, false, job.now_ns);
			assert_true(job.state.rate >= 5 && job.state.rate <= 100);
		}
		assert_near(job.state.rate, 5);
		/* min above the rate gives way to it. */
		job_begin(&job, kinds[i]);
		adapt_throttled(&job.state, &job.adapt, 2, false, SEC);
		assert_near(job.state.rate, 2);
	}
}

static void test_growth_ends_at_the_limiter_s_own_rate(void **state)
{
	static const char *const kinds[] = {"aimd increase=10/s", "cubic"};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct job job;
		int looks;

		job_begin(&job, kinds[i]);
		job_works(&job, 100, 0);
		adapt_throttled(&job.state, &job.adapt, 100, false, job.now_ns);
		for (looks = 0; looks < 200 && !isinf(job.state.rate); looks++) {
			assert_true(job.state.rate < 100);
			job_works(&job, (uint64_t)ceil(job.state.rate), 0);
			job_grows(&job, 100);
		}
		assert_true(isinf(job.state.rate));
	}
}

static void test_growth_is_never_beyond_twice_the_work(void **state)
{
	static const char *const kinds[] = {"aimd increase=1000/s decrease=0.1",
					    "cubic scale=1000"};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct job job;

		job_begin(&job, kinds[i]);
		job_works(&job, 1000, 0);
		adapt_throttled(&job.state, &job.adapt, 1e6, false, job.now_ns);
		for (int k = 0; !isinf(job.state.rate); k++) {
			uint64_t done = (uint64_t)ceil(0.85 * job.state.rate);
			double before = job.state.rate;
			double work;

			job_works(&job, done, 0);
			job_grows(&job, 1e6);
			/* Measurements are smoothed. */
			work = isinf(job.state.rate) ? (double)INFINITY
						     : fmax(job.state.work, (double)done);
			assert_true(job.state.rate == before || job.state.rate <= 2 * work);
			assert_true(k < 10 || job.state.rate <= 2 * (double)done ||
				    isinf(job.state.rate));
			assert_true(k < 2000);
		}
	}
}

static void test_the_idle_do_not_drift(void **state)
{
	static const char *const kinds[] = {"aimd increase=100%", "cubic scale=100"};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct job job;
		double rate;

		job_begin(&job, kinds[i]);
		job_works(&job, 100, 0);
		adapt_throttled(&job.state, &job.adapt, 1000, false, job.now_ns);
		job_works(&job, 40, 0);
		job_grows(&job, 1000);
		rate = job.state.rate;
		for (int k = 0; k < 1000; k++) {
			/* At half of what it may. */
			job_works(&job, k < 500 ? 0 : (uint64_t)(rate / 2), 0);
			assert_false(job_grows(&job, 1000));
		}
		assert_true(job.state.rate == rate);
	}
}

static void test_returned_token_is_no_work(void **state)
{
	struct job job;

	(void)state;
	job_begin(&job, "aimd");
	job_works(&job, 100, 0);
	adapt_throttled(&job.state, &job.adapt, 1000, false, job.now_ns);
	job_works(&job, 0, 0);
	job_grows(&job, 1000);
	/* 50 of earlier ones are given back. */
	job.work.tokens -= 50;
	job_works(&job, 0, 0);
	assert_false(job_grows(&job, 1000));
}

/* A service of 100/s that throttles what is above: the rate comes to it and stays about there. */
static void test_both_kinds_stay_about_what_the_service_gives(void **state)
{
	static const char *const kinds[] = {"aimd", "cubic"};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		double sum = 0;
		struct job job;

		job_begin(&job, kinds[i]);
		for (int second = 0; second < 300; second++) {
			double rate = fmin(job.state.rate, 1000);

			job_works(&job, (uint64_t)rate, rate > 100 ? (uint64_t)rate - 100 : 0);
			if (rate >= 101) {
				adapt_throttled(&job.state, &job.adapt, 1000, false, job.now_ns);
			} else {
				job_grows(&job, 1000);
			}
			if (second >= 60)
				sum += fmin(rate, 100);
		}
		if (sum / 240 < 90)
			fail_msg("%s: %.1f a second on average", kinds[i], sum / 240);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_value_that_is_not_given_is_the_default),
		cmocka_unit_test(test_every_parameter_has_its_bounds),
		cmocka_unit_test(test_word_that_is_not_understood_is_refused_and_named),
		cmocka_unit_test(test_the_cubic_curve_comes_back_to_its_ceiling_and_passes_it),
		cmocka_unit_test(test_the_cubic_curve_begins_anew_with_each_throttling),
		cmocka_unit_test(test_there_is_no_limit_until_something_is_throttled),
		cmocka_unit_test(test_a_host_that_does_little_halves_what_all_do),
		cmocka_unit_test(test_a_throttling_halves_what_was_done_or_what_was_allowed),
		cmocka_unit_test(test_throttlings_within_a_period_count_once),
		cmocka_unit_test(test_the_rate_stays_above_min_and_at_most_what_is_set),
		cmocka_unit_test(test_growth_ends_at_the_limiter_s_own_rate),
		cmocka_unit_test(test_growth_is_never_beyond_twice_the_work),
		cmocka_unit_test(test_the_idle_do_not_drift),
		cmocka_unit_test(test_returned_token_is_no_work),
		cmocka_unit_test(test_both_kinds_stay_about_what_the_service_gives),
	};

	return cmocka_run_group_tests_name("adapt", tests, NULL, NULL);
}
