/*
 * own - what one limiter itself has, regardless of its ancestors: its buckets, that of what was
 * learnt, its enforcement and its pause. For the parts of the limiter: limiter.c, configure.c,
 * forecast.c.
 */
#ifndef RATEFS_CORE_OWN_H
#define RATEFS_CORE_OWN_H

#include "core/limiter/limiter.h"

/* What has come in by the time of the step is in the buckets. */
void own_refill(const struct schedule *schedule, struct limiter *limiter);

/* Likewise, and what is learnt may grow: where deadlines are set anew after that, or there is none. */
void own_grow(const struct schedule *schedule, struct limiter *limiter);

/* The buckets that count: one for each limit, and that of what was learnt. NULL: no more. */
struct bucket *own_bucket(const struct limiter *limiter, unsigned int i);

/* Whether it would grant @tokens now if it enforces. */
bool own_allows(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns);

/* Whether it grants @tokens now. */
bool own_has(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns);

/* When it has @tokens; NEVER_NS if never. */
uint64_t own_when(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns);

/*
 * Takes @tokens, or puts them back as far as there is room beside @kept others; nothing if it is
 * open.
 */
void own_take(struct limiter *limiter, uint64_t tokens);
void own_put(struct limiter *limiter, uint64_t tokens, uint64_t kept);

#endif
