/* recorded - a recording as text, see recorded.h. */
#include "companions/recorded.h"

#include <err.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = PATH_MAX + 1024, FIELDS_MAX = COLUMN_COUNT + 1, ROWS_AT_FIRST = 1024 };

static const char LIMITER[] = "limiter", SECONDS[] = "seconds", TIME[] = "unix_time";

static void print_value(FILE *out, double value)
{
	if (isnan(value))
		fputs("\t-", out);
	else if (isinf(value))
		fputs("\tmax", out);
	else
		fprintf(out, "\t%.10g", value);
}

void recorded_print_names(FILE *out)
{
	fprintf(out, "%s\t%s", LIMITER, SECONDS);
	for (enum column c = 0; c < COLUMN_COUNT; c++)
		fprintf(out, "\t%s", recording_name(c));
	fprintf(out, "\t%s\n", TIME);
}

void recorded_print_round(const struct recording *recording, size_t round, FILE *out)
{
	for (size_t i = 0; i < recording->count; i++) {
		fprintf(out, "%s\t%.3f", recording->limiters[i], recording->seconds[round]);
		for (enum column c = 0; c < COLUMN_COUNT; c++)
			print_value(out, recording_value(recording, i, round, c));
		fprintf(out, "\t%.3f\n", recording->began + recording->seconds[round]);
	}
}

struct reading {
	struct recording *to;
	const char *path; /* borrowed */
	FILE *file;
	char line[LINE_BYTES];
	size_t number;			/* of that line */
	unsigned int kinds[FIELDS_MAX]; /* a column, or COLUMN_COUNT: the time; @fields of them */
	size_t fields;
	size_t rows, room; /* there are, and could be */
	bool counted;	   /* a second round has begun, so that to->count is known */
	size_t limiters_max, rounds_max;
};

/* Returns -1 after a message of what is wrong with the line. */
static int wrong(const struct reading *reading, const char *what, const char *word)
{
	warnx("%s:%zu: %s: '%s'", reading->path, reading->number, what, word);
	return -1;
}

/* Reads a line, without its end. 1; 0: there is none that is whole; -1 after a message. */
static int next_line(struct reading *reading)
{
	size_t length;

	reading->number++;
	if (!fgets(reading->line, sizeof(reading->line), reading->file)) {
		if (!ferror(reading->file))
			return 0;
		warn("%s", reading->path);
		return -1;
	}
	length = strlen(reading->line);
	if (length && reading->line[length - 1] == '\n') {
		reading->line[length - 1] = '\0';
		return 1;
	}
	return feof(reading->file) ? 0 : wrong(reading, "no line of a recording", "it is too long");
}

/* Returns the column of a name; COLUMN_COUNT: the time; above: there is none. */
static unsigned int kind_of(const char *name)
{
	unsigned int kind = 0;

	while (kind < COLUMN_COUNT && strcmp(name, recording_name((enum column)kind)) != 0)
		kind++;
	return kind == COLUMN_COUNT && strcmp(name, TIME) != 0 ? COLUMN_COUNT + 1 : kind;
}

/* 0, or -1 after a message. */
static int read_names(struct reading *reading)
{
	char *rest = reading->line, *name;
	int got = next_line(reading);

	if (got < 0)
		return -1;
	name = got ? strsep(&rest, "\t") : NULL;
	if (!name || strcmp(name, LIMITER) != 0 || !rest ||
	    strcmp(strsep(&rest, "\t"), SECONDS) != 0)
		return wrong(reading, "not what --data writes, whose first line has names",
			     name ? name : "");
	while (rest) {
		name = strsep(&rest, "\t");
		if (reading->fields == FIELDS_MAX || kind_of(name) > COLUMN_COUNT)
			return wrong(reading, "not a column", name);
		reading->kinds[reading->fields++] = kind_of(name);
	}
	return 0;
}

/* Parses a number that is not negative. */
static bool parse_number(const char *text, double *value)
{
	char *end = NULL;

	if (text)
		*value = strtod(text, &end);
	return end > text && !*end && isfinite(*value) && *value >= 0;
}

/* Parses a value as print_value() has it. */
static bool parse_value(const char *text, double *value)
{
	if (text && !strcmp(text, "-"))
		*value = (double)NAN;
	else if (text && !strcmp(text, "max"))
		*value = (double)INFINITY;
	else
		return parse_number(text, value);
	return true;
}

