/* Tests of stat: which numbers there are, and what makes each of them move. */
#include "tests/core/stage.h"

#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* In the order of the file: counters first. */
static const char *const NAMES[] = {
	"granted",
	"served",
	"refused",
	"cancelled",
	"delayed_seconds",
	"shadowed",
	"charged",
	"returned",
	"slots_opened",
	"ok",
	"throttled",
	"error",
	"backoff_up",
	"backoff_down",
	"backoff_pauses",
	"backoff_paused_seconds",
	"granted_min",
	"refused_queue_max",
	"refused_wait_max",
	"waiting",
	"waiting_below",
	"rate",
	"effective_rate",
	"tokens",
	"reset",
	"slots",
	"slots_used",
	"keys",
	"backoff_seconds",
	"service_left",
	"service_left_seconds",
	"service_rate",
	"partitions_held",
	"share",
	"wait_p50_seconds",
	"wait_p90_seconds",
	"wait_p99_seconds",
	"slot_wait_p50_seconds",
	"slot_wait_p90_seconds",
	"slot_wait_p99_seconds",
};

enum { COUNTERS = 19 };

/* The value of @name as the file says it, in @text. */
static const char *value_of(struct stage *stage, struct limiter *limiter, const char *name,
			    char text[STAT_TEXT])
{
	char key[64], *line;
	size_t length;

	engine_refresh(&stage->engine, limiter, stage->engine.schedule.now_ns);
	length = stat_print(limiter, text);
	assert_int_equal(length, strlen(text));
	assert_true(length < STAT_TEXT);
	/* Every line begins behind a newline. */
	memmove(text + 1, text, length + 1);
	text[0] = '\n';
	snprintf(key, sizeof(key), "\n%s ", name);
	line = strstr(text, key);
	assert_non_null(line);
	line += strlen(key);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static void assert_stat(struct stage *stage, struct limiter *limiter, const char *name,
			const char *expected)
{
	char text[STAT_TEXT];

	assert_string_equal(value_of(stage, limiter, name, text), expected);
}

/* The counters that are not 0, as `name=value ...`. */
static void assert_counters(struct stage *stage, struct limiter *limiter, const char *expected)
{
	char text[STAT_TEXT], found[STAT_TEXT] = "";

	for (size_t i = 0; i < COUNTERS; i++) {
		const char *value = value_of(stage, limiter, NAMES[i], text);
		size_t used = strlen(found);

		if (strcmp(value, "0") == 0 || strcmp(value, "0.000000000") == 0)
			continue;
		snprintf(found + used, sizeof(found) - used, "%s%s=%s", used ? " " : "", NAMES[i],
			 value);
	}
	assert_string_equal(found, expected);
}

static void test_a_new_limiter_has_these_numbers_in_this_order(void **state)
{
	struct stage stage;
	struct limiter *a;
	char text[STAT_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	(void)stat_print(a, text);
	assert_string_equal(text, "granted 0\n"
				  "served 0\n"
				  "refused 0\n"
				  "cancelled 0\n"
				  "delayed_seconds 0.000000000\n"
				  "shadowed 0\n"
				  "charged 0\n"
				  "returned 0\n"
				  "slots_opened 0\n"
				  "ok 0\n"
				  "throttled 0\n"
				  "error 0\n"
				  "backoff_up 0\n"
				  "backoff_down 0\n"
				  "backoff_pauses 0\n"
				  "backoff_paused_seconds 0.000000000\n"
				  "granted_min 0\n"
				  "refused_queue_max 0\n"
				  "refused_wait_max 0\n"
				  "waiting 0\n"
				  "waiting_below 0\n"
				  "rate max\n"
				  "effective_rate max\n"
				  "tokens max\n"
				  "reset max\n"
				  "slots max\n"
				  "slots_used 0\n"
				  "keys 0\n"
				  "backoff_seconds 0\n"
				  "service_left max\n"
				  "service_left_seconds 0\n"
				  "service_rate max\n"
				  "partitions_held 20\n"
				  "share 1\n"
				  "wait_p50_seconds 0\n"
				  "wait_p90_seconds 0\n"
				  "wait_p99_seconds 0\n"
				  "slot_wait_p50_seconds 0\n"
				  "slot_wait_p90_seconds 0\n"
				  "slot_wait_p99_seconds 0\n");
	stage_close(&stage);
}

static void test_every_entry_has_a_name_and_help_and_says_what_it_is(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(stat_count(), COUNT(NAMES));
	for (size_t i = 0; i < stat_count(); i++) {
		struct stat_entry entry = stat_entry(a, i);
		bool seconds = strstr(NAMES[i], "_seconds") != NULL;

		assert_string_equal(entry.name, NAMES[i]);
		assert_true(entry.help[0]);
		assert_null(strpbrk(entry.help, "\n\\"));
		assert_int_equal(entry.is_counter, i < COUNTERS);
		assert_int_equal(entry.is_whole, i < COUNTERS && !seconds);
	}
	stage_close(&stage);
}

static void test_take_granted_at_once_is_granted_and_served(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *partition;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=20");
	b = stage_make(&stage, a, "b", "partitions.count=2");
	assert_int_equal(stage_try(&stage, a, 3, 0), 0);
	assert_counters(&stage, a, "granted=3 served=1");
	assert_int_equal(stage_ask(&stage, &guest, b, 5, 0), 0);
	assert_int_equal(stage_read(&stage, b, 1, READ_BLOCKING, 0), 0);
	assert_counters(&stage, b, "granted=6 served=2");
	/* Tokens count on the whole path, reads where they were asked. */
	assert_counters(&stage, a, "granted=9 served=1");
	partition = partition_get(&stage.engine.schedule, b, 1, 0);
	assert_int_equal(stage_try(&stage, partition, 2, 0), 0);
	assert_counters(&stage, partition, "granted=2 served=1");
	assert_counters(&stage, b, "granted=8 served=2");
	assert_counters(&stage, a, "granted=11 served=1");
	/* None is a read, too. */
	assert_int_equal(stage_try(&stage, a, 0, 0), 0);
	assert_counters(&stage, a, "granted=11 served=2");
	stage_close(&stage);
}

static void test_time_that_readers_waited_is_summed_once_they_are_served(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[3];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=3/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	for (size_t i = 0; i < COUNT(guests); i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	stage_run(&stage, 300 * MS);
	assert_counters(&stage, a, "granted=1 served=1");
	assert_stat(&stage, a, "waiting", "3");
	/* A third of a second, rounded up to a nanosecond, then two. */
	stage_run(&stage, 700 * MS);
	assert_counters(&stage, a, "granted=3 served=3 delayed_seconds=1.000000001");
	assert_stat(&stage, a, "waiting", "1");
	stage_run(&stage, SEC);
	assert_counters(&stage, a, "granted=4 served=4 delayed_seconds=2.000000001");
	stage_close(&stage);
}

static void test_every_refusal_is_counted(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=10");
	assert_int_equal(stage_try(&stage, a, 11, 0), -EBUSY);
	assert_counters(&stage, a, "refused=1");
	assert_int_equal(stage_ask_within(&stage, &guest, a, 20, 999 * MS, 0), -EAGAIN);
	assert_counters(&stage, a, "refused=2");
	/* A read that will wait is not refused, */
	assert_int_equal(stage_read(&stage, a, 11, READ_BLOCKING, 0), WAITING);
	assert_counters(&stage, a, "refused=2");
	/* unless it waits in vain. */
	assert_int_equal(stage_ask_within(&stage, &guest, a, 20, SEC, 0), WAITING);
	stage_write(&stage, a, "rate=5/s", 0);
	stage_run(&stage, SEC);
	assert_int_equal(guest.waiter.outcome, -EAGAIN);
	assert_counters(&stage, a, "refused=3");
	stage_close(&stage);
}

static void test_waiter_that_gives_up_is_cancelled_and_adds_no_delay(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0");
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	assert_stat(&stage, a, "waiting", "1");
	stage_run(&stage, SEC);
	engine_cancel(&stage.engine, &guest.waiter);
	assert_counters(&stage, a, "cancelled=1");
	assert_stat(&stage, a, "waiting", "0");
	stage_close(&stage);
}

static void test_one_whose_partition_goes_is_counted_nowhere(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0\npartitions.count=2");
	assert_int_equal(
		stage_ask(&stage, &guest, partition_get(&stage.engine.schedule, a, 1, 0), 1, 0),
		WAITING);
	stage_write(&stage, a, "partitions.count=1", 0);
	assert_int_equal(guest.waiter.outcome, -ENODEV);
	assert_counters(&stage, a, "");
	stage_close(&stage);
}

static void test_shadow_counts_what_would_have_waited(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5\nenforcement=shadow");
	assert_int_equal(stage_try(&stage, a, 4, 0), 0);
	assert_counters(&stage, a, "granted=4 served=1");
	assert_int_equal(stage_try(&stage, a, 2, 0), 0);
	assert_counters(&stage, a, "granted=6 served=2 shadowed=2");
	/* A take that would have waited takes nothing. */
	assert_stat(&stage, a, "tokens", "1");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_counters(&stage, a, "granted=7 served=3 shadowed=2");
	stage_write(&stage, a, "enforcement=open", 0);
	assert_int_equal(stage_try(&stage, a, 9, 0), 0);
	assert_counters(&stage, a, "granted=16 served=4 shadowed=2");
	stage_close(&stage);
}

static void test_charges_and_what_came_back_are_counted_on_the_whole_path(void **state)
{
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	b = stage_make(&stage, a, "b", "rate=10/s\nburst=5");
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = 12}, 0), 0);
	assert_counters(&stage, b, "charged=12");
	assert_counters(&stage, a, "charged=12");
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -5}, 0), 0);
	assert_counters(&stage, b, "charged=12 returned=5");
	assert_counters(&stage, a, "charged=12 returned=5");
	/* Tokens that were not taken cannot come back. */
	assert_int_equal(engine_charge(&stage.engine, b, &(struct charge){.tokens = -8}, 0),
			 -ERANGE);
	assert_counters(&stage, b, "charged=12 returned=5");
	/* Limiters above do not concern those below. */
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, 0), 0);
	assert_counters(&stage, b, "charged=12 returned=5");
	assert_counters(&stage, a, "charged=13 returned=5");
	stage_close(&stage);
}

