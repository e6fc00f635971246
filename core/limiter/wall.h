/*
 * wall - the wall clock of an engine, which windows of the calendar go by (bucket.h).
 *
 * The engine has no clock. The caller tells it how far the wall clock is ahead of the engine's
 * time, at the beginning and about once a second while there are windows: that clock may be set.
 */
#ifndef RATEFS_CORE_WALL_H
#define RATEFS_CORE_WALL_H

#include "core/limiter/engine.h"

/* The wall clock is to be told so often. */
#define WALL_NS NSEC_PER_SEC

/* Tells whether a limiter, or its keys, has windows of the calendar. */
static inline bool wall_is_needed(const struct engine *engine)
{
	return engine->schedule.pool.windowed_count;
}

/*
 * Notes that the wall clock shows @offset_ns more than the engine's time, as of @now_ns. Waiters
 * are planned anew where it was set, by more than a clock drifts.
 */
void wall_set(struct engine *engine, int64_t offset_ns, uint64_t now_ns);

#endif
