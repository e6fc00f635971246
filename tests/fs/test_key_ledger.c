/*
 * Tests of fs/state/key_ledger: the file that was synced last says with its reserve no less than
 * any key has used, and memory that a killed server leaves says it exactly.
 */
#include "tests/core/stage.h"

#include "core/limiter/key_units.h"
#include "core/limiter/wall.h"
#include "fs/state/key_ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOON_S INT64_C(1795435200) /* 2026-11-23 12:00:00 UTC */
#define HOUR   (3600 * SEC)

enum { KEYS = 5, NAME_ROOM = 24 };

static const char CONFIG[] = "key_rate=1000000/day@00:00";

struct keep {
	struct stage stage;
	struct limiter *limiter;
	struct key_ledger *ledger;
	struct key_ledger_memory *memory;
	char path[32], file[48];
	int directory;
	unsigned int syncs;
};

static char synced[48]; /* path of a copy of the file as it was synced */
static const struct keep *watched;

static void copy_file(const char *from, const char *to)
{
	static char bytes[(KEY_LEDGER_RECORDS + 1) * KEY_LEDGER_BYTES];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t got = read(in, bytes, sizeof(bytes));

	assert_true(got >= 0);
	assert_int_equal(write(out, bytes, (size_t)got), got);
	close(in);
	close(out);
}

/* The disk: of the ledger that is watched the bytes are kept as they were synced. */
int fdatasync(int file)
{
	(void)file;
	if (watched)
		copy_file(watched->file, synced);
	return 0;
}

static void begin_server(struct keep *keep, bool succeeds)
{
	struct schedule *schedule = &keep->stage.engine.schedule;

	stage_open(&keep->stage);
	wall_set(&keep->stage.engine, NOON_S * (int64_t)SEC, 0);
	keep->ledger = key_ledger_new(keep->memory, &schedule->pool.wall, succeeds);
	assert_non_null(keep->ledger);
	schedule->ledger = key_ledger_interface(keep->ledger);
}

/* Restores the limiter "a". */
static void restore(struct keep *keep)
{
	static const struct owner owner = {.access = 0755};
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];

	assert_int_equal(settings_parse(CONFIG, &settings, error), 0);
	assert_int_equal(change_restore(&keep->stage.engine, keep->stage.engine.tree.root, "a",
					&settings, &owner, NULL, 0, &keep->limiter),
			 0);
	key_ledger_begin(keep->ledger);
}

static void open_directory(struct keep *keep)
{
	*keep = (struct keep){.path = "/tmp/keys.XXXXXX"};
	assert_non_null(mkdtemp(keep->path));
	snprintf(keep->file, sizeof(keep->file), "%s/.keys", keep->path);
	keep->directory = open(keep->path, O_RDONLY | O_DIRECTORY);
	keep->memory = calloc(1, sizeof(*keep->memory));
	assert_non_null(keep->memory);
}

static void keep_open(struct keep *keep)
{
	open_directory(keep);
	begin_server(keep, false);
	assert_int_equal(key_ledger_load(keep->ledger, keep->directory), 0);
	key_ledger_begin(keep->ledger);
	keep->limiter = stage_make(&keep->stage, NULL, "a", CONFIG);
}

/* Ends the server; the memory stays. */
static void end_server(struct keep *keep, bool clean)
{
	key_ledger_close(keep->ledger, clean);
	engine_free(&keep->stage.engine);
}

static void keep_close(struct keep *keep)
{
	end_server(keep, false);
	unlinkat(keep->directory, ".keys", 0);
	close(keep->directory);
	assert_int_equal(rmdir(keep->path), 0);
	free(keep->memory);
}

/* As the thread of fs/local does it; a sync takes no time here. */
static void keep_sync(struct keep *keep, bool early)
{
	struct key_batch batch;
	int err;

	assert_int_equal(key_ledger_collect(keep->ledger, early, &batch), 0);
	keep->syncs += batch.count != 0;
	err = key_ledger_write(keep->ledger, &batch);
	key_ledger_written(keep->ledger, &batch, err);
}

