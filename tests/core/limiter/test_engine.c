/* Tests of engine: changes in line, restoring, time, and what is refused at the door. */
#include "tests/core/stage.h"

#include <stdio.h>

static int settings_change(struct stage *stage, struct limiter *limiter, unsigned int setting,
			   const char *text, char error[ERROR_TEXT])
{
	struct change change = {
		.kind = CHANGE_SETTINGS, .limiter = limiter, .setting = setting, .text = text};

	change_begin(&stage->engine, &change, stage->engine.schedule.now_ns);
	assert_ptr_equal(engine_changed(&stage->engine), &change);
	strcpy(error, change.error);
	return change.outcome;
}

static void test_a_new_limiter_gates_nothing(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(stage_try(&stage, a, TOKENS_MAX, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, a, TOKENS_MAX, NULL, 0), 0);
	assert_int_equal(engine_next_ns(&stage.engine), NEVER_NS);
	stage_close(&stage);
}

static void test_mkdir_is_refused_for_a_bad_name_a_known_one_and_bad_settings(void **state)
{
	struct stage stage;
	struct limiter *root;
	struct change change = {.kind = CHANGE_MAKE, .text = "rate=fast"};

	(void)state;
	stage_open(&stage);
	root = stage.engine.tree.root;
	stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, "a", 0), -EEXIST);
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, ".a", 0), -EINVAL);
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, "", 0), -EINVAL);
	change.limiter = root;
	strcpy(change.name, "b");
	change_begin(&stage.engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &change);
	assert_int_equal(change.outcome, -EINVAL);
	assert_null(tree_find(&stage.engine.tree, root, "b"));
	/* The source saw none of these. */
	assert_int_equal(stage.stored, 1);
	stage_close(&stage);
}

static void test_limiters_nest_16_deep_and_no_deeper(void **state)
{
	struct stage stage;
	struct limiter *limiter = NULL;

	(void)state;
	stage_open(&stage);
	for (int i = 0; i < DEPTH_MAX; i++)
		limiter = stage_make(&stage, limiter, "a", NULL);
	assert_int_equal(stage_change(&stage, limiter, CHANGE_MAKE, "a", 0), -ENOSPC);
	assert_int_equal(stage_try(&stage, limiter, 1, 0), 0);
	stage_close(&stage);
}

static void test_rmdir_is_refused_with_children_or_blocked_readers(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct guest guest, in_partition;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	b = stage_make(&stage, a, "b", "rate=0");
	assert_int_equal(stage_change(&stage, a, CHANGE_REMOVE, NULL, 0), -EBUSY);
	assert_int_equal(stage_ask(&stage, &guest, b, 1, 0), WAITING);
	assert_int_equal(stage_change(&stage, b, CHANGE_REMOVE, NULL, 0), -EBUSY);
	engine_cancel(&stage.engine, &guest.waiter);
	assert_int_equal(stage_ask(&stage, &in_partition,
				   partition_get(&stage.engine.schedule, b, 0, 0), 1, 0),
			 WAITING);
	assert_int_equal(stage_change(&stage, b, CHANGE_REMOVE, NULL, 0), -EBUSY);
	engine_cancel(&stage.engine, &in_partition.waiter);
	stage_remove(&stage, b);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_everything_about_a_removed_limiter_is_ENODEV(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;
	struct poller poller;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0");
	limiter_hold(a);
	assert_false(stage_poll(&stage, &poller, a, 1, 0));
	stage_remove(&stage, a);
	assert_int_equal(poller.waiter.outcome, -ENODEV);
	assert_true(engine_poll(&stage.engine, &poller, 0));
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), -ENODEV);
	assert_int_equal(stage_ask_within(&stage, &guest, a, 1, SEC, 0), -ENODEV);
	assert_int_equal(stage_try(&stage, a, 1, 0), -ENODEV);
	assert_int_equal(stage_read(&stage, a, 1, READ_BLOCKING, 0), -ENODEV);
	assert_int_equal(engine_charge(&stage.engine, a, &(struct charge){.tokens = 1}, 0),
			 -ENODEV);
	engine_refund(&stage.engine, a, 1, NULL, 0);
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "rate=1/s", 0), -ENODEV);
	assert_int_equal(stage_change(&stage, a, CHANGE_REMOVE, NULL, 0), -ENODEV);
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, "b", 0), -ENODEV);
	assert_int_equal(stage_change(&stage, a, CHANGE_MAKE, "b", 0), -ENODEV);
	assert_int_equal(stage_change(&stage, a, CHANGE_OWNER, NULL, 0), -ENODEV);
	limiter_drop(a);
	stage_close(&stage);
}

