/* Tests of fleet: the session, the right to use what is held, and leaving. */
#include "tests/core/fleet/scene.h"

#include "core/fleet/leases.h"

#include <stdio.h>

static const char RENEWAL_HEAD[] = "check /g ";

/* A limiter of one partition, held, its token taken. */
static struct limiter *hold(struct scene *scene, const char *config)
{
	struct limiter *limiter = scene_make(scene, "a", config);
	struct guest guest;

	assert_int_equal(scene_ask(scene, &guest, limiter), WAITING);
	scene_run(scene, 0);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(scene_lease(limiter, 0), LEASE_HELD);
	return limiter;
}

static const char ONE[] = "rate=10/s\npartitions.count=1\n";

static void test_the_first_host_makes_the_nodes_of_the_fleet_and_joins(void **state)
{
	static const char *const made[] = {"/v", "/g", "/c", "/h", "/t",
					   "/r", "/d", "/a", "/w", "/k"};
	struct scene scene;
	struct globals globals;

	(void)state;
	scene_prepare(&scene);
	scene.held_up = true;
	scene_begin(&scene);
	scene_assert_next(&scene, "read /v");
	scene_answer(&scene);
	assert_int_equal(scene.sent_count, 10);
	scene_answer_all(&scene);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		assert_non_null(scene_node(&scene, made[i]));
	assert_int_equal(record_parse_globals(scene_node(&scene, "/g")->data, &globals), 0);
	assert_int_equal(globals.constants.right_ns, FLEET_RIGHT_NS);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(strlen(fleet_hid(scene.fleet)), HID_TEXT - 1);
	scene_close(&scene);
}

