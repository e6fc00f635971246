/* Tests of limiters with windows of the calendar, on an engine whose wall clock can be set. */
#include "tests/core/stage.h"

#include "core/limiter/bucket.h"
#include "core/limiter/reason.h"
#include "core/limiter/wall.h"
#include "core/limiter/window.h"
#include "tests/sim/base/zones.h"

/* 2026-11-23 12:00:00 UTC, a Monday: the wall clock at the beginning of the engine. */
#define NOON_S INT64_C(1795435200)
#define HOUR   (3600 * SEC)
#define DAY    (24 * HOUR)

static void open_at_noon(struct stage *stage)
{
	stage_open(stage);
	wall_set(&stage->engine, NOON_S * (int64_t)SEC, 0);
}

/* Sets the wall clock @ahead_s before or behind of what it would show. */
static void set_clock(struct stage *stage, int64_t ahead_s, uint64_t now_ns)
{
	wall_set(&stage->engine, (NOON_S + ahead_s) * (int64_t)SEC, now_ns);
	stage_collect(stage);
}

static double tokens_of(struct stage *stage, struct limiter *limiter, uint64_t now_ns)
{
	engine_refresh(&stage->engine, limiter, now_ns);
	return limiter_tokens(limiter);
}

static void assert_tokens(struct stage *stage, struct limiter *limiter, uint64_t now_ns,
			  int64_t tokens)
{
	assert_int_equal(tokens_of(stage, limiter, now_ns), tokens);
}

static void test_a_window_is_full_at_its_beginning_and_nothing_flows_in(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=1000/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 400, 0), 0);
	assert_tokens(&stage, limiter, 0, 600);
	assert_tokens(&stage, limiter, 12 * HOUR - 1, 600);
	assert_int_equal(stage_try(&stage, limiter, 601, 12 * HOUR - 1), -EBUSY);
	assert_tokens(&stage, limiter, 12 * HOUR, 1000);
	assert_int_equal(stage_try(&stage, limiter, 1000, 12 * HOUR), 0);
	assert_int_equal(stage_try(&stage, limiter, 1, 36 * HOUR - 1), -EBUSY);
	/* Windows that passed are not saved up. */
	assert_tokens(&stage, limiter, 12 * HOUR + 9 * DAY, 1000);
	stage_close(&stage);
}

static void test_readers_that_wait_are_served_when_the_window_begins(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	struct guest a, b, c;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 8, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, limiter, 3, NULL, HOUR), 11 * HOUR);
	assert_int_equal(stage_ask_within(&stage, &c, limiter, 3, 11 * HOUR - 1, HOUR), -EAGAIN);
	assert_int_equal(stage_ask_within(&stage, &a, limiter, 6, 11 * HOUR, HOUR), WAITING);
	assert_int_equal(stage_ask(&stage, &b, limiter, 5, 2 * HOUR), WAITING);
	/* Behind the two: the window after the next. */
	assert_int_equal(engine_eta(&stage.engine, limiter, 10, NULL, 2 * HOUR), 34 * HOUR);
	stage_run(&stage, 12 * HOUR);
	assert_int_equal(a.waiter.outcome, 0);
	assert_int_equal(a.done_ns, 12 * HOUR);
	assert_int_equal(b.waiter.outcome, WAITING);
	stage_run(&stage, 36 * HOUR);
	assert_int_equal(b.waiter.outcome, 0);
	assert_int_equal(b.done_ns, 36 * HOUR);
	assert_tokens(&stage, limiter, 36 * HOUR, 5);
	stage_close(&stage);
}

