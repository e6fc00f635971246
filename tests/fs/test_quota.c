/*
 * Tests of fs/local/quota: the record that was synced last says with its reserve no less than was
 * used, however fast that was; and a file that is damaged says no less.
 */
#include "tests/core/stage.h"

#include "core/limiter/bucket.h"
#include "core/limiter/wall.h"
#include "fs/local/quota.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOON_S INT64_C(1795435200) /* 2026-11-23 12:00:00 UTC */

/* A record, as the file has it. */
struct record {
	uint64_t name[2];
	int64_t begin_s, used, reserve;
	uint64_t unused[2], sum;
};

struct keep {
	struct stage stage;
	struct limiter *limiter;
	struct quota *quota;
	char path[32], file[48];
	int directory;
	unsigned int syncs;
};

static struct record synced; /* last: a power loss leaves it */

/* The disk. */
int fdatasync(int file)
{
	assert_int_equal(pread(file, &synced, sizeof(synced), sizeof(synced)), sizeof(synced));
	return 0;
}

static void keep_open(struct keep *keep)
{
	*keep = (struct keep){.path = "/tmp/quota.XXXXXX"};
	assert_non_null(mkdtemp(keep->path));
	snprintf(keep->file, sizeof(keep->file), "%s/.windows", keep->path);
	keep->directory = open(keep->path, O_RDONLY | O_DIRECTORY);
	stage_open(&keep->stage);
	wall_set(&keep->stage.engine, NOON_S * (int64_t)SEC, 0);
	keep->limiter = stage_make(&keep->stage, NULL, "a", "rate=1000000/day@00:00");
	keep->quota = quota_open(keep->directory);
	assert_non_null(keep->quota);
	quota_restore(keep->quota, keep->limiter, 0);
	quota_begin(keep->quota, &keep->stage.engine);
}

static void keep_close(struct keep *keep)
{
	quota_close(keep->quota, false);
	assert_int_equal(unlinkat(keep->directory, ".windows", 0), 0);
	close(keep->directory);
	assert_int_equal(rmdir(keep->path), 0);
	stage_close(&keep->stage);
}

/* As the thread of fs/local does it; a sync takes no time here. */
static void keep_sync(struct keep *keep, bool early)
{
	if (!quota_foresee(keep->quota, early))
		return;
	assert_int_equal(quota_sync(keep->quota), 0);
	keep->syncs++;
}

static void keep_take(struct keep *keep, uint64_t tokens, uint64_t now_ns)
{
	assert_int_equal(stage_try(&keep->stage, keep->limiter, tokens, now_ns), 0);
	if (quota_used(keep->quota, keep->limiter))
		keep_sync(keep, true);
}

static int64_t used_by(struct keep *keep)
{
	return window_used(&keep->limiter->buckets[0]);
}

static void test_a_burst_after_a_rest_is_covered_and_synced_a_few_times(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, 400, 0);
	keep_sync(&keep, false);
	assert_int_equal(synced.used, 400);
	assert_int_equal(synced.reserve, 400);
	keep_sync(&keep, false);
	assert_int_equal(synced.reserve, 1);
	keep.syncs = 0;
	for (int i = 0; i < 1000; i++) {
		keep_take(&keep, 1, SEC);
		assert_in_range(synced.used + synced.reserve, used_by(&keep), 3400);
	}
	assert_in_range(keep.syncs, 5, 20);
	keep_sync(&keep, false);
	assert_int_equal(synced.used, 1400);
	assert_int_equal(synced.reserve, 1000);
	keep_sync(&keep, false);
	assert_int_equal(synced.reserve, 1);
	keep.syncs = 0;
	keep_sync(&keep, false);
	assert_int_equal(keep.syncs, 0);
	keep_close(&keep);
}