static void test_a_refused_write_changes_nothing_and_says_why(void **state)
{
	static const struct {
		unsigned int setting;
		const char *text;
		int err;
	} wrong[] = {
		{SETTING_RATE, "fast", -EINVAL},
		{SETTING_RATE, "", -EINVAL},
		{SETTING_BURST, "0", -ERANGE},
		{SETTING_RELEASE_INTERVAL, "1ns", -ERANGE},
		{SETTING_ENFORCEMENT, "ajar", -EINVAL},
		{SETTING_PARTITIONS_COUNT, "5000", -ERANGE},
		{SETTING_PARTITIONS_LEASE, "0s", -ERANGE},
		{SETTING_PARTITIONS_RESERVE, "11/s hosts=1", -ERANGE},
		{CHANGE_CONFIG, "burst=7\nenforcement=ajar\n", -EINVAL},
		{CHANGE_CONFIG, "\n", -EINVAL},
	};
	struct stage stage;
	struct limiter *a;
	struct settings before, after;
	char error[ERROR_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	before = *limiter_settings(a);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(settings_change(&stage, a, wrong[i].setting, wrong[i].text, error),
				 wrong[i].err);
		assert_true(error[0]);
		after = *limiter_settings(a);
		for (int id = 0; id < SETTING_COUNT; id++)
			assert_true(setting_equal((enum setting_id)id, &before, &after));
	}
	assert_int_equal(stage.stored, 1);
	stage_close(&stage);
}

static void test_a_store_that_fails_changes_nothing(void **state)
{
	struct stage stage;
	struct limiter *a, *root;
	struct settings settings;
	char text[SETTING_TEXT];

	(void)state;
	stage_open(&stage);
	root = stage.engine.tree.root;
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	stage.answer = -EIO;
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "rate=20/s 1/h", 0), -EIO);
	settings = *limiter_settings(a);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, "10/s");
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, "b", 0), -EIO);
	assert_null(tree_find(&stage.engine.tree, root, "b"));
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, "b", 0), -EIO);
	assert_ptr_equal(tree_find(&stage.engine.tree, root, "a"), a);
	assert_int_equal(stage_change(&stage, a, CHANGE_OWNER, NULL, 0), -EIO);
	assert_int_equal(stage_change(&stage, a, CHANGE_REMOVE, NULL, 0), -EIO);
	assert_false(a->removed);
	stage_close(&stage);
}

static void begin(struct stage *stage, struct change *change, struct limiter *limiter,
		  const char *config)
{
	*change = (struct change){.kind = CHANGE_SETTINGS,
				  .limiter = limiter,
				  .setting = CHANGE_CONFIG,
				  .text = config};
	change_begin(&stage->engine, change, stage->engine.schedule.now_ns);
}

static void test_changes_are_stored_one_at_a_time_in_order(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct change changes[3];
	static const char *const bursts[] = {"burst=1", "burst=2", "burst=3"};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	stage.later = true;
	for (int i = 0; i < 3; i++)
		begin(&stage, &changes[i], a, bursts[i]);
	for (uint64_t i = 0; i < 3; i++) {
		assert_ptr_equal(stage.asked, &changes[i]);
		assert_null(engine_changed(&stage.engine));
		/* Everything else goes on meanwhile. */
		assert_int_equal(stage_try(&stage, a, 1, 0), 0);
		change_stored(&stage.engine, &changes[i], 0);
		assert_ptr_equal(engine_changed(&stage.engine), &changes[i]);
		assert_int_equal(changes[i].outcome, 0);
		assert_int_equal(a->settings->burst, i + 1);
	}
	stage_close(&stage);
}

