/* rouse - telling the source what is asked for, see rouse.h. */
#include "core/limiter/rouse.h"
#include "core/limiter/holding.h"

void rouse_path(struct engine *engine, struct limiter *limiter)
{
	if (!engine->source->rouse)
		return;
	for (; limiter; limiter = limiter->parent) {
		if (limiter->holding)
			engine->source->rouse(engine->source, limiter);
	}
	engine->source->after(engine->source, engine->schedule.now_ns);
}

void rouse_for_missing(struct engine *engine, struct limiter *limiter, uint64_t tokens)
{
	if (limiter->is_key && engine->source->miss && limiter->bucket_count &&
	    !bucket_has(limiter->buckets, tokens))
		engine->source->miss(engine->source, limiter);
	rouse_path(engine, limiter);
}

void rouse_for_slots(struct engine *engine, struct limiter *limiter)
{
	if (!engine->source->rouse)
		return;
	for (; limiter; limiter = limiter->parent) {
		if (limiter->holding && limiter->holding->settings->slots.kind == SLOTS_COUNT)
			engine->source->rouse(engine->source, limiter);
	}
	engine->source->after(engine->source, engine->schedule.now_ns);
}

void rouse_for_told(struct engine *engine, struct limiter *limiter)
{
	if (!engine->source->told || !limiter->holding)
		return;
	engine->source->told(engine->source, limiter);
	engine->source->after(engine->source, engine->schedule.now_ns);
}

bool rouse_may_come(const struct engine *engine, const struct limiter *limiter)
{
	return engine->source->may_come && engine->source->may_come(engine->source, limiter);
}

bool rouse_slots_may_come(const struct engine *engine, const struct limiter *limiter)
{
	return engine->source->slots_may_come &&
	       engine->source->slots_may_come(engine->source, limiter);
}

bool rouse_is_news(const struct limiter *limiter)
{
	const struct holding *holding = limiter->is_key ? limiter->parent->holding
							: limiter->holding;

	return holding && !holding->active;
}
