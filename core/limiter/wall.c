/* wall - the wall clock of an engine, see wall.h. */
#include "core/limiter/wall.h"
#include "core/limiter/keys.h"
#include "core/limiter/partition.h"
#include "core/limiter/window.h"

/* By less the wall clock may be off before waiters are planned anew. */
#define WALL_STEP_NS (NSEC_PER_SEC / 10)

static bool look_again(struct limiter *limiter, uint64_t now_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		if (!bucket_is_window(&limiter->buckets[i]))
			continue;
		window_look_again(&limiter->buckets[i], now_ns);
		any = true;
	}
	return any;
}

/* Has the windows below @limiter look at the clock again; then settles those limiters. */
static void look_below(struct schedule *schedule, struct limiter *limiter, bool settles)
{
	struct limiter *partition;
	uint64_t now_ns = schedule->now_ns;

	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		bool any = look_again(l, now_ns);

		for (uint32_t i = 0; (partition = partition_next(l, &i));) {
			if (look_again(partition, now_ns) && settles)
				limiter_settle(schedule, partition);
		}
		for (struct limiter *key = NULL; (key = keys_next_open(l, key));) {
			if (look_again(key, now_ns) && settles)
				limiter_settle(schedule, key);
		}
		if (any && settles)
			limiter_settle(schedule, l);
		look_below(schedule, l, settles);
	}
}

void wall_set(struct engine *engine, int64_t offset_ns, uint64_t now_ns)
{
	struct wall *wall = &engine->schedule.pool.wall;
	int64_t step_ns = offset_ns - wall->settled_ns;
	struct limiter *root = engine->tree.root;

	engine_run(engine, now_ns);
	wall->offset_ns = offset_ns;
	if (step_ns < (int64_t)WALL_STEP_NS && step_ns > -(int64_t)WALL_STEP_NS)
		return;
	wall->settled_ns = offset_ns;
	if (!wall_is_needed(engine))
		return;
	look_below(&engine->schedule, root, false);
	look_below(&engine->schedule, root, true);
}
