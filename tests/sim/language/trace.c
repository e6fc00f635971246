/* trace - the simulator's language, see trace.h. */
#include "tests/sim/language/trace.h"
#include "tests/sim/language/expect.h"
#include "tests/sim/base/memory.h"

#include "core/base/siphash.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char SPACE[] = " \t\r";

enum { NUMBERS_MAX = 10000 }; /* of one {FIRST..LAST} */

static int read_path(struct line *line)
{
	char *word = line_word(line);

	if (!word)
		return line_refuse(line, "a path is missing");
	line->command->path = memory_text(word, strlen(word));
	return 0;
}

static int read_file(struct line *line)
{
	char *word = line_word(line);
	size_t length;

	if (!word)
		return line_refuse(line, "PATH/FILE is missing");
	if (file_parse(word, &length, &line->command->file))
		return line_refuse(line, "'%.100s' is no file of a limiter", word);
	line->command->path = memory_text(word, length);
	return 0;
}

static int read_rate(struct line *line)
{
	char *word = line_word(line);

	if (!word)
		return line_refuse(line, "a rate is missing");
	if (rate_parse(word, &line->command->rate))
		return line_refuse(line, "'%.100s' is no rate: such as 500/s", word);
	if (rate_is_unlimited(&line->command->rate) || !line->command->rate.amount)
		return line_refuse(line, "the rate here is above 0 and not max");
	return 0;
}

static int parse_path(struct line *line)
{
	return read_path(line);
}

/* `\n` is a newline. */
static char *written(const char *text)
{
	char *copy = memory_text(text, strlen(text)), *to = copy;

	for (const char *c = text; *c; c++) {
		bool newline = c[0] == '\\' && c[1] == 'n';

		*to++ = newline ? '\n' : *c;
		c += newline;
	}
	*to = '\0';
	return copy;
}

static int parse_write(struct line *line)
{
	if (read_file(line))
		return -1;
	switch (line->command->file.kind) {
	case FILE_SETTING:
	case FILE_CONFIG:
	case FILE_CHARGE:
	case FILE_FEEDBACK:
		break;
	case FILE_TOKEN:
	case FILE_TRY:
	case FILE_STREAM:
	case FILE_TAKE:
	case FILE_ETA:
	case FILE_STAT:
	case FILE_SLOT:
	case FILE_HELD:
	case FILE_PARTITION_TOKEN:
	case FILE_PARTITION_RATE:
		return line_refuse(line, "that file cannot be written");
	}
	line->command->text = written(line->rest + strspn(line->rest, SPACE));
	line->rest += strlen(line->rest);
	return 0;
}

static int parse_name(struct line *line)
{
	char *word = line_word(line);

	if (!word)
		return line_refuse(line, "a name is missing");
	line->command->text = memory_text(word, strlen(word));
	return 0;
}

static int parse_read(struct line *line)
{
	char *as;

	if (read_file(line))
		return -1;
	if (line->command->file.kind == FILE_CHARGE || line->command->file.kind == FILE_FEEDBACK ||
	    line->command->file.kind == FILE_SLOT)
		return line_refuse(line, "that file cannot be read");
	as = line_word(line);
	if (!as || strcmp(as, "as") != 0)
		return line_refuse(line, "read PATH/FILE as NAME");
	return parse_name(line);
}

/* `poll PATH/FILE as NAME [after DURATION]` */
static int parse_poll(struct line *line)
{
	enum file_kind kind;
	char *word;

	if (read_file(line))
		return -1;
	kind = line->command->file.kind;
	if ((kind != FILE_TOKEN && kind != FILE_STREAM && kind != FILE_TAKE &&
	     kind != FILE_PARTITION_TOKEN) ||
	    (kind == FILE_TAKE && line->command->file.within_ns != NEVER_NS))
		return line_refuse(line, "that file cannot be polled");
	word = line_word(line);
	if (!word || strcmp(word, "as") != 0)
		return line_refuse(line, "poll PATH/FILE as NAME [after DURATION]");
	if (parse_name(line))
		return -1;
	word = line_word(line);
	if (!word)
		return 0;
	if (strcmp(word, "after") != 0)
		return line_refuse(line, "poll PATH/FILE as NAME [after DURATION]");
	return line_duration(line, line_word(line), &line->command->span_ns);
}

