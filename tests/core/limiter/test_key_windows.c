/* Windows of the calendar of keys, on an engine whose wall clock can be set. */
#include "core/limiter/key_units.h"
#include "core/limiter/key_windows.h"
#include "core/limiter/wall.h"
#include "tests/core/stage.h"
#include "tests/sim/base/zones.h"

#include <stdio.h>

/* 2026-11-23 12:00:00 UTC, a Monday: the wall clock at the beginning of the engine. */
#define NOON_S INT64_C(1795435200)
#define HOUR   (3600 * SEC)
#define DAY    (24 * HOUR)

/* A ledger of a few uses, by the text of their names. */
struct book {
	struct ledger ledger; /* first */
	struct {
		char name[128];
		struct key_use use;
	} lines[64];
	unsigned int count;
	bool is_full;
};

static void name_line(uint64_t number, const char *key, const char *unit, uint8_t kind,
		      char name[128])
{
	snprintf(name, 128, "%u %s %s=%u", (unsigned int)number, key, unit, kind);
}

static uint64_t give_number(struct ledger *ledger, const char *path)
{
	(void)path;
	return ((struct book *)ledger)->is_full ? 0 : 7;
}

static bool recall(struct ledger *ledger, uint64_t number, const char *key, const char *unit,
		   uint8_t kind, struct key_use *use)
{
	const struct book *book = (struct book *)ledger;
	char name[128];

	name_line(number, key, unit, kind, name);
	for (unsigned int i = 0; i < book->count; i++) {
		if (strcmp(book->lines[i].name, name) != 0)
			continue;
		*use = book->lines[i].use;
		return true;
	}
	if (*key)
		return false;
	*use = (struct key_use){0};
	return true;
}

static void note(struct ledger *ledger, uint64_t number, const char *key, const char *unit,
		 uint8_t kind, const struct key_use *use)
{
	struct book *book = (struct book *)ledger;
	unsigned int i = 0;
	char name[128];

	name_line(number, key, unit, kind, name);
	while (i < book->count && strcmp(book->lines[i].name, name) != 0)
		i++;
	assert_true(i < sizeof(book->lines) / sizeof(book->lines[0]));
	strcpy(book->lines[i].name, name);
	book->lines[i].use = *use;
	book->count += i == book->count;
}

static void forget(struct ledger *ledger, uint64_t number)
{
	assert_int_equal(number, 7);
	((struct book *)ledger)->count = 0;
}

static void open_book(struct book *book)
{
	*book = (struct book){
		.ledger = {.number = give_number, .recall = recall, .note = note, .end = forget}};
}

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

static struct limiter *open_key(struct stage *stage, struct limiter *limiter, const char *name,
				uint64_t now_ns)
{
	struct limiter *opened;
	struct key *key;

	stage_run(stage, now_ns);
	assert_int_equal(engine_key(&stage->engine, limiter, name, 0, now_ns, &key), 0);
	opened = keys_open(&stage->engine.schedule, limiter, key);
	assert_non_null(opened);
	return opened;
}

static void close_key(struct stage *stage, struct limiter *opened)
{
	keys_close(&stage->engine.schedule, opened);
}

/* As `cat keys/NAME/take/TEXT,within=0s`: whether it was there. The ledger is told. */
static bool take(struct stage *stage, struct limiter *limiter, const char *name, const char *text,
		 uint64_t now_ns)
{
	struct limiter *opened = open_key(stage, limiter, name, now_ns);
	struct token_read read = {.limiter = opened, .manner = READ_TRYING, .within_ns = NEVER_NS};
	struct amounts amounts;
	struct read_wait wait;
	int err;

	assert_int_equal(amounts_parse_take(text, &read.tokens, &read.most, &amounts), 0);
	read.amounts = amounts.count ? &amounts : NULL;
	err = engine_read(&stage->engine, &read, &wait, now_ns);
	if (!err)
		key_units_note(opened);
	close_key(stage, opened);
	assert_true(!err || err == -EBUSY || err == -EINVAL);
	return !err;
}