static void test_a_host_joins_in_one_transaction_that_checks_the_settings(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	scene.held_up = true;
	scene_begin(&scene);
	scene_answer_until(&scene, "/h/");
	scene_assert_next(&scene, "check /g 0; create /h/HID ephemeral; set /h/HID 0");
	assert_int_equal(fleet_state(scene.fleet), FLEET_JOINING);
	scene_answer(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	scene_close(&scene);
}

static void test_the_constants_of_the_fleet_count_not_those_of_the_host(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	scene_set(&scene, "/v", "ratefs 4\n");
	scene_set(&scene, "/g",
		  "renewal=2s\nright=20s\nquarantine=21s\nsession=15s\nlast=0\nrecent=\n");
	for (const char *folder = "chlftrdaw"; *folder; folder++)
		scene_set(&scene, (char[]){'/', *folder, '\0'}, NULL);
	scene_begin(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_int_equal(fleet_constants(scene.fleet)->right_ns, 20 * SEC);
	assert_int_equal(fleet_constants(scene.fleet)->quarantine_ns, 21 * SEC);
	scene_close(&scene);
}

static void refuse_layout(const char *version)
{
	struct scene scene;

	scene_prepare(&scene);
	scene_set(&scene, "/v", version);
	scene_begin(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_REFUSED);
	assert_non_null(strstr(scene.event, "version"));
	assert_int_equal(scene.transactions, 0);
	scene_run(&scene, 60 * SEC);
	assert_int_equal(scene.transactions, 0);
	scene_close(&scene);
}

static void test_the_layout_of_another_version_is_refused(void **state)
{
	(void)state;
	refuse_layout("ratefs 5\n");
}

/* /v as a host leaves it that begins to turn the fleet over, and /g with the timeout of now. */
static void begin_to_turn_over(struct scene *scene)
{
	scene_set(scene, "/v", "ratefs 3 to 4\n");
	scene_set(scene, "/g",
		  "renewal=1500ms\nright=8s\nquarantine=8330ms\nsession=15s\nlast=1\n"
		  "recent=7:1\n");
	scene_delete(scene, "/h");
}

/* A fleet of the version before, with a limiter, as its last host left it. */
static void set_layout_before(struct scene *scene)
{
	char path[32];

	scene_set(scene, "/v", "ratefs 3\n");
	scene_set(scene, "/g",
		  "renewal=1500ms\nright=8s\nquarantine=8330ms\nsession=6s\nlast=1\n"
		  "recent=7:1\n");
	for (const char *folder = "chlfw"; *folder; folder++)
		scene_set(scene, (char[]){'/', *folder, '\0'}, NULL);
	scene_set(scene, "/c/1",
		  "name=a\nparent=0\ngeneration=4\nwriter=bbbbbbbbbbbbb\nowner=0 0 755\nsaved=3\n"
		  "before.rate=9/s\nsettings:\nrate=10/s\npartitions.count=120\n");
	scene_set(scene, "/l/1", NULL);
	scene_set(scene, "/f/1", NULL);
	scene_set(scene, "/w/1", NULL);
	for (int i = 0; i < 120; i++) {
		snprintf(path, sizeof(path), "/f/1/%d", i);
		scene_set(scene, path, "3 0.100000000");
	}
}

static void assert_turned_over(struct scene *scene)
{
	static const char *const gone[] = {"/f/1", "/f/1/119", "/f", "/l/1", "/l"};
	struct limiter *a = tree_find(&scene->engine.tree, scene->engine.tree.root, "a");
	struct guest guest;

	assert_int_equal(fleet_state(scene->fleet), FLEET_READY);
	assert_string_equal(scene_node(scene, "/v")->data, "ratefs 4\n");
	for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
		assert_null(scene_node(scene, gone[i]));
	assert_non_null(a);
	assert_int_equal(limiter_settings(a)->partitions, 120);
	/* Another host that goes on with its right may grant by leases of before. */
	assert_int_equal(scene_ask(scene, &guest, a), WAITING);
	scene_run(scene, record_quarantine_ns(FLEET_RIGHT_NS));
	assert_int_equal(guest.waiter.outcome, WAITING);
	scene_run(scene, 5 * SEC);
	assert_int_equal(guest.waiter.outcome, 0);
}

static void test_a_layout_of_the_version_before_that_no_host_has_is_turned_over(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	set_layout_before(&scene);
	scene_begin(&scene);
	assert_turned_over(&scene);
	scene_close(&scene);
}

static void test_a_turning_over_that_was_left_is_gone_on_with(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	set_layout_before(&scene);
	begin_to_turn_over(&scene);
	scene_delete(&scene, "/l/1");
	scene_begin(&scene);
	assert_turned_over(&scene);
	scene_close(&scene);
}

static void test_a_layout_of_the_version_before_that_a_host_has_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	set_layout_before(&scene);
	scene_set(&scene, "/h/bbbbbbbbbbbbb", "name=b\nweight=1\nheld=0\n");
	scene_begin(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_REFUSED);
	assert_non_null(strstr(scene.event, "version before"));
	scene_run(&scene, 60 * SEC);
	assert_int_equal(scene.transactions, 0);
	/* When that host has left, it is turned over. */
	scene_delete(&scene, "/h/bbbbbbbbbbbbb");
	scene_run(&scene, 60 * SEC);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	scene_close(&scene);
}

static void test_a_host_of_the_version_before_that_joins_meanwhile_is_left_alone(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	set_layout_before(&scene);
	scene.held_up = true;
	scene_begin(&scene);
	scene_answer(&scene);
	scene_assert_next(&scene, "list /h");
	scene_answer(&scene);
	scene_assert_next(&scene, "read /g");
	scene_answer(&scene);
	scene_assert_next(&scene, "set /v 0; set /g 0; delete /h");
	scene_set(&scene, "/h/bbbbbbbbbbbbb", "name=b\nweight=1\nheld=0\n");
	scene_answer(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_REFUSED);
	assert_string_equal(scene_node(&scene, "/v")->data, "ratefs 3\n");
	assert_int_equal(scene_node(&scene, "/g")->version, 0);
	scene_close(&scene);
}

static void test_of_two_hosts_one_begins_to_turn_over(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	set_layout_before(&scene);
	scene.held_up = true;
	scene_begin(&scene);
	for (int i = 0; i < 3; i++)
		scene_answer(&scene);
	scene_assert_next(&scene, "set /v 0; set /g 0; delete /h");
	begin_to_turn_over(&scene);
	scene_answer(&scene);
	scene.held_up = false;
	scene_run(&scene, 10 * SEC);
	assert_turned_over(&scene);
	scene_close(&scene);
}

/* A host of version 2 knows none of the settings that have other names now. */
static void test_the_layout_with_other_names_of_settings_is_refused(void **state)
{
	(void)state;
	refuse_layout("ratefs 2\n");
}

/* A host of version 1 takes the record of a removed limiter for a limiter that is there. */
static void test_the_layout_without_records_of_removed_limiters_is_refused(void **state)
{
	(void)state;
	refuse_layout("ratefs 1\n");
}

static void test_a_host_without_authority_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	scene.held_up = true;
	scene_begin(&scene);
	scene_refuse(&scene, ANSWER_DENIED, 0);
	assert_int_equal(fleet_state(scene.fleet), FLEET_REFUSED);
	assert_non_null(strstr(scene.event, "denies"));
	scene_close(&scene);
}

