/* Tests of fleet: taking partitions and giving them back. */
#include "tests/core/fleet/scene.h"

#include "core/limiter/partition.h"

#include <stdio.h>

static const char ONE[] = "rate=10/s\npartitions.count=1\n";

/* The tiles of limiter 1, and of the reserve that it is given later. */
static const char TILES[] = "/t/1-1", RESERVE[] = "/r/1-2";

/* A limiter whose tile is of no epoch: no transaction has given it back. */
static struct limiter *make_unclean(struct scene *scene, const char *config)
{
	struct limiter *limiter = scene_make(scene, "a", config);

	scene_lay(scene, TILES, "0+0+1");
	return limiter;
}

static void test_a_clean_take_renames_the_tile_and_is_usable_at_the_acknowledgement(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_assert_next(&scene, "list /t/1-1");
	scene_answer(&scene);
	scene_assert_next(&scene, "list /w/1");
	scene_answer(&scene);
	scene_assert_next(&scene, "check /g 1; set /h/HID 2; delete /t/1-1/0+2+1; "
				  "create /t/1-1/0.HID");
	assert_int_equal(scene_lease(a, 0), LEASE_TAKING);
	assert_int_equal(guest.waiter.outcome, WAITING);
	scene_answer(&scene);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_true(scene_has(&scene, "/t/1-1/0.HID"));
	assert_int_equal(fleet_counters(scene.fleet)->taken_clean, 1);
	scene_close(&scene);
}

/* Asks; the take is answered @late_ns after it was sent. */
static void take_late(struct scene *scene, struct limiter *a, struct guest *guest, uint64_t late_ns)
{
	scene->held_up = true;
	assert_int_equal(scene_ask(scene, guest, a), WAITING);
	scene_answer_until(scene, TILES);
	scene_run(scene, late_ns);
	scene_answer(scene);
	scene->held_up = false;
}

/* Its clock for waiting is @slow_ns behind in the end. */
static void assert_usable_q_later(struct scene *scene, struct limiter *a, struct guest *guest)
{
	const uint64_t q_ns = record_quarantine_ns(FLEET_RIGHT_NS);

	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(scene, q_ns - 1);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	assert_int_equal(guest->waiter.outcome, WAITING);
	assert_false(fleet_is_entitled(scene->fleet, a->holding, 0));
	/* It is looked at every slot. */
	scene_run(scene, 2 * DEMAND_PERIOD_NS);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_true(fleet_is_entitled(scene->fleet, a->holding, 0));
	scene_run(scene, 100 * MS);
	assert_int_equal(guest->waiter.outcome, 0);
}

static void test_a_take_from_a_host_that_is_gone_asserts_that_it_is(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, ONE);
	scene_lay(&scene, TILES, "0.bbbbbbbbbbbbb");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_answer_until(&scene, TILES);
	scene_assert_next(&scene, "check /g 1; set /h/HID 2; delete /t/1-1/0.bbbbbbbbbbbbb; "
				  "create /t/1-1/0.HID; create /h/bbbbbbbbbbbbb; "
				  "delete /h/bbbbbbbbbbbbb");
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