static struct limiter *open_key(struct keep *keep, const char *name, uint64_t now_ns)
{
	struct limiter *opened;
	struct key *key;

	stage_run(&keep->stage, now_ns);
	assert_int_equal(engine_key(&keep->stage.engine, keep->limiter, name, 0, now_ns, &key), 0);
	opened = keys_open(&keep->stage.engine.schedule, keep->limiter, key);
	assert_non_null(opened);
	return opened;
}

static void keep_take(struct keep *keep, const char *name, uint64_t tokens, uint64_t now_ns)
{
	struct limiter *key = open_key(keep, name, now_ns);

	assert_int_equal(stage_try(&keep->stage, key, tokens, now_ns), 0);
	key_units_note(key);
	keys_close(&keep->stage.engine.schedule, key);
	if (key_ledger_hurries(keep->ledger))
		keep_sync(keep, true);
}

static int64_t used_by(struct keep *keep, const char *name, uint64_t now_ns)
{
	struct limiter *key = open_key(keep, name, now_ns);
	int64_t used;

	engine_refresh(&keep->stage.engine, key, now_ns);
	used = key_window_use(&key->buckets[0]).used;
	keys_close(&keep->stage.engine.schedule, key);
	return used;
}

/* Tells what a daemon has of @name that starts with the file at @path, in @other. */
static void start_with(struct keep *other, const char *path, int outcome)
{
	open_directory(other);
	copy_file(path, other->file);
	begin_server(other, false);
	assert_int_equal(key_ledger_load(other->ledger, other->directory), outcome);
	restore(other);
}

static void test_a_successor_knows_exactly_what_was_used(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	keep_take(&keep, "j", 1, 0);
	end_server(&keep, false);
	assert_true(key_ledger_is_sound(keep.memory));

	begin_server(&keep, true);
	assert_int_equal(key_ledger_load(keep.ledger, keep.directory), 0);
	restore(&keep);
	assert_int_equal(used_by(&keep, "k", 0), 400);
	assert_int_equal(used_by(&keep, "j", 0), 1);
	assert_int_equal(used_by(&keep, "new", 0), 0);
	assert_int_equal(used_by(&keep, "k", 12 * HOUR), 0);
	keep_close(&keep);
}

static void test_a_record_is_whole_wherever_the_server_is_killed(void **state)
{
	struct keep keep;
	struct key_ledger_record *record;
	uint32_t i = 0;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	end_server(&keep, false);
	while (keep.memory->records[i].number)
		i++;
	record = &keep.memory->records[i];
	keep.memory->journal = *record;
	keep.memory->journal.used = 500;
	keep.memory->journal_at = i + 1;
	memset(record, 0xff, sizeof(*record) / 2);
	assert_true(key_ledger_is_sound(keep.memory));

	begin_server(&keep, true);
	restore(&keep);
	assert_int_equal(used_by(&keep, "k", 0), 500);
	keep_close(&keep);
}

static void test_memory_that_cannot_be_is_told(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	keep.memory->records[1].used = -1;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->records[1].used = 1;
	keep.memory->records[1].end_s = INT64_MAX;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->records[1].begin_s = INT64_MAX;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->records[1].begin_s = INT64_MIN;
	keep.memory->records[1].end_s = NOON_S;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->records[1].begin_s = NOON_S;
	keep.memory->records[0].number++;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->records[0].number--;
	keep.memory->count = KEY_LEDGER_RECORDS + 1;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->count = 2;
	keep.memory->journal_at = 3;
	assert_false(key_ledger_is_sound(keep.memory));
	keep.memory->journal_at = 0;
	assert_true(key_ledger_is_sound(keep.memory));
	keep_close(&keep);
}

static void test_where_a_predecessor_left_nothing_keys_have_used_all(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	end_server(&keep, false);
	memset(keep.memory, 0, sizeof(*keep.memory));

	begin_server(&keep, true);
	restore(&keep);
	assert_int_equal(used_by(&keep, "k", 0), 1000000);
	assert_int_equal(used_by(&keep, "k", 12 * HOUR), 0);
	keep_close(&keep);
}

