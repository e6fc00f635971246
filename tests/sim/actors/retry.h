/* retry - records to be pushed through a service, see retry.c. */
#ifndef RATEFS_SIM_RETRY_H
#define RATEFS_SIM_RETRY_H

#include "tests/sim/world/sim.h"

void retry_start(struct sim *sim, struct place *place, const struct command *command);
void retry_print(const struct sim *sim);
void retry_free(struct sim *sim);

#endif
