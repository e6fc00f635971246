/* answers - what programs are told, see answers.h. */
#include "tests/sim/books/answers.h"
#include "tests/sim/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last answer of one that an answer is expected of. */
struct last_answer {
	struct last_answer *next;
	const char *name; /* borrowed from the trace */
	bool is_there;	  /* since the last time that one was expected */
	uint64_t at_ns;
	char text[ANSWER_TEXT - 2 * QUANTITY_TEXT];
};

static struct last_answer *last_of(const struct sim *sim, const char *name)
{
	struct last_answer *last = sim->answers;

	while (last && strcmp(last->name, name) != 0)
		last = last->next;
	return last;
}

void answers_keep(struct sim *sim, const struct trace *trace)
{
	for (const struct command *c = trace->first; c; c = c->next) {
		struct last_answer *last;

		if (c->kind != COMMAND_EXPECT || c->expectation.expected != EXPECT_ANSWER ||
		    last_of(sim, c->expectation.field))
			continue;
		last = memory_get(sizeof(*last));
		last->name = c->expectation.field;
		last->next = sim->answers;
		sim->answers = last;
	}
}

static void note(struct sim *sim, const char *name, const char *word, const char *text)
{
	struct last_answer *last = last_of(sim, name);

	if (!last)
		return;
	last->is_there = true;
	last->at_ns = sim->now_ns;
	snprintf(last->text, sizeof(last->text), "%s%s%s", word, *text ? " " : "", text);
}

void answers_tell(struct sim *sim, const struct host *host, const char *name, const char *word,
		  const char *text)
{
	sim_print(sim, host, "%s %s%s%s", word, name, *text ? " " : "", text);
	note(sim, name, word, text);
}

void answers_refuse(struct sim *sim, const struct host *host, const char *name, int err)
{
	answers_tell(sim, host, name, "refused", sim_error_symbol(err));
}

void answers_grant(struct sim *sim, const struct host *host, const char *name, uint64_t tokens)
{
	char text[QUANTITY_TEXT];

	snprintf(text, sizeof(text), "%" PRIu64, tokens);
	if (sim->terse)
		note(sim, name, "granted", text);
	else
		answers_tell(sim, host, name, "granted", text);
}

void answers_note_refusal(struct sim *sim, const char *name, int err)
{
	note(sim, name, "refused", sim_error_symbol(err));
}

bool answers_are(struct sim *sim, const char *name, const char *wanted, char is[ANSWER_TEXT])
{
	struct last_answer *last = last_of(sim, name);
	char time[QUANTITY_TEXT];

	snprintf(is, ANSWER_TEXT, "none");
	if (!last->is_there)
		return false;
	last->is_there = false;
	seconds_print(last->at_ns, 9, time);
	snprintf(is, ANSWER_TEXT, "%s at %s s", last->text, time);
	return last->at_ns == sim->now_ns && !strcmp(last->text, wanted);
}

void answers_free(struct sim *sim)
{
	while (sim->answers) {
		struct last_answer *next = sim->answers->next;

		free(sim->answers);
		sim->answers = next;
	}
}
