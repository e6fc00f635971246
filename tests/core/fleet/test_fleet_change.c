/* Tests of fleet: limiters and settings, changed here and by other hosts. */
#include "tests/core/fleet/scene.h"

#include "core/fleet/garbage.h"

#include <errno.h>
#include <stdio.h>

static const char ONE[] = "rate=10/s\npartitions.count=1\n";

static struct change making(struct scene *scene, const char *name, const char *config)
{
	struct change change = {.kind = CHANGE_MAKE, .text = config};

	change.limiter = scene->engine.tree.root;
	strcpy(change.name, name);
	return change;
}

static struct change writing(struct limiter *limiter, const char *config)
{
	return (struct change){.kind = CHANGE_SETTINGS,
			       .limiter = limiter,
			       .setting = CHANGE_CONFIG,
			       .text = config};
}

/* It is under way, and nothing has been answered. */
static void begin(struct scene *scene, struct change *change)
{
	scene->held_up = true;
	assert_int_equal(scene_change(scene, change), WAITING);
	while (scene->sent_count && scene->sent[0]->kind != REQUEST_TRANSACTION)
		scene_answer(scene);
}

/* Everything that is sent is answered for @ns; then the change is done. */
static int end(struct scene *scene, struct change *change, uint64_t ns)
{
	scene->held_up = false;
	scene_run(scene, ns);
	assert_ptr_equal(engine_changed(&scene->engine), change);
	assert_int_equal(change->outcome != 0, change->error[0] != '\0');
	return change->outcome;
}

static struct limiter *find(struct scene *scene, const char *name)
{
	return tree_find(&scene->engine.tree, scene->engine.tree.root, name);
}

/* /g and /c/@id as another host leaves them. */
static void foreign_change(struct scene *scene, unsigned int id, const char *name,
			   unsigned int generation, const char *settings)
{
	char text[RECORD_TEXT], path[32];
	struct globals globals;

	assert_int_equal(record_parse_globals(scene_node(scene, "/g")->data, &globals), 0);
	record_add_change(&globals, scene_node(scene, "/g")->version, id);
	globals.last_id = id > globals.last_id ? id : globals.last_id;
	record_print_globals(&globals, text);
	scene_set(scene, "/g", text);
	snprintf(path, sizeof(path), "/c/%u", id);
	snprintf(text, sizeof(text),
		 "name=%s\nparent=0\ngeneration=%u\ncut=1\nwriter=bbbbbbbbbbbbb\nowner=0 0 755\n"
		 "settings:\n%s",
		 name, generation, settings);
	scene_set(scene, path, text);
}

static void tell(struct scene *scene)
{
	engine_run(&scene->engine, scene->now_ns);
	fleet_changed(scene->fleet, "/g", scene->now_ns);
	scene_run(scene, 0);
}

static void assert_rate(const struct limiter *limiter, const char *expected)
{
	struct settings settings;
	char text[SETTING_TEXT];

	settings = *limiter_settings(limiter);
	setting_print(SETTING_RATE, &settings, text);
	assert_string_equal(text, expected);
}

static void test_making_a_limiter_is_one_transaction_with_its_tiles(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = making(&scene, "a", "rate=10/s\npartitions.count=2");
	begin(&scene, &change);
	scene_assert_next(&scene, "check /g 0; set /h/HID 1; create /c/1; create /w/1; "
				  "create /a/1; create /t/1-1; create /t/1-1/0-1+2+1; set /g 0");
	assert_null(find(&scene, "a"));
	assert_int_equal(end(&scene, &change, 0), 0);
	assert_ptr_equal(find(&scene, "a"), change.made);
	scene_close(&scene);
}

static void test_a_setting_is_one_transaction_of_its_limiter_and_g(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	change = writing(a, "rate=20/s");
	begin(&scene, &change);
	scene_assert_next(&scene, "check /g 1; set /h/HID 2; set /c/1 0; set /g 1");
	assert_rate(a, "10/s");
	assert_int_equal(end(&scene, &change, 0), 0);
	assert_rate(a, "20/s");
	scene_close(&scene);
}

static void write_config(struct scene *scene, struct limiter *limiter, const char *config)
{
	struct change change = writing(limiter, config);

	begin(scene, &change);
	assert_int_equal(end(scene, &change, 0), 0);
	scene_run(scene, 10 * SEC);
}

static uint64_t cut_of(const struct scene *scene, const char *path)
{
	struct record record;
	char error[ERROR_TEXT];

	assert_int_equal(record_parse(scene_node(scene, path)->data, &record, error), 0);
	return record.cut;
}

static void test_another_number_of_leaves_or_reserve_numbers_them_anew(void **state)
{
	static const struct {
		const char *config;
		uint64_t cut;
	} changes[] = {
		{"rate=40/s", 1},
		{"burst=9", 1},
		{"partitions.lease=20s", 1},
		{"partitions.count=2", 5},
		{"rate=30/s", 5},
		{"partitions.reserve=1/s hosts=2", 7},
		{"partitions.reserve=1/s hosts=3", 8},
		{"partitions.reserve=2/s hosts=3", 9},
		{"burst=8", 9},
		{"partitions.reserve=none", 11},
		{"partitions.count=1", 12},
		{"partitions.count=4096", 13},
		{"partitions.count=auto", 14},
	};
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(a->holding->cut, 1);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		write_config(&scene, a, changes[i].config);
		assert_int_equal(cut_of(&scene, "/c/1"), changes[i].cut);
		assert_int_equal(a->holding->cut, changes[i].cut);
	}
	scene_close(&scene);
}

static void test_leaves_that_a_host_leases_are_numbered_anew_with_no_epoch(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_lay(&scene, "/t/1-1", "0.aaaaaaaaaaaaa");
	change = writing(a, "partitions.count=3\npartitions.reserve=1/s hosts=2");
	begin(&scene, &change);
	scene_assert_next(&scene, "check /g 1; set /h/HID 2; set /c/1 0; set /g 1; create /t/1-2; "
				  "create /t/1-2/0-2+0+1; create /r/1-2; "
				  "create /r/1-2/0-1+0+1");
	assert_int_equal(end(&scene, &change, 0), 0);
	scene_run(&scene, 10 * SEC);
	change = writing(a, "partitions.count=1\npartitions.reserve=none");
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, 0), 0);
	assert_non_null(scene_node(&scene, "/t/1-3/0+0+1"));
	assert_null(scene_node(&scene, "/r/1-3"));
	scene_close(&scene);
}