static void test_each_change_is_checked_against_what_those_before_it_did(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct change first, second, third, last = {.kind = CHANGE_MAKE};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=100/s");
	stage.later = true;
	begin(&stage, &first, a, "partitions.reserve=1/s hosts=2");
	/* Would fit the rate of now, but not with the reserve. */
	begin(&stage, &second, a, "rate=1/s");
	begin(&stage, &third, a, "rate=50/s");
	last.limiter = stage.engine.tree.root;
	strcpy(last.name, "a");
	change_begin(&stage.engine, &last, 0);
	change_stored(&stage.engine, &first, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &first);
	/* The refused one is given back in the same step, and the next is stored. */
	assert_ptr_equal(engine_changed(&stage.engine), &second);
	assert_int_equal(second.outcome, -ERANGE);
	assert_null(engine_changed(&stage.engine));
	assert_ptr_equal(stage.asked, &third);
	change_stored(&stage.engine, &third, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &third);
	assert_ptr_equal(engine_changed(&stage.engine), &last);
	assert_int_equal(last.outcome, -EEXIST);
	stage_close(&stage);
}

static void test_change_after_a_removal_in_line_is_ENODEV(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct change removal = {.kind = CHANGE_REMOVE}, write;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0");
	removal.limiter = a;
	stage.later = true;
	change_begin(&stage.engine, &removal, 0);
	begin(&stage, &write, a, "rate=1/s");
	/* A waiter that began to wait during the removal goes with the limiter. */
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	change_stored(&stage.engine, &removal, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &removal);
	assert_ptr_equal(engine_changed(&stage.engine), &write);
	assert_int_equal(write.outcome, -ENODEV);
	assert_int_equal(stage_collect(&stage), 1);
	assert_int_equal(guest.waiter.outcome, -ENODEV);
	stage_close(&stage);
}

/* Begins the change of @burst that user @uid asks for. */
static void begin_as(struct stage *stage, struct change *change, struct limiter *limiter,
		     const char *burst, uint32_t uid)
{
	*change = (struct change){.kind = CHANGE_SETTINGS,
				  .asker = uid,
				  .limiter = limiter,
				  .setting = CHANGE_CONFIG,
				  .text = burst};
	change_begin(&stage->engine, change, stage->engine.schedule.now_ns);
}

static void test_no_user_waits_for_all_changes_of_another(void **state)
{
	/* Of users 7, 0, 9 (who withdraws another), and 8 (who comes late). */
	static const uint32_t uids[] = {7, 7, 7, 7, 0, 0, 9, 9};
	static const int order[] = {0, 6, 4, 1, 8, 7, 5, 2, 3};
	struct stage stage;
	struct limiter *a;
	struct change changes[9], withdrawn;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	stage.later = true;
	for (int i = 0; i < 4; i++)
		begin_as(&stage, &changes[i], a, "burst=5", uids[i]);
	begin_as(&stage, &withdrawn, a, "burst=5", 9);
	for (int i = 4; i < 8; i++)
		begin_as(&stage, &changes[i], a, "burst=5", uids[i]);
	assert_true(change_withdraw(&stage.engine, &withdrawn));
	for (int i = 0; i < 9; i++) {
		struct change *change = &changes[order[i]];

		assert_ptr_equal(stage.asked, change);
		if (i == 2)
			begin_as(&stage, &changes[8], a, "burst=6", 8);
		change_stored(&stage.engine, change, 0);
		assert_ptr_equal(engine_changed(&stage.engine), change);
		assert_int_equal(change->outcome, 0);
	}
	assert_null(stage.engine.change);
	stage_close(&stage);
}

static void test_a_change_can_be_withdrawn_until_it_is_stored(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct change changes[4];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", NULL);
	stage.later = true;
	for (int i = 0; i < 4; i++)
		begin(&stage, &changes[i], a, "burst=5");
	assert_false(change_withdraw(&stage.engine, &changes[0]));
	assert_true(change_withdraw(&stage.engine, &changes[1]));
	assert_false(change_withdraw(&stage.engine, &changes[1]));
	assert_true(change_withdraw(&stage.engine, &changes[3]));
	/* The end of the line is where it should be. */
	begin(&stage, &changes[1], a, "burst=6");
	change_stored(&stage.engine, &changes[0], 0);
	/* Nor after that, when nobody has been told yet. */
	assert_false(change_withdraw(&stage.engine, &changes[0]));
	change_stored(&stage.engine, &changes[2], 0);
	change_stored(&stage.engine, &changes[1], 0);
	assert_ptr_equal(engine_changed(&stage.engine), &changes[0]);
	assert_ptr_equal(engine_changed(&stage.engine), &changes[2]);
	assert_ptr_equal(engine_changed(&stage.engine), &changes[1]);
	assert_int_equal(a->settings->burst, 6);
	/* One that is refused at once was never in line. */
	begin(&stage, &changes[0], a, "burst=5");
	begin(&stage, &changes[1], a, "burst=none");
	change_stored(&stage.engine, &changes[0], 0);
	assert_false(change_withdraw(&stage.engine, &changes[1]));
	assert_ptr_equal(engine_changed(&stage.engine), &changes[0]);
	assert_ptr_equal(engine_changed(&stage.engine), &changes[1]);
	assert_int_equal(changes[1].outcome, -EINVAL);
	assert_int_equal(a->references, 0);
	stage_close(&stage);
}