static void test_more_than_a_window_has_is_never_had(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	struct guest guest;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(engine_eta(&stage.engine, limiter, 11, NULL, 0), NEVER_NS);
	assert_int_equal(stage_read(&stage, limiter, 11, READ_NONBLOCKING, 0), -EINVAL);
	assert_int_equal(stage_read(&stage, limiter, 11, READ_BLOCKING, 0), -EINVAL);
	assert_int_equal(stage_ask_within(&stage, &guest, limiter, 11, 3650 * DAY, 0), -EAGAIN);
	/* A reader that waits already stays when the number is lowered. */
	assert_int_equal(stage_try(&stage, limiter, 10, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, limiter, 10, 0), WAITING);
	stage_write(&stage, limiter, "rate=9/day@00:00", 0);
	stage_run(&stage, 30 * DAY);
	assert_int_equal(guest.waiter.outcome, WAITING);
	stage_write(&stage, limiter, "rate=11/day@00:00", 30 * DAY);
	assert_int_equal(guest.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_a_clock_that_is_put_forward_and_back_brings_no_second_window(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 4, 0), 0);
	set_clock(&stage, 13 * 3600, SEC);
	assert_tokens(&stage, limiter, SEC, 10);
	assert_int_equal(stage_try(&stage, limiter, 7, SEC), 0);
	set_clock(&stage, 0, 2 * SEC);
	assert_tokens(&stage, limiter, 2 * SEC, 3);
	/* It was filled for tomorrow: neither tomorrow's beginning nor another step fills it. */
	assert_tokens(&stage, limiter, 13 * HOUR, 3);
	set_clock(&stage, -2 * 3600, 13 * HOUR);
	assert_tokens(&stage, limiter, 14 * HOUR, 3);
	set_clock(&stage, 0, 14 * HOUR);
	assert_tokens(&stage, limiter, 36 * HOUR - 1, 3);
	assert_tokens(&stage, limiter, 36 * HOUR, 10);
	stage_close(&stage);
}

static void test_a_clock_that_is_put_back_at_the_beginning_of_a_window_fills_it_once(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 10, 0), 0);
	assert_int_equal(stage_try(&stage, limiter, 10, 12 * HOUR), 0);
	for (int64_t i = 1; i <= 5; i++) {
		set_clock(&stage, -5 * i, 12 * HOUR + (uint64_t)i * 6 * SEC);
		assert_int_equal(stage_try(&stage, limiter, 1, 12 * HOUR + (uint64_t)i * 6 * SEC),
				 -EBUSY);
	}
	stage_close(&stage);
}

static void test_readers_that_wait_follow_the_clock(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	struct guest a, b;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 10, 0), 0);
	assert_int_equal(stage_ask(&stage, &a, limiter, 10, 0), WAITING);
	set_clock(&stage, -3600, HOUR);
	stage_run(&stage, 13 * HOUR - 1);
	assert_int_equal(a.waiter.outcome, WAITING);
	stage_run(&stage, 13 * HOUR);
	assert_int_equal(a.waiter.outcome, 0);
	assert_int_equal(a.done_ns, 13 * HOUR);
	assert_int_equal(stage_ask(&stage, &b, limiter, 10, 14 * HOUR), WAITING);
	set_clock(&stage, 30 * 3600, 14 * HOUR);
	assert_int_equal(b.waiter.outcome, 0);
	assert_int_equal(b.done_ns, 14 * HOUR);
	stage_close(&stage);
}

static void test_used_tokens_stay_used_when_the_number_is_changed(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=1000/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 400, 0), 0);
	stage_write(&stage, limiter, "rate=2000/day@00:00", SEC);
	assert_tokens(&stage, limiter, SEC, 1600);
	stage_write(&stage, limiter, "rate=300/day@00:00", SEC);
	assert_tokens(&stage, limiter, SEC, -100);
	stage_write(&stage, limiter, "rate=1/min 1000/day@00:00", SEC);
	stage_write(&stage, limiter, "rate=1000/day@00:00 1/s", SEC);
	stage_write(&stage, limiter, "rate=1000/day@00:00", SEC);
	assert_tokens(&stage, limiter, SEC, 600);
	/* Other windows: it is not known what was used of this one before. */
	stage_write(&stage, limiter, "rate=1000/day@13:00", SEC);
	assert_tokens(&stage, limiter, SEC, 600);
	assert_tokens(&stage, limiter, HOUR - 1, 600);
	assert_tokens(&stage, limiter, HOUR, 1000);
	/* Of a window that is over nothing stays. */
	stage_write(&stage, limiter, "rate=2000/day@13:00", 2 * DAY);
	assert_tokens(&stage, limiter, 2 * DAY, 2000);
	stage_close(&stage);
}

static void test_a_debt_ends_with_its_window(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=100/day@00:00");
	assert_int_equal(engine_charge(&stage.engine, limiter, &(struct charge){.tokens = 350}, 0),
			 0);
	assert_tokens(&stage, limiter, 0, -250);
	assert_tokens(&stage, limiter, 12 * HOUR, 100);
	assert_int_equal(
		engine_charge(&stage.engine, limiter, &(struct charge){.tokens = -50}, 12 * HOUR),
		0);
	assert_tokens(&stage, limiter, 12 * HOUR, 100);
	stage_close(&stage);
}