static void test_leaves_that_are_all_free_follow_on_from_those_before(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=100/s\nburst=8\npartitions.count=4");
	scene_lay(&scene, "/t/1-1", "0+2+1:1.5 1-2+1+1:2 3+2+1:1");
	change = writing(a, "partitions.count=2\npartitions.reserve=1/s hosts=2");
	begin(&scene, &change);
	scene_assert_next(&scene, "check /g 1; set /h/HID 2; set /c/1 0; set /g 1; "
				  "delete /t/1-1/0+2+1:1.5; delete /t/1-1/1-2+1+1:2; "
				  "delete /t/1-1/3+2+1:1; create /t/1-2; "
				  "create /t/1-2/0-1+1+1:4.5; create /r/1-2; "
				  "create /r/1-2/0-1+1+1");
	assert_int_equal(end(&scene, &change, 0), 0);
	scene_close(&scene);
}

static void test_a_limiter_with_a_former_name_has_a_tile_of_no_epoch(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = (struct change){.kind = CHANGE_REMOVE, .limiter = scene_make(&scene, "a", ONE)};
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, SEC), 0);
	scene_make(&scene, "a", ONE);
	assert_non_null(scene_node(&scene, "/t/2-1/0+0+1"));
	scene_make(&scene, "b", ONE);
	assert_non_null(scene_node(&scene, "/t/3-1/0+2+1"));
	scene_close(&scene);
}

static void test_a_host_learns_since_when_leaves_are_numbered_as_they_are(void **state)
{
	static const char text[] = "name=a\nparent=0\ngeneration=%u\ncut=%u\nwriter=bbbbbbbbbbbbb\n"
				   "owner=0 0 755\nsettings:\npartitions.count=2\n";
	struct scene scene;
	struct limiter *a;
	char record[RECORD_TEXT];

	(void)state;
	scene_open(&scene);
	foreign_change(&scene, 1, "a", 4, "partitions.count=1\n");
	snprintf(record, sizeof(record), text, 4, 3);
	scene_set(&scene, "/c/1", record);
	tell(&scene);
	a = find(&scene, "a");
	assert_int_equal(a->holding->cut, 3);
	foreign_change(&scene, 1, "a", 5, "partitions.count=2\n");
	snprintf(record, sizeof(record), text, 5, 5);
	scene_set(&scene, "/c/1", record);
	tell(&scene);
	assert_int_equal(a->holding->cut, 5);
	scene_disconnect(&scene);
	a = scene_succeed(&scene, a);
	assert_int_equal(a->holding->cut, 5);
	scene_close(&scene);
}

static void test_removing_a_limiter_ends_its_leases_and_sweeps_its_nodes_q_later(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	change = (struct change){.kind = CHANGE_REMOVE, .limiter = a};
	begin(&scene, &change);
	scene_assert_next(&scene, "check /g 1; set /h/HID 3; set /c/1 0; set /g 1");
	assert_int_equal(end(&scene, &change, SEC), 0);
	assert_null(find(&scene, "a"));
	assert_int_equal(fleet_leases(scene.fleet), 0);
	assert_non_null(scene_node(&scene, "/t/1-1"));
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) - 2 * SEC);
	assert_non_null(scene_node(&scene, "/t/1-1"));
	scene_run(&scene, 10 * SEC);
	assert_null(scene_node(&scene, "/c/1"));
	assert_null(scene_node(&scene, "/w/1"));
	assert_null(scene_node(&scene, "/a/1"));
	assert_null(scene_node(&scene, "/t/1-1/0+2+1"));
	assert_null(scene_node(&scene, "/t/1-1"));
	scene_close(&scene);
}

static void test_tiles_of_an_earlier_cut_are_swept_q_later(void **state)
{
	static const char EARLIER[] = "/t/1-1/0-199.bbbbbbbbbbbbb";
	struct scene scene;
	struct limiter *a;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a",
		       "rate=10/s\npartitions.count=200\npartitions.reserve=1/s hosts=2");
	scene_set(&scene, EARLIER, NULL);
	change = writing(a, "partitions.count=2");
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, record_quarantine_ns(FLEET_RIGHT_NS) - SEC), 0);
	assert_non_null(scene_node(&scene, EARLIER));
	scene_run(&scene, 3 * SEC);
	assert_null(scene_node(&scene, EARLIER));
	assert_null(scene_node(&scene, "/t/1-1"));
	assert_null(scene_node(&scene, "/r/1-1"));
	assert_non_null(scene_node(&scene, "/t/1-2"));
	assert_non_null(scene_node(&scene, "/r/1-2"));
	assert_non_null(scene_node(&scene, "/c/1"));
	scene_close(&scene);
}

static void test_many_tiles_are_swept_in_several_transactions(void **state)
{
	char path[64];
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=1");
	for (int i = 0; i < 150; i++) {
		snprintf(path, sizeof(path), "/t/1-1/%d.bbbbbbbbbbbbb", i);
		scene_set(&scene, path, NULL);
	}
	write_config(&scene, a, "partitions.count=2");
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS));
	assert_null(scene_node(&scene, "/t/1-1/149.bbbbbbbbbbbbb"));
	assert_null(scene_node(&scene, "/t/1-1"));
	scene_close(&scene);
}

/* A key as a host that died and one that wants it left it. */
static void lay_key(struct scene *scene, const char *folder, unsigned int hash)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%016x", folder, hash);
	scene_set(scene, path, NULL);
	snprintf(path, sizeof(path), "%s/%016x/0-89.bbbbbbbbbbbbb", folder, hash);
	scene_set(scene, path, NULL);
	snprintf(path, sizeof(path), "%s/%016x/ccccccccccccc-90-1-0000000001", folder, hash);
	scene_set(scene, path, NULL);
}

static void test_keys_of_an_earlier_cut_are_swept_q_later(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = writing(scene_make(&scene, "a", ONE), "partitions.count=2");
	scene_set(&scene, "/k/1-1", NULL);
	lay_key(&scene, "/k/1-1", 0x12ab);
	scene_set(&scene, "/k/1-2", NULL);
	lay_key(&scene, "/k/1-2", 0x12ab);
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, record_quarantine_ns(FLEET_RIGHT_NS) - SEC), 0);
	assert_non_null(scene_node(&scene, "/k/1-1/00000000000012ab/0-89.bbbbbbbbbbbbb"));
	scene_run(&scene, 3 * SEC);
	assert_null(scene_node(&scene, "/k/1-1/00000000000012ab"));
	assert_null(scene_node(&scene, "/k/1-1"));
	assert_null(scene_node(&scene, "/t/1-1"));
	assert_non_null(scene_node(&scene, "/k/1-2/00000000000012ab/0-89.bbbbbbbbbbbbb"));
	scene_close(&scene);
}

