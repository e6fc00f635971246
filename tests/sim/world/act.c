/* act - runs the commands of a trace as the mount would, see act.h. */
#include "tests/sim/language/expect.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/load.h"
#include "tests/sim/actors/outcome.h"
#include "tests/sim/actors/polling.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/retry.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/actors/writing.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/world/act.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/partition.h"
#include "core/limiter/stat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_ROOM = 4096 };

void act_refused(struct sim *sim, const struct host *host, const struct command *command, int err,
		 const char *sentence)
{
	if (host)
		sim->hosts[host - sim->hosts].refused++;
	sim_print(sim, host, "error %u %s %s", command->line, sim_error_symbol(err), sentence);
	answers_note_refusal(sim, command->name, err);
}

static void refuse_path(struct host *host, const struct command *command)
{
	char why[WHY_TEXT];

	snprintf(why, sizeof(why), "there is no limiter '%.400s'", command->path);
	act_refused(host->sim, host, command, -ENOENT, why);
}

static void act_mkdir(struct host *host, const struct command *command)
{
	struct change change = {.kind = CHANGE_MAKE, .owner = {.access = 0755}};
	const char *slash = strrchr(command->path, '/');
	const char *name = slash ? slash + 1 : command->path;
	struct place *parent = NULL;

	if (slash) {
		char *above = memory_text(command->path, (size_t)(slash - command->path));

		parent = place_at(host, above);
		free(above);
		if (!parent) {
			refuse_path(host, command);
			return;
		}
	}
	if (file_has_name(name)) {
		act_refused(host->sim, host, command, -EEXIST, "a control file has that name");
		return;
	}
	change.limiter = parent ? parent->limiter : host->engine.tree.root;
	snprintf(change.name, sizeof(change.name), "%s", name);
	if (!writing_begin(host, &change, command))
		place_add(host, parent, tree_find(&host->engine.tree, change.limiter, name),
			  command->path);
}

static void act_rmdir(struct sim *sim, struct place *place, const struct command *command)
{
	struct change change = {.kind = CHANGE_REMOVE, .limiter = place->limiter};
	struct host *host = place->host;

	(void)sim;
	(void)writing_begin(host, &change, command);
	host_collect(host);
	place_forget_removed(host);
}

/* Renames a limiter among its siblings. */
static void act_mv(struct sim *sim, struct place *place, const struct command *command)
{
	struct change change = {.kind = CHANGE_RENAME, .limiter = place->limiter};

	if (file_has_name(command->text)) {
		act_refused(sim, place->host, command, -EEXIST, "a control file has that name");
		return;
	}
	snprintf(change.name, sizeof(change.name), "%s", command->text);
	if (!writing_begin(place->host, &change, command))
		place_follow_name(place);
}

static void act_charge(struct sim *sim, struct place *place, const struct command *command)
{
	struct host *host = place->host;
	struct charge charge;
	int err = amounts_parse_charge(command->text, &charge);
	struct memory *before;

	if (err) {
		act_refused(sim, host, command, err, "a charge is a number such as 12 or -5");
		return;
	}
	before = host_enter(host);
	err = engine_charge(&host->engine, place->limiter, &charge, host_now(host));
	host_leave(before);
	if (err)
		act_refused(sim, host, command, err,
			    err == -ERANGE   ? "more would come back than was taken"
			    : err == -EINVAL ? "there is no such unit"
					     : "the limiter is gone");
	else
		ledger_charged(sim, place, &charge);
}

