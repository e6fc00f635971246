/*
 * term - until when this host may use what it holds: rules 3 and 5 of fleet.h. The term is the
 * right of all its leases at once.
 */
#ifndef RATEFS_CORE_TERM_H
#define RATEFS_CORE_TERM_H

#include "core/fleet/parts.h"

bool term_new(struct fleet *fleet);
void term_free(struct fleet *fleet);

/* Tells whether it runs, as of the last step; when it ends, by the holder's clock. */
bool term_runs(const struct fleet *fleet);
uint64_t term_end_ns(const struct fleet *fleet);

/* Returns the epoch of the acknowledgement that extended it last; EPOCH_NONE: there was none. */
uint32_t term_epoch(const struct fleet *fleet);

/* Tells whether it has run out without having been ended yet. */
bool term_is_over(const struct fleet *fleet);

/* Tells whether the coordinator is out of reach for longer than D. */
bool term_is_degraded(const struct fleet *fleet);
void term_degrade(struct fleet *fleet);

/* Rule 3: a transaction that was sent at @sent_ns by the holder's clock was acknowledged. */
void term_extend(struct fleet *fleet, uint64_t sent_ns);

/* It has run out; the session is gone. How often it has run out. */
void term_lapse(struct fleet *fleet);
void term_forget(struct fleet *fleet);
uint32_t term_lapses(const struct fleet *fleet);

/* Goes on with a predecessor's; tells whether it was not extended since. */
void term_resume(struct fleet *fleet, uint64_t end_ns, uint32_t epoch, bool degraded);
bool term_is_resumed(const struct fleet *fleet);

/* When it is to be renewed, by the engine's clock. */
uint64_t term_renewal_ns(const struct fleet *fleet);
void term_renew_at(struct fleet *fleet, uint64_t at_ns);

#endif