/* Folders of keys go first, so that tiles that are left show that some are. */
static void test_keys_of_a_limiter_that_is_removed_are_swept_before_its_tiles(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = (struct change){.kind = CHANGE_REMOVE, .limiter = scene_make(&scene, "a", ONE)};
	scene_set(&scene, "/k/1-1", NULL);
	lay_key(&scene, "/k/1-1", 1);
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, SEC), 0);
	scene.held_up = true;
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS));
	scene_answer_until(&scene, "/k/1-1/0000000000000001");
	scene_assert_next(&scene, "check /g 2; set /h/HID 4; "
				  "delete /k/1-1/0000000000000001/0-89.bbbbbbbbbbbbb; "
				  "delete /k/1-1/0000000000000001/ccccccccccccc-90-1-0000000001; "
				  "delete /k/1-1/0000000000000001");
	scene_answer(&scene);
	assert_non_null(scene_node(&scene, "/t/1-1"));
	scene_answer_until(&scene, "/k/1-1");
	scene_assert_next(&scene, "check /g 2; set /h/HID 5; delete /k/1-1; delete /t/1-1/0+2+1; "
				  "delete /t/1-1; delete /w/1; delete /a/1; delete /c/1");
	scene.held_up = false;
	scene_answer_all(&scene);
	assert_null(scene_node(&scene, "/k/1-1"));
	assert_null(scene_node(&scene, "/c/1"));
	scene_close(&scene);
}

static void test_many_keys_are_swept_in_several_transactions(void **state)
{
	struct scene scene;
	struct change change;
	unsigned int before;

	(void)state;
	scene_open(&scene);
	change = writing(scene_make(&scene, "a", ONE), "partitions.count=2");
	scene_set(&scene, "/k/1-1", NULL);
	for (unsigned int hash = 0; hash < 70; hash++)
		lay_key(&scene, "/k/1-1", hash);
	begin(&scene, &change);
	assert_int_equal(end(&scene, &change, 0), 0);
	before = scene.transactions;
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + SEC);
	assert_null(scene_node(&scene, "/k/1-1/0000000000000045"));
	assert_null(scene_node(&scene, "/k/1-1"));
	assert_null(scene_node(&scene, "/t/1-1"));
	/* 210 nodes, at most 90 at a time; then the rest; and nothing is held to be renewed. */
	assert_int_equal(scene.transactions - before, 4);
	scene_close(&scene);
}

/* A folder with a node that is no key's stays. All else of the cut is swept. */
static void test_a_foreign_node_among_keys_keeps_nothing_else(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_set(&scene, "/k/1-1", NULL);
	scene_set(&scene, "/k/1-1/note", NULL);
	lay_key(&scene, "/k/1-1", 1);
	write_config(&scene, a, "partitions.count=2");
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS));
	assert_null(scene_node(&scene, "/k/1-1/0000000000000001"));
	assert_null(scene_node(&scene, "/t/1-1"));
	assert_non_null(scene_node(&scene, "/k/1-1/note"));
	scene_close(&scene);
}

/* As it was left by hosts that are gone. */
static void test_a_host_that_joins_sweeps_tiles_that_no_host_did(void **state)
{
	static const char record[] = "name=a\nparent=0\ngeneration=4\ncut=4\nwriter=bbbbbbbbbbbbb\n"
				     "owner=0 0 755\nsettings:\npartitions.count=1\n";
	struct scene scene;

	(void)state;
	scene_prepare(&scene);
	scene_set(&scene, "/v", "ratefs 4\n");
	scene_set(&scene, "/g",
		  "renewal=1500ms\nright=8s\nquarantine=8330ms\nsession=15s\nlast=7\nrecent=\n");
	for (const char *folder = "chlftrdawk"; *folder; folder++)
		scene_set(&scene, (char[]){'/', *folder, '\0'}, NULL);
	scene_set(&scene, "/c/1", record);
	scene_set(&scene, "/k/1-2", NULL);
	lay_key(&scene, "/k/1-2", 1);
	scene_set(&scene, "/k/1-4", NULL);
	lay_key(&scene, "/k/1-4", 1);
	scene_set(&scene, "/t/1-4", NULL);
	scene_set(&scene, "/t/1-4/0+0+4", NULL);
	scene_set(&scene, "/t/1-3", NULL);
	scene_set(&scene, "/t/1-3/0+0+1", NULL);
	scene_set(&scene, "/t/7-1", NULL);
	scene_begin(&scene);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) - SEC);
	assert_non_null(scene_node(&scene, "/t/1-3/0+0+1"));
	assert_non_null(scene_node(&scene, "/t/7-1"));
	scene_run(&scene, 3 * SEC);
	assert_null(scene_node(&scene, "/t/1-3"));
	assert_null(scene_node(&scene, "/k/1-2"));
	assert_non_null(scene_node(&scene, "/k/1-4/0000000000000001/0-89.bbbbbbbbbbbbb"));
	assert_non_null(scene_node(&scene, "/t/1-4/0+0+4"));
	scene_close(&scene);
}

static void test_leaves_that_were_deleted_by_hand_are_numbered_anew(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=2");
	scene_delete(&scene, "/t/1-1/0-1+2+1");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, FLEET_RENEWAL_NS / 2);
	assert_int_equal(cut_of(&scene, "/c/1"), 1);
	scene_run(&scene, 5 * SEC);
	assert_int_equal(cut_of(&scene, "/c/1"), 2);
	assert_int_equal(a->holding->cut, 2);
	assert_int_equal(guest.waiter.outcome, WAITING);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS));
	assert_int_equal(guest.waiter.outcome, 0);
	assert_int_equal(cut_of(&scene, "/c/1"), 2);
	scene_close(&scene);
}

