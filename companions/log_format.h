/*
 * log_format - lines of a log: where in them time, limiter, key and cost stand.
 *
 * A format is a text as of nginx's log_format: $NAME is a field, and other text stands in each line
 * as it is, but that a blank matches any number of blanks and tabs. A field ends where the text
 * after it is found first. $time, $limiter, $key and $cost count, and fields of other names are
 * passed over; so is the rest of a line after the last text of a format that ends in text.
 */
#ifndef RATEFS_COMPANIONS_LOG_FORMAT_H
#define RATEFS_COMPANIONS_LOG_FORMAT_H

#include "core/values/text.h"

#include <stdbool.h>
#include <stdint.h>

enum log_field { LOG_TIME, LOG_LIMITER, LOG_KEY, LOG_COST, LOG_OTHER, LOG_FIELDS = LOG_OTHER };

enum {
	LOG_FORMAT_TEXT = 1024, /* room for a format */
	LOG_PIECES_MAX = 64,	/* fields of a format */
	LOG_LINE_TEXT = 65536,	/* room for a line */
};

/* The format without a name, and that of nginx's log called `combined`. */
#define LOG_FORMAT_DEFAULT "$time $limiter $cost"
#define LOG_FORMAT_COMBINED \
	"$key - $user [$time] \"$request\" $status $cost \"$referer\" \"$agent\""

struct log_piece {
	enum log_field field;
	const char *after; /* text that ends it, in the format's; "": the end of the line */
};

struct log_format {
	char text[LOG_FORMAT_TEXT];
	const char *before; /* text before the first field */
	struct log_piece pieces[LOG_PIECES_MAX];
	unsigned int count;
	bool has[LOG_FIELDS];
};

/* A line: fields that the format does not have are NULL, and a cost is 1. */
struct log_record {
	uint64_t at_ns;
	const char *limiter, *key; /* in the line */
	uint64_t cost;		   /* 0 to TOKENS_MAX */
};

/* Parses @text, a format or the name `combined`. 0, or -EINVAL with a reason. */
int log_format_parse(struct log_format *format, const char *text, char error[ERROR_TEXT]);

/* Parses @line, which is spoilt, without its newline. 0, or -EINVAL with a reason. */
int log_format_read(const struct log_format *format, char *line, struct log_record *record,
		    char error[ERROR_TEXT]);

#endif
