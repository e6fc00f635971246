/* dues - demand and grants of each place, judged over all hosts, see dues.c. */
#ifndef RATEFS_SIM_DUES_H
#define RATEFS_SIM_DUES_H

#include "tests/sim/actors/reader.h"

/* @reader waits from now on; it does not any more; it is granted its tokens, before it leaves. */
void dues_waits(struct reader *reader);
void dues_leaves(struct reader *reader);
void dues_granted(const struct reader *reader);

/* Demand changes: a load or workers begin or end. */
void dues_demand(struct sim *sim);

/* Tells whether demand has stood still for as long as hosts need to follow it. */
bool dues_is_still(const struct sim *sim);

/* Judges the fleet, once a second; @is_calm: nothing is wrong with it. */
void dues_look(struct sim *sim, bool is_calm);

#endif