static void test_host_that_holds_nothing_writes_nothing(void **state)
{
	struct scene scene;
	unsigned int before;

	(void)state;
	scene_open(&scene);
	scene_make(&scene, "a", ONE);
	before = scene.transactions;
	scene_run(&scene, 300 * SEC);
	assert_int_equal(scene.transactions, before);
	assert_int_equal(fleet_counters(scene.fleet)->renewals, 0);
	scene_close(&scene);
}

/* One that is waited for all the time, so that it is held for good. */
static void keep_asking(struct scene *scene, struct limiter *limiter, uint64_t ns)
{
	for (uint64_t end_ns = scene->now_ns + ns; scene->now_ns < end_ns;) {
		(void)scene_try(scene, limiter);
		scene_run(scene, 100 * MS);
	}
}

static void test_a_right_is_renewed_every_r_by_a_transaction_that_checks_a_tile(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t last_ns;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	last_ns = scene.transaction_ns;
	for (int i = 0; i < 20; i++) {
		unsigned int before = scene.transactions;
		uint64_t gap_ns;

		while (scene.transactions == before)
			keep_asking(&scene, a, 100 * MS);
		assert_int_equal(scene.transactions, before + 1);
		gap_ns = scene.transaction_ns - last_ns;
		last_ns = scene.transaction_ns;
		assert_in_range(gap_ns, FLEET_RENEWAL_NS / 4 * 3, FLEET_RENEWAL_NS / 4 * 5);
		assert_memory_equal(scene.transaction, RENEWAL_HEAD, strlen(RENEWAL_HEAD));
		assert_string_equal(strchr(strchr(scene.transaction, ';') + 1, ';'),
				    "; check /t/1-1/0.HID -1");
	}
	assert_int_equal(fleet_counters(scene.fleet)->renewals, 20);
	scene_close(&scene);
}

/* Marks the leaves whose tiles the last transaction checks. Returns how many. */
static uint32_t mark_checked(const struct scene *scene, bool checked[20])
{
	static const char before[] = "; check /t/1-1/";
	const char *at = scene->transaction;
	uint32_t count = 0;

	while ((at = strstr(at, before))) {
		at += strlen(before);
		checked[strtoul(at, NULL, 10)] = true;
		count++;
	}
	return count;
}

static void test_renewals_check_all_tiles_in_turn(void **state)
{
	static const uint32_t counts[] = {LEASES_GUARDED_MAX, LEASES_GUARDED_MAX,
					  20 - 2 * LEASES_GUARDED_MAX};
	bool checked[20] = {false};
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_prepare(&scene);
	scene_begin(&scene);
	a = scene_make(&scene, "a", "rate=100/s\npartitions.count=20");
	keep_asking(&scene, a, SEC);
	assert_int_equal(fleet_leases(scene.fleet), 20);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		unsigned int before = scene.transactions;

		while (scene.transactions == before)
			keep_asking(&scene, a, 100 * MS);
		assert_int_equal(mark_checked(&scene, checked), counts[i]);
	}
	for (uint32_t i = 0; i < 20; i++)
		assert_true(checked[i]);
	scene_close(&scene);
}

static void test_the_right_ends_d_after_the_sending_not_after_the_answer(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_answer_until(&scene, "/t/1-1");
	/* The answer takes half a second. */
	scene_run(&scene, 500 * MS);
	scene_answer(&scene);
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(fleet_right_ns(scene.fleet), FLEET_RIGHT_NS - 500 * MS);
	scene_close(&scene);
}

static void test_nothing_is_granted_when_the_right_has_run_out(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=10/s\nburst=5\npartitions.count=1");
	scene.held_up = true;
	assert_int_equal(scene_try(&scene, a), 0);
	/* By the holder's clock alone, whatever the others say. */
	scene.holder_ns += fleet_right_ns(scene.fleet) - 1;
	assert_int_equal(scene_try(&scene, a), 0);
	assert_true(fleet_is_entitled(scene.fleet, a->holding, 0));
	scene.holder_ns += 1;
	assert_int_equal(scene_try(&scene, a), WAITING);
	assert_false(fleet_is_entitled(scene.fleet, a->holding, 0));
	assert_int_equal(fleet_counters(scene.fleet)->lapses, 1);
	scene_close(&scene);
}