static void test_a_clean_end_costs_nothing(void **state)
{
	struct keep keep, other;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	key_ledger_close(keep.ledger, true);
	start_with(&other, keep.file, 0);
	assert_int_equal(used_by(&other, "k", 0), 400);
	assert_int_equal(used_by(&other, "new", 0), 0);
	keep_close(&other);
	keep.ledger = NULL;
	keep_close(&keep);
}

static void test_the_reserve_counts_for_every_key_after_any_other_end(void **state)
{
	struct keep keep, other;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	keep_sync(&keep, false);
	keep_sync(&keep, false);
	keep_sync(&keep, false);
	keep.syncs = 0;
	keep_sync(&keep, false);
	assert_int_equal(keep.syncs, 0);
	assert_false(key_ledger_is_kept(keep.ledger));
	start_with(&other, keep.file, 0);
	assert_int_equal(used_by(&other, "k", 0), 401);
	assert_int_equal(used_by(&other, "new", 0), 1);
	/* It is no more when that server ends so, too, before it has written anything. */
	end_server(&other, false);
	memset(other.memory, 0, sizeof(*other.memory));
	begin_server(&other, false);
	assert_int_equal(key_ledger_load(other.ledger, other.directory), 0);
	restore(&other);
	assert_int_equal(used_by(&other, "k", 0), 401);
	keep_close(&other);
	keep_close(&keep);
}

/* The file with all that was written, and with what was synced: the disk may have either. */
static void check_cover(struct keep *keep, const int64_t *used, uint64_t now_ns)
{
	const char *const files[] = {keep->file, synced};
	char name[NAME_ROOM];
	struct keep other;

	(void)now_ns;
	watched = NULL;
	for (int i = 0; i < 2; i++) {
		start_with(&other, files[i], 0);
		for (int k = 0; k < KEYS; k++) {
			snprintf(name, sizeof(name), "%d", k);
			assert_true(used_by(&other, name, 0) >= used[k]);
		}
		keep_close(&other);
	}
	watched = keep;
}

static void test_random_takes_are_covered_at_every_instant(void **state)
{
	int64_t used[KEYS] = {0};
	char name[NAME_ROOM];
	struct keep keep;

	(void)state;
	keep_open(&keep);
	watched = &keep;
	snprintf(synced, sizeof(synced), "%s.synced", keep.path);
	keep_sync(&keep, true);
	srand(1);
	for (int i = 0; i < 400; i++) {
		/* Keys come one after the other; now and then at rest, now and then fast. */
		int k = rand() % (i / 80 + 1);
		uint64_t tokens = (uint64_t)(rand() % (i / 50 % 2 ? 3 : 40)) + 1;

		snprintf(name, sizeof(name), "%d", k);
		if (rand() % 3) {
			keep_take(&keep, name, tokens, 0);
			used[k] += (int64_t)tokens;
		}
		if (i % 10 == 0)
			keep_sync(&keep, false);
		check_cover(&keep, used, 0);
	}
	watched = NULL;
	unlink(synced);
	*synced = '\0';
	keep_close(&keep);
}

static void test_syncs_of_many_takes_are_few(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	for (int i = 0; i < 1000; i++)
		keep_take(&keep, "k", 1, 0);
	assert_in_range(keep.syncs, 5, 20);
	keep_close(&keep);
}

static void assert_nothing_is_had_twice(const char *file)
{
	struct keep other;

	start_with(&other, file, -EBADMSG);
	assert_true(used_by(&other, "k", 0) == 400 || used_by(&other, "k", 0) == 1000000);
	assert_true(used_by(&other, "j", 0) == 500 || used_by(&other, "j", 0) == 1000000);
	assert_int_equal(used_by(&other, "new", 0), 1000000);
	keep_close(&other);
}

