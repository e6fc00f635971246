/*
 * rouse - telling the source what is asked for, so that it may bring more: see source.h.
 */
#ifndef RATEFS_CORE_ROUSE_H
#define RATEFS_CORE_ROUSE_H

#include "core/limiter/engine.h"

/* Tells the source that tokens of @limiter are asked for, maybe more than this host holds. */
void rouse_path(struct engine *engine, struct limiter *limiter);

/* Likewise of @tokens, which are not there; of a key, if they are its own that are missing. */
void rouse_for_missing(struct engine *engine, struct limiter *limiter, uint64_t tokens);

/* Tells the source that slots of @limiter are asked for, where their number is shared. */
void rouse_for_slots(struct engine *engine, struct limiter *limiter);

/* Tells the source that the service behind @limiter told of its quota. */
void rouse_for_told(struct engine *engine, struct limiter *limiter);

/* Tells whether partitions are looked for that would bring more of @limiter. */
bool rouse_may_come(const struct engine *engine, const struct limiter *limiter);

/* Likewise of slots: partitions are looked for, or those of others were just asked for. */
bool rouse_slots_may_come(const struct engine *engine, const struct limiter *limiter);

/* Tells whether a read of @limiter, or of a key of it, shows for the first time that it is used. */
bool rouse_is_news(const struct limiter *limiter);

#endif