static void test_waiter_gets_nothing_when_the_right_has_run_out(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	scene.held_up = true;
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	/* Its token comes in 100 ms; the host sleeps, and its right ends meanwhile. */
	scene.holder_ns += FLEET_RIGHT_NS;
	scene_run(&scene, 5 * SEC);
	assert_int_equal(guest.waiter.outcome, WAITING);
	engine_cancel(&scene.engine, &guest.waiter);
	scene_close(&scene);
}

static void test_no_limiter_grants_what_it_has_saved_while_another_loses_its_right(void **state)
{
	struct scene scene;
	struct limiter *a, *c;
	struct guest holds, older, newer;
	struct change change = {.kind = CHANGE_MAKE,
				.name = "c",
				.text = "rate=10/s\nburst=7\npartitions.count=1\npriority=1"};

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=1/s\nburst=5\npartitions.count=1");
	change.limiter = a;
	assert_int_equal(scene_change(&scene, &change), 0);
	c = change.made;
	assert_int_equal(scene_ask(&scene, &holds, c), WAITING);
	scene_run(&scene, SEC);
	assert_int_equal(holds.waiter.outcome, 0);
	scene.held_up = true;
	/*
	 * A take of 7 saves up; when its own limiter has no tokens any more, the next in line could
	 * have them.
	 */
	older = (struct guest){.waiter = {.tokens = 7, .limiter = c, .outcome = WAITING}};
	assert_int_equal(engine_ask(&scene.engine, &older.waiter, NEVER_NS, scene.now_ns), WAITING);
	assert_int_equal(scene_ask(&scene, &newer, a), WAITING);
	scene.holder_ns += FLEET_RIGHT_NS;
	scene_run(&scene, SEC);
	assert_int_equal(fleet_counters(scene.fleet)->lapses, 1);
	assert_int_equal(newer.waiter.outcome, WAITING);
	engine_cancel(&scene.engine, &newer.waiter);
	engine_cancel(&scene.engine, &older.waiter);
	scene_close(&scene);
}

static void test_a_right_that_lapsed_revives_and_the_bucket_is_empty_then(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=1/s\nburst=100\npartitions.count=1");
	assert_int_equal(scene_try(&scene, a), 0);
	while (!fleet_counters(scene.fleet)->renewals)
		keep_asking(&scene, a, 10 * MS);
	scene.held_up = true;
	while (!scene.sent_count)
		keep_asking(&scene, a, 10 * MS);
	scene.holder_ns += FLEET_RIGHT_NS;
	assert_int_equal(scene_try(&scene, a), WAITING);
	assert_true(a->buckets[0].level == 0);
	/* This one is answered too late to extend anything, the next in time. */
	scene.held_up = false;
	scene_run(&scene, 1);
	assert_int_equal(fleet_right_ns(scene.fleet), 0);
	while (!fleet_right_ns(scene.fleet))
		keep_asking(&scene, a, 10 * MS);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_true(fleet_is_entitled(scene.fleet, a->holding, 0));
	assert_int_equal(a->buckets[0].level, 0);
	scene_run(&scene, SEC);
	assert_int_equal(scene_try(&scene, a), 0);
	scene_close(&scene);
}

