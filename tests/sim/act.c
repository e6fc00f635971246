/* act - runs the commands of a trace as the mount would, see sim.h. */
#include "memory.h"
#include "sim.h"

#include "core/partition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_ROOM = 4096 };

void act_refused(struct sim *sim, unsigned int line, int err, const char *sentence)
{
	sim_print(sim, "error %u %s %s", line, error_symbol(err), sentence);
}

static void refuse_path(struct sim *sim, const struct command *command)
{
	char why[WHY_TEXT];

	snprintf(why, sizeof(why), "there is no limiter '%.400s'", command->path);
	act_refused(sim, command->line, -ENOENT, why);
}

/* Makes @change; 0, or refuses. */
static int make_change(struct sim *sim, struct change *change, const struct command *command)
{
	engine_change(&sim->engine, change, sim->now_ns);
	if (engine_changed(&sim->engine) != change) {
		sim_fail(sim, 0, NULL, "a change got lost");
		return -EIO;
	}
	if (change->outcome)
		act_refused(sim, command->line, change->outcome, change->error);
	return change->outcome;
}

static void act_mkdir(struct sim *sim, const struct command *command)
{
	struct change change = {.kind = CHANGE_MAKE};
	const char *slash = strrchr(command->path, '/');
	const char *name = slash ? slash + 1 : command->path;
	struct place *parent = NULL;
	struct limiter *made;

	if (slash) {
		char *above = memory_text(command->path, (size_t)(slash - command->path));

		parent = place_at(sim, above);
		free(above);
		if (!parent) {
			refuse_path(sim, command);
			return;
		}
	}
	if (file_has_name(name)) {
		act_refused(sim, command->line, -EEXIST, "a control file has that name");
		return;
	}
	change.limiter = parent ? parent->limiter : sim->engine.tree.root;
	snprintf(change.name, sizeof(change.name), "%s", name);
	if (make_change(sim, &change, command))
		return;
	made = tree_find(&sim->engine.tree, change.limiter, name);
	place_add(sim, parent, made, command->path);
}

static void act_rmdir(struct sim *sim, struct place *place, const struct command *command)
{
	struct change change = {.kind = CHANGE_REMOVE, .limiter = place->limiter};

	(void)make_change(sim, &change, command);
	sim_collect(sim);
	place_forget_removed(sim);
}

static void act_charge(struct sim *sim, struct place *place, const struct command *command)
{
	int64_t tokens;
	int err = charge_parse(command->text, &tokens);

	if (err) {
		act_refused(sim, command->line, err, "a charge is a number such as 12 or -5");
		return;
	}
	err = engine_charge(&sim->engine, place->limiter, tokens, sim->now_ns);
	if (err)
		act_refused(sim, command->line, err,
			    err == -ERANGE ? "more would come back than was taken"
					   : "the limiter is gone");
	else
		ledger_charged(sim, place, tokens);
}

static void act_write(struct sim *sim, struct place *place, const struct command *command)
{
	struct change change = {.kind = CHANGE_SETTINGS, .limiter = place->limiter};

	if (command->file.kind == FILE_CHARGE) {
		act_charge(sim, place, command);
		return;
	}
	change.setting = command->file.kind == FILE_CONFIG ? (unsigned int)CHANGE_CONFIG
							   : command->file.setting;
	change.text = command->text;
	ledger_tuning(sim, place);
	if (make_change(sim, &change, command))
		return;
	ledger_tuned(sim, place);
	sim_collect(sim);
	place_forget_removed(sim);
}

/* `text NAME line` for each line. */
static void print_text(const struct sim *sim, const char *name, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		sim_print(sim, "text %s %.*s", name, (int)length, text);
		text += length + (text[length] == '\n');
	}
}

static void print_eta(struct sim *sim, const struct place *place, const struct command *command)
{
	char text[QUANTITY_TEXT];

	seconds_print(engine_eta(&sim->engine, place->limiter, command->file.tokens, sim->now_ns),
		      3, text);
	print_text(sim, command->text, text);
}

static void print_stat(struct sim *sim, const struct place *place, const struct command *command)
{
	char text[STAT_TEXT];

	engine_refresh(&sim->engine, place->limiter, sim->now_ns);
	stat_print(place->limiter, text);
	print_text(sim, command->text, text);
}