static void test_a_list_that_is_torn_once_changes_nothing(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", "rate=10/s\npartitions.count=2");
	scene_delete(&scene, "/t/1-1/0-1+2+1");
	scene_set(&scene, "/t/1-1/0.otherotheroth", NULL);
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, FLEET_RENEWAL_NS / 2);
	scene_set(&scene, "/t/1-1/1.otherotheroth", NULL);
	scene_run(&scene, 3 * SEC);
	scene_delete(&scene, "/t/1-1/0.otherotheroth");
	scene_run(&scene, FLEET_RENEWAL_NS / 2);
	scene_set(&scene, "/t/1-1/0+2+1", NULL);
	scene_run(&scene, 10 * SEC);
	assert_int_equal(cut_of(&scene, "/c/1"), 1);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_the_end_of_a_host_is_swept_a_day_later(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	scene_set(&scene, "/d/bbbbbbbbbbbbb+3", NULL);
	scene_set(&scene, "/d/bbbbbbbbbbbbb+4", NULL);
	garbage_add_end(scene.fleet, "bbbbbbbbbbbbb", 3);
	garbage_add_end(scene.fleet, "bbbbbbbbbbbbb", 3);
	garbage_add_end(scene.fleet, "ccccccccccccc", 3);
	scene_run(&scene, UINT64_C(90000) * SEC);
	assert_non_null(scene_node(&scene, "/d/bbbbbbbbbbbbb+3"));
	scene_run(&scene, 2000 * SEC);
	assert_null(scene_node(&scene, "/d/bbbbbbbbbbbbb+3"));
	assert_non_null(scene_node(&scene, "/d/bbbbbbbbbbbbb+4"));
	scene_close(&scene);
}

static void test_without_a_connection_a_change_is_refused_in_time(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	scene_make(&scene, "a", ONE);
	scene_disconnect(&scene);
	/* In a session that may come back it is not known yet that it is in vain. */
	engine_run(&scene.engine, scene.now_ns);
	fleet_expired(scene.fleet, scene.now_ns);
	change = making(&scene, "b", ONE);
	assert_int_equal(scene_change(&scene, &change), WAITING);
	scene_run(&scene, 1400 * MS);
	assert_null(engine_changed(&scene.engine));
	assert_int_equal(end(&scene, &change, 200 * MS), -EHOSTUNREACH);
	assert_null(find(&scene, "b"));
	/* A waiter that comes later is told at once. */
	assert_int_equal(scene_change(&scene, &change), -EHOSTUNREACH);
	scene_close(&scene);
}

static void test_a_connection_that_is_lost_refuses_a_change_in_time_too(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	scene_disconnect(&scene);
	change = making(&scene, "b", ONE);
	assert_int_equal(scene_change(&scene, &change), WAITING);
	assert_int_equal(end(&scene, &change, 3 * SEC), -EHOSTUNREACH);
	scene_close(&scene);
}

static void test_limiter_that_another_host_made_and_tuned_appears_here(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	foreign_change(&scene, 1, "a", 1, "rate=10/s\n");
	tell(&scene);
	assert_rate(find(&scene, "a"), "10/s");
	foreign_change(&scene, 1, "a", 2, "rate=30/s\n");
	tell(&scene);
	assert_rate(find(&scene, "a"), "30/s");
	foreign_change(&scene, 1, "renamed", 3, "rate=30/s\n");
	tell(&scene);
	assert_null(find(&scene, "a"));
	assert_rate(find(&scene, "renamed"), "30/s");
	foreign_change(&scene, 1, "renamed", 4, "rate=30/s\n");
	scene_delete(&scene, "/c/1");
	tell(&scene);
	assert_null(find(&scene, "renamed"));
	scene_close(&scene);
}

static enum holding_maker maker_of(struct scene *scene, const char *name)
{
	assert_non_null(find(scene, name));
	return find(scene, name)->holding->maker;
}

static void test_a_host_knows_which_limiters_it_made_and_so_does_its_successor(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	foreign_change(&scene, 1, "a", 2, "rate=30/s\n");
	foreign_change(&scene, 2, "b", 1, "rate=30/s\n");
	foreign_change(&scene, 3, "c", 2, "rate=30/s\n");
	tell(&scene);
	assert_rate(a, "30/s");
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	assert_int_equal(maker_of(&scene, "c"), MAKER_UNKNOWN);
	(void)scene_succeed(&scene, a);
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	scene_connect(&scene);
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	assert_int_equal(maker_of(&scene, "c"), MAKER_UNKNOWN);
	foreign_change(&scene, 2, "b", 2, "rate=40/s\n");
	foreign_change(&scene, 1, "d", 3, "rate=30/s\n");
	tell(&scene);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	assert_int_equal(maker_of(&scene, "d"), MAKER_UNKNOWN);
	scene_close(&scene);
}

static void test_a_successor_reads_which_limiters_its_host_made(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	(void)scene_make(&scene, "a", ONE);
	foreign_change(&scene, 2, "b", 1, "rate=30/s\n");
	tell(&scene);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	(void)scene_succeed(&scene, find(&scene, "b"));
	assert_null(find(&scene, "a"));
	scene_connect(&scene);
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	scene_close(&scene);
}

static void test_in_a_new_session_a_host_knows_what_it_knew_of_makers_and_no_more(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	(void)scene_make(&scene, "a", ONE);
	foreign_change(&scene, 2, "b", 1, "rate=30/s\n");
	tell(&scene);
	fleet_expired(scene.fleet, scene.now_ns);
	foreign_change(&scene, 3, "c", 1, "rate=30/s\n");
	scene.session = 78;
	scene_connect(&scene);
	assert_int_equal(maker_of(&scene, "a"), MAKER_THIS);
	assert_int_equal(maker_of(&scene, "b"), MAKER_OTHER);
	assert_int_equal(maker_of(&scene, "c"), MAKER_UNKNOWN);
	foreign_change(&scene, 4, "d", 1, "rate=30/s\n");
	tell(&scene);
	assert_int_equal(maker_of(&scene, "d"), MAKER_OTHER);
	scene_close(&scene);
}

static void test_only_what_has_changed_is_read_again(void **state)
{
	struct scene scene;
	uint64_t reads, lists;

	(void)state;
	scene_open(&scene);
	for (char name[2] = "a"; name[0] <= 'j'; name[0]++)
		scene_make(&scene, name, ONE);
	foreign_change(&scene, 4, "d", 2, "rate=30/s\n");
	reads = fleet_counters(scene.fleet)->reads;
	lists = fleet_counters(scene.fleet)->lists;
	tell(&scene);
	assert_rate(find(&scene, "d"), "30/s");
	assert_int_equal(fleet_counters(scene.fleet)->reads, reads + 2);
	assert_int_equal(fleet_counters(scene.fleet)->lists, lists);
	scene_close(&scene);
}

static void test_a_record_that_is_not_understood_changes_nothing(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	foreign_change(&scene, 1, "a", 2, "rate=nonsense\n");
	tell(&scene);
	assert_rate(a, "10/s");
	assert_non_null(strstr(scene.event, "not understood"));
	assert_ptr_equal(find(&scene, "a"), a);
	scene_close(&scene);
}

