/* admission - whether a reader may wait, see admission.h. */
#include "core/limiter/admission.h"
#include "core/limiter/holding.h"
#include "core/limiter/rouse.h"

uint64_t admission_until_ns(const struct engine *engine, const struct limiter *limiter,
			    uint64_t asked_ns, uint64_t expiry_ns)
{
	uint64_t patient_ns = asked_ns + ENGINE_PATIENCE_NS;

	return expiry_ns < patient_ns && rouse_may_come(engine, limiter) ? patient_ns : expiry_ns;
}

/* Tells whether a rate of @limiter, or above it, is 0, so that no partition brings a token. */
static bool is_shut(const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		const struct holding *holding = limiter->holding;

		/* Rates of keys and of partitions are those of what the host holds. */
		if (!holding || holding->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < holding->settings->limit_count; i++) {
			if (holding->settings->limits[i].rate.amount == 0)
				return true;
		}
	}
	return false;
}

bool admission_may_wait(struct engine *engine, const struct waiter *waiter, uint64_t expiry_ns)
{
	uint64_t at_ns = engine->schedule.now_ns;

	if (expiry_ns == NEVER_NS)
		return true;
	/* A waiter with a place was let in before, and waiters that came later are behind it. */
	if (!waiter->place)
		at_ns = limiter_when(&engine->schedule, waiter->limiter, waiter->tokens,
				     waiter->amounts);
	if (at_ns <= expiry_ns)
		return true;
	return rouse_may_come(engine, waiter->limiter) && !is_shut(waiter->limiter);
}

void admission_refuse(struct engine *engine, struct limiter *limiter, enum setting_id id)
{
	engine->refused_by = id;
	limiter->counters[id == SETTING_QUEUE_MAX ? COUNTER_REFUSED_QUEUE : COUNTER_REFUSED_WAIT]++;
}

enum setting_id admission_bound(struct engine *engine, const struct waiter *waiter)
{
	const struct limiter *limiter = waiter->limiter;
	const struct settings *settings = limiter->settings;
	uint64_t now_ns = engine->schedule.now_ns;

	if (waiter->place || waiter->is_admitted)
		return SETTING_COUNT;
	if (limiter->turns.queue.length - waiter->is_polled >= settings->queue_max)
		return SETTING_QUEUE_MAX;
	if (settings->wait_max_ns == NEVER_NS || rouse_may_come(engine, limiter))
		return SETTING_COUNT;
	return limiter_when(&engine->schedule, waiter->limiter, waiter->tokens, waiter->amounts) -
				       now_ns >
			       settings->wait_max_ns
		       ? SETTING_WAIT_MAX
		       : SETTING_COUNT;
}
