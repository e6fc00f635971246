/*
 * caps - how much a host at most uses of windows of the calendar, told with its node: rule 20 of
 * fleet.h. So its rest comes to the others when it dies.
 *
 * A cap is a little above the use: by a 64th of the rest, or by as much as the host uses in one and
 * a half renewals if it goes on as since the last, or by the tokens that a reader waits for. Where
 * less than a quarter of that is left the right is renewed early. Caps of 16 limits are told; of
 * other limits nobody knows the rest of a host that dies until the window is over.
 */
#ifndef RATEFS_CORE_CAPS_H
#define RATEFS_CORE_CAPS_H

#include "core/fleet/parts.h"
#include "core/fleet/record.h"

bool caps_new(struct fleet *fleet);
void caps_free(struct fleet *fleet);

/* The session is gone: there are no caps, and no leaves. */
void caps_forget(struct fleet *fleet);

/* For a successor, which does not know the caps: nothing is used of windows of @holding. */
void caps_resume(struct fleet *fleet, struct holding *holding);

/*
 * Prints the caps that a transaction which is about to be sent tells. They bind from now on, beside
 * those that were told before. A limiter that comes to have a cap begins with a renewal, @renews.
 */
void caps_enter(struct fleet *fleet, bool renews, char text[HOST_CAPS_TEXT]);

/* A transaction that tells no caps is about to be sent. */
void caps_leave_out(struct fleet *fleet);

/* The transaction was refused: it told nothing. */
void caps_refuse(struct fleet *fleet);

/* The transaction was acknowledged: the caps that it told are in force, and no others. */
void caps_acknowledge(struct fleet *fleet);

/* Tells whether the right is to be renewed early, and when to ask next. */
bool caps_are_due(struct fleet *fleet);

/* Tells whether readers of @limiter may soon have more, as a cap is all that is in the way. */
bool caps_may_come(const struct limiter *limiter);

#endif