/* Makes room for one more row, which may begin a round. 0, or -1 after a message. */
static int make_room(struct reading *reading)
{
	struct recording *to = reading->to;
	size_t room = reading->room ? 2 * reading->room : ROWS_AT_FIRST;
	double *seconds, *values;

	if (reading->rows < reading->room)
		return 0;
	seconds = reallocarray(to->seconds, room + 1, sizeof(*seconds));
	to->seconds = seconds ? seconds : to->seconds;
	values = reallocarray(to->values, room, COLUMN_COUNT * sizeof(*values));
	to->values = values ? values : to->values;
	if (!seconds || !values) {
		warnx("no memory");
		return -1;
	}
	reading->room = room;
	return 0;
}

/* Takes the limiter of a row. 0, or -1 after a message. */
static int take_limiter(struct reading *reading, const char *name)
{
	struct recording *to = reading->to;
	const char *due;

	if (reading->rows && !strcmp(name, to->limiters[0]))
		reading->counted = true;
	if (reading->counted) {
		due = to->limiters[reading->rows % to->count];
		return strcmp(name, due) ? wrong(reading, "not the limiter of this line", name) : 0;
	}
	if (to->count == reading->limiters_max)
		return wrong(reading, "too many limiters", name);
	to->limiters[to->count] = strdup(name);
	if (to->limiters[to->count]) {
		to->count++;
		return 0;
	}
	warnx("no memory");
	return -1;
}

/* Takes the seconds of a row, which begins a round or is of the one before. 0 or -1, as above. */
static int take_seconds(struct reading *reading, const char *text)
{
	struct recording *to = reading->to;
	bool begins = !reading->rows || (reading->counted && reading->rows % to->count == 0);
	double seconds;

	if (begins && to->rounds > reading->rounds_max)
		return wrong(reading, "too many samples", text ? text : "");
	if (!parse_number(text, &seconds) || (begins && seconds <= to->seconds[to->rounds - 1]) ||
	    (!begins &&
	     (seconds < to->seconds[to->rounds - 1] || seconds > to->seconds[to->rounds - 1])))
		return wrong(reading, "not the seconds of this line", text ? text : "");
	if (begins)
		to->seconds[to->rounds++] = seconds;
	return 0;
}

/* Takes a row. 0, or -1 after a message. */
static int take_row(struct reading *reading)
{
	struct recording *to = reading->to;
	char *rest = reading->line, *text;
	double *values, value;

	if (make_room(reading) || take_limiter(reading, strsep(&rest, "\t")) ||
	    take_seconds(reading, strsep(&rest, "\t")))
		return -1;
	values = to->values + reading->rows * COLUMN_COUNT;
	for (size_t c = 0; c < COLUMN_COUNT; c++)
		values[c] = (double)NAN;
	for (size_t field = 0; field < reading->fields; field++) {
		text = strsep(&rest, "\t");
		if (!parse_value(text, &value))
			return wrong(reading, "not a value", text ? text : "");
		if (reading->kinds[field] < COLUMN_COUNT)
			values[reading->kinds[field]] = value;
		else if (!reading->rows)
			to->began = value - to->seconds[1];
	}
	if (rest)
		return wrong(reading, "a value that has no name", rest);
	reading->rows++;
	return 0;
}

/* 0, or -1 after a message. */
static int read_rows(struct reading *reading)
{
	struct recording *to = reading->to;
	int got;

	if (make_room(reading))
		return -1;
	to->seconds[0] = 0;
	to->rounds = 1;
	to->began = (double)NAN;
	while ((got = next_line(reading)) > 0) {
		if (take_row(reading))
			return -1;
	}
	if (got < 0)
		return -1;
	if (!reading->rows)
		return wrong(reading, "no samples are in it", "");
	to->rounds = 1 + reading->rows / to->count;
	return 0;
}

int recorded_read(struct recording *recording, const char *path, size_t limiters_max,
		  size_t rounds_max)
{
	struct reading reading = {.to = recording,
				  .path = path,
				  .limiters_max = limiters_max,
				  .rounds_max = rounds_max};
	int err;

	if (strcmp(path, "-") != 0) {
		reading.file = fopen(path, "re");
	} else {
		reading.path = "standard input";
		reading.file = stdin;
	}
	if (!reading.file) {
		warn("%s", path);
		return -1;
	}
	err = read_names(&reading);
	if (!err)
		err = read_rows(&reading);
	if (reading.file != stdin)
		fclose(reading.file);
	return err;
}