static void act_write(struct sim *sim, struct place *place, const struct command *command)
{
	struct change change = {.kind = CHANGE_SETTINGS, .limiter = place->limiter};

	if (command->file.kind == FILE_CHARGE) {
		act_charge(sim, place, command);
		return;
	}
	if (command->file.kind == FILE_FEEDBACK) {
		outcome_write(sim, place, command);
		return;
	}
	change.setting = command->file.kind == FILE_CONFIG ? (unsigned int)CHANGE_CONFIG
							   : command->file.setting;
	if (*command->file.key) {
		change.setting = command->file.setting == SETTING_KEY_RATE ? CHANGE_KEY_RATE
									   : CHANGE_KEY_BURST;
		snprintf(change.name, sizeof(change.name), "%s", command->file.key);
	}
	change.text = command->text;
	ledger_tuning(sim, place);
	if (writing_begin(place->host, &change, command))
		return;
	ledger_tuned(sim, place);
	host_collect(place->host);
	place_forget_removed(place->host);
}

/* `text NAME line` for each line. */
static void print_text(const struct host *host, const char *name, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		char *line = memory_text(text, length);

		answers_tell(host->sim, host, name, "text", line);
		free(line);
		text += length + (text[length] == '\n');
	}
}

static void refuse_reading(const struct host *host, const struct command *command)
{
	answers_refuse(host->sim, host, command->text, -ENOENT);
}

static void print_eta(struct place *place, const struct command *command)
{
	struct host *host = place->host;
	struct memory *before;
	char text[QUANTITY_TEXT];

	if (place->is_key && key_enter(place)) {
		refuse_reading(host, command);
		return;
	}
	before = host_enter(host);

	seconds_print(engine_eta(&host->engine, place->limiter, command->file.tokens,
				 command->file.amounts.count ? &command->file.amounts : NULL,
				 host_now(host)),
		      3, text);
	host_leave(before);
	print_text(host, command->text, text);
	if (place->is_key)
		key_leave(place);
}

static void print_stat(struct place *place, const struct command *command)
{
	struct host *host = place->host;
	struct memory *before;
	char text[STAT_TEXT];

	if (place->is_key && key_enter(place)) {
		refuse_reading(host, command);
		return;
	}
	before = host_enter(host);

	engine_refresh(&host->engine, place->limiter, host_now(host));
	stat_print(place->limiter, text);
	host_leave(before);
	print_text(host, command->text, text);
	if (place->is_key)
		key_leave(place);
}

static void print_settings(const struct place *place, const struct command *command)
{
	char text[CONFIG_ROOM];

	if (command->file.kind == FILE_CONFIG)
		settings_print(&place->settings, text, sizeof(text));
	else
		setting_print(command->file.setting, &place->settings, text);
	print_text(place->host, command->text, text);
}

/* The pieces that are held, where partitions have no numbers. */
static void print_pieces(const struct place *place, const struct command *command)
{
	const struct holding *holding = place->limiter->holding;
	char *text = memory_get((size_t)(holding->lease_count + 1) * 2 * QUANTITY_TEXT);
	size_t used = 0;

	for (uint32_t i = 0; i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (lease->state == LEASE_HELD)
			used += (size_t)snprintf(text + used, 2 * QUANTITY_TEXT, "%s%u-%u",
						 used ? " " : "", lease->first, lease->last);
	}
	print_text(place->host, command->text, *text ? text : "none");
	free(text);
}

/* A host alone holds them all. */
static void print_held(const struct place *place, const struct command *command)
{
	const struct host *host = place->host;
	uint32_t shares, count = partition_count(place->limiter, &shares);
	char *text;
	size_t used = 0;

	if (host->fleet && !holding_has_numbers(place->limiter->holding->settings)) {
		print_pieces(place, command);
		return;
	}
	text = memory_get((size_t)count * QUANTITY_TEXT);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = partition_at(place->limiter, i);

		if (host->fleet && !fleet_is_entitled(host->fleet, place->limiter->holding, index))
			continue;
		used += (size_t)snprintf(text + used, QUANTITY_TEXT, "%s%u", used ? " " : "", i);
	}
	print_text(host, command->text, *text ? text : "none");
	free(text);
}

