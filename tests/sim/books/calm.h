/* calm - judges a fleet while nothing goes wrong, see calm.c. */
#ifndef RATEFS_SIM_CALM_H
#define RATEFS_SIM_CALM_H

#include "tests/sim/world/sim.h"

/* Judges what happens while nothing is wrong. */
void calm_look(struct sim *sim);

#endif