static void test_random_takes_are_covered_at_every_instant(void **state)
{
	struct keep keep;
	uint64_t now_ns = 0;

	(void)state;
	keep_open(&keep);
	srand(1);
	for (int i = 0; i < 20000; i++) {
		now_ns += MS;
		/* Now and then at rest, now and then fast. */
		if (rand() % 1000 < (i / 3000 % 2 ? 5 : 600))
			keep_take(&keep, (uint64_t)(rand() % 40) + 1, now_ns);
		if (i % 1000 == 0)
			keep_sync(&keep, false);
		assert_true(synced.used + synced.reserve >= used_by(&keep));
	}
	keep_close(&keep);
}

/* Returns what is left of the windows of a daemon that starts with the file as it is. */
static uint64_t left_after_start(struct keep *keep, bool begins)
{
	static const struct owner owner = {.access = 0755};
	struct settings settings = *limiter_settings(keep->limiter);
	struct limiter *limiter;
	struct stage stage;
	struct quota *quota;
	uint64_t left;

	stage_open(&stage);
	wall_set(&stage.engine, NOON_S * (int64_t)SEC, 0);
	assert_int_equal(change_restore(&stage.engine, stage.engine.tree.root, "a", &settings,
					&owner, NULL, 0, &limiter),
			 0);
	quota = quota_open(keep->directory);
	assert_non_null(quota);
	quota_restore(quota, limiter, 0);
	left = bucket_tokens(&limiter->buckets[0]);
	if (begins)
		quota_begin(quota, &stage.engine);
	quota_close(quota, false);
	stage_close(&stage);
	return left;
}

static uint64_t left_after_cut(struct keep *keep, off_t bytes)
{
	assert_int_equal(truncate(keep->file, bytes), 0);
	return left_after_start(keep, false);
}

static void test_a_file_that_is_cut_off_gives_nothing_twice(void **state)
{
	struct keep keep;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, 400, 0);
	assert_int_equal(left_after_cut(&keep, 2 * QUOTA_BYTES), 999600);
	for (off_t bytes = 2 * QUOTA_BYTES - 1; bytes > QUOTA_BYTES; bytes--)
		assert_int_equal(left_after_cut(&keep, bytes), 0);
	for (off_t bytes = QUOTA_BYTES - 1; bytes > 0; bytes--)
		assert_int_equal(left_after_cut(&keep, bytes), 0);
	keep_close(&keep);
}

static void test_records_behind_a_damaged_header_count_no_more(void **state)
{
	struct keep keep;
	struct limiter *other;
	int file;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, 400, 0);
	/* In the file the record of another limiter comes first. */
	quota_forget(keep.quota, keep.limiter->id);
	other = stage_make(&keep.stage, NULL, "b", "rate=9/day@00:00");
	quota_follow(keep.quota, other);
	quota_follow(keep.quota, keep.limiter);
	assert_int_equal(left_after_start(&keep, false), 999600);
	file = open(keep.file, O_WRONLY);
	assert_int_equal(pwrite(file, "?", 1, 0), 1);
	close(file);
	assert_int_equal(left_after_start(&keep, true), 0);
	assert_int_equal(left_after_start(&keep, true), 0);
	keep_close(&keep);
}

static void test_a_damage_is_over_with_the_next_start(void **state)
{
	struct keep keep;
	struct stat status;

	(void)state;
	keep_open(&keep);
	keep_take(&keep, 400, 0);
	assert_int_equal(truncate(keep.file, 3 * QUOTA_BYTES - 1), 0);
	assert_int_equal(left_after_start(&keep, true), 999600);
	assert_int_equal(stat(keep.file, &status), 0);
	assert_int_equal(status.st_size, 2 * QUOTA_BYTES);
	keep_close(&keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_burst_after_a_rest_is_covered_and_synced_a_few_times),
		cmocka_unit_test(test_random_takes_are_covered_at_every_instant),
		cmocka_unit_test(test_a_file_that_is_cut_off_gives_nothing_twice),
		cmocka_unit_test(test_records_behind_a_damaged_header_count_no_more),
		cmocka_unit_test(test_a_damage_is_over_with_the_next_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
