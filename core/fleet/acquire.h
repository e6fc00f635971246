/* acquire - when partitions are looked for: rounds are begun, and what they come to is acted on. */
#ifndef RATEFS_CORE_ACQUIRE_H
#define RATEFS_CORE_ACQUIRE_H

#include "core/fleet/parts.h"

/* Gives @holding the part of it that is acquire's; frees that. */
bool acquire_attach(struct holding *holding);
void acquire_detach(struct holding *holding);

/* Begins a round for @holding, if it lacks something and it is time to. */
void acquire_choose(struct fleet *fleet, struct holding *holding);

/* Tells whether nothing can be used, and nothing keeps a round from beginning. */
bool acquire_is_due(const struct fleet *fleet, const struct holding *holding);

/* Acts on the end of a round, if one is over. */
void acquire_settle(struct fleet *fleet, struct holding *holding);

/* Lets the next round begin at once, or follow the one that is under way. */
void acquire_wake(struct holding *holding);

/* A host has gone: a reserve is looked for at once, where all were leased. */
void acquire_seek_reserve(struct holding *holding);

/* Lets the next round be soon, where others may look for the last one that is kept. */
void acquire_look_sooner(struct fleet *fleet, struct holding *holding);

/* Tells whether something of @holding is to be given back, taken or claimed now. */
bool acquire_has_work(const struct fleet *fleet, const struct holding *holding);

/* The session is gone. */
void acquire_forget(struct holding *holding);

/* Tells whether the last round found less that is free than is kept. */
bool acquire_is_scarce(const struct holding *holding);

/* Tells whether @limiter or one above it may soon have more than it has. */
bool acquire_may_come(const struct fleet *fleet, const struct limiter *limiter);

#endif
