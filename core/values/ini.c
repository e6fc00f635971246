/* ini - a file of limiters, see ini.h. */
#include "core/values/ini.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SPACE[] = " \t\r\v\f";

/* Copies the next line, cut at both ends, to @line; false at the end of the text. */
static bool next_line(struct ini *ini, const char **start, size_t *length)
{
	size_t whole = strcspn(ini->at, "\n");

	if (!*ini->at)
		return false;
	*start = ini->at + strspn(ini->at, SPACE);
	if (*start > ini->at + whole)
		*start = ini->at + whole;
	*length = (size_t)(ini->at + whole - *start);
	while (*length && strchr(SPACE, (*start)[*length - 1]))
		(*length)--;
	ini->at += whole + (ini->at[whole] == '\n');
	ini->line++;
	return true;
}

static bool is_blank(const char *start, size_t length)
{
	return !length || *start == '#' || *start == ';';
}

static int refuse(const struct ini *ini, char error[ERROR_TEXT], const char *why)
{
	snprintf(error, ERROR_TEXT, "line %u: %.400s", ini->line, why);
	return -EINVAL;
}

/* `[a/b]`: each name of the path must be one that a limiter can have; or `[/]`. */
static int parse_header(const struct ini *ini, const char *start, size_t length,
			struct ini_section *section, char error[ERROR_TEXT])
{
	char name[NAME_BYTES_MAX + 2], why[ERROR_TEXT];
	const char *at = section->path;
	unsigned int depth = 0;

	if (length < 3 || start[length - 1] != ']')
		return refuse(ini, error, "not a section: [LIMITER] or [LIMITER/CHILD]");
	if (length == 3 && start[1] == '/') {
		section->path[0] = '\0';
		return 0;
	}
	if (length - 2 >= sizeof(section->path))
		return refuse(ini, error, "the path is too long");
	memcpy(section->path, start + 1, length - 2);
	section->path[length - 2] = '\0';
	for (;;) {
		size_t part = strcspn(at, "/");

		if (part >= sizeof(name))
			return refuse(ini, error, "a name has at most 255 bytes");
		memcpy(name, at, part);
		name[part] = '\0';
		if (name_check(name, why))
			return refuse(ini, error, why);
		if (++depth > DEPTH_MAX)
			return refuse(ini, error, "limiters are nested at most 16 deep");
		if (!at[part])
			return 0;
		at += part + 1;
	}
}

int ini_next(struct ini *ini, struct ini_section *section, char error[ERROR_TEXT])
{
	const char *start;
	size_t length;
	int err;

	do {
		if (!next_line(ini, &start, &length))
			return 0;
	} while (is_blank(start, length));
	if (*start != '[')
		return refuse(ini, error, "a setting outside of a section");
	err = parse_header(ini, start, length, section, error);
	if (err)
		return err;
	section->line = ini->line;
	section->body = ini->at;
	for (;;) {
		struct ini before = *ini;

		if (!next_line(ini, &start, &length))
			break;
		if (*start == '[' && length) {
			*ini = before;
			break;
		}
	}
	section->length = (size_t)(ini->at - section->body);
	return 1;
}

static int parse_account(const char *value, char account[INI_ACCOUNT_TEXT], char why[ERROR_TEXT])
{
	if (!*value)
		return text_refuse(-EINVAL, why, value, "no value is given");
	if (strlen(value) >= INI_ACCOUNT_TEXT)
		return text_refuse(-EINVAL, why, value, "too long for a user or group");
	strcpy(account, value);
	return 0;
}

static int parse_access(const char *value, struct ini_owner *owner, char why[ERROR_TEXT])
{
	enum { OCTAL = 8, DIGITS_MAX = 5 };
	size_t digits = strspn(value, "01234567");
	unsigned long access;

	if (!digits || value[digits])
		return text_refuse(-EINVAL, why, value, "not a mode: such as 0755 or 2775");
	access = digits > DIGITS_MAX ? ULONG_MAX : strtoul(value, NULL, OCTAL);
	if (access > ACCESS_BITS)
		return text_refuse(-ERANGE, why, value, "out of bounds: a mode is 0 to 3777");
	owner->has_access = true;
	owner->access = (uint16_t)access;
	return 0;
}

/* One line, without white space at its ends. Whether it is of @owner; then 0 or -errno in @err. */
static bool parse_owner_line(const char *line, struct ini_owner *owner, int *err,
			     char why[ERROR_TEXT])
{
	size_t length = strcspn(line, "=");
	const char *value;
	char name[sizeof("owner")];

	if (!line[length] || text_copy(line, length, name, sizeof(name)))
		return false;
	value = line + length + 1;
	value += strspn(value, SPACE);
	if (!strcmp(name, "owner"))
		*err = parse_account(value, owner->user, why);
	else if (!strcmp(name, "group"))
		*err = parse_account(value, owner->group, why);
	else if (!strcmp(name, "mode"))
		*err = parse_access(value, owner, why);
	else
		return false;
	return true;
}

int ini_take_owner(char *text, struct ini_owner *owner, char error[ERROR_TEXT])
{
	char line[2 * SETTING_TEXT], why[ERROR_TEXT];
	unsigned int number = 0;

	*owner = (struct ini_owner){.has_access = false};
	while (*text) {
		size_t length = strcspn(text, "\n");
		int err = 0;

		number++;
		/* A line that is too long is no owner. */
		if (!text_copy(text, length, line, sizeof(line)) && !is_blank(line, strlen(line)) &&
		    parse_owner_line(line, owner, &err, why)) {
			if (err) {
				snprintf(error, ERROR_TEXT, "line %u: %.480s", number, why);
				return err;
			}
			memset(text, ' ', length);
		}
		text += length + (text[length] == '\n');
	}
	return 0;
}

bool ini_is_blank(const char *text)
{
	struct ini ini = {.at = text};
	const char *start;
	size_t length;

	while (next_line(&ini, &start, &length)) {
		if (!is_blank(start, length))
			return false;
	}
	return true;
}

int ini_parse(char *text, struct settings *settings, struct ini_owner *owner,
	      char error[ERROR_TEXT])
{
	int err = ini_take_owner(text, owner, error);

	if (err || ini_is_blank(text))
		return err;
	return settings_parse(text, settings, error);
}