/* Returns the tokens of the key @name now. */
static int64_t left(struct stage *stage, struct limiter *limiter, const char *name, uint64_t now_ns)
{
	struct limiter *opened = open_key(stage, limiter, name, now_ns);
	double tokens;

	engine_refresh(&stage->engine, opened, now_ns);
	tokens = limiter_tokens(opened);
	close_key(stage, opened);
	return (int64_t)tokens;
}

static void end(struct stage *stage, struct limiter *limiter)
{
	stage_remove(stage, limiter);
	stage_close(stage);
}

static bool is_remembered(const struct limiter *limiter, const char *name)
{
	return keys_named(limiter->keys, name, strlen(name));
}

static void test_each_key_is_full_at_each_boundary_and_nothing_flows_in(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1000/day@00:00");
	assert_true(take(&stage, a, "k", "400", 0));
	assert_int_equal(left(&stage, a, "j", 0), 1000);
	assert_int_equal(left(&stage, a, "k", 12 * HOUR - 1), 600);
	assert_false(take(&stage, a, "k", "601", 12 * HOUR - 1));
	assert_true(take(&stage, a, "k", "600", 12 * HOUR - 1));
	assert_true(take(&stage, a, "k", "1000", 12 * HOUR));
	assert_false(take(&stage, a, "k", "1", 36 * HOUR - 1));
	/* Windows that passed are not saved up, and a take of more is never had. */
	assert_false(take(&stage, a, "k", "1001", 9 * DAY));
	assert_int_equal(left(&stage, a, "k", 9 * DAY), 1000);
	end(&stage, a);
}

static void test_an_idle_key_is_not_forgotten_before_its_window_is_over(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=1000/day@00:00 10/s\nkey_burst=10");
	assert_true(take(&stage, a, "k", "10", 0));
	assert_int_equal(left(&stage, a, "looked", 0), 10);
	stage_run(&stage, 10 * SEC);
	assert_false(is_remembered(a, "looked"));
	stage_run(&stage, 12 * HOUR - 1);
	assert_true(is_remembered(a, "k"));
	stage_run(&stage, 12 * HOUR + SEC);
	assert_false(is_remembered(a, "k"));
	end(&stage, a);
}

static void test_readers_of_keys_wait_for_the_boundary(void **state)
{
	struct stage stage;
	struct limiter *a, *k, *j;
	struct guest first, second, other;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00");
	k = open_key(&stage, a, "k", 0);
	j = open_key(&stage, a, "j", 0);
	assert_int_equal(stage_try(&stage, k, 8, 0), 0);
	assert_int_equal(engine_eta(&stage.engine, k, 3, NULL, HOUR), 11 * HOUR);
	assert_int_equal(limiter_reset_ns(k), 11 * HOUR);
	assert_int_equal(stage_ask(&stage, &first, k, 6, HOUR), WAITING);
	assert_int_equal(stage_ask(&stage, &second, k, 5, HOUR), WAITING);
	assert_int_equal(stage_ask(&stage, &other, j, 10, HOUR), 0);
	stage_run(&stage, 12 * HOUR - 1);
	assert_int_equal(first.waiter.outcome, WAITING);
	stage_run(&stage, 36 * HOUR);
	assert_int_equal(first.done_ns, 12 * HOUR);
	assert_int_equal(second.done_ns, 36 * HOUR);
	close_key(&stage, k);
	close_key(&stage, j);
	end(&stage, a);
}

static void test_a_quota_and_a_pace_of_a_key_hold_together(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=3/day@00:00 1/min\nkey_burst=2");
	assert_true(take(&stage, a, "k", "2", 0));
	assert_false(take(&stage, a, "k", "1", 59 * SEC));
	assert_true(take(&stage, a, "k", "1", 60 * SEC));
	assert_false(take(&stage, a, "k", "1", 11 * HOUR));
	assert_true(take(&stage, a, "k", "2", 12 * HOUR));
	assert_false(take(&stage, a, "k", "1", 12 * HOUR));
	end(&stage, a);
}