static void test_a_session_that_has_expired_is_followed_by_another_under_another_id(void **state)
{
	struct scene scene;
	struct limiter *a;
	char hid[HID_TEXT];

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=10/s\nburst=9\npartitions.count=1");
	strcpy(hid, fleet_hid(scene.fleet));
	engine_run(&scene.engine, scene.now_ns);
	fleet_expired(scene.fleet, scene.now_ns);
	assert_int_equal(scene.opened, 2);
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	assert_int_equal(scene_try(&scene, a), -EBUSY);
	assert_int_equal(fleet_right_ns(scene.fleet), 0);
	scene.session = 78;
	scene_connect(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_string_not_equal(fleet_hid(scene.fleet), hid);
	scene_close(&scene);
}

static void test_without_an_answer_for_700_ms_the_connection_is_given_up(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t sent_ns;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	scene.held_up = true;
	while (!scene.sent_count)
		keep_asking(&scene, a, 1 * MS);
	sent_ns = scene.sent[0]->sent_ns;
	scene_run(&scene, sent_ns + FLEET_ANSWER_NS - 1 - scene.now_ns);
	assert_int_equal(scene.hung_up, 0);
	scene_run(&scene, 1);
	assert_int_equal(scene.hung_up, 1);
	scene_run(&scene, 5 * SEC); /* once is enough */
	assert_int_equal(scene.hung_up, 1);
	scene_close(&scene);
}

/* Returns how long the oldest request is waited for, from now, until the connection is given up. */
static uint64_t waited_until_given_up(struct scene *scene, struct limiter *limiter)
{
	unsigned int before = scene->hung_up;
	uint64_t sent_ns;

	scene->held_up = true;
	while (!scene->sent_count)
		keep_asking(scene, limiter, 1 * MS);
	sent_ns = scene->sent[0]->sent_ns;
	for (int i = 0; i < 20000 && scene->hung_up == before; i++)
		scene_run(scene, 1 * MS);
	assert_int_equal(scene->hung_up, before + 1);
	return scene->now_ns - sent_ns;
}

static void reconnect(struct scene *scene)
{
	scene_disconnect(scene);
	scene_connect(scene);
}

static void test_each_connection_given_up_makes_the_next_answer_be_waited_for_longer(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	assert_in_range(waited_until_given_up(&scene, a), 700 * MS, 701 * MS);
	reconnect(&scene);
	assert_in_range(waited_until_given_up(&scene, a), 3062 * MS, 3064 * MS);
	/* After more than (D - 1.25 R) / 2 the right could not be renewed a second time. */
	for (int i = 0; i < 10; i++) {
		reconnect(&scene);
		assert_in_range(waited_until_given_up(&scene, a), 3062 * MS, 3064 * MS);
	}
	scene_close(&scene);
}

static void test_no_answer_is_waited_for_longer_than_10_s_however_long_a_right_lasts(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_prepare(&scene);
	scene_set(&scene, "/v", "ratefs 4\n");
	scene_set(&scene, "/g",
		  "renewal=1.5s\nright=600s\nquarantine=607s\nsession=300s\nlast=0\nrecent=\n");
	for (const char *folder = "chlfw"; *folder; folder++)
		scene_set(&scene, (char[]){'/', *folder, '\0'}, NULL);
	scene_begin(&scene);
	/* Sessions are the fleet's from now on. */
	scene.session = 78;
	scene_connect(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	a = hold(&scene, ONE);
	for (int i = 0; i < 3; i++) {
		waited_until_given_up(&scene, a);
		reconnect(&scene);
	}
	assert_in_range(waited_until_given_up(&scene, a), 10 * SEC, 10 * SEC + MS);
	scene_close(&scene);
}

static void test_after_a_minute_of_quick_answers_a_dead_link_is_noticed_soon_again(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	for (int i = 0; i < 3; i++) {
		waited_until_given_up(&scene, a);
		reconnect(&scene);
	}
	scene.held_up = false;
	keep_asking(&scene, a, 2 * FLEET_SLOW_NS);
	assert_in_range(waited_until_given_up(&scene, a), 700 * MS, 701 * MS);
	scene_close(&scene);
}

/* Quick answers on the next connection do not show that there will be no late one. */
static void test_an_answer_that_did_not_come_in_time_is_waited_for_twice_as_long_then(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	assert_in_range(waited_until_given_up(&scene, a), 700 * MS, 701 * MS);
	reconnect(&scene);
	scene.held_up = false;
	keep_asking(&scene, a, 20 * SEC);
	assert_in_range(waited_until_given_up(&scene, a), 1400 * MS, 1402 * MS);
	scene_close(&scene);
}

static void test_a_coordinator_that_is_slow_at_times_is_waited_for_twice_as_long(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	scene.held_up = true;
	while (!scene.sent_count)
		keep_asking(&scene, a, 1 * MS);
	scene_run(&scene, 500 * MS);
	scene_answer_all(&scene);
	assert_in_range(waited_until_given_up(&scene, a), 1000 * MS, 1200 * MS);
	scene_close(&scene);
}

/* The coordinator takes every connection and reads, but executes nothing. */
static void answer_reads_alone(struct scene *scene)
{
	for (int i = 0; i < 1000 && scene->sent_count; i++) {
		if (scene->sent[0]->kind == REQUEST_TRANSACTION)
			break;
		scene_answer(scene);
	}
}

static void test_a_minute_of_connections_in_which_nothing_is_done_ends_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;
	uint64_t began_ns;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, ONE);
	waited_until_given_up(&scene, a);
	began_ns = scene.now_ns;
	while (scene.opened == 1 && scene.now_ns < began_ns + 2 * FLEET_HANDLE_NS) {
		unsigned int before = scene.hung_up;

		scene_disconnect(&scene);
		scene_connect(&scene);
		for (int i = 0; i < 1000 && scene.hung_up == before && scene.opened == 1; i++) {
			answer_reads_alone(&scene);
			scene_run(&scene, 10 * MS);
		}
	}
	assert_int_equal(scene.opened, 2);
	assert_in_range(scene.now_ns - began_ns, FLEET_HANDLE_NS - SEC, FLEET_HANDLE_NS + SEC);
	assert_non_null(strstr(scene.event, "nothing acknowledged for a minute"));
	assert_int_equal(scene_lease(a, 0), LEASE_NONE);
	scene.held_up = false;
	scene_close(&scene);
}

