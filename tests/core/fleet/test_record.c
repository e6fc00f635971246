/* Tests of record: nodes read back as they were written, and wrong ones are refused. */
#include "core/fleet/record.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

/* Copies @text into @changed with the first @old as @new; an empty @old is the end. */
static const char *with(char changed[RECORD_TEXT], const char *text, const char *old,
			const char *new)
{
	const char *at = *old ? strstr(text, old) : text + strlen(text);

	assert_non_null(at);
	snprintf(changed, RECORD_TEXT, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
	return changed;
}

static const char GLOBALS[] = "renewal=1500ms\n"
			      "right=8s\n"
			      "quarantine=8330ms\n"
			      "session=6s\n"
			      "last=7\n"
			      "recent=3:5 4:7\n";

static const struct fleet_constants CONSTANTS = {1500 * MS, 8000 * MS, 8330 * MS, 6000 * MS};

static void test_constants_and_recent_changes_read_back_as_written(void **state)
{
	struct globals globals = {.constants = CONSTANTS, .last_id = 7}, again;
	char text[RECORD_TEXT];

	(void)state;
	record_add_change(&globals, 2, 5);
	record_add_change(&globals, 3, 7);
	record_print_globals(&globals, text);
	assert_int_equal(record_parse_globals(text, &again), 0);
	assert_memory_equal(&again, &globals, sizeof(again));
	assert_int_equal(record_parse_globals(GLOBALS, &again), 0);
	assert_memory_equal(&again, &globals, sizeof(again));
}

static void test_a_fleet_without_changes_reads_back_too(void **state)
{
	struct globals globals = {.constants = CONSTANTS}, again;
	char text[RECORD_TEXT];

	(void)state;
	record_print_globals(&globals, text);
	assert_int_equal(record_parse_globals(text, &again), 0);
	assert_memory_equal(&again, &globals, sizeof(again));
}

static void test_of_many_changes_the_last_are_remembered(void **state)
{
	struct globals globals = {.constants = CONSTANTS}, again;
	char text[RECORD_TEXT];

	(void)state;
	for (int32_t i = 0; i < 3 * RECENT_MAX; i++)
		record_add_change(&globals, INT32_MAX - 3 * RECENT_MAX + i,
				  INT64_MAX - (uint64_t)i);
	assert_int_equal(globals.recent_count, RECENT_MAX);
	assert_int_equal(globals.recent[0].version, INT32_MAX - RECENT_MAX + 1);
	assert_int_equal(globals.recent[RECENT_MAX - 1].version, INT32_MAX);
	record_print_globals(&globals, text);
	assert_int_equal(record_parse_globals(text, &again), 0);
	assert_memory_equal(&again, &globals, sizeof(again));
	assert_int_equal(
		record_parse_globals(with(text, GLOBALS, "recent=", "recent=1:1 2:2 3:3 "), &again),
		0);
}

static void assert_globals_refused(const char *old, const char *new)
{
	struct globals globals;
	char text[RECORD_TEXT];

	if (record_parse_globals(with(text, GLOBALS, old, new), &globals) != -EINVAL)
		fail_msg("accepted:\n%s", text);
}

static void test_constants_that_are_missing_or_nonsense_are_refused(void **state)
{
	static const char *const lines[] = {"renewal=1500ms\n", "right=8s\n", "quarantine=8330ms\n",
					    "session=6s\n",	"last=7\n",   "recent=3:5 4:7\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_globals_refused(lines[i], "");
	assert_globals_refused("1500ms", "");
	assert_globals_refused("1500ms", "soon");
	assert_globals_refused("1500ms", "0s");
	assert_globals_refused("right=8s", "right=0s");
	assert_globals_refused("right=8s", "right=8x");
	assert_globals_refused("session=6s", "session=0s");
	assert_globals_refused("session=6s", "session=-6s");
	assert_globals_refused("last=7", "last=-7");
	assert_globals_refused("last=7", "last=7x");
	assert_globals_refused("last=7", "last=9223372036854775808");
	assert_globals_refused("last=7", "last=99999999999999999999999");
	assert_globals_refused("8s", "00000000000000000000000000000000000000000000000000000000000"
				     "000000000000000000000008s");
}

static void test_constants_that_are_not_safe_are_refused(void **state)
{
	struct globals globals;
	char text[RECORD_TEXT];

	(void)state;
	/* Q is at least 1.01 D + 0.25 s. */
	assert_int_equal(record_quarantine_ns(8000 * MS), 8330 * MS);
	assert_globals_refused("8330ms", "8329999999ns");
	assert_globals_refused("8330ms", "8s");
	assert_globals_refused("right=8s", "right=9s");
	assert_globals_refused("right=8s", "right=8000000001ns");
	assert_int_equal(record_parse_globals(with(text, GLOBALS, "8330ms", "20s"), &globals), 0);
	/* A right that is not renewed in time is none. */
	assert_globals_refused("1500ms", "8s");
	assert_globals_refused("1500ms", "9s");
	assert_int_equal(record_parse_globals(with(text, GLOBALS, "1500ms", "7999ms"), &globals),
			 0);
}

static void test_recent_changes_that_are_nonsense_are_refused(void **state)
{
	char many[RECENT_MAX * 8 + 16] = "recent=1:1 ";

	(void)state;
	assert_globals_refused("3:5 4:7", "3:5 4");
	assert_globals_refused("3:5 4:7", "3:5 4:");
	assert_globals_refused("3:5 4:7", "3:5,4:7");
	assert_globals_refused("3:5 4:7", "3:5 4:7x");
	assert_globals_refused("3:5 4:7", "none");
	for (int i = 0; i < RECENT_MAX - 2; i++)
		strcat(many, "1:1 ");
	assert_globals_refused("recent=", many);
}

static void test_recent_changes_out_of_range_are_refused(void **state)
{
	(void)state;
	assert_globals_refused("4:7", "4:-7");
	assert_globals_refused("4:7", "-4:7");
	assert_globals_refused("4:7", "2147483648:7");
	assert_globals_refused("4:7", "4:18446744073709551616");
}

/* A record with everything in it. */
static struct record full_record(void)
{
	struct record record = {
		.name = "a b=c:\xc3\xa4",
		.parent = 3,
		.generation = 12,
		.saved = 7,
		.cut = 4,
		.removed = 5,
		.writer = "abcdefghijk27",
		.owner = {1000, 4294967294, 01755},
		.settings = SETTINGS_DEFAULT,
		.used = true,
	};
	char error[ERROR_TEXT];

	assert_int_equal(settings_parse("rate=500/s:20 1000/90s\nburst=7\npartitions.count=12\n"
					"partitions.reserve=1/s hosts=3\noffline=share:4\n",
					&record.settings, error),
			 0);
	return record;
}

static void print_record(const struct record *record, char text[RECORD_TEXT])
{
	char *its = record_text(record);

	assert_non_null(its);
	assert_true(strlen(its) < RECORD_TEXT);
	strcpy(text, its);
	free(its);
}

static void assert_same_settings(const struct settings *a, const struct settings *b)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_true(setting_equal((enum setting_id)id, a, b));
	assert_true(overrides_equal(a->overrides, b->overrides));
}

static void assert_reads_back(const struct record *record)
{
	struct record again;
	char *text = record_text(record), error[ERROR_TEXT];

	assert_non_null(text);
	assert_true(strlen(text) < RECORD_TEXT + overrides_length(record->settings.overrides) - 1);
	if (record_parse(text, &again, error))
		fail_msg("%s:\n%s", error, text);
	assert_string_equal(again.name, record->name);
	assert_int_equal(again.parent, record->parent);
	assert_int_equal(again.generation, record->generation);
	assert_int_equal(again.saved, record->saved);
	assert_int_equal(again.cut, record->cut);
	assert_int_equal(again.removed, record->removed);
	assert_string_equal(again.writer, record->writer);
	assert_int_equal(again.owner.uid, record->owner.uid);
	assert_int_equal(again.owner.gid, record->owner.gid);
	assert_int_equal(again.owner.access, record->owner.access);
	assert_same_settings(&again.settings, &record->settings);
	assert_int_equal(again.used, record->used);
	record_drop(&again);
	free(text);
}

static void test_a_limiter_reads_back_as_written(void **state)
{
	struct record record = full_record();

	(void)state;
	assert_reads_back(&record);
	record.used = false;
	record.removed = 0;
	assert_reads_back(&record);
	record.writer[0] = '\0';
	record.parent = 0;
	record.settings = SETTINGS_DEFAULT;
	assert_reads_back(&record);
}

static void test_the_largest_record_reads_back_as_written(void **state)
{
	struct record record = full_record();
	char error[ERROR_TEXT], config[SETTING_TEXT] = "rate=";

	(void)state;
	memset(record.name, 'n', NAME_BYTES_MAX);
	record.parent = INT64_MAX;
	record.generation = INT64_MAX;
	record.saved = INT64_MAX;
	record.cut = INT64_MAX;
	record.removed = INT64_MAX;
	record.owner = (struct owner){UINT32_MAX, UINT32_MAX, 07777};
	for (int i = 0; i < LIMITS_MAX; i++)
		strcat(config, "99999999999999999/99999999999999999ns:1000000000000 ");
	strcat(config, "\nburst=10000000000000\npartitions.count=4096\n");
	record.settings = SETTINGS_DEFAULT;
	if (settings_parse(config, &record.settings, error))
		fail_msg("%s", error);
	assert_reads_back(&record);
}

static void assert_refused(const char *old, const char *new)
{
	const struct record record = full_record();
	struct record parsed;
	char text[RECORD_TEXT], changed[RECORD_TEXT], error[ERROR_TEXT] = "";

	print_record(&record, text);
	if (record_parse(with(changed, text, old, new), &parsed, error) != -EINVAL)
		fail_msg("accepted:\n%s", changed);
	assert_true(*error);
}

static void test_a_limiter_with_a_line_missing_is_refused(void **state)
{
	(void)state;
	assert_refused("name=", "nam=");
	assert_refused("parent=3\n", "");
	assert_refused("generation=12\n", "");
	assert_refused("generation=12\n", "generation=0\n");
	assert_refused("writer=", "author=");
	assert_refused("owner=", "owners=");
	assert_refused("settings:\n", "");
	assert_refused("\nsettings:", " settings:");
}

static void test_in_a_limiter_that_does_not_say_since_when_no_older_rest_counts(void **state)
{
	const struct record record = full_record();
	struct record parsed;
	char text[RECORD_TEXT], changed[RECORD_TEXT], error[ERROR_TEXT];

	(void)state;
	print_record(&record, text);
	assert_int_equal(record_parse(with(changed, text, "saved=7\n", ""), &parsed, error), 0);
	assert_int_equal(parsed.saved, 12);
	assert_int_equal(record_parse(with(changed, text, "saved=7", "saved=0"), &parsed, error),
			 0);
	assert_int_equal(parsed.saved, 12);
}

static void test_a_limiter_that_does_not_say_its_cut_was_just_numbered(void **state)
{
	const struct record record = full_record();
	struct record parsed;
	char text[RECORD_TEXT], changed[RECORD_TEXT], error[ERROR_TEXT];

	(void)state;
	print_record(&record, text);
	assert_int_equal(record_parse(with(changed, text, "cut=4\n", ""), &parsed, error), 0);
	assert_int_equal(parsed.cut, 12);
	/* Nor is it of no generation then. */
	with(text, changed, "generation=12\n", "generation=0\n");
	assert_int_equal(record_parse(text, &parsed, error), -EINVAL);
}

static void test_a_limiter_with_a_value_out_of_range_is_refused(void **state)
{
	static char name[NAME_BYTES_MAX + 16];

	(void)state;
	snprintf(name, sizeof(name), "name=%0*d\nx=", NAME_BYTES_MAX + 1, 0);
	assert_refused("name=", name);
	assert_refused("parent=3", "parent=-3");
	assert_refused("parent=3", "parent=");
	assert_refused("parent=3", "parent=0x3");
	assert_refused("parent=3", "parent=9223372036854775808");
	assert_refused("generation=12", "generation=1 2");
	assert_refused("cut=4", "cut=0");
	assert_refused("cut=4", "cut=13");
	assert_refused("cut=4", "cut=-4");
	assert_refused("writer=abcdefghijk27", "writer=abcdefghijk277");
	assert_refused("owner=1000", "owner=");
	assert_refused("owner=1000", "owner=root");
	assert_refused("1755", "17555");
	assert_refused("1755", "1788");
	assert_refused("1755", "");
	assert_refused("1755", "1755 0");
	assert_refused("hosts=3\n", "hosts=501\n"); /* more than the rate */
}

static void test_an_owner_out_of_range_is_refused(void **state)
{
	(void)state;
	assert_refused("owner=1000", "owner=-1000");
	assert_refused("owner=1000", "owner=4294967296000");
	assert_refused(" 4294967294 ", " 4294967296 ");
}

static void test_a_limiter_with_wrong_settings_is_refused(void **state)
{
	(void)state;
	assert_refused("rate=500/s:20", "rate=500/s:0");
	assert_refused("burst=7", "burst=7\nbrust=7");
	assert_refused("hosts=3\n", "hosts=3000\n");
	assert_refused("", "nonsense\n");
	assert_refused("\nsettings:\n", "\nsettings:\n\nsettings:\n");
}

static void test_a_record_of_nothing_is_refused(void **state)
{
	struct record record;
	struct globals globals;
	struct host_record host;
	char error[ERROR_TEXT] = "";

	(void)state;
	assert_int_equal(record_parse("", &record, error), -EINVAL);
	assert_true(*error);
	assert_int_equal(record_parse("\nsettings:\n", &record, error), -EINVAL);
	assert_int_equal(record_parse_globals("", &globals), -EINVAL);
	assert_int_equal(record_parse_host("", &host), -EINVAL);
}

static void test_a_host_reads_back_as_written(void **state)
{
	struct host_record host = {.name = "host-7.example",
				   .weight = 1000,
				   .held = 10000,
				   .renews = true},
			   again;
	char text[RECORD_TEXT];

	(void)state;
	record_print_host(&host, text);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_memory_equal(&again, &host, sizeof(again));
	host.name[0] = '\0';
	memset(host.name, 'h', sizeof(host.name) - 1);
	record_print_host(&host, text);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_memory_equal(&again, &host, sizeof(again));
}

static void test_a_host_that_is_not_understood_is_refused(void **state)
{
	static const char *const wrong[] = {
		"weight=1\nheld=2\nrenews=1\n",
		"name=h\nheld=2\nrenews=1\n",
		"name=h\nweight=1\nrenews=1\n",
		"name=h\nweight=1\nheld=2\n",
		"name=h\nweight=one\nheld=2\nrenews=1\n",
		"name=h\nweight=1\nheld=4294967296\nrenews=1\n",
		"name=h\nweight=4294967296\nheld=2\nrenews=1\n",
		"name=h\nweight=1\nheld=-2\nrenews=1\n",
		"name=h\nweight=1\nheld=2\nrenews=2\n",
		"name=h weight=1 held=2 renews=1\n",
	};
	struct host_record host;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(record_parse_host(wrong[i], &host), -EINVAL);
}

static void test_uses_read_back_as_written(void **state)
{
	struct host_record host = {.name = "h", .renews = true, .has_uses = true, .use_count = 3},
			   again;
	char text[RECORD_TEXT];

	(void)state;
	host.uses[0] = (struct host_use){.id = 12, .granted = 487.8, .waiting = 3};
	host.uses[1] = (struct host_use){.id = INT64_MAX, .granted = 1e300, .waiting = UINT32_MAX};
	host.uses[2] = (struct host_use){.id = 7, .granted = 0.25};
	record_print_host(&host, text);
	assert_non_null(strstr(text, "\nuses=12:487.8:3 9223372036854775807:1e+12:4294967295 "
				     "7:0.25:0\n"));
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_int_equal(record_use(&again, 12)->waiting, 3);
	assert_true(record_use(&again, 12)->granted == 487.8);
	assert_int_equal(record_use(&again, INT64_MAX)->waiting, UINT32_MAX);
	assert_true(record_use(&again, 7)->granted == 0.25);
	/* There are no others. */
	assert_true(record_use(&again, 8)->granted == 0);
	host.use_count = 0;
	record_print_host(&host, text);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_true(again.has_uses);
	assert_int_equal(again.use_count, 0);
}

static void test_the_most_that_a_host_can_use_has_room(void **state)
{
	struct host_record host = {.has_uses = true, .use_count = HOST_USES_MAX}, again;
	char text[RECORD_TEXT];

	(void)state;
	memset(host.name, 'h', sizeof(host.name) - 1);
	for (uint64_t i = 0; i < HOST_USES_MAX; i++)
		host.uses[i] = (struct host_use){INT64_MAX - i, 1.234e-300, UINT32_MAX};
	record_print_host(&host, text);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_int_equal(again.use_count, HOST_USES_MAX);
	assert_non_null(record_use(&again, INT64_MAX - HOST_USES_MAX + 1));
	/* There may be others. */
	assert_null(record_use(&again, 1));
}

static void test_uses_that_are_not_understood_are_none_and_the_host_counts(void **state)
{
	static const char too_many[] =
		"uses=1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 1:1:1 "
		"1:1:1 1:1:1 1:1:1 1:1:1 1:1:1\n";
	static const char *const wrong[] = {
		"", /* an older version */
		"uses=1\n",
		"uses=1:2\n",
		"uses=1:2:3,\n",
		"uses=1:2:3 x\n",
		"uses=:2:3\n",
		"uses=1:-2:3\n",
		"uses=1:2:-3\n",
		"uses=1:2:4294967296\n",
		"uses=9223372036854775808:2:3\n",
		"uses=1:nan:3\n",
		"uses=1:inf:3\n",
		"uses=1:1e+999:3\n",
		"uses=1:1.1e12:3\n",
		"uses=1:0x10:3\n",
		"uses=1:1.2.3:3\n",
		"uses=1:1e:3\n",
		too_many,
	};
	struct host_record host;
	char text[RECORD_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "name=h\nweight=1\nheld=2\nrenews=1\n%s", wrong[i]);
		assert_int_equal(record_parse_host(text, &host), 0);
		assert_true(host.renews);
		assert_null(record_use(&host, 1));
	}
}

