/*
 * file - the files of a limiter that a trace can name, see trace.h.
 *
 * FILES is a row per name. No limiter can have one of these names, so the first component of a path
 * that is among them ends the path of the limiter.
 */
#include "tests/sim/language/trace.h"

#include <stdlib.h>
#include <string.h>

/* The text that may follow the name. */
enum rest { REST_NONE, REST_TOKENS, REST_TOKENS_WITHIN, REST_PARTITION, REST_KEY };

static const struct file_row {
	const char *name;
	enum file_kind kind;
	enum setting_id setting;
	enum rest rest;
} FILES[] = {
	{"token", FILE_TOKEN, 0, REST_NONE},
	{"try", FILE_TRY, 0, REST_NONE},
	{"stream", FILE_STREAM, 0, REST_NONE},
	{"take", FILE_TAKE, 0, REST_TOKENS_WITHIN},
	{"eta", FILE_ETA, 0, REST_TOKENS},
	{"stat", FILE_STAT, 0, REST_NONE},
	{"slot", FILE_SLOT, 0, REST_NONE},
	{"charge", FILE_CHARGE, 0, REST_NONE},
	{"feedback", FILE_FEEDBACK, 0, REST_NONE},
	{"config", FILE_CONFIG, 0, REST_NONE},
	{"rate", FILE_SETTING, SETTING_RATE, REST_NONE},
	{"burst", FILE_SETTING, SETTING_BURST, REST_NONE},
	{"release_interval", FILE_SETTING, SETTING_RELEASE_INTERVAL, REST_NONE},
	{"enforcement", FILE_SETTING, SETTING_ENFORCEMENT, REST_NONE},
	{"offline", FILE_SETTING, SETTING_OFFLINE, REST_NONE},
	{"adapt", FILE_SETTING, SETTING_ADAPT, REST_NONE},
	{"backoff", FILE_SETTING, SETTING_BACKOFF, REST_NONE},
	{"concurrency", FILE_SETTING, SETTING_CONCURRENCY, REST_NONE},
	{"key_rate", FILE_SETTING, SETTING_KEY_RATE, REST_NONE},
	{"key_burst", FILE_SETTING, SETTING_KEY_BURST, REST_NONE},
	{"keys_max", FILE_SETTING, SETTING_KEYS_MAX, REST_NONE},
	{"partitions", FILE_HELD, 0, REST_PARTITION},
	{"keys", FILE_TOKEN, 0, REST_KEY},
};

enum { FILE_COUNT = sizeof(FILES) / sizeof(FILES[0]) };

/* Below `partitions`, and below one of them. */
static const struct {
	const char *name;
	enum file_kind kind;
	enum setting_id setting;
	bool of_one;
} PARTITION_FILES[] = {
	{"held", FILE_HELD, 0, false},
	{"count", FILE_SETTING, SETTING_PARTITIONS_COUNT, false},
	{"lease", FILE_SETTING, SETTING_PARTITIONS_LEASE, false},
	{"reserve", FILE_SETTING, SETTING_PARTITIONS_RESERVE, false},
	{"token", FILE_PARTITION_TOKEN, 0, true},
	{"rate", FILE_PARTITION_RATE, 0, true},
};

enum { PARTITION_FILE_COUNT = sizeof(PARTITION_FILES) / sizeof(PARTITION_FILES[0]) };

static const char WITHIN[] = ",within=";

static const struct file_row *find_row(const char *name, size_t length)
{
	for (size_t i = 0; i < FILE_COUNT; i++) {
		if (strlen(FILES[i].name) == length && !memcmp(FILES[i].name, name, length))
			return &FILES[i];
	}
	return NULL;
}

bool file_has_name(const char *name)
{
	return find_row(name, strlen(name));
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
		file->setting = PARTITION_FILES[i].setting;
		file->index = index > UINT32_MAX ? UINT32_MAX : (uint32_t)index;
		return 0;
	}
	return -1;
}

static int parse_tokens(const char *rest, bool may_end, struct file *file)
{
	const char *within = strstr(rest, WITHIN);
	size_t length = within ? (size_t)(within - rest) : strlen(rest);
	char number[QUANTITY_TEXT] = "";

	if (length >= sizeof(number) || (within && !may_end))
		return -1;
	memcpy(number, rest, length);
	if (tokens_parse(number, &file->tokens))
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
	name = strcspn(rest, "/");
	row = find_row(rest, name);
	if (!row || row->kind > FILE_STAT || row->rest == REST_KEY ||
	    parse_rest(row, rest + name, file))
		return -1;
	memcpy(file->key, key, sizeof(key));
	return 0;
}

static int parse_rest(const struct file_row *row, const char *rest, struct file *file)
{
	*file = (struct file){.kind = row->kind, .setting = row->setting, .within_ns = NEVER_NS};
	if (row->rest == REST_NONE)
		return *rest ? -1 : 0;
	if (*rest != '/')
		return -1;
	if (row->rest == REST_PARTITION)
		return parse_partition(rest + 1, file);
	if (row->rest == REST_KEY)
		return parse_key(rest + 1, file);
	return parse_tokens(rest + 1, row->rest == REST_TOKENS_WITHIN, file) ? -1 : 0;
}

int file_parse(const char *text, size_t *path_length, struct file *file)
{
	const char *at = text;

	while (*at) {
		size_t length = strcspn(at, "/");
		const struct file_row *row = find_row(at, length);

		if (row) {
			*path_length = at > text ? (size_t)(at - text) - 1 : 0;
			return *path_length ? parse_rest(row, at + length, file) : -1;
		}
		at += length + (at[length] == '/');
	}
	return -1;
}