static void test_a_grant_that_never_arrived_is_not_counted(void **state)
{
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5");
	b = stage_make(&stage, a, "b", NULL);
	assert_int_equal(stage_try(&stage, b, 3, 0), 0);
	engine_refund(&stage.engine, b, 3, NULL, 0);
	assert_counters(&stage, a, "");
	assert_counters(&stage, b, "");
	assert_stat(&stage, a, "tokens", "5");
	stage_close(&stage);
}

static void test_waiting_are_those_of_the_limiter_and_its_partitions(void **state)
{
	struct stage stage;
	struct limiter *a, *b, *partition;
	struct guest own, in_partition, below;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0\npartitions.count=3");
	b = stage_make(&stage, a, "b", NULL);
	partition = partition_get(&stage.engine.schedule, a, 2, 0);
	assert_int_equal(stage_ask(&stage, &own, a, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &in_partition, partition, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &below, b, 1, 0), WAITING);
	assert_stat(&stage, a, "waiting", "2");
	assert_stat(&stage, b, "waiting", "1");
	assert_stat(&stage, partition, "waiting", "1");
	stage_write(&stage, a, "rate=max", 0);
	assert_stat(&stage, a, "waiting", "0");
	assert_stat(&stage, b, "waiting", "0");
	stage_close(&stage);
}

