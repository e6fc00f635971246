/* Tests of tile and rest: names of tiles, printed and parsed; tiles that are split and merged. */
#include "core/fleet/tile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const i128 NANO = 1000000000;

/* Reads @name, which must be printed as it was. */
static struct tile tile_of(const char *name)
{
	struct tile tile;
	char again[TILE_TEXT];

	assert_true(tile_parse(name, &tile));
	tile_print(&tile, again);
	assert_string_equal(again, name);
	return tile;
}

static struct tiles tiles_of(const char *const *names, uint32_t count, uint32_t leaves)
{
	struct tiles tiles;

	assert_true(tiles_read(&tiles, (char *const *)names, count, leaves));
	return tiles;
}

static void assert_tile(const struct tiles *tiles, uint32_t at, const char *name)
{
	char text[TILE_TEXT];

	assert_true(at < tiles->count);
	tile_print(&tiles->list[at], text);
	assert_string_equal(text, name);
}

static void test_a_name_says_all_of_a_tile(void **state)
{
	struct tile tile = tile_of("12-4095.abcdefghijk27");

	(void)state;
	assert_int_equal(tile.first, 12);
	assert_int_equal(tile.last, 4095);
	assert_int_equal(tile_size(&tile), 4084);
	assert_true(tile_is_of(&tile, "abcdefghijk27"));
	assert_false(tile_is_clean(&tile));
	tile = tile_of("0-99+7+3:20.5,-0.000000001,0");
	assert_true(tile_is_clean(&tile));
	assert_int_equal(tile.epoch, 7);
	assert_int_equal(tile.rest.saved, 3);
	assert_int_equal(tile.rest.count, 3);
	assert_true(tile.rest.nano[0] == 20 * NANO + NANO / 2);
	assert_true(tile.rest.nano[1] == -1);
	assert_true(tile.rest.nano[2] == 0);
	tile = tile_of("7+4294967295+9223372036854775807");
	assert_int_equal(tile.first, 7);
	assert_int_equal(tile.last, 7);
	assert_int_equal(tile.rest.count, 0);
}

static void test_the_longest_name_fits(void **state)
{
	struct tile tile = {.first = 4094,
			    .last = 4095,
			    .epoch = UINT32_MAX,
			    .rest = {.saved = INT64_MAX, .count = LIMITS_MAX}};
	char text[TILE_TEXT];

	(void)state;
	for (int i = 0; i < LIMITS_MAX; i++) {
		tile.rest.nano[i] = ((i128)1 << 61) * NANO - 1;
		tile.rest.begin_s[i] = 9999999999;
		tile.rest.windows |= 1u << i;
	}
	tile_print(&tile, text);
	assert_in_range(strlen(text), TILE_TEXT - 16, TILE_TEXT - 1);
	(void)tile_of(text);
}

static void test_any_other_text_is_refused(void **state)
{
	static const char *const names[] = {
		"",
		"-",
		"7",
		"7.",
		"7+",
		"7+1",
		"7+1+",
		"+1+1",
		".abcdefghijk27",
		"7.abcdefghijk2",
		"7.abcdefghijk271",
		"7.abcdefghijk2O",
		"4096.abcdefghijk27",
		"1-4096+1+1",
		"7-7+1+1",
		"8-7+1+1",
		"07+1+1",
		"7-08+1+1",
		"7+01+1",
		"7+4294967296+1",
		"7+1+0",
		"7+1+01",
		"7+1+9223372036854775808",
		"7+1+1:",
		"7+1+1:01",
		"7+1+1:1.",
		"7+1+1:1.0",
		"7+1+1:1.50",
		"7+1+1:1.0000000001",
		"7+1+1:-0",
		"7+1+1:-",
		"7+1+1:+1",
		"7+1+1:1,",
		"7+1+1,1",
		"7+1+1:1:1",
		"7+1+1: 1",
		"7+1+1:1 ",
		"7+1+1:2305843009213693952",
		"7+1+1:1,2,3,4,5,6,7,8,9",
		"7.abcdefghijk27+1+1",
		"7+1+1.abcdefghijk27",
		" 7+1+1",
	};
	struct tile tile;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (tile_parse(names[i], &tile))
			fail_msg("'%s' was read as a tile", names[i]);
	}
}

static void test_a_list_in_any_order_covers_the_leaves(void **state)
{
	const char *const names[] = {"60-99+1+1", "0-9.abcdefghijk27", "10-59+2+1"};
	struct tiles tiles = tiles_of(names, 3, 100);

	(void)state;
	assert_true(tiles.whole);
	assert_tile(&tiles, 0, "0-9.abcdefghijk27");
	assert_tile(&tiles, 1, "10-59+2+1");
	assert_tile(&tiles, 2, "60-99+1+1");
	assert_int_equal(tiles_find(&tiles, 0), 0);
	assert_int_equal(tiles_find(&tiles, 59), 1);
	assert_int_equal(tiles_find(&tiles, 60), 2);
	assert_int_equal(tiles_find(&tiles, 100), 3);
	tiles_free(&tiles);
}