static void test_windows_of_several_lengths_and_units_are_kept_apart(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a",
		       "key_rate=3/h@:00 5/day@00:00 t=100/day@00:00 t=50/h@:00");
	assert_true(take(&stage, a, "k", "3,t=50", 0));
	assert_false(take(&stage, a, "k", "1", HOUR - 1));
	assert_false(take(&stage, a, "k", "t=1", HOUR - 1));
	assert_true(take(&stage, a, "k", "2,t=50", HOUR));
	assert_false(take(&stage, a, "k", "1", 2 * HOUR));
	assert_false(take(&stage, a, "k", "t=1", 2 * HOUR));
	assert_true(take(&stage, a, "k", "1,t=1", 12 * HOUR));
	end(&stage, a);
}

static void test_a_day_of_a_zone_has_25_hours_where_clocks_are_changed(void **state)
{
	struct stage stage;
	struct limiter *a;

	(void)state;
	stage_open(&stage);
	/* 2026-10-24 22:00 UTC, midnight in Paris. */
	wall_set(&stage.engine, INT64_C(1792879200) * (int64_t)SEC, 0);
	a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00,Europe/Paris");
	assert_true(take(&stage, a, "k", "10", 0));
	assert_false(take(&stage, a, "k", "1", 25 * HOUR - 1));
	assert_true(take(&stage, a, "k", "10", 25 * HOUR));
	end(&stage, a);
}

static void test_a_key_has_windows_of_its_own(void **state)
{
	struct stage stage;
	struct limiter *a, *bob;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00\nkey.bob.rate=20/day@00:00");
	assert_true(take(&stage, a, "k", "10", 0));
	assert_true(take(&stage, a, "bob", "20", 0));
	assert_false(take(&stage, a, "bob", "1", HOUR));
	/* Used tokens stay used: of an idle key, and of one that is open. */
	stage_write(&stage, a, "key.bob.rate=25/day@00:00", HOUR);
	assert_int_equal(left(&stage, a, "bob", HOUR), 5);
	bob = open_key(&stage, a, "bob", HOUR);
	stage_write(&stage, a, "key.bob.rate=30/day@00:00", HOUR);
	assert_int_equal(stage_try(&stage, bob, 10, HOUR), 0);
	stage_write(&stage, a, "key.bob.rate=12/day@00:00 5/s", HOUR);
	assert_int_equal(stage_try(&stage, bob, 1, HOUR), -EBUSY);
	stage_write(&stage, a, "key.bob.rate=1/s\nkey_burst=3", HOUR);
	assert_int_equal(stage_try(&stage, bob, 3, 2 * HOUR), 0);
	stage_write(&stage, a, "key.bob.rate=default", 2 * HOUR);
	close_key(&stage, bob);
	assert_int_equal(left(&stage, a, "k", 12 * HOUR), 10);
	assert_int_equal(left(&stage, a, "bob", 12 * HOUR), 10);
	end(&stage, a);
}

static void test_a_single_key_can_have_a_window_beside_keys_without(void **state)
{
	struct stage stage;
	struct limiter *a, *k;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/s\nkey_burst=10");
	/* It is open, and has no memory for windows yet. */
	k = open_key(&stage, a, "k", 0);
	stage_write(&stage, a, "key.bob.rate=4/day@00:00\nkey.k.rate=3/day@00:00", 0);
	assert_int_equal(stage_try(&stage, k, 3, 0), 0);
	assert_int_equal(stage_try(&stage, k, 1, 11 * HOUR), -EBUSY);
	assert_true(take(&stage, a, "bob", "4", HOUR));
	assert_false(take(&stage, a, "bob", "1", 11 * HOUR));
	assert_true(take(&stage, a, "j", "10", 11 * HOUR));
	assert_true(take(&stage, a, "j", "10", 11 * HOUR + SEC));
	close_key(&stage, k);
	assert_false(take(&stage, a, "k", "1", 12 * HOUR - 1));
	assert_true(take(&stage, a, "bob", "4", 12 * HOUR));
	stage_run(&stage, 36 * HOUR + 10 * SEC);
	assert_false(is_remembered(a, "bob"));
	end(&stage, a);
}