static void test_slots_read_back_as_written(void **state)
{
	struct host_record host = {.name = "h", .renews = true, .has_uses = true, .slot_count = 3},
			   again;
	char text[RECORD_TEXT];

	(void)state;
	host.slots[0] = (struct host_slot){12, 812, 1000, 61, "convert"};
	host.slots[1] = (struct host_slot){INT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
					   "a \n\x1b\x7f\xc3\xa4:\t="};
	host.slots[2] = (struct host_slot){.id = 7};
	record_print_host(&host, text);
	assert_non_null(strstr(text, "\nslots=12:812:1000:61:convert "
				     "9223372036854775807:4294967295:4294967295:4294967295:"
				     "a??????:?= 7:0:0:0:-\n"));
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_int_equal(again.slot_count, 3);
	assert_memory_equal(&again.slots[0], &host.slots[0], sizeof(host.slots[0]));
	assert_string_equal(again.slots[1].command, "a??????:?=");
	assert_string_equal(again.slots[2].command, "-");
	host.has_uses = false;
	record_print_host(&host, text);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_int_equal(again.slot_count, 3);
}

/* A node of a ZooKeeper server has room for 400 times that. */
static void test_the_most_slots_that_are_told_have_room(void **state)
{
	struct host_record host = {.has_uses = true, .slot_count = HOST_SLOTS_MAX}, again;
	char text[RECORD_TEXT];

	(void)state;
	memset(host.name, 'h', sizeof(host.name) - 1);
	for (uint32_t i = 0; i < HOST_SLOTS_MAX; i++)
		host.slots[i] = (struct host_slot){INT64_MAX - i, UINT32_MAX, UINT32_MAX,
						   UINT32_MAX, "123456789012345"};
	record_print_host(&host, text);
	assert_in_range(strlen(text), 2000, 2600);
	assert_int_equal(record_parse_host(text, &again), 0);
	assert_int_equal(again.slot_count, HOST_SLOTS_MAX);
	assert_memory_equal(again.slots, host.slots, sizeof(host.slots));
}