static void test_the_rate_is_the_least_of_the_limits_a_second(void **state)
{
	static const struct {
		const char *config;
		const char *rate;
	} rates[] = {
		{"rate=500/s", "500"},
		{"rate=10/s 5000/h", "1.38888888888889"},
		{"rate=1000000000000/s", "1000000000000"},
		{"rate=1/4s", "0.25"},
		{"rate=0", "0"},
		{"rate=max", "max"},
	};
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	for (size_t i = 0; i < COUNT(rates); i++) {
		stage_write(&stage, a, rates[i].config, 0);
		assert_stat(&stage, a, "rate", rates[i].rate);
		assert_stat(&stage, a, "effective_rate", rates[i].rate);
	}
	stage_close(&stage);
}

static void test_the_effective_rate_is_nothing_when_closed_and_max_when_open(void **state)
{
	static const struct {
		const char *setting;
		const char *rate;
	} rows[] = {
		{"enforcement=closed", "0"},
		{"enforcement=open", "max"},
		{"enforcement=shadow", "max"},
		{"enforcement=enforce", "10"},
	};
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	for (size_t i = 0; i < COUNT(rows); i++) {
		stage_write(&stage, a, rows[i].setting, 0);
		assert_stat(&stage, a, "rate", "10");
		assert_stat(&stage, a, "effective_rate", rows[i].rate);
	}
	stage_close(&stage);
}

