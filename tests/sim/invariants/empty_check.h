/*
 * empty_check - queues and memory return to empty when every reader has gone.
 */
#ifndef RATEFS_SIM_EMPTY_CHECK_H
#define RATEFS_SIM_EMPTY_CHECK_H

#include "core/limiter/engine.h"
#include "tests/sim/invariants/rate_check.h"

/* No reader waits for anything in @limiter. */
bool empty_check_limiter(const struct limiter *limiter, char why[WHY_TEXT]);

/* Nothing is due, no reader waits and nothing is left to be collected in the whole engine. */
bool empty_check_engine(const struct engine *engine, char why[WHY_TEXT]);

/* As many blocks of memory are held as before. */
bool empty_check_memory(long before, long after, char why[WHY_TEXT]);

#endif
