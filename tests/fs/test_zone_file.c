/* Tests of time zones: their files mean to us and to the C library the same. */
#include "fs/base/tzif.h"
#include "fs/base/zone_file.h"
#include "tests/sim/base/zones.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ROOT	     "/usr/share/zoneinfo"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of all kinds: two hemispheres, half hours, negative summer time, rules that end, none at all. */
static const char *const NAMES[] = {
	"Europe/Paris",	       "America/New_York", "America/Sao_Paulo",
	"Australia/Lord_Howe", "Asia/Kathmandu",   "Africa/Casablanca",
	"Europe/Dublin",       "Pacific/Apia",	   "Pacific/Kiritimati",
	"America/Nuuk",	       "Asia/Jerusalem",   "Africa/Cairo",
	"America/St_Johns",    "Antarctica/Troll", "America/Scoresbysund",
	"Etc/GMT+12",	       "Asia/Tehran",	   "America/Asuncion",
	"Australia/Sydney",    "America/Havana",   "Europe/London",
	"Pacific/Chatham",     "Asia/Gaza",	   "Europe/Lisbon",
};

static void test_offsets_are_those_of_the_c_library(void **state)
{
	(void)state;
	srand48(3);
	for (size_t i = 0; i < COUNT(NAMES); i++) {
		uint16_t ours, theirs;

		if (LIBRARY_ZONES.find(NAMES[i], &theirs))
			fail_msg("%s is not installed", NAMES[i]);
		assert_int_equal(ZONE_FILES.find(NAMES[i], &ours), 0);
		assert_string_equal(ZONE_FILES.name(ours), NAMES[i]);
		for (int j = 0; j < 20000; j++) {
			int64_t at_s = (int64_t)(drand48() * 4.5e9);
			int32_t offset = ZONE_FILES.offset_s(ours, at_s);

			if (offset != LIBRARY_ZONES.offset_s(theirs, at_s))
				fail_msg("%s at %lld: %d, not %d", NAMES[i], (long long)at_s,
					 offset, LIBRARY_ZONES.offset_s(theirs, at_s));
		}
	}
}

/* Each change of the clocks, to the second. */
static void test_clocks_are_changed_at_the_second(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(NAMES); i++) {
		uint16_t ours, theirs;

		assert_int_equal(LIBRARY_ZONES.find(NAMES[i], &theirs), 0);
		assert_int_equal(ZONE_FILES.find(NAMES[i], &ours), 0);
		for (int64_t day = 0; day < 40 * 365; day++) {
			int64_t early = INT64_C(1577836800) + day * 86400, late = early + 86400;
			int32_t before = ZONE_FILES.offset_s(ours, early);

			if (before == ZONE_FILES.offset_s(ours, late))
				continue;
			while (late - early > 1) {
				int64_t middle = early + (late - early) / 2;

				if (ZONE_FILES.offset_s(ours, middle) == before)
					early = middle;
				else
					late = middle;
			}
			assert_int_equal(LIBRARY_ZONES.offset_s(theirs, early), before);
			assert_int_equal(LIBRARY_ZONES.offset_s(theirs, late),
					 ZONE_FILES.offset_s(ours, late));
		}
	}
}

static void test_a_zone_keeps_its_number(void **state)
{
	uint16_t a, b, c;

	(void)state;
	assert_int_equal(ZONE_FILES.find("Europe/Rome", &a), 0);
	assert_int_equal(ZONE_FILES.find("Asia/Tokyo", &b), 0);
	assert_int_equal(ZONE_FILES.find("Europe/Rome", &c), 0);
	assert_int_equal(a, c);
	assert_int_not_equal(a, b);
	assert_int_not_equal(a, ZONE_UTC);
}

static int find_file(const char *path, const struct stat *status, int kind)
{
	const char *name = path + sizeof(ROOT);
	char other[PATH_MAX];
	uint16_t zone;

	(void)status;
	if (kind != FTW_F)
		return 0;
	/* In `posix` all are there again, by links. Those that count leap seconds are none. */
	if (!strncmp(name, "posix/", 6))
		name += 6;
	snprintf(other, sizeof(other), "posix/%s", name);
	assert_int_not_equal(zone_find(name, &zone), -ENOSPC);
	assert_int_not_equal(zone_find(other, &zone), -ENOSPC);
	return 0;
}

static void test_all_zones_of_the_system_can_be_in_use(void **state)
{
	(void)state;
	zone_use(&ZONE_FILES);
	assert_int_equal(ftw(ROOT, find_file, 10), 0);
}

static void test_other_names_and_files_are_refused(void **state)
{
	static const char *const names[] = {"",
					    "Europe",
					    "Europe/Nowhere",
					    "/etc/passwd",
					    "../../etc/passwd",
					    "Europe//Paris",
					    "tzdata.zi",
					    "zone.tab",
					    "Europe/Paris "};
	uint16_t zone = 77;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		assert_int_equal(ZONE_FILES.find(names[i], &zone), -ENOENT);
	assert_int_equal(zone, 77);
}