static void test_tokens_are_those_of_now_and_negative_in_debt(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=20");
	assert_stat(&stage, a, "tokens", "20");
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 32}, 0), 0);
	assert_stat(&stage, a, "tokens", "-12");
	engine_run(&stage.engine, 550 * MS);
	assert_stat(&stage, a, "tokens", "-6.5");
	engine_run(&stage.engine, 2 * SEC);
	assert_stat(&stage, a, "tokens", "8");
	engine_run(&stage.engine, 100 * SEC);
	assert_stat(&stage, a, "tokens", "20");
	/* The limit with the fewest counts. */
	stage_write(&stage, a, "rate=10/s 1/h:3", 100 * SEC);
	assert_stat(&stage, a, "tokens", "3");
	stage_close(&stage);
}

static void test_partitions_held_are_shares_and_reserves(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s\npartitions.count=7");
	assert_stat(&stage, a, "partitions_held", "7");
	stage_write(&stage, a, "partitions.reserve=1/s hosts=4", 0);
	assert_stat(&stage, a, "partitions_held", "11");
	stage_write(&stage, a, "partitions.count=auto\npartitions.reserve=none\nrate=1/5s", 0);
	assert_stat(&stage, a, "partitions_held", "3");
	stage_close(&stage);
}

static void test_values_of_an_entry_are_numbers_for_metrics(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/4s\nenforcement=open");
	a->counters[COUNTER_DELAYED] = 2500 * MS;
	a->counters[COUNTER_REFUSED] = UINT64_MAX;
	assert_true(stat_entry(a, 2).count == UINT64_MAX);
	assert_true(stat_entry(a, 4).value == 2.5);
	assert_true(stat_entry(a, 21).value == 0.25);
	assert_true(isinf(stat_entry(a, 22).value));
	assert_true(stat_entry(a, 23).value == 1);
	stage_close(&stage);
}

/* Holds @limiter to the entries that metrics has of it beside those of each limiter. */
static void assert_metrics(const struct limiter *limiter, const char *expected)
{
	static const char each[] = " granted served refused cancelled delayed_seconds waiting rate "
				   "effective_rate tokens ";
	char found[STAT_TEXT] = "", word[64];

	for (size_t i = 0; i < stat_count(); i++) {
		size_t used = strlen(found);

		snprintf(word, sizeof(word), " %s ", NAMES[i]);
		if (strstr(each, word))
			assert_true(stat_has_metric(limiter, i));
		else if (stat_has_metric(limiter, i))
			snprintf(found + used, sizeof(found) - used, "%s%s", used ? " " : "",
				 NAMES[i]);
	}
	assert_string_equal(found, expected);
}

static void test_metrics_have_what_is_on(void **state)
{
	static const struct {
		const char *setting, *off, *metrics;
	} rows[] = {
		{"rate=10/s tpm=5/s", "rate=max", ""},
		{"enforcement=shadow", "enforcement=enforce", "shadowed"},
		{"adapt=aimd\nrate=10/s", "adapt=none\nrate=max", "ok throttled error"},
		{"backoff=exponential", "backoff=none",
		 "ok throttled error backoff_up backoff_down backoff_pauses "
		 "backoff_paused_seconds backoff_seconds"},
		{"min=1/s", "min=0", "granted_min"},
		{"queue_max=5", "queue_max=max", "refused_queue_max"},
		{"wait_max=5s", "wait_max=max", "refused_wait_max"},
		{"rate=5/year@jan-1", "rate=max", "reset"},
	};
	struct stage stage;
	struct limiter *a;
	char name[] = "a";

	(void)state;
	stage_open(&stage);
	for (size_t i = 0; i < COUNT(rows); i++, name[0]++) {
		a = stage_make(&stage, NULL, name, NULL);
		assert_metrics(a, "");
		stage_write(&stage, a, rows[i].setting, 0);
		assert_metrics(a, rows[i].metrics);
		stage_write(&stage, a, rows[i].off, 0);
		assert_metrics(a, "");
	}
	stage_make(&stage, a, "child", NULL);
	assert_metrics(a, "waiting_below");
	/* The counts of slots stay. */
	stage_write(&stage, a, "concurrency=5", 0);
	stage_write(&stage, a, "concurrency=max", 0);
	assert_metrics(a, "slots_opened waiting_below slots slots_used");
	stage_close(&stage);
}

