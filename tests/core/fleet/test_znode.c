/* Tests of znode: paths and names of the coordinator's nodes, printed and parsed. */
#include "core/fleet/znode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char HID[] = "abcdefghijk27";

static void test_each_kind_of_path_is_read_as_it_was_printed(void **state)
{
	static const struct {
		enum znode_kind kind;
		const char *path;
	} plain[] = {
		{ZNODE_LAYOUT, "/v"},	{ZNODE_GLOBALS, "/g"},	       {ZNODE_RECORDS, "/c"},
		{ZNODE_RECORD, "/c/7"}, {ZNODE_HOSTS, "/h"},	       {ZNODE_CLAIMS_OF, "/w"},
		{ZNODE_CLAIMS, "/w/7"}, {ZNODE_TILES_OF, "/t"},	       {ZNODE_RESERVES_OF, "/r"},
		{ZNODE_ENDS_OF, "/d"},	{ZNODE_AGREED_RATES_OF, "/a"}, {ZNODE_AGREED_RATE, "/a/7"},
	};
	char path[ZNODE_TEXT];
	struct znode znode;

	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		znode_path(plain[i].kind, 7, path);
		assert_string_equal(path, plain[i].path);
		assert_true(znode_parse(path, &znode));
		assert_int_equal(znode.kind, plain[i].kind);
	}
	assert_true(znode_parse("/w/18446744073709551615", &znode));
	assert_true(znode.id == UINT64_MAX);
}

static void test_a_path_with_a_name_keeps_it(void **state)
{
	char path[ZNODE_TEXT];
	struct znode znode;

	(void)state;
	znode_path_named(ZNODE_HOST, 0, HID, path);
	assert_string_equal(path, "/h/abcdefghijk27");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_HOST);
	assert_string_equal(znode.name, HID);
	znode_path_named(ZNODE_CLAIM, 12, "abcdefghijk27-3-1-0000000004", path);
	assert_string_equal(path, "/w/12/abcdefghijk27-3-1-0000000004");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_CLAIM);
	assert_true(znode.id == 12);
	assert_string_equal(znode.name, "abcdefghijk27-3-1-0000000004");
}

static void test_tiles_and_claims_of_a_key_lie_in_a_folder_of_its_hash(void **state)
{
	char path[ZNODE_TEXT];
	struct znode znode;
	uint64_t hash;

	(void)state;
	znode_path_key(7, 3, UINT64_C(0x12ab), NULL, path);
	assert_string_equal(path, "/k/7-3/00000000000012ab");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_KEY);
	assert_true(znode.id == 7 && znode.cut == 3);
	assert_true(znode_key_parse(znode.name, &hash));
	assert_true(hash == 0x12ab);
	assert_false(znode_key_parse("12ab", &hash));
	assert_false(znode_key_parse("00000000000012aX", &hash));
	assert_false(znode_key_parse("00000000000012ab0", &hash));
	znode_path_key(7, 3, UINT64_C(0x12ab), "0-89.abcdefghijk27", path);
	assert_string_equal(path, "/k/7-3/00000000000012ab/0-89.abcdefghijk27");
}

static void test_tiles_lie_in_a_folder_of_their_limiter_and_cut(void **state)
{
	char path[ZNODE_TEXT];
	struct znode znode;

	(void)state;
	znode_path_tile(5, 12, false, NULL, path);
	assert_string_equal(path, "/t/5-12");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_TILES);
	assert_int_equal(znode.id, 5);
	assert_int_equal(znode.cut, 12);
	znode_path_tile(5, 12, false, "0-99+7+3:20.5", path);
	assert_string_equal(path, "/t/5-12/0-99+7+3:20.5");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_TILE);
	assert_int_equal(znode.cut, 12);
	assert_string_equal(znode.name, "0-99+7+3:20.5");
	znode_path_tile(5, 12, true, "0.abcdefghijk27", path);
	assert_string_equal(path, "/r/5-12/0.abcdefghijk27");
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_RESERVE);
	znode_path_tile(5, 12, true, NULL, path);
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_RESERVES);
	assert_false(znode_parse("/t/5", &znode));
	assert_false(znode_parse("/t/5-", &znode));
	assert_false(znode_parse("/t/5-12/", &znode));
	assert_false(znode_parse("/t/5-12/a/b", &znode));
	assert_false(znode_parse("/t/-12", &znode));
}

