/*
 * trace_fleet - what a trace says of a fleet: its hosts, faults and the coordinator, see trace.h.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/language/trace.h"

#include "core/fleet/fleet.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_MAX = 1000, DRIFT_LIMIT_PPM = 100000, LOSE_MAX = 10000, PREFIX_MAX = 100000 };

static int parse_weights(struct line *line, struct fleet_command *fleet)
{
	char *words = line_word(line), *word;

	for (word = words ? strtok(words, ",") : NULL; word; word = strtok(NULL, ",")) {
		uint64_t weight;

		if (line_tokens(line, word, &weight))
			return -1;
		if (!weight || weight > WEIGHT_MAX || fleet->weight_count == FLEET_WEIGHTS_MAX)
			return line_refuse(line, "weights are 1 to %d, and at most %d of them",
					   WEIGHT_MAX, FLEET_WEIGHTS_MAX);
		fleet->weights[fleet->weight_count++] = (uint32_t)weight;
	}
	return fleet->weight_count ? 0 : line_refuse(line, "weights W,W,...");
}

static int parse_prefix(struct line *line, struct fleet_command *fleet)
{
	uint64_t bytes;

	if (line_tokens(line, line_word(line), &bytes))
		return -1;
	if (bytes > PREFIX_MAX)
		return line_refuse(line, "a prefix has at most %d bytes", PREFIX_MAX);
	fleet->prefix_bytes = (uint32_t)bytes;
	return 0;
}

int trace_parse_fleet(struct line *line, struct fleet_command *fleet)
{
	struct fleet_constants *constants = &fleet->constants;
	uint64_t hosts;
	char *word;

	if (line->trace->first)
		return line_refuse(line, "fleet comes before everything else");
	if (line_tokens(line, line_word(line), &hosts))
		return -1;
	if (!hosts || hosts > FLEET_HOSTS_MAX)
		return line_refuse(line, "a fleet has 1 to %d hosts", FLEET_HOSTS_MAX);
	fleet->hosts = (unsigned int)hosts;
	*constants = (struct fleet_constants){
		.renewal_ns = FLEET_RENEWAL_NS,
		.right_ns = FLEET_RIGHT_NS,
		.session_ns = FLEET_SESSION_NS,
	};
	while ((word = line_word(line))) {
		int err = -1;

		if (!strcmp(word, "weights"))
			err = parse_weights(line, fleet);
		else if (!strcmp(word, "renewal"))
			err = line_duration(line, line_word(line), &constants->renewal_ns);
		else if (!strcmp(word, "right"))
			err = line_duration(line, line_word(line), &constants->right_ns);
		else if (!strcmp(word, "session"))
			err = line_duration(line, line_word(line), &constants->session_ns);
		else if (!strcmp(word, "prefix"))
			err = parse_prefix(line, fleet);
		else
			line_refuse(line, "'%.100s' is not understood here", word);
		if (err)
			return err;
	}
	constants->quarantine_ns = record_quarantine_ns(constants->right_ns);
	return 0;
}

int trace_parse_host(struct line *line, const char *word, unsigned int *host)
{
	unsigned int hosts = line->trace->fleet.hosts ? line->trace->fleet.hosts : 1;
	unsigned long number = 0;
	char *end;

	if (!word)
		return line_refuse(line, "a host is missing");
	if (word[0] == 'h' && isdigit((unsigned char)word[1])) {
		number = strtoul(word + 1, &end, 10);
		if (*end && strcmp(end, ":") != 0)
			number = 0;
	}
	if (!number || number > hosts)
		return line_refuse(line, "there is no host '%.100s'", word);
	*host = (unsigned int)number - 1;
	return 0;
}

static int parse_host(struct line *line)
{
	return trace_parse_host(line, line_word(line), &line->command->host);
}

static int parse_cut(struct line *line)
{
	char *word;

	if (parse_host(line))
		return -1;
	word = line_word(line);
	if (!word)
		return 0;
	line->command->answers = true;
	return strcmp(word, "answers") != 0 ? line_refuse(line, "cut HOST, or cut HOST answers")
					    : 0;
}

static int read_drift(struct line *line, int32_t *drift)
{
	char *word = line_word(line), *end;
	long ppm;

	if (!word)
		return line_refuse(line, "a drift is missing");
	ppm = strtol(word, &end, 10);
	if (end == word || *end || ppm < -DRIFT_LIMIT_PPM || ppm > DRIFT_LIMIT_PPM)
		return line_refuse(line, "'%.100s' is no drift: millionths, up to %d either way",
				   word, DRIFT_LIMIT_PPM);
	*drift = (int32_t)ppm;
	return 0;
}

/* drift HOST PPM [waiter PPM] */
static int parse_drift(struct line *line)
{
	char *word;

	if (parse_host(line) || read_drift(line, &line->command->ppm))
		return -1;
	line->command->waiter_ppm = line->command->ppm;
	word = line_word(line);
	if (!word)
		return 0;
	if (strcmp(word, "waiter") != 0)
		return line_refuse(line, "'%.100s' is not understood here", word);
	return read_drift(line, &line->command->waiter_ppm);
}

static int parse_span(struct line *line)
{
	return line_duration(line, line_word(line), &line->command->span_ns);
}

static int parse_lose(struct line *line)
{
	if (line_tokens(line, line_word(line), &line->command->count))
		return -1;
	if (line->command->count > LOSE_MAX)
		return line_refuse(line, "at most %d writes can be lost", LOSE_MAX);
	return 0;
}