/* It knew so when it had listed the hosts; the take is answered later. */
static void test_a_tile_of_a_host_that_is_gone_is_usable_q_after_that_was_known(void **state)
{
	const uint64_t q_ns = record_quarantine_ns(FLEET_RIGHT_NS);
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, ONE);
	scene_lay(&scene, TILES, "0.bbbbbbbbbbbbb");
	take_late(&scene, a, &guest, 600 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(&scene, q_ns - 600 * MS - 1);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(&scene, 2 * DEMAND_PERIOD_NS);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_run(&scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_tile_of_a_host_that_is_there_is_not_taken(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 30 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_true(scene_has(&scene, "/t/1-1/0.otherotheroth"));
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_an_unclean_take_is_usable_q_after_the_answer_was_received(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, ONE);
	take_late(&scene, a, &guest, 600 * MS);
	assert_usable_q_later(&scene, a, &guest);
	assert_int_equal(fleet_counters(scene.fleet)->taken_unclean, 1);
	scene_close(&scene);
}

static void test_q_counts_by_the_clock_for_waiting(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	scene.waiter_ns = 100 * SEC;
	a = make_unclean(&scene, ONE);
	take_late(&scene, a, &guest, 0);
	/* The others go on, this one stands still. */
	scene.waiter_ns -= 5 * SEC;
	scene_run(&scene, 10 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(&scene, 4 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_tile_of_before_an_election_saves_no_wait(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene.epoch++;
	take_late(&scene, a, &guest, 0);
	assert_int_equal(fleet_counters(scene.fleet)->taken_clean, 0);
	assert_usable_q_later(&scene, a, &guest);
	scene_close(&scene);
}

static void test_a_clean_take_brings_what_was_left(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1/h\nburst=10\npartitions.count=1");
	scene_lay(&scene, TILES, "0+2+1:3.5");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(a->buckets[0].level, 2);
	scene_close(&scene);
}

/* Sets @a to @config; outcome 0. */
static void set(struct scene *scene, struct limiter *a, const char *config)
{
	struct change change = {
		.kind = CHANGE_SETTINGS, .limiter = a, .setting = CHANGE_CONFIG, .text = config};

	assert_int_equal(scene_change(scene, &change), 0);
}

/*
 * Asserts that a take of partition 0 leaves @level in the bucket, when one reader has got a token
 * of it.
 */
static void assert_left(struct scene *scene, struct limiter *a, int64_t level)
{
	struct guest guest;

	assert_int_equal(scene_ask(scene, &guest, a), WAITING);
	scene_run(scene, SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(a->buckets[0].level, level);
	if (guest.waiter.outcome == WAITING)
		engine_cancel(&scene->engine, &guest.waiter);
}

static void test_a_new_limiter_is_full_by_the_burst_that_its_rate_begins_with(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "partitions.count=2");
	set(&scene, a, "burst=20");
	set(&scene, a, "rate=1/h");
	assert_left(&scene, a, 19);
	scene_close(&scene);
}

static void test_a_burst_that_is_raised_later_is_not_saved_up_yet(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1/h\nburst=2\npartitions.count=1");
	set(&scene, a, "burst=20");
	assert_left(&scene, a, 0);
	scene_close(&scene);
}

static void test_leaves_that_are_numbered_anew_are_used_q_later_and_are_empty(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "enforcement=enforce");
	set(&scene, a, "burst=20\nrate=1/h\npartitions.count=1");
	assert_true(scene_has(&scene, "/t/1-2/0+2+1"));
	scene_lay(&scene, "/t/1-2", "0.otherotheroth");
	set(&scene, a, "partitions.count=2");
	assert_true(scene_has(&scene, "/t/1-3/0-1+0+1"));
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 5 * SEC);
	assert_int_equal(a->holding->usable, 0);
	scene_run(&scene, 5 * SEC);
	assert_in_range(a->holding->usable, 1, 2);
	assert_int_equal(a->buckets[0].level, 0);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_level_counts_on_when_the_rate_alone_is_another(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1/h\nburst=20\npartitions.count=1");
	scene_lay(&scene, TILES, "0+2+1:3.5");
	set(&scene, a, "rate=2/h");
	assert_left(&scene, a, 2);
	scene_close(&scene);
}

static void test_level_of_another_burst_is_lost_but_for_a_debt(void **state)
{
	static const char *const left[] = {"0+2+1:3,3", "0+2+1:3,-7"};
	static const int64_t levels[] = {0, -7};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct scene scene;
		struct limiter *a;

		scene_open(&scene);
		a = scene_make(&scene, "a", "rate=1/h 2/h\nburst=20\npartitions.count=1");
		scene_lay(&scene, TILES, left[i]);
		set(&scene, a, "burst=30");
		assert_left(&scene, a, 0);
		assert_int_equal(a->buckets[1].level, levels[i]);
		scene_close(&scene);
	}
}

static void test_an_unclean_take_brings_nothing(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, "rate=1/min\nburst=10\npartitions.count=1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 50 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, WAITING);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_clean_leaves_are_taken_before_those_that_wait(void **state)
{
	static const char clean[] = "; delete /t/1-1/7+2+1; create /t/1-1/7.HID";
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=100000/s\npartitions.count=10");
	scene_lay(&scene, TILES, "0-6+0+1 7+2+1 8-9+0+1");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_answer_until(&scene, TILES);
	assert_memory_equal(strchr(strchr(scene.transaction, ';') + 1, ';'), clean, strlen(clean));
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_a_partition_that_another_took_first_is_not_held(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest, second;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=2");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	assert_int_equal(scene_ask(&scene, &second, a), WAITING);
	scene_answer_until(&scene, TILES);
	scene_lay(&scene, TILES, "0.otherotheroth 1+2+1");
	scene_answer(&scene);
	scene.held_up = false;
	scene_run(&scene, 500 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene_lease(a, 1), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(fleet_counters(scene.fleet)->conflicts, 1);
	scene_close(&scene);
}

/* Rule 2 is checked by the scene with each that is sent. */
static void test_only_one_transaction_is_under_way_whatever_is_asked_for(void **state)
{
	struct scene scene;
	struct limiter *limiters[6];
	struct guest guests[6];
	char name[2] = "a";

	(void)state;
	scene_open(&scene);
	for (int i = 0; i < 6; i++, name[0]++)
		limiters[i] = scene_make(&scene, name, "rate=1000/s\npartitions.count=3");
	scene.held_up = true;
	for (int i = 0; i < 6; i++)
		assert_int_equal(scene_ask(&scene, &guests[i], limiters[i]), WAITING);
	for (int i = 0; i < 200 && scene.sent_count; i++) {
		unsigned int under_way = 0;

		for (uint32_t j = 0; j < scene.sent_count; j++)
			under_way += scene.sent[j]->kind == REQUEST_TRANSACTION;
		assert_true(under_way <= 1);
		scene_answer(&scene);
		scene_run(&scene, 10 * MS);
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(guests[i].waiter.outcome, 0);
	scene_close(&scene);
}

/* Asks often for @ns, so that what is held stays. */
static void keep_asking(struct scene *scene, struct limiter *limiter, uint64_t ns)
{
	for (uint64_t end_ns = scene->now_ns + ns; scene->now_ns < end_ns;) {
		(void)scene_try(scene, limiter);
		scene_run(scene, 50 * MS);
	}
}

static void test_unwanted_partition_is_given_back_a_third_of_a_lease_later(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=1\npartitions.lease=9s");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	keep_asking(&scene, a, 3 * SEC);
	scene_run(&scene, 3800 * MS); /* tokens granted in the last second count, too */
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_run(&scene, 1500 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_true(scene_has(&scene, "/t/1-1/0+2+1:1"));
	assert_int_equal(fleet_counters(scene.fleet)->given_back, 1);
	scene_close(&scene);
}

/*
 * It looks every renewal whether they do, since there is nothing else that they could take; granted
 * tokens count for a second, and wanted tokens for another.
 */
static void test_denied_transaction_is_tried_again_every_r(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint64_t before, until_ns;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=1");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	before = fleet_counters(scene.fleet)->transactions;
	until_ns = scene.now_ns + 4 * FLEET_RENEWAL_NS;
	while (scene.now_ns < until_ns) {
		while (scene.sent_count && scene.sent[0]->kind != REQUEST_TRANSACTION)
			scene_answer(&scene);
		if (scene.sent_count)
			scene_refuse(&scene, ANSWER_DENIED, 1);
		scene_run(&scene, 10 * MS);
	}
	assert_in_range(fleet_counters(scene.fleet)->transactions - before, 2, 10);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_answer_all(&scene);
	scene_close(&scene);
}

static void test_unwanted_partition_that_others_claim_is_given_back_at_once(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=1\npartitions.lease=1h");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	keep_asking(&scene, a, SEC);
	scene_set(&scene, "/w/1/bbbbbbbbbbbbb-1-1-0000009999", NULL);
	scene_run(&scene, 2 * SEC + FLEET_RENEWAL_NS * 5 / 4 + 3 * DEMAND_PERIOD_NS);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_true(scene_has(&scene, "/t/1-1/0+2+1:1"));
	scene_close(&scene);
}

/* Leases taken and given back. */
static uint64_t moved(const struct scene *scene)
{
	const struct fleet_counters *counters = fleet_counters(scene->fleet);

	return counters->taken_clean + counters->taken_unclean + counters->given_back;
}

static void test_a_token_every_few_seconds_moves_no_lease(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint64_t before = 0;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=20/s\npartitions.count=20");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	for (int i = 0; i < 60; i++) {
		scene_run(&scene, 2 * SEC);
		assert_int_equal(scene_try(&scene, a), 0);
		before = i == 9 ? moved(&scene) : before;
	}
	assert_int_equal(fleet_leases(scene.fleet), 1);
	assert_int_equal(moved(&scene), before);
	scene_close(&scene);
}

/* Of three seconds one wants ten a second, the others one. */
static void test_partition_wanted_now_and_then_is_kept(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t before = 0;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=20/s\npartitions.count=20");
	for (int i = 0; i < 900; i++) {
		if (i / 10 % 3 == 0 || i % 10 == 0)
			(void)scene_try(&scene, a);
		scene_run(&scene, 100 * MS);
		before = i == 300 ? moved(&scene) : before;
	}
	assert_in_range(fleet_leases(scene.fleet), 9, 11);
	assert_int_equal(moved(&scene), before);
	scene_close(&scene);
}

/* However long it is until the next look at what others want. */
static void test_host_that_was_idle_gets_a_partition_at_once(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest, later;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=2\npartitions.lease=1h");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 8 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(fleet_leases(scene.fleet), 0);
	(void)scene_ask(&scene, &later, a);
	scene_run(&scene, 150 * MS);
	assert_int_equal(fleet_leases(scene.fleet), 1);
	scene_run(&scene, 500 * MS);
	assert_int_equal(later.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_host_beyond_the_reserve_looks_for_one_seldom_while_it_is_idle(void **state)
{
	struct change change = {.kind = CHANGE_SETTINGS,
				.setting = CHANGE_CONFIG,
				.text = "partitions.reserve=10/s hosts=1"};
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint64_t lists;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "partitions.count=2\nrate=100/s");
	change.limiter = a;
	scene.held_up = true;
	assert_int_equal(scene_change(&scene, &change), WAITING);
	scene_answer(&scene); /* which tiles there are */
	scene_answer(&scene);
	scene_lay(&scene, "/t/1-2", "0-1+2+1");
	scene_lay(&scene, RESERVE, "0.otherotheroth");
	scene.held_up = false;
	scene_answer_all(&scene);
	assert_ptr_equal(engine_changed(&scene.engine), &change);
	scene_run(&scene, 10 * SEC);
	lists = fleet_counters(scene.fleet)->lists;
	scene_run(&scene, 600 * SEC);
	/* Three in a round, once a minute or oftener by a quarter; and hosts are looked for. */
	assert_in_range(fleet_counters(scene.fleet)->lists - lists, 24, 100);
	/* Demand is met at once as ever. */
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 100 * MS);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_lay(&scene, RESERVE, "0+2+1");
	scene_run(&scene, 90 * SEC);
	assert_int_equal(a->holding->reserve.state, LEASE_HELD);
	scene_close(&scene);
}

static void test_use_stops_before_the_give_back_is_sent(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=100/s\nburst=20\npartitions.count=1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene.held_up = true;
	while (scene_lease(a, 0) == LEASE_HELD) {
		if (scene.sent_count && !strstr(scene.transaction, "delete /t/1-1/0.HID"))
			scene_answer(&scene);
		scene_run(&scene, 10 * MS);
	}
	assert_int_equal(scene_lease(a, 0), LEASE_DRAINING);
	assert_false(fleet_is_entitled(scene.fleet, a->holding, 0));
	/* The tokens in the bucket go with it. */
	scene_answer_until(&scene, "/t/1-1/0+");
	assert_non_null(strstr(scene.transaction, "; delete /t/1-1/0.HID; create /t/1-1/0+2+1:20"));
	assert_int_equal(scene_try(&scene, a), WAITING);
	scene_run(&scene, 100 * MS);
	assert_int_equal(scene_try(&scene, a), WAITING);
	scene_answer(&scene);
	assert_true(scene_has(&scene, "/t/1-1/0+2+1:20"));
	scene_close(&scene);
}

/* Returns how many paths begin with @begin. */
static uint32_t count_below(const struct scene *scene, const char *begin)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scene->node_count; i++)
		count += !strncmp(scene->nodes[i].path, begin, strlen(begin));
	return count;
}

static void test_a_partition_whose_wait_is_not_over_is_left_to_the_next_host(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, ONE);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	engine_cancel(&scene.engine, &guest.waiter);
	fleet_leave(scene.fleet, scene.now_ns);
	scene_run(&scene, SEC);
	assert_true(fleet_has_left(scene.fleet));
	assert_false(scene_has(&scene, "/t/1-1/0+0+1"));
	assert_false(scene_has(&scene, "/t/1-1/0+2+1"));
	assert_int_equal(count_below(&scene, "/t/1-1/0."), 1);
	scene_close(&scene);
}

static void test_a_wait_that_has_begun_goes_on_though_no_reader_needs_it(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = make_unclean(&scene, ONE);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_run(&scene, 7 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_WAITING);
	scene_run(&scene, 8 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	/* The next host need not wait. */
	assert_true(scene_has(&scene, "/t/1-1/0+2+1:1"));
	scene_close(&scene);
}

static void test_a_claim_without_a_folder_is_not_tried_without_end(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint64_t before;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	before = fleet_counters(scene.fleet)->transactions;
	for (uint64_t until_ns = scene.now_ns + SEC; scene.now_ns < until_ns;) {
		while (scene.sent_count && scene.sent[0]->kind != REQUEST_TRANSACTION)
			scene_answer(&scene);
		if (scene.sent_count && scene.sent[0]->operation_count == 3)
			scene_refuse(&scene, ANSWER_NO_NODE, 2);
		else if (scene.sent_count)
			scene_answer(&scene);
		scene_run(&scene, 10 * MS);
	}
	assert_in_range(fleet_counters(scene.fleet)->transactions - before, 1, 3);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_answer_all(&scene);
	scene_close(&scene);
}

static void test_a_tile_of_this_host_that_is_gone_ends_the_session_at_the_next_renewal(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	keep_asking(&scene, a, SEC);
	scene_lay(&scene, TILES, "0.otherotheroth");
	keep_asking(&scene, a, 2 * FLEET_RENEWAL_NS);
	assert_int_equal(scene.opened, 2);
	assert_non_null(strstr(scene.event, "foreign hand"));
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	scene_close(&scene);
}

static void test_host_that_does_not_find_enough_claims_as_many_as_it_wants(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	bool found = false;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 3 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	for (uint32_t i = 0; i < scene.node_count; i++) {
		const char *path = scene.nodes[i].path;

		found |= !strncmp(path, "/w/1/", 5) && scene.nodes[i].session &&
			 !memcmp(path + 5, fleet_hid(scene.fleet), HID_TEXT - 1) &&
			 !strncmp(path + 5 + HID_TEXT - 1, "-1-1-", 5);
	}
	assert_true(found);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static uint32_t count_claims(const struct scene *scene)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < scene->node_count; i++)
		count += scene->nodes[i].session && !strncmp(scene->nodes[i].path, "/w/1/", 5);
	return count;
}

static bool has_claim(const struct scene *scene)
{
	return count_claims(scene);
}

static void test_a_claim_whose_end_is_denied_ends_later(void **state)
{
	struct scene scene;
	struct guest guest;
	struct limiter *a;
	bool denied = false;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 3 * SEC);
	assert_true(has_claim(&scene));
	engine_cancel(&scene.engine, &guest.waiter);
	scene.held_up = true;
	for (int i = 0; i < 500 && !denied; i++) {
		scene_run(&scene, 10 * MS);
		while (scene.sent_count && !denied) {
			const struct request *request = scene.sent[0];

			denied = request->operation_count == 3 &&
				 !strncmp(request->operations[2].path, "/w/1/", 5);
			if (denied)
				scene_refuse(&scene, ANSWER_DENIED, 2);
			else
				scene_answer(&scene);
		}
	}
	assert_true(denied);
	assert_true(has_claim(&scene));
	scene.held_up = false;
	scene_run(&scene, 5 * SEC);
	assert_false(has_claim(&scene));
	scene_close(&scene);
}

/* There was no memory for the name that the coordinator gave to the claim. */
static void test_a_claim_whose_name_is_lost_is_found_again(void **state)
{
	struct scene scene;
	struct guest guest;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_answer_until(&scene, "/w/1/");
	scene_execute(&scene, scene.sent[0]);
	free(scene.sent[0]->operations[2].made);
	scene.sent[0]->operations[2].made = NULL;
	scene_refuse(&scene, ANSWER_OK, 0);
	scene.held_up = false;
	for (int i = 0; i < 20; i++) {
		scene_run(&scene, SEC);
		assert_int_equal(count_claims(&scene), 1);
	}
	engine_cancel(&scene.engine, &guest.waiter);
	scene_run(&scene, 5 * SEC);
	assert_int_equal(count_claims(&scene), 0);
	scene_close(&scene);
}

/* The other host takes what is free. */
static void take_for_another(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->node_count; i++) {
		char path[NODE_PATH_MAX];
		char *sign;

		strcpy(path, scene->nodes[i].path);
		sign = strchr(path, '+');
		if (strncmp(path, TILES, strlen(TILES)) != 0 || !sign)
			continue;
		scene_delete(scene, path);
		strcpy(sign, ".otherotheroth");
		scene_set(scene, path, NULL);
	}
}

static void test_host_with_more_than_its_share_gives_back_under_contention(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	uint32_t before;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=100/s\npartitions.count=4\npartitions.lease=6s");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	for (int i = 0; i < 2000 && fleet_leases(scene.fleet) < 4; i++) {
		(void)scene_try(&scene, a);
		scene_run(&scene, 5 * MS);
	}
	before = fleet_leases(scene.fleet);
	assert_int_equal(before, 4);
	/* Another wants as much: two each. */
	scene_set(&scene, "/w/1/bbbbbbbbbbbbb-4-1-0000009999", NULL);
	for (int i = 0; i < 3000 && fleet_leases(scene.fleet) > 2; i++) {
		(void)scene_try(&scene, a);
		scene_run(&scene, 5 * MS);
		take_for_another(&scene);
	}
	assert_int_equal(fleet_leases(scene.fleet), 2);
	for (int i = 0; i < 2000; i++) {
		(void)scene_try(&scene, a);
		scene_run(&scene, 5 * MS);
	}
	assert_int_equal(fleet_leases(scene.fleet), 2);
	scene_close(&scene);
}

static void test_for_the_reader_of_a_partition_no_other_one_is_taken(void **state)
{
	struct guest guest, reader;
	struct limiter *a, *partition;
	struct scene scene;
	uint64_t taken;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=100/s\nburst=10\npartitions.count=10");
	scene_lay(&scene, TILES, "0-2+2+1 3.otherotheroth 4-9+2+1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	taken = fleet_counters(scene.fleet)->taken_clean;
	assert_int_equal(taken, 1);
	partition = partition_get(&scene.engine.schedule, a, 3, 0);
	assert_non_null(partition);
	assert_int_equal(scene_ask(&scene, &reader, partition), WAITING);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(fleet_counters(scene.fleet)->taken_clean, taken);
	/* It is taken as soon as it is free, where others are free too and no more is wanted. */
	scene_delete(&scene, "/t/1-1/3.otherotheroth");
	scene_set(&scene, "/t/1-1/3+2+1", NULL);
	scene_run(&scene, 3 * SEC);
	assert_int_equal(scene_lease(a, 3), LEASE_HELD);
	assert_int_equal(reader.waiter.outcome, 0);
	assert_int_equal(fleet_counters(scene.fleet)->taken_clean, taken + 1);
	scene_close(&scene);
}

static struct limiter *make_in(struct scene *scene, struct limiter *parent, const char *name,
			       const char *config)
{
	struct change change = {.kind = CHANGE_MAKE, .limiter = parent, .text = config};

	strcpy(change.name, name);
	assert_int_equal(scene_change(scene, &change), 0);
	return change.made;
}

static void test_partition_that_others_claim_is_left_to_them_until_it_can_be_used(void **state)
{
	struct scene scene;
	struct limiter *a, *c;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	c = make_in(&scene, a, "c", ONE);
	/* Another host has a/c, and may be waiting for a. */
	scene_lay(&scene, "/t/2-1", "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, c), WAITING);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	scene_set(&scene, "/w/1/bbbbbbbbbbbbb-1-1-0000009999", NULL);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(fleet_counters(scene.fleet)->given_back, 1);
	/* The partition needed below is free: now that above can be used. */
	scene_lay(&scene, "/t/2-1", "0+2+1");
	scene_run(&scene, 3 * SEC);
	assert_int_equal(scene_lease(c, 0), LEASE_HELD);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_tokens_are_saved_up_for_a_poller_of_more_than_a_host_can_hold(void **state)
{
	struct poller poller;
	struct scene scene;
	struct guest guest;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1000/s\nburst=100\npartitions.count=10");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 100 * MS);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_in_range(a->buckets[0].burst, 1, 49);
	poller_init(&poller, a, 50, 50, NULL);
	assert_false(engine_poll(&scene.engine, &poller, scene.now_ns));
	scene_run(&scene, SEC);
	assert_true(poller_fetch(&scene.engine.schedule, &poller));
	scene_close(&scene);
}

static void test_a_poller_where_nothing_is_held_gets_partitions(void **state)
{
	struct poller poller;
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=1000/s\nburst=100\npartitions.count=10");
	poller_init(&poller, a, 50, 50, NULL);
	assert_false(engine_poll(&scene.engine, &poller, scene.now_ns));
	scene_run(&scene, 500 * MS);
	assert_true(poller_fetch(&scene.engine.schedule, &poller));
	assert_in_range(a->holding->leased, 5, 6);
	scene_close(&scene);
}

static void test_token_returned_where_nothing_is_held_is_none(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\nburst=5\npartitions.count=1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, 20 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(a->holding->usable, 0);
	/* The partition went back full: the token would be one more than the burst. */
	assert_int_equal(
		engine_charge(&scene.engine, a, &(struct charge){.tokens = -1}, scene.now_ns), 0);
	assert_int_equal(a->buckets[0].level, 0);
	/* A debt is owed, and what comes back pays it. */
	assert_int_equal(
		engine_charge(&scene.engine, a, &(struct charge){.tokens = 3}, scene.now_ns), 0);
	assert_int_equal(
		engine_charge(&scene.engine, a, &(struct charge){.tokens = -2}, scene.now_ns), 0);
	assert_int_equal(a->buckets[0].level, -1);
	scene_close(&scene);
}

static void test_savings_without_a_limit_are_gone_where_nothing_is_held(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\nburst=5\nenforcement=open\npartitions.count=1");
	scene_run(&scene, 10 * SEC);
	set(&scene, a, "enforcement=enforce");
	assert_int_equal(a->settings->enforcement, ENFORCEMENT_ENFORCE);
	assert_int_equal(a->holding->usable, 0);
	assert_int_equal(a->buckets[0].level, 0);
	assert_int_equal(a->buckets[0].part, 0);
	scene_close(&scene);
}

/*
 * The limiter is removed while its partitions are being listed: its claim goes, its nodes are
 * swept, and the host does not look at it any more.
 */
static void test_a_round_that_ends_after_its_limiter_keeps_nothing_of_it(void **state)
{
	struct change change = {.kind = CHANGE_REMOVE};
	struct scene scene;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	change.limiter = scene_make(&scene, "a", ONE);
	scene_lay(&scene, TILES, "0.otherotheroth");
	assert_int_equal(scene_ask(&scene, &guest, change.limiter), WAITING);
	scene_run(&scene, 5 * SEC);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_lay(&scene, TILES, "0+2+1");
	scene.held_up = true;
	assert_int_equal(scene_change(&scene, &change), WAITING);
	scene_run(&scene, 2 * FLEET_RENEWAL_NS);
	scene.held_up = false;
	scene_run(&scene, 60 * SEC);
	assert_ptr_equal(engine_changed(&scene.engine), &change);
	assert_int_equal(change.outcome, 0);
	assert_null(scene_node(&scene, "/w/1"));
	assert_true(engine_next_ns(&scene.engine) > scene.now_ns + DEMAND_PERIOD_NS);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_clean_take_renames_the_tile_and_is_usable_at_the_acknowledgement),
		cmocka_unit_test(test_a_take_from_a_host_that_is_gone_asserts_that_it_is),
		cmocka_unit_test(
			test_a_tile_of_a_host_that_is_gone_is_usable_q_after_that_was_known),
		cmocka_unit_test(test_a_tile_of_a_host_that_is_there_is_not_taken),
		cmocka_unit_test(test_an_unclean_take_is_usable_q_after_the_answer_was_received),
		cmocka_unit_test(test_q_counts_by_the_clock_for_waiting),
		cmocka_unit_test(test_a_tile_of_before_an_election_saves_no_wait),
		cmocka_unit_test(test_a_clean_take_brings_what_was_left),
		cmocka_unit_test(test_a_new_limiter_is_full_by_the_burst_that_its_rate_begins_with),
		cmocka_unit_test(test_a_burst_that_is_raised_later_is_not_saved_up_yet),
		cmocka_unit_test(test_leaves_that_are_numbered_anew_are_used_q_later_and_are_empty),
		cmocka_unit_test(test_level_counts_on_when_the_rate_alone_is_another),
		cmocka_unit_test(test_level_of_another_burst_is_lost_but_for_a_debt),
		cmocka_unit_test(test_an_unclean_take_brings_nothing),
		cmocka_unit_test(test_clean_leaves_are_taken_before_those_that_wait),
		cmocka_unit_test(test_a_partition_that_another_took_first_is_not_held),
		cmocka_unit_test(test_only_one_transaction_is_under_way_whatever_is_asked_for),
		cmocka_unit_test(test_unwanted_partition_is_given_back_a_third_of_a_lease_later),
		cmocka_unit_test(test_denied_transaction_is_tried_again_every_r),
		cmocka_unit_test(test_unwanted_partition_that_others_claim_is_given_back_at_once),
		cmocka_unit_test(test_a_token_every_few_seconds_moves_no_lease),
		cmocka_unit_test(test_partition_wanted_now_and_then_is_kept),
		cmocka_unit_test(test_host_that_was_idle_gets_a_partition_at_once),
		cmocka_unit_test(
			test_a_host_beyond_the_reserve_looks_for_one_seldom_while_it_is_idle),
		cmocka_unit_test(test_use_stops_before_the_give_back_is_sent),
		cmocka_unit_test(test_a_partition_whose_wait_is_not_over_is_left_to_the_next_host),
		cmocka_unit_test(test_a_wait_that_has_begun_goes_on_though_no_reader_needs_it),
		cmocka_unit_test(test_a_claim_without_a_folder_is_not_tried_without_end),
		cmocka_unit_test(
			test_a_tile_of_this_host_that_is_gone_ends_the_session_at_the_next_renewal),
		cmocka_unit_test(test_host_that_does_not_find_enough_claims_as_many_as_it_wants),
		cmocka_unit_test(test_a_claim_whose_end_is_denied_ends_later),
		cmocka_unit_test(test_a_claim_whose_name_is_lost_is_found_again),
		cmocka_unit_test(test_host_with_more_than_its_share_gives_back_under_contention),
		cmocka_unit_test(test_for_the_reader_of_a_partition_no_other_one_is_taken),
		cmocka_unit_test(
			test_partition_that_others_claim_is_left_to_them_until_it_can_be_used),
		cmocka_unit_test(
			test_tokens_are_saved_up_for_a_poller_of_more_than_a_host_can_hold),
		cmocka_unit_test(test_a_poller_where_nothing_is_held_gets_partitions),
		cmocka_unit_test(test_token_returned_where_nothing_is_held_is_none),
		cmocka_unit_test(test_savings_without_a_limit_are_gone_where_nothing_is_held),
		cmocka_unit_test(test_a_round_that_ends_after_its_limiter_keeps_nothing_of_it),
	};

	return cmocka_run_group_tests_name("fleet_lease", tests, NULL, NULL);
}