static void test_a_folder_of_tiles_is_a_limiter_and_a_cut(void **state)
{
	static const char *const names[] = {"",	     "5",      "5-",  "-12",
					    "5-12x", "5-12-1", "x-1", "5-9223372036854775808"};
	uint64_t id, cut;

	(void)state;
	assert_true(znode_cut_parse("5-12", &id, &cut));
	assert_int_equal(id, 5);
	assert_int_equal(cut, 12);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(znode_cut_parse(names[i], &id, &cut));
}

static void test_the_end_of_a_host_is_read_whole_or_refused(void **state)
{
	static const char *const names[] = {
		"",
		"abcdefghijk27",
		"abcdefghijk27+",
		"abcdefghijk2+7",
		"abcdefghijk27-7",
		"abcdefghijk17+7",
		"abcdefghijk27+07",
		"abcdefghijk27+4294967296",
		"abcdefghijk27+7 ",
		"abcdefghijk27+-7",
	};
	char name[ZNODE_TEXT], path[ZNODE_TEXT], hid[HID_TEXT];
	struct znode znode;
	uint32_t epoch;

	(void)state;
	znode_end_print(HID, UINT32_MAX, name);
	assert_string_equal(name, "abcdefghijk27+4294967295");
	assert_true(znode_end_parse(name, hid, &epoch));
	assert_string_equal(hid, HID);
	assert_int_equal(epoch, UINT32_MAX);
	assert_true(znode_end_parse("abcdefghijk27+0", hid, &epoch));
	znode_path_named(ZNODE_END, 0, name, path);
	assert_string_equal(path, "/d/abcdefghijk27+4294967295");
	assert_int_equal(strlen(path), znode_bytes(ZNODE_END, 0));
	assert_true(znode_parse(path, &znode));
	assert_int_equal(znode.kind, ZNODE_END);
	assert_string_equal(znode.name, name);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(znode_end_parse(names[i], hid, &epoch));
}

static void test_a_path_that_is_no_node_of_a_fleet_is_refused(void **state)
{
	static const char *const paths[] = {
		"",
		"/",
		"/x",
		"v",
		"/v/1",
		"/vv",
		"/c/",
		"/c/x",
		"/c/1/2",
		"/c/-1",
		"/h/",
		"/h/a/b",
		"/l/1/0",
		"/f/1",
		"/t/1",
		"/t/1-",
		"/t/1-2/",
		"/t/1-2/0/1",
		"/r/-2",
		"/t/x-2/0",
		"/w/1/",
		"/w//a",
		"/c/18446744073709551616",
	};
	struct znode znode;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_false(znode_parse(paths[i], &znode));
}

static void test_a_name_that_is_too_long_is_cut_and_overflows_nothing(void **state)
{
	char path[ZNODE_TEXT], name[2 * ZNODE_TEXT];

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	znode_path_named(ZNODE_CLAIM, UINT64_MAX, name, path);
	assert_in_range(strlen(path), 1, ZNODE_TEXT - 1);
}

static void test_a_claim_is_read_whole_or_refused(void **state)
{
	static const char *const names[] = {
		"",
		"abcdefghijk27",
		"abcdefghijk27-3-1-",
		"abcdefghijk27-0-1-0000000004",
		"abcdefghijk27-3-0-0000000004",
		"abcdefghijk27-4097-1-0000000004",
		"abcdefghijk27-3-1001-0000000004",
		"abcdefghijk27-3-1-0000000004x",
		"abcdefghijk2-3-1-0000000004",
		"abcdefghijk271-3-1-0000000004",
		"abcdefghijk17-3-1-0000000004",
		"abcdefghijk27-3-1-99999999999999999",
	};
	struct part parts[PARTS_MAX];
	char name[ZNODE_TEXT];
	struct claim claim;

	(void)state;
	znode_claim_print(HID, 3, 20, NULL, 0, name);
	assert_string_equal(name, "abcdefghijk27-3-20-");
	strcat(name, "0000000004");
	assert_true(znode_claim_parse(name, &claim, parts));
	assert_int_equal(claim.wanted, 3);
	assert_int_equal(claim.weight, 20);
	assert_true(claim.sequence == 4);
	assert_ptr_equal(claim.name, name);
	assert_true(znode_claim_is_of(name, HID));
	assert_false(znode_claim_is_of(name, "abcdefghijk22"));
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(znode_claim_parse(names[i], &claim, parts));
}