static void test_caps_read_back_as_written_beside_the_host_and_alone(void **state)
{
	const struct host_caps caps = {
		2,
		{{7, 3, 2, 1, 4096, 1795435200, 450, 9},
		 {INT64_MAX, INT64_MAX, INT64_MAX, LIMITS_MAX - 1, 1, 0, TOKENS_MAX, UINT32_MAX}}};
	struct host_record host = {.name = "h", .weight = 1}, again;
	char text[RECORD_TEXT + HOST_CAPS_TEXT], line[HOST_CAPS_TEXT], printed[HOST_CAPS_TEXT];
	struct host_caps read;

	(void)state;
	record_print_caps(&caps, line);
	assert_non_null(strstr(line, "caps=7:3:2:1:4096:1795435200:450:9 9223372036854775807:"));
	record_parse_caps(line, &read);
	assert_int_equal(read.count, 2);
	record_print_caps(&read, printed);
	assert_string_equal(printed, line);
	record_print_host(&host, text);
	strcat(text, line);
	record_parse_caps(text, &read);
	assert_int_equal(read.count, 2);
	assert_int_equal(record_parse_host(text, &again), 0);
	record_print_caps(&(struct host_caps){0}, line);
	assert_string_equal(line, "");
	record_parse_caps(line, &read);
	assert_int_equal(read.count, 0);
}