/* latency D [jitter D] [answers D] */
static int parse_latency(struct line *line)
{
	struct command *command = line->command;
	char *word;

	if (parse_span(line))
		return -1;
	while ((word = line_word(line))) {
		int err = -1;

		if (!strcmp(word, "jitter"))
			err = line_duration(line, line_word(line), &command->jitter_ns);
		else if (!strcmp(word, "answers"))
			err = line_duration(line, line_word(line), &command->answers_ns);
		else
			line_refuse(line, "'%.100s' is not understood here", word);
		if (err)
			return err;
	}
	return 0;
}

/* The index of @word among @count words; @count: it is none of them. */
static size_t word_among(const char *word, const char *const *words, size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(words[i], word) != 0)
		i++;
	return i;
}

/*
 * when HOST sends|commits|hears [take|give|change|claim|key|list] DEED
 */
static int parse_when(struct line *line)
{
	static const char *const points[] = {"sends", "commits", "hears"};
	static const char *const whats[] = {"any",   "take", "give", "change",
					    "claim", "key",  "list"};
	static const char *const deeds[] = {"cut",   "answers", "expire", "strike", "kill",
					    "pause", "lose",	"orphan", "elect"};
	enum {
		WHATS = sizeof(whats) / sizeof(whats[0]),
		DEEDS = sizeof(deeds) / sizeof(deeds[0]),
	};
	struct ambush *ambush = &line->command->ambush;
	char *point, *word;
	size_t deed;

	if (parse_host(line))
		return -1;
	point = line_word(line);
	word = line_word(line);
	if (!point || !word || word_among(point, points, 3) == 3)
		return line_refuse(line, "when HOST sends, commits or hears, and what then");
	ambush->point = (enum ambush_point)word_among(point, points, 3);
	if (word_among(word, whats, WHATS) < WHATS) {
		ambush->what = (enum ambush_what)word_among(word, whats, WHATS);
		word = line_word(line);
	}
	deed = word ? word_among(word, deeds, DEEDS) : DEEDS;
	if (deed == DEEDS)
		return line_refuse(line, "cut, answers, expire, strike, kill, pause, lose, orphan "
					 "or elect");
	ambush->deed = (enum ambush_deed)deed;
	return 0;
}

/* hasty on|off, torn on|off */
static int parse_switch(struct line *line)
{
	char *word = line_word(line);

	if (!word || (strcmp(word, "on") != 0 && strcmp(word, "off") != 0))
		return line_refuse(line, "on or off");
	line->command->on = !strcmp(word, "on");
	return 0;
}

/* deny /PREFIX, deny none */
static int parse_deny(struct line *line)
{
	char *word = line_word(line);

	if (!word || (*word != '/' && strcmp(word, "none") != 0) || strlen(word) >= NODE_PATH_MAX)
		return line_refuse(line, "deny /PREFIX, or deny none");
	line->command->text = memory_text(word, *word == '/' ? strlen(word) : 0);
	return 0;
}

/* meddle /PREFIX N */
static int parse_meddle(struct line *line)
{
	char *word = line_word(line);

	if (!word || *word != '/')
		return line_refuse(line, "meddle /PREFIX N");
	line->command->text = memory_text(word, strlen(word));
	return line_tokens(line, line_word(line), &line->command->count);
}

/* znode delete PATH, znode set PATH [TEXT], znode create PATH [TEXT] */
static int parse_znode(struct line *line)
{
	struct command *command = line->command;
	char *how = line_word(line), *path = line_word(line), *text = line->rest;

	if (!how || !path || *path != '/')
		return line_refuse(line, "znode delete, set or create, /PATH, and TEXT");
	if (!strcmp(how, "delete"))
		command->operation = OPERATION_DELETE;
	else if (!strcmp(how, "set"))
		command->operation = OPERATION_SET;
	else if (!strcmp(how, "create"))
		command->operation = OPERATION_CREATE;
	else
		return line_refuse(line, "'%.100s' is not understood here", how);
	command->text = memory_text(path, strlen(path));
	command->written = memory_text(text, strlen(text));
	line->rest += strlen(text);
	return 0;
}

/* The table: one row per command. */
static const struct {
	const char *name;
	enum command_kind kind;
	int (*parse)(struct line *line);
} COMMANDS[] = {
	{"cut", COMMAND_CUT, parse_cut},
	{"heal", COMMAND_HEAL, parse_host},
	{"pause", COMMAND_PAUSE, parse_host},
	{"stall", COMMAND_STALL, parse_host},
	{"resume", COMMAND_RESUME, parse_host},
	{"kill", COMMAND_KILL, parse_host},
	{"start", COMMAND_START, parse_host},
	{"succeed", COMMAND_SUCCEED, parse_host},
	{"stop", COMMAND_STOP, parse_host},
	{"drift", COMMAND_DRIFT, parse_drift},
	{"elect", COMMAND_ELECT, parse_span},
	{"lose", COMMAND_LOSE, parse_lose},
	{"latency", COMMAND_LATENCY, parse_latency},
	{"lag", COMMAND_LAG, parse_span},
	{"znode", COMMAND_ZNODE, parse_znode},
	{"expire", COMMAND_EXPIRE, parse_host},
	{"when", COMMAND_WHEN, parse_when},
	{"hasty", COMMAND_HASTY, parse_switch},
	{"torn", COMMAND_TORN, parse_switch},
	{"deny", COMMAND_DENY, parse_deny},
	{"meddle", COMMAND_MEDDLE, parse_meddle},
};

int trace_parse_fleet_command(struct line *line, const char *word)
{
	for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++) {
		if (strcmp(COMMANDS[i].name, word) != 0)
			continue;
		if (!line->trace->fleet.hosts)
			return line_refuse(line, "'%s' is for a fleet: fleet N comes first", word);
		line->command->kind = COMMANDS[i].kind;
		line->command->name = COMMANDS[i].name;
		return COMMANDS[i].parse(line);
	}
	return 1;
}