static void test_a_renamed_limiter_keeps_its_readers_and_its_level(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	stage_make(&stage, NULL, "b", NULL);
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, "b", 0), -EEXIST);
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, ".x", 0), -EINVAL);
	assert_int_equal(stage_change(&stage, a, CHANGE_RENAME, "c", 0), 0);
	assert_ptr_equal(tree_find(&stage.engine.tree, stage.engine.tree.root, "c"), a);
	stage_run(&stage, SEC);
	assert_int_equal(guest.done_ns, SEC);
	stage_close(&stage);
}

static void test_an_owner_is_changed_and_the_settings_stay(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct change change = {.kind = CHANGE_OWNER, .owner = {7, 8, 0750}};
	struct settings settings;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=3");
	change.limiter = a;
	change_begin(&stage.engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &change);
	assert_int_equal(a->uid, 7);
	assert_int_equal(a->gid, 8);
	assert_int_equal(a->access, 0750);
	settings = *limiter_settings(a);
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_true(setting_equal((enum setting_id)id, &settings, &change.settings));
	assert_int_equal(settings.burst, 3);
	stage_close(&stage);
}

/* A limiter made by user 5 of group 6 in @parent. */
static const struct limiter *make_of_5_6(struct stage *stage, struct limiter *parent,
					 const char *name)
{
	struct change change = {.kind = CHANGE_MAKE, .owner = {5, 6, 0750}};

	change.limiter = parent;
	strcpy(change.name, name);
	change_begin(&stage->engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage->engine), &change);
	assert_int_equal(change.outcome, 0);
	assert_int_equal(change.made->uid, 5);
	return change.made;
}

static void test_limiter_made_in_a_setgid_limiter_has_its_group_and_is_setgid(void **state)
{
	struct stage stage;
	struct limiter *a;
	const struct limiter *child;
	struct change change = {.kind = CHANGE_OWNER, .owner = {7, 8, ACCESS_SETGID | 0770}};

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	child = make_of_5_6(&stage, a, "before");
	assert_int_equal(child->gid, 6);
	assert_int_equal(child->access, 0750);
	change.limiter = a;
	change_begin(&stage.engine, &change, 0);
	assert_ptr_equal(engine_changed(&stage.engine), &change);
	child = make_of_5_6(&stage, a, "after");
	assert_int_equal(child->gid, 8);
	assert_int_equal(child->access, ACCESS_SETGID | 0750);
	stage_close(&stage);
}

static void test_time_of_the_last_change_is_known_for_each_setting(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	engine_run(&stage.engine, 5 * SEC);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	stage_write(&stage, a, "rate=20/s\nburst=1", 9 * SEC);
	stage_write(&stage, a, "burst=4", 12 * SEC);
	assert_int_equal(a->made_s, 5);
	assert_int_equal(limiter_changed_s(a, SETTING_RATE), 9);
	assert_int_equal(limiter_changed_s(a, SETTING_BURST), 12);
	assert_int_equal(limiter_changed_s(a, SETTING_ENFORCEMENT), 5);
	stage_close(&stage);
}

static int restore(struct stage *stage, const char *name, const char *config,
		   const struct level *levels, uint32_t count, struct limiter **restored)
{
	static const struct owner owner = {1, 2, 0700};
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	assert_int_equal(settings_parse(config, &settings, error), 0);
	return change_restore(&stage->engine, stage->engine.tree.root, name, &settings, &owner,
			      levels, count, restored);
}