static void test_sessions_that_come_to_nothing_are_begun_at_growing_pauses(void **state)
{
	struct scene scene;
	uint64_t opened_ns[8] = {0}, last_ns = 0;

	(void)state;
	scene_open(&scene);
	scene_disconnect(&scene);
	for (unsigned int i = 0; i < 8; i++) {
		engine_run(&scene.engine, scene.now_ns);
		fleet_expired(scene.fleet, scene.now_ns);
		last_ns = scene.now_ns;
		while (scene.opened < i + 2 && scene.now_ns < last_ns + 100 * SEC)
			scene_run(&scene, 1 * MS);
		opened_ns[i] = scene.now_ns - last_ns;
	}
	/* The first had done something; the next one may have had bad luck. */
	assert_int_equal(opened_ns[0], 0);
	assert_int_equal(opened_ns[1], 0);
	for (unsigned int i = 2; i < 8; i++)
		assert_in_range(opened_ns[i], (SEC << (i - 2)) / 4 * 3,
				(SEC << (i - 2)) / 4 * 5 + MS);
	scene.session = 78;
	scene_connect(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	fleet_expired(scene.fleet, scene.now_ns);
	assert_int_equal(scene.opened, 10);
	scene_close(&scene);
}

static void test_a_minute_without_a_connection_ends_the_session(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	scene_disconnect(&scene);
	scene_run(&scene, FLEET_HANDLE_NS - 1);
	assert_int_equal(scene.opened, 1);
	scene_run(&scene, 2);
	assert_int_equal(scene.opened, 2);
	scene_close(&scene);
}

static void test_a_connection_that_comes_back_in_time_costs_nothing(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=10/s\nburst=50\npartitions.count=1");
	scene_disconnect(&scene);
	for (int i = 0; i < 30; i++) {
		scene_run(&scene, 100 * MS);
		assert_int_equal(scene_try(&scene, a), 0);
	}
	scene_connect(&scene);
	scene_run(&scene, SEC);
	assert_int_equal(scene.opened, 1);
	assert_int_equal(scene_lease(a, 0), LEASE_HELD);
	assert_int_equal(fleet_counters(scene.fleet)->lapses, 0);
	scene_close(&scene);
}

static void test_out_of_reach_for_longer_than_d_a_host_does_what_it_was_told(void **state)
{
	struct scene scene;
	struct limiter *blocks, *shares;

	(void)state;
	scene_open(&scene);
	blocks = scene_make(&scene, "blocks", ONE);
	shares = scene_make(&scene, "shares", "rate=10/s\npartitions.count=1\noffline=share:2");
	scene_disconnect(&scene);
	scene_run(&scene, FLEET_RIGHT_NS - SEC);
	assert_int_equal(scene_try(&scene, shares), -EBUSY);
	assert_false(fleet_is_degraded(scene.fleet));
	scene_run(&scene, 3 * SEC);
	assert_true(fleet_is_degraded(scene.fleet));
	assert_int_equal(scene_try(&scene, shares), 0);
	assert_int_equal(scene_try(&scene, blocks), -EBUSY);
	scene_connect(&scene);
	scene_run(&scene, 3 * SEC);
	scene_close(&scene);
}

static void test_host_that_leaves_gives_back_and_closes_the_session(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = hold(&scene, "rate=10/s\nburst=5\npartitions.count=1");
	scene.held_up = true;
	fleet_leave(scene.fleet, scene.now_ns);
	assert_int_equal(scene_try(&scene, a), -EBUSY);
	scene_answer_until(&scene, "/t/1-1");
	assert_non_null(strstr(scene.transaction, "delete /t/1-1/0.HID; create /t/1-1/0+2+1"));
	assert_int_equal(scene.closed, 0);
	scene_answer(&scene);
	scene_run(&scene, 0);
	assert_true(fleet_has_left(scene.fleet));
	assert_int_equal(scene.closed, 1);
	assert_true(scene_has(&scene, "/t/1-1/0+2+1:4"));
	scene_close(&scene);
}

static void test_host_that_leaves_waits_for_answers_but_not_for_ever(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	hold(&scene, ONE);
	scene.held_up = true;
	fleet_leave(scene.fleet, scene.now_ns);
	scene_run(&scene, SEC);
	assert_false(fleet_has_left(scene.fleet));
	scene_run(&scene, 2 * SEC);
	assert_true(fleet_has_left(scene.fleet));
	assert_int_equal(scene.closed, 1);
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_host_makes_the_nodes_of_the_fleet_and_joins),
		cmocka_unit_test(test_a_host_joins_in_one_transaction_that_checks_the_settings),
		cmocka_unit_test(test_the_constants_of_the_fleet_count_not_those_of_the_host),
		cmocka_unit_test(test_the_layout_of_another_version_is_refused),
		cmocka_unit_test(
			test_a_layout_of_the_version_before_that_no_host_has_is_turned_over),
		cmocka_unit_test(test_a_turning_over_that_was_left_is_gone_on_with),
		cmocka_unit_test(test_a_layout_of_the_version_before_that_a_host_has_is_refused),
		cmocka_unit_test(
			test_a_host_of_the_version_before_that_joins_meanwhile_is_left_alone),
		cmocka_unit_test(test_of_two_hosts_one_begins_to_turn_over),
		cmocka_unit_test(test_the_layout_with_other_names_of_settings_is_refused),
		cmocka_unit_test(test_the_layout_without_records_of_removed_limiters_is_refused),
		cmocka_unit_test(test_a_host_without_authority_is_refused),
		cmocka_unit_test(test_host_that_holds_nothing_writes_nothing),
		cmocka_unit_test(
			test_a_right_is_renewed_every_r_by_a_transaction_that_checks_a_tile),
		cmocka_unit_test(test_renewals_check_all_tiles_in_turn),
		cmocka_unit_test(test_the_right_ends_d_after_the_sending_not_after_the_answer),
		cmocka_unit_test(test_nothing_is_granted_when_the_right_has_run_out),
		cmocka_unit_test(test_waiter_gets_nothing_when_the_right_has_run_out),
		cmocka_unit_test(
			test_no_limiter_grants_what_it_has_saved_while_another_loses_its_right),
		cmocka_unit_test(test_a_right_that_lapsed_revives_and_the_bucket_is_empty_then),
		cmocka_unit_test(
			test_a_session_that_has_expired_is_followed_by_another_under_another_id),
		cmocka_unit_test(test_without_an_answer_for_700_ms_the_connection_is_given_up),
		cmocka_unit_test(
			test_each_connection_given_up_makes_the_next_answer_be_waited_for_longer),
		cmocka_unit_test(
			test_no_answer_is_waited_for_longer_than_10_s_however_long_a_right_lasts),
		cmocka_unit_test(
			test_after_a_minute_of_quick_answers_a_dead_link_is_noticed_soon_again),
		cmocka_unit_test(
			test_an_answer_that_did_not_come_in_time_is_waited_for_twice_as_long_then),
		cmocka_unit_test(
			test_a_coordinator_that_is_slow_at_times_is_waited_for_twice_as_long),
		cmocka_unit_test(
			test_a_minute_of_connections_in_which_nothing_is_done_ends_the_session),
		cmocka_unit_test(test_sessions_that_come_to_nothing_are_begun_at_growing_pauses),
		cmocka_unit_test(test_a_minute_without_a_connection_ends_the_session),
		cmocka_unit_test(test_a_connection_that_comes_back_in_time_costs_nothing),
		cmocka_unit_test(test_out_of_reach_for_longer_than_d_a_host_does_what_it_was_told),
		cmocka_unit_test(test_host_that_leaves_gives_back_and_closes_the_session),
		cmocka_unit_test(test_host_that_leaves_waits_for_answers_but_not_for_ever),
	};

	return cmocka_run_group_tests_name("fleet_session", tests, NULL, NULL);
}
