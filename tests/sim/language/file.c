/*
 * file - the files of a limiter that a trace can name, see trace.h.
 *
 * FILES is a row per name; a setting has a file of its name, `partitions.X` below `partitions`. No
 * limiter can have one of these names, so the first component of a path that is among them ends the
 * path of the limiter.
 */
#include "tests/sim/language/trace.h"

#include <stdlib.h>
#include <string.h>

/* The text that may follow the name. */
enum ending { REST_NONE, REST_DURATION, REST_TOKENS, REST_TAKE, REST_PARTITION, REST_KEY };

static const struct file_row {
	const char *name;
	enum file_kind kind;
	enum ending rest;
} FILES[] = {
	{"token", FILE_TOKEN, REST_NONE},   {"try", FILE_TRY, REST_NONE},
	{"stream", FILE_STREAM, REST_NONE}, {"take", FILE_TAKE, REST_TAKE},
	{"eta", FILE_ETA, REST_TOKENS},	    {"stat", FILE_STAT, REST_NONE},
	{"slot", FILE_SLOT, REST_NONE},	    {"slot,within=", FILE_SLOT, REST_DURATION},
	{"charge", FILE_CHARGE, REST_NONE}, {"feedback", FILE_FEEDBACK, REST_NONE},
	{"config", FILE_CONFIG, REST_NONE}, {"partitions", FILE_HELD, REST_PARTITION},
	{"keys", FILE_TOKEN, REST_KEY},
};

enum { FILE_COUNT = sizeof(FILES) / sizeof(FILES[0]) };

/* Below `partitions`, and below one of them. */
static const struct {
	const char *name;
	enum file_kind kind;
	bool of_one;
} PARTITION_FILES[] = {
	{"held", FILE_HELD, false},
	{"token", FILE_PARTITION_TOKEN, true},
	{"rate", FILE_PARTITION_RATE, true},
};

enum { PARTITION_FILE_COUNT = sizeof(PARTITION_FILES) / sizeof(PARTITION_FILES[0]) };

static const char WITHIN[] = ",within=";

static const struct file_row OF_SETTING = {.kind = FILE_SETTING, .rest = REST_NONE};

/* The setting called @prefix and the @length bytes of @name, or SETTING_COUNT. */
static enum setting_id find_setting(const char *prefix, const char *name, size_t length)
{
	int id = 0;

	for (; id < SETTING_COUNT; id++) {
		const char *its = setting_name((enum setting_id)id);

		if (strncmp(its, prefix, strlen(prefix)) != 0)
			continue;
		its += strlen(prefix);
		if (strlen(its) == length && !memcmp(its, name, length))
			break;
	}
	return (enum setting_id)id;
}

/* Finds the row of @name, of @length bytes; a duration is no part of the name, nor of @length. */
static const struct file_row *find_row(const char *name, size_t *length)
{
	for (size_t i = 0; i < FILE_COUNT; i++) {
		size_t its = strlen(FILES[i].name);
		bool may_be_longer = FILES[i].rest == REST_DURATION;

		if (memcmp(FILES[i].name, name, its < *length ? its : *length) != 0 ||
		    its > *length || (its < *length && !may_be_longer))
			continue;
		*length = its;
		return &FILES[i];
	}
	return find_setting("", name, *length) < SETTING_COUNT ? &OF_SETTING : NULL;
}

bool file_has_name(const char *name)
{
	size_t length = strlen(name);

	return find_row(name, &length);
}

static int parse_partition(const char *rest, struct file *file)
{
	char *end;
	unsigned long index = strtoul(rest, &end, 10);
	bool of_one = end > rest && *end == '/';

	if (of_one)
		rest = end + 1;
	for (size_t i = 0; i < PARTITION_FILE_COUNT; i++) {
		if (PARTITION_FILES[i].of_one != of_one || strcmp(PARTITION_FILES[i].name, rest))
			continue;
		file->kind = PARTITION_FILES[i].kind;
		file->index = index > UINT32_MAX ? UINT32_MAX : (uint32_t)index;
		return 0;
	}
	if (of_one)
		return -1;
	file->kind = FILE_SETTING;
	file->setting = find_setting("partitions.", rest, strlen(rest));
	return file->setting < SETTING_COUNT ? 0 : -1;
}

static int parse_tokens(const char *rest, bool is_take, struct file *file)
{
	const char *within = strstr(rest, WITHIN);
	size_t length = within ? (size_t)(within - rest) : strlen(rest);
	char amount[4 * QUANTITY_TEXT] = "";

	if (length >= sizeof(amount) || (within && !is_take))
		return -1;
	memcpy(amount, rest, length);
	if (is_take ? amounts_parse_take(amount, &file->tokens, &file->most, &file->amounts)
		    : amounts_parse(amount, &file->tokens, &file->amounts))
		return -1;
	return within ? duration_parse(within + strlen(WITHIN), &file->within_ns) : 0;
}

static int parse_rest(const struct file_row *row, const char *rest, struct file *file);

/* KEY/FILE */
static int parse_key(const char *rest, struct file *file)
{
	size_t length = strcspn(rest, "/"), name;
	const struct file_row *row;
	char key[KEY_TEXT];

	if (!length || length >= sizeof(key) || *rest == '.' || !rest[length])
		return -1;
	memcpy(key, rest, length);
	key[length] = '\0';
	rest += length + 1;
	if (!strcmp(rest, "rate") || !strcmp(rest, "burst")) {
		*file = (struct file){.kind = FILE_SETTING, .within_ns = NEVER_NS};
		file->setting = *rest == 'r' ? SETTING_KEY_RATE : SETTING_KEY_BURST;
		memcpy(file->key, key, sizeof(key));
		return 0;
	}
	name = strcspn(rest, "/");
	row = find_row(rest, &name);
	if (!row || row->kind > FILE_SLOT || row->rest == REST_KEY ||
	    parse_rest(row, rest + name, file))
		return -1;
	memcpy(file->key, key, sizeof(key));
	return 0;
}

static int parse_rest(const struct file_row *row, const char *rest, struct file *file)
{
	*file = (struct file){.kind = row->kind, .within_ns = NEVER_NS};
	if (row->rest == REST_NONE)
		return *rest ? -1 : 0;
	if (row->rest == REST_DURATION)
		return duration_parse(rest, &file->within_ns) ? -1 : 0;
	if (*rest != '/')
		return -1;
	if (row->rest == REST_PARTITION)
		return parse_partition(rest + 1, file);
	if (row->rest == REST_KEY)
		return parse_key(rest + 1, file);
	return parse_tokens(rest + 1, row->rest == REST_TAKE, file) ? -1 : 0;
}

int file_parse(const char *text, size_t *path_length, struct file *file)
{
	const char *at = text;

	while (*at) {
		size_t length = strcspn(at, "/");
		const struct file_row *row = find_row(at, &length);

		if (row) {
			*path_length = at > text ? (size_t)(at - text) - 1 : 0;
			if (!*path_length || parse_rest(row, at + length, file))
				return -1;
			if (row == &OF_SETTING)
				file->setting = find_setting("", at, length);
			return 0;
		}
		at += length + (at[length] == '/');
	}
	return -1;
}
