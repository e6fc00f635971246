/* service - a throttled service behind a limiter, see service.c. */
#ifndef RATEFS_SIM_SERVICE_H
#define RATEFS_SIM_SERVICE_H

#include "tests/sim/world/sim.h"

extern const char NO_SERVICE[];

void service_set(struct sim *sim, struct place *place, const struct command *command);
bool service_call(struct service *service, uint64_t tokens, uint64_t now_ns);
uint64_t service_latency_ns(const struct service *service);
/* Returns @field of the answers since it was last counted, see expect.h. NAN: it has none such. */
double service_measure(const struct service *service, const char *field, uint64_t now_ns);
void service_count(struct service *service, uint64_t now_ns);
/* Tells it, and counts anew. */
void service_tally(struct sim *sim, struct place *place, const struct command *command);
/*
 * A call by a holder of a slot; returns how long the answer takes. service_leave() when it is
 * there.
 */
uint64_t service_work(struct service *service, uint64_t now_ns, bool *ok);
void service_leave(struct service *service);
void service_print(const struct service *service, const char *path);

#endif
