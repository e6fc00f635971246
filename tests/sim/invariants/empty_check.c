/* empty_check - all returns to empty, see empty_check.h. */
#include "tests/sim/invariants/empty_check.h"

#include <stdio.h>

static bool refuse(const char *what, char why[WHY_TEXT])
{
	snprintf(why, WHY_TEXT, "every reader has gone, but %s", what);
	return false;
}

static bool check_turns(const struct turns *turns, char why[WHY_TEXT])
{
	if (queue_first(&turns->queue) || turns->queue.length)
		return refuse("a queue is not empty", why);
	if (turns->current)
		return refuse("it is a waiter's turn", why);
	if ((turns->order && turns->order->forward) ||
	    (turns->sibling && heap_holds(&turns->sibling->turn)))
		return refuse("a waiter is put forward", why);
	if (turns_demand(turns))
		return refuse("something is wanted", why);
	return true;
}

bool empty_check_limiter(const struct limiter *limiter, char why[WHY_TEXT])
{
	if (!check_turns(&limiter->turns, why))
		return false;
	if (heap_holds(&limiter->due))
		return refuse("a deadline is set", why);
	if (limiter->pollers || limiter->polled)
		return refuse("pollers are counted", why);
	if (slots_used(limiter))
		return refuse("slots are in use", why);
	if (limiter->slots && !check_turns(&limiter->slots->turns, why))
		return false;
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		if (!bucket_is_window(&limiter->buckets[i]) && limiter->buckets[i].awaited)
			return refuse("a bucket is waited for", why);
	}
	return true;
}

bool empty_check_engine(const struct engine *engine, char why[WHY_TEXT])
{
	const struct schedule *schedule = &engine->schedule;

	if (engine->waiting)
		return refuse("readers are counted", why);
	if (schedule->deadlines.root || schedule->expiries.root)
		return refuse("something is due", why);
	if (schedule->called.first)
		return refuse("tokens are kept for a poller", why);
	if (schedule->done.length || engine->changed.first || engine->change)
		return refuse("something is left to be collected", why);
	return empty_check_limiter(engine->tree.root, why);
}

bool empty_check_memory(long before, long after, char why[WHY_TEXT])
{
	if (before == after)
		return true;
	snprintf(why, WHY_TEXT, "%ld blocks of memory are left", after - before);
	return false;
}
