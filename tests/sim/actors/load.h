/* load - readers that come by themselves, see load.c. */
#ifndef RATEFS_SIM_LOAD_H
#define RATEFS_SIM_LOAD_H

#include "tests/sim/world/sim.h"

void load_start(struct sim *sim, struct place *place, const struct command *command);
void load_workers(struct sim *sim, struct place *place, const struct command *command);
void load_stream(struct sim *sim, struct place *place, const char *name);

#endif