static void test_constants_that_were_overwritten_are_said_again(void **state)
{
	struct scene scene;
	struct globals globals;

	(void)state;
	scene_open(&scene);
	scene_make(&scene, "a", ONE);
	scene_set(&scene, "/g", "garbage");
	scene.held_up = true;
	engine_run(&scene.engine, scene.now_ns);
	fleet_changed(scene.fleet, "/g", scene.now_ns);
	scene_answer(&scene);
	while (scene.sent_count)
		scene_answer(&scene);
	assert_int_equal(record_parse_globals(scene_node(&scene, "/g")->data, &globals), 0);
	assert_int_equal(globals.last_id, 1);
	scene.held_up = false;
	scene_run(&scene, 3 * SEC);
	assert_non_null(find(&scene, "a"));
	scene_close(&scene);
}

static void test_a_change_that_another_host_was_before_is_tried_again(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	change = writing(a, "burst=5");
	begin(&scene, &change);
	foreign_change(&scene, 1, "a", 2, "rate=30/s\npartitions.count=1\n");
	assert_int_equal(end(&scene, &change, 5 * SEC), 0);
	assert_rate(a, "30/s");
	assert_int_equal(a->holding->settings->burst, 5);
	scene_close(&scene);
}

static void test_a_change_that_others_are_always_before_says_so_in_the_end(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change;
	unsigned int generation = 1, before;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	change = writing(a, "burst=5");
	before = scene.transactions;
	begin(&scene, &change);
	for (int i = 0; i < 480; i++) {
		foreign_change(&scene, 1, "a", ++generation, "rate=30/s\npartitions.count=1\n");
		scene_answer_all(&scene);
		scene_run(&scene, 10 * MS);
	}
	assert_null(engine_changed(&scene.engine));
	/* The more often it was in vain, the less often it is tried. */
	assert_in_range(scene.transactions - before, 10, 200);
	scene_answer_all(&scene);
	for (int i = 0; i < 40; i++) {
		foreign_change(&scene, 1, "a", ++generation, "rate=30/s\npartitions.count=1\n");
		scene_answer_all(&scene);
		scene_run(&scene, 10 * MS);
	}
	assert_int_equal(end(&scene, &change, 0), -EBUSY);
	assert_non_null(strstr(change.error, "other hosts changed settings first"));
	scene_close(&scene);
}

static void test_a_limiter_that_another_host_made_first_is_there_already(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = making(&scene, "a", ONE);
	begin(&scene, &change);
	foreign_change(&scene, 1, "a", 1, "rate=30/s\n");
	assert_int_equal(end(&scene, &change, 5 * SEC), -EEXIST);
	assert_rate(find(&scene, "a"), "30/s");
	scene_close(&scene);
}

/*
 * Ends a session of the host while @change makes `a`; the change is not sent before the host has
 * joined again.
 */
static void make_while_joining(struct scene *scene, struct change *change)
{
	engine_run(&scene->engine, scene->now_ns);
	fleet_expired(scene->fleet, scene->now_ns);
	scene->session = 78;
	scene->held_up = true;
	*change = making(scene, "a", ONE);
	assert_int_equal(scene_change(scene, change), WAITING);
	scene_connect(scene);
	scene_answer_until(scene, fleet_hid(scene->fleet));
	scene_answer(scene);
	assert_int_equal(fleet_state(scene->fleet), FLEET_READY);
}

static void test_a_limiter_that_is_refused_while_the_host_joins_is_in_no_list(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	make_while_joining(&scene, &change);
	assert_false(change.made->holding->active);
	foreign_change(&scene, 1, "a", 1, "rate=30/s\n");
	assert_int_equal(end(&scene, &change, 5 * SEC), -EEXIST);
	assert_rate(find(&scene, "a"), "30/s");
	scene_close(&scene);
}

