/*
 * writing - changes of limiters that a trace asks for, see writing.h.
 *
 * In a fleet the coordinator must acknowledge them. As on the mount, one that takes longer than 2 s
 * ends with ETIMEDOUT; if it is refused after all, that is printed when it comes.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/writing.h"
#include "tests/sim/world/act.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRITING_PATIENCE_NS UINT64_C(2000000000)

struct writing {
	struct writing *next;
	struct host *host;
	struct occurrence timeout;
	bool timing; /* the timeout is pending */
	bool done;
	const struct command *command;
	struct change change;
};

static struct writing *writing_of(struct occurrence *timeout)
{
	return (struct writing *)((char *)timeout - offsetof(struct writing, timeout));
}

static void unlink_writing(struct writing *writing)
{
	struct writing **at = &writing->host->writings;

	while (*at != writing)
		at = &(*at)->next;
	*at = writing->next;
}

/* No program waits for it any more, and none will come for it. */
static void free_if_over(struct writing *writing)
{
	if (writing->done && !writing->timing)
		free(writing);
}

static void drop(struct occurrence *timeout)
{
	struct writing *writing = writing_of(timeout);

	writing->timing = false;
	free_if_over(writing);
}

static void time_out(struct sim *sim, struct occurrence *timeout)
{
	struct writing *writing = writing_of(timeout);
	struct host *host = writing->host;

	writing->timing = false;
	if (!writing->done) {
		act_refused(sim, host, writing->command, -ETIMEDOUT,
			    "not acknowledged within 2 s: read it back");
		if (change_withdraw(&host->engine, &writing->change)) {
			unlink_writing(writing);
			writing->done = true;
		}
	}
	free_if_over(writing);
}

static int begin_alone(struct host *host, struct change *change, const struct command *command)
{
	change_begin(&host->engine, change, host_now(host));
	if (engine_changed(&host->engine) != change) {
		sim_fail(host->sim, INVARIANT_QUEUE, NULL, "a change got lost");
		return -EIO;
	}
	if (change->outcome)
		act_refused(host->sim, host, command, change->outcome, change->error);
	return change->outcome;
}

int writing_begin(struct host *host, const struct change *change, const struct command *command)
{
	struct sim *sim = host->sim;
	struct writing *writing;
	struct memory *before;
	struct change alone;

	if (!sim->fleet) {
		alone = *change;
		return begin_alone(host, &alone, command);
	}
	writing = memory_get(sizeof(*writing));
	writing->host = host;
	writing->command = command;
	writing->change = *change;
	writing->next = host->writings;
	host->writings = writing;
	writing->timing = true;
	writing->timeout = (struct occurrence){.happens = time_out, .dropped = drop};
	sim_later(sim, host, &writing->timeout, sim->now_ns + WRITING_PATIENCE_NS);
	before = host_enter(host);
	change_begin(&host->engine, &writing->change, host_now(host));
	host_leave(before);
	return -EINPROGRESS;
}

void writing_collect(struct host *host)
{
	struct change *change;

	while ((change = engine_changed(&host->engine))) {
		struct writing *writing =
			(struct writing *)((char *)change - offsetof(struct writing, change));

		unlink_writing(writing);
		writing->done = true;
		host->applied = true;
		if (change->outcome)
			act_refused(host->sim, host, writing->command, change->outcome,
				    change->error);
		free_if_over(writing);
	}
}

void writing_vanish(struct host *host)
{
	while (host->writings) {
		struct writing *writing = host->writings;

		host->writings = writing->next;
		writing->done = true;
		free_if_over(writing);
	}
}
