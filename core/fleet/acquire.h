/*
 * acquire - which partitions could be taken, and are: those that are free and clean, at random; then
 * those that no host gave back. Rules 6, 7, 11 and 12 of fleet.h.
 *
 * A round lists markers, leases and claims, and then takes what it found, several in a transaction;
 * what others took meanwhile is left out, and the rest tried again.
 */
#ifndef RATEFS_CORE_ACQUIRE_H
#define RATEFS_CORE_ACQUIRE_H

#include "core/fleet/parts.h"

/* Gives @holding the part of it that is acquire's; frees that. */
bool acquire_attach(struct holding *holding);
void acquire_detach(struct holding *holding);

/* Begins a round for @holding, if it lacks something and it is time to. */
void acquire_choose(struct fleet *fleet, struct holding *holding);

/* Tells whether a round is under way. */
bool acquire_is_under_way(const struct holding *holding);

/* Tells whether nothing can be used, and nothing keeps a round from beginning. */
bool acquire_is_due(const struct fleet *fleet, const struct holding *holding);

/* Lets the next round begin at once; the one that is under way be followed by another. */
void acquire_wake(struct holding *holding);
void acquire_again(struct holding *holding);

/* A host has gone: a reserve is looked for at once, where all were leased. */
void acquire_seek_reserve(struct holding *holding);

/* Lets the next round be soon, where others may look for the last one that is kept. */
void acquire_look_sooner(struct fleet *fleet, struct holding *holding);

/* Tells whether something of @holding is to be given back, taken or claimed now. */
bool acquire_has_work(const struct fleet *fleet, const struct holding *holding);

/* Sends what is to be taken, and tells whether it could. */
bool acquire_send(struct fleet *fleet, struct holding *holding);
void acquire_answered(struct fleet *fleet, const struct request *request);

/* Ends a round whose transaction has an unknown outcome; the session is gone. */
void acquire_stop(struct fleet *fleet, struct holding *holding);
void acquire_forget(struct holding *holding);

/* Tells whether the last round found less that is free than is kept. */
bool acquire_is_scarce(const struct holding *holding);

/* Tells whether @limiter or one above it may soon have more than it has. */
bool acquire_may_come(const struct fleet *fleet, const struct limiter *limiter);

#endif