static void test_metrics_keep_a_counter_that_has_counted(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=5\nenforcement=shadow");
	assert_int_equal(stage_try(&stage, a, 4, 0), 0);
	assert_int_equal(stage_try(&stage, a, 2, 0), 0);
	stage_write(&stage, a, "enforcement=enforce", 0);
	assert_metrics(a, "shadowed");
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, 0), 0);
	assert_metrics(a, "shadowed charged returned");
	a->counters[COUNTER_ERROR] = 1;
	assert_metrics(a, "shadowed charged returned ok throttled error");
	a->counters[COUNTER_GRANTED_MIN] = 1;
	a->counters[COUNTER_REFUSED_QUEUE] = 1;
	a->counters[COUNTER_REFUSED_WAIT] = 1;
	assert_metrics(a, "shadowed charged returned ok throttled error granted_min "
			  "refused_queue_max refused_wait_max");
	stage_close(&stage);
}

static void test_metrics_keep_a_quota_between_its_windows(void **state)
{
	static const char told[] = "ok throttled error service_left service_left_seconds "
				   "service_rate";
	const struct outcome outcome = {.kind = OUTCOME_OK,
					.count = 1,
					.has_remaining = true,
					.remaining = 5,
					.reset_ns = SEC};
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	assert_int_equal(engine_feedback(&stage.engine, a, &outcome, 1, 0), 0);
	assert_metrics(a, told);
	stage_run(&stage, 3 * SEC);
	engine_refresh(&stage.engine, a, 3 * SEC);
	assert_null(allowances_least(&a->learning->allowances));
	assert_metrics(a, told);
	stage_close(&stage);
}

static void test_the_largest_numbers_fit(void **state)
{
	struct stage stage;
	struct limiter *a;
	char text[STAT_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1000000000000/s 1/26d\nburst=10000000000000");
	for (int i = 0; i < COUNTER_COUNT; i++)
		a->counters[i] = UINT64_MAX;
	for (uint32_t i = 0; i < a->bucket_count; i++)
		a->buckets[i].level = -(INT64_C(1) << 62);
	assert_true(stat_print(a, text) < STAT_TEXT / 2);
	assert_non_null(strstr(text, "granted 18446744073709551615\n"));
	assert_non_null(strstr(text, "delayed_seconds 18446744073.709551615\n"));
	assert_non_null(strstr(text, "tokens -4.61168601842739e+18\n"));
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_new_limiter_has_these_numbers_in_this_order),
		cmocka_unit_test(test_every_entry_has_a_name_and_help_and_says_what_it_is),
		cmocka_unit_test(test_take_granted_at_once_is_granted_and_served),
		cmocka_unit_test(test_time_that_readers_waited_is_summed_once_they_are_served),
		cmocka_unit_test(test_every_refusal_is_counted),
		cmocka_unit_test(test_waiter_that_gives_up_is_cancelled_and_adds_no_delay),
		cmocka_unit_test(test_one_whose_partition_goes_is_counted_nowhere),
		cmocka_unit_test(test_shadow_counts_what_would_have_waited),
		cmocka_unit_test(test_charges_and_what_came_back_are_counted_on_the_whole_path),
		cmocka_unit_test(test_a_grant_that_never_arrived_is_not_counted),
		cmocka_unit_test(test_waiting_are_those_of_the_limiter_and_its_partitions),
		cmocka_unit_test(test_the_rate_is_the_least_of_the_limits_a_second),
		cmocka_unit_test(test_the_effective_rate_is_nothing_when_closed_and_max_when_open),
		cmocka_unit_test(test_tokens_are_those_of_now_and_negative_in_debt),
		cmocka_unit_test(test_partitions_held_are_shares_and_reserves),
		cmocka_unit_test(test_values_of_an_entry_are_numbers_for_metrics),
		cmocka_unit_test(test_metrics_have_what_is_on),
		cmocka_unit_test(test_metrics_keep_a_counter_that_has_counted),
		cmocka_unit_test(test_metrics_keep_a_quota_between_its_windows),
		cmocka_unit_test(test_the_largest_numbers_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