static void test_a_grant_of_the_window_before_brings_nothing_back(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00");
	assert_int_equal(stage_try(&stage, limiter, 4, 12 * HOUR - 1), 0);
	assert_int_equal(stage_try(&stage, limiter, 5, 12 * HOUR), 0);
	engine_refund(&stage.engine, limiter, 4, NULL, 12 * HOUR + 1);
	assert_tokens(&stage, limiter, 12 * HOUR + 1, 5);
	engine_refund(&stage.engine, limiter, 2, NULL, 13 * HOUR);
	assert_tokens(&stage, limiter, 13 * HOUR, 7);
	stage_close(&stage);
}

static void test_each_unit_has_windows_of_its_own(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	const struct amounts some = {.count = 1, .of = {{"tpm", 60}}};
	const struct amounts many = {.count = 1, .of = {{"tpm", 101}}};

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00 tpm=100/day@00:00 tpm=99/h@:00");
	assert_int_equal(engine_eta(&stage.engine, limiter, 1, &some, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, limiter, 1, &many, 0), NEVER_NS);
	assert_int_equal(engine_charge(&stage.engine, limiter, &(struct charge){.taken = some}, 0),
			 0);
	assert_int_equal(engine_eta(&stage.engine, limiter, 1, &some, 0), 12 * HOUR);
	assert_tokens(&stage, limiter, 0, 10);
	/* Those of a unit go on as those of that unit. */
	stage_write(&stage, limiter, "rate=tpm=200/day@00:00", SEC);
	assert_int_equal(limiter->buckets[0].level, 140);
	stage_close(&stage);
}

static void test_a_quota_and_a_pace_hold_together(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	uint64_t granted = 0;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=50/day@00:00 1/min");
	for (uint64_t i = 0; i < 12 * 60; i++) {
		assert_int_equal(stage_try(&stage, limiter, 1, i * 60 * SEC), i < 50 ? 0 : -EBUSY);
		assert_int_equal(stage_try(&stage, limiter, 1, i * 60 * SEC + 1), -EBUSY);
		granted += i < 50;
	}
	assert_int_equal(granted, 50);
	assert_int_equal(stage_try(&stage, limiter, 1, 12 * HOUR), 0);
	stage_close(&stage);
}

static void test_windows_of_a_zone_are_longer_or_shorter_where_clocks_are_changed(void **state)
{
	struct stage stage;
	struct limiter *limiter;
	/* 2026-10-24 22:00 UTC, midnight in Paris: this day has 25 hours. */
	const int64_t begin_s = INT64_C(1792879200);

	(void)state;
	stage_open(&stage);
	wall_set(&stage.engine, begin_s * (int64_t)SEC, 0);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00,Europe/Paris");
	assert_int_equal(stage_try(&stage, limiter, 10, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, limiter, 1, NULL, 0), 25 * HOUR);
	assert_tokens(&stage, limiter, 25 * HOUR - 1, 0);
	assert_tokens(&stage, limiter, 25 * HOUR, 10);
	stage_close(&stage);
}

static void test_the_time_to_the_next_window_is_told(void **state)
{
	struct reason reasons[REASONS_MAX];
	struct stage stage;
	struct limiter *limiter, *other;
	char text[STAT_TEXT];

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00 100/h@:30");
	other = stage_make(&stage, NULL, "b", "rate=10/s");
	engine_refresh(&stage.engine, limiter, 0);
	stat_print(limiter, text);
	assert_non_null(strstr(text, "\nreset 1800\n"));
	assert_non_null(strstr(text, "\nrate max\n"));
	stat_print(other, text);
	assert_non_null(strstr(text, "\nreset max\n"));
	assert_int_equal(stage_try(&stage, limiter, 10, 0), 0);
	engine_refresh(&stage.engine, limiter, 2 * HOUR);
	assert_int_equal(reason_list(&stage.engine.schedule, limiter, reasons), 1);
	assert_int_equal(reasons[0].kind, REASON_RATE);
	assert_int_equal(reasons[0].limit, 0);
	assert_int_equal(reasons[0].tokens, 1);
	assert_int_equal(reasons[0].reset_ns, 10 * HOUR);
	stage_close(&stage);
}