static void test_the_most_caps_that_are_told_have_room(void **state)
{
	struct host_caps caps = {.count = HOST_CAPS_MAX}, read;
	char line[HOST_CAPS_TEXT], printed[HOST_CAPS_TEXT];

	(void)state;
	for (uint32_t i = 0; i < HOST_CAPS_MAX; i++)
		caps.list[i] = (struct host_cap){INT64_MAX,	 INT64_MAX,	 INT64_MAX,
						 LIMITS_MAX - 1, PARTITIONS_MAX, INT64_MAX,
						 TOKENS_MAX,	 UINT32_MAX};
	record_print_caps(&caps, line);
	record_parse_caps(line, &read);
	assert_int_equal(read.count, HOST_CAPS_MAX);
	record_print_caps(&read, printed);
	assert_string_equal(printed, line);
	line[strlen(line) - 1] = '\0';
	record_parse_caps(strcat(line, " "), &read);
	assert_int_equal(read.count, 0);
}

static void test_quotas_told_read_back_as_written(void **state)
{
	struct told_quotas quotas = {.count = TOLD_QUOTAS_MAX}, read;
	char text[TOLD_TEXT], printed[TOLD_TEXT];

	(void)state;
	record_print_told(&(struct told_quotas){0}, text);
	assert_string_equal(text, "quotas=0\n");
	assert_int_equal(record_parse_told(text, &read), 0);
	assert_int_equal(read.count, 0);
	for (uint32_t i = 0; i < TOLD_QUOTAS_MAX; i++)
		quotas.list[i] = (struct told_quota){UINT64_MAX - i, TOKENS_MAX, UINT64_MAX, 0,
						     "abcdefghijklmno"};
	record_print_told(&quotas, text);
	assert_int_equal(record_parse_told(text, &read), 0);
	assert_int_equal(read.count, TOLD_QUOTAS_MAX);
	assert_int_equal(read.list[1].id, UINT64_MAX - 1);
	assert_int_equal(read.list[1].rest_ms, DURATION_MAX_NS / MS);
	assert_string_equal(read.list[1].unit, "abcdefghijklmno");
	record_print_told(&read, printed);
	assert_string_equal(printed, text);
}