/* A file as zic -b slim makes it, of one clock that is always @offset_s ahead; then @footer. */
static size_t make_file(unsigned char *bytes, unsigned char leaps, int32_t offset_s,
			const char *footer)
{
	unsigned char header[44] = "TZif2", block[6 + 4];
	size_t length = 0;

	header[39] = 1; /* kinds of time */
	header[43] = sizeof(block) - 6;
	for (int i = 0; i < 4; i++)
		block[i] = (unsigned char)((uint32_t)offset_s >> (24 - 8 * i));
	memcpy(block + 4, "\0\0LMT", 6);
	for (int i = 0; i < 2; i++) {
		header[31] = i ? leaps : 0;
		memcpy(bytes + length, header, sizeof(header));
		length += sizeof(header);
		memcpy(bytes + length, block, sizeof(block));
		length += sizeof(block);
	}
	memset(bytes + length, 0, leaps * 12U);
	length += leaps * 12U;
	return length + (size_t)sprintf((char *)bytes + length, "\n%s\n", footer);
}

static int parse_made(unsigned char leaps, int32_t offset_s, const char *footer)
{
	unsigned char bytes[512];
	struct tzif zone;
	int err = tzif_parse(bytes, make_file(bytes, leaps, offset_s, footer), &zone);

	if (!err)
		tzif_free(&zone);
	return err;
}

static void test_rules_that_no_clock_follows_are_refused(void **state)
{
	static const char *const footers[] = {
		"CET",
		"C-1",
		"CET-25",
		"<CET-1",
		"CET-1CEST",
		"CET-1CEST,M3.5.0",
		"CET-1CEST,M3.5.0,",
		"CET-1CEST,M0.5.0,M10.5.0/3",
		"CET-1CEST,M13.5.0,M10.5.0/3",
		"CET-1CEST,M3.0.0,M10.5.0/3",
		"CET-1CEST,M3.6.0,M10.5.0/3",
		"CET-1CEST,M3.5.7,M10.5.0/3",
		"CET-1CEST,M3.5.0,M10.5.0/168",
		"CET-1CEST,M3.5.0,M10.5.0/3:60",
		"CET-1CEST,J0,J300",
		"CET-1CEST,J60,J366",
		"CET-1CEST-25,J60,J300",
		"CET-1CEST,J60,J300 ",
	};

	(void)state;
	assert_int_equal(parse_made(0, 3600, ""), 0);
	assert_int_equal(parse_made(0, 3600, "CET-1"), 0);
	assert_int_equal(parse_made(0, 3600, "CET-1CEST,M3.5.0,M10.5.0/3"), 0);
	assert_int_equal(parse_made(0, 3600, "<+01>-1<+02>,0,J365/167:59:59"), 0);
	for (size_t i = 0; i < COUNT(footers); i++) {
		if (parse_made(0, 3600, footers[i]) != -EINVAL)
			fail_msg("%s is taken", footers[i]);
	}
}

static void test_offsets_of_more_than_a_day_are_refused(void **state)
{
	(void)state;
	assert_int_equal(parse_made(0, TZIF_OFFSET_MAX_S, "CET-24"), 0);
	assert_int_equal(parse_made(0, -TZIF_OFFSET_MAX_S, "CET24"), 0);
	assert_int_equal(parse_made(0, TZIF_OFFSET_MAX_S + 1, "CET-1"), -EINVAL);
	assert_int_equal(parse_made(0, -TZIF_OFFSET_MAX_S - 1, "CET-1"), -EINVAL);
	assert_int_equal(parse_made(0, 3600, "CET-24CEST,J60,J300"), -EINVAL);
}

/* Those of right/ count the seconds of atomic time. */
static void test_a_zone_with_leap_seconds_is_refused(void **state)
{
	(void)state;
	assert_int_equal(parse_made(1, 3600, "CET-1"), -EINVAL);
}

/* Any part of a file, and a file with any byte changed, is refused or understood: never worse. */
static void test_a_damaged_file_does_no_harm(void **state)
{
	static unsigned char bytes[1 << 16], copy[1 << 16];
	FILE *file = fopen(ROOT "/Europe/Paris", "rb");
	size_t length;
	struct tzif zone;

	(void)state;
	assert_non_null(file);
	length = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(tzif_parse(bytes, i, &zone), -EINVAL);
	srand48(5);
	for (int i = 0; i < 500; i++) {
		memcpy(copy, bytes, length);
		copy[lrand48() % (long)length] = (unsigned char)lrand48();
		if (tzif_parse(copy, length, &zone))
			continue;
		for (int64_t at_s = 0; at_s < INT64_C(4000000000); at_s += 40000000)
			(void)tzif_offset_s(&zone, at_s);
		tzif_free(&zone);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets_are_those_of_the_c_library),
		cmocka_unit_test(test_clocks_are_changed_at_the_second),
		cmocka_unit_test(test_a_zone_keeps_its_number),
		cmocka_unit_test(test_other_names_and_files_are_refused),
		cmocka_unit_test(test_rules_that_no_clock_follows_are_refused),
		cmocka_unit_test(test_offsets_of_more_than_a_day_are_refused),
		cmocka_unit_test(test_a_zone_with_leap_seconds_is_refused),
		cmocka_unit_test(test_a_damaged_file_does_no_harm),
		cmocka_unit_test(test_all_zones_of_the_system_can_be_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