static void test_a_file_that_is_cut_off_or_changed_gives_nothing_twice(void **state)
{
	char cut[64];
	struct keep keep;
	struct stat status;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	keep_take(&keep, "j", 500, 0);
	key_ledger_close(keep.ledger, true);
	keep.ledger = NULL;
	assert_int_equal(stat(keep.file, &status), 0);
	snprintf(cut, sizeof(cut), "%s.cut", keep.path);
	for (off_t bytes = 1; bytes < status.st_size; bytes++) {
		int file;
		char byte;

		copy_file(keep.file, cut);
		assert_int_equal(truncate(cut, bytes), 0);
		/* At the end of a record it may be all that there was. */
		if (bytes % KEY_LEDGER_BYTES)
			assert_nothing_is_had_twice(cut);
		copy_file(keep.file, cut);
		file = open(cut, O_RDWR);
		assert_int_equal(pread(file, &byte, 1, bytes), 1);
		byte = (char)~byte;
		assert_int_equal(pwrite(file, &byte, 1, bytes), 1);
		close(file);
		assert_nothing_is_had_twice(cut);
	}
	unlink(cut);
	keep_close(&keep);
}

static void test_a_full_ledger_says_that_keys_have_used_all(void **state)
{
	char name[NAME_ROOM];
	struct keep keep;

	(void)state;
	keep_open(&keep);
	for (int i = 0; i < KEY_LEDGER_RECORDS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		keep_take(&keep, name, 1, 0);
	}
	assert_int_equal(keep.memory->count, KEY_LEDGER_RECORDS);
	end_server(&keep, false);
	begin_server(&keep, true);
	restore(&keep);
	assert_int_equal(used_by(&keep, "0", 0), 1);
	assert_int_equal(used_by(&keep, name, 0), 1000000);
	/* Those of the day before make room. */
	for (int i = 0; i < KEY_LEDGER_RECORDS / 2; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		keep_take(&keep, name, 2, 12 * HOUR);
	}
	assert_int_equal(used_by(&keep, "x0", 12 * HOUR), 2);
	end_server(&keep, false);
	begin_server(&keep, true);
	wall_set(&keep.stage.engine, (NOON_S + 12 * 3600) * (int64_t)SEC, 0);
	restore(&keep);
	assert_int_equal(used_by(&keep, "x0", 0), 2);
	assert_int_equal(used_by(&keep, "new", 0), 0);
	keep_close(&keep);
}

static void test_a_renamed_limiter_keeps_its_uses_and_a_new_one_has_none(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, "k", 400, 0);
	assert_int_equal(stage_change(&keep.stage, keep.limiter, CHANGE_RENAME, "b", 0), 0);
	key_ledger_follow(keep.ledger, keep.limiter);
	keep_take(&keep, "j", 300, 0);
	keep.limiter = stage_make(&keep.stage, NULL, "a", CONFIG);
	keep_take(&keep, "k", 7, 0);
	stage_remove(&keep.stage, keep.limiter);
	keep.limiter = tree_find(&keep.stage.engine.tree, keep.stage.engine.tree.root, "b");
	assert_int_equal(stage_change(&keep.stage, keep.limiter, CHANGE_RENAME, "a", 0), 0);
	key_ledger_follow(keep.ledger, keep.limiter);
	end_server(&keep, false);
	begin_server(&keep, true);
	restore(&keep);
	assert_int_equal(used_by(&keep, "k", 0), 400);
	assert_int_equal(used_by(&keep, "j", 0), 300);
	keep_close(&keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_successor_knows_exactly_what_was_used),
		cmocka_unit_test(test_a_record_is_whole_wherever_the_server_is_killed),
		cmocka_unit_test(test_memory_that_cannot_be_is_told),
		cmocka_unit_test(test_where_a_predecessor_left_nothing_keys_have_used_all),
		cmocka_unit_test(test_a_clean_end_costs_nothing),
		cmocka_unit_test(test_the_reserve_counts_for_every_key_after_any_other_end),
		cmocka_unit_test(test_random_takes_are_covered_at_every_instant),
		cmocka_unit_test(test_syncs_of_many_takes_are_few),
		cmocka_unit_test(test_a_file_that_is_cut_off_or_changed_gives_nothing_twice),
		cmocka_unit_test(test_a_full_ledger_says_that_keys_have_used_all),
		cmocka_unit_test(test_a_renamed_limiter_keeps_its_uses_and_a_new_one_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