static void test_a_claim_says_what_each_child_wants(void **state)
{
	static const struct part wants[] = {
		{.child = 0, .wanted = 3},
		{.child = 17, .wanted = 4096},
		{.child = UINT64_C(999999999999999999), .wanted = 1},
		{.child = PART_REST, .wanted = 50, .weight = 700, .priority = 9},
		{.child = PART_REST, .wanted = 1, .weight = 2000000, .priority = 0},
	};
	const uint32_t count = sizeof(wants) / sizeof(wants[0]);
	struct part parts[PARTS_MAX];
	char name[ZNODE_TEXT];
	struct claim claim;

	(void)state;
	znode_claim_print(HID, 4096, 20, wants, count, name);
	assert_string_equal(name, "abcdefghijk27-4096-20+0.3+17.4096+999999999999999999.1"
				  "+p9.50.700+p0.1.999999-");
	assert_int_equal(znode_claim_parts_bytes(name), strlen(name) - 21 - 1);
	strcat(name, "0000000004");
	assert_int_equal(znode_claim_parts_bytes(name), strlen(name) - 21 - 11);
	assert_true(znode_claim_parse(name, &claim, parts));
	assert_int_equal(claim.wanted, 4096);
	assert_true(claim.sequence == 4);
	assert_int_equal(claim.part_count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(parts[i].child == wants[i].child);
		assert_int_equal(parts[i].wanted, wants[i].wanted);
		assert_int_equal(parts[i].priority, wants[i].priority);
	}
	assert_int_equal(parts[3].weight, 700);
	assert_int_equal(parts[4].weight, 999999);
	/* Claims to a key have none. */
	assert_false(znode_claim_parse(name, &claim, NULL));
}

static void test_parts_of_a_claim_are_read_whole_or_refused(void **state)
{
	static const char *const parts[] = {
		"+",
		"+1",
		"+1.",
		"+1.0",
		"+1.4097",
		"+1.11",
		"+x.1",
		"+-1.1",
		"+1.1.1",
		"+1.1+",
		"+1.1+1.1",
		"+2.1+1.1",
		"++1.1",
		"+1.1 ",
		"+p1.1",
		"+p1.1.0",
		"+p10.1.1",
		"+p1.0.1",
		"+p1.1.1.1",
		"+p1.1.1000000",
		"+p.1.1",
		"+p1.1.1+1.1",
		"+p1.1.1+p1.1.1",
		"+p1.1.1+p2.1.1",
		"+1234567890123456789.1",
		"+18446744073709551615.1",
		"+1.1+2.1+3.1+4.1+5.1+6.1+7.1+8.1+9.1",
		"+1.1+2.1+3.1+4.1+5.1+6.1+7.1+8.1+9.1+p9.1.1",
	};
	struct part read[PARTS_MAX];
	char name[2 * ZNODE_TEXT];
	struct claim claim;

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(name, sizeof(name), "abcdefghijk27-10-1%s-0000000004", parts[i]);
		if (znode_claim_parse(name, &claim, read))
			fail_msg("%s is taken for a claim", name);
	}
	assert_true(znode_claim_parse("abcdefghijk27-10-1+1.10+p3.1.1-0000000004", &claim, read));
}

static void test_an_id_is_a_number_alone(void **state)
{
	uint64_t id;

	(void)state;
	assert_true(znode_id_parse("0", &id));
	assert_true(znode_id_parse("123456789012345678", &id));
	assert_true(id == UINT64_C(123456789012345678));
	assert_false(znode_id_parse("", &id));
	assert_false(znode_id_parse("12x", &id));
	assert_false(znode_id_parse("-1", &id));
	assert_false(znode_id_parse("1234567890123456789", &id));
}