static void test_a_limiter_that_is_made_while_the_host_joins_can_be_used(void **state)
{
	struct scene scene;
	struct guest guest;
	struct change change;

	(void)state;
	scene_open(&scene);
	make_while_joining(&scene, &change);
	assert_int_equal(end(&scene, &change, SEC), 0);
	assert_int_equal(scene_ask(&scene, &guest, find(&scene, "a")), WAITING);
	scene_run(&scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_change_without_authority_is_refused(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = making(&scene, "a", ONE);
	begin(&scene, &change);
	scene_refuse(&scene, ANSWER_DENIED, 2);
	assert_int_equal(end(&scene, &change, 0), -EACCES);
	change = making(&scene, "a", ONE);
	begin(&scene, &change);
	scene_refuse(&scene, ANSWER_REFUSED, 2);
	assert_int_equal(end(&scene, &change, 0), -E2BIG);
	scene_close(&scene);
}

static void test_a_change_in_doubt_is_looked_up_and_made_once(void **state)
{
	for (int done = 0; done < 2; done++) {
		struct scene scene;
		struct limiter *a;
		struct change change;

		(void)state;
		scene_open(&scene);
		a = scene_make(&scene, "a", ONE);
		change = writing(a, "rate=20/s");
		begin(&scene, &change);
		scene_lose(&scene, done);
		assert_null(engine_changed(&scene.engine));
		scene_assert_next(&scene, "read /h/HID");
		assert_int_equal(end(&scene, &change, 3 * SEC), 0);
		assert_rate(a, "20/s");
		assert_int_equal(scene_node(&scene, "/c/1")->version, 1);
		scene_close(&scene);
	}
}

static void test_a_change_in_doubt_when_the_session_goes_says_so(void **state)
{
	struct scene scene;
	struct change change;

	(void)state;
	scene_open(&scene);
	change = making(&scene, "a", ONE);
	begin(&scene, &change);
	scene_lose(&scene, true);
	engine_run(&scene.engine, scene.now_ns);
	fleet_expired(scene.fleet, scene.now_ns);
	while (scene.sent_count)
		scene_lose(&scene, false);
	assert_int_equal(end(&scene, &change, 0), -ETIMEDOUT);
	scene_close(&scene);
}

static void test_a_server_that_lags_behind_what_a_host_knows_is_not_believed_at_once(void **state)
{
	(void)state;
	for (int restored = 0; restored < 2; restored++) {
		struct scene scene;
		struct limiter *a;
		const char *record;
		int32_t version;

		scene_open(&scene);
		a = scene_make(&scene, "a", ONE);
		record = scene_node(&scene, "/c/1")->data;
		version = scene_node(&scene, "/g")->version;
		engine_run(&scene.engine, scene.now_ns);
		fleet_expired(scene.fleet, scene.now_ns);
		scene_delete(&scene, "/c/1");
		((struct node *)scene_node(&scene, "/g"))->version = 0;
		scene.session = 78;
		scene_connect(&scene);
		scene_run(&scene, 1500 * MS);
		assert_ptr_equal(find(&scene, "a"), a);
		assert_int_not_equal(fleet_state(scene.fleet), FLEET_READY);
		if (!restored) {
			((struct node *)scene_node(&scene, "/g"))->version = version;
			scene_set(&scene, "/c/1", record);
		}
		scene_run(&scene, 10 * SEC);
		assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
		/*
		 * Servers that were restored from a backup stay behind, and are believed in the
		 * end.
		 */
		assert_ptr_equal(find(&scene, "a"), restored ? NULL : a);
		scene_close(&scene);
	}
}

/* An election takes back the last change of node @path, which was @data before it. */
static void take_back(struct scene *scene, const char *path, const char *data)
{
	struct node *node = (struct node *)scene_node(scene, path);
	int32_t version = node->version;

	scene_set(scene, path, data);
	node->version = version - 1;
}

static void test_a_change_that_an_election_took_back_is_not_taken_for_the_next(void **state)
{
	struct scene scene;
	struct limiter *a;
	const char *globals, *record;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	globals = scene_node(&scene, "/g")->data;
	record = scene_node(&scene, "/c/1")->data;
	foreign_change(&scene, 1, "a", 2, "rate=20/s\npartitions.count=1\n");
	tell(&scene);
	assert_rate(a, "20/s");
	scene.epoch++;
	take_back(&scene, "/g", globals);
	take_back(&scene, "/c/1", record);
	/* It has the versions and the generation of the one that is lost. */
	foreign_change(&scene, 1, "a", 2, "rate=30/s\npartitions.count=1\n");
	tell(&scene);
	assert_rate(a, "30/s");
	scene_close(&scene);
}

static void test_an_id_that_was_given_again_after_an_election_is_another_limiter(void **state)
{
	struct scene scene;
	struct limiter *a, *b;
	const char *globals;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	globals = scene_node(&scene, "/g")->data;
	foreign_change(&scene, 2, "b", 1, ONE);
	tell(&scene);
	b = find(&scene, "b");
	assert_non_null(b);
	limiter_hold(b);
	scene.epoch++;
	take_back(&scene, "/g", globals);
	scene_delete(&scene, "/c/2");
	foreign_change(&scene, 2, "c", 1, "rate=30/s\n");
	tell(&scene);
	assert_true(b->removed);
	assert_null(find(&scene, "b"));
	assert_non_null(find(&scene, "c"));
	assert_rate(find(&scene, "c"), "30/s");
	/* A limiter that was made before the election is as it was. */
	assert_ptr_equal(find(&scene, "a"), a);
	limiter_drop(b);
	scene_close(&scene);
}

/* Removes @limiter, or renames it to @name; the outcome. */
static int leave_name(struct scene *scene, struct limiter *limiter, const char *name)
{
	struct change change = {.kind = name ? CHANGE_RENAME : CHANGE_REMOVE, .limiter = limiter};

	if (name)
		strcpy(change.name, name);
	return scene_change(scene, &change);
}

/* Makes @name below @parent. Tells whether its tile has an epoch, so that it is usable at once. */
static bool begins_clean(struct scene *scene, struct limiter *parent, const char *name)
{
	struct change change = {.kind = CHANGE_MAKE, .limiter = parent, .text = ONE};
	char path[64];

	strcpy(change.name, name);
	assert_int_equal(scene_change(scene, &change), 0);
	snprintf(path, sizeof(path), "/t/%llu-1/0+2+1",
		 (unsigned long long)change.made->holding->id);
	return scene_node(scene, path);
}

static void test_a_limiter_made_under_a_name_that_was_removed_waits_q(void **state)
{
	struct scene scene;
	struct limiter *root, *a;
	struct guest guest;

	(void)state;
	scene_open(&scene);
	root = scene.engine.tree.root;
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, NULL), 0);
	assert_false(begins_clean(&scene, root, "a"));
	assert_true(begins_clean(&scene, root, "b"));
	a = find(&scene, "a");
	assert_int_equal(scene_ask(&scene, &guest, a), WAITING);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) - MS);
	assert_int_equal(guest.waiter.outcome, WAITING);
	scene_run(&scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	scene_close(&scene);
}

static void test_a_name_is_as_any_other_q_after_its_limiter_was_removed(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, NULL), 0);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + MS);
	assert_true(begins_clean(&scene, scene.engine.tree.root, "a"));
	scene_close(&scene);
}

static void test_limiter_made_below_a_name_that_was_removed_waits_too(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, NULL), 0);
	a = scene_make(&scene, "a", ONE);
	assert_false(begins_clean(&scene, a, "b"));
	a = scene_make(&scene, "ab", ONE);
	assert_true(begins_clean(&scene, a, "b"));
	scene_close(&scene);
}

static void test_the_old_name_of_a_renamed_limiter_waits_q(void **state)
{
	struct scene scene;
	struct limiter *root, *a;

	(void)state;
	scene_open(&scene);
	root = scene.engine.tree.root;
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, "b"), 0);
	assert_false(begins_clean(&scene, root, "a"));
	scene_run(&scene, 2 * record_quarantine_ns(FLEET_RIGHT_NS));
	/* Its node goes as that of a limiter does, and the limiter's own stays. */
	assert_null(scene_node(&scene, "/c/2"));
	assert_non_null(scene_node(&scene, "/c/1"));
	assert_int_equal(leave_name(&scene, a, "c"), 0);
	assert_true(begins_clean(&scene, root, "d"));
	assert_int_equal(leave_name(&scene, a, "b"), 0);
	scene_close(&scene);
}

static void test_a_limiter_is_not_renamed_to_what_another_was_called_a_moment_ago(void **state)
{
	struct scene scene;
	struct limiter *a, *b;
	struct change change = {.kind = CHANGE_RENAME};

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	b = scene_make(&scene, "b", ONE);
	assert_int_equal(leave_name(&scene, a, "c"), 0);
	change.limiter = b;
	strcpy(change.name, "a");
	assert_int_equal(scene_change(&scene, &change), -EBUSY);
	assert_non_null(strstr(change.error, "was a limiter's name a moment ago"));
	assert_int_equal(leave_name(&scene, a, "a"), 0);
	assert_int_equal(leave_name(&scene, b, "c"), -EBUSY);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + MS);
	assert_int_equal(leave_name(&scene, b, "c"), 0);
	scene_close(&scene);
}