static void test_quotas_told_that_are_not_understood_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"quotas=",
		"quotas=0",
		"quotas=0\n\n",
		"quotas=37\n",
		"quotas=1\n",
		"quotas=1\n0123456789abcdef,5,1000,",
		"quotas=1\n0123456789abcdef,5,1000\n",
		"quotas=1\n0123456789abcde,5,1000,\n",
		"quotas=1\n0123456789ABCDEF,5,1000,\n",
		"quotas=1\n0000000000000001,5,1000,\n",
		"quotas=1\n0123456789abcdef,10000000000001,1000,\n",
		"quotas=1\n0123456789abcdef,-5,1000,\n",
		"quotas=1\n0123456789abcdef,5,0,\n",
		"quotas=1\n0123456789abcdef,5,315360000001,\n",
		"quotas=1\n0123456789abcdef,5,1000,7x\n",
		"quotas=1\n0123456789abcdef,5,1000,abcdefghijklmnop\n",
		"quotas=1\n0123456789abcdef,5,1000,x\nquotas=0\n",
		"quotas=2\n0123456789abcdef,5,1000,x\n",
	};
	struct told_quotas read;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(record_parse_told(texts[i], &read), -EINVAL);
	assert_int_equal(record_parse_told("quotas=1\n0123456789abcdef,5,315360000000,x\n", &read),
			 0);
}

