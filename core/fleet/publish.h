/* publish - changes of this host's: each is one transaction of the limiter's node and /g. */
#ifndef RATEFS_CORE_PUBLISH_H
#define RATEFS_CORE_PUBLISH_H

#include "core/fleet/parts.h"

bool publish_new(struct fleet *fleet);
void publish_free(struct fleet *fleet);

/* Takes over @change, the engine's first. */
void publish_store(struct fleet *fleet, struct change *change);

/* Sends the transaction for it; false: there is none to be sent now, or it was refused. */
bool publish_send(struct fleet *fleet);
void publish_answered(struct fleet *fleet, const struct request *request);

/* The limiter of the change that is under way. */
uint64_t publish_id(const struct fleet *fleet);

/*
 * The record of that limiter, as read after a barrier; NULL: there is none. Or it is not
 * understood.
 */
void publish_resolved(struct fleet *fleet, const struct record *record, int32_t version,
		      uint64_t zxid);
void publish_unresolved(struct fleet *fleet);

/* Settings of others were applied: checks the change against them again. */
void publish_recheck(struct fleet *fleet, bool changed);

/* Refuses a change that has waited for too long. */
void publish_expire(struct fleet *fleet);

/* The session is gone, and with it the way to find out what became of a change. */
void publish_forget(struct fleet *fleet);

#endif