static void test_a_restored_limiter_has_what_is_known_to_be_left_else_nothing(void **state)
{
	static const struct level levels[] = {{3, 0}, {-4, 1}};
	static const struct level senseless[] = {{1000, 5}, {1, UINT64_MAX}, {9, 9}};
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	stage_open(&stage);
	assert_int_equal(restore(&stage, "empty", "rate=10/s\nburst=5", NULL, 0, &limiter), 0);
	assert_int_equal(stage_try(&stage, limiter, 1, 0), -EBUSY);
	assert_int_equal(stage_try(&stage, limiter, 1, 100 * MS), 0);
	assert_int_equal(limiter->access, 0700);
	assert_int_equal(restore(&stage, "known", "rate=10/s 1/s\nburst=5", levels, 2, &limiter),
			 0);
	assert_int_equal(limiter->buckets[0].level, 3);
	assert_int_equal(limiter->buckets[1].level, -4);
	assert_int_equal(limiter->buckets[1].part, 1);
	/* Only as far as it makes sense: not above the capacity, no fraction that is none. */
	assert_int_equal(restore(&stage, "odd", "rate=10/s 1/s\nburst=5", senseless, 3, &limiter),
			 0);
	assert_int_equal(limiter->buckets[0].level, 5);
	assert_int_equal(limiter->buckets[0].part, 0);
	assert_int_equal(limiter->buckets[1].level, 0);
	assert_int_equal(limiter->buckets[1].part, 0);
	stage_close(&stage);
}

static void test_restoring_is_refused_as_making_is(void **state)
{
	struct stage stage;
	struct limiter *limiter;

	(void)state;
	stage_open(&stage);
	assert_int_equal(restore(&stage, "a", "rate=1/s", NULL, 0, &limiter), 0);
	assert_int_equal(restore(&stage, "a", "rate=1/s", NULL, 0, &limiter), -EEXIST);
	assert_int_equal(restore(&stage, ".a", "rate=1/s", NULL, 0, &limiter), -EINVAL);
	assert_int_equal(stage.stored, 0);
	stage_close(&stage);
}

static void test_partitions_follow_the_settings_of_their_limiter(void **state)
{
	struct stage stage;
	struct limiter *a, *p, *last;
	struct guest in_first, in_last;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=8\nrate=40/s\npartitions.count=4");
	p = partition_get(&stage.engine.schedule, a, 0, 0);
	last = partition_get(&stage.engine.schedule, a, 3, 0);
	limiter_hold(last);
	assert_int_equal(p->buckets[0].level, 2);
	assert_int_equal(stage_try(&stage, p, 2, 0), 0);
	assert_int_equal(stage_try(&stage, last, 2, 0), 0);
	assert_int_equal(a->buckets[0].level, 4);
	assert_int_equal(stage_ask(&stage, &in_first, p, 1, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &in_last, last, 1, 0), WAITING);
	assert_int_equal(partition_waiting(a), 2);
	assert_int_equal(engine_next_ns(&stage.engine), 100 * MS);
	stage_write(&stage, a, "rate=80/s", 50 * MS);
	assert_int_equal(engine_next_ns(&stage.engine), 75 * MS);
	/* Fewer partitions: waiters of those that are gone are told so. */
	stage_write(&stage, a, "partitions.count=2", 50 * MS);
	assert_int_equal(in_last.waiter.outcome, -ENODEV);
	assert_true(last->removed);
	assert_int_equal(stage_try(&stage, last, 1, 50 * MS), -ENODEV);
	limiter_drop(last);
	stage_run(&stage, SEC);
	assert_int_equal(in_first.done_ns, 50 * MS + 12500000);
	/* And from max to rates and back. */
	stage_write(&stage, a, "rate=max", SEC);
	assert_int_equal(stage_try(&stage, p, 1000, SEC), 0);
	stage_write(&stage, a, "rate=2/s 10/s 100/s 1000/s 5/s 6/s 7/s 8/s", SEC);
	assert_int_equal(p->bucket_count, LIMITS_MAX);
	stage_remove(&stage, a);
	stage_close(&stage);
}

static void test_a_reserve_is_beside_the_shares(void **state)
{
	struct stage stage;
	struct limiter *a, *share, *reserved;
	uint32_t shares;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a",
		       "rate=100/s\npartitions.count=4\npartitions.reserve=10/s hosts=2");
	assert_int_equal(partition_count(a, &shares), 6);
	assert_int_equal(shares, 4);
	share = partition_get(&stage.engine.schedule, a, 3, 0);
	reserved = partition_get(&stage.engine.schedule, a, PARTITIONS_MAX + 1, 0);
	assert_int_equal(fraction_per_second(&share->buckets[0].flow), 20);
	assert_int_equal(fraction_per_second(&reserved->buckets[0].flow), 10);
	stage_write(&stage, a, "partitions.count=5\npartitions.reserve=none", 0);
	assert_int_equal(fraction_per_second(&share->buckets[0].flow), 20);
	assert_int_equal(partition_count(a, &shares), 5);
	stage_close(&stage);
}