static void print_settings(const struct sim *sim, const struct place *place,
			   const struct command *command)
{
	char text[CONFIG_ROOM];

	if (command->file.kind == FILE_CONFIG)
		settings_print(&place->settings, text, sizeof(text));
	else
		setting_print(command->file.setting, &place->settings, text);
	print_text(sim, command->text, text);
}

/* A host alone holds them all. */
static void print_held(const struct sim *sim, const struct place *place,
		       const struct command *command)
{
	uint32_t shares, count = partition_count(place->limiter, &shares);
	char *text = memory_get((size_t)count * QUANTITY_TEXT);
	size_t used = 0;

	for (uint32_t i = 0; i < count; i++)
		used += (size_t)snprintf(text + used, QUANTITY_TEXT, "%s%u", i ? " " : "", i);
	print_text(sim, command->text, text);
	free(text);
}

static void refuse_reading(const struct sim *sim, const struct command *command)
{
	sim_print(sim, "refused %s %s", command->text, error_symbol(-ENOENT));
}

static void read_partition(struct sim *sim, struct place *place, const struct command *command)
{
	struct place *partition = place_partition(sim, place, command->file.index);
	char text[SETTING_TEXT];

	if (!partition) {
		refuse_reading(sim, command);
		return;
	}
	if (command->file.kind == FILE_PARTITION_RATE) {
		setting_print(SETTING_RATE, &partition->settings, text);
		print_text(sim, command->text, text);
		return;
	}
	reader_ask(sim,
		   reader_new(sim, partition, memory_text(command->text, strlen(command->text)),
			      sizeof(struct reader)),
		   1, NEVER_NS);
}

static void read_token(struct sim *sim, struct place *place, const struct command *command)
{
	const struct file *file = &command->file;
	char *name = memory_text(command->text, strlen(command->text));
	struct reader *reader = reader_new(sim, place, name, sizeof(*reader));

	if (file->kind == FILE_TRY)
		reader_try(sim, reader);
	else if (file->kind == FILE_TAKE)
		reader_ask(sim, reader, file->tokens, file->within_ns);
	else
		reader_ask(sim, reader, 1, NEVER_NS);
}

static void act_read(struct sim *sim, struct place *place, const struct command *command)
{
	switch (command->file.kind) {
	case FILE_TOKEN:
	case FILE_TRY:
	case FILE_TAKE:
		read_token(sim, place, command);
		break;
	case FILE_STREAM:
		stream_start(sim, place, command->text);
		break;
	case FILE_ETA:
		print_eta(sim, place, command);
		break;
	case FILE_STAT:
		print_stat(sim, place, command);
		break;
	case FILE_CONFIG:
	case FILE_SETTING:
		print_settings(sim, place, command);
		break;
	case FILE_HELD:
		print_held(sim, place, command);
		break;
	case FILE_PARTITION_TOKEN:
	case FILE_PARTITION_RATE:
		read_partition(sim, place, command);
		break;
	case FILE_CHARGE:
		break;
	}
}

static void act_cancel(struct sim *sim, const struct command *command)
{
	struct reader *reader = reader_named(sim, command->text);

	/* One who has been served meanwhile cannot be interrupted any more. */
	if (reader)
		reader_cancel(sim, reader);
}

void act(struct sim *sim, const struct command *command)
{
	struct place *place = command->path ? place_at(sim, command->path) : NULL;

	if (command->path && !place && command->kind != COMMAND_MKDIR) {
		if (command->kind == COMMAND_READ)
			refuse_reading(sim, command);
		else
			refuse_path(sim, command);
		return;
	}
	switch (command->kind) {
	case COMMAND_MKDIR:
		act_mkdir(sim, command);
		break;
	case COMMAND_RMDIR:
		act_rmdir(sim, place, command);
		break;
	case COMMAND_WRITE:
		act_write(sim, place, command);
		break;
	case COMMAND_READ:
		act_read(sim, place, command);
		break;
	case COMMAND_CANCEL:
		act_cancel(sim, command);
		break;
	case COMMAND_LOAD:
		load_start(sim, place, command);
		break;
	case COMMAND_WORKERS:
		workers_start(sim, place, command);
		break;
	case COMMAND_SERVICE:
		service_set(sim, place, command);
		break;
	case COMMAND_RETRY:
		if (place->service)
			retry_start(sim, place, command);
		else
			act_refused(sim, command->line, -EINVAL, "there is no service behind it");
		break;
	case COMMAND_END:
		break;
	}
}
