/* act - runs the commands of a trace, see act.c. */
#ifndef RATEFS_SIM_ACT_H
#define RATEFS_SIM_ACT_H

#include "tests/sim/world/sim.h"

/* Runs a command. */
void act(struct sim *sim, const struct command *command);

/* Refuses @command: `error LINE ERRNO sentence`. */
void act_refused(struct sim *sim, const struct host *host, const struct command *command, int err,
		 const char *sentence);

/* Runs a command that concerns hosts, links and the coordinator. */
void act_fleet(struct sim *sim, const struct command *command);

#endif