static void test_a_list_that_was_read_while_it_changed_is_not_whole(void **state)
{
	const char *const gap[] = {"0-9+1+1", "20-99+1+1"};
	const char *const overlap[] = {"0-9+1+1", "5-99+1+1", "10-99+1+1"};
	const char *const beyond[] = {"0-99+1+1", "100-199+1+1", "nonsense"};
	const char *const open[] = {"0-98+1+1"};
	struct tiles tiles = tiles_of(gap, 2, 100);

	(void)state;
	assert_false(tiles.whole);
	assert_int_equal(tiles.count, 2);
	assert_int_equal(tiles_find(&tiles, 15), 1);
	tiles_free(&tiles);
	tiles = tiles_of(overlap, 3, 100);
	assert_false(tiles.whole);
	assert_int_equal(tiles.count, 2);
	assert_tile(&tiles, 1, "10-99+1+1");
	tiles_free(&tiles);
	tiles = tiles_of(beyond, 3, 100);
	assert_true(tiles.whole);
	assert_int_equal(tiles.count, 1);
	tiles_free(&tiles);
	tiles = tiles_of(open, 1, 100);
	assert_false(tiles.whole);
	tiles_free(&tiles);
	tiles = tiles_of(NULL, 0, 100);
	assert_false(tiles.whole);
	tiles_free(&tiles);
}

static void test_each_holder_is_told_once_with_all_its_leaves(void **state)
{
	const char *const names[] = {"0-9.bbcdefghijk27", "10.abcdefghijk27", "11-14+1+1",
				     "15-19.bbcdefghijk27", "20-24.cbcdefghijk27"};
	struct tiles tiles = tiles_of(names, 5, 25);
	struct tile_holder holders[5];

	(void)state;
	assert_int_equal(tiles_holders(&tiles, holders), 3);
	assert_string_equal(holders[0].hid, "abcdefghijk27");
	assert_int_equal(holders[0].leaves, 1);
	assert_string_equal(holders[1].hid, "bbcdefghijk27");
	assert_int_equal(holders[1].leaves, 15);
	assert_int_equal(holders[2].leaves, 5);
	tiles_free(&tiles);
}

static void test_a_split_shares_what_is_left_and_loses_nothing(void **state)
{
	const char *const names[] = {"0-2+4+9:10,-10"};
	struct tiles tiles = tiles_of(names, 1, 3);

	(void)state;
	assert_true(tiles_cut(&tiles, 0));
	assert_int_equal(tiles.count, 1);
	assert_true(tiles_cut(&tiles, 1));
	assert_tile(&tiles, 0, "0+4+9:3.333333334,-3.333333333");
	assert_tile(&tiles, 1, "1-2+4+9:6.666666666,-6.666666667");
	tiles_free(&tiles);
}

static void test_a_merge_adds_up_and_has_the_older_epoch(void **state)
{
	const char *const names[] = {"0-2+4+9:10", "3-5+3+9:-2.5", "6-9+5+9:0"};
	const struct rest full = {.saved = 9, .count = 1, .nano = {100 * NANO}};
	struct tiles tiles = tiles_of(names, 3, 10);

	(void)state;
	tiles_merge(&tiles, 0, &full);
	tiles_merge(&tiles, 0, &full);
	assert_int_equal(tiles.count, 1);
	assert_tile(&tiles, 0, "0-9+3+9:7.5");
	tiles_free(&tiles);
}

static void test_tiles_of_which_nothing_was_taken_are_full(void **state)
{
	const char *const names[] = {"0-2+4+1", "3-5+4+1", "6-9+4+1:1"};
	const struct rest full = {.saved = 1, .count = 1, .nano = {100 * NANO}};
	struct tiles tiles = tiles_of(names, 3, 10);

	(void)state;
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-5+4+1");
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-9+4+1:61");
	tiles_free(&tiles);
}

static void test_of_what_was_left_under_other_settings_debts_count(void **state)
{
	const char *const names[] = {"0-4+4+2:50,-8", "5-8+4+1", "9+4+3:1,1"};
	const struct rest full = {.saved = 3, .count = 2, .nano = {100 * NANO, 100 * NANO}};
	struct tiles tiles = tiles_of(names, 3, 10);

	(void)state;
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-8+4+3:0,-8");
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-9+4+3:1,-7");
	tiles_free(&tiles);
}

