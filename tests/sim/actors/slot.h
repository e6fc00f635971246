/* slot - programs that open slots, see slot.c. */
#ifndef RATEFS_SIM_SLOT_H
#define RATEFS_SIM_SLOT_H

#include "tests/sim/actors/reader.h"

/* A program opens the slot of @place, or with @within_ns that of that time; NEVER_NS: of any. */
void slot_open(struct sim *sim, struct place *place, const char *name, uint64_t within_ns);
void slot_ask(struct sim *sim, struct reader *reader);
/* Finds an opener that holds a slot, and is no worker; NULL: there is none of that name. */
struct opener *slot_named(const struct sim *sim, const char *name);
struct host *slot_host(const struct opener *opener);
/* @opener closes its slot, and is freed. */
void slot_close(struct sim *sim, struct opener *opener);
/* @opener, which holds a slot, asks for its number. */
void slot_number(struct sim *sim, struct opener *opener);
void slot_worker(struct sim *sim, struct place *place, char *name, const struct command *command);
/* An opener that waited for a slot, or did not have to. */
void slot_done(struct sim *sim, struct reader *reader, int err);
/* All holders close theirs; or go with their host. */
void slots_close_all(struct host *host);
void slots_vanish(struct host *host);
void slots_check(struct host *host);
/* The slots of @limiter and below it that are open on @host are lost, @all or some (fleet.h). */
void slots_lose(struct host *host, const struct limiter *limiter, bool all);
/* Lists the open slots of @host, as a daemon does for its fleet: see core/fleet/fleet.h. */
uint32_t slots_tell(const struct host *host, struct held_slot list[HOST_SLOTS_MAX]);
/* `slots PATH`: the mean number since it was last asked. */
void slots_print(struct sim *sim, struct place *place, const struct command *command);

#endif