static void test_used_tokens_stay_used_when_the_number_is_changed(void **state)
{
	struct stage stage;
	struct limiter *a, *k;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00");
	assert_true(take(&stage, a, "idle", "6", 0));
	k = open_key(&stage, a, "k", 0);
	assert_int_equal(stage_try(&stage, k, 6, 0), 0);
	stage_write(&stage, a, "key_rate=4/day@00:00", 0);
	assert_int_equal(left(&stage, a, "idle", 0), -2);
	assert_int_equal(left(&stage, a, "k", 0), -2);
	stage_write(&stage, a, "key_rate=1/s 15/day@00:00 100/h@:00\nkey_burst=99", 0);
	assert_int_equal(left(&stage, a, "idle", 0), 9);
	assert_int_equal(left(&stage, a, "k", 0), 9);
	/* A day that begins later counts what was used of the one before, until that is over. */
	stage_write(&stage, a, "key_rate=20/day@06:00", 0);
	assert_int_equal(left(&stage, a, "idle", 0), 14);
	assert_int_equal(left(&stage, a, "k", 0), 14);
	assert_int_equal(left(&stage, a, "k", 18 * HOUR), 20);
	assert_int_equal(left(&stage, a, "idle", 18 * HOUR), 20);
	close_key(&stage, k);
	stage_write(&stage, a, "key_rate=max", 18 * HOUR);
	assert_true(take(&stage, a, "k", "1000", 18 * HOUR));
	end(&stage, a);
}

static void test_used_tokens_stay_used_while_keys_have_no_such_window(void **state)
{
	static const char *const between[] = {"key_rate=max", "key_rate=9/min@:00",
					      "key_rate=50/h@:00 1/h", "key_rate=tpm=7/min"};
	struct stage stage;
	struct limiter *a, *held;
	struct book book;

	(void)state;
	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++) {
		open_at_noon(&stage);
		open_book(&book);
		stage.engine.schedule.ledger = &book.ledger;
		a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00\nkeys_max=4");
		assert_true(take(&stage, a, "idle", "4", 0));
		assert_true(take(&stage, a, "seen", "5", 0));
		assert_true(take(&stage, a, "used", "6", 0));
		assert_true(take(&stage, a, "held", "7", 0));
		held = open_key(&stage, a, "held", 0);
		stage_write(&stage, a, between[i], 0);
		(void)left(&stage, a, "seen", 0);
		(void)take(&stage, a, "used", "1", 0);
		stage_write(&stage, a, "key_rate=50/month@1", 0);
		stage_write(&stage, a, "key_rate=max", 0);
		stage_write(&stage, a, "key_rate=10/day@00:00", 0);
		assert_int_equal(left(&stage, a, "idle", 0), 6);
		assert_int_equal(left(&stage, a, "seen", 0), 5);
		assert_int_equal(left(&stage, a, "used", 0), 4);
		assert_int_equal(left(&stage, a, "held", 0), 3);
		close_key(&stage, held);
		assert_int_equal(left(&stage, a, "held", 0), 3);
		assert_int_equal(left(&stage, a, "new", 0), 6);
		/* The use of those that are not remembered stays, too. */
		stage_write(&stage, a, between[i], 0);
		stage_write(&stage, a, "key_rate=50/month@1", 0);
		stage_write(&stage, a, "key_rate=max", 0);
		stage_write(&stage, a, "key_rate=10/day@00:00", 0);
		assert_int_equal(left(&stage, a, "idle", 0), 6);
		end(&stage, a);
	}
}