static void read_partition(struct sim *sim, struct place *place, const struct command *command)
{
	struct place *partition = place_partition(place, command->file.index);
	char text[SETTING_TEXT];

	if (!partition) {
		refuse_reading(place->host, command);
		return;
	}
	if (command->file.kind == FILE_PARTITION_RATE) {
		if (sim->fleet)
			partition->settings = *limiter_settings(partition->limiter);
		setting_print(SETTING_RATE, &partition->settings, text);
		print_text(place->host, command->text, text);
		return;
	}
	reader_ask(sim,
		   reader_new(sim, partition, memory_text(command->text, strlen(command->text)),
			      sizeof(struct reader)),
		   1, 1, NEVER_NS);
}

static void read_token(struct sim *sim, struct place *place, const struct command *command)
{
	const struct file *file = &command->file;
	char *name = memory_text(command->text, strlen(command->text));
	struct reader *reader = reader_new(sim, place, name, sizeof(*reader));

	reader->amounts = file->amounts;
	if (file->kind == FILE_TRY)
		reader_try(sim, reader);
	else if (file->kind == FILE_TAKE)
		reader_ask(sim, reader, file->tokens, file->most, file->within_ns);
	else
		reader_ask(sim, reader, 1, 1, NEVER_NS);
}

/* Tells whether there is a @file with such amounts in its name, in @place. */
static bool knows_units(const struct place *place, const struct file *file)
{
	const struct amounts *amounts = &file->amounts;

	for (uint64_t i = 0; i < amounts->count; i++) {
		if (!units_know(place->limiter, *file->key, amounts->of[i].unit))
			return false;
	}
	return true;
}

static void act_read(struct sim *sim, struct place *place, const struct command *command)
{
	if (!knows_units(place, &command->file)) {
		refuse_reading(place->host, command);
		return;
	}
	if (*command->file.key)
		place = key_of(place, command->file.key);
	switch (command->file.kind) {
	case FILE_TOKEN:
	case FILE_TRY:
	case FILE_TAKE:
		read_token(sim, place, command);
		break;
	case FILE_STREAM:
		load_stream(sim, place, command->text);
		break;
	case FILE_ETA:
		print_eta(place, command);
		break;
	case FILE_STAT:
		print_stat(place, command);
		break;
	case FILE_CONFIG:
	case FILE_SETTING:
		print_settings(place, command);
		break;
	case FILE_HELD:
		print_held(place, command);
		break;
	case FILE_PARTITION_TOKEN:
	case FILE_PARTITION_RATE:
		read_partition(sim, place, command);
		break;
	case FILE_CHARGE:
	case FILE_FEEDBACK:
	case FILE_SLOT:
		break;
	}
}

static void act_poll(struct sim *sim, struct place *place, const struct command *command)
{
	if (*command->file.key)
		place = key_of(place, command->file.key);
	else if (command->file.kind == FILE_PARTITION_TOKEN)
		place = place_partition(place, command->file.index);
	if (place)
		polling_start(sim, place, command);
	else
		refuse_reading(&sim->hosts[command->host], command);
}

static void act_open(struct sim *sim, struct place *place, const struct command *command)
{
	if (*command->file.key)
		place = key_of(place, command->file.key);
	slot_open(sim, place, command->text, command->file.within_ns);
}

/* Postpones @command until @host, a process that is stopped, goes on. */
static void postpone(struct host *host, const struct command *command)
{
	size_t room = host->command_count + 1;
	const struct command **larger = memory_get(room * sizeof(*larger));

	if (host->command_count)
		memcpy(larger, host->commands, host->command_count * sizeof(*larger));
	larger[host->command_count++] = command;
	free(host->commands);
	host->commands = larger;
}

static void cancel_polling(struct sim *sim, const struct command *command)
{
	struct polling *polling = polling_named(sim, command->text);

	if (!polling)
		return;
	if (polling_host(polling)->paused)
		postpone(polling_host(polling), command);
	else
		polling_end(sim, polling);
}