static void test_being_woken_late_costs_no_capacity(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[20];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1000/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	/* Due after 1, 2, ... ms; the daemon comes 9 ms late. */
	engine_run(&stage.engine, 10 * MS);
	assert_int_equal(stage_collect(&stage), 10);
	engine_run(&stage.engine, 20 * MS);
	assert_int_equal(stage_collect(&stage), 10);
	assert_int_equal(a->counters[COUNTER_DELAYED], 210 * MS);
	stage_close(&stage);
}

static void test_after_a_long_stop_only_what_a_short_one_missed_is_let_through(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guests[100];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1000/s\nburst=5");
	assert_int_equal(stage_try(&stage, a, 5, 0), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(stage_ask(&stage, &guests[i], a, 1, 0), WAITING);
	engine_run(&stage.engine, 3600 * SEC);
	/* The burst, as of 10 ms ago, and the rate since. */
	assert_int_equal(stage_collect(&stage), 5 + ENGINE_CATCH_UP_NS / MS);
	engine_run(&stage.engine, 3600 * SEC + 1);
	assert_int_equal(stage_collect(&stage), 0);
	stage_run(&stage, 3601 * SEC);
	assert_int_equal(guests[99].done_ns, 3600 * SEC + 85 * MS);
	stage_close(&stage);
}

static void test_waiters_that_expired_during_a_stop_are_refused_in_order_of_time(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/s");
	assert_int_equal(stage_try(&stage, a, 1, 0), 0);
	assert_int_equal(stage_ask_within(&stage, &first, a, 1, SEC, 0), WAITING);
	assert_int_equal(stage_ask_within(&stage, &second, a, 1, 2 * SEC, 0), WAITING);
	stage_write(&stage, a, "rate=0", 500 * MS);
	engine_run(&stage.engine, 3600 * SEC);
	assert_int_equal(stage_collect(&stage), 2);
	assert_int_equal(first.waiter.outcome, -EAGAIN);
	assert_int_equal(second.waiter.outcome, -EAGAIN);
	assert_int_equal(first.place, 1);
	stage_close(&stage);
}

static void test_a_refund_undoes_a_grant(void **state)
{
	struct stage stage;
	struct limiter *a, *b;
	struct guest first, second;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=1/h\nburst=3");
	b = stage_make(&stage, a, "b", "rate=1/h\nburst=3");
	assert_int_equal(stage_ask(&stage, &first, b, 3, 0), 0);
	assert_int_equal(stage_ask(&stage, &second, b, 2, 0), WAITING);
	engine_refund(&stage.engine, b, 3, NULL, SEC);
	assert_int_equal(stage_collect(&stage), 1);
	assert_int_equal(second.waiter.outcome, 0);
	assert_int_equal(a->counters[COUNTER_GRANTED], 2);
	assert_int_equal(b->counters[COUNTER_GRANTED], 2);
	assert_int_equal(b->counters[COUNTER_SERVED], 1);
	assert_int_equal(a->buckets[0].level, 1);
	stage_close(&stage);
}

static void test_a_read_that_will_wait_counts_no_refusal_and_try_does(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0");
	assert_int_equal(stage_read(&stage, a, 1, READ_BLOCKING, 0), WAITING);
	assert_int_equal(a->counters[COUNTER_REFUSED], 0);
	assert_int_equal(stage_try(&stage, a, 1, 0), -EBUSY);
	assert_int_equal(a->counters[COUNTER_REFUSED], 1);
	stage_close(&stage);
}

static void test_more_readers_than_can_wait_are_ENOSPC(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=0");
	stage.engine.waiting = ENGINE_WAITERS_MAX;
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), -ENOSPC);
	stage.engine.waiting = ENGINE_WAITERS_MAX - 1;
	assert_int_equal(stage_ask(&stage, &guest, a, 1, 0), WAITING);
	engine_cancel(&stage.engine, &guest.waiter);
	assert_int_equal(stage.engine.waiting, ENGINE_WAITERS_MAX - 1);
	stage.engine.waiting = 0;
	stage_close(&stage);
}