static void test_marks_of_quotas_read_back_and_what_is_not_understood_marks_all(void **state)
{
	struct told_marks marks = {{0}}, read;
	char text[TOLD_MARKS_TEXT];

	(void)state;
	record_parse_told_marks("", &read);
	for (uint64_t id = 0; id < TOLD_MARKS; id++)
		assert_false(record_is_marked(&read, id));
	record_mark_told(&marks, 7);
	record_mark_told(&marks, TOLD_MARKS + 70);
	record_print_told_marks(&marks, text);
	record_parse_told_marks(text, &read);
	for (uint64_t id = 0; id < TOLD_MARKS; id++)
		assert_int_equal(record_is_marked(&read, id), id == 7 || id == 70);
	assert_true(record_is_marked(&read, 70 + 5 * TOLD_MARKS));
	text[20] = 'x';
	record_parse_told_marks(text, &read);
	assert_true(record_is_marked(&read, 0) && record_is_marked(&read, TOLD_MARKS - 1));
	record_parse_told_marks("told=0\n", &read);
	assert_true(record_is_marked(&read, 1));
	record_parse_told_marks("x", &read);
	assert_true(record_is_marked(&read, 1));
}

static void test_caps_that_are_not_understood_are_none(void **state)
{
	static const char *const lines[] = {
		"caps=",
		"caps=7",
		"caps=7:3:2:1:4096:1795435200:450",
		"caps=7:3:2:1:4096:1795435200:450:9:1",
		"caps=7:3:2:8:4096:1795435200:450:9",
		"caps=7:3:2:1:0:1795435200:450:9",
		"caps=7:3:2:1:4097:1795435200:450:9",
		"caps=7:3:2:1:4096:-1:450:9",
		"caps=7:3:2:1:4096:1795435200:450:9 7",
		"caps=7:3:2:1:4096:1795435200:450:9  7:3:2:2:4096:1795435200:450:9",
		" caps=7:3:2:1:4096:1795435200:450:9",
		"caps=7:3:2:1:4096:1795435200:99999999999999999999:9",
	};
	struct host_caps caps;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		record_parse_caps(lines[i], &caps);
		assert_int_equal(caps.count, 0);
	}
}