static void test_partitions_and_children_share_a_window(void **state)
{
	struct stage stage;
	struct limiter *limiter, *child, *part;

	(void)state;
	open_at_noon(&stage);
	limiter = stage_make(&stage, NULL, "a", "rate=10/day@00:00\npartitions.count=4");
	child = stage_make(&stage, limiter, "b", "rate=4/h@:00");
	part = partition_get(&stage.engine.schedule, limiter, 1, 0);
	assert_int_equal(stage_try(&stage, part, 2, 0), 0);
	assert_int_equal(stage_try(&stage, part, 1, 0), -EBUSY);
	assert_int_equal(stage_try(&stage, child, 4, 0), 0);
	assert_int_equal(stage_try(&stage, child, 1, 0), -EBUSY);
	assert_int_equal(stage_try(&stage, child, 4, HOUR), 0);
	assert_int_equal(stage_try(&stage, limiter, 1, 2 * HOUR), -EBUSY);
	assert_int_equal(stage_try(&stage, part, 2, 12 * HOUR), 0);
	stage_write(&stage, limiter, "rate=20/day@00:00", 12 * HOUR);
	assert_int_equal(stage_try(&stage, part, 3, 12 * HOUR), 0);
	assert_int_equal(stage_try(&stage, part, 1, 12 * HOUR), -EBUSY);
	stage_remove(&stage, child);
	stage_close(&stage);
}

/*
 * However the clock is set, a window gives its tokens once. While the clock shows a time before the
 * latest window that it has shown, tokens are that window's.
 */
static void test_no_window_gives_more_than_its_tokens(void **state)
{
	enum { WINDOWS = 4000, MOST = 7, BEFORE = 2000 };
	static uint64_t granted[WINDOWS];

	(void)state;
	srand48(7);
	for (int run = 0; run < 20; run++) {
		struct stage stage;
		struct limiter *limiter;
		uint64_t now_ns = 0, most = 0;
		int64_t ahead_s = 0, latest = 0;

		memset(granted, 0, sizeof(granted));
		open_at_noon(&stage);
		limiter = stage_make(&stage, NULL, "a", "rate=7/min@:00");
		for (int i = 0; i < 2000; i++) {
			uint64_t tokens = 1 + (uint64_t)(drand48() * 3);
			int64_t minute;

			now_ns += (uint64_t)(drand48() * 20e9);
			if (drand48() < 0.02)
				ahead_s += (int64_t)(drand48() * 600) - 300;
			set_clock(&stage, ahead_s, now_ns);
			minute = ((int64_t)(now_ns / SEC) + ahead_s + BEFORE * 60) / 60;
			latest = minute > latest ? minute : latest;
			assert_true(minute >= 0 && latest < WINDOWS);
			if (!stage_try(&stage, limiter, tokens, now_ns))
				granted[latest] += tokens;
		}
		for (int i = 0; i < WINDOWS; i++) {
			assert_true(granted[i] <= MOST);
			most = granted[i] > most ? granted[i] : most;
		}
		assert_int_equal(most, MOST);
		stage_remove(&stage, limiter);
		stage_close(&stage);
	}
}

enum { HOSTS = 3, PIECES = 4, NUMBER = 10, HOURS = 8, WALKS = 3000, STEPS = 60 };

/* Hosts, each with a clock of its own, that pass leaves on with what was used of them. */
struct passing {
	uint64_t now_ns[HOSTS];
	struct wall walls[HOSTS];
	struct window windows[HOSTS];
	struct bucket buckets[HOSTS];
	uint32_t leaves[HOSTS];
	struct window_use free[PIECES]; /* of each that no host has */
	uint32_t free_count;
	uint64_t granted[HOURS + 2];
};

static struct window_share share_of(uint32_t leaves)
{
	return (struct window_share){NUMBER * leaves / PIECES, NUMBER * leaves % PIECES, PIECES,
				     leaves};
}

static void reshare(struct passing *passing, uint32_t host)
{
	struct window_share share = share_of(passing->leaves[host]);

	window_retune(&passing->buckets[host], &passing->windows[host], &share,
		      passing->now_ns[host]);
}

static void pass_on(struct passing *passing, uint32_t host)
{
	passing->free[passing->free_count++] = window_split_use(&passing->buckets[host], 1,
								passing->leaves[host]--);
	reshare(passing, host);
}

static void take_up(struct passing *passing, uint32_t host)
{
	struct window_share worth = share_of(1);

	window_join_use(&passing->buckets[host], &passing->free[--passing->free_count], &worth);
	passing->leaves[host]++;
	reshare(passing, host);
}