static void test_more_limiters_than_there_can_be_are_ENOSPC(void **state)
{
	struct stage stage;
	struct limiter *root, *limiter;

	(void)state;
	stage_open(&stage);
	root = stage.engine.tree.root;
	stage.engine.tree.count = ENGINE_LIMITERS_MAX;
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, "a", 0), -ENOSPC);
	assert_int_equal(restore(&stage, "a", "rate=1/s", NULL, 0, &limiter), -ENOSPC);
	stage.engine.tree.count = 0;
	stage_make(&stage, NULL, "a", NULL);
	stage_close(&stage);
}

static void test_no_limiter_gets_the_id_of_another(void **state)
{
	struct stage stage;
	struct limiter *root, *limiter;

	(void)state;
	stage_open(&stage);
	root = stage.engine.tree.root;
	stage.engine.tree.last_id = TREE_IDS_MAX - 1;
	stage_make(&stage, NULL, "a", NULL);
	assert_int_equal(stage_change(&stage, root, CHANGE_MAKE, "b", 0), -ENOSPC);
	/* Those that are there elsewhere have theirs. */
	stage.engine.tree.last_id = UINT32_MAX - 1;
	assert_int_equal(restore(&stage, "b", "rate=1/s", NULL, 0, &limiter), 0);
	assert_int_equal(limiter->id, UINT32_MAX);
	assert_int_equal(restore(&stage, "c", "rate=1/s", NULL, 0, &limiter), -ENOSPC);
	stage_close(&stage);
}

static void test_gauges_are_as_of_the_time_of_refreshing(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct guest guest;
	char text[STAT_TEXT];

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "burst=10\nrate=4/s");
	assert_int_equal(stage_try(&stage, a, 10, 0), 0);
	engine_refresh(&stage.engine, a, 375 * MS);
	stat_print(a, text);
	assert_non_null(strstr(text, "\ntokens 1.5\n"));
	assert_int_equal(stage_ask(&stage, &guest, a, 2, 375 * MS), WAITING);
	stat_print(a, text);
	assert_non_null(strstr(text, "\nwaiting 1\n"));
	assert_non_null(strstr(text, "granted 10\n"));
	stage_run(&stage, SEC);
	stat_print(a, text);
	assert_non_null(strstr(text, "delayed_seconds 0.125000000\n"));
	assert_non_null(strstr(text, "\nwaiting 0\n"));
	stage_close(&stage);
}

static void test_limiters_that_are_set_to_the_same_share_their_settings(void **state)
{
	struct stage stage;
	struct limiter *a, *b;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=3");
	b = stage_make(&stage, NULL, "b", NULL);
	assert_ptr_not_equal(a->settings, b->settings);
	assert_int_equal(stage_change(&stage, b, CHANGE_SETTINGS, "burst=3\nrate=10/s", SEC), 0);
	assert_ptr_equal(a->settings, b->settings);
	/* A slot taken from one partition leaves those of the other. */
	assert_int_equal(stage_try(&stage, a, 3, SEC), 0);
	assert_int_equal(stage_try(&stage, b, 3, SEC), 0);
	assert_int_equal(stage_change(&stage, b, CHANGE_SETTINGS, "burst=4", SEC), 0);
	assert_int_equal(limiter_settings(a)->burst, 3);
	assert_int_equal(limiter_settings(b)->burst, 4);
	stage_close(&stage);
}

static void test_a_refused_change_leaves_no_settings_behind(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s");
	stage.answer = -EIO;
	assert_int_equal(stage_change(&stage, a, CHANGE_SETTINGS, "rate=11/s", SEC), -EIO);
	assert_int_equal(stage.engine.schedule.pool.blocks.count, 1);
	assert_int_equal(change_apply_settings(&stage.engine, a, &SETTINGS_DEFAULT, &(uint32_t){0}),
			 0);
	assert_int_equal(stage.engine.schedule.pool.blocks.count, 0);
	stage_close(&stage);
}

/*
 * A step that is late finds b due, a due later, and between them the end of the time of the only
 * reader of a. So a is not due any more when b has been put forward.
 */