static int parse_open(struct line *line)
{
	char *as;

	if (read_file(line))
		return -1;
	as = line_word(line);
	if (line->command->file.kind != FILE_SLOT || !as || strcmp(as, "as") != 0)
		return line_refuse(line, "open PATH/slot as NAME, or PATH/slot,within=DURATION");
	return parse_name(line);
}

/* Whether one of the readers that a load, workers or retry makes could have this name. */
static bool is_made_name(const char *name)
{
	return strchr("lwr", name[0]) && name[1] &&
	       strspn(name + 1, "0123456789") == strlen(name + 1);
}

static uint64_t hash_name(const char *name)
{
	static const uint64_t seed[2];

	return siphash(name, strlen(name), seed);
}

static const struct command *command_of_name(const struct chain_link *link)
{
	return container_of(link, const struct command, by_name);
}

static uint64_t hash_link(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return hash_name(command_of_name(link)->text);
}

/* Whether a reader was given this name by a command before. */
static bool is_given_name(const struct trace *trace, const char *name)
{
	const struct chain_link *link = chains_find(&trace->names, hash_name(name));

	while (link && strcmp(command_of_name(link)->text, name) != 0)
		link = link->next;
	return link;
}

static bool gives_name(const struct command *command)
{
	return command->kind == COMMAND_READ || command->kind == COMMAND_POLL ||
	       command->kind == COMMAND_OPEN;
}

/* Adds @command to those of @trace. 0 or -ENOMEM. */
static int add_command(struct trace *trace, const struct command *command)
{
	struct command *copy = memory_get(sizeof(*copy));

	*copy = *command;
	if (trace->last)
		trace->last->next = copy;
	else
		trace->first = copy;
	trace->last = copy;
	return gives_name(copy) ? chains_insert(&trace->names, &copy->by_name) : 0;
}

static bool is_reader(const struct trace *trace, const char *name)
{
	return is_made_name(name) || is_given_name(trace, name);
}

/* Also of `close` and `number`: a worker alone closes its slot. */
static int parse_cancel(struct line *line)
{
	const char *name;

	if (parse_name(line))
		return -1;
	name = line->command->text;
	if (is_reader(line->trace, name))
		return 0;
	return line_refuse(line, "there is no '%.100s'", name);
}

/* `interrupt NAME [for DURATION]` */
static int parse_interrupt(struct line *line)
{
	char *word;

	if (parse_cancel(line))
		return -1;
	word = line_word(line);
	if (!word)
		return 0;
	if (strcmp(word, "for") != 0)
		return line_refuse(line, "interrupt NAME [for DURATION]");
	return line_duration(line, line_word(line), &line->command->span_ns);
}

static int read_jitter(struct line *line)
{
	if (line_tokens(line, line_word(line), &line->command->jitter_percent))
		return -1;
	if (line->command->jitter_percent > 100)
		return line_refuse(line, "jitter is at most 100 per cent");
	return 0;
}

/*
 * [take N[,UNIT=N]] [until TIME] [work D] [slot] [numbered] [pipe] [poisson] [burst N] [latency D]
 * [knee N] [jitter PERCENT]: those in @allowed, in any order.
 */