static void test_a_limiter_with_others_in_it_is_not_renamed_back_for_q(void **state)
{
	struct scene scene;
	struct limiter *a;
	struct change change = {.kind = CHANGE_MAKE, .owner = {.access = 0755}};

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, "b"), 0);
	change.limiter = a;
	strcpy(change.name, "c");
	assert_int_equal(scene_change(&scene, &change), 0);
	assert_int_equal(leave_name(&scene, a, "a"), -EBUSY);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + MS);
	assert_int_equal(leave_name(&scene, a, "a"), 0);
	scene_close(&scene);
}

/* As another host leaves the node of a limiter @id that is gone, or of a name that was left. */
static void foreign_removal(struct scene *scene, unsigned int id, const char *name,
			    unsigned int removed)
{
	char path[32], line[64], text[RECORD_TEXT];

	foreign_change(scene, id, name, 9, "rate=10/s\npartitions.count=1\n");
	snprintf(path, sizeof(path), "/c/%u", id);
	snprintf(line, sizeof(line), "removed=%u\n", removed);
	snprintf(text, sizeof(text), "%s%s", line, scene_node(scene, path)->data);
	scene_set(scene, path, text);
}

static void test_a_name_that_another_host_removed_or_renamed_waits_q_here(void **state)
{
	struct scene scene;
	struct limiter *root;

	(void)state;
	scene_open(&scene);
	root = scene.engine.tree.root;
	scene_make(&scene, "a", ONE);
	scene_make(&scene, "b", ONE);
	foreign_removal(&scene, 1, "a", 1);
	foreign_change(&scene, 2, "c", 2, ONE);
	tell(&scene);
	assert_null(find(&scene, "a"));
	assert_null(find(&scene, "b"));
	assert_false(begins_clean(&scene, root, "a"));
	assert_false(begins_clean(&scene, root, "b"));
	scene_close(&scene);
}

static void test_a_name_that_was_made_and_left_while_a_host_was_away_waits_q_here(void **state)
{
	struct scene scene;
	struct limiter *root;

	(void)state;
	scene_open(&scene);
	root = scene.engine.tree.root;
	scene_make(&scene, "a", ONE);
	foreign_removal(&scene, 2, "b", 2);
	/* One that was renamed: its first name has a node that no change names. */
	foreign_removal(&scene, 4, "c", 3);
	foreign_change(&scene, 3, "d", 2, ONE);
	tell(&scene);
	assert_null(find(&scene, "b"));
	assert_non_null(find(&scene, "d"));
	assert_false(begins_clean(&scene, root, "b"));
	assert_false(begins_clean(&scene, root, "c"));
	assert_true(begins_clean(&scene, root, "e"));
	scene_close(&scene);
}

static void test_a_host_that_joins_knows_the_names_that_were_left(void **state)
{
	struct scene scene;
	struct limiter *root, *a;

	(void)state;
	scene_open(&scene);
	root = scene.engine.tree.root;
	a = scene_make(&scene, "a", ONE);
	assert_int_equal(leave_name(&scene, a, NULL), 0);
	a = scene_make(&scene, "b", ONE);
	assert_int_equal(leave_name(&scene, a, "c"), 0);
	/*
	 * Q later this process knows neither any more, and the nodes are as if no host had swept
	 * them.
	 */
	scene.held_up = true;
	scene_disconnect(&scene);
	fleet_expired(scene.fleet, scene.now_ns);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + SEC);
	scene.held_up = false;
	scene.session = 78;
	scene_connect(&scene);
	assert_int_equal(fleet_state(scene.fleet), FLEET_READY);
	assert_false(begins_clean(&scene, root, "a"));
	assert_false(begins_clean(&scene, root, "b"));
	assert_true(begins_clean(&scene, root, "d"));
	scene_run(&scene, 2 * record_quarantine_ns(FLEET_RIGHT_NS));
	assert_null(scene_node(&scene, "/c/1"));
	assert_null(scene_node(&scene, "/c/3"));
	scene_close(&scene);
}

static void test_a_successor_does_not_know_which_names_were_left_and_waits_q_with_all(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	scene_succeed(&scene, a);
	scene_connect(&scene);
	assert_false(begins_clean(&scene, scene.engine.tree.root, "b"));
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) + MS);
	assert_true(begins_clean(&scene, scene.engine.tree.root, "c"));
	scene_close(&scene);
}

static void test_a_fleet_shares_no_slots_and_windows_of_a_key(void **state)
{
	struct scene scene;
	struct change change;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	change = writing(a, "key_concurrency=3\n");
	assert_int_equal(scene_change(&scene, &change), -EINVAL);
	assert_non_null(strstr(change.error, "key_concurrency is for one host alone"));
	change = making(&scene, "b", "key_concurrency=3\n");
	assert_int_equal(scene_change(&scene, &change), -EINVAL);
	change = writing(a, "key_rate=10/day@00:00\n");
	assert_int_equal(scene_change(&scene, &change), -ERANGE);
	assert_non_null(strstr(change.error, "cannot share windows of the calendar of a key"));
	change = writing(a, "key.bob.rate=10/day@00:00\n");
	assert_int_equal(scene_change(&scene, &change), -ERANGE);
	change = writing(a, "key_rate=x=10/day@00:00\n");
	assert_int_equal(scene_change(&scene, &change), -ERANGE);
	change = writing(a, "key_concurrency=max\nkey.bob.rate=5/s\n");
	assert_int_equal(scene_change(&scene, &change), 0);
	scene_close(&scene);
}

/* A limiter whose keys have @limit cannot lease them: @why. It can with another. */
static void refuses_to_lease(struct scene *scene, struct limiter *limiter, const char *limit,
			     const char *why)
{
	struct change change = writing(limiter, limit);

	assert_int_equal(scene_change(scene, &change), 0);
	change = writing(limiter, "key_share=leased\n");
	assert_int_equal(scene_change(scene, &change), -ERANGE);
	assert_non_null(strstr(change.error, why));
	change = writing(limiter, "key_share=leased\nkey_rate=1/s\n");
	assert_int_equal(scene_change(scene, &change), 0);
}

static void test_a_key_that_is_leased_has_no_units(void **state)
{
	struct scene scene;

	(void)state;
	scene_open(&scene);
	refuses_to_lease(&scene, scene_make(&scene, "a", ONE), "key_rate=1/s x=2/s:20\n",
			 "units of a key cannot be leased");
	scene_close(&scene);
}

