/* outcome - how work went, see outcome.c. */
#ifndef RATEFS_SIM_OUTCOME_H
#define RATEFS_SIM_OUTCOME_H

#include "tests/sim/actors/reader.h"

void outcome_write(struct sim *sim, struct place *place, const struct command *command);
/*
 * Calls the services behind @reader's limiter for what it was granted; how long the answer takes.
 */
uint64_t outcome_of_call(struct sim *sim, struct reader *reader);

#endif