static void test_a_reader_that_gives_up_in_a_late_step_holds_up_no_other(void **state)
{
	struct guest first, second, hasty;
	struct limiter *a, *b;
	struct stage stage;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=1");
	b = stage_make(&stage, NULL, "b", "rate=10/s\nburst=1");
	assert_int_equal(stage_ask(&stage, &first, a, 1, 0), 0);
	assert_int_equal(stage_ask(&stage, &first, b, 1, 0), 0);
	assert_int_equal(stage_ask_within(&stage, &hasty, a, 1, 150 * MS, 0), WAITING);
	assert_int_equal(stage_ask(&stage, &second, b, 1, 0), WAITING);
	stage_write(&stage, a, "rate=1/s", MS);
	engine_run(&stage.engine, 2 * SEC);
	stage_collect(&stage);
	assert_int_equal(hasty.waiter.outcome, -EAGAIN);
	assert_int_equal(second.waiter.outcome, 0);
	stage_close(&stage);
}

static void test_a_reader_that_gives_up_while_frozen_has_nothing_granted(void **state)
{
	struct guest first, hasty;
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	a = stage_make(&stage, NULL, "a", "rate=10/s\nburst=2");
	engine_freeze(&stage.engine);
	assert_int_equal(stage_ask(&stage, &first, a, 1, 0), WAITING);
	assert_int_equal(stage_ask_within(&stage, &hasty, a, 1, 100 * MS, 0), WAITING);
	engine_run(&stage.engine, 200 * MS);
	stage_collect(&stage);
	assert_int_equal(hasty.waiter.outcome, -EAGAIN);
	assert_int_equal(first.waiter.outcome, WAITING);
	engine_thaw(&stage.engine, 300 * MS);
	engine_go_on(&stage.engine, 300 * MS);
	stage_collect(&stage);
	assert_int_equal(first.waiter.outcome, 0);
	stage_close(&stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limiter_gets_the_id_of_another),
		cmocka_unit_test(test_a_new_limiter_gates_nothing),
		cmocka_unit_test(test_mkdir_is_refused_for_a_bad_name_a_known_one_and_bad_settings),
		cmocka_unit_test(test_limiters_nest_16_deep_and_no_deeper),
		cmocka_unit_test(test_rmdir_is_refused_with_children_or_blocked_readers),
		cmocka_unit_test(test_everything_about_a_removed_limiter_is_ENODEV),
		cmocka_unit_test(test_a_refused_write_changes_nothing_and_says_why),
		cmocka_unit_test(test_a_store_that_fails_changes_nothing),
		cmocka_unit_test(test_changes_are_stored_one_at_a_time_in_order),
		cmocka_unit_test(test_no_user_waits_for_all_changes_of_another),
		cmocka_unit_test(test_each_change_is_checked_against_what_those_before_it_did),
		cmocka_unit_test(test_change_after_a_removal_in_line_is_ENODEV),
		cmocka_unit_test(test_a_change_can_be_withdrawn_until_it_is_stored),
		cmocka_unit_test(test_a_renamed_limiter_keeps_its_readers_and_its_level),
		cmocka_unit_test(test_an_owner_is_changed_and_the_settings_stay),
		cmocka_unit_test(test_limiter_made_in_a_setgid_limiter_has_its_group_and_is_setgid),
		cmocka_unit_test(test_time_of_the_last_change_is_known_for_each_setting),
		cmocka_unit_test(test_a_restored_limiter_has_what_is_known_to_be_left_else_nothing),
		cmocka_unit_test(test_restoring_is_refused_as_making_is),
		cmocka_unit_test(test_partitions_follow_the_settings_of_their_limiter),
		cmocka_unit_test(test_a_reserve_is_beside_the_shares),
		cmocka_unit_test(test_being_woken_late_costs_no_capacity),
		cmocka_unit_test(
			test_after_a_long_stop_only_what_a_short_one_missed_is_let_through),
		cmocka_unit_test(
			test_waiters_that_expired_during_a_stop_are_refused_in_order_of_time),
		cmocka_unit_test(test_a_refund_undoes_a_grant),
		cmocka_unit_test(test_a_read_that_will_wait_counts_no_refusal_and_try_does),
		cmocka_unit_test(test_more_readers_than_can_wait_are_ENOSPC),
		cmocka_unit_test(test_more_limiters_than_there_can_be_are_ENOSPC),
		cmocka_unit_test(test_gauges_are_as_of_the_time_of_refreshing),
		cmocka_unit_test(test_limiters_that_are_set_to_the_same_share_their_settings),
		cmocka_unit_test(test_a_refused_change_leaves_no_settings_behind),
		cmocka_unit_test(test_a_reader_that_gives_up_in_a_late_step_holds_up_no_other),
		cmocka_unit_test(test_a_reader_that_gives_up_while_frozen_has_nothing_granted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
