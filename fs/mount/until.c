/* until - the conditions that reads wait for, see until.h. */
#include "fs/mount/until.h"

#include "core/fleet/survey.h"

uint64_t until_event(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	(void)asked_ns;
	return events_wait_for(&daemon->events, handle->viewer, &handle->position) ? 0 : NEVER_NS;
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
