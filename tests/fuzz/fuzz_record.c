/*
 * fuzz_record - any text as what each kind of node of a fleet holds: it is taken whole or refused,
 * and what was taken is printed so that it reads back the same.
 */
#include "fuzz.h"

#include "core/fleet/record.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void check_same(const struct settings *a, const struct settings *b)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		FUZZ_CHECK(setting_equal((enum setting_id)id, a, b));
	FUZZ_CHECK(overrides_equal(a->overrides, b->overrides));
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
	char *printed, error[ERROR_TEXT] = "";
	int err = record_parse(text, &record, error);

	if (err) {
		FUZZ_CHECK(err == -EINVAL && error[0] && memchr(error, '\0', ERROR_TEXT));
		return;
	}
	printed = record_text(&record);
	FUZZ_CHECK(printed);
	check_printed(printed, RECORD_TEXT + overrides_length(record.settings.overrides));
	FUZZ_CHECK(record_parse(printed, &again, error) == 0);
	FUZZ_CHECK(!strcmp(again.name, record.name) && !strcmp(again.writer, record.writer));
	FUZZ_CHECK(again.parent == record.parent && again.generation == record.generation &&
		   again.saved == record.saved && again.cut == record.cut &&
		   again.removed == record.removed);
	FUZZ_CHECK(record.cut && record.cut <= record.generation);
	check_owner(&again.owner, &record.owner);
	check_same(&again.settings, &record.settings);
	FUZZ_CHECK(again.used == record.used);
	record_drop(&again);
	record_drop(&record);
	free(printed);
}

/* A rate is printed with four figures. */
static void check_uses(const struct host_record *a, const struct host_record *b)
{
	FUZZ_CHECK(a->has_uses == b->has_uses && a->use_count == b->use_count);
	FUZZ_CHECK(a->use_count <= HOST_USES_MAX);
	for (uint32_t i = 0; i < a->use_count; i++) {
		const struct host_use *use = &a->uses[i], *other = &b->uses[i];

		FUZZ_CHECK(use->id == other->id && use->waiting == other->waiting);
		FUZZ_CHECK(use->granted >= 0 && use->granted <= 1e12);
		FUZZ_CHECK(fabs(use->granted - other->granted) <= other->granted * 1e-3);
	}
}

/* Commands are words that a terminal may have. */
static void check_slots(const struct host_record *a, const struct host_record *b)
{
	FUZZ_CHECK(a->slot_count == b->slot_count && a->slot_count <= HOST_SLOTS_MAX);
	for (uint32_t i = 0; i < a->slot_count; i++) {
		const struct host_slot *slot = &a->slots[i], *other = &b->slots[i];

		FUZZ_CHECK(slot->id == other->id && slot->pid == other->pid &&
			   slot->uid == other->uid && slot->held_s == other->held_s);
		FUZZ_CHECK(memchr(slot->command, '\0', COMMAND_TEXT) && *slot->command);
		FUZZ_CHECK(!strcmp(slot->command, other->command));
		for (const char *c = slot->command; *c; c++)
			FUZZ_CHECK((unsigned char)*c > ' ' && (unsigned char)*c < 0x7f);
	}
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
	check_uses(&again, &host);
	check_slots(&again, &host);
}

static void try_caps(const char *text)
{
	struct host_caps caps, again;
	char printed[HOST_CAPS_TEXT], anew[HOST_CAPS_TEXT];

	record_parse_caps(text, &caps);
	FUZZ_CHECK(caps.count <= HOST_CAPS_MAX);
	for (uint32_t i = 0; i < caps.count; i++)
		FUZZ_CHECK(caps.list[i].leaves && caps.list[i].limit < LIMITS_MAX);
	record_print_caps(&caps, printed);
	check_printed(printed, sizeof(printed));
	record_parse_caps(printed, &again);
	FUZZ_CHECK(again.count == caps.count);
	record_print_caps(&again, anew);
	FUZZ_CHECK(!strcmp(anew, printed));
}

static void try_told(const char *text)
{
	struct told_quotas quotas, again;
	struct told_marks marks, marks_again;
	char printed[TOLD_TEXT], printed_marks[TOLD_MARKS_TEXT];
	int err = record_parse_told(text, &quotas);

	record_parse_told_marks(text, &marks);
	record_print_told_marks(&marks, printed_marks);
	record_parse_told_marks(printed_marks, &marks_again);
	FUZZ_CHECK(!memcmp(&marks, &marks_again, sizeof(marks)));
	FUZZ_CHECK(!err || err == -EINVAL);
	if (err)
		return;
	FUZZ_CHECK(quotas.count <= TOLD_QUOTAS_MAX);
	for (uint32_t i = 0; i < quotas.count; i++) {
		FUZZ_CHECK(quotas.list[i].id > ALLOWANCE_JOINED && quotas.list[i].rest_ms);
		FUZZ_CHECK(quotas.list[i].tokens <= TOKENS_MAX);
		FUZZ_CHECK(memchr(quotas.list[i].unit, '\0', UNIT_TEXT));
	}
	record_print_told(&quotas, printed);
	check_printed(printed, sizeof(printed));
	FUZZ_CHECK(record_parse_told(printed, &again) == 0);
	FUZZ_CHECK(!memcmp(&again, &quotas, sizeof(again)));
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
	try_caps(text);
	try_told(text);
	free(text);
	return 0;
}
