/* answers - what programs are told, for the log and for `expect answer`, see answers.c. */
#ifndef RATEFS_SIM_ANSWERS_H
#define RATEFS_SIM_ANSWERS_H

#include "tests/sim/world/sim.h"

/* Keeps from now on the last answers of all that @trace expects one of. */
void answers_keep(struct sim *sim, const struct trace *trace);

/* Prints `WORD NAME TEXT`: @name is told that by @host. @text may be empty. */
void answers_tell(struct sim *sim, const struct host *host, const char *name, const char *word,
		  const char *text);

/* Prints `refused NAME ERRNO`; @err is negative. */
void answers_refuse(struct sim *sim, const struct host *host, const char *name, int err);

/* Prints `granted NAME TOKENS`, unless terse. */
void answers_grant(struct sim *sim, const struct host *host, const char *name, uint64_t tokens);

/* @name, a command, was refused: the log has a sentence of its own about that. */
void answers_note_refusal(struct sim *sim, const char *name, int err);

/*
 * Whether @name was told @wanted at this instant. If not, @is says what it was told, and when. An
 * answer is there to be expected once.
 */
bool answers_are(struct sim *sim, const char *name, const char *wanted, char is[ANSWER_TEXT]);

void answers_free(struct sim *sim);

#endif