/* A grant is of the window that the host's clock shows. */
static void grant_one(struct passing *passing, uint32_t host)
{
	uint64_t hour = passing->now_ns[host] / HOUR;

	if (!bucket_has(&passing->buckets[host], 1))
		return;
	bucket_take(&passing->buckets[host], 1, passing->now_ns[host]);
	assert_in_range(++passing->granted[hour], 1, NUMBER);
}

static void act(struct passing *passing, uint32_t host, int what)
{
	bucket_refill(&passing->buckets[host], passing->now_ns[host]);
	if (what < 4)
		grant_one(passing, host);
	else if (what < 6 && passing->leaves[host])
		pass_on(passing, host);
	else if (what < 8 && passing->free_count)
		take_up(passing, host);
	else if (what == 8 && passing->now_ns[host] < HOURS * HOUR)
		passing->now_ns[host] += HOUR / 4;
}

static void test_leaves_grant_a_window_once_whatever_clocks_hosts_have(void **state)
{
	const struct rate rate = {.amount = NUMBER, .kind = RATE_HOUR, .period_ns = HOUR};
	const struct window_share none = share_of(0);
	uint64_t used_up = 0;

	(void)state;
	srand(1);
	for (int walk = 0; walk < WALKS; walk++) {
		struct passing passing = {.free_count = PIECES};

		for (uint32_t host = 0; host < HOSTS; host++) {
			passing.walls[host].now_ns = &passing.now_ns[host];
			passing.windows[host].rate = &rate;
			passing.windows[host].wall = &passing.walls[host];
			passing.now_ns[host] = (uint64_t)(rand() % 3) * HOUR / 4 + HOUR;
			window_init(&passing.buckets[host], &passing.windows[host], &none,
				    passing.now_ns[host]);
		}
		for (int step = 0; step < STEPS; step++)
			act(&passing, (uint32_t)rand() % HOSTS, rand() % 9);
		for (int hour = 0; hour < HOURS; hour++)
			used_up += passing.granted[hour] == NUMBER;
	}
	assert_in_range(used_up, WALKS / 100, WALKS * HOURS);
}

static void test_leaves_keep_what_was_used_while_they_may_not_be_used(void **state)
{
	const struct rate rate = {.kind = RATE_HOUR, .period_ns = HOUR};
	struct window_share all = share_of(PIECES), none = share_of(0), more = {20, 0, PIECES, 0};
	uint64_t now_ns = HOUR;
	const struct wall wall = {.now_ns = &now_ns};
	struct window window = {.rate = &rate, .wall = &wall};
	struct bucket bucket;

	(void)state;
	window_init(&bucket, &window, &all, now_ns);
	bucket_fill(&bucket);
	bucket_take(&bucket, 4, now_ns);
	window_retune(&bucket, &window, &none, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 0);
	window_retune(&bucket, &window, &all, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 6);
	window_retune(&bucket, &window, &more, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 16);
	window_forget_use(&bucket);
	assert_int_equal(bucket_tokens(&bucket), 20);
}

/* Returns @leaves of four of @number tokens. */
static struct window_share quarters(uint32_t number, uint32_t leaves)
{
	return (struct window_share){number / 4 * leaves, 0, 4, leaves};
}

