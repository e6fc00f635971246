/* until - the conditions that reads wait for, see until.h. */
#include "fs/mount/until.h"

#include "core/fleet/survey.h"
#include "core/limiter/slots.h"
#include "core/limiter/trigger.h"
#include "core/limiter/usage.h"

uint64_t until_event(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	(void)asked_ns;
	return events_wait_for(&daemon->events, handle->viewer, &handle->position) ? 0 : NEVER_NS;
}

uint64_t until_asked(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	(void)asked_ns;
	if (handle != daemon->freezer)
		return 0;
	return handle->position == daemon->pending.asked ? NEVER_NS : 0;
}

uint64_t until_pressed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	const struct waited *waited = usage_waited(handle->limiter);
	uint64_t now_ns = clock_ns();

	(void)daemon;
	(void)asked_ns;
	if (!handle->trigger)
		return NEVER_NS;
	return trigger_look(handle->trigger, waited ? &waited->pressure : NULL, now_ns);
}

uint64_t until_seen(struct daemon *daemon, struct holding *holding, uint64_t asked_ns)
{
	if (survey_is_done(daemon->fleet, holding, asked_ns))
		return 0;
	survey_begin(daemon->fleet, holding);
	return asked_ns + FLEET_ANSWER_NS;
}

uint64_t until_surveyed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	return daemon->fleet ? until_seen(daemon, handle->limiter->holding, asked_ns) : 0;
}

uint64_t until_hosts_seen(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	uint64_t tiles_ns = until_surveyed(daemon, handle, asked_ns);
	uint64_t hosts_ns = daemon->fleet ? until_seen(daemon, NULL, asked_ns) : 0;

	return tiles_ns > hosts_ns ? tiles_ns : hosts_ns;
}

uint64_t until_slots_seen(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	const struct limiter *limiter = handle->limiter;

	if (!daemon->fleet)
		return 0;
	while (limiter &&
	       (!limiter->holding || limiter->holding->settings->slots.kind != SLOTS_COUNT ||
		slots_used(limiter) < slots_limit(limiter)))
		limiter = limiter->parent;
	return limiter ? until_seen(daemon, NULL, asked_ns) : 0;
}
