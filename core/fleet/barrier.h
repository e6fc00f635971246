/*
 * barrier - the barrier after an unknown outcome: rule 11 of fleet.h.
 *
 * The version of /h is read, and a transaction that sets it acknowledged. Every older request of
 * this host checks an older version, so none can be executed any more; only then what was in doubt
 * is looked at. Meanwhile the transaction says what it was.
 */
#ifndef RATEFS_CORE_BARRIER_H
#define RATEFS_CORE_BARRIER_H

#include "core/fleet/parts.h"

bool barrier_new(struct fleet *fleet);
void barrier_free(struct fleet *fleet);

/* Begins; then begins anew when it is time to. */
void barrier_begin(struct fleet *fleet);
void barrier_watch(struct fleet *fleet);

/* The barrier itself was answered. */
void barrier_answered(struct fleet *fleet, const struct request *request);

/* The next one is that of a successor. The session is gone. */
void barrier_resume(struct fleet *fleet);
void barrier_forget(struct fleet *fleet);

#endif
