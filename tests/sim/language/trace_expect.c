/* trace_expect - `expect` as a trace says it, see expect.h. */
#include "tests/sim/language/expect.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/base/windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words that follow the name of a subject. */
static const struct subject {
	const char *name;
	enum expected expected;
	bool path, field, hosts, host_named, span;
	const char *unit; /* the word at the end, or NULL */
} SUBJECTS[] = {
	{"granted", EXPECT_GRANTED, .path = true, .hosts = true, .span = true},
	{"used", EXPECT_USED, .path = true, .unit = "%"},
	{"wait", EXPECT_WAIT, .path = true, .hosts = true, .unit = "s"},
	{"longest", EXPECT_LONGEST, .path = true, .hosts = true, .unit = "s"},
	{"tiles", EXPECT_TILES, .path = true, .hosts = true},
	{"share", EXPECT_SHARE, .path = true, .hosts = true, .host_named = true, .unit = "%"},
	{"slots", EXPECT_SLOTS, .path = true, .hosts = true},
	{"told", EXPECT_TOLD, .path = true, .hosts = true},
	{"coordinator", EXPECT_COORDINATOR, .field = true},
	{"nodes", EXPECT_NODES, .path = true},
	{"refused", EXPECT_REFUSED, .hosts = true},
	{"service", EXPECT_SERVICE, .path = true, .field = true},
	{"stat", EXPECT_STAT, .path = true, .field = true, .hosts = true, .host_named = true},
};

enum { SUBJECT_COUNT = sizeof(SUBJECTS) / sizeof(SUBJECTS[0]) };

/* `by HOST` and `in SPAN`, in this order; @word is the first word after them. */
static int parse_scope(struct line *line, const struct subject *subject, char **word)
{
	struct expectation *expectation = &line->command->expectation;

	*word = line_word(line);
	if (*word && subject->hosts && !strcmp(*word, "by")) {
		if (trace_parse_host(line, line_word(line), &line->command->host))
			return -1;
		line->command->has_host = true;
		*word = line_word(line);
	}
	if (subject->host_named && !line->command->has_host && line->trace->fleet.hosts)
		return line_refuse(line, "a host is missing: by HOST");
	if (!*word || !subject->span || strcmp(*word, "in") != 0)
		return 0;
	if (line_duration(line, line_word(line), &expectation->span_ns))
		return -1;
	for (size_t w = 0; w < WINDOW_COUNT; w++) {
		if (WINDOWS[w].ns == expectation->span_ns) {
			*word = line_word(line);
			return 0;
		}
	}
	return line_refuse(line, "windows are of 10ms, 100ms, 1s and 10s");
}

static int parse_number(struct line *line, const char *word, double *number)
{
	char *end;

	*number = strtod(word, &end);
	if (end == word || *end)
		return line_refuse(line, "'%.100s' is no number", word);
	return 0;
}

/* OP N, or = LEAST..MOST. */
static int parse_bounds(struct line *line, const char *relation)
{
	struct expectation *expectation = &line->command->expectation;
	char *word, *most;

	if (!relation || (strcmp(relation, ">=") != 0 && strcmp(relation, "<=") != 0 &&
			  strcmp(relation, "=") != 0))
		return line_refuse(line, ">=, <= or = is missing");
	word = line_word(line);
	if (!word)
		return line_refuse(line, "a number is missing");
	most = *relation == '=' ? strstr(word, "..") : NULL;
	if (most)
		*most = '\0';
	if (parse_number(line, word, &expectation->least) ||
	    parse_number(line, most ? most + 2 : word, &expectation->most))
		return -1;
	if (*relation == '>')
		expectation->most = INFINITY;
	if (*relation == '<')
		expectation->least = -INFINITY;
	return 0;
}

static int parse_number_of(struct line *line, const struct subject *subject)
{
	struct expectation *expectation = &line->command->expectation;
	char *word;

	expectation->expected = subject->expected;
	if (subject->path) {
		word = line_word(line);
		if (!word)
			return line_refuse(line, "a path is missing");
		line->command->path = memory_text(word, strlen(word));
	}
	if (subject->field) {
		word = line_word(line);
		if (!word || strlen(word) >= sizeof(expectation->field))
			return line_refuse(line, "the name of a count is missing");
		memcpy(expectation->field, word, strlen(word));
	}
	if (parse_scope(line, subject, &word) || parse_bounds(line, word))
		return -1;
	if (!subject->unit)
		return 0;
	word = line_word(line);
	return word && !strcmp(word, subject->unit)
		       ? 0
		       : line_refuse(line, "%s is missing", subject->unit);
}

/* The text after `is`, to the end of the line. */
static void read_text(struct line *line)
{
	const char *text = line->rest + strspn(line->rest, " \t");
	size_t length = strlen(text);

	while (length && strchr(" \t\r", text[length - 1]))
		length--;
	line->command->written = memory_text(text, length);
	line->rest += strlen(line->rest);
}

/* answer NAME is TEXT */
static int parse_answer(struct line *line)
{
	struct expectation *expectation = &line->command->expectation;
	const char *name = line_word(line), *is = line_word(line);

	expectation->expected = EXPECT_ANSWER;
	if (!name || !is || strcmp(is, "is") != 0)
		return line_refuse(line, "answer NAME is TEXT");
	if (strlen(name) >= sizeof(expectation->field) || !trace_has_name(line->trace, name))
		return line_refuse(line, "there is no '%.100s'", name);
	memcpy(expectation->field, name, strlen(name));
	read_text(line);
	return 0;
}

/* PATH/SETTING [by HOST] is TEXT */
static int parse_setting(struct line *line, const char *name)
{
	static const struct subject setting = {.hosts = true, .host_named = true};
	size_t length;
	char *word;

	line->command->expectation.expected = EXPECT_SETTING;
	if (file_parse(name, &length, &line->command->file) ||
	    line->command->file.kind != FILE_SETTING)
		return line_refuse(line, "'%.100s' is nothing that can be expected", name);
	line->command->path = memory_text(name, length);
	if (parse_scope(line, &setting, &word))
		return -1;
	if (!word || strcmp(word, "is") != 0)
		return line_refuse(line, "PATH/SETTING is TEXT");
	read_text(line);
	return 0;
}

int trace_parse_expect(struct line *line)
{
	const char *whole = line->rest + strspn(line->rest, " \t");
	char *word;

	line->trace->expects = true;
	line->command->text = memory_text(whole, strlen(whole));
	word = line_word(line);
	if (!word)
		return line_refuse(line, "what is expected is missing");
	for (size_t i = 0; i < SUBJECT_COUNT; i++) {
		if (!strcmp(SUBJECTS[i].name, word))
			return parse_number_of(line, &SUBJECTS[i]);
	}
	return strcmp(word, "answer") != 0 ? parse_setting(line, word) : parse_answer(line);
}
