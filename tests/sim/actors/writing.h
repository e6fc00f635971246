/* writing - changes of limiters that a trace asks for, see writing.c. */
#ifndef RATEFS_SIM_WRITING_H
#define RATEFS_SIM_WRITING_H

#include "tests/sim/world/sim.h"

/*
 * Begins a change of a limiter. Without a fleet one is done or refused at once: its outcome is
 * returned. In one it takes its time, -EINPROGRESS.
 */
int writing_begin(struct host *host, const struct change *change, const struct command *command);
/* Those that are done. */
void writing_collect(struct host *host);
/* All that are under way go with their host. */
void writing_vanish(struct host *host);

#endif