static void test_leaves_of_unknown_use_gain_nothing_by_a_larger_number(void **state)
{
	const struct rate low_rate = {.amount = 400, .kind = RATE_HOUR, .period_ns = HOUR};
	const struct rate rate = {.amount = 800, .kind = RATE_HOUR, .period_ns = HOUR};
	const struct window_use unknown = {.begin_s = WINDOW_UNKNOWN};
	struct window_share worth = quarters(400, 1), share = quarters(400, 2);
	uint64_t now_ns = HOUR;
	const struct wall wall = {.now_ns = &now_ns};
	struct window low = {.rate = &low_rate, .wall = &wall};
	struct window window = {.rate = &rate, .wall = &wall};
	struct bucket bucket, other;
	struct window_use use;

	(void)state;
	window_init(&bucket, &low, &share, now_ns);
	bucket_fill(&bucket);
	bucket_take(&bucket, 50, now_ns);
	window_join_use(&bucket, &unknown, &worth);
	share = quarters(400, 3);
	window_retune(&bucket, &low, &share, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 150);
	share = quarters(800, 3);
	window_retune(&bucket, &window, &share, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 350);

	/* Those of known use go first. */
	use = window_split_use(&bucket, 1, 3);
	assert_true(use.begin_s == window_begin_s(&bucket) && use.nano == (i128)25 * SEC);
	share = quarters(800, 2);
	window_retune(&bucket, &window, &share, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 175);
	use = window_split_use(&bucket, 2, 2);
	share = quarters(800, 0);
	window_retune(&bucket, &window, &share, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 0);

	window_init(&other, &low, &share, now_ns);
	worth = share = quarters(400, 2);
	window_join_use(&other, &use, &worth);
	window_retune(&other, &low, &share, now_ns);
	share = quarters(800, 2);
	window_retune(&other, &window, &share, now_ns);
	assert_int_equal(bucket_tokens(&other), 0);
	/* Tokens that come back are no use of less than nothing. */
	worth = quarters(800, 1);
	window_join_use(&other, &(struct window_use){.begin_s = 0}, &worth);
	share = quarters(800, 3);
	window_retune(&other, &window, &share, now_ns);
	now_ns += 2 * SEC;
	bucket_put(&other, 30, 0);
	use = window_split_use(&other, 1, 3);
	assert_true(use.begin_s == window_begin_s(&other) && use.nano == 0);
	now_ns += HOUR;
	bucket_refill(&other, now_ns);
	share = quarters(800, 2);
	window_retune(&other, &window, &share, now_ns);
	assert_int_equal(bucket_tokens(&other), 400);
}

static void test_a_cap_holds_back_what_is_above_it_and_all_of_the_next_window(void **state)
{
	const struct rate rate = {.kind = RATE_HOUR, .period_ns = HOUR};
	struct window_share all = {1000, 0, 1, 0}, more = {1500, 0, 1, 0}, none = {0, 0, 1, 0};
	uint64_t now_ns = HOUR + 2 * SEC;
	const struct wall wall = {.now_ns = &now_ns};
	struct window window = {.rate = &rate, .wall = &wall};
	struct bucket bucket;
	int64_t begin_s;

	(void)state;
	window_init(&bucket, &window, &all, now_ns);
	bucket_fill(&bucket);
	begin_s = window_begin_s(&bucket);
	assert_int_equal(window_capped(&bucket), WINDOW_UNCAPPED);
	bucket_take(&bucket, 400, now_ns);
	window_cap(&bucket, begin_s, 450);
	assert_int_equal(bucket_tokens(&bucket), 50);
	assert_int_equal(bucket_level(&bucket), 600);
	assert_false(bucket_has(&bucket, 51));
	assert_true(window_is_held_back(&bucket, 600));
	assert_false(window_is_held_back(&bucket, 601));
	/* It may be raised at any moment. */
	assert_in_range(bucket_when(&bucket, 51, now_ns), now_ns + 1, now_ns + SEC);
	assert_int_equal(bucket_when(&bucket, 601, now_ns), 2 * HOUR);
	/* Another number of tokens is another level, and not another cap. */
	window_retune(&bucket, &window, &more, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 50);
	window_retune(&bucket, &window, &all, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 50);
	/* A charge may take more, and what comes back is no more than there was. */
	bucket_take(&bucket, 100, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 0);
	bucket_put(&bucket, 110, 0);
	assert_int_equal(bucket_tokens(&bucket), 60);
	bucket_take(&bucket, 10, now_ns);
	window_cap(&bucket, begin_s, WINDOW_UNCAPPED);
	assert_int_equal(bucket_tokens(&bucket), 600);
	window_cap(&bucket, begin_s, 1000);
	assert_int_equal(bucket_tokens(&bucket), 600);
	now_ns = 2 * HOUR;
	bucket_refill(&bucket, now_ns);
	assert_int_equal(bucket_level(&bucket), 1000);
	assert_int_equal(bucket_tokens(&bucket), 0);
	/* That of the window before comes too late. */
	window_cap(&bucket, begin_s, 700);
	assert_int_equal(bucket_tokens(&bucket), 0);
	window_cap(&bucket, window_begin_s(&bucket), 700);
	assert_int_equal(bucket_tokens(&bucket), 700);
	/* While nothing may be used nothing is known of it. */
	window_retune(&bucket, &window, &none, now_ns);
	window_retune(&bucket, &window, &all, now_ns);
	assert_int_equal(bucket_tokens(&bucket), 0);
}