static void test_a_clock_that_is_put_back_brings_no_second_window(void **state)
{
	struct stage stage;
	struct limiter *a, *k;
	struct guest guest;

	(void)state;
	open_at_noon(&stage);
	a = stage_make(&stage, NULL, "a", "key_rate=10/day@00:00");
	assert_true(take(&stage, a, "idle", "10", 0));
	k = open_key(&stage, a, "k", 0);
	assert_int_equal(stage_try(&stage, k, 10, 0), 0);
	set_clock(&stage, -13 * 3600, HOUR);
	assert_false(take(&stage, a, "idle", "1", HOUR));
	assert_int_equal(stage_try(&stage, k, 1, HOUR), -EBUSY);
	/* The midnight before is not the end of that day. */
	assert_false(take(&stage, a, "idle", "1", 2 * HOUR));
	assert_int_equal(stage_ask(&stage, &guest, k, 10, 2 * HOUR), WAITING);
	/* A reader that waits follows the clock. */
	set_clock(&stage, 12 * 3600, 2 * HOUR);
	assert_int_equal(guest.done_ns, 2 * HOUR);
	assert_true(take(&stage, a, "idle", "10", 2 * HOUR));
	close_key(&stage, k);
	end(&stage, a);
}

static void test_a_key_that_is_forgotten_for_another_leaves_no_more_to_new_ones(void **state)
{
	struct stage stage;
	struct limiter *a;
	struct book book;

	(void)state;
	open_book(&book);
	open_at_noon(&stage);
	stage.engine.schedule.ledger = &book.ledger;
	a = stage_make(&stage, NULL, "a",
		       "key_rate=10/day@00:00\nkeys_max=2\nkey.bob.rate=30/day@00:00");
	book.is_full = true;
	assert_true(take(&stage, a, "k", "7", 0));
	assert_true(take(&stage, a, "j", "2", SEC));
	assert_int_equal(left(&stage, a, "l", 2 * SEC), 3);
	assert_false(is_remembered(a, "k"));
	assert_int_equal(left(&stage, a, "k", 3 * SEC), 3);
	/* One that has more of its own has used as much. */
	assert_int_equal(left(&stage, a, "bob", 3 * SEC), 23);
	assert_true(take(&stage, a, "k", "3", 3 * SEC));
	assert_int_equal(left(&stage, a, "l", 12 * HOUR), 10);
	end(&stage, a);
}

/* Begins @stage with a limiter that was kept, of @config, at noon. */
static struct limiter *restore(struct stage *stage, struct book *book, const char *config)
{
	static const struct owner owner = {.access = 0755};
	struct settings settings = SETTINGS_DEFAULT;
	struct limiter *limiter;
	char error[ERROR_TEXT];

	open_at_noon(stage);
	stage->engine.schedule.ledger = book ? &book->ledger : NULL;
	assert_int_equal(settings_parse(config, &settings, error), 0);
	assert_int_equal(change_restore(&stage->engine, stage->engine.tree.root, "a", &settings,
					&owner, NULL, 0, &limiter),
			 0);
	settings_drop(&settings);
	return limiter;
}