static void test_slots_that_are_not_understood_are_none_and_the_host_counts(void **state)
{
	static const char *const wrong[] = {
		"slots=1\n",
		"slots=1:2:3:4\n",
		"slots=1:2:3:4:\n",
		"slots=1:2:3:4: \n",
		"slots=1:2:3:4:a,1:2:3:4:bcdefghijklmn\n",
		"slots=1:2:3:4:1234567890123456\n",
		"slots=1:2:3:4:a  1:2:3:4:b\n",
		"slots=1:2:3:4:a b\n",
		"slots=1:-2:3:4:a\n",
		"slots=1:2:3:4294967296:a\n",
		"slots=1:2:4294967296:4:a\n",
		"slots=1:4294967296:3:4:a\n",
		"slots=9223372036854775808:2:3:4:a\n",
	};
	struct host_record host;
	char text[RECORD_TEXT];
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "name=h\nweight=1\nheld=2\nrenews=1\n%s", wrong[i]);
		assert_int_equal(record_parse_host(text, &host), 0);
		assert_true(host.renews);
		assert_int_equal(host.slot_count, 0);
	}
	used = (size_t)snprintf(text, sizeof(text), "name=h\nweight=1\nheld=2\nrenews=1\nslots=");
	for (uint32_t i = 0; i <= HOST_SLOTS_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "1:2:3:4:a ");
	assert_int_equal(record_parse_host(text, &host), 0);
	assert_int_equal(host.slot_count, 0);
}