static int read_options(struct line *line, const char *allowed)
{
	struct command *command = line->command;
	char *word, spaced[QUANTITY_TEXT];

	while ((word = line_word(line))) {
		int err;

		snprintf(spaced, sizeof(spaced), " %.50s ", word);
		if (!strstr(allowed, spaced))
			return line_refuse(line, "'%.100s' is not understood here", word);
		if (!strcmp(word, "take"))
			err = line_amounts(line, line_word(line), &command->tokens,
					   &command->amounts);
		else if (!strcmp(word, "burst"))
			err = line_tokens(line, line_word(line), &command->tokens);
		else if (!strcmp(word, "knee"))
			err = line_tokens(line, line_word(line), &command->knee);
		else if (!strcmp(word, "jitter"))
			err = read_jitter(line);
		else if (!strcmp(word, "slot"))
			err = 0, command->slot = true;
		else if (!strcmp(word, "numbered"))
			err = 0, command->numbered = true;
		else if (!strcmp(word, "poisson"))
			err = 0, command->poisson = true;
		else if (!strcmp(word, "pipe"))
			err = 0, command->pipes = true;
		else if (!strcmp(word, "until"))
			err = line_duration(line, line_word(line), &command->until_ns);
		else
			err = line_duration(line, line_word(line), &command->span_ns);
		if (err)
			return err;
	}
	return 0;
}

static int read_count(struct line *line, uint64_t most)
{
	if (line_tokens(line, line_word(line), &line->command->count))
		return -1;
	if (!line->command->count || line->command->count > most)
		return line_refuse(line, "there are 1 to %llu of them", (unsigned long long)most);
	return 0;
}

static int parse_load(struct line *line)
{
	static const char keys[] = "keys ";

	line->command->tokens = 1;
	if (read_path(line))
		return -1;
	line->rest += strspn(line->rest, SPACE);
	if (!strncmp(line->rest, keys, strlen(keys))) {
		(void)line_word(line);
		if (read_count(line, 10000))
			return -1;
	}
	if (read_rate(line))
		return -1;
	if (read_options(line, " take until poisson jitter "))
		return -1;
	if (line->command->poisson && line->command->jitter_percent)
		return line_refuse(line, "a load is poisson, or has jitter");
	return 0;
}

static int parse_workers(struct line *line)
{
	static const char key[] = "key ";
	const char *name;

	line->command->tokens = 1;
	if (read_path(line))
		return -1;
	line->rest += strspn(line->rest, SPACE);
	if (!strncmp(line->rest, key, strlen(key))) {
		(void)line_word(line);
		name = line_word(line);
		if (!name || strlen(name) >= KEY_TEXT)
			return line_refuse(line, "the name of a key is missing, or too long");
		strcpy(line->command->file.key, name);
	}
	if (read_count(line, 100000))
		return -1;
	if (read_options(line, " take slot numbered pipe work until "))
		return -1;
	if (line->command->numbered && !line->command->slot)
		return line_refuse(line, "only a slot has a number");
	if (line->command->pipes && (line->command->slot || line->command->tokens != 1))
		return line_refuse(line, "a pipe takes what its pace says, and no slot");
	return 0;
}

static int parse_service(struct line *line)
{
	if (read_path(line) || read_rate(line))
		return -1;
	return read_options(line, " burst latency knee jitter ");
}

static int parse_retry(struct line *line)
{
	char *how;

	line->command->tokens = 1;
	if (read_path(line) || read_count(line, 1000000))
		return -1;
	how = line_word(line);
	if (!how || (strcmp(how, "naive") != 0 && strcmp(how, "gated") != 0))
		return line_refuse(line, "retry PATH N naive, or retry PATH N gated");
	line->command->gated = !strcmp(how, "gated");
	return read_options(line, " take ");
}

/* `clock YYYY-MM-DDTHH:MM:SS`, of UTC: the wall clock is set. */
static int parse_clock(struct line *line)
{
	const char *word = line_word(line), *end;
	struct tm tm = {0};

	end = word ? strptime(word, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!end || *end || tm.tm_year < 71 || tm.tm_year > 200)
		return line_refuse(line, "clock YYYY-MM-DDTHH:MM:SS, from 1971 to 2100");
	line->command->wall_ns = timegm(&tm) * (int64_t)NSEC_PER_SEC;
	return 0;
}

static int parse_nothing(struct line *line)
{
	(void)line;
	return 0;
}

/* `mv PATH NAME`: its siblings are above NAME, too. */
static int parse_mv(struct line *line)
{
	return read_path(line) ? -1 : parse_name(line);
}

