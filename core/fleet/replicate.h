/*
 * replicate - settings as other hosts made them.
 *
 * /g is watched. Its version counts changes and it names the last of them, so that as a rule only
 * the limiters that were changed are read; all are when the host starts, was away for long, or
 * finds something changed by hand. All of it is applied together.
 */
#ifndef RATEFS_CORE_REPLICATE_H
#define RATEFS_CORE_REPLICATE_H

#include "core/fleet/parts.h"

bool replicate_new(struct fleet *fleet);
void replicate_free(struct fleet *fleet);

/*
 * Reads /g, and what changed since the version that is applied; or all limiters, as a host does
 * first.
 */
void replicate_begin(struct fleet *fleet);
void replicate_begin_all(struct fleet *fleet);

/* Tells whether that is under way. */
bool replicate_runs(const struct fleet *fleet);

/* Tells once that settings were applied; @changed: limiters may be others than they were. */
bool replicate_has_applied(struct fleet *fleet, bool *changed);

/* Begins once more, where /g changed while it was read. */
void replicate_go_on(struct fleet *fleet);

/* While a change of this host's is under way nothing is read: its outcome comes first. */
void replicate_block(struct fleet *fleet, bool blocked);

/* Forgets what was read so far. */
void replicate_forget(struct fleet *fleet);

#endif
