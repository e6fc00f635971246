/* pressure_file - the file `pressure`, see pressure_file.h. */
#include "fs/mount/pressure_file.h"
#include "fs/mount/text_file.h"

#include "core/limiter/trigger.h"
#include "core/limiter/usage.h"
#include "core/values/text.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

void pressure_file_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	struct pressure pressure;

	(void)uid;
	engine_refresh(&daemon->engine, node->limiter, clock_ns());
	pressure = usage_pressure(node->limiter, daemon->engine.schedule.now_ns);
	fprintf(out, "some avg10=%.2f avg60=%.2f avg300=%.2f total=%" PRIu64 "\n",
		100 * pressure.averages[0], 100 * pressure.averages[1], 100 * pressure.averages[2],
		pressure.total_ns / 1000);
}

/* Has @handle watch for @trigger. 0 or -ENOMEM. */
static int set_trigger(struct daemon *daemon, struct handle *handle, const struct trigger *trigger)
{
	handle->trigger = malloc(sizeof(*trigger));
	if (!handle->trigger)
		return -ENOMEM;
	*handle->trigger = *trigger;
	handle_watch(daemon, handle);
	return 0;
}

/* Decides on a write of @trigger, which is @wrong, or 0. Returns 0 or -errno. Under the lock. */
static int begin_trigger(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			 const struct trigger *trigger, int wrong)
{
	int err;

	if (handle->limiter->removed) {
		daemon_refused(daemon, caller->uid, NULL, NULL, "the limiter is gone");
		return -ENODEV;
	}
	if (caller->again && state_was_done(daemon->state, caller->unique))
		return 0;
	if (wrong) {
		daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
			       "not a threshold: some STALL WINDOW in microseconds, WINDOW 500000 "
			       "to 10000000, STALL 1 to WINDOW");
		return wrong;
	}
	if (handle->trigger) {
		daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
			       "this open file has a threshold: open pressure again for another");
		return -EBUSY;
	}
	err = set_trigger(daemon, handle, trigger);
	if (err)
		return err;
	handle->kept->tokens = trigger->stall_ns;
	handle->kept->within_ns = trigger->window_ns;
	handle->kept->granted = true;
	state_done(daemon->state, caller->unique);
	return 0;
}

static void write_pressure(struct daemon *daemon, struct handle *handle,
			   const struct caller *caller, const char *text, size_t size)
{
	char threshold[QUANTITY_TEXT];
	struct trigger trigger;
	int err = text_copy(text, strlen(text), threshold, sizeof(threshold));

	if (!err)
		err = trigger_parse(threshold, &trigger);
	daemon_lock(daemon);
	err = begin_trigger(daemon, handle, caller, &trigger, err);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(caller->request, -err);
	else
		fuse_reply_write(caller->request, size);
}

static int reopen_pressure(struct daemon *daemon, struct handle *handle,
			   const struct state_handle *kept)
{
	const struct trigger trigger = {.stall_ns = kept->tokens, .window_ns = kept->within_ns};

	if (!kept->granted || !trigger_is_possible(trigger.stall_ns, trigger.window_ns))
		return 0;
	return set_trigger(daemon, handle, &trigger);
}

/* A read never waits. */
static bool poll_pressure(struct daemon *daemon, struct handle *handle)
{
	(void)daemon;
	(void)handle;
	return true;
}

/* As PSI: an event is taken by the poll that is told of it; without a threshold it is an error. */
static unsigned int poll_trigger(struct daemon *daemon, struct handle *handle)
{
	if (!handle->trigger || handle->limiter->removed || daemon->stopping)
		return POLLERR | POLLPRI;
	handle_watch(daemon, handle);
	return trigger_take(handle->trigger) ? POLLPRI : 0;
}

const struct node_kind PRESSURE_FILE = {
	.ends_in_zero = true,
	.reopen = reopen_pressure,
	.read = text_file_read_now,
	.answer = text_file_read_now,
	.write = write_pressure,
	.poll = poll_pressure,
	.poll_more = poll_trigger,
};