/* The table: one row per command. */
static const struct {
	const char *name;
	enum command_kind kind;
	int (*parse)(struct line *line);
} COMMANDS[] = {
	{"mkdir", COMMAND_MKDIR, parse_path},
	{"rmdir", COMMAND_RMDIR, parse_path},
	{"mv", COMMAND_MV, parse_mv},
	{"write", COMMAND_WRITE, parse_write},
	{"read", COMMAND_READ, parse_read},
	{"poll", COMMAND_POLL, parse_poll},
	{"interrupt", COMMAND_INTERRUPT, parse_interrupt},
	{"cancel", COMMAND_CANCEL, parse_cancel},
	{"load", COMMAND_LOAD, parse_load},
	{"workers", COMMAND_WORKERS, parse_workers},
	{"service", COMMAND_SERVICE, parse_service},
	{"retry", COMMAND_RETRY, parse_retry},
	{"tally", COMMAND_TALLY, parse_path},
	{"clock", COMMAND_CLOCK, parse_clock},
	{"open", COMMAND_OPEN, parse_open},
	{"close", COMMAND_CLOSE, parse_cancel},
	{"number", COMMAND_NUMBER, parse_cancel},
	{"slots", COMMAND_SLOTS, parse_path},
	{"expect", COMMAND_EXPECT, trace_parse_expect},
	{"count", COMMAND_COUNT, parse_nothing},
	{"end", COMMAND_END, parse_nothing},
};

enum { ROWS = sizeof(COMMANDS) / sizeof(COMMANDS[0]) };

bool trace_has_name(const struct trace *trace, const char *name)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (!strcmp(COMMANDS[i].name, name))
			return true;
	}
	return is_reader(trace, name);
}

static int parse_command(struct line *line, const char *word)
{
	size_t length = strlen(word);
	int err;

	if (length > 1 && word[length - 1] == ':') {
		if (trace_parse_host(line, word, &line->command->host))
			return -1;
		line->command->has_host = true;
		word = line_word(line);
	}
	if (!word)
		return line_refuse(line, "a command is missing");
	err = trace_parse_fleet_command(line, word);
	if (err < 0)
		return err;
	if (!err) {
		word = line_word(line);
		return word ? line_refuse(line, "'%.100s' is too much", word) : 0;
	}
	for (size_t i = 0; i < ROWS; i++) {
		if (strcmp(COMMANDS[i].name, word) != 0)
			continue;
		line->command->kind = COMMANDS[i].kind;
		line->command->name = COMMANDS[i].name;
		if (COMMANDS[i].parse(line))
			return -1;
		word = line_word(line);
		return word ? line_refuse(line, "'%.100s' is too much", word) : 0;
	}
	return line_refuse(line, "unknown command '%.100s'", word);
}

static int parse_line(struct trace *trace, char *text, unsigned int number)
{
	struct command command = {.line = number, .until_ns = NEVER_NS};
	struct line line = {trace, &command, text};
	uint64_t before_ns = trace->last ? trace->last->at_ns : 0;
	char *time, *word;
	int err;

	text[strcspn(text, "#")] = '\0';
	time = line_word(&line);
	if (!time)
		return 0;
	if (!strcmp(time, "fleet"))
		return trace_parse_fleet(&line, &trace->fleet);
	if (!isdigit((unsigned char)*time))
		return line_refuse(&line, "unknown command '%.100s'", time);
	if (line_duration(&line, time, &command.at_ns))
		return -1;
	if (command.at_ns < before_ns)
		return line_refuse(&line, "time goes back");
	word = line_word(&line);
	err = word ? parse_command(&line, word) : line_refuse(&line, "a command is missing");
	if (err) {
		free(command.path);
		free(command.text);
		free(command.written);
		return err;
	}
	return add_command(trace, &command) ? line_refuse(&line, "no memory") : 0;
}

static int parse_for_each(struct trace *trace, char *text, unsigned int number);