static void test_the_name_of_a_host_is_one_word_when_it_is_shown(void **state)
{
	struct host_record host;

	(void)state;
	assert_int_equal(record_parse_host("name=a b\tc\x7f\nweight=1\nheld=0\nrenews=0\n", &host),
			 0);
	assert_string_equal(host.name, "a?b?c?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constants_and_recent_changes_read_back_as_written),
		cmocka_unit_test(test_a_fleet_without_changes_reads_back_too),
		cmocka_unit_test(test_of_many_changes_the_last_are_remembered),
		cmocka_unit_test(test_constants_that_are_missing_or_nonsense_are_refused),
		cmocka_unit_test(test_constants_that_are_not_safe_are_refused),
		cmocka_unit_test(test_recent_changes_that_are_nonsense_are_refused),
		cmocka_unit_test(test_recent_changes_out_of_range_are_refused),
		cmocka_unit_test(test_a_limiter_reads_back_as_written),
		cmocka_unit_test(test_the_largest_record_reads_back_as_written),
		cmocka_unit_test(test_a_limiter_with_a_line_missing_is_refused),
		cmocka_unit_test(test_a_limiter_that_does_not_say_its_cut_was_just_numbered),
		cmocka_unit_test(test_a_limiter_with_a_value_out_of_range_is_refused),
		cmocka_unit_test(
			test_in_a_limiter_that_does_not_say_since_when_no_older_rest_counts),
		cmocka_unit_test(test_an_owner_out_of_range_is_refused),
		cmocka_unit_test(test_a_limiter_with_wrong_settings_is_refused),
		cmocka_unit_test(test_a_record_of_nothing_is_refused),
		cmocka_unit_test(test_a_host_reads_back_as_written),
		cmocka_unit_test(test_a_host_that_is_not_understood_is_refused),
		cmocka_unit_test(test_uses_read_back_as_written),
		cmocka_unit_test(test_the_most_that_a_host_can_use_has_room),
		cmocka_unit_test(test_uses_that_are_not_understood_are_none_and_the_host_counts),
		cmocka_unit_test(test_slots_read_back_as_written),
		cmocka_unit_test(test_the_most_slots_that_are_told_have_room),
		cmocka_unit_test(test_caps_read_back_as_written_beside_the_host_and_alone),
		cmocka_unit_test(test_the_most_caps_that_are_told_have_room),
		cmocka_unit_test(test_caps_that_are_not_understood_are_none),
		cmocka_unit_test(test_quotas_told_read_back_as_written),
		cmocka_unit_test(test_quotas_told_that_are_not_understood_are_refused),
		cmocka_unit_test(
			test_marks_of_quotas_read_back_and_what_is_not_understood_marks_all),
		cmocka_unit_test(test_slots_that_are_not_understood_are_none_and_the_host_counts),
		cmocka_unit_test(test_the_name_of_a_host_is_one_word_when_it_is_shown),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