/* Also `interrupt`. */
static void act_cancel(struct sim *sim, const struct command *command)
{
	struct reader *reader = reader_named(sim, command->text);

	if (command->kind == COMMAND_CANCEL)
		cancel_polling(sim, command);
	if (reader && reader->place->host->paused) {
		postpone(reader->place->host, command);
		return;
	}
	if (!reader)
		return;
	/* Readers that are due until now are served first. */
	host_step(reader->place->host);
	reader = reader_named(sim, command->text);
	/* A reader that was served meanwhile cannot be interrupted any more. */
	if (reader && command->kind == COMMAND_INTERRUPT)
		reader_interrupt(sim, reader, command->span_ns);
	else if (reader)
		reader_cancel(sim, reader);
}

/* Also `number`. */
static void act_close(struct sim *sim, const struct command *command)
{
	struct opener *opener = slot_named(sim, command->text);

	if (!opener)
		return;
	if (slot_host(opener)->paused)
		postpone(slot_host(opener), command);
	else if (command->kind == COMMAND_NUMBER)
		slot_number(sim, opener);
	else
		slot_close(sim, opener);
}

static void act_retry(struct sim *sim, struct place *place, const struct command *command)
{
	if (!command->gated && !place_service(place))
		act_refused(sim, place->host, command, -EINVAL, NO_SERVICE);
	else
		retry_start(sim, place, command);
}

/* The table: commands on a limiter that is there. */
static const struct {
	enum command_kind kind;
	void (*act)(struct sim *sim, struct place *place, const struct command *command);
} ON_PATH[] = {
	{COMMAND_RMDIR, act_rmdir},	{COMMAND_MV, act_mv},
	{COMMAND_WRITE, act_write},	{COMMAND_READ, act_read},
	{COMMAND_LOAD, load_start},	{COMMAND_WORKERS, load_workers},
	{COMMAND_SERVICE, service_set}, {COMMAND_RETRY, act_retry},
	{COMMAND_TALLY, service_tally}, {COMMAND_OPEN, act_open},
	{COMMAND_SLOTS, slots_print},	{COMMAND_POLL, act_poll},
};

static void act_on_path(struct sim *sim, struct place *place, const struct command *command)
{
	for (size_t i = 0; i < sizeof(ON_PATH) / sizeof(ON_PATH[0]); i++) {
		if (ON_PATH[i].kind == command->kind)
			ON_PATH[i].act(sim, place, command);
	}
}

/* Requests to the mount of @host. */
static void act_on_host(struct host *host, const struct command *command)
{
	struct place *place;

	if (host->paused) {
		postpone(host, command);
		return;
	}
	if (host->state != HOST_UP &&
	    (command->kind == COMMAND_READ || command->kind == COMMAND_OPEN)) {
		answers_refuse(host->sim, host, command->text, -ENOTCONN);
		return;
	}
	if (host->state != HOST_UP) {
		act_refused(host->sim, host, command, -ENOTCONN, "nothing is mounted");
		return;
	}
	if (command->kind == COMMAND_MKDIR) {
		act_mkdir(host, command);
		return;
	}
	if (command->kind == COMMAND_CLOCK) {
		host_set_clock(host, command->wall_ns);
		return;
	}
	place = place_at(host, command->path);
	if (place)
		act_on_path(host->sim, place, command);
	else if (command->kind == COMMAND_READ || command->kind == COMMAND_OPEN)
		refuse_reading(host, command);
	else
		refuse_path(host, command);
}

void act(struct sim *sim, const struct command *command)
{
	struct host *host = &sim->hosts[command->host];

	if (command->kind == COMMAND_EXPECT)
		expect_check(sim, command);
	else if (command->kind == COMMAND_COUNT)
		expect_count(sim);
	else if (command->kind == COMMAND_CANCEL || command->kind == COMMAND_INTERRUPT)
		act_cancel(sim, command);
	else if (command->kind == COMMAND_CLOSE || command->kind == COMMAND_NUMBER)
		act_close(sim, command);
	else if (command->path || command->kind == COMMAND_CLOCK)
		act_on_host(host, command);
	else
		act_fleet(sim, command);
}