/* A line for each number from @first to @last, between @before and @after. */
static int parse_numbers(struct trace *trace, const char *before, unsigned int first,
			 unsigned int last, const char *after, unsigned int number)
{
	size_t room = strlen(before) + strlen(after) + QUANTITY_TEXT;
	int err = 0;

	for (unsigned int i = first; i <= last && !err; i++) {
		char *one = memory_get(room);

		snprintf(one, room, "%s%u%s", before, i, after);
		err = parse_for_each(trace, one, number);
		free(one);
	}
	return err;
}

/* `{FIRST..LAST}` is a line for each of these numbers. */
static int parse_for_each(struct trace *trace, char *text, unsigned int number)
{
	struct command command = {.line = number};
	struct line line = {.trace = trace, .command = &command};
	unsigned int first, last;
	char *open, end = '\0';
	int length = 0;

	text[strcspn(text, "#")] = '\0';
	open = strchr(text, '{');
	if (!open)
		return parse_line(trace, text, number);
	if (sscanf(open, "{%9u..%9u%c%n", &first, &last, &end, &length) != 3 || end != '}' ||
	    first > last || last - first >= NUMBERS_MAX)
		return line_refuse(&line, "'%.100s' is not {FIRST..LAST}, at most %d numbers", open,
				   NUMBERS_MAX);
	*open = '\0';
	return parse_numbers(trace, text, first, last, open + length, number);
}

/* `TIME all: ...` is a line for each host. */
static int parse_for_all(struct trace *trace, char *text, unsigned int number)
{
	char *all = strstr(text, " all: "), *each;
	size_t room = strlen(text) + QUANTITY_TEXT;
	int err;

	if (!all || !trace->fleet.hosts || (size_t)(all - text) > strcspn(text, "#"))
		return parse_for_each(trace, text, number);
	each = memory_get(room);
	snprintf(each, room, "%.*s h{1..%u}: %s", (int)(all - text), text, trace->fleet.hosts,
		 all + strlen(" all: "));
	err = parse_for_each(trace, each, number);
	free(each);
	return err;
}

static bool is_cancelled(const struct command *reading)
{
	for (const struct command *c = reading->next; c; c = c->next) {
		if (c->kind == COMMAND_CANCEL && !strcmp(c->text, reading->text))
			return true;
	}
	return false;
}

/* A trace that goes on for ever needs an `end`. */
static int check_end(struct trace *trace)
{
	unsigned int endless = 0;

	for (const struct command *c = trace->first; c; c = c->next) {
		if (c->kind == COMMAND_END)
			return 0;
		if ((c->kind == COMMAND_LOAD || c->kind == COMMAND_WORKERS) &&
		    c->until_ns == NEVER_NS && !endless)
			endless = c->line;
		if ((c->kind == COMMAND_READ || c->kind == COMMAND_POLL) &&
		    c->file.kind == FILE_STREAM && !endless && !is_cancelled(c))
			endless = c->line;
	}
	if (trace->fleet.hosts) {
		snprintf(trace->problem, PROBLEM_TEXT,
			 "a fleet has no end, so the trace needs one: TIME end");
		return -1;
	}
	if (!endless)
		return 0;
	snprintf(trace->problem, PROBLEM_TEXT, "%u: has no end, so the trace needs one: TIME end",
		 endless);
	return -1;
}

int trace_parse(struct trace *trace, const char *text, unsigned int hosts)
{
	unsigned int number = 0;

	*trace = (struct trace){.fleet = {.hosts = hosts}, .names = {.hash = hash_link}};
	while (*text) {
		size_t length = strcspn(text, "\n");
		char *line = memory_text(text, length);
		int err = parse_for_all(trace, line, ++number);

		free(line);
		if (err)
			return err;
		text += length + (text[length] == '\n');
	}
	return check_end(trace);
}

void trace_free(struct trace *trace)
{
	while (trace->first) {
		struct command *next = trace->first->next;

		if (gives_name(trace->first))
			chains_remove(&trace->names, &trace->first->by_name);
		free(trace->first->path);
		free(trace->first->text);
		free(trace->first->written);
		free(trace->first);
		trace->first = next;
	}
	trace->last = NULL;
}