/* Half of the leaves go, with half of what was used: the other half may use no more than it had. */
static void test_leaves_that_go_lower_the_cap_by_their_use(void **state)
{
	const struct rate rate = {.kind = RATE_HOUR, .period_ns = HOUR};
	struct window_share all = {1000, 0, 2, 0}, half = {500, 0, 2, 0};
	uint64_t now_ns = HOUR;
	const struct wall wall = {.now_ns = &now_ns};
	struct window window = {.rate = &rate, .wall = &wall};
	struct window_use use;
	struct bucket bucket;

	(void)state;
	window_init(&bucket, &window, &all, now_ns);
	bucket_fill(&bucket);
	bucket_take(&bucket, 401, now_ns);
	window_cap(&bucket, window_begin_s(&bucket), 450);
	use = window_split_use(&bucket, 1, 2);
	window_retune(&bucket, &window, &half, now_ns);
	assert_true(use.nano == (i128)200500000000);
	assert_int_equal(window_capped(&bucket), 450 - 201);
	assert_int_equal(bucket_tokens(&bucket), 450 - 201 - 201);
}

/* Of a leaf that is worth no whole number of tokens. */
static void test_a_cap_is_exact_where_a_part_of_a_token_is_left(void **state)
{
	const struct rate rate = {.kind = RATE_HOUR, .period_ns = HOUR};
	struct window_share third = {33, 1, 3, 0};
	uint64_t now_ns = HOUR;
	const struct wall wall = {.now_ns = &now_ns};
	struct window window = {.rate = &rate, .wall = &wall};
	struct bucket bucket;

	(void)state;
	window_init(&bucket, &window, &third, now_ns);
	bucket_fill(&bucket);
	for (uint64_t cap = 0; cap <= 34; cap++) {
		window_cap(&bucket, window_begin_s(&bucket), cap);
		assert_int_equal(bucket_tokens(&bucket), cap < 33 ? cap : 33);
	}
	/* Two thirds were used by what has come. */
	window_join_use(&bucket, &(struct window_use){window_begin_s(&bucket), 666666667},
			&(struct window_share){0, 0, 3, 0});
	for (uint64_t cap = 0; cap <= 34; cap++) {
		window_cap(&bucket, window_begin_s(&bucket), cap);
		assert_int_equal(bucket_tokens(&bucket), cap < 33 ? (cap ? cap - 1 : 0) : 32);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_window_is_full_at_its_beginning_and_nothing_flows_in),
		cmocka_unit_test(test_readers_that_wait_are_served_when_the_window_begins),
		cmocka_unit_test(test_more_than_a_window_has_is_never_had),
		cmocka_unit_test(test_a_clock_that_is_put_forward_and_back_brings_no_second_window),
		cmocka_unit_test(
			test_a_clock_that_is_put_back_at_the_beginning_of_a_window_fills_it_once),
		cmocka_unit_test(test_readers_that_wait_follow_the_clock),
		cmocka_unit_test(test_used_tokens_stay_used_when_the_number_is_changed),
		cmocka_unit_test(test_a_debt_ends_with_its_window),
		cmocka_unit_test(test_a_grant_of_the_window_before_brings_nothing_back),
		cmocka_unit_test(test_each_unit_has_windows_of_its_own),
		cmocka_unit_test(test_a_quota_and_a_pace_hold_together),
		cmocka_unit_test(
			test_windows_of_a_zone_are_longer_or_shorter_where_clocks_are_changed),
		cmocka_unit_test(test_the_time_to_the_next_window_is_told),
		cmocka_unit_test(test_partitions_and_children_share_a_window),
		cmocka_unit_test(test_no_window_gives_more_than_its_tokens),
		cmocka_unit_test(test_leaves_grant_a_window_once_whatever_clocks_hosts_have),
		cmocka_unit_test(test_leaves_keep_what_was_used_while_they_may_not_be_used),
		cmocka_unit_test(test_leaves_of_unknown_use_gain_nothing_by_a_larger_number),
		cmocka_unit_test(test_a_cap_holds_back_what_is_above_it_and_all_of_the_next_window),
		cmocka_unit_test(test_leaves_that_go_lower_the_cap_by_their_use),
		cmocka_unit_test(test_a_cap_is_exact_where_a_part_of_a_token_is_left),
	};

	zone_use(&LIBRARY_ZONES);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