static void test_uses_are_known_after_a_restart(void **state)
{
	static const char CONFIG[] = "key_rate=10/day@00:00 t=5/h@:00\nkeys_max=3\n"
				     "key.bob.rate=20/day@00:00 1000/week@mon";
	struct stage stage;
	struct key_use use;
	struct limiter *a;
	struct book book;

	(void)state;
	open_book(&book);
	open_at_noon(&stage);
	stage.engine.schedule.ledger = &book.ledger;
	a = stage_make(&stage, NULL, "a", CONFIG);
	assert_true(take(&stage, a, "k", "7,t=5", 0));
	assert_true(take(&stage, a, "bob", "15", 0));
	engine_free(&stage.engine);

	a = restore(&stage, &book, CONFIG);
	assert_int_equal(left(&stage, a, "k", 0), 3);
	assert_int_equal(left(&stage, a, "bob", 0), 5);
	assert_int_equal(left(&stage, a, "new", 0), 10);
	assert_false(take(&stage, a, "k", "t=1", 0));
	/* It was only looked at, and is remembered all the same. */
	stage_run(&stage, HOUR);
	assert_true(is_remembered(a, "k"));
	assert_true(take(&stage, a, "k", "3,t=5", HOUR));
	/* Keys that make it forget others bring those nothing. */
	assert_true(take(&stage, a, "l", "1", HOUR));
	assert_true(take(&stage, a, "m", "1", HOUR));
	assert_false(take(&stage, a, "n", "1", HOUR));
	assert_false(is_remembered(a, "k"));
	assert_false(recall(&book.ledger, 7, "k", "", RATE_DAY, &use) && use.used);
	engine_free(&stage.engine);

	a = restore(&stage, &book, CONFIG);
	assert_int_equal(left(&stage, a, "k", 0), 0);
	assert_int_equal(left(&stage, a, "new", 0), 0);
	assert_int_equal(left(&stage, a, "new", 12 * HOUR), 10);
	end(&stage, a);
	assert_int_equal(book.count, 0);
}

static void test_without_a_ledger_keys_have_used_all_until_the_boundary(void **state)
{
	static const char CONFIG[] = "key_rate=10/day@00:00\nkey.bob.rate=20/day@00:00 9/h@:30";
	struct stage stage;
	struct limiter *a;
	struct book book;

	(void)state;
	for (int i = 0; i < 2; i++) {
		open_book(&book);
		book.is_full = true;
		a = restore(&stage, i ? &book : NULL, CONFIG);
		assert_false(take(&stage, a, "k", "1", 11 * HOUR));
		assert_false(take(&stage, a, "bob", "1", HOUR));
		assert_true(take(&stage, a, "k", "10", 12 * HOUR));
		assert_true(take(&stage, a, "bob", "9", 12 * HOUR));
		end(&stage, a);
	}
}

static void test_keys_without_windows_have_no_more_memory(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct key_level), 32);
	assert_true(sizeof(struct key) <= 128);
	assert_int_equal(sizeof(((struct key_rest *)0)->of[0]), 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_key_is_full_at_each_boundary_and_nothing_flows_in),
		cmocka_unit_test(test_an_idle_key_is_not_forgotten_before_its_window_is_over),
		cmocka_unit_test(test_readers_of_keys_wait_for_the_boundary),
		cmocka_unit_test(test_a_quota_and_a_pace_of_a_key_hold_together),
		cmocka_unit_test(test_windows_of_several_lengths_and_units_are_kept_apart),
		cmocka_unit_test(test_a_day_of_a_zone_has_25_hours_where_clocks_are_changed),
		cmocka_unit_test(test_a_key_has_windows_of_its_own),
		cmocka_unit_test(test_a_single_key_can_have_a_window_beside_keys_without),
		cmocka_unit_test(test_used_tokens_stay_used_when_the_number_is_changed),
		cmocka_unit_test(test_used_tokens_stay_used_while_keys_have_no_such_window),
		cmocka_unit_test(test_a_clock_that_is_put_back_brings_no_second_window),
		cmocka_unit_test(
			test_a_key_that_is_forgotten_for_another_leaves_no_more_to_new_ones),
		cmocka_unit_test(test_uses_are_known_after_a_restart),
		cmocka_unit_test(test_without_a_ledger_keys_have_used_all_until_the_boundary),
		cmocka_unit_test(test_keys_without_windows_have_no_more_memory),
	};

	zone_use(&LIBRARY_ZONES);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
