/*
 * fuzz_record - any text as what each kind of node of a fleet holds: it is taken whole or refused,
 * and what was taken is printed so that it reads back the same.
 */
#include "fuzz.h"

#include "core/fleet/record.h"

#include <errno.h>
#include <string.h>

static void check_same(const struct settings *a, const struct settings *b)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		FUZZ_CHECK(setting_equal((enum setting_id)id, a, b));
}

static void check_printed(const char *text, size_t size)
{
	FUZZ_CHECK(memchr(text, '\0', size - 1));
}

static void try_globals(const char *text)
{
	struct globals globals, again;
	char printed[RECORD_TEXT];
	int err = record_parse_globals(text, &globals);

	FUZZ_CHECK(!err || err == -EINVAL);
	if (err)
		return;
	FUZZ_CHECK(globals.constants.quarantine_ns >=
		   record_quarantine_ns(globals.constants.right_ns));
	FUZZ_CHECK(globals.constants.renewal_ns && globals.constants.session_ns);
	FUZZ_CHECK(globals.constants.renewal_ns < globals.constants.right_ns);
	FUZZ_CHECK(globals.recent_count <= RECENT_MAX);
	record_print_globals(&globals, printed);
	check_printed(printed, sizeof(printed));
	FUZZ_CHECK(record_parse_globals(printed, &again) == 0);
	FUZZ_CHECK(!memcmp(&again, &globals, sizeof(again)));
	record_add_change(&globals, 1, globals.last_id);
	FUZZ_CHECK(globals.recent_count <= RECENT_MAX);
}

static void check_owner(const struct owner *a, const struct owner *b)
{
	FUZZ_CHECK(a->uid == b->uid && a->gid == b->gid && a->access == b->access);
	FUZZ_CHECK(a->access <= 07777);
}

static void try_record(const char *text)
{
	static struct record record, again;
	static char printed[RECORD_TEXT];
	char error[ERROR_TEXT] = "";
	int err = record_parse(text, &record, error);

	if (err) {
		FUZZ_CHECK(err == -EINVAL && error[0] && memchr(error, '\0', ERROR_TEXT));
		return;
	}
	record_print(&record, printed);
	check_printed(printed, sizeof(printed));
	FUZZ_CHECK(record_parse(printed, &again, error) == 0);
	FUZZ_CHECK(!strcmp(again.name, record.name) && !strcmp(again.writer, record.writer));
	FUZZ_CHECK(again.parent == record.parent && again.generation == record.generation &&
		   again.saved == record.saved && again.cut == record.cut &&
		   again.removed == record.removed);
	FUZZ_CHECK(record.cut && record.cut <= record.generation);
	check_owner(&again.owner, &record.owner);
	check_same(&again.settings, &record.settings);
	FUZZ_CHECK(again.used == record.used);
}

static void try_host(const char *text)
{
	struct host_record host, again;
	char printed[RECORD_TEXT];
	int err = record_parse_host(text, &host);

	FUZZ_CHECK(!err || err == -EINVAL);
	if (err)
		return;
	FUZZ_CHECK(memchr(host.name, '\0', sizeof(host.name)));
	for (const char *c = host.name; *c; c++)
		FUZZ_CHECK((unsigned char)*c > ' ' && *c != 0x7f);
	record_print_host(&host, printed);
	check_printed(printed, sizeof(printed));
	FUZZ_CHECK(record_parse_host(printed, &again) == 0);
	FUZZ_CHECK(!strcmp(again.name, host.name));
	FUZZ_CHECK(again.weight == host.weight && again.held == host.held);
}

/* Into a bucket goes what a marker says: never more than there is room for. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	try_globals(text);
	try_record(text);
	try_host(text);
	free(text);
	return 0;
}