static void test_a_key_that_is_leased_has_no_strict_window(void **state)
{
	struct scene scene;
	struct change change;
	struct limiter *a;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	refuses_to_lease(&scene, a, "key_rate=10/60s,strict\n",
			 "a strict window of a key cannot be leased");
	change = writing(a, "key.bob.rate=10/60s,strict\n");
	assert_int_equal(scene_change(&scene, &change), -ERANGE);
	change = writing(a, "key.bob.rate=10/60s,strict\nkey_share=proportional\n");
	assert_int_equal(scene_change(&scene, &change), 0);
	scene_close(&scene);
}

static void test_more_overrides_than_a_node_holds_are_refused(void **state)
{
	static char config[4 * RECORD_OVERRIDES_MAX];
	struct change change;
	struct scene scene;
	struct limiter *a;
	size_t used = 0;

	(void)state;
	scene_open(&scene);
	a = scene_make(&scene, "a", ONE);
	for (unsigned int i = 0; used < RECORD_OVERRIDES_MAX - 64; i++)
		used += (size_t)snprintf(config + used, sizeof(config) - used,
					 "key.user-%u.rate=10/s\n", i);
	change = writing(a, config);
	assert_int_equal(scene_change(&scene, &change), 0);
	snprintf(config, sizeof(config), "key.one-more-of-them-%040d.rate=10/s\n", 0);
	change = writing(a, config);
	assert_int_equal(scene_change(&scene, &change), -ENOSPC);
	assert_non_null(strstr(change.error, "at most 700000"));
	scene_close(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_making_a_limiter_is_one_transaction_with_its_tiles),
		cmocka_unit_test(test_a_setting_is_one_transaction_of_its_limiter_and_g),
		cmocka_unit_test(test_another_number_of_leaves_or_reserve_numbers_them_anew),
		cmocka_unit_test(test_leaves_that_a_host_leases_are_numbered_anew_with_no_epoch),
		cmocka_unit_test(test_leaves_that_are_all_free_follow_on_from_those_before),
		cmocka_unit_test(test_a_limiter_with_a_former_name_has_a_tile_of_no_epoch),
		cmocka_unit_test(test_a_host_learns_since_when_leaves_are_numbered_as_they_are),
		cmocka_unit_test(
			test_removing_a_limiter_ends_its_leases_and_sweeps_its_nodes_q_later),
		cmocka_unit_test(test_tiles_of_an_earlier_cut_are_swept_q_later),
		cmocka_unit_test(test_many_tiles_are_swept_in_several_transactions),
		cmocka_unit_test(test_keys_of_an_earlier_cut_are_swept_q_later),
		cmocka_unit_test(test_keys_of_a_limiter_that_is_removed_are_swept_before_its_tiles),
		cmocka_unit_test(test_many_keys_are_swept_in_several_transactions),
		cmocka_unit_test(test_a_foreign_node_among_keys_keeps_nothing_else),
		cmocka_unit_test(test_a_host_that_joins_sweeps_tiles_that_no_host_did),
		cmocka_unit_test(test_leaves_that_were_deleted_by_hand_are_numbered_anew),
		cmocka_unit_test(test_a_list_that_is_torn_once_changes_nothing),
		cmocka_unit_test(test_the_end_of_a_host_is_swept_a_day_later),
		cmocka_unit_test(test_without_a_connection_a_change_is_refused_in_time),
		cmocka_unit_test(test_a_connection_that_is_lost_refuses_a_change_in_time_too),
		cmocka_unit_test(test_limiter_that_another_host_made_and_tuned_appears_here),
		cmocka_unit_test(
			test_a_host_knows_which_limiters_it_made_and_so_does_its_successor),
		cmocka_unit_test(test_a_successor_reads_which_limiters_its_host_made),
		cmocka_unit_test(
			test_in_a_new_session_a_host_knows_what_it_knew_of_makers_and_no_more),
		cmocka_unit_test(test_only_what_has_changed_is_read_again),
		cmocka_unit_test(test_a_record_that_is_not_understood_changes_nothing),
		cmocka_unit_test(test_constants_that_were_overwritten_are_said_again),
		cmocka_unit_test(test_a_change_that_another_host_was_before_is_tried_again),
		cmocka_unit_test(test_a_change_that_others_are_always_before_says_so_in_the_end),
		cmocka_unit_test(test_a_limiter_that_another_host_made_first_is_there_already),
		cmocka_unit_test(test_a_limiter_that_is_refused_while_the_host_joins_is_in_no_list),
		cmocka_unit_test(test_a_limiter_that_is_made_while_the_host_joins_can_be_used),
		cmocka_unit_test(test_a_change_without_authority_is_refused),
		cmocka_unit_test(test_a_change_in_doubt_is_looked_up_and_made_once),
		cmocka_unit_test(test_a_change_in_doubt_when_the_session_goes_says_so),
		cmocka_unit_test(
			test_a_server_that_lags_behind_what_a_host_knows_is_not_believed_at_once),
		cmocka_unit_test(
			test_a_change_that_an_election_took_back_is_not_taken_for_the_next),
		cmocka_unit_test(
			test_an_id_that_was_given_again_after_an_election_is_another_limiter),
		cmocka_unit_test(test_a_limiter_made_under_a_name_that_was_removed_waits_q),
		cmocka_unit_test(test_a_name_is_as_any_other_q_after_its_limiter_was_removed),
		cmocka_unit_test(test_limiter_made_below_a_name_that_was_removed_waits_too),
		cmocka_unit_test(test_the_old_name_of_a_renamed_limiter_waits_q),
		cmocka_unit_test(
			test_a_limiter_is_not_renamed_to_what_another_was_called_a_moment_ago),
		cmocka_unit_test(test_a_limiter_with_others_in_it_is_not_renamed_back_for_q),
		cmocka_unit_test(test_a_name_that_another_host_removed_or_renamed_waits_q_here),
		cmocka_unit_test(
			test_a_name_that_was_made_and_left_while_a_host_was_away_waits_q_here),
		cmocka_unit_test(test_a_host_that_joins_knows_the_names_that_were_left),
		cmocka_unit_test(
			test_a_successor_does_not_know_which_names_were_left_and_waits_q_with_all),
		cmocka_unit_test(test_a_fleet_shares_no_slots_and_windows_of_a_key),
		cmocka_unit_test(test_a_key_that_is_leased_has_no_units),
		cmocka_unit_test(test_a_key_that_is_leased_has_no_strict_window),
		cmocka_unit_test(test_more_overrides_than_a_node_holds_are_refused),
	};

	return cmocka_run_group_tests_name("fleet_change", tests, NULL, NULL);
}