static void test_amounts_are_what_buckets_take(void **state)
{
	static const i128 amounts[] = {0,	   1,		-1,	     999999999,
				       1000000000, -1000000000, 20500000000, -2500000001};
	struct rest rest = {.saved = 1, .count = 1}, again = rest;

	(void)state;
	for (size_t i = 0; i < sizeof(amounts) / sizeof(amounts[0]); i++) {
		struct bucket_part part;

		rest.nano[0] = amounts[i];
		part = rest_part(&rest, 0);
		assert_in_range(part.nano, 0, 999999999);
		rest_set_part(&again, 0, &part);
		assert_true(again.nano[0] == amounts[i]);
	}
	rest.nano[0] = -2500000001;
	assert_int_equal(rest_part(&rest, 0).tokens, -3);
}

static void test_a_name_says_what_was_used_of_which_window(void **state)
{
	struct tile tile = tile_of("0-99+7+3:20.5@1732320000,0@?,7,0@0");

	(void)state;
	assert_int_equal(tile.rest.count, 4);
	assert_int_equal(tile.rest.windows, 11);
	assert_true(tile.rest.nano[0] == 20 * NANO + NANO / 2);
	assert_int_equal(tile.rest.begin_s[0], 1732320000);
	assert_true(tile.rest.begin_s[1] == WINDOW_UNKNOWN);
	assert_false(rest_is_window(&tile.rest, 2));
	assert_int_equal(tile.rest.begin_s[3], 0);
	assert_false(tile_parse("0+7+3:-1@1732320000", &tile));
	assert_false(tile_parse("0+7+3:1@01732320000", &tile));
	assert_false(tile_parse("0+7+3:1@", &tile));
	assert_false(tile_parse("0+7+3:1@17323200000", &tile));
	assert_false(tile_parse("0+7+3:1@??", &tile));
	assert_false(tile_parse("0+7+3:1@-5", &tile));
}

static void test_of_tiles_that_are_merged_the_later_window_counts(void **state)
{
	const struct rest full = {.saved = 3, .count = 1, .windows = 1};
	const char *const names[] = {"0-9+2+3:4@100", "10-19+2+3:5@100", "20-29+2+3:7@200",
				     "30-39+2+3", "40-49+2+2:1@300"};
	struct tiles tiles = tiles_of(names, 5, 50);

	(void)state;
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-19+2+3:9@100");
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-29+2+3:7@200");
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-39+2+3:7@200");
	/* Of another time it is not known. */
	tiles_merge(&tiles, 0, &full);
	assert_tile(&tiles, 0, "0-49+2+3:0@?");
	tiles_free(&tiles);
}

static void test_a_split_shares_what_was_used_of_a_window(void **state)
{
	const char *const names[] = {"0-9+2+3:7@100"};
	struct tiles tiles = tiles_of(names, 1, 10);

	(void)state;
	assert_true(tiles_cut(&tiles, 4));
	assert_tile(&tiles, 0, "0-3+2+3:2.8@100");
	assert_tile(&tiles, 1, "4-9+2+3:4.2@100");
	tiles_free(&tiles);
}

static void test_only_equal_states_side_by_side_merge(void **state)
{
	const char *const names[] = {"0.abcdefghijk27", "1.abcdefghijk27", "2.bbcdefghijk27",
				     "3+1+1",		"4+1+1",	   "6+1+1"};
	struct tiles tiles = tiles_of(names, 6, 7);

	(void)state;
	assert_true(tiles_can_merge(&tiles, 0));
	assert_false(tiles_can_merge(&tiles, 1));
	assert_false(tiles_can_merge(&tiles, 2));
	assert_true(tiles_can_merge(&tiles, 3));
	assert_false(tiles_can_merge(&tiles, 4));
	assert_false(tiles_can_merge(&tiles, 5));
	tiles.list[1].fixed = true;
	assert_false(tiles_can_merge(&tiles, 0));
	tiles_free(&tiles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name_says_all_of_a_tile),
		cmocka_unit_test(test_the_longest_name_fits),
		cmocka_unit_test(test_any_other_text_is_refused),
		cmocka_unit_test(test_a_list_in_any_order_covers_the_leaves),
		cmocka_unit_test(test_a_list_that_was_read_while_it_changed_is_not_whole),
		cmocka_unit_test(test_each_holder_is_told_once_with_all_its_leaves),
		cmocka_unit_test(test_a_split_shares_what_is_left_and_loses_nothing),
		cmocka_unit_test(test_a_merge_adds_up_and_has_the_older_epoch),
		cmocka_unit_test(test_tiles_of_which_nothing_was_taken_are_full),
		cmocka_unit_test(test_of_what_was_left_under_other_settings_debts_count),
		cmocka_unit_test(test_amounts_are_what_buckets_take),
		cmocka_unit_test(test_a_name_says_what_was_used_of_which_window),
		cmocka_unit_test(test_of_tiles_that_are_merged_the_later_window_counts),
		cmocka_unit_test(test_a_split_shares_what_was_used_of_a_window),
		cmocka_unit_test(test_only_equal_states_side_by_side_merge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
