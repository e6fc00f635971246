/*
 * admission - whether a reader that has no tokens yet may wait: by the time that it allows itself,
 * and by the bounds of its limiter.
 */
#ifndef RATEFS_CORE_ADMISSION_H
#define RATEFS_CORE_ADMISSION_H

#include "core/limiter/engine.h"

/*
 * Returns until when a waiter that asked at @asked_ns waits. A waiter whose time is short waits for
 * partitions that are being looked for, but no longer.
 */
uint64_t admission_until_ns(const struct engine *engine, const struct limiter *limiter,
			    uint64_t asked_ns, uint64_t expiry_ns);

/*
 * Tells whether @waiter may wait until @expiry_ns: as things stand it gets its tokens by then, or
 * partitions are looked for that may bring them. All readers and polls that would wait are asked
 * for here.
 */
bool admission_may_wait(struct engine *engine, const struct waiter *waiter, uint64_t expiry_ns);

/*
 * Returns the bound of its limiter by which @waiter may not wait; SETTING_COUNT: it may, or was let
 * in before.
 */
enum setting_id admission_bound(struct engine *engine, const struct waiter *waiter);

/* Notes that setting @id of @limiter refuses a reader. */
void admission_refuse(struct engine *engine, struct limiter *limiter, enum setting_id id);

#endif
