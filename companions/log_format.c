/* log_format - lines of a log, see log_format.h. */
#include "companions/log_format.h"
#include "companions/log_time.h"

#include "core/values/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const FIELDS[LOG_FIELDS] = {
	[LOG_TIME] = "time",
	[LOG_LIMITER] = "limiter",
	[LOG_KEY] = "key",
	[LOG_COST] = "cost",
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Returns which field the @length bytes at @name name. */
static enum log_field find_field(const char *name, size_t length)
{
	enum log_field field = LOG_TIME;

	while (field < LOG_FIELDS &&
	       (strlen(FIELDS[field]) != length || strncmp(FIELDS[field], name, length) != 0))
		field++;
	return field;
}

/* Adds the field whose name begins at @name; the text after it is all up to the next field. */
static int add_piece(struct log_format *format, const char *name, size_t length,
		     char error[ERROR_TEXT])
{
	struct log_piece *piece = &format->pieces[format->count];
	enum log_field field = find_field(name, length);

	if (!length)
		return text_refuse(-EINVAL, error, name - 1, "a field needs a name: $time");
	if (format->count == LOG_PIECES_MAX) {
		snprintf(error, ERROR_TEXT, "more than %d fields", LOG_PIECES_MAX);
		return -EINVAL;
	}
	if (format->count && !*piece[-1].after)
		return text_refuse(-EINVAL, error, name - 1, "no text between two fields");
	if (field != LOG_OTHER && format->has[field])
		return text_refuse(-EINVAL, error, name - 1, "a field that is there twice");
	if (field != LOG_OTHER)
		format->has[field] = true;
	*piece = (struct log_piece){.field = field};
	format->count++;
	return 0;
}

int log_format_parse(struct log_format *format, const char *text, char error[ERROR_TEXT])
{
	char *at = format->text;

	*format = (struct log_format){.before = format->text};
	if (!strcmp(text, "combined"))
		text = LOG_FORMAT_COMBINED;
	if (strlen(text) >= LOG_FORMAT_TEXT)
		return text_refuse(-EINVAL, error, "FORMAT", "longer than 1023 bytes");
	strcpy(at, text);
	while ((at = strchr(at, '$'))) {
		size_t length = 0;
		int err;

		while (is_name(at[1 + length]))
			length++;
		/* The text before it is complete only now. */
		*at = '\0';
		err = add_piece(format, text + (at + 1 - format->text), length, error);
		if (err)
			return err;
		at += 1 + length;
		format->pieces[format->count - 1].after = at;
	}
	if (!format->has[LOG_TIME])
		return text_refuse(-EINVAL, error, text, "a format without $time");
	return 0;
}

/* Returns the end of @text at @at, or NULL: @at begins otherwise. */
static char *match(char *at, const char *text)
{
	for (; *text; text++) {
		if (*text != ' ') {
			if (*at++ != *text)
				return NULL;
			continue;
		}
		if (!is_blank(*at))
			return NULL;
		while (is_blank(*at))
			at++;
	}
	return at;
}

/*
 * Ends the field at @at where @after is found first, with a zero byte. Returns the end of @after,
 * or NULL: it is not there.
 */
static char *end_field(char *at, const char *after)
{
	char *end;

	if (!*after)
		return at + strlen(at);
	for (; *at; at++) {
		/* A copy of its first byte alone keeps most of a long line cheap. */
		if (*after != ' ' && *at != *after)
			continue;
		end = match(at, after);
		if (end) {
			*at = '\0';
			return end;
		}
	}
	return NULL;
}

static int read_field(enum log_field field, const char *text, struct log_record *record,
		      char error[ERROR_TEXT])
{
	switch (field) {
	case LOG_TIME:
		return log_time_parse(text, &record->at_ns, error);
	case LOG_LIMITER:
		record->limiter = text;
		return 0;
	case LOG_KEY:
		record->key = text;
		return 0;
	case LOG_COST:
		/* Web servers write `-` for no bytes. */
		record->cost = 0;
		if (strcmp(text, "-") != 0 && tokens_parse(text, &record->cost)) {
			snprintf(error, ERROR_TEXT, "not a cost: '%.40s', whole tokens from 0",
				 text);
			return -EINVAL;
		}
		return 0;
	case LOG_OTHER:
		break;
	}
	return 0;
}

/* Cuts blanks and a carriage return off the end of @line. */
static void cut_end(char *line)
{
	size_t length = strlen(line);

	while (length && (is_blank(line[length - 1]) || line[length - 1] == '\r'))
		line[--length] = '\0';
}

int log_format_read(const struct log_format *format, char *line, struct log_record *record,
		    char error[ERROR_TEXT])
{
	char *at = match(line + strspn(line, " \t"), format->before);

	*record = (struct log_record){.cost = 1};
	cut_end(line);
	for (unsigned int i = 0; at && i < format->count; i++) {
		const struct log_piece *piece = &format->pieces[i];
		char *next = end_field(at, piece->after);
		int err = next ? read_field(piece->field, at, record, error) : 0;

		if (err)
			return err;
		at = next;
	}
	if (at)
		return 0;
	snprintf(error, ERROR_TEXT, "not a line of the format");
	return -EINVAL;
}
