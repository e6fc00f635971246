/* summary - the end of a run in numbers, see summary.c. */
#ifndef RATEFS_SIM_SUMMARY_H
#define RATEFS_SIM_SUMMARY_H

#include "tests/sim/world/sim.h"

void summary_print(const struct sim *sim);
const char *summary_count_name(int kind);

#endif