static void test_a_hid_that_is_made_is_one(void **state)
{
	char hid[HID_TEXT], other[HID_TEXT];

	(void)state;
	znode_hid_print(UINT64_MAX, 0, hid);
	assert_true(znode_is_hid(hid));
	assert_true(znode_is_hid(HID));
	assert_false(znode_is_hid("abcdefghijk2"));
	assert_false(znode_is_hid("abcdefghijk217"));
	assert_false(znode_is_hid("abcdefghijk28"));
	znode_hid_print(UINT64_MAX, 1, other);
	assert_string_not_equal(hid, other);
}

/* A session's nodes are closed in one request: no path may be longer than it was counted. */
static void test_no_path_is_longer_than_it_is_counted(void **state)
{
	static const uint64_t ids[] = {0, 9, 10, 999, 1000, UINT64_MAX};
	char path[ZNODE_TEXT], name[ZNODE_TEXT];

	(void)state;
	znode_claim_print(HID, PARTITIONS_MAX, 1000, NULL, 0, name);
	strcat(name, "0000000004");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		znode_path_named(ZNODE_CLAIM, ids[i], name, path);
		assert_in_range(strlen(path), 1, znode_bytes(ZNODE_CLAIM, ids[i]));
		znode_path(ZNODE_AGREED_RATE, ids[i], path);
		assert_int_equal(strlen(path), znode_bytes(ZNODE_AGREED_RATE, ids[i]));
		znode_path_tile(ids[i], INT64_MAX, true, "4094-4095.abcdefghijk27", path);
		assert_in_range(strlen(path), 1, znode_bytes(ZNODE_RESERVE, ids[i]));
		znode_path_tile(ids[i], INT64_MAX, false, NULL, path);
		assert_in_range(strlen(path), 1, znode_bytes(ZNODE_TILES, ids[i]));
	}
	znode_path_named(ZNODE_HOST, 0, HID, path);
	assert_int_equal(strlen(path), znode_bytes(ZNODE_HOST, 0));
}

static void test_the_longest_claim_fits_a_path_and_is_counted(void **state)
{
	char path[ZNODE_TEXT], name[ZNODE_TEXT];
	struct part parts[PARTS_MAX];

	(void)state;
	for (uint32_t i = 0; i < PARTS_MAX; i++) {
		parts[i] = (struct part){.child = UINT64_C(999999999999999990) + i,
					 .wanted = 4096,
					 .weight = UINT32_MAX};
		if (i < PARTS_OF_CHILDREN)
			continue;
		parts[i].child = PART_REST;
		parts[i].priority = PARTS_MAX - 1 - i;
	}
	znode_claim_print(HID, 4096, 1000, parts, PARTS_MAX, name);
	strcat(name, "0000000004");
	assert_true(znode_claim_parse(name, &(struct claim){0}, parts));
	znode_path_named(ZNODE_CLAIM, UINT64_MAX, name, path);
	assert_string_equal(path + strlen(path) - strlen(name), name);
	assert_in_range(strlen(path), 1,
			znode_bytes(ZNODE_CLAIM, UINT64_MAX) + znode_claim_parts_bytes(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_path_is_read_as_it_was_printed),
		cmocka_unit_test(test_a_path_with_a_name_keeps_it),
		cmocka_unit_test(test_tiles_and_claims_of_a_key_lie_in_a_folder_of_its_hash),
		cmocka_unit_test(test_tiles_lie_in_a_folder_of_their_limiter_and_cut),
		cmocka_unit_test(test_a_folder_of_tiles_is_a_limiter_and_a_cut),
		cmocka_unit_test(test_the_end_of_a_host_is_read_whole_or_refused),
		cmocka_unit_test(test_a_path_that_is_no_node_of_a_fleet_is_refused),
		cmocka_unit_test(test_a_name_that_is_too_long_is_cut_and_overflows_nothing),
		cmocka_unit_test(test_a_claim_is_read_whole_or_refused),
		cmocka_unit_test(test_a_claim_says_what_each_child_wants),
		cmocka_unit_test(test_parts_of_a_claim_are_read_whole_or_refused),
		cmocka_unit_test(test_an_id_is_a_number_alone),
		cmocka_unit_test(test_a_hid_that_is_made_is_one),
		cmocka_unit_test(test_no_path_is_longer_than_it_is_counted),
		cmocka_unit_test(test_the_longest_claim_fits_a_path_and_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
