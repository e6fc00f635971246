/* ini - a file of limiters, see ini.h. */
#include "ini.h"

#include <errno.h>
#include <stdio.h>
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

/* `[a/b]`: each name of the path must be one that a limiter can have. */
static int parse_header(const struct ini *ini, const char *start, size_t length,
			struct ini_section *section, char error[ERROR_TEXT])
{
	char name[NAME_BYTES_MAX + 2], why[ERROR_TEXT];
	const char *at = section->path;
	unsigned int depth = 0;

	if (length < 3 || start[length - 1] != ']')
		return refuse(ini, error, "not a section: [LIMITER] or [LIMITER/CHILD]");
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
		if (tree_check_name(name, why))
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
	section->empty = true;
	for (;;) {
		struct ini before = *ini;

		if (!next_line(ini, &start, &length))
			break;
		if (*start == '[' && length) {
			*ini = before;
			break;
		}
		if (!is_blank(start, length))
			section->empty = false;
	}
	section->length = (size_t)(ini->at - section->body);
	return 1;
}
