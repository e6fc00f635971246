/* polling - programs that poll token files, see polling.c. */
#ifndef RATEFS_SIM_POLLING_H
#define RATEFS_SIM_POLLING_H

#include "tests/sim/actors/reader.h"

/* A program that polls a token file begins. */
void polling_start(struct sim *sim, struct place *place, const struct command *command);
struct polling *polling_named(const struct sim *sim, const char *name);
struct host *polling_host(const struct polling *polling);
/* Ends it; it closes its file. */
void polling_end(struct sim *sim, struct polling *polling);
/* The next of those that poll on @host, after @reader (NULL: the first); NULL: there is none. */
const struct reader *polling_after(const struct host *host, const struct reader *reader);
/* Its waiter was answered. */
void polling_answered(struct sim *sim, struct waiter *waiter);
/* All of a host go with its process. */
void polling_vanish(struct host *host);

#endif
